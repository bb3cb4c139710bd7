//! Who imports whom: the files of a crate and the arrows between them.

use std::collections::{BTreeMap, BTreeSet};

use super::files::File;
use super::names::{Names, Path};
use super::source::Source;

/// One file names something of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrow {
    /// The path of the file that imports.
    pub from: String,
    /// The line where it does.
    pub line: usize,
    /// The path of the file that is imported.
    pub to: String,
    /// What the line names, from the crate's root on.
    pub name: String,
}

/// Re-exports may follow each other. This many are followed.
const RE_EXPORTS: u8 = 8;

/// A file without its tests, its names made absolute.
struct Module<'a> {
    file: &'a str,
    /// What its `use` lines bring in: by alias, with line and path from the root.
    uses: Vec<(usize, String, Path)>,
    paths: Vec<(usize, Path)>,
    has_children: bool,
}

/// The modules of a crate, by their paths; the root's is empty.
type Modules<'a> = BTreeMap<Path, Module<'a>>;

/// Every import of one file of a crate by another, outside tests. Takes the files of `src`.
pub fn arrows(files: &[File]) -> Vec<Arrow> {
    let modules = modules(files);
    let mut arrows = Vec::new();
    for module in modules.values() {
        let imports = module.uses.iter().filter_map(|(line, alias, path)| {
            let imports_module = alias != "*" && modules.get(path).is_some_and(|m| m.has_children);
            // What is used of a folder counts, not that its name was brought in.
            (!imports_module).then_some((line, path))
        });
        let mentions = module.paths.iter().map(|(line, path)| (line, path));
        for (line, path) in imports.chain(mentions) {
            let to = modules[&resolve(&modules, path, RE_EXPORTS)].file;
            if to != module.file {
                arrows.push(Arrow {
                    from: module.file.to_owned(),
                    line: *line,
                    to: to.to_owned(),
                    name: format!("crate::{}", path.join("::")),
                });
            }
        }
    }
    arrows.sort_by(|a, b| (&a.from, a.line).cmp(&(&b.from, b.line)));
    arrows
}

/// The module path of each file that is no test.
pub(super) fn module_paths(files: &[File]) -> BTreeMap<Path, &File> {
    let mut tests = BTreeSet::new();
    let mut paths = BTreeMap::new();
    for file in files {
        let path = module_path(&file.path);
        for name in Source::new(&file.text).test_modules {
            tests.insert([path.clone(), vec![name]].concat());
        }
        paths.insert(path, file);
    }
    paths.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
    paths
}

/// `crates/x/src/a/b.rs` and `crates/x/src/a/b/mod.rs` are `a::b`.
fn module_path(file: &str) -> Path {
    let inside = file.split_once("/src/").map_or(file, |(_, inside)| inside);
    let mut path: Path = inside
        .trim_end_matches(".rs")
        .split('/')
        .map(String::from)
        .collect();
    let is_root = path.len() == 1 && (path[0] == "lib" || path[0] == "main");
    if is_root || path.last().is_some_and(|name| name == "mod") {
        path.pop();
    }
    path
}

fn modules(files: &[File]) -> Modules<'_> {
    let paths = module_paths(files);
    let mut modules = Modules::new();
    for (path, file) in &paths {
        let names = Names::new(&Source::new(&file.text).code);
        let mut scope: BTreeMap<String, Path> = BTreeMap::new();
        for child in &names.children {
            scope.insert(child.clone(), [path.clone(), vec![child.clone()]].concat());
        }
        let mut uses = Vec::new();
        for leaf in names.uses {
            if let Some(absolute) = absolute(path, &scope, &leaf.path) {
                uses.push((leaf.line, leaf.alias, absolute));
            }
        }
        // A path may begin with a module that was brought in.
        for (_, alias, absolute) in &uses {
            if paths.contains_key(absolute) {
                scope.insert(alias.clone(), absolute.clone());
            }
        }
        let paths_named = names.paths.into_iter();
        let module = Module {
            file: &file.path,
            uses,
            paths: paths_named
                .filter_map(|(line, named)| Some((line, absolute(path, &scope, &named)?)))
                .collect(),
            has_children: !names.children.is_empty(),
        };
        modules.insert(path.clone(), module);
    }
    modules
}

/// A path as seen from the crate's root; `None` if it leads out of the crate.
fn absolute(module: &Path, scope: &BTreeMap<String, Path>, named: &Path) -> Option<Path> {
    let (head, rest) = named.split_first()?;
    let ups = named.iter().take_while(|name| *name == "super").count();
    match head.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module, rest].concat()),
        "super" => {
            let base = module.len().checked_sub(ups)?;
            Some([&module[..base], &named[ups..]].concat())
        }
        _ => Some([scope.get(head)?, rest].concat()),
    }
}

/// The module that a path belongs to, through re-exports.
fn resolve(modules: &Modules, path: &[String], re_exports: u8) -> Path {
    let depth = (0..=path.len())
        .rev()
        .find(|depth| modules.contains_key(&path[..*depth]))
        .expect("the root is a module");
    let (module, rest) = path.split_at(depth);
    let re_export = rest.split_first().and_then(|(name, rest)| {
        let mut uses = modules[module].uses.iter();
        let (_, _, path) = uses.find(|(_, alias, _)| alias == name)?;
        Some([path, rest].concat())
    });
    match re_export {
        Some(path) if re_exports > 0 => resolve(modules, &path, re_exports - 1),
        _ => module.to_vec(),
    }
}
