//! Copies that take several requests: DUMP and RESTORE, SCANDUMP and LOADCHUNK.

use everbloom_resp::Reply;

use super::{Verdict, World, words_of};
use crate::model::is_refusal;
use crate::op::{Family, Op, Words, family};

impl World {
    /// Copies a value in several requests.
    pub(super) fn converse(&mut self, op: &Op) -> Verdict {
        let (Op::DumpRestore(from, to) | Op::ScanDump(from, to)) = op else {
            return Ok(());
        };
        if from == to {
            return Ok(());
        }
        let reply = match op {
            Op::DumpRestore(..) => self.dump_and_restore(from, to)?,
            _ => self.scan_and_load(from, to)?,
        };
        let copied = reply == Reply::OK;
        let now = self.now();
        self.note_change(op, &reply);
        self.model.apply(op, &reply, now)?;
        let end = self.instance().server.store.journal.end();
        self.remember(end);
        match copied {
            true => {
                self.check_copy(from, to)?;
                self.check_key(to)
            }
            false => Ok(()),
        }
    }

    fn dump_and_restore(&mut self, from: &str, to: &str) -> Result<Reply, String> {
        let dump = words_of(&format!("DUMP {from}"));
        let Reply::Bulk(payload) = self.ask_bounded(&dump)? else {
            return Ok(Reply::Null);
        };
        let mut words: Words = ["RESTORE", to, "0"].map(|it| it.as_bytes().to_vec()).into();
        words.extend([payload, b"REPLACE".to_vec()]);
        self.ask_bounded(&words)
    }

    fn scan_and_load(&mut self, from: &str, to: &str) -> Result<Reply, String> {
        let prefix = match family(from) {
            Family::Text => return Ok(Reply::Null),
            Family::Cuckoo => "CF",
            _ => "BF",
        };
        if is_refusal(&self.line(&format!("DEL {to}"))) {
            return Ok(Reply::Null);
        }
        self.model.keys.remove(to);
        let end = self.instance().server.store.journal.end();
        self.remember(end);
        let (mut iterator, mut loaded) = (0, Reply::Null);
        loop {
            let piece = words_of(&format!("{prefix}.SCANDUMP {from} {iterator}"));
            let piece = self.ask_bounded(&piece)?;
            let Reply::Array(piece) = piece else {
                return match self.model.get(from, self.now()) {
                    // A LOADCHUNK beyond `maxmemory` makes room, and may end a generation.
                    Some(_) if is_begun_again(&piece) => Ok(piece),
                    Some(_) => Err(format!("SCANDUMP {from} {iterator}: {piece:?}")),
                    None => Ok(Reply::Null),
                };
            };
            let [Reply::Integer(next), Reply::Bulk(bytes)] = piece.as_slice() else {
                // RedisBloom gives nothing of a cuckoo filter without items.
                return Ok(loaded);
            };
            if *next == 0 {
                return Ok(loaded);
            }
            let command = format!("{prefix}.LOADCHUNK {to} {next}");
            let mut words: Words = command
                .split(' ')
                .map(|it| it.as_bytes().to_vec())
                .collect();
            words.push(bytes.clone());
            loaded = self.ask(words);
            let end = self.instance().server.store.journal.end();
            if loaded != Reply::OK {
                // A filter that does not fit is refused as RedisBloom refuses wrong bytes.
                let limited = self.instance().server.config.snapshot().maxmemory > 0;
                return match is_refusal(&loaded) || limited {
                    true => Ok(loaded),
                    false => Err(format!("LOADCHUNK {to} {next}: {loaded:?}")),
                };
            }
            let now = self.now();
            self.model.begin_copy(from, to, now);
            self.remember(end);
            iterator = *next;
        }
    }
}

/// Whether a dump must begin again, because the window has changed.
fn is_begun_again(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.ends_with("begin again with iterator 0"))
}
