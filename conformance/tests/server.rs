//! Our server behind a socket, compared with RedisBloom's answers.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use everbloom_conformance::dump::{self, Offer};
use everbloom_conformance::{Rules, TcpSubject, golden, run, transcript};
use everbloom_server::{Running, Server, Settings};

const RULES: Rules<'_> = Rules {
    skip_cases: &[],
    skip_steps: &[
        (
            "cf-scandump-inside-a-table",
            "CF.SCANDUMP",
            "RedisBloom gives the whole table for any position in it",
        ),
        (
            "generic-commands",
            "COPY",
            "RedisBloom's filters cannot be copied",
        ),
    ],
};

/// A server on its own port. It stops when dropped.
fn start() -> (Running, TcpSubject) {
    let settings = Settings {
        bind: vec!["127.0.0.1".into()],
        port: 0,
        ..Settings::default()
    };
    let running = Server::start(settings).unwrap();
    let subject = TcpSubject::connect(running.addr().unwrap()).unwrap();
    (running, subject)
}

#[test]
fn every_recorded_reply_is_given_again() {
    let (_running, mut subject) = start();
    let cases = transcript::read(&golden().join("transcripts.jsonl")).unwrap();
    let report = run(&cases, &RULES, &mut subject).unwrap();
    assert!(report.differences.is_empty(), "{report}");
    let found = (
        report.cases,
        report.compared,
        report.skipped.len(),
        report.skipped_cases.len(),
    );
    assert_eq!(found, (72, 1984, 10, 0), "{report}");
}

#[test]
fn recorded_dumps_load_answer_and_dump_again() {
    let (_running, mut subject) = start();
    for dump in dump::read_all(&golden().join("scandump")).unwrap() {
        let differences = dump::check_load(&dump, &mut subject).unwrap();
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}

#[test]
fn recorded_filters_are_built_again_bit_for_bit() {
    let (_running, mut subject) = start();
    for dump in dump::read_all(&golden().join("scandump")).unwrap() {
        for offer in [Offer::Add, Offer::Madd, Offer::Insert(7)] {
            let differences = dump::check_rebuild(&dump, offer, &mut subject).unwrap();
            assert!(
                differences.is_empty(),
                "{offer:?}\n{}",
                differences.join("\n")
            );
        }
    }
}
