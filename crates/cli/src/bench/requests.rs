//! Encodes requests before they are needed. A ring of requests of the same length is in one buffer,
//! so a batch is a slice that goes to the socket as it is.

use std::ops::Range;

use everbloom_resp::encode::{encode_array_len, encode_bulk};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::items::{Bitmap, ITEM_LENGTH, Kind, item, write_decimal};
use super::scan::Shape;

/// The word that ECHO sends and receives.
const WORD: &[u8] = b"hello";

/// The number of items in a ring. It is less when the ring would be over `RING_BYTES`, and more
/// when the batches need more.
const RING_ITEMS: usize = 1_000_000;

const RING_BYTES: usize = 64 << 20;

/// The command to send. `Echo` has no item. A bitmap request is the pipeline of SETBIT or GETBIT
/// for one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Verb {
    /// ECHO hello: what a server's loop costs without any work
    Echo,
    /// BF.ADD
    Add,
    /// BF.EXISTS
    Exists,
    /// BF.MADD
    Madd,
    /// BF.MEXISTS
    Mexists,
    /// k SETBIT an item, as clients do that keep a filter in a bitmap
    Setbit,
    /// k GETBIT an item
    Getbit,
}

impl Verb {
    pub(super) fn name(self) -> &'static str {
        match self {
            Verb::Echo => "ECHO",
            Verb::Add => "BF.ADD",
            Verb::Exists => "BF.EXISTS",
            Verb::Madd => "BF.MADD",
            Verb::Mexists => "BF.MEXISTS",
            Verb::Setbit => "SETBIT",
            Verb::Getbit => "GETBIT",
        }
    }

    pub(super) fn adds(self) -> bool {
        matches!(self, Verb::Add | Verb::Madd | Verb::Setbit)
    }

    pub(super) fn probes(self) -> bool {
        matches!(self, Verb::Exists | Verb::Mexists | Verb::Getbit)
    }

    pub(super) fn takes_several(self) -> bool {
        matches!(self, Verb::Madd | Verb::Mexists)
    }

    /// Whether this answer about an added item shows that the filter lost it. A probe must find the
    /// item, and an add must not find it new. (SETBIT answers the old bits, so all must be 1.)
    pub(super) fn lost(self, found: bool) -> bool {
        match self {
            Verb::Echo => false,
            Verb::Add | Verb::Madd => found,
            Verb::Exists | Verb::Mexists | Verb::Getbit | Verb::Setbit => !found,
        }
    }
}

/// Everything that determines the bytes of the requests.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) verb: Verb,
    pub(super) key: Vec<u8>,
    /// The number of items of one BF.MADD or BF.MEXISTS. 1 for the other commands.
    pub(super) items: usize,
    pub(super) bitmap: Bitmap,
    pub(super) seed: u64,
    /// The number of items that were added before.
    pub(super) present: u64,
    /// The share of the items sent that were added before.
    pub(super) hit_share: f64,
    /// Whether this recipe adds the items that are present for a later recipe.
    pub(super) filling: bool,
}

impl Recipe {
    /// The number of commands in one request.
    pub(super) fn commands(&self) -> usize {
        match self.verb {
            Verb::Setbit | Verb::Getbit => self.bitmap.hashes,
            _ => 1,
        }
    }

    pub(super) fn shape(&self) -> Shape {
        let mut literal = Vec::new();
        match self.verb {
            Verb::Echo => encode_bulk(WORD, &mut literal),
            Verb::Madd | Verb::Mexists => encode_array_len(self.items, &mut literal),
            _ => {}
        }
        Shape {
            literal,
            items: if self.verb == Verb::Echo {
                0
            } else {
                self.items
            },
            integers_per_item: self.commands(),
        }
    }

    /// One request with room for its items, and the positions of that room.
    fn template(&self) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut fields) = (Vec::new(), Vec::new());
        let width = self.width();
        let mut field = |bytes: &mut Vec<u8>| {
            encode_bulk(&vec![b'0'; width], bytes);
            // The room ends before the line end.
            fields.push(bytes.len().saturating_sub(width + 2));
        };
        match self.verb {
            Verb::Echo => {
                encode_array_len(2, &mut bytes);
                encode_bulk(b"ECHO", &mut bytes);
                encode_bulk(WORD, &mut bytes);
            }
            Verb::Add | Verb::Exists | Verb::Madd | Verb::Mexists => {
                encode_array_len(2 + self.items, &mut bytes);
                encode_bulk(self.verb.name().as_bytes(), &mut bytes);
                encode_bulk(&self.key, &mut bytes);
                (0..self.items).for_each(|_| field(&mut bytes));
            }
            Verb::Setbit | Verb::Getbit => {
                let set = self.verb == Verb::Setbit;
                for _ in 0..self.bitmap.hashes {
                    encode_array_len(3 + usize::from(set), &mut bytes);
                    encode_bulk(self.verb.name().as_bytes(), &mut bytes);
                    encode_bulk(&self.key, &mut bytes);
                    field(&mut bytes);
                    if set {
                        encode_bulk(b"1", &mut bytes);
                    }
                }
            }
        }
        (bytes, fields)
    }

    /// The length in bytes of the room for an item, or for a bit's offset.
    fn width(&self) -> usize {
        match self.verb {
            Verb::Setbit | Verb::Getbit => self.bitmap.digits,
            _ => ITEM_LENGTH,
        }
    }
}

/// The requests of one thread.
#[derive(Debug)]
pub(super) struct Ring {
    recipe: Recipe,
    thread: u64,
    bytes: Vec<u8>,
    /// The length of a request in bytes.
    length: usize,
    /// The positions of the items, or of the bits' offsets, in a request.
    fields: Vec<usize>,
    requests: usize,
    /// For each item in the ring, whether it was added before.
    present: Vec<bool>,
    /// The next request to send.
    next: usize,
    /// The number of new items that this thread has made. None of them may be sent twice.
    fresh: u64,
}

impl Ring {
    /// Encodes a ring of whole batches. `in_flight` batches may be waiting for replies at a time.
    pub(super) fn new(recipe: Recipe, batch: usize, in_flight: usize, thread: u64) -> Self {
        let (template, fields) = recipe.template();
        let length = template.len();
        let wanted = (RING_ITEMS / recipe.items.max(1)).min(RING_BYTES / length);
        // While a batch is being sent, it must not be patched for another connection.
        let batches = wanted.div_ceil(batch).max(2 * in_flight);
        let requests = batches * batch;
        let mut ring = Self {
            bytes: template.repeat(requests),
            length,
            fields,
            requests,
            present: vec![false; requests * recipe.items],
            next: 0,
            fresh: 0,
            recipe,
            thread,
        };
        ring.fill();
        ring
    }

    /// Draws the items of all requests. `take` writes the items to add anew in every round.
    fn fill(&mut self) {
        if self.recipe.verb == Verb::Echo {
            return;
        }
        let mut random = StdRng::seed_from_u64(self.recipe.seed ^ self.thread);
        let hits = self.recipe.present > 0;
        for item in 0..self.requests * self.recipe.items {
            if hits && random.random_bool(self.recipe.hit_share) {
                let index = random.random_range(0..self.recipe.present);
                self.write(item, Kind::Present(index));
                if let Some(present) = self.present.get_mut(item) {
                    *present = true;
                }
            } else if self.recipe.verb.probes() {
                self.write(item, Kind::Absent(item as u64));
            }
        }
    }

    /// The next requests: at most `most`, fewer at the end of the ring. Writes the items that they
    /// add.
    pub(super) fn take(&mut self, most: usize) -> Range<usize> {
        let start = if self.next == self.requests {
            0
        } else {
            self.next
        };
        let end = (start + most).min(self.requests);
        self.next = end;
        if self.recipe.verb.adds() {
            for item in start * self.recipe.items..end * self.recipe.items {
                if self.present.get(item) == Some(&false) {
                    let kind = if self.recipe.filling {
                        Kind::Present(self.fresh)
                    } else {
                        Kind::Fresh(self.fresh)
                    };
                    self.write(item, kind);
                    self.fresh += 1;
                }
            }
        }
        start..end
    }

    /// The bytes of these requests.
    pub(super) fn bytes(&self, requests: &Range<usize>) -> &[u8] {
        let bytes = requests.start * self.length..requests.end * self.length;
        self.bytes.get(bytes).unwrap_or_default()
    }

    /// For each item of these requests, whether it was added before.
    pub(super) fn present(&self, requests: &Range<usize>) -> &[bool] {
        let items = requests.start * self.recipe.items..requests.end * self.recipe.items;
        self.present.get(items).unwrap_or_default()
    }

    /// Writes an item of the ring into its request.
    #[inline]
    fn write(&mut self, at: usize, kind: Kind) {
        let number = kind.number(self.thread);
        let request = (at / self.recipe.items) * self.length;
        let width = self.recipe.width();
        let mut put = |field: Option<&usize>, write: &mut dyn FnMut(&mut [u8])| {
            let start = request + field.copied().unwrap_or_default();
            if let Some(room) = self.bytes.get_mut(start..start + width) {
                write(room);
            }
        };
        let seed = self.recipe.seed;
        match self.recipe.verb {
            Verb::Echo => {}
            Verb::Setbit | Verb::Getbit => {
                for (hash, field) in self.fields.iter().enumerate() {
                    let offset = self.recipe.bitmap.offset(seed, number, hash);
                    put(Some(field), &mut |room| write_decimal(offset, room));
                }
            }
            _ => put(self.fields.get(at % self.recipe.items), &mut |room| {
                room.copy_from_slice(&item(seed, number));
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom_resp::encode_request;

    fn recipe(verb: Verb) -> Recipe {
        Recipe {
            verb,
            key: b"k".to_vec(),
            items: if verb.takes_several() { 3 } else { 1 },
            bitmap: Bitmap::new(1000, 0.01).unwrap(),
            seed: 5,
            present: 0,
            hit_share: 0.0,
            filling: false,
        }
    }

    fn next(ring: &mut Ring) -> Vec<u8> {
        let requests = ring.take(1);
        ring.bytes(&requests).to_vec()
    }

    fn request(args: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_request(args, &mut bytes);
        bytes
    }

    #[test]
    fn adds_are_whole_requests_of_ever_new_items() {
        let mut ring = Ring::new(recipe(Verb::Madd), 10, 2, 1);
        let mut number = 0;
        for _ in 0..ring.requests + 5 {
            let items: Vec<_> = (number..number + 3)
                .map(|index| item(5, Kind::Fresh(index).number(1)))
                .collect();
            let expected = request(&[b"BF.MADD", b"k", &items[0], &items[1], &items[2]]);
            assert_eq!(next(&mut ring), expected, "{number}");
            number += 3;
        }
    }

    #[test]
    fn a_fill_adds_what_later_probes_find_present() {
        let filling = Recipe {
            filling: true,
            ..recipe(Verb::Add)
        };
        let mut fill = Ring::new(filling, 1, 1, 0);
        let added: Vec<_> = (0..100).map(|_| next(&mut fill)).collect();
        let probing = Recipe {
            present: 100,
            hit_share: 0.25,
            ..recipe(Verb::Exists)
        };
        let mut probe = Ring::new(probing, 1, 1, 0);
        let mut hits = 0;
        for _ in 0..10_000 {
            let requests = probe.take(1);
            let item = &probe.bytes(&requests)[probe.length - 18..];
            let was_added = added.iter().any(|request| request.ends_with(item));
            assert_eq!(probe.present(&requests), [was_added]);
            hits += u32::from(was_added);
        }
        assert!((2300..2700).contains(&hits), "{hits}");
    }

    #[test]
    fn a_bitmap_request_is_a_pipeline() {
        for (verb, value) in [(Verb::Setbit, Some(b"1".as_slice())), (Verb::Getbit, None)] {
            let recipe = recipe(verb);
            let kind = if value.is_some() {
                Kind::Fresh(0)
            } else {
                Kind::Absent(0)
            };
            let mut expected = Vec::new();
            for hash in 0..recipe.bitmap.hashes {
                let offset = recipe.bitmap.offset(5, kind.number(0), hash).to_string();
                let mut args = vec![verb.name().as_bytes(), b"k", offset.as_bytes()];
                args.extend(value);
                expected.extend(request(&args));
            }
            assert_eq!(recipe.commands(), 7);
            assert_eq!(next(&mut Ring::new(recipe, 1, 1, 0)), expected);
        }
    }

    #[test]
    fn echo_has_no_items() {
        let mut ring = Ring::new(recipe(Verb::Echo), 4, 1, 0);
        assert_eq!(next(&mut ring), request(&[b"ECHO", b"hello"]));
        let shape = recipe(Verb::Echo).shape();
        assert_eq!(
            (shape.literal.as_slice(), shape.items),
            (b"$5\r\nhello\r\n".as_slice(), 0)
        );
    }

    #[test]
    fn batches_are_short_only_at_the_end_of_the_ring() {
        let mut ring = Ring::new(recipe(Verb::Exists), 7, 2, 0);
        assert_eq!(ring.requests % 7, 0);
        let mut sent = 0;
        while sent < ring.requests {
            let requests = ring.take(7);
            assert_eq!(requests.len(), 7);
            sent += 7;
        }
        assert_eq!(ring.take(3), 0..3);
    }
}
