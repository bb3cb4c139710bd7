//! The `BF.*` and `CF.*` commands as RedisBloom answers them, without a host around them.
//!
//! A command is a function of its arguments and of the one key it works on. It does no I/O, reads
//! no clock and uses no globals. The host (a server, a module) finds the key and lends it as a
//! [`Slot`] or a [`ReadSlot`]. It runs the command, logs the [`Effect`] and sends the reply.
//!
//! | module | what it holds |
//! |---|---|
//! | [`command`], [`flags`] | any command as data: name, arity, flags, documentation |
//! | [`table`] | the commands on filters, as such data, with their functions |
//! | [`args`], [`number`] | reading arguments: a cursor, and what counts as a number |
//! | [`filter`] | a filter of either kind |
//! | [`slot`], [`context`], [`outcome`] | what a host lends a command, and what it gets back |
//! | [`error`] | every error text, once |
//! | [`bf`], [`cf`] | the commands, one family a file; batches of pipelined commands |
//! | [`metrics`] | what INFO says of all filters |
//! | [`mod@format`] | SCANDUMP headers, values as typed fields, and the number format of BF.DEBUG |
//!
//! ```
//! use everbloom_commands::{Action, Context, Function, Slot, find};
//!
//! let context = Context::default();
//! let add = find(b"bf.add").expect("BF.ADD is in the table");
//! let mut value = None;
//! let Function::Bloom(Action::Write(add)) = add.handler else {
//!     unreachable!("BF.ADD writes to Bloom filters")
//! };
//! let outcome = add(&context, &[b"BF.ADD", b"seen", b"a"], &mut Slot::Vacant(&mut value));
//! assert_eq!(outcome.reply, everbloom_resp::Reply::Boolean(true));
//! assert_eq!(value.map(|filter| filter.len()), Some(1));
//! ```

#![forbid(unsafe_code)]

mod answer;
pub mod args;
pub mod bf;
pub mod cf;
pub mod command;
pub mod context;
pub mod error;
pub mod filter;
pub mod flags;
pub mod format;
pub mod metrics;
pub mod number;
pub mod outcome;
pub mod slot;
pub mod table;

pub use args::Args;
pub use command::Command;
pub use context::{Context, CuckooDefaults, Defaults, KeySource};
pub use error::CommandError;
pub use filter::{Family, Filter, Kind, Parts};
pub use outcome::{Effect, Outcome};
pub use slot::{ReadSlot, Slot};
pub use table::{Action, COMMANDS, Function, find};
