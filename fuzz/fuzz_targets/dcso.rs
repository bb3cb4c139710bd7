//! Any bytes as a filter of DCSO's, as they are and with a header that fits them: an error, or a
//! view that says of items what a slow reading of the format says.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/dcso.rs"]
mod input;

fuzz_target!(|bytes: &[u8]| {
    for filter in input::filters(bytes) {
        input::check(&filter);
    }
});
