//! The items of filters.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use crate::hash::{DoubleHash, ItemHasher, ItemKind};

/// A value that can be inserted into a filter and looked up in it.
///
/// | type | what the item is |
/// |---|---|
/// | `str`, `[u8]`, `[u8; N]`, `String`, `Vec<u8>` | its bytes, as in `BF.ADD` |
/// | `u8` to `u128`, `i8` to `i128`, `usize`, `isize` | its value, whatever the type |
/// | `&T`, `Box<T>`, `Rc<T>`, `Arc<T>`, `Cow<T>` | what they refer to |
/// | a tuple of one to eight items | all of them in this order |
/// | [`Hashed<T>`](Hashed) | what the `Hash` of `T` writes |
///
/// An item means the same on every platform and in every version of this library: `7_u8`, `7_i64`
/// and Python's `7` are one. A number is not the same item as its bytes or its digits. To find it
/// on a server with `BF.EXISTS`, insert `number.to_string()`. A tuple is not the same item as its
/// parts joined: `("ab", "c")` and `("a", "bc")` are two items.
///
/// In the blocked layout the filter's [`Key`](crate::hash::Key) determines the hash of the whole
/// item. Any two items that were chosen without knowledge of the key agree in both hash values for
/// about one key in 2^60. In the classic layout the hash is public, so an attacker can choose any
/// number of items that collide.
///
/// Your own type becomes an item by hashing the items it consists of:
///
/// ```
/// use everbloom::hash::{DoubleHash, ItemHasher};
/// use everbloom::{BloomFilter, Item};
///
/// struct Visit<'a> { user: u64, page: &'a str }
///
/// impl Item for Visit<'_> {
///     fn hash_with<H: ItemHasher>(&self, hasher: &H) -> DoubleHash {
///         (self.user, self.page).hash_with(hasher)
///     }
/// }
///
/// let mut seen = BloomFilter::new(1000, 0.01);
/// assert!(seen.insert(&Visit { user: 7, page: "/index" }));
/// assert!(seen.contains(&(7, "/index")));
/// assert!(!seen.contains(&(8, "/index")));
/// ```
pub trait Item {
    /// The two hash values of the item.
    fn hash_with<H: ItemHasher>(&self, hasher: &H) -> DoubleHash;

    /// The bytes, if the item is only bytes: these take a faster path.
    #[doc(hidden)]
    #[inline]
    fn as_item_bytes(&self) -> Option<&[u8]> {
        None
    }
}

/// A value of any type with [`Hash`] as an item.
///
/// Each write of the `Hash` implementation goes through the filter's own hash. The item depends
/// only on that implementation. So a filter in a file still fits its items after a restart, as long
/// as the type and its `Hash` do not change. Numbers are hashed by value, regardless of width and
/// byte order. But slices of numbers wider than a byte write their memory as it is, so such items
/// are not portable between platforms.
///
/// `Hashed("a")` and `"a"` are different items.
///
/// ```
/// use everbloom::{BloomFilter, Hashed};
///
/// #[derive(Hash)]
/// struct Visit<'a> { user: u64, page: &'a str }
///
/// let mut seen = BloomFilter::new(1000, 0.01);
/// let visit = Visit { user: 7, page: "/index" };
/// assert!(seen.insert(&Hashed(&visit)));
/// assert!(seen.contains(&Hashed(&visit)));
/// assert!(!seen.contains(&Hashed(&Visit { user: 8, ..visit })));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashed<T>(pub T);

impl<T: Hash> Item for Hashed<T> {
    #[inline]
    fn hash_with<H: ItemHasher>(&self, hasher: &H) -> DoubleHash {
        let so_far = hasher.bytes(&[0; 16], Some(ItemKind::Stream));
        let mut stream = Stream { hasher, so_far };
        self.0.hash(&mut stream);
        stream.so_far
    }
}

/// Receives the writes of a `Hash` implementation. Each write is a separate item, so that "ab", "c"
/// and "a", "bc" differ.
struct Stream<'a, H> {
    hasher: &'a H,
    so_far: DoubleHash,
}

impl<H: ItemHasher> Stream<'_, H> {
    #[inline]
    fn take(&mut self, part: &impl Item) {
        let part = part.hash_with(self.hasher);
        self.so_far = self.hasher.chain(self.so_far, part, ItemKind::Stream);
    }
}

macro_rules! take_numbers {
    ($($write:ident: $number:ty,)*) => {
        $(
            #[inline]
            fn $write(&mut self, number: $number) {
                self.take(&number);
            }
        )*
    };
}

impl<H: ItemHasher> Hasher for Stream<'_, H> {
    fn finish(&self) -> u64 {
        self.so_far.a
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.take(&bytes);
    }

    // By default the trait writes the bytes of this platform.
    take_numbers! {
        write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128,
        write_usize: usize,
        write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_i128: i128,
        write_isize: isize,
    }
}

macro_rules! bytes {
    ($($name:ty $(where $n:ident)?,)*) => {
        $(
            impl $(<const $n: usize>)? Item for $name {
                #[inline]
                fn hash_with<H: ItemHasher>(&self, hasher: &H) -> DoubleHash {
                    hasher.bytes(self.as_ref(), None)
                }

                #[inline]
                fn as_item_bytes(&self) -> Option<&[u8]> {
                    Some(self.as_ref())
                }
            }
        )*
    };
}

bytes! { str, [u8], [u8; N] where N, String, Vec<u8>, }

macro_rules! numbers {
    ($($name:ty: $widest:ty,)*) => {
        $(
            impl Item for $name {
                #[inline]
                #[allow(
                    clippy::allow_attributes, clippy::cast_lossless, unused_comparisons,
                    reason = "one text for all types; none is wider than the widest"
                )]
                fn hash_with<H: ItemHasher>(&self, hasher: &H) -> DoubleHash {
                    let kind = if *self < 0 { ItemKind::Negative } else { ItemKind::Number };
                    hasher.bytes(&(*self as $widest).to_le_bytes(), Some(kind))
                }
            }
        )*
    };
}

numbers! {
    u8: u128, u16: u128, u32: u128, u64: u128, u128: u128, usize: u128,
    i8: i128, i16: i128, i32: i128, i64: i128, i128: i128, isize: i128,
}

macro_rules! references {
    ($($name:ty $(where $owned:ident)?,)*) => {
        $(
            impl<T: Item $(+ $owned)? + ?Sized> Item for $name {
                #[inline]
                fn hash_with<H: ItemHasher>(&self, hasher: &H) -> DoubleHash {
                    (**self).hash_with(hasher)
                }

                #[inline]
                fn as_item_bytes(&self) -> Option<&[u8]> {
                    (**self).as_item_bytes()
                }
            }
        )*
    };
}

references! { &T, &mut T, Box<T>, Rc<T>, Arc<T>, Cow<'_, T> where ToOwned, }

macro_rules! tuples {
    ($($count:literal: $($name:ident)*,)*) => {
        $(
            impl<$($name: Item),*> Item for ($($name,)*) {
                #[inline]
                #[expect(non_snake_case, reason = "a part is named as its type")]
                fn hash_with<Scheme: ItemHasher>(&self, hasher: &Scheme) -> DoubleHash {
                    let ($($name,)*) = self;
                    // How many there are comes first: no tuple is the beginning of another.
                    let so_far = DoubleHash { a: $count, b: 0 };
                    $(
                        let part = $name.hash_with(hasher);
                        let so_far = hasher.chain(so_far, part, ItemKind::Tuple);
                    )*
                    so_far
                }
            }
        )*
    };
}

tuples! {
    1: A, 2: A B, 3: A B C, 4: A B C D, 5: A B C D E, 6: A B C D E F, 7: A B C D E F G,
    8: A B C D E F G I,
}

#[cfg(test)]
mod tests {
    use alloc::borrow::Cow;
    use alloc::boxed::Box;
    use alloc::collections::BTreeSet;
    use alloc::string::String;
    use alloc::sync::Arc;
    use alloc::vec;

    use super::{Hashed, Item};
    use crate::hash::{DoubleHash, HashWidth, Key, Secrets};

    /// The hash in either layout; the hash of the classic layout must never change.
    fn hash(item: &(impl Item + ?Sized)) -> [DoubleHash; 2] {
        let secrets = Secrets::new(Key::from_seed(0));
        [item.hash_with(&HashWidth::Bits64), item.hash_with(&secrets)]
    }

    #[test]
    fn bytes_are_the_items_of_the_commands() {
        let foo = [
            DoubleHash::new(b"foo", HashWidth::Bits64),
            Key::from_seed(0).hash(b"foo"),
        ];
        assert_eq!(hash("foo"), foo);
        assert_eq!(hash(b"foo"), foo);
        assert_eq!(hash(&b"foo"[..]), foo);
        assert_eq!(hash(&String::from("foo")), foo);
        assert_eq!(hash(&vec![b'f', b'o', b'o']), foo);
        assert_eq!(hash(&&&"foo"), foo);
        assert_eq!(hash(&Box::<str>::from("foo")), foo);
        assert_eq!(hash(&Arc::<[u8]>::from(*b"foo")), foo);
        assert_eq!(hash(&Cow::Borrowed("foo")), foo);
    }

    #[test]
    fn a_number_is_its_value() {
        let seven = hash(&7_u8);
        assert_eq!(hash(&7_u64), seven);
        assert_eq!(hash(&7_i16), seven);
        assert_eq!(hash(&7_usize), seven);
        assert_eq!(hash(&7_i128), seven);
        assert_eq!(hash(&-7_i8), hash(&-7_i128));
        // All of these are other items.
        let others = [
            seven,
            hash(&-7),
            hash("7"),
            hash(&[7]),
            hash(&7_u64.to_le_bytes()),
            hash(&7_u128.to_le_bytes()),
            hash(&u128::MAX),
            hash(&-1),
            hash(&(7,)),
            hash(&((7,),)),
            hash(&(7, 7)),
            hash(&Hashed(7)),
            hash(&Hashed(())),
        ];
        for layout in 0..2 {
            let all: BTreeSet<_> = others
                .iter()
                .map(|pair| (pair[layout].a, pair[layout].b))
                .collect();
            assert_eq!(all.len(), others.len());
        }
    }

    #[test]
    fn parts_stay_apart() {
        assert_ne!(hash(&("ab", "c")), hash(&("a", "bc")));
        assert_ne!(hash(&("a", "b")), hash(&("b", "a")));
        assert_ne!(hash(&(("a", "b"), "c")), hash(&("a", "b", "c")));
        assert_ne!(hash(&Hashed(("ab", "c"))), hash(&Hashed(("a", "bc"))));
        assert_ne!(hash(&Hashed("a")), hash("a"));
        assert_eq!(hash(&(7_u8, "a")), hash(&(&7_i64, String::from("a"))));
        assert_eq!(hash(&Hashed("a")), hash(&Hashed(&String::from("a"))));
        assert_eq!(hash(&Hashed(7_usize)), hash(&Hashed(7_u64)));
    }
}
