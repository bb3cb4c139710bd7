//! The conditions shown beside every figure: the machine, the date, the revision.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use everbloom::host::Instructions;
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    pub date: String,
    pub cpu: String,
    pub cores: usize,
    pub caches: String,
    pub memory: String,
    pub kernel: String,
    pub rustc: String,
    pub revision: String,
    /// What the filters of this process use.
    pub instructions: &'static str,
}

impl Machine {
    pub fn this() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let field = |text: &str, name: &str| {
            text.lines()
                .find(|line| line.starts_with(name))
                .and_then(|line| line.split_once(':'))
                .map_or("unknown".to_owned(), |(_, value)| value.trim().to_owned())
        };
        let kib = field(&meminfo, "MemTotal");
        let kib = kib.trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0);
        let mut revision = output("git", &["rev-parse", "--short", "HEAD"]);
        if !output("git", &["status", "--porcelain", "--", ".."]).is_empty() {
            revision.push_str(" with changes");
        }
        Self {
            date: time::OffsetDateTime::now_utc().date().to_string(),
            cpu: field(&cpuinfo, "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            caches: caches(),
            memory: format!("{:.0} GiB", kib / f64::from(1 << 20)),
            kernel: output("uname", &["-sr"]),
            rustc: output("rustc", &["--version"]),
            revision,
            instructions: Instructions::current().name(),
        }
    }

    /// The paragraph above the tables.
    pub fn markdown(&self) -> String {
        format!(
            "{}: {}, {} cores, {}, {} of memory; {}; {}; everbloom at {}, \
             with the instructions {}.\n",
            self.date,
            self.cpu,
            self.cores,
            self.caches,
            self.memory,
            self.kernel,
            self.rustc,
            self.revision,
            self.instructions
        )
    }

    /// Makes the folder DATE-CPU.
    fn folder(&self, results: &Path) -> Result<PathBuf> {
        let mut name = self.date.clone();
        for word in self.cpu.split(|c: char| !c.is_ascii_alphanumeric()) {
            if !word.is_empty() {
                name.push('-');
                name.push_str(&word.to_ascii_lowercase());
            }
        }
        let folder = results.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Writes NAME.md and NAME.json. A long run calls this several times, so that its results are
    /// not lost when it is ended early.
    pub fn write(
        &self,
        results: &Path,
        name: &str,
        markdown: &str,
        figures: &impl Serialize,
    ) -> Result<()> {
        #[derive(Serialize)]
        struct Document<'a, T> {
            machine: &'a Machine,
            figures: &'a T,
        }
        let document = Document {
            machine: self,
            figures,
        };
        let folder = self.folder(results)?;
        let mut json = serde_json::to_string_pretty(&document)?;
        json.push('\n');
        fs::write(folder.join(name).with_extension("json"), json)?;
        fs::write(folder.join(name).with_extension("md"), markdown)?;
        eprintln!("written: {}/{name}.md and .json", folder.display());
        Ok(())
    }
}

/// The caches of the first core: `L1d 32K, L2 1024K, L3 32768K`.
fn caches() -> String {
    let mut found = Vec::new();
    for index in 0..8 {
        let read = |name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
            fs::read_to_string(path).map(|text| text.trim().to_owned())
        };
        if let (Ok(level), Ok(kind), Ok(size)) = (read("level"), read("type"), read("size"))
            && kind != "Instruction"
        {
            let kind = if kind == "Data" { "d" } else { "" };
            found.push(format!("L{level}{kind} {size}"));
        }
    }
    if found.is_empty() {
        "caches unknown".to_owned()
    } else {
        found.join(", ")
    }
}

/// The output of a program, or an empty text when it cannot run.
pub fn output(program: &str, args: &[&str]) -> String {
    Command::new(program)
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}
