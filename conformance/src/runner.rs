//! Replays recorded conversations against a subject and compares every byte.
//!
//! The recordings also use what our hosts do not have: cuckoo filters (`CF.*`). The rule for those:
//!
//! - a case is left out as a whole only by a [`Rules::skip_cases`] entry, which gives a reason;
//! - a step whose command is `CF.*`, or that RESTOREs a cuckoo filter with success, is not sent.
//!   One that succeeds on a fresh key leaves a *stand-in* there, a string, because the BF commands
//!   care only that the key is of another type;
//! - a later step that names a stand-in is compared when its answer is the same for every other
//!   type: BF.*, DEL, UNLINK and EXISTS. Any other such step is not sent.
//!
//! Everything that is left out is counted, with its reason, so that tests can pin the numbers.

use crate::transcript::{Case, Step};
use std::collections::HashSet;
use std::fmt;
use std::io;

/// Anything that can be asked commands.
pub trait Subject {
    /// Starts anew as a client that speaks this protocol version: 2 or 3.
    fn connect(&mut self, resp: u8) -> io::Result<()>;

    /// Sends one command and gives back the bytes of its reply, all of them.
    fn call(&mut self, args: &[Vec<u8>]) -> io::Result<Vec<u8>>;
}

/// What is left out, and why.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules<'a> {
    /// Beginnings of case names that are not run, with the reason.
    pub skip_cases: &'a [(&'a str, &'a str)],
    /// Case name, command name and reason of steps that are not sent.
    pub skip_steps: &'a [(&'a str, &'a str, &'a str)],
}

/// What a run found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many cases were run.
    pub cases: usize,
    /// The cases that were not run, with the reason.
    pub skipped_cases: Vec<(String, String)>,
    /// How many replies were compared.
    pub compared: usize,
    /// How many of those were about a stand-in.
    pub stand_ins: usize,
    /// The steps of the cases run that were not compared.
    pub skipped: Vec<Skipped>,
    /// The replies that were not as recorded.
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

/// A reply that was not as recorded.
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
    /// Its protocol version.
    pub resp: u8,
    /// The position of the step, from 0.
    pub step: usize,
    /// The command.
    pub command: String,
}

/// Runs all cases that the rules leave.
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
    let mut substitutes = Substitutes::default();
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
        let plan = match rules
            .skip_steps
            .iter()
            .find(|(name, command, _)| *name == case.name && *command == step.name())
        {
            Some((_, _, reason)) => Plan::Skip((*reason).to_owned()),
            None => substitutes.plan(step),
        };
        match plan {
            Plan::Skip(reason) => report.skipped.push(Skipped { place, reason }),
            Plan::StandIn(key, reason) => {
                subject.call(&[b"SET".to_vec(), key, b"stand-in".to_vec()])?;
                report.skipped.push(Skipped { place, reason });
            }
            Plan::Compare { stand_in } => {
                let got = subject.call(&step.args())?;
                report.compared += 1;
                report.stand_ins += usize::from(stand_in);
                if got != step.reply {
                    let want = step.reply.clone();
                    report.differences.push(Difference { place, want, got });
                }
            }
        }
    }
    Ok(())
}

/// What to do about one step.
enum Plan {
    Compare { stand_in: bool },
    Skip(String),
    StandIn(Vec<u8>, String),
}

/// A key of a case: database and name.
type Key = (u32, Vec<u8>);

/// The keys of a case that are not what they were when it was recorded.
#[derive(Default)]
struct Substitutes {
    stand_ins: HashSet<Key>,
}

impl Substitutes {
    fn plan(&mut self, step: &Step) -> Plan {
        let name = step.name();
        let keys: Vec<Key> = keys(step).into_iter().map(|key| (step.db, key)).collect();
        let refused = step.reply.starts_with(b"-");
        let restored = name == "RESTORE" && !refused && restores_cuckoo(step);
        if name.starts_with("CF.") || restored {
            return match keys.into_iter().next() {
                // Creating or not, CF.RESERVE and the adds leave a cuckoo key or an error.
                Some(key) if restored || makes_cuckoo(&name) && !refused => {
                    self.stand_ins.insert(key.clone());
                    Plan::StandIn(key.1, "cuckoo filter".to_owned())
                }
                _ => Plan::Skip("cuckoo filter".to_owned()),
            };
        }
        let stand_in = keys.iter().any(|key| self.stand_ins.contains(key));
        match name.as_str() {
            "DEL" | "UNLINK" => {
                for key in &keys {
                    self.stand_ins.remove(key);
                }
            }
            "EXISTS" => {}
            _ if stand_in && !name.starts_with("BF.") => {
                return Plan::Skip("depends on the type of a cuckoo key".to_owned());
            }
            _ => {}
        }
        Plan::Compare { stand_in }
    }
}

fn makes_cuckoo(name: &str) -> bool {
    matches!(
        name,
        "CF.RESERVE" | "CF.ADD" | "CF.ADDNX" | "CF.INSERT" | "CF.INSERTNX"
    )
}

/// Whether the payload of a RESTORE is a value of RedisBloom's type `MBbloomCF`.
fn restores_cuckoo(step: &Step) -> bool {
    /// A module value, a number of 64 bits, and the first eight characters of the name, six bits
    /// each.
    const START: [u8; 8] = [7, 0x81, 0x30, 0x16, 0xe5, 0xa2, 0x89, 0x82];
    /// The ninth, `F`, in front of the version.
    const LAST: u8 = 5;
    let payload = step.args().into_iter().nth(3).unwrap_or_default();
    match payload.strip_prefix(&START) {
        Some([next, ..]) => next >> 2 == LAST,
        _ => false,
    }
}

/// The arguments of a step that are keys.
fn keys(step: &Step) -> Vec<Vec<u8>> {
    let at_most = match step.name().as_str() {
        "DEL" | "UNLINK" | "EXISTS" => usize::MAX,
        "RENAME" | "RENAMENX" | "COPY" => 2,
        _ => 1,
    };
    step.args().into_iter().skip(1).take(at_most).collect()
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// The command for a person: escaped and not too long.
fn show_command(step: &Step) -> String {
    let args: Vec<String> = step
        .args()
        .iter()
        .map(|arg| arg.escape_ascii().to_string())
        .collect();
    shorten(&args.join(" "), 120)
}

fn shorten(text: &str, most: usize) -> String {
    // Escaped text is ASCII, so characters are bytes.
    match text.get(..most) {
        Some(start) if text.len() > most => format!("{start}... ({} in all)", text.len()),
        _ => text.to_owned(),
    }
}

impl Report {
    /// How many steps were left out for this reason.
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

    /// Answers `+OK` to everything and keeps what it was asked.
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
    fn a_cuckoo_key_is_stood_in_for_until_it_is_deleted() {
        let steps = [
            (0, "CF.ADD c a", ":1\r\n"),
            (0, "BF.ADD c a", "+OK\r\n"),
            (0, "TYPE c", "+MBbloomCF\r\n"),
            (1, "TYPE c", "+OK\r\n"),
            (0, "CF.EXISTS c a", ":1\r\n"),
            (0, "DEL b c", "+OK\r\n"),
            (0, "TYPE c", "+OK\r\n"),
            (0, "CF.RESERVE e 0", "-ERR\r\n"),
            (0, "BF.ADD e a", "+OK\r\n"),
        ];
        let (report, asked) = run_one(case("x", &steps), &Rules::default());
        assert!(report.differences.is_empty(), "{report}");
        assert_eq!(
            (report.compared, report.stand_ins, report.skipped.len()),
            (5, 2, 4)
        );
        assert_eq!(report.skipped_for("cuckoo filter"), 3);
        assert!(asked.contains(&"SET c stand-in".to_owned()), "{asked:?}");
    }

    #[test]
    fn a_restored_cuckoo_filter_is_stood_in_for() {
        let mut made = case(
            "x",
            &[(0, "RESTORE c 0 x", "+OK\r\n"), (0, "TYPE c", "+OK\r\n")],
        );
        let payload = [7, 0x81, 0x30, 0x16, 0xe5, 0xa2, 0x89, 0x82, 0x14, 4];
        made.steps[0].command[3].0 = payload.to_vec();
        let (report, asked) = run_one(made.clone(), &Rules::default());
        assert_eq!((report.compared, report.skipped.len()), (0, 2), "{report}");
        assert!(asked.contains(&"SET c stand-in".to_owned()), "{asked:?}");
        // A Bloom filter differs in its name; what was refused is to be refused here, too.
        for (at, byte) in [(7, 0xbe), (8, 0xf8)] {
            let mut other = made.clone();
            other.steps[0].command[3].0[at] = byte;
            assert_eq!(plan(&other), 2);
        }
        made.steps[0].reply = b"-ERR Bad data format\r\n".to_vec();
        assert_eq!(plan(&made), 2);
    }

    /// How many steps of a case are compared.
    fn plan(case: &Case) -> usize {
        let mut substitutes = Substitutes::default();
        let plans = case.steps.iter().map(|step| substitutes.plan(step));
        plans
            .filter(|plan| matches!(plan, Plan::Compare { .. }))
            .count()
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
