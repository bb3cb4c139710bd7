//! A payload of any bytes for RESTORE or BF.LOAD: no panic, a valid value or an error, and what is
//! dumped from the value restores to an equal one.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/restore.rs"]
mod inputs;

fuzz_target!(|input: &[u8]| {
    for payload in inputs::payloads(input, 12) {
        inputs::check(&payload);
    }
    inputs::check_load(input);
});
