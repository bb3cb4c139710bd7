//! A reply on the standard output.

use std::io::{self, Write};

use everbloom_resp::Reply;

use crate::display::{write_raw, write_reply};

/// Prints the reply to a request as redis-cli does.
pub(super) fn print(request: &[&[u8]], reply: &Reply) -> io::Result<()> {
    let mut out = Vec::new();
    if answers_with_text(request) {
        write_raw(reply, &mut out);
    } else {
        write_reply(reply, &mut out);
    }
    io::stdout().write_all(&out)
}

/// Whether the bulk reply of a command is a text of several lines. redis-cli does not quote these
/// either. (In RESP3 the server itself says so, with a verbatim string.)
fn answers_with_text(request: &[&[u8]]) -> bool {
    let word = |index: usize| request.get(index).copied().unwrap_or_default();
    let is = |index: usize, names: &[&str]| {
        names
            .iter()
            .any(|name| word(index).eq_ignore_ascii_case(name.as_bytes()))
    };
    is(0, &["info"])
        || is(0, &["client"]) && is(1, &["list", "info"])
        || is(0, &["memory"]) && is(1, &["doctor", "malloc-stats"])
        || is(0, &["latency"]) && is(1, &["doctor", "graph"])
        || is(0, &["cluster"]) && is(1, &["info", "nodes"])
        || is(0, &["lolwut"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_known_by_their_command() {
        assert!(answers_with_text(&[b"INFO", b"server"]));
        assert!(answers_with_text(&[b"client", b"LIST"]));
        assert!(answers_with_text(&[b"LATENCY", b"Doctor"]));
        assert!(!answers_with_text(&[b"client", b"id"]));
        assert!(!answers_with_text(&[b"GET", b"info"]));
        assert!(!answers_with_text(&[]));
    }
}
