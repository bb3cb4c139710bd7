//! One filter from one server to another one, whole or not at all.

use std::time::{Duration, Instant};

use crc::{CRC_64_XZ, Crc, Digest, Table};
use everbloom_resp::Reply;

use super::progress::Progress;
use crate::servers::difference::{Side, compare};
use crate::servers::dump::{
    Header, Life, Reader, ask_for_header, ask_for_life, take_header, take_life,
};
use crate::servers::server::{Kind, Server, Trouble};
use crate::servers::temporary;

/// What the pieces of a filter are compared by.
const CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// How long a temporary key lives that nobody works on any more, in milliseconds.
const ABANDONED: &str = "600000";

/// How often a filter is read that changes while it is read.
const PASSES: u32 = 3;

/// A filter whose copy takes longer is not read again: in use, it would change again.
const MOMENT: Duration = Duration::from_secs(2);

/// What has become of a filter.
#[derive(Debug)]
pub(super) enum Outcome {
    Copied {
        bytes: u64,
        /// Whether it changed while it was copied.
        changed: bool,
    },
    /// An equal one is at the destination.
    Present,
    /// It was deleted, or has expired.
    Gone,
}

/// What to do with the key at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// There must be none.
    Vacant,
    /// It holds an earlier state, and must not have changed since.
    Watched,
    /// It goes, whatever it holds.
    Overwritten,
}

/// A filter that is whole under its temporary name.
#[derive(Debug)]
struct Loaded {
    bytes: u64,
    changed: bool,
    /// When the source deletes it.
    end: Option<Instant>,
}

/// Copies filters.
#[derive(Debug)]
pub(super) struct Transfer<'a> {
    pub(super) source: &'a mut Server,
    destination: &'a mut Server,
    replace: bool,
    verify: bool,
    token: String,
}

impl<'a> Transfer<'a> {
    /// `replace`: overwrite other things at the destination. `verify`: read back what was loaded.
    pub(super) fn new(
        source: &'a mut Server,
        destination: &'a mut Server,
        (replace, verify): (bool, bool),
    ) -> Self {
        Self {
            source,
            destination,
            replace,
            verify,
            token: format!("{:016x}", rand::random::<u64>()),
        }
    }

    /// Copies the filter of a key.
    pub(super) fn copy(&mut self, key: &[u8], progress: &Progress) -> Result<Outcome, Trouble> {
        let temporary = temporary::name(key, &self.token);
        progress.begin("comparing", 0);
        let outcome = match self.target(key) {
            Ok(Some(target)) => self.load_and_publish(key, &temporary, target, progress),
            Ok(None) => Ok(Outcome::Present),
            Err(trouble) => Err(trouble),
        };
        if !matches!(outcome, Ok(Outcome::Copied { .. })) {
            // Ignore the error: without us the temporary key expires.
            let _ = self.forget(&temporary).and_then(|()| self.unwatch());
        }
        outcome
    }

    /// What to do with the key at the destination; `None` when it holds an equal filter.
    fn target(&mut self, key: &[u8]) -> Result<Option<Target>, Trouble> {
        self.source.settle()?;
        let there = match self.destination.find(key)? {
            Kind::Nothing => return Ok(Some(Target::Vacant)),
            Kind::Other(name) => format!("a value of type {name}"),
            Kind::Filter => {
                self.destination.call(&[b"WATCH", key])?;
                let mut source = Side {
                    server: self.source,
                    key,
                };
                let mut destination = Side {
                    server: self.destination,
                    key,
                };
                let difference = compare(&mut source, &mut destination)?;
                if difference.is_none() {
                    return Ok(None);
                }
                if difference.is_growth() {
                    return Ok(Some(Target::Watched));
                }
                self.unwatch()?;
                format!("another filter ({})", difference.describe(["FROM", "TO"]))
            }
        };
        if self.replace {
            return Ok(Some(Target::Overwritten));
        }
        Err(Trouble::Filter(format!(
            "the destination holds {there}; --replace overwrites it"
        )))
    }

    fn unwatch(&mut self) -> Result<(), Trouble> {
        self.destination.call(&["UNWATCH"])?;
        Ok(())
    }

    fn load_and_publish(
        &mut self,
        key: &[u8],
        temporary: &[u8],
        target: Target,
        progress: &Progress,
    ) -> Result<Outcome, Trouble> {
        let mut pass = 1;
        let loaded = loop {
            let began = Instant::now();
            let Some(loaded) = self.load(key, temporary, progress)? else {
                return Ok(Outcome::Gone);
            };
            if !loaded.changed || pass == PASSES || began.elapsed() > MOMENT {
                break loaded;
            }
            self.forget(temporary)?;
            self.source.settle()?;
            pass += 1;
        };
        if !self.publish(temporary, key, target, loaded.end)? {
            return Ok(Outcome::Gone);
        }
        let (bytes, changed) = (loaded.bytes, loaded.changed);
        Ok(Outcome::Copied { bytes, changed })
    }

    /// Loads the filter under its temporary name; `None` when the source has none any more.
    ///
    /// The header has the number of items, which grows with every item that sets a bit. So if the
    /// header is the same before and after, all bits in between belong to one state. Otherwise the
    /// pieces are of several states: each has all bits that were set before the first was read.
    fn load(
        &mut self,
        key: &[u8],
        temporary: &[u8],
        progress: &Progress,
    ) -> Result<Option<Loaded>, Trouble> {
        ask_for_life(self.source, key);
        ask_for_header(self.source, key);
        self.source.flush()?;
        if take_life(self.source)? == Life::Over {
            return Ok(None);
        }
        let header = take_header(self.source)?;
        progress.begin("copying", header.length);
        self.load_header(temporary, &header)?;
        let mut digest = CRC.digest();
        let mut end: u64 = 1;
        let mut reader = Reader::new(self.source, key, header.length)?;
        while let Some(piece) = reader.next(self.source)? {
            digest.update(&piece);
            end = end.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
            self.load_piece(temporary, end, &piece)?;
            progress.advance(piece.len());
        }
        if self.verify {
            progress.begin("reading back", header.length);
            self.read_back(temporary, &header, digest, progress)?;
        }
        ask_for_life(self.source, key);
        ask_for_header(self.source, key);
        self.source.flush()?;
        let end = match take_life(self.source)? {
            Life::Over => return Ok(None),
            Life::Endless => None,
            Life::Left(time) => Instant::now().checked_add(Duration::from_millis(time)),
        };
        let changed = take_header(self.source)?.bytes != header.bytes;
        let bytes = header.length;
        Ok(Some(Loaded {
            bytes,
            changed,
            end,
        }))
    }

    fn load_header(&mut self, temporary: &[u8], header: &Header) -> Result<(), Trouble> {
        let load: [&[u8]; 4] = [b"BF.LOADCHUNK", temporary, b"1", &header.bytes];
        self.destination.prepare(&load);
        // Sent together, so that a copy that is killed here leaves no key for ever.
        self.keep(temporary);
        self.destination.flush()?;
        let reply = self.destination.reply()?;
        self.destination.demand("PEXPIRE")?;
        match reply {
            Reply::Error(text) if header.parts.key.is_some() => Err(Trouble::Filter(format!(
                "the destination refused it ({text}): it is in the blocked layout, which only \
                 everbloom and its module know"
            ))),
            Reply::Error(text) => Err(Trouble::Filter(format!(
                "the destination refused its header ({text}); perhaps it has no memory for a \
                 filter of this size"
            ))),
            _ => Ok(()),
        }
    }

    fn load_piece(&mut self, temporary: &[u8], end: u64, piece: &[u8]) -> Result<(), Trouble> {
        let iterator = end.to_string();
        let load: [&[u8]; 4] = [b"BF.LOADCHUNK", temporary, iterator.as_bytes(), piece];
        self.destination.prepare(&load);
        self.keep(temporary);
        self.destination.flush()?;
        self.destination.demand("BF.LOADCHUNK")?;
        self.destination.demand("PEXPIRE")?;
        Ok(())
    }

    /// Prepares a request that lets a temporary key live on.
    fn keep(&mut self, temporary: &[u8]) {
        let keep: [&[u8]; 3] = [b"PEXPIRE", temporary, ABANDONED.as_bytes()];
        self.destination.prepare(&keep);
    }

    /// Fails unless the destination has what the source sent.
    fn read_back(
        &mut self,
        temporary: &[u8],
        header: &Header,
        sent: Digest<'_, u64, Table<16>>,
        progress: &Progress,
    ) -> Result<(), Trouble> {
        self.keep(temporary);
        ask_for_header(self.destination, temporary);
        self.destination.flush()?;
        self.destination.demand("PEXPIRE")?;
        let same = take_header(self.destination)?.bytes == header.bytes;
        let mut digest = CRC.digest();
        let mut reader = Reader::new(self.destination, temporary, header.length)?;
        while let Some(piece) = reader.next(self.destination)? {
            digest.update(&piece);
            progress.advance(piece.len());
        }
        if same && digest.finalize() == sent.finalize() {
            return Ok(());
        }
        Err(Trouble::filter(
            "read back from the destination, it is not what was sent",
        ))
    }

    /// Gives the filter its name, together with its end. Returns whether it was still to live.
    fn publish(
        &mut self,
        temporary: &[u8],
        key: &[u8],
        target: Target,
        end: Option<Instant>,
    ) -> Result<bool, Trouble> {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()).as_millis());
        if left == Some(0) {
            return Ok(false);
        }
        let rename: &[u8] = if target == Target::Vacant {
            b"RENAMENX"
        } else {
            b"RENAME"
        };
        let left = left.map(|left| left.to_string());
        self.destination.prepare(&["MULTI"]);
        match &left {
            Some(left) => {
                let expire: [&[u8]; 3] = [b"PEXPIRE", temporary, left.as_bytes()];
                self.destination.prepare(&expire);
            }
            None => self.destination.prepare(&[b"PERSIST", temporary]),
        }
        self.destination.prepare(&[rename, temporary, key]);
        self.destination.prepare(&["EXEC"]);
        self.destination.flush()?;
        let mut refusal = None;
        for _ in 0..3 {
            let reply = self.destination.reply()?;
            refusal = refusal.or_else(|| reply.as_error().map(str::to_owned));
        }
        let done = self.destination.reply()?;
        refusal = refusal.or_else(|| done.as_error().map(str::to_owned));
        if let Some(text) = refusal {
            return Err(not_renamed(&text));
        }
        match done.into_elements().as_deref() {
            Some([_, Reply::Error(text)]) => Err(not_renamed(text)),
            Some([_, Reply::Integer(0)]) => Err(Trouble::filter(
                "somebody else made a key of this name at the destination meanwhile",
            )),
            Some([_, _]) => Ok(true),
            _ => Err(Trouble::filter(
                "somebody changed it at the destination meanwhile, so it was not replaced",
            )),
        }
    }

    /// Deletes a temporary key.
    fn forget(&mut self, temporary: &[u8]) -> Result<(), Trouble> {
        self.destination.drain()?;
        self.destination.call(&[b"DEL", temporary])?;
        Ok(())
    }
}

fn not_renamed(text: &str) -> Trouble {
    Trouble::Filter(format!(
        "the destination does not let us rename the finished filter ({text}); MULTI, PEXPIRE, \
         PERSIST, RENAME and RENAMENX must be allowed there, so that nobody sees half a filter"
    ))
}
