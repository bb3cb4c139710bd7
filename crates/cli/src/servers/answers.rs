//! Whether two filters answer alike, by asking both for the same items.
//!
//! The pieces of SCANDUMP can be read and compared as often as one likes: a server that reads them
//! wrong does so each time. What it answers does not come from the pieces.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::family::Family;
use super::server::Server;
use crate::failure::Failure;

/// The bytes of a filter for each item that is asked for. A wrong piece of a filter at 1 % shows in
/// one of a few hundred items.
const BYTES_PER_PROBE: u64 = 64;

/// The fewest and the most items.
const PROBES: (u64, u64) = (16, 1 << 16);

/// The most items of one request.
const BATCH: u64 = 4096;

/// Random items. Nearly all were never added, so the error rate decides how many are found.
#[derive(Debug)]
pub(crate) struct Probes {
    count: u64,
    seed: u64,
}

impl Probes {
    /// For a filter of so many bytes.
    pub(crate) fn of(length: u64) -> Self {
        let (least, most) = PROBES;
        Self {
            count: (length / BYTES_PER_PROBE).clamp(least, most),
            seed: SmallRng::from_os_rng().random(),
        }
    }

    /// How many only the first filter finds, and only the second one; none where a server does not
    /// know the command, or the user may not send it.
    pub(crate) fn compare(
        &self,
        first: &mut Server,
        key: &[u8],
        second: &mut Server,
        other: &[u8],
        family: Family,
    ) -> Result<[u64; 2], Failure> {
        let mut rng = SmallRng::seed_from_u64(self.seed);
        let (mut only, mut left) = ([0, 0], self.count);
        while left > 0 {
            let batch = left.min(BATCH);
            left -= batch;
            let item = |_| format!("{:016x}", rng.random::<u64>());
            let items: Vec<String> = (0..batch).map(item).collect();
            ask(first, key, family, &items)?;
            ask(second, other, family, &items)?;
            let found = take(first, family, items.len())?;
            let others = take(second, family, items.len())?;
            let (Some(found), Some(others)) = (found, others) else {
                return Ok([0, 0]);
            };
            let [here, there] = &mut only;
            for (a, b) in found.iter().zip(&others) {
                *here += u64::from(*a && !*b);
                *there += u64::from(*b && !*a);
            }
        }
        Ok(only)
    }
}

fn ask(server: &mut Server, key: &[u8], family: Family, items: &[String]) -> Result<(), Failure> {
    let mut request = vec![family.mexists().as_bytes(), key];
    request.extend(items.iter().map(String::as_bytes));
    server.prepare(&request);
    server.flush()
}

/// The answers; `None` when this user cannot ask.
fn take(server: &mut Server, family: Family, count: usize) -> Result<Option<Vec<bool>>, Failure> {
    let reply = server.reply()?;
    let cannot = |text: &str| text.starts_with("NOPERM") || text.starts_with("ERR unknown command");
    if reply.as_error().is_some_and(cannot) {
        return Ok(None);
    }
    let mut answers = Vec::with_capacity(count);
    server.answers(reply, (family.mexists(), count), |found| {
        answers.push(found)
    })?;
    Ok(Some(answers))
}
