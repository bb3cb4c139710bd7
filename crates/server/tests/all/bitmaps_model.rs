//! Commands on bits against a model: a vector of bits. It needs no other server.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    missing_docs
)]

use std::cell::RefCell;

use crate::support::{Client, OfRunning, server};
use everbloom_resp::Reply;
use everbloom_server::Settings;
use proptest::prelude::*;

/// A string as its bits, a multiple of 8 of them.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model(Vec<bool>);

impl Model {
    fn get(&self, at: usize) -> bool {
        self.0.get(at).copied().unwrap_or(false)
    }

    fn reach(&mut self, bits: usize) {
        let bits = bits.next_multiple_of(8);
        if bits > self.0.len() {
            self.0.resize(bits, false);
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| bits.iter().fold(0, |all, bit| all << 1 | u8::from(*bit));
        self.0.chunks(8).map(byte).collect()
    }

    /// The positions of a range of bits or bytes, each end of it from either end of the string.
    fn range(&self, first: i64, last: i64, unit: usize) -> Vec<usize> {
        let units = (self.0.len() / unit) as i64;
        let from_start = |at: i64| if at < 0 { (units + at).max(0) } else { at };
        let (first, last) = (from_start(first), from_start(last));
        let inside = (first..=last).filter(|at| *at < units);
        let bits = inside.flat_map(|at| (0..unit).map(move |bit| at as usize * unit + bit));
        bits.collect()
    }

    fn number(&self, field: &Field) -> i128 {
        let bits = field.at..field.at + field.width;
        let number = bits.fold(0, |all, bit| all << 1 | i128::from(self.get(bit)));
        let negative = field.signed && self.get(field.at);
        number - if negative { 1 << field.width } else { 0 }
    }

    fn write(&mut self, field: &Field, number: i128) {
        for (at, place) in (field.at..field.at + field.width).enumerate() {
            self.0[place] = number >> (field.width - 1 - at) & 1 == 1;
        }
    }
}

#[derive(Debug, Clone)]
struct Field {
    signed: bool,
    width: usize,
    at: usize,
}

#[derive(Debug, Clone)]
enum Step {
    Set(usize, bool),
    Get(usize),
    Count(i64, i64, bool),
    Find(bool, i64, Option<(i64, bool)>),
    Join(usize, usize),
    Invert(usize),
    Write(Field, Written, i64, usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Written {
    Sum,
    Number,
}

fn field() -> impl Strategy<Value = Field> {
    (any::<bool>(), 1_usize..=64, 0_usize..150).prop_map(|(signed, width, at)| Field {
        signed,
        width: if signed { width } else { width.min(63) },
        at,
    })
}

fn written() -> impl Strategy<Value = Written> {
    prop::sample::select(vec![Written::Sum, Written::Number])
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        -5_i64..5,
        any::<i64>(),
        prop::sample::select(vec![127, 128, 255, 256, -128, -129, i64::MIN, i64::MAX]),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = || -30_i64..30;
    let step = prop_oneof![
        4 => (0_usize..200, any::<bool>()).prop_map(|(at, on)| Step::Set(at, on)),
        1 => (0_usize..300).prop_map(Step::Get),
        2 => (index(), index(), any::<bool>()).prop_map(|(a, b, bits)| Step::Count(a, b, bits)),
        2 => (any::<bool>(), index(), prop::option::of((index(), any::<bool>())))
            .prop_map(|(wanted, a, end)| Step::Find(wanted, a, end)),
        1 => (0_usize..3, 0_usize..2).prop_map(|(how, other)| Step::Join(how, other)),
        1 => (0_usize..2).prop_map(Step::Invert),
        4 => (field(), written(), number(), 0_usize..3)
            .prop_map(|(field, what, number, over)| Step::Write(field, what, number, over)),
    ];
    prop::collection::vec(step, 0..60)
}

const OVERFLOW: [&str; 3] = ["WRAP", "SAT", "FAIL"];

/// What is written for a number that may not fit.
fn settled(field: &Field, wanted: i128, overflow: &str) -> Option<i128> {
    let sign = usize::from(field.signed);
    let greatest = (1_i128 << (field.width - sign)) - 1;
    let least = if field.signed { -greatest - 1 } else { 0 };
    match overflow {
        _ if (least..=greatest).contains(&wanted) => Some(wanted),
        "FAIL" => None,
        "SAT" => Some(wanted.clamp(least, greatest)),
        _ => {
            let lowest = wanted & ((1 << field.width) - 1);
            Some(if lowest > greatest {
                lowest - (1 << field.width)
            } else {
                lowest
            })
        }
    }
}

/// BITPOS.
fn find(k: &Model, wanted: bool, first: i64, end: Option<(i64, bool)>) -> (String, Reply) {
    let (last, bits) = end.unwrap_or((-1, false));
    let range = k.range(first, last, if bits { 1 } else { 8 });
    let found = range.iter().find(|at| k.get(**at) == wanted).copied();
    let behind = (end.is_none() && !wanted && !range.is_empty()).then_some(k.0.len());
    let absent = (k.0.is_empty() && !wanted).then_some(0);
    let reply = found
        .or(behind)
        .or(absent)
        .map_or(Reply::Integer(-1), |at| Reply::Integer(at as i64));
    let end = end.map_or(String::new(), |(last, bits)| {
        format!(" {last} {}", if bits { "BIT" } else { "BYTE" })
    });
    (format!("BITPOS k {} {first}{end}", u8::from(wanted)), reply)
}

/// BITFIELD, and what the field holds afterwards.
fn write(
    k: &mut Model,
    field: &Field,
    what: Written,
    number: i64,
    overflow: &str,
) -> (String, Reply) {
    k.reach(field.at + field.width);
    let old = k.number(field);
    let (word, wanted) = match what {
        Written::Sum => ("INCRBY", old + i128::from(number)),
        Written::Number if field.signed => ("SET", i128::from(number)),
        Written::Number => ("SET", i128::from(number.cast_unsigned())),
    };
    let new = settled(field, wanted, overflow);
    if let Some(new) = new {
        k.write(field, new);
    }
    let reply = new.map_or(Reply::Null, |new| {
        Reply::Integer(if what == Written::Sum { new } else { old } as i64)
    });
    let sign = if field.signed { 'i' } else { 'u' };
    let kind = format!("{sign}{} {}", field.width, field.at);
    let line = format!("BITFIELD k OVERFLOW {overflow} {word} {kind} {number} GET {kind}");
    let after = Reply::Integer(k.number(field) as i64);
    (line, Reply::Array(vec![reply, after]))
}

/// Executes a step on the two strings of the model, the first of which is `k`; the line and what
/// must be answered.
fn execute(step: &Step, [k, l]: &mut [Model; 2]) -> (String, Reply) {
    let integer = |number: usize| Reply::Integer(number as i64);
    match step {
        Step::Set(at, on) => {
            let old = k.get(*at);
            k.reach(at + 1);
            k.0[*at] = *on;
            (
                format!("SETBIT k {at} {}", u8::from(*on)),
                integer(old.into()),
            )
        }
        Step::Get(at) => (format!("GETBIT k {at}"), integer(k.get(*at).into())),
        Step::Count(first, last, bits) => {
            let (unit, word) = if *bits { (1, "BIT") } else { (8, "BYTE") };
            let mut range = k.range(*first, *last, unit);
            if *first < 0 && *last < 0 && first > last {
                range.clear();
            }
            let ones = range.iter().filter(|at| k.get(**at)).count();
            (format!("BITCOUNT k {first} {last} {word}"), integer(ones))
        }
        Step::Find(wanted, first, end) => find(k, *wanted, *first, *end),
        Step::Join(how, to) => {
            let (word, rule): (_, fn(bool, bool) -> bool) = [
                ("AND", (|a, b| a && b) as fn(bool, bool) -> bool),
                ("OR", |a, b| a || b),
                ("XOR", |a, b| a != b),
            ][*how];
            let len = k.0.len().max(l.0.len());
            let joined = Model((0..len).map(|at| rule(k.get(at), l.get(at))).collect());
            let name = ["k", "l"][*to];
            *[k, l][*to] = joined;
            (format!("BITOP {word} {name} k l"), integer(len / 8))
        }
        Step::Invert(to) => {
            let inverted = Model(k.0.iter().map(|bit| !bit).collect());
            let len = inverted.0.len() / 8;
            let name = ["k", "l"][*to];
            *[k, l][*to] = inverted;
            (format!("BITOP NOT {name} k"), integer(len))
        }
        Step::Write(field, what, number, overflow) => {
            write(k, field, *what, *number, OVERFLOW[*overflow])
        }
    }
}

#[test]
fn commands_do_to_strings_what_the_model_does_to_bits() {
    let running = server(Settings::default());
    let client = RefCell::new(Client::of(&running));
    proptest!(|(steps in steps())| {
        let mut client = client.borrow_mut();
        client.ok("FLUSHALL");
        let mut models = [Model::default(), Model::default()];
        for step in &steps {
            let (line, reply) = execute(step, &mut models);
            prop_assert_eq!(client.line(&line), reply, "{}", line);
        }
        for (name, model) in ["k", "l"].into_iter().zip(&models) {
            let wanted = match model.0.is_empty() {
                true => Reply::Null,
                false => Reply::Bulk(model.bytes()),
            };
            prop_assert_eq!(client.line(&format!("GET {name}")), wanted);
        }
    });
}
