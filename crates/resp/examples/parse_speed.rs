//! Measures the cost of parsing requests and of encoding the usual reply.
//!
//! `cargo run --release -p everbloom-resp --example parse_speed`
//!
//! Prints the best of several rounds, in nanoseconds per request. The pipelines are what a load
//! generator sends at depth 128. Use the figure to compare before and after a change; it is not a
//! benchmark.

use std::hint::black_box;
use std::time::Instant;

use everbloom_resp::{
    Batch, Limits, ProtocolError, RequestParser, encode::encode_integer, encode_request, recycle,
};

const DEPTH: usize = 128;
const ROUNDS: usize = 30;
const REPEATS: usize = 5_000;

fn main() -> Result<(), ProtocolError> {
    for (name, items, len) in [
        ("BF.ADD, item of 8", 1, 8),
        ("BF.ADD, item of 16", 1, 16),
        ("BF.MADD of 100", 100, 16),
    ] {
        let buf = pipeline(items, len);
        let mut args: Vec<&[u8]> = Vec::new();
        let mut best = [f64::INFINITY; 2];
        for _ in 0..ROUNDS {
            best[0] = best[0].min(parse(&buf)?);
            let parsed;
            (parsed, args) = parse_and_resolve(&buf, recycle(args))?;
            best[1] = best[1].min(parsed);
        }
        let [parse, resolve] = best;
        println!("{name:20} parse {parse:8.1} ns   parse and resolve {resolve:8.1} ns");
    }
    println!("{:20} encode {:7.1} ns", "reply :1", encode());
    Ok(())
}

fn pipeline(items: usize, len: usize) -> Vec<u8> {
    let mut buf = Vec::new();
    for request in 0..DEPTH {
        let name = if items == 1 { "BF.ADD" } else { "BF.MADD" };
        let mut args = vec![name.to_owned(), "filter".to_owned()];
        args.extend((0..items).map(|item| format!("{:0len$}", request * items + item)));
        encode_request(&args, &mut buf);
    }
    buf
}

fn nanos_per_request(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e9 / (REPEATS * DEPTH) as f64
}

fn parse(buf: &[u8]) -> Result<f64, ProtocolError> {
    let (mut parser, mut batch) = (RequestParser::new(), Batch::new());
    let limits = Limits::default();
    let start = Instant::now();
    for _ in 0..REPEATS {
        parser.parse(black_box(buf), &limits, &mut batch)?;
        assert_eq!((batch.len(), parser.consume()), (DEPTH, buf.len()));
    }
    Ok(nanos_per_request(start))
}

fn parse_and_resolve<'b>(
    buf: &'b [u8],
    args: Vec<&'b [u8]>,
) -> Result<(f64, Vec<&'b [u8]>), ProtocolError> {
    let (mut parser, mut batch) = (RequestParser::new(), Batch::new());
    let limits = Limits::default();
    let mut spare: Vec<&'static [u8]> = recycle(args);
    let start = Instant::now();
    for _ in 0..REPEATS {
        parser.parse(black_box(buf), &limits, &mut batch)?;
        let mut args = spare;
        batch.resolve(buf, &mut args);
        black_box(&args);
        spare = recycle(args);
        let _ = parser.consume();
    }
    Ok((nanos_per_request(start), spare))
}

fn encode() -> f64 {
    let mut out = Vec::new();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..REPEATS {
            out.clear();
            for _ in 0..DEPTH {
                encode_integer(black_box(1), &mut out);
            }
            black_box(&out);
        }
        best = best.min(nanos_per_request(start));
    }
    best
}
