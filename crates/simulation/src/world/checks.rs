//! What must be true at any moment.

use std::sync::LazyLock;

use everbloom_resp::{Reply, encode_request};

use super::{MAX_ITEMS, Verdict, World};
use crate::model::{Model, Value};
use crate::op::{Op, Words, all_keys, item};

impl World {
    /// Checks everything.
    pub(super) fn check(&mut self) -> Verdict {
        for key in all_keys() {
            self.check_key(&key)?;
        }
        self.check_server()
    }

    /// Checks what is true of the server as a whole.
    pub(super) fn check_server(&mut self) -> Verdict {
        self.instance().check_totals()?;
        self.instance().check_log()?;
        self.check_settings()?;
        self.check_no_reader()
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
        let digest = |key| self.instance().digest_of(key);
        match (digest(from), digest(to)) {
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
            value => {
                check_items(key, value, &self.items_of(key), now)?;
                self.check_rate(key, value)
            }
        }
    }

    /// A filter finds no more of what was never added than its rate allows, and four standard deviations.
    fn check_rate(&mut self, key: &str, value: &Value) -> Verdict {
        let Some(rate) = Model::rate(value) else {
            return Ok(());
        };
        // After a merge, too many layers can be a third above the rate, which few answers do not show.
        let asked = match value {
            Value::Window(window) if window.merged > 0 => 8 * STRANGERS,
            _ => STRANGERS,
        };
        let Reply::Array(answers) = self.ask(Op::Ask(key.into(), MAX_ITEMS, asked).words()) else {
            return Err(format!("{key} does not answer"));
        };
        let is_found = |answer: &&Reply| **answer == Reply::Integer(1);
        let found = answers.iter().filter(is_found).count() as f64;
        let expected = rate * f64::from(asked);
        if found <= expected + 4.0 * expected.sqrt() {
            return Ok(());
        }
        Err(format!(
            "{key} finds {found} of {asked} that were never added, and {expected} are promised"
        ))
    }

    /// Asks a filter for all items.
    pub(super) fn items_of(&mut self, key: &str) -> Items {
        let mut request = format!("*{}\r\n", 2 + MAX_ITEMS).into_bytes();
        request.extend(encoded(&Op::Ask(key.into(), 0, 0).words()));
        request.extend_from_slice(&ALL_ITEMS);
        match self.ask_encoded(request) {
            Reply::Array(answers) => {
                Items(answers.iter().map(|it| *it == Reply::Integer(1)).collect())
            }
            _ => Items(Vec::new()),
        }
    }
}

/// What a filter must find, and what it must not.
pub(super) fn check_items(key: &str, value: &Value, there: &Items, now: u64) -> Verdict {
    let mut wanted = Model::wanted(value, now);
    if let Some(number) = wanted.find(|number| !there.has(*number)) {
        return Err(format!("item{number} of {key} is missing"));
    }
    drop(wanted);
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
        .filter(|number| there.has(**number))
        .count();
    if forgotten.len() >= 20 && found * 2 > forgotten.len() {
        let all = forgotten.len();
        return Err(format!(
            "{key} must have forgotten {all} items, and finds {found}"
        ));
    }
    Ok(())
}

/// How many items that nobody adds a filter is asked for.
const STRANGERS: u32 = 2000;

/// All items as words of a request.
static ALL_ITEMS: LazyLock<Vec<u8>> =
    LazyLock::new(|| encoded(&(0..MAX_ITEMS).map(item).collect()));

/// Words as a request has them, without their number before them.
fn encoded(words: &Words) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_request(words, &mut bytes);
    let number = bytes.iter().position(|byte| *byte == b'\n');
    bytes.split_off(number.map_or(0, |at| at + 1))
}

/// Which items a filter has, by their numbers.
pub(super) struct Items(Vec<bool>);

impl Items {
    pub(super) fn has(&self, number: u32) -> bool {
        self.0.get(number as usize) == Some(&true)
    }
}
