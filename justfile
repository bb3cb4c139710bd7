# What a person does often. `just` lists it; the words are CI's.

_default:
    @just --list

# Run every test; arguments go to cargo, as in: just test -p everbloom-cli
test *args:
    cargo test {{ args }}

# Try every order in which threads may meet in an atomic filter
model:
    RUSTFLAGS="--cfg loom" cargo test -p everbloom --test atomic_model --target-dir target/loom

# Play seeds of the simulation: --seeds N, --seed N or --minutes M
simulate *args:
    cargo build -q --workspace --example simulate
    target/debug/examples/simulate {{ args }}

# Formatting, lints and the links of the documentation, as CI has them
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Replay RedisBloom's recorded replies
conformance:
    cargo test -p everbloom-conformance

# Build the module of Valkey and Redis: target/release/libeverbloom_module.so
module:
    cargo build --release -p everbloom-module

# Write tests/releases/VERSION: files of this version, which every later one must read
release-files:
    cargo test -p everbloom-cli --test all -- releases:: --ignored

# The module inside redis-server, or the server that VALKEY_SERVER or REDIS_SERVER names
module-test *args:
    cargo test -p everbloom-module {{ args }}

# The same under the address sanitizer, in Debian's redis-server; two minutes, needs a nightly toolchain and gcc
module-asan *args:
    RUSTFLAGS=-Zsanitizer=address cargo +nightly build -p everbloom-module --target x86_64-unknown-linux-gnu --target-dir target/asan
    REDIS_SERVER="$PWD/tests/hosts/redis-asan" EVERBLOOM_MODULE="$PWD/target/asan/x86_64-unknown-linux-gnu/debug/libeverbloom_module.so" \
        cargo test -p everbloom-module {{ args }}

# The same in Redis 6.2 and 8, Valkey 8 and 9, which are fetched and not installed; needs Debian's apt
module-hosts:
    tests/hosts/test

# Filters, protocol, files and commands on 64-bit ARM, under qemu; installs Debian's compiler for it
arm:
    tests/arm

# The library on i686, and in WebAssembly under node; installs Debian's packages for 32 bits
platforms:
    tests/platforms

# What people install, in target/dist: a .deb, a static binary with its man pages, a container's folder
dist *args:
    contrib/dist {{ args }}

# Install, upgrade and purge the .deb on this machine; needs root
dist-test:
    tests/packages/deb

# Check the compose file, the Kubernetes manifest and the workflows; needs Go
operators:
    tests/operators/check

# Build the container image with buildah, start it, and look into the tarball
container-test:
    tests/packages/container

# Build the Python package into a virtual environment, python/target/venv, and test it there
python:
    cargo build -p everbloom-cli
    cargo build --manifest-path python/Cargo.toml --example exchange
    python3 -m venv python/target/venv
    python/target/venv/bin/pip install -q -r python/tests/requirements.txt ./python
    cd python && EVERBLOOM=../target/debug/everbloom target/venv/bin/pytest

# The Python package beside other libraries of its kind; after `just python`
bench-python *args:
    python/target/venv/bin/pip install -q -r python/benches/requirements.txt
    python/target/venv/bin/python python/benches/compare.py {{ args }}

# The library's unsafe code under miri: atomic words, bit arrays, the portable and the AVX2 kernels; ten minutes, needs a nightly toolchain with miri
miri:
    MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p everbloom --test all -- atomic:: --skip it_answers
    PROPTEST_CASES=2 MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" RUSTFLAGS="-C target-feature=+avx2" cargo +nightly miri test -p everbloom --lib -- bits:: host::bloom

# The benchmarks of the library, the server, the module, the client, threads and entrances, in half an hour on an
# idle machine, of which the module takes eleven minutes; writes benches/results and prints the tables
bench: _bench-build bench-library bench-server bench-module bench-client bench-concurrency bench-entrances

# Do the benchmarks work? Small and short, in a minute; the figures mean nothing
bench-smoke:
    cargo build -p everbloom-cli -p everbloom-module
    for what in library server module client concurrency entrances growth latency pauses; do \
        cargo run --manifest-path benches/Cargo.toml -- "$what" --smoke \
            --everbloom target/debug/everbloom --module target/debug/libeverbloom_module.so \
            --results target/bench-smoke || exit; \
    done

# The filters against other crates
bench-library:
    cargo run --release --manifest-path benches/Cargo.toml -- library

# `everbloom serve` against redis-server, which must be installed
bench-server: _bench-build
    cargo run --release --manifest-path benches/Cargo.toml -- server

# The module in redis-server, beside that one's ECHO and SETBIT and beside `everbloom serve`; another
# host by its path, as in: just bench-module --redis-server /usr/bin/valkey-server. With the environment
# variable EVERBLOOM_VALKEY_BLOOM=FILE, valkey-bloom is measured in that host, too
bench-module *args: _bench-build module
    cargo run --release --manifest-path benches/Cargo.toml -- module {{ args }}

# A filter in a bitmap, from everbloom-client and as the published recipes do it, on `everbloom serve`
# and on redis-server, in a few minutes
bench-client: _bench-build
    cargo run --release --manifest-path benches/Cargo.toml -- client

# One filter under one and two threads
bench-concurrency:
    cargo run --release --manifest-path benches/Cargo.toml -- concurrency

# What TLS, a Unix socket and metrics cost
bench-entrances:
    cargo run --release --manifest-path benches/Cargo.toml -- entrances

# Filters that grew beside reserved ones, in three minutes
bench-growth:
    cargo run --release --manifest-path benches/Cargo.toml -- growth

# What a filter that grows takes in both layouts, in a minute; needs python3
bench-memory: _bench-build
    python3 benches/memory/run.py

# A million small filters, and one of a billion items; needs python3 and redis-server
bench-extremes: _bench-build _load-build
    python3 benches/extremes/run.py small
    python3 benches/extremes/run.py large

# Windows beside a plain filter and a key for each day; needs python3
bench-windows: _bench-build
    python3 benches/windows/run.py

# What clients can take, and what the others notice, beside redis-server; needs python3 and redis-server
bench-attacks: _bench-build
    python3 benches/attacks/run.py

# What others notice of acts that take long; needs redis-server and 10 GB of memory
bench-pauses: _bench-build
    cargo run --release --manifest-path benches/Cargo.toml -- pauses

# The time of single requests that come by a schedule, beside redis-server and, with `--redisbloom FILE`,
# RedisBloom; five minutes
bench-latency *args: _bench-build
    cargo run --release --manifest-path benches/Cargo.toml -- latency {{ args }}

# `everbloom dedup` beside huniq and runiq, which `cargo install huniq runiq` brings; needs python3
bench-dedup: _bench-build
    python3 benches/dedup/run.py

# What snapshots and the log cost, beside redis-server; needs python3 and redis-server
bench-persistence: _bench-build _load-build
    python3 benches/persistence/run.py

_bench-build:
    cargo build --release -p everbloom-cli

_load-build:
    cargo build --release --manifest-path benches/Cargo.toml

# Time this tree and another revision in turn, and print the ratios; RedisBloom beside them with
# `--redisbloom FILE`. Beside speeds it has processor time for a request, which other programs change less; `--noise`
# burns a core in bursts. A quarter of an hour on an idle machine; needs python3 and redis-server
bench-against rev *args:
    benches/against/run.py {{ rev }} {{ args }}

# Count the instructions of the hot paths, and fail when one takes 3 % more than before; `--write` writes
# benches/instructions/counts.txt. Needs valgrind, redis-server and python3
instructions *args:
    benches/instructions/run.py {{ args }}

# Fuzz a target, or all in turn, for some seconds each; needs cargo-fuzz and a nightly toolchain
fuzz target="all" seconds="60":
    for name in {{ if target == "all" { "$(cargo fuzz list)" } else { target } }}; do \
        mkdir -p "fuzz/corpus/$name"; \
        cargo +nightly fuzz run "$name" "fuzz/corpus/$name" $(find tests/corpus -name "$name") -- \
            -max_total_time={{ seconds }} -rss_limit_mb=4096 -len_control=50 || exit; \
    done

# Choose the seeds of a target anew: few inputs of its corpus that reach all that the corpus does
fuzz-seeds target:
    mkdir -p "fuzz/corpus/{{ target }}" "tests/corpus/{{ target }}"
    find "tests/corpus/{{ target }}" -type f -exec mv -t "fuzz/corpus/{{ target }}" {} +
    cargo +nightly fuzz run "{{ target }}" \
        "tests/corpus/{{ target }}" "fuzz/corpus/{{ target }}" -- -set_cover_merge=1 -use_counters=0

# Licences, advisories and sources of the dependencies; needs cargo-deny
deny:
    cargo deny check

# All that CI does, programs it needs included
ci:
    bash .ci/run
