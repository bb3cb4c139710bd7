//! A filter on a server as the memory of many machines.

use std::ffi::OsStr;

use everbloom_resp::{Reply, quoted};

use super::args::{Args, ERROR_RATE};
use crate::client::Url;
use crate::failure::Failure;
use crate::records::chunk::Chunk;
use crate::servers::server::{Requests, Server};

/// Adds items to a filter, and makes none: the server's own would have another error rate.
const COMMAND: &str = "BF.INSERT";

/// Keys of one request. The server serves others between two of them.
const BATCH: usize = 1000;

/// The capacity of a filter that is made without one.
const CAPACITY: u64 = 1_000_000;

/// A filter on a server.
#[derive(Debug)]
pub(super) struct ServerFilter {
    server: Server,
    key: Vec<u8>,
    /// The key was there, and is not any more.
    pub(super) is_gone: bool,
}

impl ServerFilter {
    /// Connects, and makes the filter unless it is there.
    pub(super) fn connect(url: &Url, args: &Args, key: &OsStr) -> Result<Self, Failure> {
        let mut server = Server::connect(url, &args.server, &[COMMAND])?;
        let key = key.as_encoded_bytes().to_vec();
        let capacity = args.capacity.unwrap_or(CAPACITY).to_string();
        let error_rate = args.error_rate.unwrap_or(ERROR_RATE).to_string();
        let words = [
            b"BF.RESERVE",
            &*key,
            error_rate.as_bytes(),
            capacity.as_bytes(),
        ];
        server.execute(&Requests::of(&words), |server, reply| match reply {
            Reply::Error(text) if text.contains("exists") => Ok(()),
            reply => server.accepted(reply, "BF.RESERVE").map(drop),
        })?;
        let is_gone = false;
        Ok(Self {
            server,
            key,
            is_gone,
        })
    }

    /// Adds the keys of the chunk; answers for each whether it is new. After an error, the keys
    /// without an answer may have been added or not. They are not sent again: the answer could not
    /// tell what another program had added from what was added the first time.
    pub(super) fn ask(&mut self, chunk: &Chunk, new: &mut Vec<bool>) -> Result<(), Failure> {
        let mut start = 0;
        let mut requests = Requests::default();
        let mut request: Vec<&[u8]> = Vec::new();
        for ends in chunk.key_ends.chunks(BATCH) {
            request.clear();
            request.extend([COMMAND.as_bytes(), &self.key, b"NOCREATE", b"ITEMS"]);
            for &end in ends {
                request.push(chunk.keys.get(start..end).unwrap_or_default());
                start = end;
            }
            requests.push(&request);
        }
        let mut counts = chunk.key_ends.chunks(BATCH).map(<[usize]>::len);
        let (key, is_gone) = (&self.key, &mut self.is_gone);
        self.server.execute(&requests, |server, reply| match reply {
            Reply::Error(text) if text.contains("not found") => {
                *is_gone = true;
                Err(Failure::Other(format!(
                    "there is no such key any more: {}: it was deleted, evicted or has expired; \
                     the next run makes it again",
                    quoted(key)
                )))
            }
            reply => {
                let count = counts.next().unwrap_or_default();
                server.answers(reply, (COMMAND, count), |is_new| new.push(is_new))
            }
        })
    }
}
