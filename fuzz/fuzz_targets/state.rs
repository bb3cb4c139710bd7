//! Any bytes as a filter file, as they are and with their checksums made right: the filter that the
//! same bytes are in memory, or an error in both.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/state.rs"]
mod input;
#[path = "../../crates/cli/src/stable.rs"]
mod stable;

fuzz_target!(|bytes: &[u8]| {
    for file in input::files(bytes) {
        input::check(&file);
    }
});
