# What a person does often. `just` lists it; the words are CI's.

_default:
    @just --list

# Run every test; arguments go to cargo, as in: just test -p everbloom-cli
test *args:
    cargo test {{ args }}

# Formatting and lints, as CI has them
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Build the documentation; a broken link fails
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Replay RedisBloom's recorded replies
conformance:
    cargo test -p everbloom-conformance

# Fuzz a target for some seconds; needs cargo-fuzz and a nightly toolchain
fuzz target="resp_request" seconds="60":
    cargo +nightly fuzz run {{ target }} -- -max_total_time={{ seconds }}

# Licences, advisories and sources of the dependencies; needs cargo-deny
deny:
    cargo deny check

# All that CI does, programs it needs included
ci:
    bash .ci/run
