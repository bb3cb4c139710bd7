//! Filters, logs and snapshots from one start to the next.

use super::*;

/// Sixty filters of 60 MB: what their items touch is resident, and reading makes no more so.
#[cfg(target_os = "linux")]
#[test]
fn large_filters_of_few_items_take_little_memory() {
    let always = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if always.is_ok_and(|setting| setting.contains("[always]")) {
        eprintln!("SKIPPED: this system makes every large page huge");
        return;
    }
    let server = Server::start();
    let mut client = server.client();
    let items: Vec<String> = (0..20).map(|item| item.to_string()).collect();
    let items = items.join(" ");
    for layout in ["CLASSIC", "BLOCKED"] {
        for filter in 0..30 {
            let key = format!("{layout}{filter}");
            client.ok(&format!("BF.RESERVE {key} 0.01 42000000 LAYOUT {layout}"));
            let added = client.line(&format!("BF.MADD {key} {items}"));
            assert_eq!(added, Reply::Array(vec![Reply::Integer(1); 20]));
            for read in ["BF.INFO", "BF.STATS", "BF.CARD"] {
                let reply = client.line(&format!("{read} {key}"));
                assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
            }
        }
    }
    let used: u64 = client.info("used_memory").parse().unwrap();
    assert!(used > 3_400_000_000, "{used} bytes are counted");
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.unwrap().trim().trim_end_matches(" kB");
    assert!(kilobytes.parse::<u64>().unwrap() < 100_000, "{status}");
}

/// A filter keeps its layout and key after the process has ended and the setting has changed.
#[test]
fn blocked_filters_are_there_after_a_restart() {
    let folder = folder("serve-blocked");
    let server = Server::on(&folder, &["--bf-default-layout", "blocked"]);
    let mut client = server.client();
    assert!(of_all_items(&mut client, "BF.ADD") > 950);
    client.ok("BF.RESERVE s 0.01 100 SEED 5 LAYOUT BLOCKED");
    assert_eq!(client.number("BF.ADD s x"), 1);
    let dumps = |client: &mut Client| ["DUMP k", "DUMP s"].map(|line| client.ok(line));
    let before = dumps(&mut client);
    shut_down(server, &["NOSAVE"]);

    // First from the commands in the log, then from its base, which is an RDB file.
    for from in ["commands", "base"] {
        assert_eq!(base_length(&folder) > 500, from == "base");
        let server = Server::on(&folder, &[]);
        let mut client = server.client();
        assert_eq!(client.line("TYPE k"), Reply::simple("everbloom"));
        assert_eq!(client.line("TYPE s"), Reply::simple("everbloom"));
        assert_eq!(dumps(&mut client), before);
        assert_eq!(of_all_items(&mut client, "BF.EXISTS"), 1000);
        assert_eq!(client.number("BF.ADD new x"), 1);
        assert_eq!(client.line("TYPE new"), Reply::simple("MBbloom--"));
        assert_eq!(client.number("DEL new"), 1);
        if from == "commands" {
            client.ok("BGREWRITEAOF");
            wait_for("the rewrite of the log", || base_length(&folder) > 500);
        }
        shut_down(server, &[]);
    }
}

/// To how many of a thousand items, sent at once, the server answers 1.
fn of_all_items(client: &mut Client, command: &str) -> usize {
    let lines: String = (0..1000)
        .map(|n| format!("{command} k item:{n}\r\n"))
        .collect();
    client.stream.write_all(lines.as_bytes()).unwrap();
    let replies = (0..1000).map(|_| client.reply());
    replies.filter(|reply| *reply == Reply::Integer(1)).count()
}

/// The length of the base that the log's manifest names.
fn base_length(folder: &Path) -> u64 {
    let log = folder.join("everbloom-data/appendonlydir");
    let manifest = fs::read_to_string(log.join("appendonly.aof.manifest")).unwrap();
    let base = manifest.lines().find(|line| line.ends_with(" type b"));
    let name = base.and_then(|line| line.split(' ').nth(1));
    name.map_or(0, |name| fs::metadata(log.join(name)).unwrap().len())
}

/// A file has the name of the log's directory, so no log can be begun.
#[test]
fn a_log_that_could_not_be_begun_is_told_everywhere() {
    let (folder, metrics) = (folder("serve-no-log"), free_port());
    let port = metrics.to_string();
    let mut server = Server::on(&folder, &["--appendonly", "no", "--metrics-port", &port]);
    let mut client = server.client();
    client.ok("BF.ADD seen x");
    let log = folder.join("everbloom-data/appendonlydir");
    fs::write(&log, "").unwrap();
    client.ok("CONFIG SET appendonly yes");
    client.until("aof_last_bgrewrite_status", "err");
    assert!(client.error("BF.ADD seen y").starts_with("MISCONF"));
    assert_eq!(client.info("aof_enabled"), "0");
    assert_eq!(ready(metrics), "HTTP/1.1 503 Service Unavailable");
    server.signal("TERM");
    assert_eq!(server.wait(), Some(1), "{}", server.log());
    assert!(!server.log().contains("the log is complete"));
    // The last snapshot has what was acknowledged.
    fs::remove_file(&log).unwrap();
    let server = Server::on(&folder, &[]);
    assert_eq!(server.client().number("BF.EXISTS seen x"), 1);
    assert_eq!(server.client().number("BF.EXISTS seen y"), 0);
}

/// It is newer than the log, and a start with the same command line must find it.
#[test]
fn a_snapshot_after_the_log_was_switched_off_is_loaded() {
    for signal in ["TERM", "KILL"] {
        let folder = folder(&format!("serve-newest-{signal}"));
        let mut server = Server::on(&folder, &[]);
        let mut client = server.client();
        client.ok("BF.ADD seen logged");
        client.ok("CONFIG SET appendonly no");
        client.ok("BF.ADD seen saved");
        client.ok("SAVE");
        server.signal(signal);
        server.wait();
        let mut server = Server::on(&folder, &[]);
        let mut client = server.client();
        assert_eq!(client.number("BF.EXISTS seen saved"), 1);
        // The log that begins there is the newest from now on.
        client.ok("BF.ADD seen more");
        server.signal("KILL");
        server.wait();
        let server = Server::on(&folder, &[]);
        for item in ["logged", "saved", "more"] {
            let found = server.client().number(&format!("BF.EXISTS seen {item}"));
            assert_eq!(found, 1, "{item}");
        }
    }
}

#[test]
fn a_manifest_that_was_cut_off_stops_the_start() {
    let folder = folder("serve-cut");
    let mut server = Server::on(&folder, &[]);
    server.client().ok("BF.ADD seen x");
    server.signal("KILL");
    server.wait();
    let log = folder.join("everbloom-data/appendonlydir");
    let manifest = log.join("appendonly.aof.manifest");
    let whole = fs::read_to_string(&manifest).unwrap();
    let line = whole.split_inclusive('\n').next().unwrap();
    for damaged in [line.to_owned(), whole.replace("type i", "type h")] {
        fs::write(&manifest, &damaged).unwrap();
        let outcome = serve(&folder, &["--port", "0"]);
        assert_eq!(outcome.status.code(), Some(1), "{}", outcome.stdout);
        for name in [
            "appendonly.aof.manifest: ",
            "appendonlydir/appendonly.aof.1.incr.aof",
        ] {
            assert!(outcome.stdout.contains(name), "{}", outcome.stdout);
        }
        assert_eq!(fs::read_to_string(&manifest).unwrap(), damaged);
    }
    fs::write(&manifest, whole).unwrap();
    let server = Server::on(&folder, &[]);
    assert_eq!(server.client().number("BF.EXISTS seen x"), 1);
}

/// What `/ready` answers.
fn ready(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = "GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap().to_owned()
}

/// A limit on the length of files stands for a disk that is full, and is lifted later.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_refuses_writes_and_loses_none_that_was_acknowledged() {
    if !peers::is_there(
        Command::new("prlimit").arg("-V"),
        "apt-get install util-linux",
    ) {
        return;
    }
    let (folder, metrics) = (folder("serve-full-disk"), free_port());
    let limited = "trap '' XFSZ; ulimit -S -f 128; exec \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, "sh"]);
    let words = ["--metrics-port", &metrics.to_string()];
    let (mut server, mut client) = started(shell, &folder, &words, Stdio::null(), Stdio::null());
    let item = |number: usize| format!("{number:0100}");
    let mut control = Client::connect(client.stream.peer_addr().unwrap());
    let full = AtomicBool::new(false);
    let acknowledged = thread::scope(|scope| {
        let adding = scope.spawn(|| {
            let mut acknowledged = 0;
            while !full.load(Ordering::Relaxed) {
                // The reply to the add that fills the disk comes when there is room.
                match client.call(&["BF.ADD", "seen", &item(acknowledged)]) {
                    Reply::Integer(_) => acknowledged += 1,
                    refusal => panic!("{refusal:?}"),
                }
            }
            acknowledged
        });
        let stop = StopOnDrop(&full);
        control.until("aof_last_write_status", "err");
        drop(stop);
        assert!(control.error("BF.ADD seen x").starts_with("MISCONF"));
        assert_eq!(ready(metrics), "HTTP/1.1 503 Service Unavailable");
        let pid = server.id().to_string();
        run(Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited:"])).success();
        control.until("aof_last_write_status", "ok");
        adding.join().unwrap()
    });
    assert!(acknowledged > 100, "{acknowledged}");
    assert_eq!(ready(metrics), "HTTP/1.1 200 OK");
    kill(&server, "KILL");
    server.wait().unwrap();
    let server = Server::on(&folder, &[]);
    let mut client = server.client();
    for number in 0..acknowledged {
        let found = client.call(&["BF.EXISTS", "seen", &item(number)]);
        assert_eq!(found, Reply::Integer(1), "{number} of {acknowledged}");
    }
}
