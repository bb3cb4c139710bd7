//! Columns in Arrow's memory: their items are read without Python objects.

use std::ops::Range;

use pyo3::prelude::*;

use crate::array::number;
use crate::item::Value;
use crate::raw::arrow::{Chunks, Dictionary, Rows, Values};
use crate::shared::Detached;
use crate::task::{Stop, Task, each};

/// A column whose type has items.
pub(crate) struct ArrowColumn(Chunks);

impl ArrowColumn {
    /// `None` when the object has no such column.
    pub(crate) fn of(column: &Bound<'_, PyAny>) -> PyResult<Option<ArrowColumn>> {
        let chunks = Chunks::of(column)?;
        Ok(chunks
            .map(ArrowColumn)
            .filter(|column| column.0.rows().is_some()))
    }

    fn chunks(&self) -> Vec<Rows<'_>> {
        self.0.rows().unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks().iter().map(|rows| rows.len).sum()
    }

    /// For each row, whether it has no value; empty when all have one.
    pub(crate) fn missing(&self) -> Vec<bool> {
        let chunks = self.chunks();
        if chunks.iter().all(Rows::is_full) {
            return Vec::new();
        }
        let missing = chunks
            .iter()
            .flat_map(|rows| rows.range().map(|row| !rows.has(row)));
        let missing: Vec<bool> = missing.collect();
        if missing.contains(&true) {
            missing
        } else {
            Vec::new()
        }
    }

    /// Does the task with the rows that have a value.
    pub(crate) fn run<F, T: Task<F>>(
        &self,
        shared: Detached<'_, F>,
        task: T,
        answers: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        self.chunks()
            .iter()
            .try_for_each(|rows| match &rows.values {
                Values::Dictionary(dictionary) => {
                    run_dictionary(shared, rows, dictionary, task, answers)
                }
                values => run_values(shared, values, rows.present(), task, answers),
            })
    }
}

impl Rows<'_> {
    /// The numbers of the rows in the buffers.
    fn range(&self) -> Range<usize> {
        self.first..self.first.saturating_add(self.len)
    }

    /// The rows that have a value.
    fn present(&self) -> impl Iterator<Item = usize> {
        self.range().filter(|&row| self.has(row))
    }

    /// Whether all rows have a value.
    fn is_full(&self) -> bool {
        self.validity.is_none()
            && match &self.values {
                Values::Null => self.len == 0,
                Values::Dictionary(_) => self.range().all(|row| self.has(row)),
                _ => true,
            }
    }

    /// Whether the row has a value.
    #[inline]
    fn has(&self, row: usize) -> bool {
        match &self.values {
            Values::Null => false,
            Values::Dictionary(numbers) => self.value(row, numbers).is_some(),
            _ => self.is_valid(row),
        }
    }

    #[inline]
    fn is_valid(&self, row: usize) -> bool {
        self.validity
            .is_none_or(|bits| bit(bits, row) == Some(true))
    }

    /// Where in the dictionary the value of a row is, if it has one.
    #[inline]
    fn value(&self, row: usize, dictionary: &Dictionary<'_>) -> Option<usize> {
        let values = &dictionary.values;
        let number = dictionary.number(row)?;
        let value = values.first.checked_add(number)?;
        (self.is_valid(row) && number < values.len && values.has(value)).then_some(value)
    }
}

impl Dictionary<'_> {
    #[inline]
    fn number(&self, row: usize) -> Option<usize> {
        let bytes = part(self.numbers, row, self.width)?;
        let number = match self.width {
            1 => u8::from_ne_bytes(*bytes.first_chunk()?).into(),
            2 => u16::from_ne_bytes(*bytes.first_chunk()?).into(),
            4 => usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?,
            _ => usize::try_from(u64::from_ne_bytes(*bytes.first_chunk()?)).ok()?,
        };
        // The first one that is below 0, if any can be.
        let negative = 1_usize.checked_shl(u32::try_from(8 * self.width - 1).ok()?);
        let is_negative = self.signed && negative.is_some_and(|negative| number >= negative);
        (!is_negative).then_some(number)
    }
}

const BIG_ENDIAN: bool = cfg!(target_endian = "big");

#[inline]
fn bit(bits: &[u8], row: usize) -> Option<bool> {
    Some(bits.get(row / 8)? >> (row % 8) & 1 == 1)
}

/// The bytes of a row.
#[inline]
fn part(bytes: &[u8], row: usize, width: usize) -> Option<&[u8]> {
    let start = row.checked_mul(width)?;
    bytes.get(start..start.checked_add(width)?)
}

/// The bytes of a row whose view is among these.
#[inline]
fn viewed<'a>(views: &'a [[u8; 16]], data: &[&'a [u8]], row: usize) -> Option<&'a [u8]> {
    /// Items of at most this length are in the view itself.
    const INLINE: usize = 12;
    let view = views.get(row)?;
    let [length, _prefix, buffer, start] = {
        let (words, _) = view.as_chunks::<4>();
        let word = |index| words.get(index).map(|word| i32::from_ne_bytes(*word));
        [word(0)?, word(1)?, word(2)?, word(3)?]
    };
    let length = usize::try_from(length).ok()?;
    if length <= INLINE {
        return view.get(4..4 + length);
    }
    let start = usize::try_from(start).ok()?;
    let buffer = data.get(usize::try_from(buffer).ok()?)?;
    buffer.get(start..start.checked_add(length)?)
}

fn run_values<F>(
    shared: Detached<'_, F>,
    values: &Values<'_>,
    rows: impl Iterator<Item = usize>,
    task: impl Task<F>,
    answers: &mut Vec<u8>,
) -> Result<(), Stop> {
    match values {
        // Their rows have no values of their own.
        Values::Null | Values::Dictionary(_) => Ok(()),
        Values::Bits(bits) => {
            let items = rows.map(|row| Some(Value::Small(bit(bits, row)?.into())));
            each(shared, items, task, answers)
        }
        &Values::Numbers {
            numbers,
            width,
            signed,
        } => {
            let item = |row| number(part(numbers, row, width)?, signed, BIG_ENDIAN);
            each(shared, rows.map(item), task, answers)
        }
        &Values::Fixed { bytes, width } => each(
            shared,
            rows.map(|row| part(bytes, row, width)),
            task,
            answers,
        ),
        &Values::Offsets {
            offsets,
            width: 4,
            data,
        } => {
            let (offsets, _) = offsets.as_chunks();
            let offset = |row| usize::try_from(i32::from_ne_bytes(*offsets.get(row)?)).ok();
            let item = |row: usize| data.get(offset(row)?..offset(row + 1)?);
            each(shared, rows.map(item), task, answers)
        }
        &Values::Offsets { offsets, data, .. } => {
            let (offsets, _) = offsets.as_chunks();
            let offset = |row| usize::try_from(i64::from_ne_bytes(*offsets.get(row)?)).ok();
            let item = |row: usize| data.get(offset(row)?..offset(row + 1)?);
            each(shared, rows.map(item), task, answers)
        }
        Values::Views { views, data } => {
            let (views, _) = views.as_chunks();
            each(
                shared,
                rows.map(|row| viewed(views, data, row)),
                task,
                answers,
            )
        }
    }
}

/// Does the task once for each distinct value, in the order in which they come, if that is enough.
fn run_dictionary<F, T: Task<F>>(
    shared: Detached<'_, F>,
    rows: &Rows<'_>,
    dictionary: &Dictionary<'_>,
    task: T,
    answers: &mut Vec<u8>,
) -> Result<(), Stop> {
    let Rows {
        first, len, values, ..
    } = &*dictionary.values;
    let in_rows = rows.range().filter_map(|row| rows.value(row, dictionary));
    if !shared.read(|filter| task.once_is_enough(filter)) {
        return run_values(shared, values, in_rows, task, answers);
    }
    // The place of each value among the distinct ones, and of each row's.
    const NONE: u32 = u32::MAX;
    let mut places = vec![NONE; *len];
    let mut distinct = Vec::new();
    let mut order = Vec::with_capacity(if T::ANSWERS { rows.len } else { 0 });
    for value in in_rows {
        let place = places.get_mut(value - first).ok_or(Stop::Damaged)?;
        if *place == NONE {
            *place = u32::try_from(distinct.len()).map_err(|_| Stop::Damaged)?;
            distinct.push(value);
        }
        if T::ANSWERS {
            order.push(*place);
        }
    }
    let mut found = Vec::new();
    run_values(shared, values, distinct.into_iter(), task, &mut found)?;
    answers.extend(order.iter().filter_map(|&place| {
        let place = usize::try_from(place).ok()?;
        found.get_mut(place).map(T::answer_again)
    }));
    Ok(())
}
