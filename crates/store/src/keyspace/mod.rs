//! The keys: a map in many shards, each with its own lock.
//!
//! A key's hash determines its shard, the same in all databases. So a command on one key takes one
//! lock, whatever its database. Commands on several keys take several locks, always in the order of
//! the shards' numbers ([`footprint`]), so that they cannot deadlock.
//!
//! - [`sharded`]: the shards and their locks
//! - [`entry`]: a key with its value, expiry and time of last access
//! - `sums`: totals over entries: bytes, filters, items
//! - `expiries`: when the keys of a database expire
//! - [`db`]: the entries of one database within one shard
//! - [`shard`]: the databases of one shard, and the keys that clients watch there
//! - `key`: what names a key, and which shard it is in
//! - [`footprint`]: which shards a command needs
//! - [`view`]: what a command can do with the shards it has locked: read them, or change them
//! - [`watches`]: the keys that one client watches
//! - `order`: the order in which keys are walked
//! - `release`: frees removed values on a separate thread
//! - [`snapshot_queue`]: the entries that a snapshot has kept, until they are written
//! - [`captured`]: a large value that is being read in pieces
//! - `captures`: the locations of all of these
//! - [`snapshot`]: all keys as they were at one moment, collected while commands run
//! - [`scan`]: walking all keys with a cursor while they change

pub mod captured;
mod captures;
pub mod db;
pub mod entry;
mod expiries;
pub mod footprint;
mod key;
mod order;
mod release;
pub mod scan;
pub mod shard;
pub mod sharded;
pub mod snapshot;
pub mod snapshot_queue;
mod sums;
pub mod view;
pub mod watches;

pub use db::Db;
pub use entry::{Entry, ValueSlot};
pub use footprint::Footprint;
pub use key::{KeyRef, Place, Places, SHARDS};
pub use shard::Shard;
pub use sharded::Keyspace;
pub use sums::DbSums;
pub use view::{EntryMut, Expired, ReadLocks, View, ViewMut};
pub use watches::Watches;
