//! The tests of this crate: one binary builds faster than three.

mod aof;
mod crashing_disk;
mod rdb;
