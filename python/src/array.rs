//! Arrays in memory, which their owner lends as a buffer, such as numpy's.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::item::Value;
use crate::raw::{Buffer, Elements};
use crate::shared::Detached;
use crate::task::{CHUNK, SIGNALS, Stop, Task, each, handle_signals};

/// The type of an array's elements.
#[derive(Clone, Copy)]
pub(crate) enum ElementType {
    /// As wide as an element.
    Number { signed: bool, big_endian: bool },
    /// Without the zeros at their end.
    Bytes,
    /// Four bytes a character, without the zeros at their end.
    Text { big_endian: bool },
    /// Python's objects.
    Objects,
}

impl ElementType {
    pub(crate) fn of(buffer: &Buffer<'_>, array: &Bound<'_, PyAny>) -> PyResult<ElementType> {
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
            "b" | "h" | "i" | "l" | "q" | "n" => ElementType::Number {
                signed: true,
                big_endian,
            },
            "?" | "B" | "H" | "I" | "L" | "Q" | "N" => ElementType::Number {
                signed: false,
                big_endian,
            },
            "s" => ElementType::Bytes,
            // One character may be a zero, which the module `array` keeps.
            "O" | "w" => ElementType::Objects,
            _ if is_many('s') => ElementType::Bytes,
            _ if is_many('w') => ElementType::Text { big_endian },
            _ => {
                let dtype = array.getattr("dtype").map(|dtype| dtype.to_string());
                let what = dtype.unwrap_or_else(|_| format!("'{format}'"));
                let instead = match what.as_str() {
                    what if what.contains("float") || what.contains("complex") => {
                        "; array.astype(\"int64\") has whole numbers, array.astype(str) texts"
                    }
                    what if what.starts_with('[') || what.starts_with('{') => {
                        "; pass one field, such as array[\"id\"]"
                    }
                    _ => "",
                };
                return Err(PyTypeError::new_err(format!(
                    "an array of {what} is not of items: arrays may be of ints, of bytes, of text \
                     or of objects{instead}"
                )));
            }
        })
    }

    /// Whether all elements are items. Only text can be damaged.
    pub(crate) fn check(self, elements: Elements<'_>) -> Result<(), Stop> {
        let ElementType::Text { big_endian } = self else {
            return Ok(());
        };
        let code = match big_endian {
            true => u32::from_be_bytes,
            false => u32::from_le_bytes,
        };
        let is_text = |row: usize| {
            let (chars, _) = elements.get(row)?.as_chunks();
            let all = chars
                .iter()
                .all(|char| char::from_u32(code(*char)).is_some());
            all.then_some(())
        };
        for row in 0..elements.len() {
            if row > 0 && row % SIGNALS == 0 {
                handle_signals()?;
            }
            is_text(row).ok_or(Stop::NoText(row))?;
        }
        Ok(())
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
            ElementType::Number { signed, big_endian } => {
                let item = |index| number(elements.get(index)?, signed, big_endian);
                each(shared, all.map(item), task, answers)
            }
            ElementType::Bytes => {
                let item = |index| trimmed(elements.get(index)?);
                each(shared, all.map(item), task, answers)
            }
            ElementType::Text { big_endian: true } => {
                each_text(shared, elements, u32::from_be_bytes, task, answers)
            }
            ElementType::Text { big_endian: false } => {
                each_text(shared, elements, u32::from_le_bytes, task, answers)
            }
            ElementType::Objects => Ok(()),
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
        // A chunk begins at each multiple.
        if first > 0 && first % SIGNALS == 0 {
            handle_signals()?;
        }
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
