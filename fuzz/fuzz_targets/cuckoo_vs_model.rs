//! Any sequence of changes of a cuckoo filter against a slow and obvious model.
#![no_main]

use inputs::Input;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the tests that replay the corpus")]
#[path = "../inputs/cuckoo_vs_model.rs"]
mod inputs;

#[allow(dead_code, reason = "shared with the tests of the filters")]
#[path = "../../crates/filters/tests/cuckoo/slow.rs"]
mod slow;

fuzz_target!(|input: Input| input.check());
