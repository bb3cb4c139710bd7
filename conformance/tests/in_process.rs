//! The commands without a host, compared with RedisBloom's answers.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod common;

use common::InProcess;
use everbloom_conformance::dump::{self, Offer};
use everbloom_conformance::{Rules, golden, run, transcript};

/// These cases need a server around the commands.
const RULES: Rules<'_> = Rules {
    skip_cases: &[
        ("restore", "RESTORE belongs to the host"),
        ("generic-commands", "about the host's own commands"),
    ],
    skip_steps: &[(
        "cf-scandump-inside-a-table",
        "CF.SCANDUMP",
        "RedisBloom gives the whole table for any position in it",
    )],
};

#[test]
fn every_recorded_reply_is_given_again() {
    let cases = transcript::read(&golden().join("transcripts.jsonl")).unwrap();
    let report = run(&cases, &RULES, &mut InProcess::default()).unwrap();
    assert!(report.differences.is_empty(), "{report}");
    // The numbers are exact, so that no step can drop out of the comparison unseen. There are 32
    // cases in two protocols.
    let found = (
        report.cases,
        report.compared,
        report.skipped.len(),
        report.skipped_cases.len(),
    );
    assert_eq!(found, (64, 1754, 8, 8));
}

#[test]
fn recorded_dumps_load_answer_and_dump_again() {
    for dump in dump::read_all(&golden().join("scandump")).unwrap() {
        let differences = dump::check_load(&dump, &mut InProcess::default()).unwrap();
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}

#[test]
fn recorded_filters_are_built_again_bit_for_bit() {
    let dumps = dump::read_all(&golden().join("scandump")).unwrap();
    assert_eq!(dumps.len(), 11);
    for dump in dumps {
        for offer in [Offer::Add, Offer::Madd, Offer::Insert(7), Offer::Insert(64)] {
            let mut subject = InProcess::default();
            let differences = dump::check_rebuild(&dump, offer, &mut subject).unwrap();
            assert!(
                differences.is_empty(),
                "{offer:?}\n{}",
                differences.join("\n")
            );
        }
    }
}
