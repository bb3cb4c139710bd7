//! Arrays in memory, which their owner lends as a buffer, such as numpy's.

use everbloom::{InsertError, Item};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::batch::{CHUNK, Task};
use crate::error;
use crate::item::Value;
use crate::raw::{Buffer, Elements};
use crate::shared::Detached;

/// Why a task stopped before the last item.
pub(crate) enum Stop {
    Insert(InsertError),
    /// This element is no text.
    NoText(usize),
    /// An item is not where it should be.
    Damaged,
}

impl Stop {
    /// The exception for it; `items` are what the elements come from.
    pub(crate) fn error(self, items: &Bound<'_, PyAny>) -> PyErr {
        match self {
            Stop::Insert(error) => error::insert(error),
            // Python says what is wrong with it.
            Stop::NoText(element) => {
                let object = items.get_item(element);
                let item = object.and_then(|object| Value::of(object.as_borrowed()).map(drop));
                item.err().unwrap_or_else(|| {
                    PyValueError::new_err(format!("element {element} is no text"))
                })
            }
            Stop::Damaged => PyValueError::new_err("the column's memory contradicts its type"),
        }
    }
}

/// Does a task with the items, without the interpreter.
pub(crate) fn each<F, I: Item>(
    shared: Detached<'_, F>,
    mut items: impl Iterator<Item = Option<I>>,
    task: impl Task<F>,
    answers: &mut Vec<u8>,
) -> Result<(), Stop> {
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        chunk.clear();
        for item in items.by_ref().take(CHUNK) {
            chunk.push(item.ok_or(Stop::Damaged)?);
        }
        if chunk.is_empty() {
            return Ok(());
        }
        task.run(shared, &chunk, answers).map_err(Stop::Insert)?;
    }
}

/// The type of an array's elements.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// As wide as an element.
    Number { signed: bool, big_endian: bool },
    /// Without the zeros at their end.
    Bytes,
    /// Four bytes a character, without the zeros at their end.
    Text { big_endian: bool },
    /// Python's objects.
    Objects,
}

impl Kind {
    pub(crate) fn of(buffer: &Buffer<'_>, array: &Bound<'_, PyAny>) -> PyResult<Kind> {
        let format = buffer.format();
        let element = format.trim_start_matches(['@', '=', '<', '>', '!']);
        let big_endian = match format.as_bytes().first() {
            Some(b'>' | b'!') => true,
            Some(b'<') => false,
            _ => cfg!(target_endian = "big"),
        };
        let is_many = |kind| {
            let count = element.strip_suffix(kind);
            count.is_some_and(|count: &str| count.parse::<u64>().is_ok())
        };
        Ok(match element {
            "b" | "h" | "i" | "l" | "q" | "n" => Kind::Number {
                signed: true,
                big_endian,
            },
            "?" | "B" | "H" | "I" | "L" | "Q" | "N" => Kind::Number {
                signed: false,
                big_endian,
            },
            "s" => Kind::Bytes,
            // One character may be a zero, which the module `array` keeps.
            "O" | "w" => Kind::Objects,
            _ if is_many('s') => Kind::Bytes,
            _ if is_many('w') => Kind::Text { big_endian },
            _ => {
                let dtype = array.getattr("dtype").map(|dtype| dtype.to_string());
                let what = dtype.unwrap_or_else(|_| format!("'{format}'"));
                return Err(PyTypeError::new_err(format!(
                    "an array of {what} is not of items: arrays may be of ints, of bytes, of text \
                     or of objects"
                )));
            }
        })
    }

    /// Does a task with the elements of an array of this type; those that are objects are not read.
    pub(crate) fn run<F>(
        self,
        shared: Detached<'_, F>,
        elements: Elements<'_>,
        task: impl Task<F>,
        answers: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let all = 0..elements.len();
        match self {
            Kind::Number { signed, big_endian } => {
                let item = |index| number(elements.get(index)?, signed, big_endian);
                each(shared, all.map(item), task, answers)
            }
            Kind::Bytes => {
                let item = |index| trimmed(elements.get(index)?);
                each(shared, all.map(item), task, answers)
            }
            Kind::Text { big_endian: true } => {
                each_text(shared, elements, u32::from_be_bytes, task, answers)
            }
            Kind::Text { big_endian: false } => {
                each_text(shared, elements, u32::from_le_bytes, task, answers)
            }
            Kind::Objects => Ok(()),
        }
    }
}

#[inline]
pub(crate) fn number<'a>(element: &[u8], signed: bool, big_endian: bool) -> Option<Value<'a>> {
    macro_rules! number {
        ($unsigned:ty) => {{
            let bytes = *element.first_chunk()?;
            let number = match big_endian {
                true => <$unsigned>::from_be_bytes(bytes),
                false => <$unsigned>::from_le_bytes(bytes),
            };
            match signed {
                true => Value::Small(number.cast_signed().into()),
                false => match i64::try_from(number) {
                    Ok(number) => Value::Small(number),
                    Err(_) => Value::Natural(number.into()),
                },
            }
        }};
    }
    Some(match element.len() {
        1 => number!(u8),
        2 => number!(u16),
        4 => number!(u32),
        8 => number!(u64),
        _ => return None,
    })
}

/// The bytes before the zeros at the end.
fn trimmed(element: &[u8]) -> Option<&[u8]> {
    let last = element.iter().rposition(|&byte| byte != 0);
    element.get(..last.map_or(0, |last| last + 1))
}

/// Text of four bytes a character, as UTF-8.
fn each_text<F>(
    shared: Detached<'_, F>,
    elements: Elements<'_>,
    code: impl Fn([u8; 4]) -> u32,
    task: impl Task<F>,
    answers: &mut Vec<u8>,
) -> Result<(), Stop> {
    let mut bytes = Vec::new();
    let mut ends = Vec::with_capacity(CHUNK);
    for first in (0..elements.len()).step_by(CHUNK) {
        bytes.clear();
        ends.clear();
        let mut stop = None;
        for index in (first..elements.len()).take(CHUNK) {
            let pushed = elements
                .get(index)
                .and_then(|element| push_utf8(&mut bytes, element, &code));
            if pushed.is_none() {
                stop = Some(Stop::NoText(index));
                break;
            }
            ends.push(bytes.len());
        }
        let mut start = 0;
        let texts = ends.iter().filter_map(|&end| {
            let text = bytes.get(start..end);
            start = end;
            text
        });
        let texts: Vec<&[u8]> = texts.collect();
        task.run(shared, &texts, answers).map_err(Stop::Insert)?;
        if let Some(stop) = stop {
            return Err(stop);
        }
    }
    Ok(())
}

/// `None` when it is no text: half of a pair of surrogates, or no character at all.
#[inline]
fn push_utf8(bytes: &mut Vec<u8>, element: &[u8], code: impl Fn([u8; 4]) -> u32) -> Option<()> {
    let (chars, _) = element.as_chunks();
    let last = chars.iter().rposition(|char| *char != [0; 4]);
    let chars = chars.get(..last.map_or(0, |last| last + 1))?;
    if chars.iter().fold(0, |all, char| all | code(*char)) < 0x80 {
        bytes.extend(chars.iter().map(|char| {
            let [ascii, ..] = code(*char).to_le_bytes();
            ascii
        }));
        return Some(());
    }
    for char in chars {
        let char = char::from_u32(code(*char))?;
        bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Some(())
}
