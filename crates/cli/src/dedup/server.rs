//! A filter on a server as the memory of many machines.

use std::ffi::OsStr;

use everbloom_resp::Reply;

use super::args::{Args, ERROR_RATE};
use crate::client::{Client, Target, Url};
use crate::failure::Failure;

use crate::records::chunk::Chunk;

/// Keys of one BF.MADD. The server serves others between two of them.
const BATCH: usize = 1000;

/// The capacity of a filter that is made without one.
const CAPACITY: u64 = 1_000_000;

/// A filter on a server.
#[derive(Debug)]
pub(super) struct Server {
    client: Client,
    key: Vec<u8>,
}

impl Server {
    /// Connects, and makes the filter unless it is there.
    pub(super) fn connect(url: &Url, args: &Args, key: &OsStr) -> Result<Self, Failure> {
        let mut client = Client::connect(&Target::new(url, &args.server)?)?;
        let key = key.as_encoded_bytes().to_vec();
        let capacity = args.capacity.unwrap_or(CAPACITY).to_string();
        let error_rate = args.error_rate.unwrap_or(ERROR_RATE).to_string();
        let words = [
            b"BF.RESERVE",
            &*key,
            error_rate.as_bytes(),
            capacity.as_bytes(),
        ];
        match client.call(&words)? {
            Reply::Error(text) if !text.contains("exists") => {
                Err(Failure::Refused(text.into_owned()))
            }
            _ => Ok(Self { client, key }),
        }
    }

    /// Adds the keys of the chunk; answers for each whether it is new. After an error, the keys
    /// without an answer may have been added or not.
    pub(super) fn ask(&mut self, chunk: &Chunk, new: &mut Vec<bool>) -> Result<(), Failure> {
        let mut start = 0;
        let mut request: Vec<&[u8]> = Vec::new();
        for ends in chunk.key_ends.chunks(BATCH) {
            request.clear();
            request.extend([&b"BF.MADD"[..], &self.key]);
            for &end in ends {
                request.push(chunk.keys.get(start..end).unwrap_or_default());
                start = end;
            }
            self.client.prepare(&request);
        }
        self.client.flush()?;
        for ends in chunk.key_ends.chunks(BATCH) {
            let emit = |is_new| new.push(is_new);
            self.client.answers("BF.MADD", ends.len(), emit)?;
        }
        Ok(())
    }
}
