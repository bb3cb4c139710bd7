//! A list whose only element lies in it.

use alloc::collections::TryReserveError;
use alloc::vec::{self, Vec};
use core::mem::{size_of, take};
use core::ops::{Deref, DerefMut};
use core::slice;

/// A list without an allocation while it has one element, as most filters have one layer. It takes
/// no byte more than the element, if that has a value to spare.
#[derive(Clone, Debug)]
pub(crate) enum List<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> List<T> {
    /// The element, if it lies in the list.
    #[inline]
    pub(crate) fn only(&self) -> Option<&T> {
        match self {
            List::One(only) => Some(only),
            List::Many(_) => None,
        }
    }

    /// [`only`](Self::only), to change it.
    #[inline]
    pub(crate) fn only_mut(&mut self) -> Option<&mut T> {
        match self {
            List::One(only) => Some(only),
            List::Many(_) => None,
        }
    }

    /// Heap bytes of the list.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            List::One(_) => 0,
            List::Many(all) => all.capacity() * size_of::<T>(),
        }
    }

    /// Makes room for one more.
    pub(crate) fn try_reserve_one(&mut self) -> Result<(), TryReserveError> {
        if let List::Many(all) = self {
            return all.try_reserve_exact(1);
        }
        let mut all = Vec::new();
        all.try_reserve_exact(2)?;
        all.extend(self.pop());
        *self = List::Many(all);
        Ok(())
    }

    pub(crate) fn push(&mut self, element: T) {
        match self {
            List::Many(all) if all.is_empty() => *self = List::One(element),
            List::Many(all) => all.push(element),
            List::One(_) => {
                let mut all = Vec::with_capacity(2);
                all.extend(self.pop());
                all.push(element);
                *self = List::Many(all);
            }
        }
    }

    /// Removes the last.
    pub(crate) fn pop(&mut self) -> Option<T> {
        match take(self) {
            List::One(only) => Some(only),
            List::Many(mut all) => {
                let last = all.pop();
                *self = List::Many(all);
                last
            }
        }
    }

    /// Removes all but the first.
    pub(crate) fn keep_first(&mut self) {
        if let List::Many(all) = self {
            all.truncate(1);
            if let Some(first) = all.pop() {
                *self = List::One(first);
            }
        }
    }

    /// Removes the first ones, so many.
    pub(crate) fn drain_first(&mut self, count: usize) -> impl Iterator<Item = T> {
        let only = match self {
            List::One(_) if count > 0 => self.pop(),
            _ => None,
        };
        let drained = match self {
            List::One(_) => None,
            List::Many(all) => Some(all.drain(..count.min(all.len()))),
        };
        only.into_iter().chain(drained.into_iter().flatten())
    }
}

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List::Many(Vec::new())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            List::One(only) => slice::from_ref(only),
            List::Many(all) => all,
        }
    }
}

impl<T> DerefMut for List<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            List::One(only) => slice::from_mut(only),
            List::Many(all) => all,
        }
    }
}

impl<T: PartialEq> PartialEq for List<T> {
    /// Wherever the elements lie.
    fn eq(&self, other: &List<T>) -> bool {
        **self == **other
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(mut all: Vec<T>) -> List<T> {
        match all.pop() {
            Some(only) if all.is_empty() => List::One(only),
            last => {
                all.extend(last);
                List::Many(all)
            }
        }
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        let all = match self {
            List::One(only) => Vec::from([only]),
            List::Many(all) => all,
        };
        all.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::List;

    #[test]
    fn a_list_of_one_is_as_large_as_its_element() {
        type Element = (Box<u8>, [u64; 4]);
        assert_eq!(size_of::<List<Element>>(), size_of::<Element>());
        assert_eq!(List::from(Vec::from([1])).heap_bytes(), 0);
    }

    proptest! {
        /// A list is what a vector is, whatever is done to it.
        #[test]
        fn a_list_is_a_vector(steps in prop::collection::vec((0..6, 0..4_usize), 0..30)) {
            let (mut list, mut vector) = (List::default(), Vec::new());
            for (number, (step, count)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        list.push(number);
                        vector.push(number);
                    }
                    2 => prop_assert_eq!(list.pop(), vector.pop()),
                    3 => {
                        list.keep_first();
                        vector.truncate(1);
                    }
                    4 => {
                        let drained: Vec<usize> = list.drain_first(count).collect();
                        let expected = vector.drain(..count.min(vector.len()));
                        prop_assert_eq!(drained, expected.collect::<Vec<_>>());
                    }
                    _ => list.try_reserve_one().unwrap(),
                }
                prop_assert_eq!(&list[..], &vector[..]);
                prop_assert!(List::from(vector.clone()) == list);
                prop_assert_eq!(list.clone().into_iter().collect::<Vec<_>>(), vector.clone());
            }
        }
    }
}
