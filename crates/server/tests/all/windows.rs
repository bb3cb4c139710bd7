//! Windows free what has expired, also when memory is used up.

use everbloom::Span;
use everbloom::host::LayeredFilter;
use everbloom_files::Value;
use everbloom_files::rdb::dump;
use everbloom_resp::Reply;
use everbloom_server::Settings;

use crate::support::{Client, OfRunning, server};

/// The payload of a window with items of 1970.
fn old_window() -> Vec<u8> {
    let builder = LayeredFilter::builder().capacity(100_000);
    let builder = builder.window(Span::Ticks(2000), 4, 1);
    let mut filter = builder.build().unwrap();
    for generation in 0..5 {
        filter.advance_to(1 + generation * 500).unwrap();
        filter.insert(&generation);
    }
    assert_eq!(filter.layers().len(), 5);
    dump(&Value::Filter(filter.into()), true, usize::MAX).unwrap()
}

#[test]
fn expired_generations_make_room_for_a_write() {
    // The thread that removes what has expired looks once a second.
    let running = server(Settings {
        hz: 1,
        ..Settings::default()
    });
    let mut client = Client::of(&running);
    let used = client.info("used_memory").parse::<u64>().unwrap();
    let payload = old_window();
    for key in 0..40 {
        let key = format!("idle{key}");
        let words: [&[u8]; 4] = [b"RESTORE", key.as_bytes(), b"0", &payload];
        assert_eq!(client.call(&words), Reply::OK);
    }
    client.ok(&format!("CONFIG SET maxmemory {}", used + 4_000_000));
    assert_eq!(client.line("BF.ADD new item"), Reply::Integer(1));
    assert_eq!(client.line("BF.ADD idle0 item"), Reply::Integer(1));
    assert_eq!(client.line("BF.ADVANCE idle1"), Reply::OK);
}
