# Read by the scripts beside it: apt with lists of its own, for packages that are not to be installed.

# Of which mirror this machine gets its packages, and of which release they are.
debian() {
  local known
  known=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 'Label: Debian')
  if [ -z "$known" ]; then
    echo "apt knows no mirror of Debian: this needs Debian, after apt-get update" >&2
    return 1
  fi
  head -n 1 <<<"$known"
}

# `lists FOLDER TYPE MIRROR RELEASE`: from now on `apt` works in that folder, with packages (deb) or
# sources (deb-src) of that release, as if nothing were installed.
lists() {
  apt_folder=$1
  mkdir -p "$apt_folder"/{lists/partial,cache/archives/partial}
  : >"$apt_folder/status"
  echo "$2 [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $3 $4 main" >"$apt_folder/sources.list"
  apt update
}

apt() {
  apt-get -q -o Acquire::Retries=3 -o APT::Sandbox::User="$(id -un)" \
    -o Dir::Etc::SourceList="$apt_folder/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$apt_folder/lists" -o Dir::State::Status="$apt_folder/status" \
    -o Dir::Cache="$apt_folder/cache" "$@" >&2
}
