//! The names of all filters of a server, page by page.

use everbloom_resp::{Reply, quoted};

use super::family::Family;
use super::server::{Content, Server};
use super::temporary;
use crate::failure::Failure;

/// How many keys a SCAN looks at.
const PAGE: &str = "1000";

/// A walk over the keys of a server. A key that is there all the time is visited at least once, and
/// SCAN may name a key twice.
#[derive(Debug)]
pub(crate) struct Walk {
    pattern: Option<Vec<u8>>,
    /// `None` at the end.
    cursor: Option<Vec<u8>>,
}

/// What to say when a pattern chose none of the filters: it may have a typing error.
pub(crate) fn unmatched(pattern: Option<&[u8]>, filters: u64) -> Option<String> {
    let pattern = pattern.filter(|_| filters == 0)?;
    let pattern = quoted(pattern);
    Some(format!("no filter has a name that matches {pattern}"))
}

/// What one step met.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) filters: Vec<(Vec<u8>, Family)>,
    /// The number of keys of other types.
    pub(crate) others: u64,
}

impl Walk {
    pub(crate) fn new(pattern: Option<&[u8]>) -> Self {
        Self {
            pattern: pattern.map(<[u8]>::to_vec),
            cursor: Some(b"0".to_vec()),
        }
    }

    /// The next page, which may be empty; `None` behind the last one.
    ///
    /// One walk over all types tells what is left. `SCAN ... TYPE` would need a walk for each type,
    /// and each looks at all keys.
    pub(crate) fn page(&mut self, server: &mut Server) -> Result<Option<Page>, Failure> {
        let Some(cursor) = self.cursor.take() else {
            return Ok(None);
        };
        server.settle()?;
        let mut request: Vec<&[u8]> = vec![b"SCAN", &cursor];
        if let Some(pattern) = &self.pattern {
            request.extend([b"MATCH", pattern.as_slice()]);
        }
        request.extend([b"COUNT", PAGE.as_bytes()]);
        let reply = server.call(&request)?;
        let step = server.accepted(reply, "SCAN")?.into_elements();
        let step = step.and_then(taken_apart);
        let (next, keys) = step.ok_or_else(|| server.odd("SCAN"))?;
        self.cursor = (next != b"0").then_some(next);
        sort_out(server, keys).map(Some)
    }
}

/// The cursor and the keys of a reply to SCAN.
fn taken_apart(step: Vec<Reply>) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let [cursor, keys]: [Reply; 2] = step.try_into().ok()?;
    let cursor = cursor.as_bytes().filter(|cursor| cursor.len() <= 20)?;
    let key = |reply| match reply {
        Reply::Bulk(name) => Some(name),
        _ => None,
    };
    let keys = keys.into_elements()?.into_iter().map(key);
    Some((cursor.to_vec(), keys.collect::<Option<_>>()?))
}

/// Which of the keys are filters.
fn sort_out(server: &mut Server, mut keys: Vec<Vec<u8>>) -> Result<Page, Failure> {
    // Another copy works on these.
    keys.retain(|key| !temporary::is_one(key));
    for key in &keys {
        server.prepare(&[b"TYPE", key.as_slice()]);
    }
    server.flush()?;
    let mut page = Page::default();
    for key in keys {
        match server.demand("TYPE").map(|reply| Content::of(&reply))? {
            Some(Content::Filter(family)) => page.filters.push((key, family)),
            Some(Content::Other(_)) => page.others += 1,
            // It has just been deleted, or has expired.
            Some(Content::Nothing) => {}
            None => return Err(server.odd("TYPE")),
        }
    }
    Ok(page)
}
