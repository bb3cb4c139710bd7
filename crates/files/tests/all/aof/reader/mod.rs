//! The commands of a log: whole, cut at every byte, damaged, hostile.

use std::fs;
use std::io::{self, Read};

use everbloom_files::aof::{Command, CommandReader, Piece, ReadError, Unit, is_bracket};
use everbloom_resp::encode_request;
use proptest::prelude::*;

use super::{GOLDEN, golden};

mod random;

fn read(bytes: &[u8]) -> (Vec<Unit>, Option<ReadError>) {
    read_from(bytes)
}

fn read_from(input: impl Read) -> (Vec<Unit>, Option<ReadError>) {
    let mut units = Vec::new();
    for unit in CommandReader::new(input, "log", u64::MAX) {
        match unit {
            Ok(unit) => units.push(unit),
            Err(error) => return (units, Some(error)),
        }
    }
    (units, None)
}

fn words(command: &Command) -> String {
    let words: Vec<_> = command
        .args
        .iter()
        .map(|arg| String::from_utf8_lossy(arg))
        .collect();
    words.join(" ")
}

/// Hands out a byte at a time, now and then interrupted.
struct Trickle<'a>(&'a [u8], bool);

impl Read for Trickle<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = buf.len().min(1);
        self.0.read(&mut buf[..len])
    }
}

/// A log as text: one line per command, `MULTI` and `EXEC` among them, `#` for an annotation. With
/// the offsets behind its units and annotations outside of transactions: where it may end.
fn log(lines: &[&str]) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut ends, mut inside) = (Vec::new(), vec![0], false);
    for line in lines {
        if line.starts_with('#') {
            bytes.extend_from_slice(line.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        } else {
            encode_request(&line.split(' ').collect::<Vec<_>>(), &mut bytes);
        }
        inside = (inside || *line == "MULTI") && *line != "EXEC";
        if !inside {
            ends.push(bytes.len());
        }
    }
    (bytes, ends)
}

fn sample() -> (Vec<u8>, Vec<usize>) {
    log(&[
        "#TS:1700000000",
        "SELECT 0",
        "BF.ADD key item",
        "#TS:1700000001",
        "MULTI",
        "BF.ADD key other",
        "#TS:1700000002",
        "DEL some",
        "EXEC",
        "SET empty ",
        "MULTI",
        "EXEC",
        "MSET aaaaaaaaaaaa bbbbbbbbbbbbbbbbb c d e f g h i j",
    ])
}

#[test]
fn the_logs_of_redis_are_read_with_their_offsets() {
    for log in GOLDEN {
        let dir = golden(log).join("appendonlydir");
        let mut files = vec!["appendonly.aof.2.incr.aof"];
        if log == "command-base" {
            files.push("appendonly.aof.2.base.aof");
        }
        for file in files {
            let bytes = fs::read(dir.join(file)).unwrap();
            let (units, error) = read(&bytes);
            assert!(error.is_none(), "{error:?}");
            // Written again one by one, they are the file.
            let mut written = Vec::new();
            for command in units.iter().flat_map(Unit::commands) {
                assert_eq!(command.offset, written.len() as u64);
                encode_request(&command.args, &mut written);
            }
            assert_eq!(written, bytes);
        }
        let bytes = fs::read(dir.join("appendonly.aof.2.incr.aof")).unwrap();
        let (units, _) = read(&bytes);
        assert_eq!(words(&units[0].commands()[0]), "SELECT 0");
        assert!(words(&units[1].commands()[0]).starts_with("BF.MADD scaled more:0 more:1 "));
        assert_eq!(units[1].commands()[0].args.len(), 42);
    }
}

#[test]
fn commands_transactions_and_annotations() {
    let (bytes, _) = sample();
    let (units, error) = read(&bytes);
    assert!(error.is_none(), "{error:?}");
    let shown: Vec<(bool, Vec<String>)> = units
        .iter()
        .map(|unit| {
            let transaction = matches!(unit, Unit::Transaction(_));
            (transaction, unit.commands().iter().map(words).collect())
        })
        .collect();
    let one = |text: &str| (false, vec![text.to_owned()]);
    assert_eq!(
        shown,
        [
            one("SELECT 0"),
            one("BF.ADD key item"),
            (true, vec!["BF.ADD key other".into(), "DEL some".into()]),
            one("SET empty "),
            (true, vec![]),
            one("MSET aaaaaaaaaaaa bbbbbbbbbbbbbbbbb c d e f g h i j"),
        ]
    );
    for command in units.iter().flat_map(Unit::commands) {
        assert_eq!(bytes[command.offset as usize], b'*');
    }
    assert_eq!(read_from(Trickle(&bytes, false)).0, units);
}

#[test]
fn a_log_cut_at_any_byte_is_complete_up_to_its_last_unit() {
    let (bytes, ends) = sample();
    let (all, _) = read(&bytes);
    for cut in 0..=bytes.len() {
        let (units, error) = read(&bytes[..cut]);
        assert!(all.starts_with(&units));
        let valid = *ends.iter().rfind(|end| **end <= cut).unwrap();
        match error {
            None => assert_eq!(valid, cut),
            Some(ReadError::Truncated {
                valid_up_to, len, ..
            }) => {
                assert!(valid < cut);
                assert_eq!((valid_up_to, len), (valid as u64, cut as u64));
            }
            Some(other) => panic!("cut at {cut}: {other}"),
        }
        // What remains of it after the cut that the error names has the same units.
        let (again, error) = read(&bytes[..valid]);
        assert!(error.is_none());
        assert_eq!(again, units);
    }
}

#[test]
fn a_flipped_bit_is_damage_or_another_log_and_never_moves_what_came_before() {
    let (bytes, ends) = sample();
    let (all, _) = read(&bytes);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let (units, error) = read(&flipped);
            let before = ends.iter().rposition(|end| *end <= at).unwrap();
            let intact = all.iter().take_while(|unit| {
                unit.commands()
                    .last()
                    .is_some_and(|last| (last.offset as usize) < ends[before])
            });
            let intact = intact.count().min(units.len());
            assert_eq!(units[..intact], all[..intact]);
            if let Some(ReadError::Damaged { offset, .. }) = error {
                assert!(offset as usize >= ends[before], "bit {bit} of byte {at}");
            }
        }
    }
}

fn assert_told(errors: &[(&str, &str)]) {
    for (text, message) in errors {
        let (_, error) = read(text.as_bytes());
        assert_eq!(error.unwrap().to_string(), *message);
    }
}

#[test]
fn damage_is_told_with_file_offset_and_what_was_expected() {
    let max = u64::MAX;
    assert_told(&[
        ("x", "log, byte 0: expected '*' or '#', found 'x'"),
        ("\0x", "log, byte 0: expected '*' or '#', found byte 0x00"),
        (
            "*1\r\n$1\r\na\r\n\n",
            "log, byte 11: expected '*' or '#', found LF",
        ),
        ("*x", "log, byte 1: expected a digit, found 'x'"),
        ("*-1\r\n", "log, byte 1: expected a digit, found '-'"),
        ("*\r\n", "log, byte 1: expected a digit, found CR"),
        ("*1\n", "log, byte 2: expected a digit or CR, found LF"),
        ("*1\rx", "log, byte 3: expected LF, found 'x'"),
        (
            "*0\r\n",
            "log, byte 1: expected a number of arguments of at least 1, found a smaller one",
        ),
        (
            "*2147483648\r\n",
            "log, byte 1: expected a number of arguments of at most 2147483647, found a larger one",
        ),
        (
            "*99999999999999999999999999\r\n",
            "log, byte 1: expected a number of arguments of at most 2147483647, found a larger one",
        ),
        ("*1\r\n+", "log, byte 4: expected '$', found '+'"),
        ("*1\r\n$-1\r\n", "log, byte 5: expected a digit, found '-'"),
        (
            "*1\r\n$18446744073709551616\r\n",
            &format!("log, byte 5: expected a length of at most {max}, found a larger one"),
        ),
        ("*1\r\n$1\r\nab\r\n", "log, byte 9: expected CR, found 'b'"),
        ("*1\r\n$1\r\na\r\r", "log, byte 10: expected LF, found CR"),
    ]);
    let long = format!("#{}\r\n", "x".repeat(1022));
    let (_, error) = read(long.as_bytes());
    assert_eq!(
        error.unwrap().to_string(),
        "log, byte 0: expected an annotation of at most 1024 bytes, found a longer one"
    );
    let longest = format!("#{}\r\n", "x".repeat(1021));
    assert!(read(longest.as_bytes()).1.is_none());
}

#[test]
fn damage_and_torn_ends_of_transactions_and_in_zeros_are_told() {
    assert_told(&[
        (
            "*1\r\n$4\r\nexec\r\n",
            "log, byte 0: expected a command, or MULTI before EXEC, found exec",
        ),
        (
            "*1\r\n$7\r\nDISCARD\r\n",
            "log, byte 0: expected a command, or MULTI before EXEC, found DISCARD",
        ),
        (
            "*1\r\n$5\r\nMULTI\r\n*1\r\n$7\r\ndiscard\r\n",
            "log, byte 15: expected a command of the transaction, or EXEC, found discard",
        ),
        (
            "*1\r\n$5\r\nMULTI\r\n*1\r\n$5\r\nmulti\r\n",
            "log, byte 15: expected a command of the transaction, or EXEC, found multi",
        ),
        (
            "*1\r\n$1\r\na\r\n*2\r\n",
            "log: the file ends at byte 15, in the middle of a command; \
             it is complete up to byte 11",
        ),
        (
            "*1\r\n$5\r\nMULTI\r\n",
            "log: the file ends at byte 15, in the middle of a transaction; \
             it is complete up to byte 0",
        ),
        (
            "#TS:1\0\r\n",
            "log, byte 5: expected a character, found byte 0x00",
        ),
        (
            "*1\r\n$1\r\na\r\n\0\0",
            "log: the file ends at byte 13, in the middle of a row of zeros; \
             it is complete up to byte 11",
        ),
    ]);
}

/// The reader stops there, and does not keep all that follows.
#[test]
fn a_command_that_the_server_does_not_know_is_no_part_of_a_torn_transaction() {
    let (bytes, _) = log(&["DEL a", "MULTI", "DEL b", "EXEB", "DEL c"]);
    let check = |command: &Command| match words(command).as_str() {
        "EXEB" => Err("an unknown word".into()),
        _ => Ok(()),
    };
    let mut reader = CommandReader::new(&bytes[..], "log", u64::MAX);
    let first = reader.next_piece(&check).unwrap();
    assert!(matches!(first, Some(Piece::Commands(piece)) if piece.batch.len() == 1));
    let error = reader.next_piece(&check).unwrap_err().to_string();
    let expected = "log, byte 55: expected a command of the transaction, or EXEC, found an \
                    unknown word";
    assert_eq!(error, expected);
    assert!(reader.next_piece(&check).unwrap().is_none());
}

/// A loss of power may leave zeros in a file whose length was written and its bytes were not.
#[test]
fn zeros_behind_the_last_whole_unit_are_a_torn_end() {
    let (mut bytes, mut ends) = sample();
    encode_request(&["SET", "zeros", "ab\0\0\0\0"], &mut bytes);
    ends.push(bytes.len());
    let (all, _) = read(&bytes);
    for (cut, zeros) in (0..=bytes.len()).flat_map(|cut| [1, 2, 6, 5000].map(|n| (cut, n))) {
        let torn = [&bytes[..cut], &vec![0; zeros]].concat();
        let valid = *ends.iter().rfind(|end| **end <= cut).unwrap();
        for (units, error) in [read(&torn), read_from(Trickle(&torn, false))] {
            assert!(all.starts_with(&units));
            assert_eq!(units, read(&bytes[..valid]).0);
            let Some(ReadError::Truncated {
                valid_up_to, len, ..
            }) = error
            else {
                panic!("{zeros} zeros behind byte {cut}: {error:?}");
            };
            assert_eq!((valid_up_to, len), (valid as u64, torn.len() as u64));
        }
    }
}

#[test]
fn zeros_with_whole_commands_behind_them_are_damage() {
    let check = |command: &Command| match command.args[0].as_slice() {
        b"SELECT" | b"BF.ADD" | b"DEL" | b"SET" | b"MSET" => Ok(()),
        _ => Err("an unknown word".into()),
    };
    let (bytes, ends) = sample();
    let last = ends[ends.len() - 2];
    for (start, end) in (0..last).flat_map(|start| (start + 1..=last).map(move |end| (start, end)))
    {
        let mut holed = bytes.clone();
        holed[start..end].fill(0);
        let mut reader = CommandReader::new(&holed[..], "log", u64::MAX);
        let error = loop {
            match reader.next_piece(&check) {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        match error {
            // All of it is in one argument, which may have any bytes.
            None => assert_eq!(reader.valid_up_to(), bytes.len() as u64),
            Some(ReadError::Damaged { .. }) => {}
            Some(other) => panic!("{start}..{end}: {other}"),
        }
    }
    let whole = "*1\r\n$4\r\nPING\r\n";
    // The last argument is longer than what follows it.
    let holed = format!("*1\r\n$900000\r\nab\0\0\0\0{whole}");
    let (_, error) = read(holed.as_bytes());
    let message = "log, byte 5: expected a length of at most 4, found 900000, which goes beyond the \
                   end of the file and over a whole command at byte 19";
    assert_eq!(error.unwrap().to_string(), message);
    // Its length is wrong, and leads into the zeros at the end.
    let (before, after) = ("*1\r\n$40\r\nvalue\r\n", "\0".repeat(100));
    let (_, error) = read(format!("{before}{whole}{after}").as_bytes());
    let message = "log, byte 5: expected a length of at most 5, found 40, which goes over a whole \
                   command at byte 16";
    assert_eq!(error.unwrap().to_string(), message);
    // Or to the end of the file, with all bytes that it announces.
    for rest in ["", "\r"] {
        let (_, error) = read(format!("*1\r\n$21\r\nvalue\r\n{whole}{rest}").as_bytes());
        let is_damage = matches!(error, Some(ReadError::Damaged { offset: 5, .. }));
        assert!(is_damage, "{error:?}");
    }
}

/// A machine that stops leaves no commands behind the place where it stopped.
#[test]
fn a_length_that_goes_over_whole_commands_is_damage_and_no_torn_end() {
    let (bytes, _) = log(&["SET a value", "SET b value", "MULTI", "SET c value", "EXEC"]);
    let text = String::from_utf8(bytes).unwrap();
    let long = |at: usize| {
        let (head, tail) = text.split_at(at);
        format!(
            "{head}{}",
            tail.replacen("$5\r\nvalue", "$900000\r\nvalue", 1)
        )
    };
    // In the first command, in the second, and within the transaction.
    for (at, message) in [
        (
            0,
            "log, byte 21: expected a length of at most 5, found 900000, which goes beyond the end \
             of the file and over a whole command at byte 36",
        ),
        (
            32,
            "log, byte 52: expected a length of at most 5, found 900000, which goes beyond the end \
             of the file and over a whole command at byte 67",
        ),
        (
            64,
            "log, byte 98: expected a length of at most 5, found 900000, which goes beyond the \
             end of the file and over a whole command at byte 113",
        ),
    ] {
        let damaged = long(at);
        let (_, error) = read(damaged.as_bytes());
        assert_eq!(error.unwrap().to_string(), message);
        // Also when the machine has stopped later on.
        let (_, error) = read(&damaged.as_bytes()[..damaged.len() - 1]);
        let is_damage = matches!(error, Some(ReadError::Damaged { .. }));
        assert!(is_damage || at == 64, "{error:?}");
    }
    // Halves of commands in an argument prove nothing.
    for part in ["\r\n*1\r\n$4\r\nPIN", "\r\n*0\r\n", "*1\r\n$1\r\na\r\n"] {
        let torn = format!("*1\r\n$900000\r\n{part}");
        let (_, error) = read(torn.as_bytes());
        assert!(
            matches!(error, Some(ReadError::Truncated { .. })),
            "{part}: {error:?}"
        );
    }
    // Nor does anybody wait for an argument that was made to look like many long commands.
    let nested = "*999999\r\n$2\r\nab\r\n$15\r\n".repeat(200_000);
    let torn = format!("*1\r\n$90000000\r\n\r\n{nested}");
    let (_, error) = read(torn.as_bytes());
    assert!(matches!(error, Some(ReadError::Truncated { .. })));
}

#[test]
fn an_argument_may_have_as_many_bytes_as_the_caller_says() {
    let run = |text: &'static str, max_bulk| {
        let mut reader = CommandReader::new(text.as_bytes(), "log", max_bulk);
        reader.next_unit().map(|unit| unit.is_some())
    };
    assert!(run("*2\r\n$3\r\nabc\r\n$3\r\nabc\r\n", 3).unwrap());
    assert!(matches!(
        run("*1\r\n$4\r\n", 3),
        Err(ReadError::Damaged { offset: 5, .. })
    ));
    // More than Redis takes of clients by default is no damage: some settings take it.
    assert!(matches!(
        run("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$600000000\r\nabc", u64::MAX),
        Err(ReadError::Truncated { .. })
    ));
}

#[test]
fn a_command_has_at_most_as_many_arguments_as_redis_reads() {
    let run = |text: &'static str| {
        CommandReader::new(text.as_bytes(), "log", u64::MAX)
            .next_unit()
            .unwrap_err()
    };
    assert!(matches!(
        run("*2147483647\r\n"),
        ReadError::Truncated { .. }
    ));
    assert!(matches!(
        run("*2147483648\r\n"),
        ReadError::Damaged { offset: 1, .. }
    ));
}

#[test]
fn an_error_of_the_storage_is_no_damage_and_ends_the_reading() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("unreadable sector"))
        }
    }
    let (bytes, _) = log(&["DEL a"]);
    let mut reader = CommandReader::new(bytes.chain(Failing), "log", u64::MAX);
    assert!(matches!(reader.next(), Some(Ok(Unit::Command(_)))));
    let error = reader.next().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("log, byte {}: unreadable sector", bytes.len())
    );
    assert!(reader.next().is_none());
}

#[test]
fn behind_an_rdb_file_offsets_are_those_of_the_file() {
    let (bytes, _) = log(&["DEL a", "DEL b"]);
    let mut reader = CommandReader::starting_at(100, &bytes[..30], "log", u64::MAX);
    assert_eq!(reader.next().unwrap().unwrap().commands()[0].offset, 100);
    let half = 100 + bytes.len() as u64 / 2;
    assert_eq!((reader.offset(), reader.valid_up_to()), (half, half));
    let error = reader.next().unwrap().unwrap_err();
    assert!(
        matches!(error, ReadError::Truncated { valid_up_to, len: 130, .. } if valid_up_to == half)
    );
}

/// Were a claim allocated, this one would end the process.
#[test]
fn a_claimed_length_is_never_allocated() {
    let text = "*2147483647\r\n$3\r\nabc\r\n$18446744073709551615\r\nabc";
    let error = CommandReader::new(text.as_bytes(), "log", u64::MAX)
        .next_unit()
        .unwrap_err();
    assert!(matches!(error, ReadError::Truncated { valid_up_to: 0, .. }));
}

#[test]
fn arguments_of_any_length_around_the_pieces() {
    for len in [
        0,
        1,
        65_535,
        65_536,
        65_537,
        (1 << 20) - 1,
        1 << 20,
        (1 << 20) + 1,
        5 << 20,
    ] {
        let big: Vec<u8> = (0..len).map(|i: usize| (i % 251) as u8).collect();
        let mut bytes = Vec::new();
        encode_request(&[b"SET", &big[..], b"tail"], &mut bytes);
        encode_request(&[b"DEL", &big[..]], &mut bytes);
        let (units, error) = read(&bytes);
        assert!(error.is_none());
        assert_eq!(units[0].commands()[0].args, [b"SET", &big[..], b"tail"]);
        assert_eq!(units[1].commands()[0].args, [b"DEL", &big[..]]);
    }
}
