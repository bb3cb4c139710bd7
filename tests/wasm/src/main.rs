//! Prints the checksum of this machine.

fn main() {
    println!("{}", everbloom_wasm::checksum());
}
