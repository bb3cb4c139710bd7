//! The requests of a pipeline that can be executed together.

use smallvec::SmallVec;

/// As many as fit before memory must be asked for.
pub type Few<T> = SmallVec<[T; 16]>;

/// Requests on several keys that are executed together: enough that the waits for memory overlap,
/// and few enough that their shards are not locked for long.
pub const WINDOW: usize = 64;

/// The words behind the key of a request: the item of BF.ADD, offset and bit of SETBIT.
pub type Words<'a, const N: usize> = [&'a [u8]; N];

/// Requests that say the same but for the key and the `N` words behind it.
pub struct Alike<'a, const N: usize> {
    requests: Few<Words<'a, N>>,
    /// The key of each stretch of requests on one key, and where in `requests` the stretch ends.
    ends: Few<(&'a [u8], usize)>,
}

/// The requests on one key that follow each other.
#[derive(Clone, Copy)]
pub struct Stretch<'s, 'a, const N: usize> {
    pub key: &'a [u8],
    pub requests: &'s [Words<'a, N>],
}

impl<'a, const N: usize> Alike<'a, N> {
    /// The first of these requests that are alike: any number on one key, or [`WINDOW`] at most on
    /// several.
    pub fn of<'r>(requests: impl Iterator<Item = &'r [&'a [u8]]>) -> Self
    where
        'a: 'r,
    {
        let mut alike = Alike {
            requests: Few::new(),
            ends: Few::new(),
        };
        let mut command = None;
        for request in requests {
            let [name, key, words @ ..] = request else {
                break;
            };
            let Ok(words) = words.try_into() else { break };
            let full = alike.requests.len() >= WINDOW;
            let several = alike.ends.len() > 1;
            match alike.ends.last_mut() {
                _ if *command.get_or_insert(*name) != *name => break,
                Some((last, end)) if last == key && !(full && several) => *end += 1,
                _ if full => break,
                _ => alike.ends.push((key, alike.requests.len() + 1)),
            }
            alike.requests.push(words);
        }
        alike
    }

    /// The keys, one for each stretch.
    pub fn keys(&self) -> impl Iterator<Item = &'a [u8]> {
        self.ends.iter().map(|(key, _)| *key)
    }

    /// The stretches in their order.
    pub fn stretches(&self) -> impl Iterator<Item = Stretch<'_, 'a, N>> {
        let mut from = 0;
        self.ends.iter().map(move |&(key, end)| {
            let requests = self.requests.get(from..end).unwrap_or_default();
            from = end;
            Stretch { key, requests }
        })
    }

    /// The only stretch, when all requests are on one key.
    pub fn single(&self) -> Option<Stretch<'_, 'a, N>> {
        self.stretches().next().filter(|_| self.ends.len() == 1)
    }
}
