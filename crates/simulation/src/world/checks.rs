//! What must be true at any moment.

use std::collections::BTreeSet;

use everbloom_resp::Reply;

use super::{MAX_ITEMS, Verdict, World};
use crate::model::{Model, Value};
use crate::op::{Op, item};
use crate::server::Connection;

impl World {
    /// Checks everything.
    pub(super) fn check(&mut self) -> Verdict {
        for family in ["s", "b", "w", "c"] {
            for number in 0..4 {
                self.check_key(&format!("{family}{number}"))?;
            }
        }
        self.instance().check_totals()?;
        self.instance().check_log()?;
        let waiting = self.clients.iter().any(Connection::is_waiting);
        if self.machine.threads().is_empty() && !waiting {
            let mut read = None;
            self.instance().each(|key, _, value| {
                if value.capture().ids().next().is_some() {
                    read = Some(key.to_owned());
                }
            });
            if let Some(key) = read {
                return Err(format!("{key} has a reader, and nobody reads it"));
            }
        }
        Ok(())
    }

    /// The slow log has the commands of a transaction; every command is slow to it.
    pub(super) fn check_slowlog(&mut self, ops: &[Op]) -> Verdict {
        let Some(first) = ops.first() else {
            return Ok(());
        };
        let wanted: Vec<Reply> = first.words().into_iter().take(2).map(Reply::Bulk).collect();
        let Reply::Array(entries) = self.line("SLOWLOG GET 128") else {
            return Err("SLOWLOG GET answers with no array".into());
        };
        let shows = |entry: &Reply| match entry {
            Reply::Array(fields) => match fields.get(3) {
                Some(Reply::Array(args)) => args.starts_with(&wanted),
                _ => false,
            },
            _ => false,
        };
        match entries.iter().any(shows) {
            true => Ok(()),
            false => Err(format!(
                "the slow log does not show {first} of a transaction"
            )),
        }
    }

    /// A copy that was made just now is its original to the byte.
    pub(super) fn check_copy(&self, from: &str, to: &str) -> Verdict {
        let digests = self.instance().digests();
        let value = |key: &str| digests.get(key).map(|digest| digest.1);
        match (value(from), value(to)) {
            (Some(from), Some(to)) if from != to => Err("a copy has another digest".into()),
            _ => Ok(()),
        }
    }

    pub(super) fn check_key(&mut self, key: &str) -> Verdict {
        let now = self.now();
        let Some(known) = self.model.get(key, now).cloned() else {
            let reply = self.line(&format!("EXISTS {key}"));
            return match reply {
                Reply::Integer(0) => Ok(()),
                other => Err(format!("EXISTS {key}: {other:?}, and it must be gone")),
            };
        };
        match &known.value {
            Value::Text(text) => {
                let reply = self.line(&format!("GET {key}"));
                if reply != Reply::Bulk(text.clone()) {
                    return Err(format!("GET {key} is not what it must be"));
                }
                Ok(())
            }
            value => self.check_filter(key, value, now),
        }
    }

    fn check_filter(&mut self, key: &str, value: &Value, now: u64) -> Verdict {
        let there = self.items_of(key);
        let must = |number: &u32| Model::must_find(value, *number, now);
        if let Some(number) = (0..MAX_ITEMS).find(|number| must(number) && !there.contains(number))
        {
            return Err(format!(
                "item{number} of {key} is missing ({})",
                items_text(number)
            ));
        }
        let Value::Window(window) = value else {
            return Ok(());
        };
        let forgotten = window.items.iter();
        let forgotten: Vec<u32> = forgotten
            .filter(|(_, addition)| window.has_forgotten(addition, now))
            .map(|(number, _)| *number)
            .collect();
        let found = forgotten
            .iter()
            .filter(|number| there.contains(number))
            .count();
        if forgotten.len() >= 20 && found * 2 > forgotten.len() {
            let all = forgotten.len();
            return Err(format!(
                "{key} must have forgotten {all} items, and finds {found}"
            ));
        }
        Ok(())
    }

    pub(super) fn items_of(&mut self, key: &str) -> BTreeSet<u32> {
        let reply = self.ask(Op::Ask(key.into(), 0, MAX_ITEMS).words());
        let Reply::Array(answers) = reply else {
            return BTreeSet::new();
        };
        let there = answers.iter().map(|it| *it == Reply::Integer(1));
        (0..MAX_ITEMS)
            .zip(there)
            .filter(|it| it.1)
            .map(|it| it.0)
            .collect()
    }
}

fn items_text(number: u32) -> String {
    String::from_utf8_lossy(&item(number)).into_owned()
}
