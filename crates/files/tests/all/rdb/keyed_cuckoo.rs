//! Cuckoo filters with a chosen error rate: their bytes are those that another program computed.

use everbloom::CuckooFilter;
use everbloom_commands::Filter;
use everbloom_commands::format::header::cuckoo as header;
use everbloom_files::Value;
use everbloom_files::rdb::{dump, restore};

/// Of two filters the header and the payload: computed by `commands/tests/keyed_cuckoo.py`, which
/// knows only docs/formats.md.
const COMPUTED: &str = include_str!("../../golden/keyed-cuckoo.hex");

/// Another program has made this one, too.
const GROWN: &[u8] = include_bytes!("../../../../filters/tests/bytes/3-cuckoo-grown.bin");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn they_are_written_as_another_program_does() {
    let builder = CuckooFilter::builder().capacity(4).error_rate(0.01);
    let mut small = builder.seed(1).expansion(1).build().unwrap();
    small.insert("foo").unwrap();
    let grown = CuckooFilter::from_bytes(GROWN).unwrap();
    assert_eq!(grown.tables(), 3);
    let lines: Vec<&str> = COMPUTED.lines().collect();
    let (computed, []) = lines.as_chunks::<2>() else {
        panic!("pairs of lines");
    };
    for (filter, [header, payload]) in [small, grown].into_iter().zip(computed) {
        assert_eq!(hex(&header::encode(&filter.parts())), *header);
        assert_eq!(header::decode(&unhex(header)), Some(filter.parts()));
        let filter = Filter::Cuckoo(filter);
        let value = Value::Filter(filter.clone());
        assert_eq!(hex(&dump(&value, false, usize::MAX).unwrap()), *payload);
        for compression in [false, true] {
            let payload = dump(&value, compression, usize::MAX).unwrap();
            let restored = restore(&payload, u64::MAX).unwrap();
            assert!(matches!(restored, Value::Filter(it) if it == filter));
        }
    }
}
