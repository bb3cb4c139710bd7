//! Slow commands: SLOWLOG.

use std::collections::VecDeque;
use std::time::Duration;

use everbloom_commands::flags::{Flags, SKIP_SLOWLOG};
use everbloom_store::clock::Now;
use parking_lot::Mutex;

use crate::clients::Client;
use crate::config::Settings;

/// One slow command.
#[derive(Debug, Clone)]
pub struct SlowEntry {
    /// Its number, counted from the server's start.
    pub id: u64,
    /// Unix time in seconds.
    pub time: u64,
    /// How long it took, in microseconds.
    pub micros: i64,
    /// Its arguments, shortened as Redis shortens them.
    pub args: Vec<Vec<u8>>,
    /// The client's address.
    pub client: String,
    /// The start of the client's name.
    pub name: Vec<u8>,
}

/// The slow log.
#[derive(Debug, Default)]
pub struct SlowLog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Newest first.
    entries: VecDeque<SlowEntry>,
    /// The number of the next entry.
    next_id: u64,
}

/// Redis keeps this many arguments of a command.
const MAX_ARGS: usize = 32;
/// Redis keeps this many bytes of an argument.
const MAX_ARG_BYTES: usize = 128;
/// The maximum bytes of a client's name in an entry. Redis keeps all of it, but a name can take
/// megabytes.
const MAX_CLIENT_NAME_BYTES: usize = 128;

impl SlowLog {
    /// Adds a command that took this long, if that counts as slow.
    #[inline]
    pub fn note(
        &self,
        settings: &Settings,
        client: &Client,
        now: Now,
        took: Duration,
        (flags, args): (Flags, &[&[u8]]),
    ) {
        let threshold = settings.slowlog_log_slower_than;
        let micros = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
        if threshold >= 0 && micros >= threshold && !flags.has(SKIP_SLOWLOG) {
            self.add(settings, client, now, micros, args);
        }
    }

    #[cold]
    fn add(&self, settings: &Settings, client: &Client, now: Now, micros: i64, args: &[&[u8]]) {
        let mut state = self.0.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.entries.push_front(SlowEntry {
            id,
            time: now.ms / 1000,
            micros,
            args: shorten(args),
            client: client.addr.to_string(),
            name: start_of_name(&client.state.lock().name),
        });
        state.entries.truncate(settings.slowlog_max_len);
    }

    /// The newest `count` entries.
    pub fn newest(&self, count: usize) -> Vec<SlowEntry> {
        self.0.lock().entries.iter().take(count).cloned().collect()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.lock().entries.len()
    }

    /// Removes all entries.
    pub fn reset(&self) {
        self.0.lock().entries.clear();
    }
}

/// Whether an argument is a password or the name of its user, which Redis does not show.
fn is_secret(args: &[&[u8]], at: usize) -> bool {
    let is = |at: Option<usize>, word: &str| {
        let arg = at.and_then(|at| args.get(at));
        arg.is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    };
    let before = |words| at.checked_sub(words);
    match () {
        () if is(Some(0), "AUTH") => at > 0,
        () if is(Some(0), "HELLO") => is(before(1), "AUTH") || is(before(2), "AUTH"),
        () if is(Some(0), "CONFIG") => is(Some(1), "SET") && is(before(1), "requirepass"),
        () => false,
    }
}

fn start_of_name(name: &[u8]) -> Vec<u8> {
    name.get(..MAX_CLIENT_NAME_BYTES).unwrap_or(name).to_vec()
}

fn shorten(args: &[&[u8]]) -> Vec<Vec<u8>> {
    let kept = if args.len() > MAX_ARGS {
        MAX_ARGS - 1
    } else {
        args.len()
    };
    let mut shown: Vec<Vec<u8>> = args
        .iter()
        .take(kept)
        .enumerate()
        .map(|(at, arg)| match arg.get(..MAX_ARG_BYTES) {
            _ if is_secret(args, at) => b"(redacted)".to_vec(),
            Some(head) if arg.len() > MAX_ARG_BYTES => {
                let more = format!("... ({} more bytes)", arg.len() - MAX_ARG_BYTES);
                [head, more.as_bytes()].concat()
            }
            _ => arg.to_vec(),
        })
        .collect();
    if kept < args.len() {
        shown.push(format!("... ({} more arguments)", args.len() - kept).into_bytes());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_kept() {
        for (line, shown) in [
            ("AUTH secret", "AUTH *"),
            ("auth default secret", "auth * *"),
            (
                "HELLO 3 auth me secret SETNAME x",
                "HELLO 3 auth * * SETNAME x",
            ),
            (
                "CONFIG SET port 1 RequirePass secret",
                "CONFIG SET port 1 RequirePass *",
            ),
            ("CONFIG GET requirepass", "CONFIG GET requirepass"),
            ("SET requirepass x", "SET requirepass x"),
        ] {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let shown = shown.replace('*', "(redacted)");
            assert_eq!(shorten(&args).join(&b' '), shown.as_bytes(), "{line}");
        }
    }

    #[test]
    fn long_names_of_clients_are_shortened() {
        let (log, client) = (SlowLog::default(), Client::unlisted());
        let settings = Settings {
            slowlog_log_slower_than: 0,
            ..Settings::default()
        };
        let args: &[&[u8]] = &[b"PING"];
        for len in [0, 127, 128, 129, 100_000] {
            client.state.lock().name = vec![b'x'; len];
            let what = (Flags::NONE, args);
            log.note(&settings, &client, Now::default(), Duration::ZERO, what);
            assert_eq!(log.newest(1)[0].name, vec![b'x'; len.min(128)]);
        }
    }

    #[test]
    fn long_commands_are_shortened() {
        let long = [b'x'; 200];
        let args: Vec<&[u8]> = vec![&long; 40];
        let shown = shorten(&args);
        assert_eq!(shown.len(), 32);
        assert!(shown[0].ends_with(b"... (72 more bytes)"));
        assert_eq!(shown[31], b"... (9 more arguments)");
    }
}
