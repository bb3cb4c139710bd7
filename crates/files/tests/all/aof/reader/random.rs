//! Any log, whole, changed and read in pieces, beside the slow reader.

use super::*;

fn any_unit() -> impl Strategy<Value = (bool, Vec<Vec<Vec<u8>>>)> {
    let arg = prop::collection::vec(any::<u8>(), 0..30);
    // A name of its own, lest it be MULTI or EXEC.
    let command = prop::collection::vec(arg, 0..5).prop_map(|mut args| {
        args.insert(0, b"NAME".to_vec());
        args
    });
    prop_oneof![
        command.clone().prop_map(|command| (false, vec![command])),
        prop::collection::vec(command, 0..4).prop_map(|commands| (true, commands)),
    ]
}

#[derive(Clone, Debug)]
enum Change {
    Set(u8),
    Insert(u8),
    Remove,
    Cut,
}

fn change() -> impl Strategy<Value = Change> {
    let byte = || {
        prop_oneof![
            prop::sample::select(&b"*$#\r\n0123-+ \t\""[..]),
            any::<u8>()
        ]
    };
    prop_oneof![
        byte().prop_map(Change::Set),
        byte().prop_map(Change::Insert),
        Just(Change::Remove),
        Just(Change::Cut),
    ]
}

/// Gives a few bytes at a time, so that the buffer ends anywhere.
#[derive(Clone, Copy)]
struct Slow<'b> {
    bytes: &'b [u8],
    step: usize,
}

impl Read for Slow<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.step.min(buf.len());
        self.bytes.read(&mut buf[..len])
    }
}

/// The commands of a log with their places, how far it is complete, and why it ends.
type Found = (Vec<(u64, Vec<Vec<u8>>)>, u64, Option<String>);

fn commands_of_units<R: Read>(mut reader: CommandReader<R>) -> Found {
    let mut commands = Vec::new();
    let error = loop {
        match reader.next_unit() {
            Ok(Some(unit)) => {
                let parts = unit.commands().iter();
                commands.extend(parts.map(|command| (command.offset, command.args.clone())));
            }
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    (commands, reader.valid_up_to(), error)
}

fn commands_of_pieces<R: Read>(mut reader: CommandReader<R>) -> Found {
    let mut commands = Vec::new();
    let error = loop {
        match reader.next_piece(&|_| Ok(())) {
            Ok(Some(Piece::Unit(unit))) => {
                let parts = unit.commands().iter();
                commands.extend(parts.map(|command| (command.offset, command.args.clone())));
            }
            Ok(Some(Piece::Commands(piece))) => {
                for number in 0..piece.batch.len() {
                    let args: Vec<&[u8]> = piece.batch.request(number, piece.bytes).collect();
                    if !is_bracket(&args) {
                        let owned = args.iter().map(|arg| arg.to_vec()).collect();
                        commands.push((piece.offset_of(number), owned));
                    }
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    (commands, reader.valid_up_to(), error)
}

proptest! {
    /// The reader of units is the slow counterpart of the reader of pieces.
    #[test]
    fn pieces_are_what_units_are(
        units in prop::collection::vec(any_unit(), 0..8),
        annotated in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), change()), 0..3),
        max_bulk in prop_oneof![Just(u64::MAX), 0_u64..20],
        (times, step) in prop_oneof![(Just(1), 1_usize..200), (1_usize..200, 5000_usize..100_000)],
    ) {
        let mut bytes = Vec::new();
        for (number, (transaction, commands)) in units.iter().enumerate() {
            if number == annotated.index(units.len()) {
                bytes.extend_from_slice(b"#TS:1700000000\r\n");
            }
            let brackets = |word: &'static str| transaction.then(|| vec![word.as_bytes().to_vec()]);
            let all = brackets("multi").into_iter().chain(commands.clone()).chain(brackets("EXEC"));
            all.for_each(|command| encode_request(&command, &mut bytes));
        }
        // The bytes of long logs are not looked at all at once.
        let mut bytes = bytes.repeat(times);
        for (at, change) in &changes {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match change {
                Change::Set(byte) => bytes[at] = *byte,
                Change::Insert(byte) => bytes.insert(at, *byte),
                Change::Remove => drop(bytes.remove(at)),
                Change::Cut => bytes.truncate(at),
            }
        }
        let slowly = Slow { bytes: &bytes, step };
        let by_units = commands_of_units(CommandReader::new(slowly, "log", max_bulk));
        let by_pieces = commands_of_pieces(CommandReader::new(slowly, "log", max_bulk));
        prop_assert_eq!(by_pieces, by_units);
    }

    #[test]
    fn what_is_written_reads_back(
        units in prop::collection::vec(any_unit(), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for (transaction, commands) in &units {
            if *transaction {
                encode_request(&["MULTI"], &mut bytes);
            }
            for command in commands {
                encode_request(command, &mut bytes);
            }
            if *transaction {
                encode_request(&["EXEC"], &mut bytes);
            }
            ends.push(bytes.len());
        }
        let shown = |units: Vec<Unit>| -> Vec<(bool, Vec<Vec<Vec<u8>>>)> {
            let unit = |unit: Unit| {
                let commands = unit.commands().iter().map(|command| command.args.clone());
                (matches!(unit, Unit::Transaction(_)), commands.collect())
            };
            units.into_iter().map(unit).collect()
        };
        let (found, error) = read(&bytes);
        prop_assert!(error.is_none());
        prop_assert_eq!(shown(found), &units[..]);

        let cut = cut.index(bytes.len() + 1);
        let whole = ends.iter().rposition(|end| *end <= cut).unwrap();
        let (found, error) = read(&bytes[..cut]);
        prop_assert_eq!(shown(found), &units[..whole]);
        let valid = ends[whole] as u64;
        match error {
            None => prop_assert_eq!(valid, cut as u64),
            Some(ReadError::Truncated { valid_up_to, .. }) => prop_assert_eq!(valid_up_to, valid),
            Some(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn any_bytes_end_in_commands_or_an_error(
        bytes in prop_oneof![
            any::<Vec<u8>>(),
            r"([*$#0-9a]|\r\n|MULTI|EXEC){0,60}".prop_map(String::into_bytes),
            r"(\*1\r\n\$[0-9]\r\n[a-c]{0,3}(\r\n)?){0,6}".prop_map(String::into_bytes),
        ]
    ) {
        let (units, error) = read(&bytes);
        prop_assert_eq!(&read_from(Trickle(&bytes, false)).0, &units);
        // What was valid stays so when the rest is cut off.
        if let Some(ReadError::Truncated { valid_up_to, .. }) = error {
            let (again, error) = read(&bytes[..valid_up_to as usize]);
            prop_assert_eq!(again, units);
            prop_assert!(error.is_none());
        }
    }
}
