//! Columns of pandas, polars and Arrow: their values, and which rows have none.

use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::arrow::ArrowColumn;
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
    pub(crate) rows: Rows<'py>,
    /// For each row, whether it has no value; empty when all have one.
    pub(crate) missing: Vec<bool>,
}

/// Where the values of a column are.
pub(crate) enum Rows<'py> {
    Arrow(ArrowColumn),
    /// In an array or a list, without the rows that have none.
    Values(Bound<'py, PyAny>),
}

impl<'py> Column<'py> {
    /// `None` when the items are no column. Fails on the first row without a value, unless these
    /// are to be skipped.
    pub(crate) fn of(
        items: &Bound<'py, PyAny>,
        skip_missing: bool,
    ) -> PyResult<Option<Column<'py>>> {
        refuse_masked(items)?;
        if !is_column(items)? {
            return match skip_missing {
                false => Ok(None),
                true => Err(PyTypeError::new_err(format!(
                    "skip_missing is for columns of pandas, polars and Arrow, not for {}",
                    items.get_type().name()?
                ))),
            };
        }
        if let Some(arrow) = in_arrow(items)? {
            let missing = arrow.missing();
            refuse_missing(&missing, skip_missing)?;
            return Ok(Some(Column {
                rows: Rows::Arrow(arrow),
                missing,
            }));
        }
        refuse_structs(items)?;
        let all = values(items)?;
        let (missing, drop) = match are_texts(&all) {
            true => (Vec::new(), ""),
            false => missing_rows(items)?,
        };
        refuse_missing(&missing, skip_missing)?;
        let rows = match missing.contains(&true) {
            true => values(&items.call_method0(drop)?)?,
            false => all,
        };
        Ok(Some(Column {
            rows: Rows::Values(rows),
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

fn is_column(items: &Bound<'_, PyAny>) -> PyResult<bool> {
    if items.is_instance_of::<PyList>() || items.is_instance_of::<PyTuple>() {
        return Ok(false);
    }
    let is_column = items.hasattr("to_numpy")?
        || items.hasattr("__arrow_c_stream__")?
        || items.hasattr("__arrow_c_array__")?;
    if is_column && items.hasattr("columns")? {
        return Err(PyTypeError::new_err(format!(
            "a {} is a table: pass one of its columns, such as table['url']",
            items.get_type().name()?
        )));
    }
    Ok(is_column)
}

/// Rows of several fields are no items, and each library has another way to take one of them.
fn refuse_structs(column: &Bound<'_, PyAny>) -> PyResult<()> {
    // pandas has rows as attributes, too.
    let of_pyarrow = match column.hasattr("isna")? {
        true => None,
        false => column.getattr_opt("type")?,
    };
    let (kind, field) = match of_pyarrow {
        Some(kind) => (Some(kind), "pyarrow.compute.struct_field(column, \"id\")"),
        None => (column.getattr_opt("dtype")?, "column.struct.field(\"id\")"),
    };
    let Some(kind) = kind.map(|kind| kind.str()).transpose()? else {
        return Ok(());
    };
    let kind = kind.to_string();
    match kind.to_ascii_lowercase().starts_with("struct") {
        false => Ok(()),
        true => Err(PyTypeError::new_err(format!(
            "a column of {kind} is not of items; pass one field, such as {field}, or a list of \
             tuples of its fields"
        ))),
    }
}

/// An array of numpy.ma would be read with what is behind its mask.
fn refuse_masked(items: &Bound<'_, PyAny>) -> PyResult<()> {
    if !items.hasattr("mask")? || !items.hasattr("compressed")? {
        return Ok(());
    }
    let masked = items.py().import("numpy")?.getattr("ma")?;
    let mask = masked.call_method1("getmaskarray", (items,))?;
    let masked = bools(&mask)?.iter().position(|&masked| masked);
    match masked {
        None => Ok(()),
        Some(row) => Err(PyValueError::new_err(format!(
            "row {row} is masked, counted from 0; array.compressed() leaves such rows out"
        ))),
    }
}

fn refuse_missing(missing: &[bool], skip_missing: bool) -> PyResult<()> {
    match missing.iter().position(|&missing| missing) {
        Some(row) if !skip_missing => Err(PyValueError::new_err(format!(
            "row {row} has no value, counted from 0; with skip_missing=True such rows are left out"
        ))),
        _ => Ok(()),
    }
}

/// The column in Arrow's memory, if it is there, and its type has items.
fn in_arrow(column: &Bound<'_, PyAny>) -> PyResult<Option<ArrowColumn>> {
    // What cannot be exported may still be an array.
    let read = exporter_of(column).and_then(|exporter| match exporter {
        Some(exporter) => ArrowColumn::of(&exporter),
        None => Ok(None),
    });
    match read {
        Err(error) if error.is_instance_of::<PyException>(column.py()) => Ok(None),
        read => read,
    }
}

/// What exports the column without making objects; `None` when it is not in Arrow's memory.
fn exporter_of<'py>(column: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let exporter = if column.hasattr("isna")? {
        match exporter_of_pandas(column)? {
            Some(exporter) => exporter,
            None => return Ok(None),
        }
    } else {
        column.clone()
    };
    // The values of pyarrow's further types are not what they are stored as.
    let of_pyarrow = exporter.getattr_opt("type")?;
    match of_pyarrow {
        Some(of_pyarrow) if of_pyarrow.hasattr("extension_name")? => Ok(None),
        _ => Ok(Some(exporter)),
    }
}

/// The array of Arrow that a column of pandas consists of.
fn exporter_of_pandas<'py>(column: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let array = column.getattr_opt("array")?;
    let array = array.as_ref().unwrap_or(column);
    if array.hasattr("categories")? {
        let pyarrow = column.py().import("pyarrow")?;
        return pyarrow.call_method1("array", (array,)).map(Some);
    }
    let Some(export) = array.getattr_opt("__arrow_array__")? else {
        return Ok(None);
    };
    let storage = array.getattr("dtype")?.getattr_opt("storage")?;
    match storage {
        // These are objects, which would be copied.
        Some(storage) if storage.eq("python")? => Ok(None),
        _ => export.call0().map(Some),
    }
}

/// For each row, whether it has no value, and the method that leaves such rows out. Empty when the
/// column does not know.
fn missing_rows(column: &Bound<'_, PyAny>) -> PyResult<(Vec<bool>, &'static str)> {
    for (test, drop) in METHODS {
        if column.hasattr(test)? && column.hasattr(drop)? {
            return Ok((bools(&values(&column.call_method0(test)?)?)?, drop));
        }
    }
    Ok((Vec::new(), ""))
}

/// Whether this is an array of text, in which no value can be missing.
fn are_texts(array: &Bound<'_, PyAny>) -> bool {
    let buffer = Buffer::of(array);
    let objects = buffer.as_ref().and_then(Buffer::objects);
    objects.is_some_and(|objects| objects.are_texts())
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
        // Arrow's arrays of some types do not become one without being asked twice.
        Err(error) => match column.getattr_opt("to_pylist")? {
            Some(convert) => convert.call0(),
            None => Err(error),
        },
    }
}
