//! How the keys of a command are locked.

use everbloom_commands::flags::WRITE;
use everbloom_resp::Reply;
use everbloom_store::keyspace::{Footprint, View};

use crate::call::{Call, Handler};
use crate::locked::Locked;

/// How the keys of a command come to be locked.
pub trait Keys {
    /// Runs work that reads the keys of a command.
    fn read<R>(self, call: &Call<'_>, work: impl FnOnce(View<'_>) -> R) -> R;

    /// Runs work that changes the keys of a command, and records its changes.
    fn change<R>(
        self,
        call: &mut Call<'_>,
        work: impl FnOnce(&Call<'_>, &mut Locked<'_>) -> Result<R, Reply>,
    ) -> Result<R, Reply>;
}

/// The keys of one command, which are locked for it.
pub struct OwnKeys;

impl Keys for OwnKeys {
    fn read<R>(self, call: &Call<'_>, work: impl FnOnce(View<'_>) -> R) -> R {
        let keyspace = &call.server.store.keyspace;
        match call.command.handler {
            Handler::ReadEach(_) => work(View::of_each(keyspace, call.now)),
            _ => work(Footprint::of(call.keys()).read(keyspace, call.now).view()),
        }
    }

    /// Refuses a command for whose record there is no memory.
    fn change<R>(
        self,
        call: &mut Call<'_>,
        work: impl FnOnce(&Call<'_>, &mut Locked<'_>) -> Result<R, Reply>,
    ) -> Result<R, Reply> {
        let footprint = match call.command.handler {
            Handler::WriteAll(_) => Footprint::Whole,
            _ => Footprint::of(call.keys()),
        };
        // DEBUG does not count as a command that writes. It locks all keys to see one moment.
        let writes = call.command.flags.has(WRITE);
        let mut locked = Locked::lock(call.server, footprint, call.now);
        if writes {
            locked.reserve(call.args)?;
        }
        let result = (&mut locked).change(call, work);
        locked.commit(call.session, writes);
        result
    }
}

/// The keys of a transaction, which are locked for all of its commands.
impl Keys for &mut Locked<'_> {
    fn read<R>(self, _: &Call<'_>, work: impl FnOnce(View<'_>) -> R) -> R {
        work(self.view.read())
    }

    fn change<R>(
        self,
        call: &mut Call<'_>,
        work: impl FnOnce(&Call<'_>, &mut Locked<'_>) -> Result<R, Reply>,
    ) -> Result<R, Reply> {
        let result = work(call, self);
        self.log_expired();
        result
    }
}
