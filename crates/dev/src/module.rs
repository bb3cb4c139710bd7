//! The module of Valkey and Redis, for the tests of any crate.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The built module. `cargo test` builds no shared object, so the first test that asks has cargo
/// build it; `EVERBLOOM_MODULE` names another one.
pub fn module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| match env::var_os("EVERBLOOM_MODULE") {
        Some(path) => path.into(),
        None => build(),
    })
}

fn build() -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args(["build", "--quiet", "--message-format=json"])
        .args(["--package", "everbloom-module"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let output = build.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "the module was not built");
    let text = String::from_utf8(output.stdout).unwrap();
    let artifacts = text
        .lines()
        .filter(|line| line.contains("everbloom_module"));
    let files = artifacts.flat_map(|line| {
        let json: Value = serde_json::from_str(line).unwrap();
        let files = json["filenames"].as_array().cloned().unwrap_or_default();
        files
            .into_iter()
            .map(|file| file.as_str().unwrap().to_owned())
    });
    let mut objects = files.filter(|file| file.ends_with(env::consts::DLL_SUFFIX));
    objects.next().expect("a shared object was built").into()
}
