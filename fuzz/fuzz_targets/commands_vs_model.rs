//! Any sequence of commands against models of both families of filters.
#![no_main]

use inputs::Input;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the tests that replay the corpus")]
#[path = "../inputs/commands_vs_model/mod.rs"]
mod inputs;

#[allow(dead_code, reason = "shared with the tests of the filters")]
#[path = "../../crates/filters/tests/cuckoo/slow.rs"]
mod slow;

fuzz_target!(|input: Input| input.check());
