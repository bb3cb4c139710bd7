//! The `BF.*` and `CF.*` commands as RedisBloom answers them, without a host around them.
//!
//! A command is a function of its arguments and of the one key it works on. It does no I/O, reads
//! no clock and uses no globals. The host (a server, a module) finds the key and lends it as a
//! [`Slot`] or a [`ReadSlot`]. It calls the command with a [`Run`] of requests and two sinks: the
//! answers go to the client, the changes to a log and to replicas.
//!
//! | module | what it holds |
//! |---|---|
//! | [`command`], [`flags`] | any command as data: name, arity, flags, documentation |
//! | [`synopsis`] | the arguments of a command, read from one line |
//! | [`table`] | the commands on filters, as such data, with their functions |
//! | [`args`], [`number`] | reading arguments: a cursor, and what counts as a number |
//! | [`filter`] | a filter of either kind |
//! | [`run`] | the requests of a call, and where answers and changes go |
//! | [`piece`] | a piece of a dump |
//! | [`slot`], [`context`] | what a host lends a command |
//! | [`error`] | every error text, once |
//! | [`bf`], [`cf`] | the commands, one family a file |
//! | [`metrics`] | what INFO says of all filters |
//! | [`mod@format`] | SCANDUMP headers, values as typed fields, and the number format of BF.DEBUG |
//!
//! ```
//! use everbloom_commands::run::{Replies, Run};
//! use everbloom_commands::{Action, Function, LazyContext, Slot, find};
//! use everbloom_resp::Reply;
//!
//! let context = LazyContext::default();
//! let add = find(b"bf.add").expect("BF.ADD is in the table");
//! let mut value = None;
//! let Function::Bloom(Action::Write(add)) = add.handler else {
//!     unreachable!("BF.ADD writes to Bloom filters")
//! };
//! let pipeline: [&[u8]; 6] = [b"BF.ADD", b"seen", b"a", b"BF.ADD", b"seen", b"a"];
//! let (mut run, mut replies) = (Run::of(&pipeline, 3), Replies::default());
//! add(&context, &mut run, &mut Slot::Vacant(&mut value), &mut replies, &mut ());
//! assert_eq!(replies.into_vec(), [Reply::Boolean(true), Reply::Boolean(false)]);
//! assert!(run.is_empty());
//! assert_eq!(value.map(|filter| filter.len()), Some(1));
//! ```

#![forbid(unsafe_code)]

pub mod args;
pub mod bf;
pub mod cf;
pub mod command;
pub mod context;
pub mod error;
pub mod figures;
pub mod filter;
pub mod flags;
pub mod format;
mod insertion;
pub mod key_use;
#[doc(hidden)]
pub mod limits;
pub mod metrics;
pub mod number;
pub mod piece;
pub mod replace;
pub mod run;
pub mod slot;
pub mod synopsis;
pub mod table;

pub use args::Args;
pub use command::Command;
pub use context::{Context, CuckooDefaults, Defaults, KeySource, LazyContext};
pub use error::CommandError;
pub use filter::{Family, Filter, FilterKind, Parts};
pub use run::{Answers, Changes, Run};
pub use slot::{ReadSlot, Slot};
pub use table::{Action, COMMANDS, Function, find};
