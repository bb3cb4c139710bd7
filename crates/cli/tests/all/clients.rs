//! Other people's clients against our server, and against redis-server with our module. Each test
//! starts its own server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

#[path = "../browser/mod.rs"]
mod browser;
#[path = "../java/mod.rs"]
mod java;
#[path = "../redis_rs/mod.rs"]
mod redis_rs;
use std::io::{self, BufWriter, Write};
use std::process::Command;

use crate::support::{Peer, Server, root, run, run_with_input};
use everbloom_dev::{Redis, module};

/// Runs the tests of a client, if it is there, against our server.
fn against_serve(client: Option<Command>) {
    if let Some(client) = client {
        against(Server::start().port, client);
    }
}

/// Runs the tests of a client, if it is there, against redis-server with our module.
fn against_the_module(client: Option<Command>) {
    let Some(client) = client else {
        return;
    };
    let load = ["--loadmodule", module().to_str().unwrap()];
    if let Some(redis) = Redis::start(&load) {
        against(redis.addr.port(), client);
    }
}

fn against(port: u16, mut client: Command) {
    run(client.env("EVERBLOOM_PORT", port.to_string())).success();
}

fn redis_py() -> Option<Command> {
    let mut python = Peer::Python.find()?;
    python
        .args(["-W", "error::ResourceWarning"])
        .args(["-m", "unittest", "-v"])
        .args(["test_redis_py", "test_redis_py_cuckoo"])
        .current_dir(root().join("tests/clients"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Some(python)
}

fn node_redis() -> Option<Command> {
    let mut node = Peer::Node.find()?;
    node.arg("--test")
        .current_dir(root().join("tests/clients/node"));
    Some(node)
}

fn go_redis() -> Option<Command> {
    let mut go = Peer::Go.find()?;
    go.args(["test", "-count=1"])
        .current_dir(root().join("tests/clients/go"));
    Some(go)
}

#[test]
fn redis_py_against_serve() {
    against_serve(redis_py());
}

#[test]
fn redis_py_against_the_module() {
    against_the_module(redis_py());
}

#[test]
fn node_redis_against_serve() {
    against_serve(node_redis());
}

#[test]
fn node_redis_against_the_module() {
    against_the_module(node_redis());
}

#[test]
fn go_redis_against_serve() {
    against_serve(go_redis());
}

#[test]
fn go_redis_against_the_module() {
    against_the_module(go_redis());
}

#[test]
fn the_example_that_never_misses() {
    example("never_misses.py", "100000 strings added, 0 missed");
}

#[test]
fn the_example_of_the_error_rate() {
    example("error_rate.py", "BF.RESERVE 0.001 50000: 0 missed");
}

fn example(script: &str, says: &str) {
    if let Some(python) = python_example(script) {
        let output = output_on(Server::start().port, python);
        assert!(output.contains(says), "{output}");
    }
}

fn python_example(script: &str) -> Option<Command> {
    let mut python = Peer::Python.find()?;
    python.arg(root().join("examples/python").join(script));
    Some(python)
}

fn output_on(port: u16, mut python: Command) -> String {
    run(python.args(["--port", &port.to_string()])).success()
}

const RECIPES: [&str; 2] = ["bitmap_mmh3.py", "bitmap_pipeline.py"];

/// What the recipes over a bitmap say on a server.
fn recipes_on(port: u16) -> Option<Vec<String>> {
    let outputs = RECIPES.map(|script| {
        let mut python = python_example(script)?;
        python.args(["--count", "2000"]);
        Some(output_on(port, python))
    });
    outputs.into_iter().collect()
}

#[test]
fn the_recipes_over_a_bitmap() {
    let Some(redis) = Redis::start(&[]) else {
        return;
    };
    let Some(outputs) = recipes_on(redis.addr.port()) else {
        return;
    };
    let says = [
        "9915 bits are 1\n2000 items added, 0 missed, 18 of 2000 others wrong",
        "6000 bits are 1\n2000 items added, 2000 of them new, 0 missed",
    ];
    for (output, says) in outputs.iter().zip(says) {
        assert!(output.contains(says), "{output}");
    }
}

/// The recipe computes its hashes so. With one more, half of the items of its filters are missed.
#[test]
fn the_recipe_with_mmh3_rounds_the_number_of_hashes() {
    if Peer::Python.find().is_none() {
        return;
    }
    let server = Server::start();
    for (rate, hashes) in [
        ("0.1", 3),
        ("0.05", 4),
        ("0.03", 5),
        ("0.02", 6),
        ("0.01", 7),
        ("0.005", 8),
        ("0.002", 9),
        ("0.001", 10),
        ("0.0005", 11),
        ("0.0001", 13),
    ] {
        let mut python = python_example("bitmap_mmh3.py").unwrap();
        python.args(["--count", "100", "--error-rate", rate]);
        let output = output_on(server.port, python);
        let says = format!(" bits, {hashes} hashes, ");
        assert!(output.contains(&says), "{rate}: {output}");
    }
}

#[test]
fn the_recipes_over_a_bitmap_answer_alike_on_serve() {
    if let Some(redis) = Redis::start(&[]) {
        let ours = Server::start();
        assert_eq!(recipes_on(ours.port), recipes_on(redis.addr.port()));
    }
}

#[test]
fn redis_cli_pipes_a_million_adds() {
    const ITEMS: u32 = 1_000_000;
    let Some(mut redis_cli) = Peer::RedisCli.find() else {
        return;
    };
    let server = Server::start();
    server
        .query(&["BF.RESERVE", "k", "0.001", "1000000"])
        .success();
    redis_cli.args(["-p", &server.port.to_string(), "--pipe"]);
    let output = run_with_input(&mut redis_cli, |pipe| {
        let mut pipe = BufWriter::new(pipe);
        for n in 0..ITEMS {
            write!(
                pipe,
                "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$12\r\nitem:{n:07}\r\n"
            )?;
        }
        pipe.flush()
    })
    .success();
    assert!(
        output.contains(&format!("errors: 0, replies: {ITEMS}")),
        "{output}"
    );

    // An item counts as new if it was not a false positive when it was added.
    let card = server.query(&["BF.CARD", "k"]).success();
    let card: u32 = card
        .trim()
        .strip_prefix("(integer) ")
        .unwrap()
        .parse()
        .unwrap();
    assert!((ITEMS - ITEMS / 1000..=ITEMS).contains(&card), "{card}");
    for item in ["item:0000000", "item:0500000", "item:0999999"] {
        assert_eq!(
            server.query(&["BF.EXISTS", "k", item]).success(),
            "(integer) 1\n"
        );
    }
}

#[test]
fn redis_cli_reports_errors_in_a_pipe() {
    let Some(mut redis_cli) = Peer::RedisCli.find() else {
        return;
    };
    let server = Server::start();
    redis_cli.args(["-p", &server.port.to_string(), "--pipe"]);
    let outcome = run_with_input(&mut redis_cli, |pipe| {
        pipe.write_all(b"BF.ADD k a\r\nBF.ADD k\r\nBF.RESERVE k 0.01 100\r\nBF.ADD k b\r\n")
    });
    assert!(
        outcome.stdout.contains("errors: 2, replies: 4"),
        "{outcome:?}"
    );
}

#[test]
fn redis_cli_finds_the_biggest_keys() {
    let Some(mut redis_cli) = Peer::RedisCli.find() else {
        return;
    };
    let server = Server::start();
    server.query(&["BF.ADD", "filter", "a"]).success();
    server.query(&["SET", "text", "hello"]).success();
    redis_cli.args(["-p", &server.port.to_string(), "--memkeys"]);
    let output = run(&mut redis_cli).success();
    assert!(output.contains("Sampled 2 keys"), "{output}");
}

#[test]
fn redis_benchmark() {
    if Peer::RedisBenchmark.find().is_none() {
        return;
    }
    let server = Server::start();
    let commands: [&[&str]; 5] = [
        &["BF.ADD", "key", "__rand_int__"],
        &["BF.EXISTS", "key", "__rand_int__"],
        &["BF.MADD", "key", "__rand_int__", "__rand_int__"],
        &["SET", "text:__rand_int__", "x"],
        &["PING"],
    ];
    for command in commands {
        let Some(mut benchmark) = Peer::RedisBenchmark.find() else {
            return;
        };
        benchmark
            .args(["-p", &server.port.to_string(), "-n", "100000", "-P", "16"])
            .args(["-r", "1000000", "-q"])
            .args(command);
        let output = run(&mut benchmark).success();
        assert!(output.contains("requests per second"), "{output}");
        assert!(!output.to_lowercase().contains("error"), "{output}");
    }
}

/// The session in README.md, typed into redis-cli.
#[test]
fn the_readme_session() {
    const PROMPT: &str = "127.0.0.1:6379> ";
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut commands = String::new();
    let mut replies = String::new();
    let mut in_session = false;
    for line in readme.lines() {
        if let Some(command) = line.strip_prefix(PROMPT) {
            in_session = true;
            commands.push_str(command);
            commands.push('\n');
        } else if line.starts_with("```") {
            in_session = false;
        } else if in_session {
            replies.push_str(line);
            replies.push('\n');
        }
    }
    assert!(
        commands.lines().count() >= 4,
        "README.md has lost its session"
    );

    let Some(mut redis_cli) = Peer::RedisCli.find() else {
        return;
    };
    let server = Server::start();
    redis_cli.args(["-p", &server.port.to_string(), "--no-raw"]);
    let feed =
        move |pipe: &mut dyn Write| -> io::Result<()> { pipe.write_all(commands.as_bytes()) };
    assert_eq!(run_with_input(&mut redis_cli, feed).success(), replies);
}
