//! The append-only log: the directory and the files that Redis 7 writes, and what is in them.
//!
//! ```text
//! <data directory>/
//!   appendonlydir/                        the setting appenddirname
//!     appendonly.aof.manifest             which of the files below are the log, in what order
//!     appendonly.aof.2.base.rdb           base: all keys as of one moment
//!     appendonly.aof.5.incr.aof           increments: what happened since, oldest first;
//!     appendonly.aof.6.incr.aof             the last one is being written
//!     appendonly.aof.1.base.rdb           history: no longer needed, about to be removed
//!     temp.begin                          files of a log that is being begun, without a line yet
//! ```
//!
//! All names begin with the setting `appendfilename`; base and increments are numbered apart. A
//! base is an RDB file (`.rdb`), or commands (`.aof`) where `aof-use-rdb-preamble` is off. It gets
//! its name when it is whole, so it is never torn, and an RDB file is never empty. An old-style log
//! that was adopted keeps its name `appendonly.aof`. It may begin with an RDB file, which its first
//! five bytes show, and commands follow. Its end may be torn.
//!
//! Commands, in a base or in an increment, may be no commands: Redis leaves an empty base of an
//! empty database, and both servers begin an increment before anything is written to it.
//!
//! The manifest is replaced as a whole, so that at every moment one complete set of files is the
//! log ([`manifest`] has its format):
//!
//! ```text
//! start of a rewrite   the manifest gains a new increment, which takes further commands
//! during               a new base is written under a name that no manifest holds yet
//! end                  the manifest names the new base; the old base and the increments before
//!                      the new one become history
//! after                the history is removed, files first, then from the manifest
//! ```
//!
//! An increment, and a base that is not an RDB file, is a sequence of commands as clients send
//! them ([`reader`] reads it):
//!
//! ```text
//! file       = (annotation | command)*
//! annotation = "#" any bytes LF                        "#TS:1700000000\r\n", a time stamp
//! command    = "*" count CR LF  count times argument   count >= 1
//! argument   = "$" len CR LF  len bytes  CR LF
//! ```
//!
//! The commands from `MULTI` to `EXEC` take effect together or not at all.

mod account;
pub mod batch;
mod covered;
pub mod line;
pub mod manifest;
pub mod reader;

pub use batch::{Commands, is_bracket};
pub use line::FileInfo;
pub use manifest::{BaseFormat, Ended, Manifest, ManifestError, Names, ReadManifestError};
pub use reader::{Command, CommandReader, Piece, ReadError, Unit};
