//! A file's code without its comments, the contents of its literals, and its tests.

/// What is left of a text, and the modules in files of their own that were left out as tests.
pub(super) struct Source {
    /// As many lines as the file; comments and tests are blank.
    pub(super) code: String,
    pub(super) test_modules: Vec<String>,
}

impl Source {
    pub(super) fn new(text: &str) -> Source {
        let mut code = bare(text);
        let mut test_modules = Vec::new();
        for attribute in [
            "#[cfg(test)]",
            "#[cfg(all(test",
            "#[cfg(any(test, fuzzing))]",
        ] {
            while let Some(start) = code.find(attribute) {
                let end = start + item_len(&code[start..]);
                let item = &code[start..end];
                if let Some((_, name)) = item.rsplit_once("mod ").filter(|_| item.ends_with(';')) {
                    test_modules.push(name.trim_end_matches(';').to_owned());
                }
                let blank = blanked(item, ' ');
                code.replace_range(start..end, &blank);
            }
        }
        Source { code, test_modules }
    }
}

/// Blanks comments, and puts `"` in the place of every character of a literal.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (len, fill) = token(rest, first);
        let (token, after) = rest.split_at(len);
        match fill {
            Some(fill) => out.push_str(&blanked(token, fill)),
            None => out.push_str(token),
        }
        rest = after;
    }
    out
}

fn blanked(text: &str, fill: char) -> String {
    let fill_in = |c: char| if c.is_whitespace() { c } else { fill };
    text.chars().map(fill_in).collect()
}

/// The length of the token that a text begins with, and what takes the place of its characters.
fn token(text: &str, first: char) -> (usize, Option<char>) {
    let word = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    let (prefix, rest) = text.split_at(word);
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    if text.starts_with("//") {
        (text.find('\n').unwrap_or(text.len()), Some(' '))
    } else if text.starts_with("/*") {
        (block_comment_len(text), Some(' '))
    } else if prefix.ends_with('r') && prefix.len() < 3 && rest[hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let start = word + hashes + 1;
        let len = text[start..].find(&end).map(|at| start + at + end.len());
        (len.unwrap_or(text.len()), Some('"'))
    } else if word > 0 {
        (word, None)
    } else if first == '"' {
        (quoted_len(text, '"'), Some('"'))
    } else if first == '\'' && is_char_literal(text) {
        (quoted_len(text, '\''), Some('"'))
    } else {
        (first.len_utf8(), None)
    }
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether it is no lifetime.
fn is_char_literal(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    chars.next() == Some('\\') || chars.next() == Some('\'')
}

fn quoted_len(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

fn block_comment_len(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of the item that a text begins with, its attributes included.
fn item_len(code: &str) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' => depth -= 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            ';' | ',' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::Source;

    /// The words that are left.
    fn words(text: &str) -> String {
        let code = Source::new(text).code;
        assert_eq!(code.lines().count(), text.lines().count());
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(words("a // crate::b\nc /* d /* e */ f */ g"), "a c g");
        assert_eq!(words(r#"a("b \" // c") d"#), r#"a("" "" "" "") d"#);
        assert_eq!(words(r##"a(r#"b " c"#) d"##), r#"a("""" " """) d"#);
        let literals = words(r"fn a<'a>(b: &'a str) { '\'' '/' '{' }");
        assert_eq!(literals, r#"fn a<'a>(b: &'a str) { """" """ """ }"#);
    }

    #[test]
    fn tests_are_left_out() {
        let text = "#[cfg(test)]\nmod tests {\n    fn a() { b }\n}\nc";
        assert_eq!(words(text), "c");
        assert_eq!(
            words("a\n#[cfg(test)]\n#[allow(b)]\nuse c::{d, e};\nf"),
            "a ; f"
        );
        assert_eq!(
            words("struct A {\n#[cfg(test)]\nb: u8,\nc: u8 }"),
            "struct A { c: u8 }"
        );
        let files = Source::new("#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub(crate) mod more;\n");
        assert_eq!(files.test_modules, ["tests", "more"]);
    }
}
