//! Servers that answer what they like.

use super::*;

/// What a bad server answers to SCAN, to SCANDUMP 0 and to SCANDUMP 1.
type BadServer = [Vec<u8>; 3];

fn bad_servers() -> Vec<BadServer> {
    let header = |bytes: u64, bits: u64| {
        let mut header = Vec::new();
        header.extend(0_u64.to_le_bytes());
        for field in [1_u32, 5, 2] {
            header.extend(field.to_le_bytes());
        }
        for field in [bytes, bits, 0] {
            header.extend(field.to_le_bytes());
        }
        header.extend(0.005_f64.to_le_bytes());
        header.extend(11.0_f64.to_le_bytes());
        header.extend(8_u32.to_le_bytes());
        header.extend(100_u64.to_le_bytes());
        header.push(0);
        header
    };
    let pair =
        |iterator: i64, data: Vec<u8>| Reply::Array(vec![iterator.into(), Reply::bulk(data)]);
    let fine = pair(1, header(128, 1024));
    let raw = |text: &str| text.as_bytes().to_vec();
    let bytes = |reply: &Reply| {
        let mut out = Vec::new();
        encode(reply, everbloom_resp::Protocol::Resp2, &mut out);
        out
    };
    let scan = bytes(&Reply::Array(vec![
        Reply::bulk("0"),
        Reply::Array(vec![Reply::bulk("k")]),
    ]));
    vec![
        [raw("*1\r\n$1\r\n0\r\n"), raw(""), raw("")],
        [raw("*2\r\n*0\r\n*0\r\n"), raw(""), raw("")],
        [raw("*2\r\n$1\r\n0\r\n*1\r\n:1\r\n"), raw(""), raw("")],
        [raw("*-5\r\n"), raw(""), raw("")],
        [raw("$99999999999999\r\n"), raw(""), raw("")],
        [scan.clone(), bytes(&pair(1, vec![])), raw("")],
        [scan.clone(), bytes(&pair(1, vec![0xff; 73])), raw("")],
        [
            scan.clone(),
            bytes(&pair(1, header(u64::MAX, u64::MAX))),
            raw(""),
        ],
        [
            scan.clone(),
            bytes(&pair(1, header(1 << 62, 1 << 62))),
            bytes(&pair(2, vec![0])),
        ],
        [scan.clone(), bytes(&Reply::Null), raw("")],
        [scan.clone(), bytes(&Reply::Integer(-1)), raw("")],
        [scan.clone(), bytes(&fine), bytes(&pair(0, vec![]))],
        [scan.clone(), bytes(&fine), bytes(&pair(-1, vec![0; 128]))],
        [
            scan.clone(),
            bytes(&fine),
            bytes(&pair(i64::MAX, vec![0; 128])),
        ],
        [scan.clone(), bytes(&fine), bytes(&pair(130, vec![0; 129]))],
        [scan.clone(), bytes(&fine), bytes(&Reply::error("ERR no"))],
        [scan.clone(), bytes(&fine), raw("$-7\r\n")],
        [
            scan,
            bytes(&fine),
            [raw("*2\r\n:1\r\n$80000000\r\n"), vec![0; 80_000_000]].concat(),
        ],
    ]
}

/// Serves one client with an answer to each request. Returns the port.
pub(super) fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            // Requests in the order in which they came, several at a time.
            for request in text.split('*').skip(1) {
                if stream.write_all(&answer(request)).is_err() {
                    return;
                }
            }
        }
    });
    port
}

fn serve_badly([scan, header, piece]: BadServer) -> u16 {
    serve(move |request| match request {
        _ if request.contains("COMMAND") => b"*1\r\n*0\r\n".to_vec(),
        _ if request.contains("SCANDUMP") && request.contains("\r\n0\r\n") => header.clone(),
        _ if request.contains("SCANDUMP") => piece.clone(),
        _ if request.contains("SCAN") => scan.clone(),
        _ if request.contains("TYPE") => b"$9\r\nMBbloom--\r\n".to_vec(),
        _ => b":-1\r\n".to_vec(),
    })
}

/// What a bad server sends never becomes a file.
#[test]
fn bad_servers_make_no_files() {
    let file = folder("copy-bad-file").join("f.bloom");
    for (number, bad) in bad_servers().into_iter().enumerate() {
        if number < 5 {
            continue; // they answer SCAN badly, which nobody sends for one key
        }
        let from = format!("{}#k", url(serve_badly(bad)));
        let outcome = run(&mut command("copy", &from, file.to_str().unwrap(), &[]));
        assert!(
            matches!(outcome.status.code(), Some(1 | 2)),
            "{number}: {outcome:?}"
        );
        assert!(!file.exists(), "{number}");
    }
}

/// A page of names that is too much for us is not read to its end.
#[test]
fn a_reply_that_is_too_long() {
    let ours = server();
    let page = [
        b"*2\r\n$1\r\n0\r\n*1\r\n$80000000\r\n".to_vec(),
        vec![0; 80_000_000],
    ]
    .concat();
    let port = serve_badly([page, Vec::new(), Vec::new()]);
    let outcome = copy(port, ours.port, &[]);
    assert_code(&outcome, 2);
    assert!(
        outcome.stderr.contains("a reply is too long"),
        "{outcome:?}"
    );
}

/// A destination that loses a bit.
#[test]
fn what_is_read_back_is_compared() {
    let old = server();
    let mut client = old.client();
    client.ok("BF.RESERVE k 0.01 100");
    client.ok("BF.ADD k x");
    let [header, piece] = [0, 1].map(|iterator| {
        let parts = client
            .ok(&format!("BF.SCANDUMP k {iterator}"))
            .into_elements()
            .unwrap();
        let end = parts[0].as_integer().unwrap();
        (end, parts[1].as_bytes().unwrap().to_vec())
    });
    for (lost, code) in [(true, 1), (false, 0)] {
        let mut piece = piece.clone();
        if lost {
            let byte = piece.1.iter_mut().find(|byte| **byte != 0).unwrap();
            *byte &= *byte - 1;
        }
        let answers = [&header, &piece].map(|(end, data)| {
            let mut out = format!("*2\r\n:{end}\r\n${}\r\n", data.len()).into_bytes();
            out.extend(data);
            out.extend(b"\r\n");
            out
        });
        let fake = || {
            let [header, piece] = answers.clone();
            serve(move |request| match request {
                _ if request.contains("COMMAND") => b"*1\r\n*0\r\n".to_vec(),
                _ if request.contains("SCANDUMP") && request.contains("\r\n0\r\n") => {
                    header.clone()
                }
                _ if request.contains("SCANDUMP") => piece.clone(),
                _ if request.contains("TYPE") => b"+none\r\n".to_vec(),
                _ if request.contains("EXEC") => b"*2\r\n:1\r\n:1\r\n".to_vec(),
                _ if request.contains("MEXISTS") => b"-ERR unknown command\r\n".to_vec(),
                _ => b":1\r\n".to_vec(),
            })
        };
        let outcome = copy(old.port, fake(), &[]);
        assert_code(&outcome, code);
        let text = "read back from the destination, it is not what was sent";
        assert_eq!(outcome.stderr.contains(text), lost, "{outcome:?}");
        copy(old.port, fake(), &["--no-verify"]).success();
    }
}

/// Servers that say odd things of a cuckoo filter, or that do not know what it is.
#[test]
fn cuckoo_filters_of_bad_servers() {
    let ours = server();
    let mut client = ours.client();
    client.ok("CF.ADD k x");
    let good = {
        let mut out = Vec::new();
        let info = client.ok("CF.INFO k");
        encode(&info, everbloom_resp::Protocol::Resp2, &mut out);
        out
    };
    client.ok("FLUSHALL");
    let with = |name: &str, number: &str| {
        let text = String::from_utf8(good.clone()).unwrap();
        let start = text.find(name).unwrap() + name.len() + 3;
        let end = start + text[start..].find('\r').unwrap();
        format!("{}{number}{}", &text[..start], &text[end..]).into_bytes()
    };
    let scan = b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n";
    let empty = || b"*2\r\n:0\r\n$-1\r\n".to_vec();
    for (info, piece) in [
        (b"*0\r\n".to_vec(), empty()),
        (b"+no\r\n".to_vec(), empty()),
        (b"*3\r\n+Size\r\n:1\r\n+Bucket size\r\n".to_vec(), empty()),
        (good.clone(), empty()),
        (good.clone(), b":1\r\n".to_vec()),
        (good.clone(), b"*2\r\n:2\r\n$2\r\nxx\r\n".to_vec()),
        (with("Number of buckets", "0"), empty()),
        (with("Number of buckets", "3"), empty()),
        (with("Number of buckets", "9223372036854775807"), empty()),
        (with("Number of filters", "0"), empty()),
        (with("Number of filters", "65536"), empty()),
        (with("Number of filters", "65535"), empty()),
        (with("Bucket size", "0"), empty()),
        (with("Bucket size", "-1"), empty()),
        (with("Expansion rate", "32769"), empty()),
        (with("Number of items inserted", "-1"), empty()),
    ] {
        let shown = info.escape_ascii().to_string();
        let fake = serve(move |request| match request {
            _ if request.contains("COMMAND") => b"*1\r\n*0\r\n".to_vec(),
            _ if request.contains("SCANDUMP") => piece.clone(),
            _ if request.contains("SCAN") => scan.to_vec(),
            _ if request.contains("CF.INFO") => info.clone(),
            _ if request.contains("TYPE") => b"+MBbloomCF\r\n".to_vec(),
            _ if request.contains("EXEC") => b"*0\r\n".to_vec(),
            _ => b":-1\r\n".to_vec(),
        });
        let outcome = copy(fake, ours.port, &[]);
        let code = outcome.status.code();
        assert!(matches!(code, Some(1 | 2)), "{shown}: {outcome:?}");
        assert!(outcome.stderr.starts_with("everbloom: "), "{outcome:?}");
        assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
        assert_eq!(client.number("DBSIZE"), 0, "{shown}");
    }

    client.ok("CF.ADD k x");
    let old = serve(|request| match request {
        _ if request.contains("COMMAND") => b"*1\r\n*0\r\n".to_vec(),
        _ if request.contains("CF.") => b"-ERR unknown command 'CF.LOADCHUNK'\r\n".to_vec(),
        _ if request.contains("TYPE") => b"+none\r\n".to_vec(),
        _ => b":1\r\n".to_vec(),
    });
    let outcome = copy(ours.port, old, &[]);
    assert_code(&outcome, 1);
    let text = "the destination has no CF.LOADCHUNK: what runs there does not know a cuckoo filter";
    assert!(outcome.stderr.contains(text), "{outcome:?}");
}

/// A copy from a server that answers what it likes ends with a clear error and does not hang.
#[test]
fn bytes_from_outside() {
    let ours = server();
    for case in bad_servers() {
        let shown: Vec<_> = case
            .iter()
            .map(|part| part[..part.len().min(80)].escape_ascii().to_string())
            .collect();
        let port = serve_badly(case);
        let outcome = copy(port, ours.port, &[]);
        let code = outcome.status.code();
        assert!(matches!(code, Some(1 | 2)), "{shown:?}: {outcome:?}");
        assert!(
            outcome.stderr.starts_with("everbloom: "),
            "{shown:?}: {outcome:?}"
        );
        assert!(
            !outcome.stderr.contains("panicked"),
            "{shown:?}: {outcome:?}"
        );
        thread::sleep(Duration::from_millis(1));
        assert_eq!(ours.client().number("DBSIZE"), 0, "{shown:?}");
    }
}
