//! The module of Valkey and Redis, for a server to load.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The built module. `cargo test` builds no shared object, so the first test that asks has cargo
/// build it; `EVERBLOOM_MODULE` names another one.
pub fn module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| {
        if let Some(path) = std::env::var_os("EVERBLOOM_MODULE") {
            return path.into();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
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
        let ours = |text: &&str| {
            text.contains("everbloom_module") && text.ends_with(std::env::consts::DLL_SUFFIX)
        };
        // Every string of the messages is between two quotes.
        let object = text.split('"').find(ours);
        object.expect("a shared object was built").into()
    })
}
