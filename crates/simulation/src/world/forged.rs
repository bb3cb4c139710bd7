//! Filters whose header a client has forged. The model knows nothing of their items; what was taken must be
//! written and read again as it is, and find what is added to it.

use everbloom_files::rdb::payload;
use everbloom_resp::Reply;

use super::{Verdict, World, words_of};
use crate::forgery::{Change, forge};
use crate::model::{Key, Value, is_refusal};
use crate::op::{Family, Op, family};

/// A dump in more pieces is not forged.
const MAX_PIECES: usize = 20;

impl World {
    /// Loads a dump of `from` with another header as `to`.
    pub(super) fn load_forged(&mut self, from: &str, to: &str, changes: &[Change]) -> Verdict {
        let prefix = match family(from) {
            Family::Cuckoo => "CF",
            _ => "BF",
        };
        let Some(mut pieces) = self.dump_pieces(prefix, from) else {
            return Ok(());
        };
        let moved = forge(&mut pieces[0].1, prefix == "CF", changes);
        let gone = self.line(&format!("DEL {to}"));
        if is_refusal(&gone) {
            return Ok(());
        }
        self.model.keys.remove(to);
        self.remember_all();
        for (iterator, bytes) in pieces {
            let iterator = iterator.wrapping_add(moved);
            let mut words = words_of(&format!("{prefix}.LOADCHUNK {to} {iterator}"));
            words.push(bytes);
            if self.ask(words) != Reply::OK {
                break;
            }
            self.model.put_forged(to);
            self.remember_all();
            self.check_round_trip(to)?;
        }
        for watched in self.watched.iter_mut().flatten() {
            if watched.key == to {
                watched.changed = None;
            }
        }
        Ok(())
    }

    fn remember_all(&mut self) {
        let end = self.instance().server.store.journal.end();
        self.remember(end);
    }

    /// The pieces that SCANDUMP gives, with their iterators.
    fn dump_pieces(&mut self, prefix: &str, key: &str) -> Option<Vec<(i64, Vec<u8>)>> {
        let mut pieces: Vec<(i64, Vec<u8>)> = Vec::new();
        while pieces.len() <= MAX_PIECES {
            let iterator = pieces.last().map_or(0, |piece| piece.0);
            let reply = self.line(&format!("{prefix}.SCANDUMP {key} {iterator}"));
            let Reply::Array(reply) = reply else {
                return None;
            };
            match reply.as_slice() {
                [Reply::Integer(0), _] => return (!pieces.is_empty()).then_some(pieces),
                [Reply::Integer(next), Reply::Bulk(bytes)] => pieces.push((*next, bytes.clone())),
                _ => return None,
            }
        }
        None
    }

    /// Checks the forged filters that a command has changed.
    pub(super) fn check_forged(&mut self, op: &Op, reply: &Reply) -> Verdict {
        let now = self.now();
        for key in op.changes() {
            let is_forged = |key: &std::rc::Rc<Key>| matches!(key.value, Value::Forged);
            if !self.model.get(key, now).is_some_and(is_forged) {
                continue;
            }
            self.check_round_trip(key)?;
            if let (Op::Add(_, number, 1), Reply::Integer(_)) = (op, reply) {
                let asked = self.ask(Op::Ask(key.into(), *number, 1).words());
                if asked != Reply::Array(vec![Reply::Integer(1)]) {
                    return Err(format!("item{number} was added to {key}: {asked:?}"));
                }
            }
        }
        Ok(())
    }

    /// The payload of a value can be read, and what is read has the same payload.
    pub(super) fn check_round_trip(&self, key: &str) -> Verdict {
        let outcome = self.instance().look(key.as_bytes(), |value| {
            let dumped = payload::dump(value, false, usize::MAX).map_err(|why| why.to_string())?;
            let read = payload::restore(&dumped, u64::MAX).map_err(|why| why.to_string())?;
            let again = payload::dump(&read, false, usize::MAX).map_err(|why| why.to_string())?;
            match dumped == again {
                true => Ok(()),
                false => Err("another value is read than was written".to_owned()),
            }
        });
        let outcome = outcome.unwrap_or(Ok(()));
        outcome.map_err(|why| format!("{key} cannot be saved and loaded: {why}"))
    }
}
