//! What a connection, its settings and the server as a whole answer, beside redis-server's answers.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::io::Write;
use std::time::{Duration, Instant};

use crate::support::{Client, OfRunning, Redis, server};
use everbloom_resp::{Reply, encode_request};
use everbloom_server::Settings;

mod beside_redis;
mod ends;
mod figures;
mod greeting;
mod kept;
mod settings;

/// Sends both servers the same lines, in which `~` is a space within a word; the replies must have
/// the same bytes.
fn compare(lines: &[&str]) {
    let Some(redis) = Redis::start(&[]) else {
        return;
    };
    let running = server(Settings::default());
    let (mut theirs, mut ours) = (Client::connect(redis.addr), Client::of(&running));
    for line in lines {
        let words: Vec<String> = line
            .split(' ')
            .map(|w| {
                if w == "''" {
                    "".into()
                } else {
                    w.replace('~', " ")
                }
            })
            .collect();
        theirs.send(&words);
        ours.send(&words);
        let show = |reply: Option<(Reply, Vec<u8>)>| {
            reply.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned())
        };
        assert_eq!(show(ours.raw_reply()), show(theirs.raw_reply()), "{line}");
    }
}

fn field(reply: &Reply, name: &str) -> Reply {
    let pairs: Vec<(Reply, Reply)> = match reply {
        Reply::Map(pairs) => pairs.clone(),
        Reply::Array(flat) => flat
            .chunks(2)
            .map(|p| (p[0].clone(), p[1].clone()))
            .collect(),
        other => panic!("{other:?}"),
    };
    let found = pairs.into_iter().find(|(key, _)| *key == Reply::bulk(name));
    found.unwrap_or_else(|| panic!("no {name} in {reply:?}")).1
}

fn text(reply: &Reply) -> String {
    String::from_utf8(
        reply
            .as_bytes()
            .unwrap_or_else(|| panic!("{reply:?}"))
            .to_vec(),
    )
    .unwrap()
}
