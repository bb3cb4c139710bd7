//! The names that a file's code mentions: what it imports, its children, its paths.

use super::source::is_word;

/// A path of names, such as `crate::a::b`.
pub(super) type Path = Vec<String>;

/// A leaf of a `use` tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Use {
    pub(super) line: usize,
    pub(super) path: Path,
    /// What it is called here: its last name, the one after `as`, or `*`.
    pub(super) alias: String,
}

/// Everything that a file's code names.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) uses: Vec<Use>,
    /// Paths of two names or more outside `use`, each with its line.
    pub(super) paths: Vec<(usize, Path)>,
    /// Modules that are declared here and are in files of their own.
    pub(super) children: Vec<String>,
}

struct Tokens<'a> {
    /// Words, `::`, `..`, and single characters, each with its line.
    tokens: Vec<(usize, &'a str)>,
    at: usize,
}

impl Names {
    /// Reads code without comments.
    pub(super) fn new(code: &str) -> Names {
        let mut names = Names::default();
        let mut tokens = Tokens::new(code);
        let mut inline = Vec::new();
        let mut depth = 0;
        while let Some((line, token)) = tokens.next() {
            match token {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inline.pop_if(|outer| *outer == depth);
                }
                "use" if tokens.peek() != "<" => {
                    let mut uses = Vec::new();
                    tokens.use_tree(&mut Vec::new(), &mut uses);
                    for leaf in &mut uses {
                        leave_inline(&mut leaf.path, inline.len());
                    }
                    names.uses.append(&mut uses);
                }
                "mod" if tokens.peek_after() == "{" => inline.push(depth),
                "mod" if tokens.peek_after() == ";" => {
                    let name = tokens.next().map(|(_, name)| name.to_owned());
                    names.children.extend(name);
                }
                // The rest of a path whose beginning is no name, such as `<T as Trait>::name`.
                "::" | "." => drop(tokens.next_if(starts_word)),
                word if starts_word(word) => {
                    let mut path = vec![word.to_owned()];
                    while tokens.peek() == "::" && starts_word(tokens.peek_after()) {
                        tokens.next();
                        path.extend(tokens.next().map(|(_, name)| name.to_owned()));
                    }
                    if path.len() > 1 {
                        leave_inline(&mut path, inline.len());
                        names.paths.push((line, path));
                    }
                }
                _ => {}
            }
        }
        names
    }
}

/// Of modules that have no file of their own, `super` is the file itself.
fn leave_inline(path: &mut Path, depth: usize) {
    let ups = path
        .iter()
        .take(depth)
        .take_while(|name| *name == "super")
        .count();
    if ups > 0 {
        let left = path.get(ups).is_some_and(|name| name == "super");
        path.splice(..ups, (!left).then(|| "self".to_owned()));
    }
}

fn starts_word(token: &str) -> bool {
    token.starts_with(is_word)
}

impl<'a> Tokens<'a> {
    fn new(code: &'a str) -> Tokens<'a> {
        let mut tokens = Vec::new();
        for (number, line) in code.lines().enumerate() {
            let mut rest = line.trim_start();
            while let Some(first) = rest.chars().next() {
                let len = match rest.find(|c| !is_word(c)).unwrap_or(rest.len()) {
                    0 if rest.starts_with("::") || rest.starts_with("..") => 2,
                    0 => first.len_utf8(),
                    word => word,
                };
                let (token, after) = rest.split_at(len);
                tokens.push((number + 1, token));
                rest = after.trim_start();
            }
        }
        Tokens { tokens, at: 0 }
    }

    fn next(&mut self) -> Option<(usize, &'a str)> {
        let token = self.tokens.get(self.at).copied();
        self.at += 1;
        token
    }

    fn next_if(&mut self, wanted: impl Fn(&str) -> bool) -> Option<(usize, &'a str)> {
        if wanted(self.peek()) {
            self.next()
        } else {
            None
        }
    }

    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).map_or("", |token| token.1)
    }

    fn peek_after(&self) -> &'a str {
        self.tokens.get(self.at + 1).map_or("", |token| token.1)
    }

    /// Reads `a::{b, c as d}` up to the `,`, `}` or `;` behind it.
    fn use_tree(&mut self, prefix: &mut Path, uses: &mut Vec<Use>) {
        let outer = prefix.len();
        let mut leaf: Option<Use> = None;
        while !matches!(self.peek(), "" | "," | "}" | ";") {
            let Some((line, token)) = self.next() else {
                break;
            };
            match token {
                "{" => {
                    leaf = None;
                    while !matches!(self.peek(), "" | "}") {
                        self.use_tree(prefix, uses);
                        self.next_if(|token| token == ",");
                    }
                    self.next();
                }
                "as" => {
                    let alias = self.next().map_or("", |token| token.1);
                    if let Some(leaf) = &mut leaf {
                        alias.clone_into(&mut leaf.alias);
                    }
                }
                "::" => {}
                name => {
                    // `a::{self}` is `a`, and `a::*` is all that is in `a`.
                    if name != "*" && (name != "self" || prefix.is_empty()) {
                        prefix.push(name.to_owned());
                    }
                    let last = if name == "*" {
                        name
                    } else {
                        prefix.last().map_or("", |n| n)
                    };
                    let (path, alias) = (prefix.clone(), last.to_owned());
                    leaf = Some(Use { line, path, alias });
                }
            }
        }
        uses.extend(leaf);
        prefix.truncate(outer);
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    fn uses(code: &str) -> Vec<String> {
        let names = Names::new(code);
        let show = |u: super::Use| format!("{}:{} as {}", u.line, u.path.join("::"), u.alias);
        names.uses.into_iter().map(show).collect()
    }

    #[test]
    fn use_trees_are_read() {
        let code = "pub use crate::{a, b::{self, c as d},\n super_e::*};\nuse self::f;";
        let wanted = [
            "1:crate::a as a",
            "1:crate::b as b",
            "1:crate::b::c as d",
            "2:crate::super_e as *",
            "3:self::f as f",
        ];
        assert_eq!(uses(code), wanted);
    }

    #[test]
    fn super_in_an_inline_module_is_the_file() {
        let code = "mod a {\n use super::b;\n use super::super::c;\n}\nuse super::d;";
        assert_eq!(
            uses(code),
            ["2:self::b as b", "3:super::c as c", "5:super::d as d"]
        );
    }

    #[test]
    fn paths_and_children_are_read() {
        let names = Names::new("pub(crate) mod a;\nmod b { }\nx.c::<T>(0..crate::d::E::f);");
        assert_eq!(names.children, ["a"]);
        assert_eq!(names.paths.len(), 1);
        assert_eq!(
            names.paths[0],
            (3, ["crate", "d", "E", "f"].map(String::from).to_vec())
        );
    }
}
