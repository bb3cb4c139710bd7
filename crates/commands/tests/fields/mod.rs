//! A value as a sequence of fields in memory, as a host would write and read it.

use std::convert::Infallible;

use everbloom::host::LayeredFilter;
use everbloom_commands::Filter;
use everbloom_commands::format::value::{FieldReader, FieldWriter};

pub(crate) fn bloom(filter: Filter) -> LayeredFilter {
    match filter {
        Filter::Bloom(filter) => filter,
        Filter::Cuckoo(_) => panic!("a cuckoo filter"),
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    Unsigned(u64),
    Double(f64),
    Bytes(Vec<u8>),
}

use Field::{Bytes, Double, Unsigned};

#[derive(Default)]
pub(crate) struct Row(pub(crate) Vec<Field>);

impl FieldWriter for Row {
    type Error = Infallible;

    fn unsigned(&mut self, value: u64) -> Result<(), Infallible> {
        self.0.push(Unsigned(value));
        Ok(())
    }

    fn double(&mut self, value: f64) -> Result<(), Infallible> {
        self.0.push(Double(value));
        Ok(())
    }

    fn bytes(&mut self, value: &[u8]) -> Result<(), Infallible> {
        self.0.push(Bytes(value.to_vec()));
        Ok(())
    }
}

pub(crate) struct Rest<'a>(pub(crate) &'a [Field]);

impl<'a> Rest<'a> {
    fn next(&mut self) -> Result<&'a Field, &'static str> {
        let (first, rest) = self.0.split_first().ok_or("missing")?;
        self.0 = rest;
        Ok(first)
    }
}

impl FieldReader for Rest<'_> {
    type Error = &'static str;

    fn unsigned(&mut self) -> Result<u64, &'static str> {
        match self.next()? {
            Unsigned(value) => Ok(*value),
            _ => Err("not unsigned"),
        }
    }

    fn double(&mut self) -> Result<f64, &'static str> {
        match self.next()? {
            Double(value) => Ok(*value),
            _ => Err("not a double"),
        }
    }

    fn bytes(&mut self, _: u64) -> Result<Vec<u8>, &'static str> {
        match self.next()? {
            Bytes(value) => Ok(value.clone()),
            _ => Err("not bytes"),
        }
    }
}
