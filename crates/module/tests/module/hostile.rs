//! Payloads that nobody of good will makes: an error, and the server goes on.

use everbloom_resp::Reply;

use crate::golden::{envelope, folder, for_the_host};
use crate::support::{Client, Host};

/// A small generator of numbers that look random; the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}

/// The values of filters of several kinds, each from its type byte on.
fn values(client: &mut Client) -> Vec<Vec<u8>> {
    client.ok("BF.ADD small a");
    client.ok("BF.RESERVE grown 0.01 3");
    for i in 0..40 {
        client.ok(&format!("BF.ADD grown {i}"));
    }
    client.ok("BF.RESERVE fixed 0.001 100 NONSCALING");
    let keys = ["small", "grown", "fixed"];
    let dump = |key: &str| {
        let payload = client.ok(&format!("DUMP {key}"));
        let payload = payload.as_bytes().unwrap();
        payload[..payload.len() - 10].to_vec()
    };
    keys.map(dump).to_vec()
}

/// One of the ways in which bytes go wrong.
fn damage(value: &[u8], random: &mut Random) -> Vec<u8> {
    const NASTY: [u8; 8] = [0, 1, 2, 5, 0x7f, 0x80, 0x81, 0xff];
    let mut value = value.to_vec();
    // The type byte and the id stay, or it would not be for this module to read.
    let at = 10 + random.below(value.len() - 10);
    match random.below(5) {
        0 => value[at] ^= 1 << random.below(8),
        1 => value[at] = NASTY[random.below(NASTY.len())],
        2 => value.truncate(at),
        3 => {
            // A length or a number of 64 bits in the place of a short one.
            let mut long = vec![0x81];
            long.extend_from_slice(&random.next().to_be_bytes());
            value.splice(at..=at, long);
        }
        _ => {
            let from = 10 + random.below(value.len() - 10);
            let len = random.below(40).min(value.len() - from.max(at));
            value.copy_within(from..from + len, at);
        }
    }
    value
}

/// What is refused leaves nothing, and what is taken can be worked with.
fn offer(client: &mut Client, payload: &[u8]) -> bool {
    match client.call(&[b"RESTORE", &b"k"[..], b"0", payload]) {
        Reply::Error(text) => {
            assert_eq!(text, "ERR Bad data format");
            assert_eq!(client.number("EXISTS k"), 0);
            false
        }
        _ => {
            for line in [
                "BF.EXISTS k x",
                "BF.INFO k",
                "BF.DEBUG k",
                "BF.SCANDUMP k 0",
                "BF.SCANDUMP k 1",
                "MEMORY USAGE k",
                "DEBUG DIGEST-VALUE k",
                "COPY k k2",
                "BF.MADD k a b c d e f g",
                "DUMP k",
                "DEL k k2",
            ] {
                client.line(line);
            }
            true
        }
    }
}

#[test]
fn damaged_payloads_are_refused() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let mut random = Random(0x5eed);
    let (mut taken, mut refused) = (0, 0);
    for value in values(&mut client) {
        for _ in 0..1500 {
            if offer(&mut client, &envelope(&damage(&value, &mut random))) {
                taken += 1;
            } else {
                refused += 1;
            }
        }
        // At every length, and every byte as the end of all lengths.
        for end in 10..value.len() {
            offer(&mut client, &envelope(&value[..end]));
        }
    }
    // Bits may be anything, numbers may not: both must have been tried.
    assert!(
        taken > 200 && refused > 1000,
        "{taken} taken, {refused} refused"
    );
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
}

#[test]
fn damaged_headers_and_chunks_are_refused() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    values(&mut client);
    let mut random = Random(7);
    let header = client.ok("BF.SCANDUMP grown 0");
    let header = crate::support::elements(header)[1]
        .as_bytes()
        .unwrap()
        .to_vec();
    for _ in 0..1500 {
        let mut damaged = header.clone();
        for _ in 0..=random.below(2) {
            let at = random.below(damaged.len());
            damaged[at] = u8::try_from(random.below(256)).unwrap();
        }
        if random.below(8) == 0 {
            damaged.truncate(random.below(header.len()));
        }
        let reply = client.call(&[b"BF.LOADCHUNK", &b"k"[..], b"1", &damaged]);
        if reply == Reply::OK {
            let (iterator, len) = (random.next().cast_signed(), random.below(300));
            let iterator = if random.below(2) == 0 {
                iterator
            } else {
                iterator % 500
            };
            client.call(&[
                b"BF.LOADCHUNK",
                &b"k"[..],
                iterator.to_string().as_bytes(),
                &vec![0xff; len],
            ]);
            for line in [
                "BF.EXISTS k x",
                "BF.DEBUG k",
                "BF.ADD k x",
                "BF.MADD k a b c",
                "DUMP k",
                "DEL k",
            ] {
                client.line(line);
            }
        } else {
            assert_eq!(reply, Reply::error("ERR received bad data"));
        }
    }
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
}

/// A file that is damaged stops the start, as Redis has it, with a reason in the log.
#[test]
fn a_damaged_file_stops_the_start() {
    let Some(program) = crate::support::host_program() else {
        return;
    };
    let file = for_the_host(&std::fs::read(folder().join("rdb/bloom.rdb")).unwrap());
    let id = [0x81, 0x30, 0x16, 0xe5, 0xa2, 0x89, 0xbe, 0xf8, 4];
    let at = file.windows(9).position(|part| part == id).unwrap();
    let mut damaged = file;
    // The number of layers, which no file has so many of.
    damaged[at + 12] = 0x3f;
    let end = damaged.len() - 8;
    damaged[end..].copy_from_slice(&[0; 8]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("dump.rdb"), damaged).unwrap();
    let output = std::process::Command::new(program)
        .args([
            "--port",
            &crate::support::free_port().to_string(),
            "--loadmodule",
        ])
        .arg(crate::support::module())
        .current_dir(dir.path())
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stdout).into_owned();
    // It ended by itself, with the code of the check of the file that Redis then makes.
    assert!(output.status.code().is_some(), "{log}");
    assert!(!log.contains("Ready to accept"), "{log}");
    assert!(log.contains("no valid Bloom filter"), "{log}");
    assert!(!log.contains("crashed by signal"), "{log}");
}
