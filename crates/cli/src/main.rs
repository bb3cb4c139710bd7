//! everbloom
fn main() {}
