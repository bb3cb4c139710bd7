//! The fields of a filter, each described once: a function that passes them to [`Fields`] writes
//! or reads them, in a header or in a value.

use std::convert::Infallible;

use everbloom::Span;
use everbloom::hash::Key;
use everbloom::host::{Generation, MAX_GENERATIONS, Window};
use everbloom::redisbloom::{FilterParts, KeyedParts, Options};

/// The name of a field, for an error.
pub(super) type Name = &'static str;

/// A type of whole numbers.
pub(super) trait Number: Copy + Into<u64> + TryFrom<u64> {}

impl<N: Copy + Into<u64> + TryFrom<u64>> Number for N {}

/// Fields on their way out, which stay as they are, or on their way in.
pub(super) trait Fields {
    /// Why a field could not be written or read.
    type Error;

    /// A whole number. In a header it takes `width` bytes.
    fn number<N: Number>(
        &mut self,
        name: Name,
        width: usize,
        it: &mut N,
    ) -> Result<(), Self::Error>;

    /// A floating-point number.
    fn double(&mut self, number: &mut f64) -> Result<(), Self::Error>;

    /// Bytes.
    fn bytes<const N: usize>(&mut self, name: Name, bytes: &mut [u8; N])
    -> Result<(), Self::Error>;
}

/// A header is little-endian and packed.
impl Fields for Vec<u8> {
    type Error = Infallible;

    fn number<N: Number>(&mut self, _: Name, width: usize, it: &mut N) -> Result<(), Infallible> {
        let bytes = (*it).into().to_le_bytes();
        self.extend_from_slice(bytes.get(..width).unwrap_or(&bytes));
        Ok(())
    }

    fn double(&mut self, number: &mut f64) -> Result<(), Infallible> {
        self.extend_from_slice(&number.to_le_bytes());
        Ok(())
    }

    fn bytes<const N: usize>(&mut self, _: Name, bytes: &mut [u8; N]) -> Result<(), Infallible> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// A header ends too early, or has a number that its place in a filter cannot hold.
#[derive(Debug)]
pub(super) struct Damaged;

impl Fields for &[u8] {
    type Error = Damaged;

    fn number<N: Number>(&mut self, _: Name, width: usize, it: &mut N) -> Result<(), Damaged> {
        let bytes = self.split_off(..width).ok_or(Damaged)?.iter().rev();
        let value = bytes.fold(0, |value, byte| value << 8 | u64::from(*byte));
        *it = N::try_from(value).map_err(|_| Damaged)?;
        Ok(())
    }

    fn double(&mut self, number: &mut f64) -> Result<(), Damaged> {
        let mut bytes = [0; 8];
        self.bytes("", &mut bytes)?;
        *number = f64::from_le_bytes(bytes);
        Ok(())
    }

    fn bytes<const N: usize>(&mut self, _: Name, bytes: &mut [u8; N]) -> Result<(), Damaged> {
        let (first, rest) = self.split_first_chunk().ok_or(Damaged)?;
        (*bytes, *self) = (*first, rest);
        Ok(())
    }
}

/// The version of [`head`] that is written.
pub(super) const HEAD_VERSION: u32 = 4;

/// What comes before the layers. Of `parts`, those that only some filters have say by being there
/// which filter it is.
pub(super) fn head<F: Fields>(
    fields: &mut F,
    version: u32,
    parts: &mut FilterParts,
    layers: &mut u64,
) -> Result<(), F::Error> {
    fields.number("items", 8, &mut parts.items)?;
    fields.number("layers", 4, layers)?;
    if version >= 2 {
        fields.number("options", 4, &mut parts.options)?;
    }
    if version >= 4 {
        fields.number("expansion", 4, &mut parts.expansion)?;
    }
    if let Some(key) = &mut parts.key {
        let mut bytes = key.to_bytes();
        fields.bytes("key", &mut bytes)?;
        *key = Key::from_bytes(bytes);
    }
    if let Some(valkey) = &mut parts.valkey {
        fields.bytes("seed", &mut valkey.seed)?;
        fields.double(&mut valkey.tightening)?;
    }
    let is_ours = parts.key.is_some() || parts.valkey.is_some();
    if is_ours && parts.options & Options::WINDOW != 0 {
        window(fields, parts.window.get_or_insert(NO_WINDOW))?;
    }
    Ok(())
}

/// What a cuckoo filter with a chosen error rate has in addition to other cuckoo filters.
pub(super) fn keyed<F: Fields>(fields: &mut F, parts: &mut KeyedParts) -> Result<(), F::Error> {
    let mut key = parts.key.to_bytes();
    fields.bytes("key", &mut key)?;
    parts.key = Key::from_bytes(key);
    fields.double(&mut parts.error_rate)?;
    fields.number("width", 1, &mut parts.width)?;
    fields.number("step", 1, &mut parts.step)
}

/// What [`keyed`] reads into.
pub(super) fn no_keyed() -> KeyedParts {
    KeyedParts {
        key: Key::from_bytes([0; 16]),
        error_rate: 0.0,
        width: 0,
        step: 0,
    }
}

/// The parts of a filter that [`head`] is about.
pub(super) fn without_layers(parts: &FilterParts) -> FilterParts {
    FilterParts {
        window: parts.window.clone(),
        layers: Vec::new(),
        ..*parts
    }
}

const NO_WINDOW: Window = Window {
    span: Span::Items,
    generations: 0,
    capacity: 0,
    error_rate: 0.0,
    dropped: 0,
    kept: Vec::new(),
};

/// The fields of a window. Whether they are one is for the check of the parts to say.
fn window<F: Fields>(fields: &mut F, window: &mut Window) -> Result<(), F::Error> {
    let mut ticks = window.span.ticks().unwrap_or(0);
    fields.number("window", 8, &mut ticks)?;
    window.span = Span::of_ticks(ticks);
    fields.number("generations", 4, &mut window.generations)?;
    fields.number("capacity", 8, &mut window.capacity)?;
    fields.double(&mut window.error_rate)?;
    fields.number("dropped", 8, &mut window.dropped)?;
    let mut kept = window.kept.len() as u64;
    fields.number("generations kept", 4, &mut kept)?;
    // No window has more. One without any is refused, too.
    let kept = usize::try_from(kept)
        .ok()
        .filter(|kept| *kept <= MAX_GENERATIONS as usize + 1);
    let none = Generation {
        layers: 0,
        began: 0,
    };
    window.kept.resize(kept.unwrap_or(0), none);
    for generation in &mut window.kept {
        fields.number("layers of a generation", 4, &mut generation.layers)?;
        fields.number("generation", 8, &mut generation.began)?;
    }
    Ok(())
}
