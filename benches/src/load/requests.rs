//! Encodes requests before they are needed. A ring of requests of the same length is in one buffer,
//! so a batch is a slice that goes to the socket as it is.

use std::ops::Range;

use everbloom_resp::encode::{encode_array_len, encode_bulk};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::items::{Bitmap, ITEM_LENGTH, ItemKind, item, write_decimal};
use super::keys::Keys;

/// The word that ECHO sends and receives.
pub(super) const WORD: &[u8] = b"hello";

/// The number of items in a ring. It is less when the ring would be over `RING_BYTES`, and more
/// when the batches need more.
const RING_ITEMS: usize = 1_000_000;

const RING_BYTES: usize = 64 << 20;

/// The command to send. `Echo` has no item. A bitmap request is the pipeline of SETBIT or GETBIT
/// for one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// CF.ADD
    CfAdd,
    /// CF.EXISTS
    CfExists,
    /// CF.INSERT
    CfInsert,
    /// CF.MEXISTS
    CfMexists,
}

impl Verb {
    const ALL: [Verb; 11] = [
        Verb::Echo,
        Verb::Add,
        Verb::Exists,
        Verb::Madd,
        Verb::Mexists,
        Verb::Setbit,
        Verb::Getbit,
        Verb::CfAdd,
        Verb::CfExists,
        Verb::CfInsert,
        Verb::CfMexists,
    ];

    /// The value of `--command`: `BF.ADD` is `add`, `CF.ADD` is `cf-add`.
    pub(super) fn parse(flag: &str) -> Option<Verb> {
        let flag_of = |verb: &Verb| {
            let name = verb.name().to_ascii_lowercase();
            name.trim_start_matches("bf.").replace('.', "-")
        };
        Verb::ALL.into_iter().find(|verb| flag_of(verb) == flag)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Verb::Echo => "ECHO",
            Verb::Add => "BF.ADD",
            Verb::Exists => "BF.EXISTS",
            Verb::Madd => "BF.MADD",
            Verb::Mexists => "BF.MEXISTS",
            Verb::Setbit => "SETBIT",
            Verb::Getbit => "GETBIT",
            Verb::CfAdd => "CF.ADD",
            Verb::CfExists => "CF.EXISTS",
            Verb::CfInsert => "CF.INSERT",
            Verb::CfMexists => "CF.MEXISTS",
        }
    }

    pub(super) fn adds(self) -> bool {
        use Verb::{Add, CfAdd, CfInsert, Madd, Setbit};
        matches!(self, Add | Madd | Setbit | CfAdd | CfInsert)
    }

    pub(super) fn probes(self) -> bool {
        use Verb::{CfExists, CfMexists, Exists, Getbit, Mexists};
        matches!(self, Exists | Mexists | Getbit | CfExists | CfMexists)
    }

    pub(super) fn takes_several(self) -> bool {
        use Verb::{CfInsert, CfMexists, Madd, Mexists};
        matches!(self, Madd | Mexists | CfInsert | CfMexists)
    }

    pub(super) fn is_cuckoo(self) -> bool {
        use Verb::{CfAdd, CfExists, CfInsert, CfMexists};
        matches!(self, CfAdd | CfExists | CfInsert | CfMexists)
    }

    pub(super) fn is_bitmap(self) -> bool {
        matches!(self, Verb::Setbit | Verb::Getbit)
    }

    /// Whether the requests can name different keys. The key follows from the item, so a request
    /// has one item.
    pub(super) fn takes_keys(self) -> bool {
        self != Verb::Echo && !self.takes_several()
    }

    /// Whether this answer about an added item shows that the filter lost it. A probe
    /// must find the item, and an add must not find it new. (SETBIT answers the old bits, so all
    /// must be 1. CF.ADD adds the item once more, and answers 1.)
    pub(super) fn lost(self, found: bool) -> bool {
        match self {
            Verb::Echo => false,
            Verb::Add | Verb::Madd => found,
            _ => !found,
        }
    }
}

/// Everything that determines the bytes of the requests.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) verb: Verb,
    pub(super) keys: Keys,
    /// The number of items of a command that takes several. 1 for the other commands.
    pub(super) items: usize,
    pub(super) bitmap: Bitmap,
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
        if self.verb.is_bitmap() {
            self.bitmap.hashes
        } else {
            1
        }
    }

    /// One request with room for its items and keys.
    fn template(&self) -> Template {
        let mut bytes = Vec::new();
        let (mut fields, mut keys) = (Vec::new(), Vec::new());
        // The room is at the end of an argument, before the line end.
        let before_end = |bytes: &[u8], width: usize| bytes.len().saturating_sub(width + 2);
        let width = self.width();
        let mut field = |bytes: &mut Vec<u8>| {
            encode_bulk(&vec![b'0'; width], bytes);
            fields.push(before_end(bytes, width));
        };
        let first = self.keys.key(0);
        let mut key = |bytes: &mut Vec<u8>| {
            encode_bulk(&first, bytes);
            if self.keys.several() {
                keys.push(before_end(bytes, self.keys.digits()));
            }
        };
        match self.verb {
            Verb::Echo => {
                encode_array_len(2, &mut bytes);
                encode_bulk(b"ECHO", &mut bytes);
                encode_bulk(WORD, &mut bytes);
            }
            Verb::Setbit | Verb::Getbit => {
                let set = self.verb == Verb::Setbit;
                for _ in 0..self.bitmap.hashes {
                    encode_array_len(3 + usize::from(set), &mut bytes);
                    encode_bulk(self.verb.name().as_bytes(), &mut bytes);
                    key(&mut bytes);
                    field(&mut bytes);
                    if set {
                        encode_bulk(b"1", &mut bytes);
                    }
                }
            }
            verb => {
                let insert = verb == Verb::CfInsert;
                encode_array_len(2 + usize::from(insert) + self.items, &mut bytes);
                encode_bulk(verb.name().as_bytes(), &mut bytes);
                key(&mut bytes);
                if insert {
                    encode_bulk(b"ITEMS", &mut bytes);
                }
                (0..self.items).for_each(|_| field(&mut bytes));
            }
        }
        Template {
            bytes,
            fields,
            keys,
        }
    }

    /// The length in bytes of the room for an item, or for a bit's offset.
    fn width(&self) -> usize {
        if self.verb.is_bitmap() {
            self.bitmap.digits
        } else {
            ITEM_LENGTH
        }
    }
}

/// One request, and where to patch it.
#[derive(Debug)]
struct Template {
    bytes: Vec<u8>,
    /// The positions of the items, or of the bits' offsets.
    fields: Vec<usize>,
    /// The positions of the numbers of the keys. Empty when all requests have the same key.
    keys: Vec<usize>,
}

/// All requests of a run.
#[derive(Debug)]
pub(super) struct Ring {
    recipe: Recipe,
    template: Template,
    bytes: Vec<u8>,
    /// The length of a request in bytes.
    length: usize,
    requests: usize,
    /// For each item in the ring, whether it was added before.
    present: Vec<bool>,
    /// The next request to send.
    next: usize,
    /// The number of items that were added. None of them may be sent twice.
    fresh: u64,
}

impl Ring {
    /// Encodes a ring of whole batches. `in_flight` batches may be waiting for replies at a time.
    pub(super) fn new(recipe: Recipe, batch: usize, in_flight: usize) -> Self {
        let template = recipe.template();
        let length = template.bytes.len();
        let wanted = (RING_ITEMS / recipe.items.max(1)).min(RING_BYTES / length);
        // While a batch is being sent, it must not be patched for another connection.
        let batches = wanted.div_ceil(batch).max(2 * in_flight);
        let requests = batches * batch;
        let mut ring = Self {
            bytes: template.bytes.repeat(requests),
            template,
            length,
            requests,
            present: vec![false; requests * recipe.items],
            next: 0,
            fresh: 0,
            recipe,
        };
        ring.fill();
        ring
    }

    /// Draws the items of all requests. `take` writes the items to add anew in every round.
    fn fill(&mut self) {
        if self.recipe.verb == Verb::Echo {
            return;
        }
        let mut random = SmallRng::seed_from_u64(1);
        let hits = self.recipe.present > 0;
        for item in 0..self.requests * self.recipe.items {
            if hits && random.random_bool(self.recipe.hit_share) {
                let index = random.random_range(0..self.recipe.present);
                self.write(item, ItemKind::Present(index));
                if let Some(present) = self.present.get_mut(item) {
                    *present = true;
                }
            } else if self.recipe.verb.probes() {
                self.write(item, ItemKind::Absent(item as u64));
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
                        ItemKind::Present(self.fresh)
                    } else {
                        ItemKind::Fresh(self.fresh)
                    };
                    self.write(item, kind);
                    self.fresh += 1;
                }
            }
        }
        start..end
    }

    /// The number of requests in the ring.
    pub(super) fn len(&self) -> usize {
        self.requests
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

    /// Writes an item of the ring, and its key, into its request.
    #[inline]
    fn write(&mut self, at: usize, kind: ItemKind) {
        let Recipe { verb, items, .. } = self.recipe;
        let number = kind.number();
        let start = (at / items) * self.length;
        let Some(request) = self.bytes.get_mut(start..start + self.length) else {
            return;
        };
        if self.recipe.keys.several() {
            let key = self.recipe.keys.of_item(number);
            for &field in &self.template.keys {
                write_decimal(key, room(request, field, self.recipe.keys.digits()));
            }
        }
        if verb.is_bitmap() {
            let bitmap = &self.recipe.bitmap;
            for (hash, &field) in self.template.fields.iter().enumerate() {
                let offset = bitmap.offset(number, hash);
                write_decimal(offset, room(request, field, bitmap.digits));
            }
        } else if let Some(&field) = self.template.fields.get(at % items)
            && let Some(room) = room(request, field, ITEM_LENGTH).first_chunk_mut()
        {
            *room = item(number);
        }
    }
}

/// The part of a request that is patched.
fn room(request: &mut [u8], start: usize, width: usize) -> &mut [u8] {
    request.get_mut(start..start + width).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom_resp::encode_request;
    use std::collections::HashSet;

    fn recipe(verb: Verb) -> Recipe {
        Recipe {
            verb,
            keys: Keys::new("k", 1),
            items: if verb.takes_several() { 3 } else { 1 },
            bitmap: Bitmap::new(1000, 0.01).unwrap(),
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
        let mut ring = Ring::new(recipe(Verb::Madd), 10, 2);
        let mut number = 0;
        for _ in 0..ring.requests + 5 {
            let items: Vec<_> = (number..number + 3)
                .map(|index| item(ItemKind::Fresh(index).number()))
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
        let mut fill = Ring::new(filling, 1, 1);
        let added: Vec<_> = (0..100).map(|_| next(&mut fill)).collect();
        let probing = Recipe {
            present: 100,
            hit_share: 0.25,
            ..recipe(Verb::Exists)
        };
        let mut probe = Ring::new(probing, 1, 1);
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

    /// Probes for present items name the key to which the fill added the item.
    #[test]
    fn each_item_is_sent_under_its_own_key() {
        for (add, probe) in [(Verb::Add, Verb::Exists), (Verb::Setbit, Verb::Getbit)] {
            let filling = Recipe {
                keys: Keys::new("k", 30),
                filling: true,
                ..recipe(add)
            };
            let probing = Recipe {
                verb: probe,
                present: 90,
                hit_share: 0.5,
                filling: false,
                ..filling.clone()
            };
            let expected = |verb: Verb, number: u64, key: u64| {
                let key = format!("k:{key:02}");
                let mut bytes = Vec::new();
                for hash in 0..filling.commands() {
                    let offset = filling.bitmap.offset(number, hash).to_string();
                    let item = item(number);
                    let mut args = vec![verb.name().as_bytes(), key.as_bytes()];
                    args.push(if verb.is_bitmap() {
                        offset.as_bytes()
                    } else {
                        &item
                    });
                    args.extend((verb == Verb::Setbit).then_some(b"1".as_slice()));
                    bytes.extend(request(&args));
                }
                bytes
            };
            let mut fill = Ring::new(filling.clone(), 1, 1);
            for index in 0..90 {
                assert_eq!(next(&mut fill), expected(add, index, index % 30));
            }
            let filled: HashSet<_> = (0..90).map(|i| expected(probe, i, i % 30)).collect();
            let mut probes = Ring::new(probing, 1, 1);
            let (mut hits, mut keys) = (0, HashSet::new());
            for index in 0..2000 {
                let requests = probes.take(1);
                let present = filled.contains(probes.bytes(&requests));
                assert_eq!(probes.present(&requests), [present]);
                hits += u32::from(present);
                if !present {
                    let number = ItemKind::Absent(index).number();
                    let key = filling.keys.of_item(number);
                    assert_eq!(probes.bytes(&requests), expected(probe, number, key));
                    keys.insert(key);
                }
            }
            assert!((800..1200).contains(&hits), "{hits}");
            assert_eq!(keys.len(), 30);
        }
    }

    #[test]
    fn items_are_inserted_behind_a_word() {
        let mut ring = Ring::new(recipe(Verb::CfInsert), 1, 1);
        let items: Vec<_> = (0..3)
            .map(|index| item(ItemKind::Fresh(index).number()))
            .collect();
        let expected = [
            b"CF.INSERT".as_slice(),
            b"k",
            b"ITEMS",
            &items[0],
            &items[1],
            &items[2],
        ];
        assert_eq!(next(&mut ring), request(&expected));
    }

    #[test]
    fn a_bitmap_request_is_a_pipeline() {
        for (verb, value) in [(Verb::Setbit, Some(b"1".as_slice())), (Verb::Getbit, None)] {
            let recipe = recipe(verb);
            let kind = if value.is_some() {
                ItemKind::Fresh(0)
            } else {
                ItemKind::Absent(0)
            };
            let mut expected = Vec::new();
            for hash in 0..recipe.bitmap.hashes {
                let offset = recipe.bitmap.offset(kind.number(), hash).to_string();
                let mut args = vec![verb.name().as_bytes(), b"k", offset.as_bytes()];
                args.extend(value);
                expected.extend(request(&args));
            }
            assert_eq!(recipe.commands(), 7);
            assert_eq!(next(&mut Ring::new(recipe, 1, 1)), expected);
        }
    }

    #[test]
    fn echo_has_no_items() {
        let mut ring = Ring::new(recipe(Verb::Echo), 4, 1);
        assert_eq!(next(&mut ring), request(&[b"ECHO", b"hello"]));
    }

    #[test]
    fn batches_are_short_only_at_the_end_of_the_ring() {
        let mut ring = Ring::new(recipe(Verb::Exists), 7, 2);
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
