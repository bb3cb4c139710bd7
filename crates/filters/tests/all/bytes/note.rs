//! Notes in front of filters.

use everbloom::bytes::Note;

use super::*;

/// The file that `bytes/make.py` makes: a note, and `3-fixed-classic.bin`.
const NOTED: &[u8] = include_bytes!("../../bytes/4-noted.bin");

fn note(text: &str) -> Note {
    Note::new(text).unwrap()
}

/// The filter with a note in front.
fn noted(note: &Note, filter: &Filter) -> Vec<u8> {
    [note.to_bytes(), filter.to_bytes()].concat()
}

#[test]
fn bytes_of_a_note() {
    let [(filter, plain), ..] = golden();
    let long = "a note of more than the forty-two bytes that fit into one record: é";
    assert_eq!(Note::split(NOTED), Ok((Some(note(long)), plain)));
    assert_eq!(noted(&note(long), &filter), NOTED);
    assert_eq!(filter.read(NOTED).as_ref(), Ok(&filter));
    assert_eq!(sealed(NOTED.to_vec()), NOTED);
    assert_eq!(Note::split(plain), Ok((None, plain)));
    let view = BloomView::new(NOTED).unwrap();
    assert_eq!((view.verify(), view.contains("foo")), (Ok(()), true));
}

#[test]
fn a_text_has_its_bounds() {
    assert_eq!((Note::new(""), Note::new("x".repeat(4097))), (None, None));
    for len in [1, 41, 42, 43, 105, 106, 107, 4095, 4096] {
        let note = note(&"x".repeat(len));
        let bytes = note.to_bytes();
        assert_eq!(bytes.len(), (14 + len + 8).next_multiple_of(64));
        for filter in all() {
            let whole = noted(&note, &filter);
            assert_eq!(filter.read(&whole).as_ref(), Ok(&filter));
            let (found, rest) = Note::split(&whole).unwrap();
            assert_eq!((found.as_ref(), rest), (Some(&note), &*filter.to_bytes()));
        }
    }
}

/// Whoever does not ask for the note gets no filter that answers wrongly.
#[test]
fn a_critical_note_must_be_read() {
    for filter in all() {
        let note = note("folded").critical();
        let bytes = noted(&note, &filter);
        assert_eq!(filter.read(&bytes), Err(BytesError::CriticalNote));
        assert_eq!(BloomView::new(&bytes).err(), Some(BytesError::CriticalNote));
        let (found, rest) = Note::split(&bytes).unwrap();
        assert!(found.as_ref().is_some_and(Note::is_critical));
        assert_eq!(
            (found, filter.read(rest).as_ref()),
            (Some(note), Ok(&filter))
        );
    }
}

#[test]
fn a_reader_reads_the_note_and_the_filter() {
    for filter in all() {
        let plain = filter.to_bytes();
        let critical = note("folded").critical();
        let behind = [&noted(&critical, &filter)[..], b"more"].concat();
        for (bytes, expected) in [(behind, Some(critical)), (plain, None)] {
            let mut rest = &bytes[..];
            let (found, reader) = Note::read_from(&mut rest).unwrap();
            let again = match filter {
                Fixed(_) => Fixed(BloomFilter::read_from(reader).unwrap()),
                Scalable(_) => Scalable(LayeredFilter::read_from(reader).unwrap()),
            };
            assert_eq!((found, &again), (expected.clone(), &filter));
            assert_eq!(
                rest,
                if expected.is_some() {
                    &b"more"[..]
                } else {
                    b""
                }
            );
        }
    }
}

#[test]
fn damaged_notes_are_refused() {
    let [(filter, _), ..] = golden();
    let [bare] = [note("folded").critical().to_bytes()];
    for index in 0..bare.len() {
        for bit in 0..8 {
            let mut bytes = noted(&note("folded").critical(), &filter);
            bytes[index] ^= 1 << bit;
            let place = format!("bit {bit} of byte {index}");
            let error = filter.read(&bytes).unwrap_err();
            match index {
                0..8 => assert_eq!(error, BytesError::Magic, "{place}"),
                8..10 => {}
                // A longer text does not end here.
                12..14 => {}
                _ => assert_eq!(error, BytesError::HeaderChecksum, "{place}"),
            }
            assert!(index < 10 || Note::split(&bytes) == Err(error), "{place}");
        }
    }
    for len in 10..NOTED.len() {
        let error = filter.read(&NOTED[..len]).unwrap_err();
        let known = matches!(error, BytesError::Truncated | BytesError::Length { .. });
        assert!(known, "cut to {len}: {error}");
    }
}

/// What `split` and `read_from` say of these bytes, which is one thing.
#[track_caller]
fn error_of(bytes: &[u8]) -> Option<BytesError> {
    let error = Note::split(bytes).err();
    let read = match Note::read_from(bytes) {
        Ok(_) => None,
        Err(ReadError::Bytes(error)) => Some(error),
        Err(ReadError::Io(error)) => panic!("{error}"),
    };
    assert_eq!(error, read);
    error
}

#[test]
fn a_reader_is_refused_as_bytes_are() {
    for (bytes, expected) in [
        (&b""[..], BytesError::Magic),
        (b"EVRBLOO", BytesError::Magic),
        (&[7; 100], BytesError::Magic),
        (b"EVRBLOOM", BytesError::Truncated),
        (b"EVRBLOOM\x03", BytesError::Truncated),
        (&NOTED[..10], BytesError::Truncated),
        (&NOTED[..63], BytesError::Truncated),
        (&NOTED[..64], BytesError::Truncated),
        (&NOTED[..127], BytesError::Truncated),
    ] {
        assert_eq!(error_of(bytes), Some(expected), "{bytes:?}");
    }
    assert_eq!(error_of(b"EVRBLOOM\x03\0"), None);
    assert_eq!(error_of(NOTED), None);
}

/// Whoever wrote a note wrote a filter behind it, so what is there is no other file.
#[test]
fn what_is_no_filter_behind_a_note_is_damage() {
    let [(filter, _), ..] = golden();
    let note = note("folded").to_bytes();
    let plain = filter.to_bytes();
    for len in 0..10 {
        let bytes = [&note[..], &plain[..len]].concat();
        assert_eq!(error_of(&bytes), Some(BytesError::Truncated), "{len}");
        assert_eq!(filter.read(&bytes), Err(BytesError::Truncated), "{len}");
    }
    let zeros = vec![0; plain.len()];
    let mut flipped = plain;
    flipped[3] ^= 1;
    for behind in [zeros, flipped] {
        let bytes = [&note[..], &behind].concat();
        assert_eq!(error_of(&bytes), Some(BytesError::Reserved));
        assert_eq!(filter.read(&bytes), Err(BytesError::Reserved));
        assert_eq!(BloomView::new(&bytes).err(), Some(BytesError::Reserved));
    }
}

/// Notes are in front of Bloom filters only.
#[test]
fn a_cuckoo_filter_has_no_note() {
    let found = everbloom::CuckooFilter::from_bytes(NOTED);
    assert_eq!(found, Err(BytesError::Kind));
}

#[test]
fn what_is_never_written_is_refused() {
    let [(filter, _), ..] = golden();
    let bytes = noted(&note("folded"), &filter);
    // Byte 10, a flag, an empty text, one that is too long, one that is no UTF-8, the padding.
    for (index, value) in [(10, 1), (11, 2), (12, 0), (13, 0x11), (14, 0xff), (20, 1)] {
        let mut forged = bytes.clone();
        forged[index] = value;
        let forged = sealed(forged);
        assert_eq!(filter.read(&forged), Err(BytesError::Reserved), "{index}");
        assert_eq!(Note::split(&forged), Err(BytesError::Reserved), "{index}");
    }
    let twice = [note("folded").to_bytes(), bytes].concat();
    assert_eq!(filter.read(&twice), Err(BytesError::Version(4)));
    assert_eq!(Note::split(&twice), Err(BytesError::Version(4)));
    let read = Note::read_from(&*twice).map(|(note, _)| note);
    let refused = matches!(read, Err(ReadError::Bytes(BytesError::Version(4))));
    assert!(refused, "{read:?}");
    let old = include_bytes!("../../bytes/blocked-2.bin");
    let old = [&note("folded").to_bytes()[..], old].concat();
    assert_eq!(Note::split(&old), Err(BytesError::Old(2)));
    assert!(BloomFilter::from_bytes(&old).is_err() && LayeredFilter::from_bytes(&old).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Changed in a few places, with right checksums: either refused, or these are the bytes of the
    /// note and of the filter.
    #[test]
    fn forged_notes_never_panic(
        changes in prop::collection::vec((0_usize..150, any::<u8>()), 0..5),
        text in ".{1,50}", critical in any::<bool>(), number in 0_usize..5,
    ) {
        let original = &all()[number];
        let note = note(&text);
        let note = if critical { note.critical() } else { note };
        let mut bytes = noted(&note, original);
        for (index, value) in changes {
            bytes[index] = value;
        }
        let bytes = sealed(bytes);
        match Note::split(&bytes) {
            Ok((Some(note), filter)) => {
                prop_assert!([&note.to_bytes()[..], filter].concat() == bytes);
                let expected = match note.is_critical() {
                    true => Err(BytesError::CriticalNote),
                    false => original.read(filter),
                };
                prop_assert_eq!(original.read(&bytes), expected);
            }
            Ok((None, filter)) => prop_assert!(filter == bytes),
            Err(error) => {
                // What follows a critical note is not looked at.
                let found = original.read(&bytes).unwrap_err();
                prop_assert!(found == error || found == BytesError::CriticalNote);
            }
        }
    }
}
