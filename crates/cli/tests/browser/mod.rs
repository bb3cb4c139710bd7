//! The page of the server in Chromium, headless.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use everbloom_dev::{Client, StopOnDrop, free_port, peers};
use everbloom_resp::Reply;

use crate::support::{Server, folder, root, run};

/// Filters, which the page lists some at a time.
const FILTERS: usize = 10_000;

/// Names that could be taken for something else than a name.
const HOSTILE: [&[u8]; 5] = [
    b"<img src=x onerror=document.title='owned'>",
    b"\"'&%20?#db=1",
    b"\xff\x00bytes",
    b"",
    "Größe 水".as_bytes(),
];

/// A server with filters, and the port of its page.
fn server() -> (Server, u16) {
    let port = free_port();
    let server = Server::with(&["--metrics-port", &port.to_string()]);
    let mut client = server.client();
    for number in 0..FILTERS {
        let layout = match number % 2 {
            0 => "CLASSIC",
            _ => "BLOCKED",
        };
        let capacity = 100 + number;
        let name = format!("filter:{number:05}");
        client.ok(&format!(
            "BF.RESERVE {name} 0.01 {capacity} LAYOUT {layout}"
        ));
    }
    for name in HOSTILE {
        client.call(&[b"BF.ADD", name, b"x"]);
    }
    client.ok("CF.RESERVE cuckoo 1000");
    for item in 0..500 {
        client.ok(&format!("CF.ADD cuckoo {item}"));
    }
    client.ok("BF.RESERVE full 0.01 100 NONSCALING LAYOUT CLASSIC");
    let mut added = |item| !client.line(&format!("BF.ADD full {item}")).is_error();
    assert!((0..200).take_while(|item| added(*item)).count() < 200);
    client.ok("BF.RESERVE nearly 0.01 1000 NONSCALING");
    for item in 0..950 {
        client.ok(&format!("BF.ADD nearly {item}"));
    }
    client.ok("BF.RESERVE window:seconds 0.01 100 WINDOW SECONDS 3600");
    client.ok("BF.RESERVE window:items 0.01 100 WINDOW ITEMS");
    // Labels with many digits.
    client.ok("BF.RESERVE strict 0.00000001 1000 LAYOUT CLASSIC");
    for item in 0..3000 {
        client.ok(&format!("BF.ADD strict {item}"));
    }
    // It grows: layers of 1000 and 2000, and one that is begun.
    client.ok("BF.RESERVE grown 0.01 1000 LAYOUT CLASSIC");
    for item in 0..4000 {
        client.ok(&format!("BF.ADD grown {item}"));
    }
    // All bits of it are set.
    client.ok("BF.RESERVE erring 0.001 100 NONSCALING LAYOUT CLASSIC");
    let (at, header) = chunk(&mut client, 0);
    let (end, bits) = chunk(&mut client, at);
    client.ok("DEL erring");
    let ones = vec![0xff; bits.len()];
    for (at, bytes) in [(at, header), (end, ones)] {
        let at = at.to_string();
        let args: [&[u8]; 4] = [b"BF.LOADCHUNK", b"erring", at.as_bytes(), &bytes];
        assert!(!client.call(&args).is_error());
    }
    (server, port)
}

/// A piece of a filter's dump, and where the next one begins.
fn chunk(client: &mut Client, at: i64) -> (i64, Vec<u8>) {
    match client.ok(&format!("BF.SCANDUMP erring {at}")) {
        Reply::Array(parts) => match &*parts {
            [Reply::Integer(next), Reply::Bulk(bytes)] => (*next, bytes.clone()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Adds an item now and then until it is told to stop.
fn add_items(port: u16, stop: &AtomicBool) {
    let mut client = Client::connect(("127.0.0.1", port));
    client.ok("BF.RESERVE growing 0.01 1000000");
    for item in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        for part in 0..10 {
            client.ok(&format!("BF.ADD growing {item}:{part}"));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Where Debian has it.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Node in the folder with the test's script, if all that it needs is there.
fn node() -> Option<Command> {
    let folder = root().join("tests/clients/node");
    let in_folder = |args: &[&str]| {
        let mut node = Command::new("node");
        node.args(args).current_dir(&folder);
        node
    };
    let import = "await import('playwright-core')";
    let probe = &mut in_folder(&["--input-type=module", "-e", import]);
    let is_there = peers::is_there(probe, "npm ci in tests/clients/node")
        && peers::is_there(
            Command::new(CHROMIUM).arg("--version"),
            "apt-get install chromium",
        );
    is_there.then(|| in_folder(&["page.mjs"]))
}

#[test]
fn the_page_in_chromium() {
    let Some(mut node) = node() else {
        return;
    };
    let (server, port) = server();
    node.env("EVERBLOOM_CHROMIUM", CHROMIUM)
        .env("EVERBLOOM_PAGE", format!("http://127.0.0.1:{port}/"))
        .env("EVERBLOOM_SHOTS", folder("page"));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop_at_end = StopOnDrop(&stop);
        scope.spawn(|| add_items(server.port, &stop));
        run(&mut node).success();
    });
}
