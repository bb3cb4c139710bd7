//! The blocks of a page, and the marks in its source.

/// A page.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) blocks: Vec<Block>,
    /// What stands for what: `<!-- 10.0.0.1 is 127.0.0.1 -->`.
    pub(super) stands_for: Vec<(String, String)>,
    /// Marks that say nothing.
    pub(super) wrong: Vec<String>,
}

/// A block of code.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The number of its first line.
    pub(super) line: usize,
    pub(super) language: String,
    pub(super) text: String,
    pub(super) marks: Marks,
}

/// What comments right before a block say about it.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Why it is not typed.
    pub(super) not_typed: Option<String>,
    /// It is the output of the commands of the last block.
    pub(super) output: bool,
    /// It is a file of settings, with which a server starts.
    pub(super) settings: bool,
    /// Its figures vary.
    pub(super) varies: bool,
    /// Its last command ends with this code.
    pub(super) ends_with: i32,
    /// Commands that are typed before it, which nobody sees.
    pub(super) before: Vec<String>,
}

impl Page {
    pub(super) fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut lines = text.lines().zip(1..);
        let mut marks = Marks::default();
        while let Some((line, number)) = lines.next() {
            if let Some(language) = line.strip_prefix("```") {
                let code = lines.by_ref().map(|(line, _)| line);
                let code: Vec<_> = code.take_while(|line| !line.starts_with("```")).collect();
                page.blocks.push(Block {
                    line: number,
                    language: language.to_owned(),
                    text: code.join("\n"),
                    marks: std::mem::take(&mut marks),
                });
            } else if let Some(comment) = line.strip_prefix("<!-- ") {
                let mut comment = comment.to_owned();
                while !comment.ends_with("-->") {
                    let Some((more, _)) = lines.next() else { break };
                    comment = format!("{comment}\n{more}");
                }
                let comment = comment.trim_end_matches("-->").trim();
                if !page.take(comment, &mut marks) {
                    page.wrong
                        .push(format!("line {number}: no mark: {comment}"));
                }
            } else if !line.is_empty() {
                marks = Marks::default();
            }
        }
        page
    }

    /// Takes a mark; whether it is one.
    fn take(&mut self, comment: &str, marks: &mut Marks) -> bool {
        let (word, rest) = comment.split_once(": ").unwrap_or((comment, ""));
        match (word, rest) {
            ("output", "") => marks.output = true,
            ("settings", "") => marks.settings = true,
            ("varies", _) => marks.varies = true,
            ("not typed", "") => return false,
            ("not typed", why) => marks.not_typed = Some(why.to_owned()),
            ("before", commands) => marks.before.push(commands.to_owned()),
            ("ends with", code) => match code.parse() {
                Ok(code) => marks.ends_with = code,
                Err(_) => return false,
            },
            _ => match comment.split_once(" is ") {
                Some((shown, typed)) => {
                    self.stands_for.push((shown.to_owned(), typed.to_owned()));
                }
                None => return false,
            },
        }
        true
    }
}
