//! Replays recorded conversations against a subject and compares every byte.
//!
//! A case or a step is left out only by an entry of [`Rules`], which gives a reason. Everything
//! left out is counted with its reason, so that tests can check the numbers.

use crate::transcript::{Case, Step};
use std::fmt;
use std::io;

/// Anything that answers commands.
pub trait Subject {
    /// Starts again, as a client of this protocol version: 2 or 3.
    fn connect(&mut self, resp: u8) -> io::Result<()>;

    /// Sends one command and returns all bytes of its reply.
    fn call(&mut self, args: &[Vec<u8>]) -> io::Result<Vec<u8>>;
}

/// Which cases and steps are left out, and why.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules<'a> {
    /// The first part of the names of cases that are not run, with the reason.
    pub skip_cases: &'a [(&'a str, &'a str)],
    /// Steps that are not sent: case name, command name and reason.
    pub skip_steps: &'a [(&'a str, &'a str, &'a str)],
}

/// The results of a replay.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of cases that were run.
    pub cases: usize,
    /// The cases that were not run, with the reason.
    pub skipped_cases: Vec<(String, String)>,
    /// The number of replies that were compared.
    pub compared: usize,
    /// The steps that were not compared, of the cases that were run.
    pub skipped: Vec<Skipped>,
    /// The replies that differ from the recorded ones.
    pub differences: Vec<Difference>,
}

/// A step that was not compared.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// Where it is.
    pub place: Place,
    /// Why it was left out.
    pub reason: String,
}

/// A reply that differs from the recorded one.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Where it is.
    pub place: Place,
    /// The reply of RedisBloom.
    pub want: Vec<u8>,
    /// The reply of the subject.
    pub got: Vec<u8>,
}

/// A step of a case.
#[derive(Clone, Debug)]
pub struct Place {
    /// The name of the case.
    pub case: String,
    /// The protocol version of the case.
    pub resp: u8,
    /// The position of the step, from 0.
    pub step: usize,
    /// The command, for people.
    pub command: String,
}

/// Runs all cases that the rules do not leave out.
pub fn run(cases: &[Case], rules: &Rules<'_>, subject: &mut impl Subject) -> io::Result<Report> {
    let mut report = Report::default();
    for case in cases {
        let skip = rules
            .skip_cases
            .iter()
            .find(|(prefix, _)| case.name.starts_with(prefix));
        match skip {
            Some((_, reason)) => {
                report
                    .skipped_cases
                    .push((case.name.clone(), (*reason).to_owned()));
            }
            None => run_case(case, rules, subject, &mut report)?,
        }
    }
    Ok(report)
}

fn run_case(
    case: &Case,
    rules: &Rules<'_>,
    subject: &mut impl Subject,
    report: &mut Report,
) -> io::Result<()> {
    report.cases += 1;
    subject.connect(case.resp)?;
    subject.call(&words(&["FLUSHALL"]))?;
    let mut db = 0;
    for (index, step) in case.steps.iter().enumerate() {
        if step.db != db {
            db = step.db;
            subject.call(&words(&["SELECT", &db.to_string()]))?;
        }
        let place = Place {
            case: case.name.clone(),
            resp: case.resp,
            step: index,
            command: show_command(step),
        };
        let skip = rules
            .skip_steps
            .iter()
            .find(|(name, command, _)| *name == case.name && *command == step.name());
        if let Some((_, _, reason)) = skip {
            let reason = (*reason).to_owned();
            report.skipped.push(Skipped { place, reason });
            continue;
        }
        let got = subject.call(&step.args())?;
        report.compared += 1;
        if got != step.reply {
            let want = step.reply.clone();
            report.differences.push(Difference { place, want, got });
        }
    }
    Ok(())
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// The command for people: escaped and not too long.
fn show_command(step: &Step) -> String {
    let args: Vec<String> = step
        .args()
        .iter()
        .map(|arg| arg.escape_ascii().to_string())
        .collect();
    shorten(&args.join(" "), 120)
}

fn shorten(text: &str, most: usize) -> String {
    // Escaped text is ASCII, so each character is one byte.
    match text.get(..most) {
        Some(start) if text.len() > most => format!("{start}... ({} in all)", text.len()),
        _ => text.to_owned(),
    }
}

impl Report {
    /// The number of steps left out for this reason.
    pub fn skipped_for(&self, reason: &str) -> usize {
        self.skipped
            .iter()
            .filter(|skipped| skipped.reason == reason)
            .count()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (RESP{}) #{}: {}",
            self.case, self.resp, self.step, self.command
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            let show = |bytes: &[u8]| shorten(&bytes.escape_ascii().to_string(), 300);
            writeln!(f, "{}", difference.place)?;
            writeln!(f, "    want {}", show(&difference.want))?;
            writeln!(f, "    got  {}", show(&difference.got))?;
        }
        for skipped in &self.skipped {
            writeln!(f, "not compared: {} [{}]", skipped.place, skipped.reason)?;
        }
        write!(
            f,
            "{} cases, {} replies compared, {} differences, {} steps and {} cases left out",
            self.cases,
            self.compared,
            self.differences.len(),
            self.skipped.len(),
            self.skipped_cases.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers `+OK` to everything and keeps the commands.
    #[derive(Default)]
    struct Yes(Vec<String>);

    impl Subject for Yes {
        fn connect(&mut self, resp: u8) -> io::Result<()> {
            self.0.push(format!("connect {resp}"));
            Ok(())
        }

        fn call(&mut self, args: &[Vec<u8>]) -> io::Result<Vec<u8>> {
            self.0.push(String::from_utf8(args.join(&b' ')).unwrap());
            Ok(b"+OK\r\n".to_vec())
        }
    }

    fn case(name: &str, steps: &[(u32, &str, &str)]) -> Case {
        let steps = steps.iter().map(|(db, command, reply)| {
            let words = serde_json::to_string(&command.split(' ').collect::<Vec<_>>()).unwrap();
            let hex: String = reply.bytes().map(|byte| format!("{byte:02x}")).collect();
            format!(r#"{{"db": {db}, "cmd": {words}, "reply_hex": "{hex}"}}"#)
        });
        let steps = steps.collect::<Vec<_>>().join(",");
        serde_json::from_str(&format!(
            r#"{{"case": "{name}", "resp": 3, "steps": [{steps}]}}"#
        ))
        .unwrap()
    }

    fn run_one(case: Case, rules: &Rules<'_>) -> (Report, Vec<String>) {
        let mut subject = Yes::default();
        let report = run(&[case], rules, &mut subject).unwrap();
        (report, subject.0)
    }

    #[test]
    fn a_single_wrong_byte_is_reported_with_its_place() {
        let steps = [
            (0, "BF.RESERVE k 0.1 1", "+OK\r\n"),
            (3, "BF.ADD k a", "+OK\n\n"),
        ];
        let (report, asked) = run_one(case("x", &steps), &Rules::default());
        assert_eq!(
            (report.cases, report.compared, report.differences.len()),
            (1, 2, 1)
        );
        let text = report.to_string();
        assert!(text.contains("x (RESP3) #1: BF.ADD k a"), "{text}");
        assert!(text.contains("want +OK\\n\\n"), "{text}");
        let expected = [
            "connect 3",
            "FLUSHALL",
            "BF.RESERVE k 0.1 1",
            "SELECT 3",
            "BF.ADD k a",
        ];
        assert_eq!(asked, expected);
    }

    #[test]
    fn rules_leave_out_cases_and_steps() {
        let steps = [(0, "COPY a b", "-ERR\r\n"), (0, "GET a", "+OK\r\n")];
        let rules = Rules {
            skip_cases: &[("cf-", "cuckoo")],
            skip_steps: &[("x", "COPY", "copies")],
        };
        let (report, _) = run_one(case("x", &steps), &rules);
        assert_eq!((report.compared, report.skipped_for("copies")), (1, 1));
        let (report, asked) = run_one(case("cf-add", &steps), &rules);
        assert_eq!(
            (report.cases, report.skipped_cases.len(), asked.len()),
            (0, 1, 0)
        );
    }
}
