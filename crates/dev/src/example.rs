//! The examples, which a test runs small.

use std::env;
use std::process::Command;

/// What an example printed.
#[derive(Debug)]
pub struct Example {
    /// All of it.
    pub output: String,
}

impl Example {
    /// Runs an example of the package under test, which must succeed. Plain `cargo test` has built
    /// it. With `--test` or `--examples` it is an older one: `cargo build --examples` helps.
    pub fn run(name: &str, args: &[&str]) -> Example {
        let test = env::current_exe().unwrap();
        let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
        let program = profile.join("examples").join(name);
        let output = Command::new(&program).args(args).output();
        let output = output.unwrap_or_else(|error| {
            panic!(
                "{}: {error}; cargo build --examples makes it",
                program.display()
            )
        });
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{name} {args:?}\n{out}\n{err}");
        Example { output: out }
    }

    /// A number among the figures at its end.
    pub fn figure(&self, name: &str) -> f64 {
        let found = self.text(name).and_then(|text| text.parse().ok());
        found.unwrap_or_else(|| panic!("no number {name} in\n{}", self.output))
    }

    /// The value of a figure, which follows its name and two spaces.
    fn text(&self, name: &str) -> Option<&str> {
        let (_, figures) = self.output.split_once("\nFigures\n")?;
        let values = figures.lines().map(|line| line.trim().strip_prefix(name));
        let mut values = values.flatten().filter(|value| value.starts_with("  "));
        values.next().map(str::trim)
    }
}
