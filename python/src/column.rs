//! Columns of pandas, polars and Arrow: their values, and which rows have none.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::raw::Buffer;

/// The methods of pandas, polars and Arrow that say which rows have no value, and that leave these
/// rows out.
const METHODS: [(&str, &str); 3] = [
    ("isna", "dropna"),
    ("is_null", "drop_nulls"),
    ("is_null", "drop_null"),
];

/// A column, ready to be read.
pub(crate) struct Column<'py> {
    /// An array, or the list that Arrow gives for text. Rows without a value are left out.
    pub(crate) values: Bound<'py, PyAny>,
    /// For each row, whether it has no value; empty when all have one.
    pub(crate) missing: Vec<bool>,
}

impl<'py> Column<'py> {
    /// `None` when the items are no column. Fails on the first row without a value, unless these
    /// are to be skipped.
    pub(crate) fn of(
        items: &Bound<'py, PyAny>,
        skip_missing: bool,
    ) -> PyResult<Option<Column<'py>>> {
        let is_column = !items.is_instance_of::<PyList>()
            && !items.is_instance_of::<PyTuple>()
            && items.hasattr("to_numpy")?;
        if !is_column {
            return match skip_missing {
                false => Ok(None),
                true => Err(PyTypeError::new_err(format!(
                    "skip_missing is for columns of pandas, polars and Arrow, not for {}",
                    items.get_type().name()?
                ))),
            };
        }
        let (missing, drop) = missing_rows(items)?;
        let Some(row) = missing.iter().position(|&missing| missing) else {
            return Ok(Some(Column {
                values: values(items)?,
                missing: Vec::new(),
            }));
        };
        if !skip_missing {
            return Err(PyValueError::new_err(format!(
                "row {row} has no value, counted from 0; with skip_missing=True such rows are \
                 left out"
            )));
        }
        Ok(Some(Column {
            values: values(&items.call_method0(drop)?)?,
            missing,
        }))
    }

    /// The answers of all rows: `False` for those without a value.
    pub(crate) fn spread(&self, answers: Vec<u8>) -> Vec<u8> {
        if self.missing.is_empty() {
            return answers;
        }
        let mut answers = answers.into_iter();
        let spread = self.missing.iter().map(|&missing| match missing {
            true => 0,
            false => answers.next().unwrap_or(0),
        });
        spread.collect()
    }
}

/// For each row, whether it has no value, and the method that leaves such rows out. Empty when the
/// column does not know.
fn missing_rows(column: &Bound<'_, PyAny>) -> PyResult<(Vec<bool>, &'static str)> {
    // Arrow keeps the number; its mask would be slow to read.
    let nulls = column.getattr_opt("null_count")?;
    if nulls.is_some_and(|nulls| nulls.extract().is_ok_and(|nulls: u64| nulls == 0)) {
        return Ok((Vec::new(), ""));
    }
    for (test, drop) in METHODS {
        if column.hasattr(test)? && column.hasattr(drop)? {
            return Ok((bools(&values(&column.call_method0(test)?)?)?, drop));
        }
    }
    Ok((Vec::new(), ""))
}

/// An array or a list of bool. An array of two dimensions is none: it is refused later.
fn bools(mask: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    let Some(buffer) = Buffer::of(mask) else {
        return mask.extract();
    };
    let Some(elements) = buffer.elements() else {
        return Ok(Vec::new());
    };
    let each = (0..elements.len()).filter_map(|row| elements.get(row));
    Ok(each.map(|element| element != [0]).collect())
}

/// A column as an array, or as the list it can become.
fn values<'py>(column: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Some(convert) = column.getattr_opt("to_numpy")? else {
        return Ok(column.clone());
    };
    match convert.call0() {
        Ok(array) => Ok(array),
        // Arrow's arrays of text do not become one without being asked twice.
        Err(error) => match column.getattr_opt("to_pylist")? {
            Some(convert) => convert.call0(),
            None => Err(error),
        },
    }
}
