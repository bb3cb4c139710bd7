//! Where keys live: a map in many shards, each behind a lock of its own.
//!
//! A key's hash names its shard, the same for all databases, so that a command on one key takes one
//! lock whatever database it works in. Commands on several keys take several locks, always in the
//! order of the shards' numbers ([`footprint`]), so that no two of them wait for each other.
//!
//! - [`sharded`]: the shards and their locks
//! - [`entry`]: a key with its value, expiry and time of last access
//! - `sums`: what entries come to, in bytes, filters, items
//! - `expiries`: when the keys of a database expire
//! - [`db`]: the entries of one database within one shard
//! - [`shard`]: the databases of one shard, and the keys that clients watch there
//! - [`footprint`]: which shards a command needs
//! - [`view`]: what a command that holds some shards may do with them
//! - `order`: the order in which keys are walked
//! - `release`: freeing what was removed, on a thread of its own
//! - [`snapshot_queue`]: the entries that a snapshot has kept, until they are written
//! - `captures`: where the large values are that are read in pieces
//! - [`snapshot`]: all keys as they were at one moment, collected while commands go on
//! - [`scan`]: walking all keys with a cursor while they change

mod captures;
pub mod db;
pub mod entry;
mod expiries;
pub mod footprint;
mod order;
mod release;
pub mod scan;
pub mod shard;
pub mod sharded;
pub mod snapshot;
pub mod snapshot_queue;
mod sums;
pub mod view;

pub use db::Db;
pub use entry::Entry;
pub use footprint::Footprint;
pub use shard::Shard;
pub use sharded::{Keyspace, SHARDS};
pub use sums::Sums;
pub use view::{Found, Place, View};
