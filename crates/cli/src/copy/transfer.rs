//! One filter from one server to another one, whole or not at all.

use std::time::{Duration, Instant};

use crc::{Digest, Table};
use everbloom_resp::Reply;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::destination::{
    CopiedKey, Target, forget, live_until, load_header, load_pieces, publish, read_back,
};
use crate::failure::Failure;
use crate::number::grouped;
use crate::progress::Progress;
use crate::servers::answers::Probes;
use crate::servers::difference::{Change, compare};
use crate::servers::dump::{Header, PieceReader, ask_for_header, header_of, take_header};
use crate::servers::family::Family;
use crate::servers::server::{Content, Server};
use crate::servers::temporary;

/// How often a Bloom filter is read that changes while it is read.
const PASSES: u32 = 3;

/// A Bloom filter whose copy takes longer is not read again because it has grown: in use, it would
/// grow again. For so long a cuckoo filter is read again that changes.
const MOMENT: Duration = Duration::from_secs(2);

/// How often a filter was read. The rules for one that changes meanwhile are the same whether it
/// goes to a server or to a file.
#[derive(Debug)]
pub(super) struct Passes {
    family: Family,
    count: u32,
    first: Instant,
    last: Instant,
}

impl Passes {
    /// It is read for the first time now.
    pub(super) fn begin(family: Family) -> Self {
        let now = Instant::now();
        Self {
            family,
            count: 1,
            first: now,
            last: now,
        }
    }

    /// Whether to read it again after this change. If not, only a filter that has not moved is of
    /// any use.
    pub(super) fn again(&mut self, change: Change) -> bool {
        let again = match (self.family, change) {
            (_, Change::Still) | (Family::Cuckoo, Change::Grown) => false,
            (Family::Cuckoo, Change::Moved) => self.first.elapsed() <= MOMENT,
            (Family::Bloom, Change::Grown) => self.count < PASSES && self.last.elapsed() <= MOMENT,
            (Family::Bloom, Change::Moved) => self.count < PASSES,
        };
        if again {
            self.count += 1;
            self.last = Instant::now();
        }
        again
    }
}

/// Why a filter that has moved each time is not copied.
pub(super) fn moved(family: Family) -> Failure {
    Failure::filter(match family {
        Family::Bloom => {
            "its window dropped a generation, or it was replaced, each time it was read; run this \
             again, for a window when it is not about to begin a generation"
        }
        Family::Cuckoo => {
            "it changed each time it was read, and a cuckoo filter must hold still for that; run \
             this again when nobody adds or deletes"
        }
    })
}

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
    /// The filter was deleted or has expired.
    Gone,
}

/// A filter that is loaded under its temporary name.
#[derive(Debug)]
struct Loaded {
    bytes: u64,
    /// How the source has changed since the first piece was read.
    change: Change,
    /// Why it is not whole at the destination.
    failed: Option<Failure>,
    /// When the source deletes it.
    end: Option<Instant>,
}

/// Copies filters.
#[derive(Debug)]
pub(super) struct Transfer<'a> {
    pub(super) source: &'a mut Server,
    pub(super) destination: &'a mut Server,
    /// Whether to overwrite other things at the destination.
    pub(super) replace: bool,
    /// Whether to read back what was loaded.
    pub(super) verify: bool,
    pub(super) token: String,
}

impl Transfer<'_> {
    /// Copies the filter of a key.
    pub(super) fn copy(
        &mut self,
        key: &[u8],
        family: Family,
        progress: &Progress,
    ) -> Result<Outcome, Failure> {
        let temporary = temporary::name(key, &self.token);
        let filter = CopiedKey {
            key,
            family,
            temporary: &temporary,
        };
        progress.begin("comparing", 0);
        let outcome = match self.target(key, family) {
            Ok(Some(target)) => self.load_and_publish(filter, target, progress),
            Ok(None) => self.keep_end(key).map(|()| Outcome::Present),
            Err(failure) => Err(failure),
        };
        if !matches!(outcome, Ok(Outcome::Copied { .. })) {
            // Ignore the error: without us the temporary key expires.
            let _ = forget(self.destination, &temporary).and_then(|()| self.unwatch());
        }
        if matches!(outcome, Err(Failure::Filter(_))) {
            // It is watched no more.
            self.source_held_still(family)?;
        }
        outcome
    }

    /// What to do with the key at the destination; `None` when it holds an equal filter.
    fn target(&mut self, key: &[u8], family: Family) -> Result<Option<Target>, Failure> {
        self.source.settle()?;
        let there = match self.destination.find(key)? {
            Content::Filter(found) if found == family => {
                self.destination.call(&[b"WATCH", key])?;
                let difference = compare(self.source, self.destination, key, family)?;
                if difference.is_none() {
                    return Ok(None);
                }
                if difference.is_growth() {
                    return Ok(Some(Target::Watched));
                }
                self.unwatch()?;
                let what = match (family, &difference.parameter) {
                    (Family::Cuckoo, None) => "another state of it, or another filter",
                    _ => "another filter",
                };
                format!("{what} ({})", difference.describe(["FROM", "TO"]))
            }
            there => match there.describe() {
                Some(there) => there,
                None => return Ok(Some(Target::Vacant)),
            },
        };
        if self.replace {
            return Ok(Some(Target::Overwritten));
        }
        Err(Failure::Filter(format!(
            "the destination holds {there}; --replace overwrites it"
        )))
    }

    /// Lets an equal filter at the destination, which is watched, live as long as at the source.
    fn keep_end(&mut self, key: &[u8]) -> Result<(), Failure> {
        let mut ends = [None; 2];
        for (end, server) in ends
            .iter_mut()
            .zip([&mut *self.source, &mut *self.destination])
        {
            server.prepare(&[b"PTTL", key]);
            server.flush()?;
            *end = take_end(server)?;
        }
        let [Some(wanted), Some(there)] = ends else {
            // It is gone by now.
            return Ok(());
        };
        if is_same_moment(wanted, there) {
            return Ok(());
        }
        self.destination.prepare(&[b"MULTI"]);
        live_until(self.destination, key, wanted);
        self.destination.prepare(&[b"EXEC"]);
        self.destination.flush()?;
        let replies = [(); 3].map(|()| self.destination.reply());
        let [begun, queued, done] = replies;
        for reply in [begun?, queued?] {
            self.destination.accepted(reply, "MULTI and PEXPIRE")?;
        }
        match done?.into_elements().as_deref() {
            Some([Reply::Error(text)]) => Err(Failure::Filter(format!(
                "the destination does not let it expire as at the source ({text})"
            ))),
            Some(_) => Ok(()),
            None => Err(Failure::filter(
                "somebody changed it at the destination meanwhile, so it expires there as before",
            )),
        }
    }

    fn unwatch(&mut self) -> Result<(), Failure> {
        self.destination.call(&[b"UNWATCH"])?;
        Ok(())
    }

    fn load_and_publish(
        &mut self,
        filter: CopiedKey<'_>,
        target: Target,
        progress: &Progress,
    ) -> Result<Outcome, Failure> {
        let mut passes = Passes::begin(filter.family);
        let loaded = loop {
            let Some(loaded) = self.load(filter, progress)? else {
                return Ok(Outcome::Gone);
            };
            if !passes.again(loaded.change) {
                break loaded;
            }
            forget(self.destination, filter.temporary)?;
            self.source.drain()?;
        };
        if loaded.change == Change::Moved {
            return Err(moved(filter.family));
        }
        if let Some(failure) = loaded.failed {
            return Err(failure);
        }
        if !publish(self.destination, filter, target, loaded.end)? {
            return Ok(Outcome::Gone);
        }
        Ok(Outcome::Copied {
            bytes: loaded.bytes,
            changed: loaded.change != Change::Still,
        })
    }

    /// Loads the filter under its temporary name; `None` when the source has none any more.
    ///
    /// The header of a Bloom filter has the number of items, which grows with every item that sets
    /// a bit. So if the header is the same before and after, all bits in between belong to one
    /// state. Otherwise the pieces are of several states: each has all bits that were set before
    /// the first was read.
    ///
    /// The fingerprints of a cuckoo filter move. One that went from a piece not yet read to one
    /// that was read would be in none, so the source is watched.
    fn load(
        &mut self,
        filter: CopiedKey<'_>,
        progress: &Progress,
    ) -> Result<Option<Loaded>, Failure> {
        let CopiedKey { key, family, .. } = filter;
        if family == Family::Cuckoo {
            // Its pieces must be of one state.
            let watched = self.source.call(&[b"WATCH", key])?;
            self.source.accepted(watched, "WATCH")?;
        }
        let Some((header, _)) = self.look(key, family)? else {
            return Ok(None);
        };
        progress.begin("copying", to_move(&header, self.verify));
        let sent = self.load_all(filter, &header, progress);
        self.source.drain()?;
        let held_still = self.source_held_still(family)?;
        let verified = match sent {
            Ok(sent) if self.verify && held_still => self.verify(filter, &header, sent, progress),
            sent => sent.map(|_| [0, 0]),
        };
        let Some((after, end)) = self.look(key, family)? else {
            return Ok(None);
        };
        let change = match held_still {
            true => Change::between(&header, &after),
            false => Change::Moved,
        };
        let failed = match verified {
            Err(failure @ Failure::Other(_)) => return Err(failure),
            // A filter that has dropped or replaced pieces has no more of them.
            Err(failure) => Some(failure),
            // One that has grown meanwhile may find more.
            Ok(answers) if answers != [0, 0] && change == Change::Still => Some(unlike(answers)),
            Ok(_) => None,
        };
        let change = match &failed {
            Some(_) if self.copy_has_moved(filter, &header)? => Change::Moved,
            _ => change,
        };
        Ok(Some(Loaded {
            bytes: header.length,
            change,
            failed,
            end,
        }))
    }

    /// Whether the window of the copy has dropped what was too old.
    fn copy_has_moved(&mut self, filter: CopiedKey<'_>, header: &Header) -> Result<bool, Failure> {
        if !header.has_window() {
            return Ok(false);
        }
        self.destination.drain()?;
        match header_of(self.destination, filter.temporary, filter.family) {
            Ok(there) => Ok(Change::between(header, &there) == Change::Moved),
            // The temporary key was not created.
            Err(Failure::Filter(_)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Loads all pieces under the temporary name; the digest of what was sent.
    fn load_all(
        &mut self,
        filter: CopiedKey<'_>,
        header: &Header,
        progress: &Progress,
    ) -> Result<Digest<'static, u64, Table<16>>, Failure> {
        load_header(self.destination, filter, header)?;
        let mut reader = PieceReader::new(self.source, filter.key, header, header.all())?;
        let next = || reader.next(self.source);
        load_pieces(self.destination, filter, header, next, progress)
    }

    /// Fails unless the destination has what the source sent. How many random items only the
    /// source finds, and only the destination.
    fn verify(
        &mut self,
        filter: CopiedKey<'_>,
        header: &Header,
        sent: Digest<'_, u64, Table<16>>,
        progress: &Progress,
    ) -> Result<[u64; 2], Failure> {
        progress.go_on("reading back");
        read_back(self.destination, filter, header, sent, progress)?;
        let CopiedKey {
            key,
            family,
            temporary,
        } = filter;
        let probes = Probes::of(header.length);
        probes.compare(self.source, key, self.destination, temporary, family)
    }

    /// The header of the source's filter, and when the source deletes it; `None` when it is gone.
    fn look(
        &mut self,
        key: &[u8],
        family: Family,
    ) -> Result<Option<(Header, Option<Instant>)>, Failure> {
        self.source.prepare(&[b"PTTL", key]);
        ask_for_header(self.source, key, family);
        self.source.flush()?;
        let Some(end) = take_end(self.source)? else {
            return Ok(None);
        };
        Ok(Some((take_header(self.source, key, family)?, end)))
    }

    /// Whether the source's cuckoo filter has not changed since it was watched. Nothing is watched
    /// any more.
    fn source_held_still(&mut self, family: Family) -> Result<bool, Failure> {
        if family == Family::Bloom {
            return Ok(true);
        }
        self.source.drain()?;
        self.source.prepare(&[b"MULTI"]);
        self.source.prepare(&[b"EXEC"]);
        self.source.flush()?;
        self.source.demand("MULTI")?;
        Ok(!self.source.demand("EXEC")?.is_null())
    }
}

/// When a server deletes a key, if it does: its answer to PTTL. `None` when the key is gone.
fn take_end(server: &mut Server) -> Result<Option<Option<Instant>>, Failure> {
    match server.demand("PTTL")?.as_integer() {
        Some(-2) => Ok(None),
        Some(-1) => Ok(Some(None)),
        Some(left @ 0..) => {
            let left = Duration::from_millis(left.unsigned_abs());
            Ok(Some(Instant::now().checked_add(left)))
        }
        _ => Err(server.odd("PTTL")),
    }
}

/// Whether two keys are deleted at the same time, or both are not. Two questions take a moment.
fn is_same_moment(one: Option<Instant>, other: Option<Instant>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.max(other) - one.min(other) < Duration::from_secs(1),
        (one, other) => one == other,
    }
}

/// The bytes of a filter that go over the wire: each comes back if it is read back.
pub(super) fn to_move(header: &Header, verify: bool) -> u64 {
    header.length.saturating_mul(1 + u64::from(verify))
}

/// The failure when the answers for random items differ.
fn unlike([lost, more]: [u64; 2]) -> Failure {
    Failure::Filter(format!(
        "asked for random items, it answers otherwise at the destination than at the source: it \
         lacks {} and finds {} more; if it has a window, compare the clocks of both",
        grouped(lost),
        grouped(more)
    ))
}

/// What makes the temporary names of a copy differ from those of others.
pub(super) fn token() -> String {
    format!("{:016x}", SmallRng::from_os_rng().random::<u64>())
}
