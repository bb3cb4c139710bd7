//! The headers of the inputs: that of the first is printed and names the fields, and the others must
//! be equal to it.

use super::columns::{CsvKey, listed};
use crate::records::chunk::Chunk;

/// The header of the first input that has one.
#[derive(Debug)]
struct First {
    names: Vec<Vec<u8>>,
    /// The input's name.
    input: String,
}

/// Takes the headers off.
#[derive(Debug)]
pub(crate) struct Headers {
    key: CsvKey,
    first: Option<First>,
}

impl Headers {
    pub(crate) fn new(key: CsvKey) -> Self {
        Self { key, first: None }
    }

    /// Takes the first record off a chunk, which is the header of the input with this name. The
    /// chunk keeps the header of the first input apart, for the output.
    pub(crate) fn take(&mut self, chunk: &mut Chunk, input: &str) -> Result<(), String> {
        let Some(&end) = chunk.ends.first() else {
            return Ok(());
        };
        let header = chunk.buffer.get(..end).unwrap_or_default();
        let line = header.strip_suffix(b"\n").unwrap_or(header);
        self.key
            .parser
            .parse(line.strip_suffix(b"\r").unwrap_or(line));
        let names: Vec<_> = self.key.parser.values().map(<[u8]>::to_vec).collect();
        match &self.first {
            None => {
                self.key.resolve(&names)?;
                chunk.header.extend_from_slice(header);
                let input = input.to_owned();
                self.first = Some(First { names, input });
            }
            Some(first) if first.names == names => {}
            Some(first) => {
                return Err(format!(
                    "its header is {}, and that of {} is {}",
                    listed(&names),
                    first.input,
                    listed(&first.names)
                ));
            }
        }
        chunk.drop_first();
        Ok(())
    }
}
