//! A subject behind a socket.

use std::io;
use std::net::SocketAddr;

use everbloom_dev::Client;

use crate::runner::Subject;

/// A server reached over TCP, with a new connection for each case.
#[derive(Debug)]
pub struct TcpSubject {
    addr: SocketAddr,
    client: Client,
}

impl TcpSubject {
    /// Connects to a running server.
    pub fn connect(addr: SocketAddr) -> io::Result<Self> {
        let client = Client::try_connect(addr)?;
        Ok(Self { addr, client })
    }
}

impl Subject for TcpSubject {
    fn connect(&mut self, resp: u8) -> io::Result<()> {
        self.client = Client::try_connect(self.addr)?;
        if resp == 3 {
            self.call(&[b"HELLO".to_vec(), b"3".to_vec()])?;
        }
        Ok(())
    }

    /// The decoder only finds the end of the reply: its bytes are compared, not its value.
    fn call(&mut self, args: &[Vec<u8>]) -> io::Result<Vec<u8>> {
        self.client.try_send(args)?;
        let (_, bytes) = self
            .client
            .raw_reply()
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(bytes)
    }
}
