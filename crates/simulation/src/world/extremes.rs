//! Commands with numbers at the ends of a type's range. The server may take or refuse them; what it then has is
//! taken into the model, and must be written and read again like everything else.

use everbloom_resp::Reply;

use super::{Verdict, World};
use crate::model::Value;
use crate::op::{Family, family};

impl World {
    /// Runs a command on a key, and asks what is left of the key.
    pub(super) fn run_extreme(&mut self, key: &str, line: &str) -> Verdict {
        self.line(line);
        let expires_at = match self.line(&format!("PEXPIRETIME {key}")) {
            Reply::Integer(-2) => {
                self.model.keys.remove(key);
                self.note_extreme(key);
                return Ok(());
            }
            Reply::Integer(-1) => None,
            Reply::Integer(at) => Some(u64::try_from(at).map_err(|_| {
                format!("{key} expires at {at}, which is before 1970, and is there after {line}")
            })?),
            other => return Err(format!("PEXPIRETIME {key} after {line}: {other:?}")),
        };
        let value = match family(key) {
            Family::Text => match self.line(&format!("GET {key}")) {
                Reply::Bulk(text) => Value::Text(text),
                other => return Err(format!("GET {key} after {line}: {other:?}")),
            },
            _ => Value::Forged,
        };
        self.model.put_as_said(key, value, expires_at);
        self.note_extreme(key);
        self.check_round_trip(key)
            .map_err(|what| format!("after {line}: {what}"))
    }

    fn note_extreme(&mut self, key: &str) {
        let end = self.instance().server.store.journal.end();
        self.remember(end);
        for watched in self.watched.iter_mut().flatten() {
            if watched.key == key {
                watched.changed = None;
            }
        }
    }
}
