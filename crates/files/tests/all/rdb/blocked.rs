//! Filters of the blocked layout: bytes that must never change, and what a reader refuses.

use everbloom::host::LayeredFilter;
use everbloom::{Layout, Span};
use everbloom_commands::format::header;
use everbloom_files::Value;
use everbloom_files::rdb::value::ModuleType;
use everbloom_files::rdb::{RestoreError, WriteOptions, Writer, dump, restore};
use serde_json::Value as Json;

use super::common::{filter, filter_in, read};
use super::damage::sealed;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(json: &Json) -> Vec<u8> {
    let text = json.as_str().unwrap();
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// `BF.RESERVE k 0.01 3 LAYOUT BLOCKED SEED 42` and `BF.MADD k item:0 ... item:99`, recorded once,
/// its bits computed by a program of its own. Its layers grew by 18, as small ones did then.
fn golden() -> Json {
    serde_json::from_str(include_str!("../../golden/blocked.json")).unwrap()
}

fn recorded() -> LayeredFilter {
    let value = restore(&unhex(&golden()["payload"]), u64::MAX).unwrap();
    filter(&value).clone()
}

fn file(filter: &LayeredFilter) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), WriteOptions::default()).unwrap();
    writer.select_db(0).unwrap();
    writer
        .filter(b"k", Some(1), &filter.clone().into())
        .unwrap();
    writer.finish().unwrap().0
}

#[test]
fn recorded_bytes_are_what_is_still_written() {
    let golden = golden();
    let filter = recorded();
    assert_eq!(filter.layout(), Layout::Blocked);
    assert_eq!(filter.layers().len(), 3);
    for item in 0..100 {
        assert!(filter.contains(&format!("item:{item}")), "{item} is lost");
    }
    let value = Value::Filter(filter.clone().into());
    assert_eq!(hex(&header::encode(&filter)), golden["header"]);
    assert_eq!(
        hex(&dump(&value, false, usize::MAX).unwrap()),
        golden["payload"]
    );
    assert_eq!(
        hex(&dump(&value, true, usize::MAX).unwrap()),
        golden["compressed"]
    );
    assert_eq!(hex(&file(&filter)), golden["file"]);
}

/// The filter of `commands/tests/window.py`, which knows only docs/formats.md.
#[test]
fn a_window_is_written_as_another_program_does() {
    let builder = LayeredFilter::builder().error_rate(0.05).capacity(80);
    let built = builder.seed(1).window(Span::Ticks(40_000), 4, 1000).build();
    let mut filter = built.unwrap();
    filter.insert("foo");
    for now in [16_000, 56_000] {
        filter.advance_to(now).unwrap();
        filter.insert("foo");
    }
    let recorded = include_str!("../../golden/window.hex").trim_end();
    let value = Value::Filter(filter.clone().into());
    assert_eq!(hex(&dump(&value, false, usize::MAX).unwrap()), recorded);
    let payload = unhex(&Json::from(recorded));
    let restored = restore(&payload, u64::MAX).unwrap();
    assert_eq!(self::filter(&restored), &filter);
}

#[test]
fn recorded_bytes_are_still_read() {
    let golden = golden();
    let filter = recorded();
    let compressed = restore(&unhex(&golden["compressed"]), u64::MAX).unwrap();
    assert_eq!(*super::common::filter(&compressed), filter);
    let contents = read(&unhex(&golden["file"])[..]).unwrap();
    let key = contents.key(0, b"k");
    assert_eq!(key.expires_at, Some(1));
    assert_eq!(*super::common::filter(&key.value), filter);
    let parts = header::decode(&unhex(&golden["header"])).unwrap();
    let empty = LayeredFilter::from_parts(&parts, u64::MAX).unwrap();
    assert_eq!(empty.parts(), filter.parts());
}

/// What is made today from the same seed and items is what was made then, but for the expansion
/// in the header: layers grew by 18 then, although it was 2.
#[test]
fn a_seed_still_makes_the_same_filter() {
    let mut filter = LayeredFilter::builder()
        .error_rate(0.01)
        .capacity(3)
        .expansion(18)
        .layout(Layout::Blocked)
        .seed(42)
        .build()
        .unwrap();
    filter.extend((0..100).map(|item| format!("item:{item}")));
    assert_eq!(filter.layers(), recorded().layers());
}

#[test]
fn the_type_has_a_name_and_an_id_of_its_own() {
    let payload = unhex(&golden()["payload"]);
    let id = u64::from_be_bytes(payload[2..10].try_into().unwrap());
    let found = ModuleType::from_id(id);
    assert_eq!((found.name(), found.version), ("everbloom".into(), 1));
    assert_eq!(ModuleType::new("everbloom", 1), Some(found));
}

#[test]
fn versions_that_are_not_known_are_named() {
    let payload = unhex(&golden()["payload"]);
    for version in [0, 2, 3] {
        let mut body = payload[..payload.len() - 10].to_vec();
        body[9] = body[9] & 0xfc | version;
        let Err(RestoreError::Format(error)) = restore(&sealed(&body, 9), u64::MAX) else {
            panic!("version {version} was taken");
        };
        let text = format!("version {version} of a value of type everbloom cannot be read");
        assert_eq!(error.fault.to_string(), text);
    }
}

#[test]
fn a_limit_is_for_filters_of_either_layout() {
    for layout in [Layout::Classic, Layout::Blocked] {
        let filter = filter_in(layout, 1000, 5000);
        let payload = dump(&Value::Filter(filter.clone().into()), true, usize::MAX).unwrap();
        assert!(restore(&payload, filter.stream_len()).is_ok());
        assert!(restore(&payload, filter.stream_len() - 1).is_err());
    }
}
