//! How it ends, and with which exit code.

use super::*;

#[test]
fn a_signal_ends_it_in_order_and_what_was_asked_is_answered() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::start();
        let mut client = server.client();
        // A batch that takes a while, and the signal in the middle of it.
        let batch = "BF.RESERVE k 0.0001 1000000\r\nDEL k\r\n".repeat(200);
        client.stream.write_all(batch.as_bytes()).unwrap();
        assert_eq!(client.reply(), Reply::OK);
        server.signal(signal);
        // Requests that were not read yet make the system reset the connection.
        assert_eq!(client.try_reply(), Some(Reply::Integer(1)));
        let (code, log) = (server.wait(), server.log());
        assert_eq!(code, Some(0), "{log}");
        assert!(
            log.contains(&format!("received SIG{signal}, stopping")),
            "{log}"
        );
        assert!(log.trim_end().ends_with("stopped"), "{log}");
    }
}

#[test]
fn shutdown_ends_it_with_success() {
    shut_down(Server::start(), &["NOSAVE"]);
}

/// Clients that are connected, and one in the middle of a request, keep nobody waiting.
#[test]
fn a_signal_saves_what_the_settings_say_and_the_end_comes_soon() {
    for (save, saved) in [("3600 1", true), ("", false)] {
        let folder = folder(&format!("serve-save-{saved}"));
        let words = ["--appendonly", "no", "--save", save];
        let mut server = Server::on(&folder, &words);
        let mut client = server.client();
        client.ok("BF.ADD seen x");
        let mut slow = server.client();
        slow.stream
            .write_all(b"*3\r\n$6\r\nBF.ADD\r\n$4\r\n")
            .unwrap();
        let begun = Instant::now();
        server.signal("TERM");
        assert_eq!(server.wait(), Some(0), "{}", server.log());
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{}",
            server.log()
        );
        let file = folder.join("everbloom-data/dump.rdb");
        assert_eq!(file.exists(), saved, "{}", server.log());
        let server = Server::on(&folder, &words);
        assert_eq!(server.client().number("EXISTS seen"), i64::from(saved));
    }
}

/// The data is nowhere else. A second signal says that it may be lost.
#[test]
fn a_signal_does_not_end_it_while_the_last_snapshot_fails() {
    for mended in [false, true] {
        let folder = folder(&format!("serve-unsaved-{mended}"));
        let words = ["--appendonly", "no"];
        let mut server = Server::on(&folder, &words);
        let mut client = server.client();
        client.ok("BF.ADD seen x");
        // A folder has the snapshot's name.
        let snapshot = folder.join("everbloom-data/dump.rdb");
        fs::create_dir(&snapshot).unwrap();
        server.signal("TERM");
        wait_for("the refusal", || {
            server.log().contains("not stopping, because the snapshot")
        });
        assert!(client.error("BF.ADD seen y").starts_with("MISCONF"));
        assert_eq!(client.number("BF.EXISTS seen x"), 1);
        if mended {
            fs::remove_dir(&snapshot).unwrap();
        }
        server.signal("INT");
        let code = server.wait();
        assert_eq!(code, Some(i32::from(!mended)), "{}", server.log());
        if mended {
            let server = Server::on(&folder, &words);
            assert_eq!(server.client().number("BF.EXISTS seen x"), 1);
        } else {
            assert!(server.log().contains("the snapshot at the end failed"));
        }
    }
}
