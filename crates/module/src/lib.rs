//! The `BF.*` commands as a module of Valkey and Redis.
//!
//! The second host of [`everbloom_commands`], beside the server: the keyspace, the wire, the log,
//! replication and clusters are those of Valkey and Redis.
//!
//! | module | what it holds |
//! |---|---|
//! | `load` | what the host calls: loading registers commands, types and settings |
//! | `command` | one command: open the key, run the row of the table, reply, replicate, notify |
//! | `stored` | a filter in a key |
//! | `listing` | the list of windows: the key of each, and when to look at it |
//! | `types` | the data types: what the host calls to save, load, copy, measure and free |
//! | `windows` | frees the expired generations of windows, with the time of `clock` |
//! | `config` | settings, under the names of Redis 8 and of valkey-bloom, and load arguments |
//! | `info` | the counts of INFO |
//! | `raw` | the host's C interface: all unsafe code is there |

mod clock;
mod command;
mod config;
mod info;
mod listing;
mod load;
mod raw;
mod stored;
mod types;
mod watchlist;
mod windows;
