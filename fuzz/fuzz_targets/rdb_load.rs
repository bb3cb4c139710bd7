//! An RDB file of any bytes: no panic, little memory, and every value that comes out is valid: a
//! filter passes the checks of its parts, and what is written from the values reads back equal.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/rdb_load.rs"]
mod inputs;

fuzz_target!(|input: &[u8]| {
    if let Some(file) = inputs::file(input) {
        inputs::check(&file);
    }
});
