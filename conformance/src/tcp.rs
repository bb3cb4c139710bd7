//! A subject behind a socket.

use crate::runner::Subject;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A server reached over TCP, with a new connection for each case.
#[derive(Debug)]
pub struct TcpSubject {
    addr: SocketAddr,
    stream: BufReader<TcpStream>,
}

/// A server that is silent for longer has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

impl TcpSubject {
    /// Connects to a running server.
    pub fn connect(addr: SocketAddr) -> io::Result<Self> {
        Ok(Self {
            addr,
            stream: open(addr)?,
        })
    }
}

fn open(addr: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(addr)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    Ok(BufReader::new(stream))
}

impl Subject for TcpSubject {
    fn connect(&mut self, resp: u8) -> io::Result<()> {
        self.stream = open(self.addr)?;
        if resp == 3 {
            self.call(&[b"HELLO".to_vec(), b"3".to_vec()])?;
        }
        Ok(())
    }

    fn call(&mut self, args: &[Vec<u8>]) -> io::Result<Vec<u8>> {
        let mut request = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args {
            request.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            request.extend_from_slice(arg);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&request)?;
        read_reply(&mut self.stream)
    }
}

/// Reads the bytes of exactly one reply of either protocol.
///
/// It does not use our decoder, because a fault of our encoder could be in our decoder, too.
pub fn read_reply(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut reply = Vec::new();
    let mut expected: u64 = 1;
    while expected > 0 {
        expected -= 1;
        let start = reply.len();
        if from.read_until(b'\n', &mut reply)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = reply.get(start..).unwrap_or_default().trim_ascii_end();
        let (kind, rest) = line.split_first().unwrap_or((&0, &[]));
        // If this is not a count, such as the text of an error, or if it is -1, nothing follows.
        let number: Option<u64> = std::str::from_utf8(rest)
            .ok()
            .and_then(|text| text.parse().ok());
        match (kind, number) {
            (b'$' | b'=' | b'!', Some(len)) => {
                let wanted = len + 2;
                if from.by_ref().take(wanted).read_to_end(&mut reply)? as u64 != wanted {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            (b'*' | b'~' | b'>', Some(elements)) => expected += elements,
            (b'%' | b'|', Some(pairs)) => expected += 2 * pairs,
            _ => {}
        }
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::read_reply;

    #[test]
    fn one_reply_is_read_and_no_byte_more() {
        let replies: [&[u8]; 9] = [
            b"+OK\r\n",
            b"-ERR not found\r\n",
            b":17\r\n",
            b"$-1\r\n",
            b"$4\r\na\r\nb\r\n",
            b"*3\r\n:1\r\n*1\r\n$0\r\n\r\n-ERR x\r\n",
            b"%2\r\n+a\r\n:1\r\n+b\r\n_\r\n",
            b"*-1\r\n",
            b"#t\r\n",
        ];
        let stream = replies.concat();
        let mut rest = stream.as_slice();
        for reply in replies {
            assert_eq!(read_reply(&mut rest).unwrap(), reply);
        }
        assert!(read_reply(&mut rest).is_err());
        assert!(read_reply(&mut &b"$4\r\nab"[..]).is_err());
    }
}
