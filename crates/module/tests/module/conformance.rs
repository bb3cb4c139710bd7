//! What RedisBloom answered, asked of the module.

use everbloom_conformance::dump::{self, Offer};
use everbloom_conformance::runner::Place;
use everbloom_conformance::{Rules, TcpSubject, golden, run, transcript};

use crate::support::{Host, from_redis_7};

const RULES: Rules<'_> = Rules {
    skip_cases: &[],
    skip_steps: &[(
        "cf-scandump-inside-a-table",
        "CF.SCANDUMP",
        "RedisBloom gives the whole table for any position in it",
    )],
};

/// What another host, or one of another version, answers otherwise: a copy, which RedisBloom
/// refuses to make, and payloads of RDB versions that are too new for it.
fn of_the_host(place: &Place) -> bool {
    match place.case.as_str() {
        "generic-commands" => matches!(place.step, 16 | 17),
        "restore-rdb-versions" => matches!(place.step, 4..=9),
        _ => false,
    }
}

#[test]
fn every_recorded_reply_is_given_again() {
    let Some(host) = Host::start(&[]) else { return };
    let mut subject = TcpSubject::connect(host.addr()).unwrap();
    let mut cases = transcript::read(&golden().join("transcripts.jsonl")).unwrap();
    let all = cases.len();
    if !from_redis_7() {
        // Older hosts let modules answer in RESP2 only.
        cases.retain(|case| case.resp == 2);
    }
    let mut report = run(&cases, &RULES, &mut subject).unwrap();
    report
        .differences
        .retain(|difference| !of_the_host(&difference.place));
    assert!(report.differences.is_empty(), "{report}");
    let found = (
        report.cases,
        report.compared,
        report.skipped.len(),
        report.skipped_cases.len(),
    );
    if cases.len() == all {
        assert_eq!(found, (72, 1986, 8, 0), "{report}");
    } else {
        assert_eq!(found, (36, 993, 4, 0), "{report}");
    }
}

#[test]
fn recorded_dumps_load_answer_and_dump_again() {
    let Some(host) = Host::start(&[]) else { return };
    let mut subject = TcpSubject::connect(host.addr()).unwrap();
    for dump in dump::read_all(&golden().join("scandump")).unwrap() {
        let differences = dump::check_load(&dump, &mut subject).unwrap();
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}

#[test]
fn recorded_filters_are_built_again_bit_for_bit() {
    let Some(host) = Host::start(&[]) else { return };
    let mut subject = TcpSubject::connect(host.addr()).unwrap();
    for dump in dump::read_all(&golden().join("scandump")).unwrap() {
        for offer in [Offer::Add, Offer::Madd, Offer::Insert(7)] {
            let differences = dump::check_rebuild(&dump, offer, &mut subject).unwrap();
            let differences = differences.join("\n");
            assert!(differences.is_empty(), "{offer:?}\n{differences}");
        }
    }
}
