//! Java's clients, and Guava. Maven compiles tests/clients/java once, without the network: what it
//! needs, `mvn test-compile` has fetched.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use everbloom::guava::GuavaView;
use everbloom_dev::peers;

use super::{against_serve, against_the_module};
use crate::support::{folder, root, run};

fn project() -> PathBuf {
    root().join("tests/clients/java")
}

/// Whether the classes are compiled. Without Maven or what it needs the test skips, loudly, or
/// fails when peers are required.
fn are_compiled() -> bool {
    static COMPILED: OnceLock<Result<(), String>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| {
        let mut maven = Command::new("mvn");
        maven
            .args(["--offline", "--batch-mode", "--quiet", "test-compile"])
            .current_dir(project());
        let output = maven.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stdout).into_owned())
    });
    if let Err(why) = compiled {
        let advice = "`mvn test-compile` in tests/clients/java fetches what it needs";
        peers::skip_unless_set(
            "EVERBLOOM_REQUIRE_PEERS",
            &format!("Maven compiled no tests ({advice}): {why}"),
        );
    }
    compiled.is_ok()
}

/// Java with the classes of a module of the project, and with what they need.
fn java(module: &str) -> Option<Command> {
    if !are_compiled() {
        return None;
    }
    let target = project().join(module).join("target");
    let needed = fs::read_to_string(target.join("classpath")).unwrap();
    let classes = target.join("test-classes");
    let mut java = Command::new("java");
    java
        // What starts quickly, for programs that end soon.
        .args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-classpath"])
        .arg(format!("{}:{needed}", classes.display()));
    Some(java)
}

fn tests(module: &str, class: &str) -> Option<Command> {
    let mut java = java(module)?;
    java.arg("org.junit.platform.console.ConsoleLauncher")
        .args(["execute", "--disable-banner", "--disable-ansi-colors"])
        .args(["--fail-if-no-tests", "--select-class"])
        .arg(format!("everbloom.{class}"));
    Some(java)
}

#[test]
fn jedis_against_serve() {
    against_serve(tests("clients", "JedisTest"));
}

#[test]
fn jedis_against_the_module() {
    against_the_module(tests("clients", "JedisTest"));
}

#[test]
fn the_recipe_for_jedis_over_a_bitmap_against_serve() {
    against_serve(tests("clients", "JedisBitmapTest"));
}

#[test]
fn the_recipe_for_jedis_over_a_bitmap_against_redis() {
    against_the_module(tests("clients", "JedisBitmapTest"));
}

#[test]
fn jrebloom_against_serve() {
    against_serve(tests("jrebloom", "JReBloomTest"));
}

#[test]
fn jrebloom_against_the_module() {
    against_the_module(tests("jrebloom", "JReBloomTest"));
}

#[test]
fn lettuce_against_serve() {
    against_serve(tests("clients", "LettuceTest"));
}

#[test]
fn lettuce_against_the_module() {
    against_the_module(tests("clients", "LettuceTest"));
}

#[test]
fn redissons_native_filter_against_serve() {
    against_serve(tests("clients", "RedissonNativeTest"));
}

#[test]
fn redissons_native_filter_against_the_module() {
    against_the_module(tests("clients", "RedissonNativeTest"));
}

#[test]
fn the_cuckoo_filters_of_jedis_against_serve() {
    against_serve(tests("clients", "JedisCuckooTest"));
}

#[test]
fn the_cuckoo_filters_of_jedis_against_the_module() {
    against_the_module(tests("clients", "JedisCuckooTest"));
}

#[test]
fn the_cuckoo_filters_of_lettuce_against_serve() {
    against_serve(tests("clients", "LettuceCuckooTest"));
}

#[test]
fn the_cuckoo_filters_of_lettuce_against_the_module() {
    against_the_module(tests("clients", "LettuceCuckooTest"));
}

#[test]
fn the_cuckoo_filters_of_redisson_against_serve() {
    against_serve(tests("clients", "RedissonCuckooTest"));
}

#[test]
fn the_cuckoo_filters_of_redisson_against_the_module() {
    against_the_module(tests("clients", "RedissonCuckooTest"));
}

/// Redisson's own filter needs scripts, which `serve` has none of.
#[test]
fn redissons_own_filter_beside_the_module() {
    against_the_module(tests("clients", "RedissonTest"));
}

fn guava(args: &[&str]) -> Option<String> {
    let mut java = java("clients")?;
    java.arg("everbloom.GuavaFilters").args(args);
    Some(run(&mut java).success())
}

/// The files with which the library is tested are what Guava writes.
#[test]
fn guava_writes_what_is_recorded() {
    for (what, file) in [("golden", "filters.json"), ("sizes", "sizes.txt")] {
        let Some(written) = guava(&[what]) else {
            return;
        };
        let recorded = root().join("crates/filters/tests/guava").join(file);
        assert_eq!(written, fs::read_to_string(recorded).unwrap());
    }
}

/// A million items that are in the filter, and a million that are not.
#[test]
fn guava_and_we_find_the_same_items() {
    const ITEMS: usize = 1_000_000;
    let folder = folder("guava");
    if guava(&["million", folder.to_str().unwrap()]).is_none() {
        return;
    }
    for strategy in [0, 1] {
        let read = |name| fs::read(folder.join(format!("{name}-{strategy}"))).unwrap();
        let (written, answers) = (read("filter"), read("answers"));
        let filter = GuavaView::new(&written).unwrap();
        let mut others = 0;
        for item in 0..2 * ITEMS {
            let theirs = answers.get(item / 8);
            let theirs = theirs.is_some_and(|byte| byte >> (item % 8) & 1 == 1);
            let ours = filter.contains(format!("item {item}"));
            assert_eq!(ours, theirs, "item {item}, strategy {strategy}");
            assert!(ours || item >= ITEMS, "item {item} is missing");
            others += usize::from(ours && item >= ITEMS);
        }
        // It was made for a rate of 0.03.
        assert!((20_000..40_000).contains(&others), "{others} were wrong");
    }
}
