//! Whether an output is what a page shows.

/// Whether the lines are those that are shown. A line `...` stands for any lines. `varies`: any
/// figures will do.
pub(super) fn is_shown(shown: &str, output: &str, varies: bool) -> bool {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.trim_end().lines().map(|line| match varies {
            true => without_figures(line),
            false => line.trim_end().to_owned(),
        });
        lines.collect()
    };
    fits(&lines(shown), &lines(output))
}

fn fits(shown: &[String], lines: &[String]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first.trim() == "..." => {
            (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..]))
        }
        Some((first, rest)) => match lines.split_first() {
            Some((line, more)) => first == line && fits(rest, more),
            None => false,
        },
    }
}

/// The line with `#` for each number, and one space for several.
fn without_figures(line: &str) -> String {
    let mut text = String::new();
    for word in line.split_whitespace() {
        let is_figure = word.starts_with(|c: char| c.is_ascii_digit());
        let rest = word.trim_start_matches(|c: char| c.is_ascii_digit() || ".,e-".contains(c));
        let shown = if is_figure {
            format!("#{rest}")
        } else {
            word.to_owned()
        };
        // The groups of a number are separated by spaces.
        if !(is_figure && rest.is_empty() && text.ends_with('#')) {
            text += " ";
            text += &shown;
        }
    }
    text
}

/// The reply that a comment behind a command shows: `1: it is new`; `None` for other comments.
pub(super) fn reply_of(comment: &str) -> Option<&str> {
    if comment.starts_with("ERR ") || comment.starts_with("MOVED ") {
        return Some(comment);
    }
    let reply = comment.split([':', '：', ';']).next()?.trim();
    let is_reply = |word: &str| word == "OK" || word.parse::<f64>().is_ok();
    (!reply.is_empty() && reply.split(' ').all(is_reply)).then_some(reply)
}

#[test]
fn outputs_and_comments() {
    assert!(is_shown("a\n...\nd", "a\nb\nc\nd\n", false));
    assert!(!is_shown("a\n...\nd", "a\nb\nc\n", false));
    assert!(is_shown("took 1 234.5 s", "took 17 s", true));
    assert!(!is_shown("took 1 234.5 s", "took 17 ms", true));
    assert!(is_shown("12 of 13, 3.1e-4 %", "1 of 2, 5 %", true));
    assert_eq!(reply_of("1 1: many"), Some("1 1"));
    assert_eq!(reply_of("1：新"), Some("1"));
    assert_eq!(reply_of("OK: empty, now"), Some("OK"));
    assert_eq!(reply_of("at the replica"), None);
    assert_eq!(reply_of("0.00125"), Some("0.00125"));
}
