//! What an item is, as a user of the filters sees it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use everbloom::hash::{DoubleHash, Key, SEED64, murmur64a};
use everbloom::{BloomFilter, Hashed, Item, Layout, ScalableBloomFilter};

fn both_layouts() -> [BloomFilter; 2] {
    let builder = BloomFilter::builder().capacity(10_000).error_rate(1e-9);
    let classic = builder.layout(Layout::Classic).build().unwrap();
    [classic, builder.seed(7).build().unwrap()]
}

#[test]
fn one_item_in_many_types() {
    for mut seen in both_layouts() {
        assert!(seen.insert("text"));
        let text = String::from("text");
        assert!(seen.contains(&text));
        assert!(seen.contains(text.as_bytes()));
        assert!(seen.contains(b"text"));
        assert!(seen.contains(&text.clone().into_bytes()));
        assert!(seen.contains(&Rc::<str>::from("text")));
        assert!(seen.contains(&Cow::Borrowed("text")));

        assert!(seen.insert(&7_u8));
        assert!(seen.contains(&7_u128) && seen.contains(&7_i8) && seen.contains(&7_isize));
        assert!(!seen.contains("7") && !seen.contains(&[7]) && !seen.contains(&-7));

        assert!(seen.insert(&(7_u8, "text")));
        assert!(seen.contains(&(7_i64, text)));
        assert!(!seen.contains(&("text", 7)) && !seen.contains(&(7, "text", 0)));
    }
}

/// Filters in files depend on these: they must never change.
#[test]
fn hashes_never_change() {
    fn hashes(item: &impl Item) -> [(u64, u64); 2] {
        let [classic, blocked] = both_layouts().map(|filter| filter.hash(item));
        [(classic.a, classic.b), (blocked.a, blocked.b)]
    }
    // Computed by another implementation, in another language, from the text of docs/formats.md.
    let expected = [
        [
            (0xdec3_002d_f7a0_a308, 0xfff0_c519_477f_c77e),
            (0x25f8_5e72_3c80_0edb, 0x927b_d2de_8b03_8277),
        ],
        [
            (0x412e_c188_9a47_a99e, 0x304c_328d_bb8b_a149),
            (0xa937_1b02_e14e_3600, 0x13ff_f240_5b86_df42),
        ],
        [
            (0x087e_a909_c86d_94f0, 0x4373_96a6_988a_6581),
            (0x81a5_5179_6562_f4ee, 0xe00a_43f9_04cd_e66e),
        ],
        [
            (0xf796_0e4f_1d3d_e358, 0xc956_c55c_d164_e19b),
            (0x290e_cbba_d9d0_66e1, 0xc354_c828_338a_6573),
        ],
        [
            (0x74ff_4da1_324c_eeb5, 0xed9b_db4f_5cce_1167),
            (0xcf18_52fb_1676_3f49, 0xc498_dd62_1df6_b0d0),
        ],
        [
            (0xe4c5_ee55_7869_9c71, 0x6abb_5ca1_8b22_dc90),
            (0x3383_a9a9_f7b7_1dc4, 0xdb08_6501_1f3c_d16c),
        ],
    ];
    let found = [
        hashes(&7_u64),
        hashes(&-7_i64),
        hashes(&u128::MAX),
        hashes(&("a", 7_u8)),
        hashes(&Hashed("a")),
        hashes(&Hashed((7_u8, -2_i32, true))),
    ];
    assert_eq!(found, expected, "{found:#x?}");
}

#[test]
fn an_item_hashed_before_is_the_item() {
    for mut seen in both_layouts() {
        let hash = seen.hash("a");
        assert!(seen.insert_hash(hash));
        assert!(!seen.insert("a"));
        assert!(seen.contains_hash(hash));
        assert!(!seen.contains_hash(DoubleHash { a: 1, b: 2 }));
    }
    // The hash is that of the key, so filters with one key have the same.
    let [_, filter] = both_layouts();
    assert_eq!(filter.hash("a"), Key::from_seed(7).hash(b"a"));
}

#[test]
fn batches_take_all_items() {
    let urls = vec![String::from("a"), String::from("b")];
    let mut seen: ScalableBloomFilter = urls.iter().collect();
    seen.extend(&urls);
    seen.extend([1_u32, 2]);
    seen.extend(vec![(1, "a")]);
    assert_eq!(seen.len(), 5);
    let mut found = 0;
    seen.contains_each([(1_u8, "a"), (2, "a")], |yes| found += u32::from(yes));
    assert_eq!(found, 1);
}

/// What `Hash` values were hashed with before the filter's key: each write's MurmurHash64A, seeded
/// with the one before. Everybody can compute it, and compute it backwards.
struct Public(u64);

impl Hasher for Public {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = murmur64a(bytes, self.0);
    }
}

fn public(item: impl Hash) -> u64 {
    let mut hasher = Public(SEED64);
    item.hash(&mut hasher);
    hasher.finish()
}

const MUL: u64 = 0xc6a4_a793_5bd1_e995;

/// What the multiplication with this odd number is undone with.
fn inverse(odd: u64) -> u64 {
    // Each step doubles the number of right bits, of which an odd number has three by itself.
    (0..5).fold(odd, |x, _| {
        x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x)))
    })
}

/// Bytes that start with `start` and have the same MurmurHash64A as eight others with that seed.
fn crafted(start: u64, seed: u64, target: u64) -> [u8; 16] {
    let back = inverse(MUL);
    let shift = |x: u64| x ^ (x >> 47);
    let before_end = shift(shift(target).wrapping_mul(back));
    let mix = |k: u64| shift(k.wrapping_mul(MUL)).wrapping_mul(MUL);
    let so_far = (seed ^ 16_u64.wrapping_mul(MUL) ^ mix(start)).wrapping_mul(MUL);
    let mixed = before_end.wrapping_mul(back) ^ so_far;
    let last = shift(mixed.wrapping_mul(back)).wrapping_mul(back);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&start.to_le_bytes());
    bytes[8..].copy_from_slice(&last.to_le_bytes());
    bytes
}

/// Items that were crafted against the public hash collide under it, and not in a filter.
#[test]
fn a_hash_value_cannot_be_crafted_without_the_key() {
    #[derive(Hash)]
    struct Page([u8; 16]);
    let known = Page(*b"news.example/now");
    let target = public(&known);
    // An array writes its length first, which is where the chain begins.
    let after_length = murmur64a(&16_usize.to_ne_bytes(), SEED64);
    let forged: Vec<Page> = (0..200)
        .map(|start| Page(crafted(start, after_length, target)))
        .collect();
    assert!(forged.iter().all(|page| public(page) == target));

    for seed in 0..20 {
        let builder = BloomFilter::builder()
            .capacity(1000)
            .error_rate(1e-6)
            .seed(seed);
        let mut seen = builder.build().unwrap();
        seen.insert(&Hashed(&known));
        assert!(forged.iter().all(|page| !seen.contains(&Hashed(page))));
        let hash = |page| (seen.hash(&Hashed(page)).a, seen.hash(&Hashed(page)).b);
        let hashes: BTreeSet<_> = forged.iter().map(hash).collect();
        assert_eq!(hashes.len(), forged.len());
    }
}
