//! Files of valkey-bloom: a server starts on them, and keeps what they hold.

use std::fs;

use everbloom_server::Settings;
use tempfile::tempdir;

use super::common::{digest, golden, logging, run, snapshots, start, until};

#[test]
fn a_server_starts_on_files_of_valkey_bloom() {
    let from = golden("valkey-bloom");
    let mut digests = Vec::new();
    for file in ["dump.rdb", "dump-capfirst.rdb", "rewrite.aof"] {
        let dir = tempdir().unwrap();
        let is_log = file == "rewrite.aof";
        let name = if is_log { "appendonly.aof" } else { "dump.rdb" };
        fs::copy(from.join(file), dir.path().join(name)).unwrap();
        let settings = |dir| -> Settings { if is_log { logging(dir) } else { snapshots(dir) } };
        let (running, mut client) = start(settings(dir.path()));
        assert_eq!(client.number("DBSIZE"), 19, "{file}");
        assert_eq!(client.text("TYPE scaling"), "bloomfltr");
        assert_eq!(client.number("BF.CARD big"), 99_830);
        assert_eq!(client.number("BF.EXISTS scaling s-0"), 1);
        digests.push(digest(&mut client));
        // It goes on from them, and finds them again.
        assert_eq!(client.number("BF.ADD err-1e-9 new-item-1"), 1);
        run(&mut client, &["BF.MADD empty a b c"]);
        if is_log {
            run(&mut client, &["BGREWRITEAOF"]);
            until(&mut client, "aof_rewrite_in_progress", "0");
        } else {
            run(&mut client, &["SAVE"]);
        }
        let before = digest(&mut client);
        drop(client);
        drop(running);
        let (_running, mut client) = start(settings(dir.path()));
        assert_eq!(digest(&mut client), before, "{file}");
        assert_eq!(client.number("BF.EXISTS err-1e-9 new-item-1"), 1);
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]));
}
