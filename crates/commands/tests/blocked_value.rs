//! A filter of the blocked layout as fields and as a header: the bytes never change, and invalid
//! ones are refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod fields;

use everbloom::hash::Key;
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::PartsError;
use everbloom::{Layout, Span};
use everbloom_commands::format::header;
use everbloom_commands::format::value::{
    FieldWriter, ValueError, ValueType, load, save, save_array_head, save_array_tail, save_head,
    value_type,
};
use everbloom_commands::{Filter, FilterKind};
use proptest::prelude::*;

use fields::Field::{Bytes, Double, Unsigned};
use fields::{Field, Rest, Row};

type Loaded = Result<LayeredFilter, ValueError<&'static str>>;

const BLOCKED: FilterKind = FilterKind::Bloom(Layout::Blocked);

fn read(fields: &[Field]) -> Loaded {
    load(BLOCKED, &mut Rest(fields), 1, 1 << 20).map(fields::bloom)
}

fn fields(filter: &LayeredFilter) -> Vec<Field> {
    let mut row = Row::default();
    let Ok(()) = save(&filter.clone().into(), &mut row);
    row.0
}

/// `BF.RESERVE k 0.01 20 NONSCALING LAYOUT BLOCKED SEED 1`, `BF.ADD k foo`.
fn recorded() -> Vec<Field> {
    vec![
        Unsigned(1),
        Unsigned(1),
        Unsigned(13),
        Unsigned(2),
        Bytes(KEY.to_vec()),
        Unsigned(20),
        Double(0.01),
        Unsigned(6),
        Unsigned(64),
        Bytes(BITS.to_vec()),
        Unsigned(1),
    ]
}

/// The key of seed 1.
const KEY: [u8; 16] = [
    0xc1, 0x5c, 0x02, 0x89, 0xec, 0x2d, 0x0a, 0x91, 0x67, 0xec, 0x8e, 0x65, 0xa1, 0x8d, 0xeb, 0xbe,
];
/// The block that holds only `foo`: bits 191 242 258 270 410 458, computed by another program.
const BITS: [u8; 64] = [
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 4,
    0, 4, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0,
    0, 0,
];

/// The header of the same filter.
const HEADER: &str = "65766572626c6f6f6d0d0a1a 0100 0100 \
    0100000000000000 01000000 0d000000 02000000 \
    c15c0289ec2d0a9167ec8e65a18debbe \
    4000000000000000 0100000000000000 1400000000000000 7b14ae47e17a843f 06000000";

fn one_item() -> LayeredFilter {
    let mut filter = LayeredFilter::builder()
        .error_rate(0.01)
        .capacity(20)
        .fixed()
        .layout(Layout::Blocked)
        .seed(1)
        .build()
        .unwrap();
    filter.insert("foo");
    filter
}

fn grown() -> LayeredFilter {
    let mut filter = LayeredFilter::builder()
        .capacity(3)
        .layout(Layout::Blocked)
        .build()
        .unwrap();
    filter.extend((0..1000).map(|i| i.to_string()));
    assert!(filter.layers().len() > 2);
    filter
}

#[test]
fn fields_are_those_that_were_recorded() {
    assert_eq!(fields(&one_item()), recorded());
    let filter = read(&recorded()).unwrap();
    assert_eq!(filter, one_item());
    assert!(filter.contains("foo") && !filter.contains("bar"));
}

#[test]
fn a_header_is_the_one_that_was_recorded() {
    let header = header::encode(&one_item());
    let hex: String = header.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, HEADER.replace(' ', ""));
    let parts = header::decode(&header).unwrap();
    assert_eq!(parts.key, Some(Key::from_bytes(KEY)));
    assert_eq!(header::encode_parts(&parts), header);
}

#[test]
fn the_type_has_a_name_of_nine_characters() {
    let expected = ValueType {
        name: "everbloom",
        version: 1,
    };
    assert_eq!(value_type(BLOCKED), expected);
    assert_eq!(expected.name.len(), 9);
}

#[test]
fn layer_by_layer_gives_the_same_fields() {
    let filter = grown();
    let mut row = Row::default();
    let parts = Filter::from(filter.clone()).parts();
    let Ok(()) = save_head(&parts, &mut row);
    for (number, layer) in filter.layers().iter().enumerate() {
        let Ok(()) = save_array_head(&parts, number, &mut row);
        let Ok(()) = row.bytes(&layer.as_bytes());
        let Ok(()) = save_array_tail(&parts, number, &mut row);
    }
    assert_eq!(row.0, fields(&filter));
    assert_eq!(read(&row.0).unwrap(), filter);
}

#[test]
fn other_versions_are_refused() {
    for version in [0, 2, u32::MAX] {
        let loaded = load(BLOCKED, &mut Rest(&recorded()), version, 1 << 20);
        let type_name = "everbloom";
        assert_eq!(
            loaded.unwrap_err(),
            ValueError::Version { type_name, version }
        );
    }
}

#[test]
fn a_field_that_no_filter_has_is_named() {
    let layer = 0;
    let wrong = |at: usize, field: Field| {
        let mut fields = recorded();
        fields[at] = field;
        read(&fields).unwrap_err()
    };
    let parts = ValueError::Parts;
    assert_eq!(wrong(0, Unsigned(2)), parts(PartsError::Items));
    assert_eq!(wrong(10, Unsigned(2)), parts(PartsError::Items));
    assert_eq!(wrong(1, Unsigned(0)), parts(PartsError::NoLayers));
    assert_eq!(wrong(1, Unsigned(2)), ValueError::Read("missing"));
    assert_eq!(wrong(1, Unsigned(u64::MAX)), ValueError::Read("missing"));
    for options in [0, 1, 4, 7, 12, 15, 32, 37] {
        assert_eq!(wrong(2, Unsigned(options)), parts(PartsError::Options));
    }
    assert_eq!(
        wrong(2, Unsigned(1 << 32 | 5)),
        ValueError::Field("options")
    );
    assert_eq!(wrong(3, Unsigned(1 << 32)), ValueError::Field("expansion"));
    for key in [vec![], vec![1; 15], vec![1; 17]] {
        assert_eq!(wrong(4, Bytes(key)), ValueError::Field("key"));
    }
    assert_eq!(wrong(5, Unsigned(0)), parts(PartsError::Capacity { layer }));
    for rate in [0.0, -0.1, 1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            wrong(6, Double(rate)),
            parts(PartsError::ErrorRate { layer })
        );
    }
    for hashes in [0, 1, 33, u64::from(u32::MAX)] {
        assert_eq!(
            wrong(7, Unsigned(hashes)),
            parts(PartsError::Hashes { layer })
        );
    }
    assert_eq!(wrong(7, Unsigned(1 << 32 | 6)), ValueError::Field("hashes"));
    for bytes in [0, 63, 65, 1 << 61, u64::MAX] {
        assert_eq!(wrong(8, Unsigned(bytes)), parts(PartsError::Bits { layer }));
    }
    let limit = 1 << 20;
    assert_eq!(
        wrong(8, Unsigned(limit + 64)),
        parts(PartsError::TooLarge { limit })
    );
    let short = ValueError::BitArray {
        layer,
        bytes: 63,
        expected: 64,
    };
    assert_eq!(wrong(9, Bytes(vec![0; 63])), short);
    for at in 0..recorded().len() {
        assert!(
            matches!(
                wrong(at, Bytes(vec![])),
                ValueError::Read(_) | ValueError::Field("key") | ValueError::BitArray { .. }
            ),
            "{at}"
        );
        assert_eq!(
            read(&recorded()[..at]).unwrap_err(),
            ValueError::Read("missing")
        );
    }
}

#[test]
fn limits_are_for_all_bit_arrays_together() {
    let filter = grown();
    let row = fields(&filter);
    let within = |limit| load(BLOCKED, &mut Rest(&row), 1, limit);
    assert!(within(filter.stream_len()).is_ok());
    let limit = filter.stream_len() - 1;
    let error = ValueError::Parts(PartsError::TooLarge { limit });
    assert_eq!(within(limit).unwrap_err(), error);
}

#[test]
fn a_value_is_none_of_the_other_layouts() {
    let classic = LayeredFilter::builder()
        .layout(Layout::Classic)
        .build()
        .unwrap();
    assert!(read(&fields(&classic)).is_err());
    for version in 0..=4 {
        let classic = FilterKind::Bloom(Layout::Classic);
        let loaded = load(classic, &mut Rest(&recorded()), version, 1 << 20);
        assert!(loaded.is_err());
    }
}

#[test]
fn a_header_of_another_version_layout_or_length_is_none() {
    let header = header::encode(&grown());
    assert!(header::decode(&header).is_some());
    // The magic, version and layout, the number of layers.
    for at in (0..16).chain(24..28) {
        for bit in 0..8 {
            let mut other = header.clone();
            other[at] ^= 1 << bit;
            assert_eq!(header::decode(&other), None, "byte {at} bit {bit}");
        }
    }
    for len in 0..header.len() {
        assert_eq!(header::decode(&header[..len]), None);
    }
    let mut longer = header.clone();
    longer.push(0);
    assert_eq!(header::decode(&longer), None);
}

/// RedisBloom requires a header of 20 bytes and 53 more for each layer. The number of layers is at
/// byte 8. The options, at byte 12, may have no bit above 15.
#[test]
fn redisbloom_would_refuse_a_header() {
    let header = header::encode(&grown());
    let u32_at = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
    assert!(20 + 53 * u64::from(u32_at(8)) > 1 << 34);
    assert!(u32_at(12) > 15);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Any header makes either no filter, or a filter that has this header.
    #[test]
    fn a_damaged_header_never_makes_another_filter(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut header = header::encode(&grown());
        for (at, byte) in changes {
            let at = at.index(header.len());
            header[at] = byte;
        }
        let parts = header::decode(&header);
        let filter = parts.and_then(|p| LayeredFilter::from_parts(&p, 1 << 20).ok());
        if let Some(filter) = filter {
            prop_assert_eq!(header::encode(&filter), header);
        }
    }
}

/// `BF.RESERVE k 0.05 80 WINDOW SECONDS 40 SEED 1` at 1000 ms, and `BF.ADD k foo` at that time, 15
/// and 55 seconds later: computed by `window.py`, which knows only docs/formats.md.
const WINDOW_HEADER: &str = include_str!("window.hex");

fn windowed() -> LayeredFilter {
    let builder = LayeredFilter::builder().error_rate(0.05).capacity(80);
    let mut filter = builder
        .seed(1)
        .window(Span::Ticks(40_000), 4, 1000)
        .build()
        .unwrap();
    filter.insert("foo");
    for (now, began) in [(16_000, (1, 11_000)), (56_000, (4, 51_000))] {
        assert_eq!(filter.advance_to(now), Ok(Some(began)));
        filter.insert("foo");
    }
    filter
}

#[test]
fn a_window_has_the_bytes_that_another_program_computed() {
    let header = header::encode(&windowed());
    let hex: String = header.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, WINDOW_HEADER.split_whitespace().next().unwrap());
    let bits = WINDOW_HEADER.split_whitespace().nth(1).unwrap();
    let filter = windowed();
    let hex = filter.layers().iter().map(|layer| {
        let bytes = layer.as_bytes();
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    });
    assert_eq!(hex.collect::<String>(), bits);
}

#[test]
fn a_window_comes_back_from_fields_and_header() {
    let fields = fields(&windowed());
    assert_eq!(fields[2], Unsigned(21));
    assert_eq!(
        fields[5..15],
        [40_000, 4, 80]
            .map(Unsigned)
            .into_iter()
            .chain([Double(0.05)])
            .chain([64, 5, 1, 11_000, 0, 51_000].map(Unsigned))
            .collect::<Vec<_>>()
    );
    assert_eq!(read(&fields).unwrap(), windowed());
    let header = header::encode(&windowed());
    let parts = header::decode(&header).unwrap();
    assert_eq!(parts.window.as_ref(), windowed().window());
    assert_eq!(header::encode_parts(&parts), header);
    for len in 0..header.len() {
        assert_eq!(header::decode(&header[..len]), None);
    }
    // Generations, capacity, how many are kept, layers of one, and when it began.
    let forged = [
        (6, 0),
        (6, 65),
        (7, 0),
        (10, 66),
        (11, 2),
        (19, 0),
        (12, 51_001),
    ];
    for (at, wrong) in forged {
        let mut fields = fields.clone();
        fields[at] = Unsigned(wrong);
        assert_eq!(read(&fields), Err(PartsError::Window.into()), "{at}");
    }
}
