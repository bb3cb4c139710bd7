//! The seeds of the fuzzers, replayed against servers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use everbloom_resp::Reply;

use crate::client::Client;

/// The seeds of a target in `tests/corpus`, with their names.
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let mut seeds: Vec<_> = fs::read_dir(folder.join(target))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    seeds.sort();
    assert!(seeds.len() > 20, "{target}: {} seeds", seeds.len());
    seeds
}

/// What came of values that were offered to a server.
#[derive(Debug, Default)]
pub struct Tally {
    /// How many it took.
    pub taken: usize,
    /// The errors with which it refused others.
    pub errors: BTreeSet<String>,
}

impl Tally {
    /// Whether a reply says that a value was taken; it must be `OK` then.
    pub fn count(&mut self, reply: Reply) -> bool {
        if let Reply::Error(text) = reply {
            self.errors.insert(text.into_owned());
            return false;
        }
        assert_eq!(reply, Reply::OK);
        self.taken += 1;
        true
    }

    /// Sends the requests of a seed, of which the LOADCHUNKs load something, and works with it.
    pub fn load(&mut self, client: &mut Client, requests: &[Vec<Vec<u8>>]) {
        for request in requests {
            let reply = client.call(request);
            if request[0].ends_with(b".LOADCHUNK") {
                self.count(reply);
            }
        }
        work_with(client, "k");
    }

    /// The errors must be those of `RESTORE`, both. A server may also lack memory for a filter; a
    /// module's host has no error for that.
    pub fn check_restore_errors(&self) {
        let memory = "ERR Insufficient memory to create filter";
        let errors = self.errors.iter().map(String::as_str);
        let errors: Vec<&str> = errors.filter(|error| *error != memory).collect();
        let wanted = [
            "ERR Bad data format",
            "ERR DUMP payload version or checksum are wrong",
        ];
        assert_eq!(errors, wanted);
    }
}

/// Runs what looks at all of a value, and takes it away.
pub fn work_with(client: &mut Client, key: &str) {
    for command in [
        "TYPE k",
        "GET k",
        "BF.EXISTS k x",
        "BF.INFO k",
        "BF.STATS k",
        "BF.DEBUG k",
        "BF.SCANDUMP k 0",
        "BF.SCANDUMP k 1",
        "MEMORY USAGE k",
        "CF.COUNT k x",
        "CF.INFO k",
        "CF.STATS k",
        "CF.DEBUG k",
        "CF.SCANDUMP k 0",
        "CF.SCANDUMP k 1",
        "DEBUG DIGEST",
        "COPY k k2 REPLACE",
        "BF.MADD k a b c d e f g",
        "CF.INSERT k ITEMS a b c d e f g",
        "CF.DEL k a",
        "CF.COMPACT k",
        "DUMP k",
        "DEL k k2",
    ] {
        let words = command.split(' ');
        let words = words.map(|word| if word == "k" { key } else { word });
        client.call(&words.collect::<Vec<_>>());
    }
}
