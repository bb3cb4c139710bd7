//! Requests from any bytes: no panic, every argument within the buffer, and the same requests and
//! the same error whether the bytes arrive at once or in pieces.
//!
//! The first bytes of the input choose the sizes of the pieces and whether the client has
//! authenticated; the rest is what it sends.
#![no_main]

use everbloom_resp::{Batch, Limits, ProtocolError, RequestParser};
use libfuzzer_sys::fuzz_target;

type Outcome = (Vec<Vec<Vec<u8>>>, Result<(), ProtocolError>, usize);

fuzz_target!(|input: (bool, [u8; 4], &[u8])| {
    let (authenticated, sizes, bytes) = input;
    // Small limits, so that short inputs reach them.
    let limits = Limits {
        max_args: 64,
        max_bulk: 300,
        max_inline: 64,
        authenticated,
        ..Limits::default()
    };
    let sizes = sizes.map(|size| usize::from(size).max(1));
    let whole = parse(bytes, &[bytes.len().max(1)], &limits);
    assert_eq!(parse(bytes, &sizes, &limits), whole);
    assert_eq!(parse(bytes, &[1], &limits), whole);
});

fn parse(bytes: &[u8], sizes: &[usize], limits: &Limits) -> Outcome {
    let (mut parser, mut batch) = (RequestParser::new(), Batch::new());
    let (mut requests, mut start, mut end) = (Vec::new(), 0, 0);
    for size in sizes.iter().cycle() {
        end = bytes.len().min(end + size);
        loop {
            let buf = &bytes[start..end];
            let result = parser.parse(buf, limits, &mut batch);
            for i in 0..batch.len() {
                let request: Vec<_> = batch.request(i, buf).map(<[u8]>::to_vec).collect();
                assert!(!request.is_empty() && request.len() == batch.range(i).len());
                requests.push(request);
            }
            let consumed = parser.consume();
            assert!(consumed <= buf.len());
            assert!(batch.is_empty() || consumed > 0, "a request takes bytes");
            start += consumed;
            if result.is_err() {
                return (requests, result, start);
            }
            if !parser.has_more() {
                break;
            }
        }
        if end == bytes.len() {
            break;
        }
    }
    (requests, Ok(()), start)
}
