//! Numbers as people type them: `9e8`, `900M`, `3*10^8`, `1/1000`, `0.1%`, `2GiB`.
//!
//! One parser for all subcommands, so that a number means the same everywhere. K, M, G, T and P are
//! powers of 1000, Ki, Mi, Gi, Ti and Pi powers of 1024.

use everbloom::sizing::BlockedSize;
use everbloom_plot::label;

/// The most items and the most bytes anybody can mean.
const MAX_NUMBER: f64 = 1e18;

/// Reads a number of items.
pub(crate) fn items(text: &str) -> Result<u64, String> {
    let number = evaluate(text, Units::Items)?;
    in_range(number, "items", "9e8, 900M or 3*10^8")
}

/// Reads a number of bytes.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    let number = evaluate(text, Units::Bytes)?;
    in_range(number, "bytes", "2G, 512MiB or 1e9")
}

/// The units of time, longest first, in milliseconds.
const TIMES: [(&str, u64); 5] = [
    ("week", 604_800_000),
    ("day", 86_400_000),
    ("hour", 3_600_000),
    ("minute", 60_000),
    ("second", 1000),
];

/// Reads a time in milliseconds: a number and the first letter of its unit.
pub(crate) fn duration(text: &str) -> Result<u64, String> {
    if let Some(better) = with_a_letter(text) {
        return Err(format!(
            "a unit of time is one letter: write it as {better}"
        ));
    }
    let found = TIMES.iter().find_map(|(name, unit)| {
        let number = text.strip_suffix(name.get(..1)?)?;
        Some((number, *unit as f64))
    });
    // `30ms` is not 30 million seconds.
    let found = found.filter(|(number, _)| !number.ends_with(|c: char| c.is_ascii_alphabetic()));
    let (number, unit) = found.ok_or("a time ends with s, m, h, d or w: 90s, 12h, 30d")?;
    let time = evaluate(number, Units::Items)? * unit;
    in_range(time, "milliseconds", "90s, 12h or 30d")
}

/// A time whose unit is a word, such as `30days` or `5 min`, with the letter of the unit.
fn with_a_letter(text: &str) -> Option<String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let word = text.strip_prefix(number)?.to_ascii_lowercase();
    if number.trim().is_empty() {
        return None;
    }
    let word = word.strip_suffix('s').unwrap_or(&word);
    let word = if word == "hr" { "hour" } else { word };
    let is_meant = |name: &str| word.len() > 1 && name.starts_with(word);
    let (name, _) = TIMES.iter().find(|(name, _)| is_meant(name))?;
    Some(format!("{}{}", number.trim(), name.get(..1)?))
}

/// Writes a time in the longest unit up to days that leaves no rest.
pub(crate) fn time(milliseconds: u64) -> String {
    let fits = |(_, unit): &&(&str, u64)| milliseconds.is_multiple_of(*unit);
    let (name, unit) = TIMES
        .iter()
        .skip(1)
        .find(fits)
        .unwrap_or(&("millisecond", 1));
    match milliseconds / unit {
        1 => format!("1 {name}"),
        count => format!("{count} {name}s"),
    }
}

/// Reads a whole number from `least` to `most`; a parser for an argument.
pub(crate) fn whole<T: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = to_whole(evaluate(text, Units::Items)?);
        let number = number.filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("expected a number from {least} to {most}"))
    }
}

/// Whether a filter of either layout can keep such an error rate.
pub(crate) fn is_rate(rate: f64) -> bool {
    (BlockedSize::MIN_RATE..1.0).contains(&rate)
}

/// Without the last digits, in which products of decimal numbers go wrong: 0.1 times 0.1 is 0.01.
pub(crate) fn rounded(number: f64) -> f64 {
    format!("{number:.12e}").parse().unwrap_or(number)
}

/// Reads an error rate.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = rounded(evaluate(text, Units::Part)?);
    if !(rate > 0.0 && rate < 1.0) {
        return Err(
            "an error rate is above 0 and below 1: for one percent write 1% or 0.01".into(),
        );
    }
    if !is_rate(rate) {
        return Err(format!(
            "no filter keeps a rate below {:e}, because hashes repeat: ask for more",
            BlockedSize::MIN_RATE
        ));
    }
    Ok(rate)
}

/// Writes a number with a space between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Writes an error rate that was measured or is expected, in per cent.
pub(crate) fn found_rate(rate: f64) -> String {
    // What nobody needs to know better.
    if rate < 1e-8 {
        return "less than 0.000001 %".to_owned();
    }
    label::percent(rate)
}

fn in_range(number: f64, what: &str, examples: &str) -> Result<u64, String> {
    if number > MAX_NUMBER {
        return Err(format!("at most 1e18 {what} can be planned for"));
    }
    // What is less than 1 is not rounded up.
    let number = to_whole(number).filter(|_| number >= 1.0);
    number.ok_or_else(|| format!("at least 1 is needed: write the {what} as {examples}"))
}

/// The nearest whole number, unless that is negative or too large.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be from 0 to 1e18"
)]
fn to_whole(number: f64) -> Option<u64> {
    (0.0..=MAX_NUMBER)
        .contains(&number)
        .then(|| number.round() as u64)
}

/// The suffixes of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Units {
    /// K, M, Ki, ...
    Items,
    /// The same, and B.
    Bytes,
    /// %.
    Part,
}

/// Reads a product of numbers and powers: `3*10^8`, `1/1000`.
fn evaluate(text: &str, units: Units) -> Result<f64, String> {
    if text.contains(',') {
        return Err("write the decimal point as `.`, and no commas: 0.1, 1000000".into());
    }
    let mut parser = Parser { rest: text, units };
    let mut value = parser.power()?;
    loop {
        if parser.takes("*") {
            value *= parser.power()?;
        } else if parser.takes("/") {
            value /= parser.power()?;
        } else if parser.rest.is_empty() {
            return Ok(value);
        } else {
            return Err(parser.complaint());
        }
    }
}

/// What is still to be read. Each function reads one kind of term from its start.
struct Parser<'a> {
    rest: &'a str,
    units: Units,
}

impl Parser<'_> {
    fn power(&mut self) -> Result<f64, String> {
        let base = self.signed()?;
        if self.takes("^") {
            return Ok(base.powf(self.signed()?));
        }
        Ok(base)
    }

    fn signed(&mut self) -> Result<f64, String> {
        // This skips spaces, too.
        let sign = if self.takes("-") { -1.0 } else { 1.0 };
        Ok(sign * self.digits()? * self.unit())
    }

    /// Digits with a point and an exponent. Spaces and `_` may group them.
    fn digits(&mut self) -> Result<f64, String> {
        let mut digits = String::new();
        let mut letters = self.rest.char_indices().peekable();
        let mut end = 0;
        while let Some((at, letter)) = letters.next() {
            let next = letters.peek().map(|(_, next)| *next);
            let digit_follows = next.is_some_and(|next| next.is_ascii_digit());
            let sign_follows = matches!(next, Some('+' | '-'));
            match letter {
                '0'..='9' | '.' => digits.push(letter),
                ' ' | '_' if digit_follows && !digits.is_empty() => {}
                'e' | 'E' if digit_follows || sign_follows => digits.push(letter),
                '+' | '-' if digits.ends_with(['e', 'E']) => digits.push(letter),
                _ => break,
            }
            end = at + letter.len_utf8();
        }
        let value = digits.parse().map_err(|_| self.complaint())?;
        self.rest = self.rest.get(end..).unwrap_or_default();
        Ok(value)
    }

    fn unit(&mut self) -> f64 {
        if self.units == Units::Part {
            return if self.takes("%") { 0.01 } else { 1.0 };
        }
        let mut value = 1.0;
        for (power, letters) in
            (1..).zip([["k", "K"], ["m", "M"], ["g", "G"], ["t", "T"], ["p", "P"]])
        {
            if letters.iter().any(|letter| self.takes(letter)) {
                let base: f64 = if self.takes("i") { 1024.0 } else { 1000.0 };
                value = base.powi(power);
                break;
            }
        }
        if self.units == Units::Bytes && !self.takes("B") {
            self.takes("b");
        }
        value
    }

    /// Skips spaces and this word, if it follows.
    fn takes(&mut self, word: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn complaint(&self) -> String {
        let examples = match self.units {
            Units::Items => "9e8, 900M or 3*10^8",
            Units::Bytes => "2G, 512MiB or 1e9",
            Units::Part => "0.001, 1/1000 or 0.1%",
        };
        let problem = if self.rest.is_empty() {
            "a number is missing".to_owned()
        } else {
            format!("`{}` is no number", self.rest)
        };
        format!("{problem}: write it as {examples}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_suffixes_and_arithmetic() {
        let cases = [
            ("900000000", 900_000_000),
            ("9e8", 900_000_000),
            ("900M", 900_000_000),
            ("0.9G", 900_000_000),
            ("900 000 000", 900_000_000),
            ("900_000_000", 900_000_000),
            ("3*10^8", 300_000_000),
            ("3e+8", 300_000_000),
            ("2*3^2", 18),
            ("64Ki", 65_536),
            ("10/4", 3),
            ("1", 1),
            (" 7 ", 7),
        ];
        for (text, number) in cases {
            assert_eq!(items(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn rates_and_memory_have_theirs() {
        for text in ["0.001", "1e-3", "1/1000", "0.1%", ".1 %", "10^-3"] {
            let read = rate(text).unwrap();
            assert!((read - 0.001).abs() < 1e-12, "{text}: {read}");
        }
        assert_eq!(memory("2G"), Ok(2_000_000_000));
        assert_eq!(memory("2 GB"), Ok(2_000_000_000));
        assert_eq!(memory("2GiB"), Ok(2 << 30));
        assert_eq!(memory("100b"), Ok(100));
    }

    #[test]
    fn times() {
        for (text, milliseconds, shown) in [
            ("90s", 90_000, "90 seconds"),
            ("5m", 300_000, "5 minutes"),
            ("1.5 h", 5_400_000, "90 minutes"),
            ("24h", 86_400_000, "1 day"),
            ("2w", 1_209_600_000, "14 days"),
            ("0.001s", 1, "1 millisecond"),
        ] {
            assert_eq!(duration(text), Ok(milliseconds), "{text}");
            assert_eq!(time(milliseconds), shown);
        }
        for text in ["", "30", "d", "0d", "-1d", "1e12w", "3x"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_unit_of_time_in_full_is_told_its_letter() {
        for (text, better) in [
            ("30days", "30d"),
            ("1 day", "1d"),
            ("90sec", "90s"),
            ("5 min", "5m"),
            ("12Hours", "12h"),
            ("2hrs", "2h"),
            ("4weeks", "4w"),
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.ends_with(&format!(" {better}")), "{text}: {error}");
            assert!(duration(better).is_ok());
        }
        for text in ["30ms", "30y", "3months", "d", "days"] {
            let error = duration(text).unwrap_err();
            assert!(!error.contains("one letter"), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_no_number_is_said() {
        for text in [
            "3×10", "10**8", "", " ", "x", "1e", "1..2", "1 2 x", "(1", "1+1", "2^3^2", "5%", "1B",
            "--", "1/0", "0", "-5", "0.4", "1e19", "0/0", "1,000", "9Q", "^2", "e5", "1e400",
        ] {
            let error = items(text).unwrap_err();
            assert!(
                error.ends_with(|c: char| c.is_ascii_alphanumeric()),
                "{text}: {error}"
            );
        }
        for text in [
            "0", "-0.1", "1", "1.5", "100%", "1M", "1e-14", "0,1", "nan", "inf", "0/0",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
        for text in ["0", "-1", "lots", "1e30", "5%"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_and_shares() {
        let read = whole::<u32>(0, 5_000_000_000);
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read("2*1M"), Ok(2_000_000));
        // More than the type has.
        for text in ["-1", "5G", "1e19", "nan", "0/0", ""] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(
            whole::<u64>(2, 10)("1")
                .unwrap_err()
                .contains("from 2 to 10")
        );
    }

    #[test]
    fn digits_are_grouped() {
        let cases = [
            (7, "7"),
            (123, "123"),
            (1234, "1 234"),
            (9_585_088, "9 585 088"),
        ];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
    }
}
