//! What remembers the keys: a filter in this process or a server's.

use everbloom::host::LayeredFilter;

use crate::failure::Failure;
use crate::filter::{insert_growing, now_ms};

use super::loss::Loss;
use super::server::ServerFilter;
use crate::records::chunk::{Chunk, Hashed};

/// What remembers the keys.
pub(super) enum Memory {
    Local(Box<Local>),
    Server(Box<ServerFilter>),
}

/// A filter, and what its errors have cost so far.
pub(super) struct Local {
    /// Whether it outlives the run. If not, keys are inserted when they are asked for, in one pass.
    pub(super) lasts: bool,
    pub(super) filter: LayeredFilter,
    pub(super) loss: Loss,
}

impl Memory {
    /// Answers for each key of the chunk whether it is new. When there are fewer answers, the error
    /// says why; the keys without one are neither new nor known.
    pub(super) fn ask(&mut self, chunk: &Chunk, new: &mut Vec<bool>) -> Result<(), Failure> {
        new.clear();
        match self {
            Memory::Local(local) => local.ask(chunk, new),
            Memory::Server(server) => server.ask(chunk, new),
        }
    }

    /// Whether a filter on a server was found to be gone, with all that it remembered.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Memory::Local(_) => false,
            Memory::Server(server) => server.is_gone,
        }
    }

    /// Remembers those of the first `count` keys that are new. Until then a filter that outlives
    /// the run does not know them: what was not printed must not be remembered. A server knows them
    /// already.
    ///
    /// Without room for all of them the filter holds more than it is made for: the records were
    /// printed, so they are remembered. The error says that it cannot go on.
    pub(super) fn remember(
        &mut self,
        chunk: &Chunk,
        new: &[bool],
        count: usize,
    ) -> Result<(), Failure> {
        match self {
            Memory::Local(local) => local.remember(chunk, new.get(..count).unwrap_or(new)),
            Memory::Server(_) => Ok(()),
        }
    }
}

impl Local {
    fn ask(&mut self, chunk: &Chunk, new: &mut Vec<bool>) -> Result<(), Failure> {
        let hashes = chunk.hashes.iter().map(|hash| Hashed(*hash));
        if !self.lasts {
            let inserted = insert_growing(&mut self.filter, hashes, |is_new| new.push(is_new));
            return inserted.map_err(Failure::ungrown);
        }
        let forgotten = self.filter.advance_to(now_ms());
        forgotten.map_err(Failure::ungrown)?;
        let mut again = chunk.again.iter();
        self.filter.contains_each(hashes, |found| {
            let again = again.next().copied().unwrap_or(false);
            new.push(!found && !again);
        });
        Ok(())
    }

    fn remember(&mut self, chunk: &Chunk, new: &[bool]) -> Result<(), Failure> {
        // The rate with which they were asked for, or nearly.
        let count = new.iter().filter(|new| **new).count();
        self.loss.add(count, &self.filter);
        if !self.lasts {
            return Ok(());
        }
        let hashes = chunk.hashes.iter().zip(new);
        let hashes = hashes.filter_map(|(hash, new)| new.then_some(Hashed(*hash)));
        let mut done = 0;
        let inserted = insert_growing(&mut self.filter, hashes.clone(), |_| done += 1);
        inserted.map_err(|error| {
            self.filter.insert_each_into_newest(hashes.skip(done));
            Failure::ungrown(error)
        })
    }
}
