//! Takes the chunks in order: looks them up in the memory, prints what is wanted, and has the memory
//! keep what was printed.

use std::io;

use crate::failure::Failure;

use super::memory::Memory;
use super::report::Tally;
use crate::records::chunk::Chunk;
use crate::records::output::Output;

/// Drops the records that were seen before.
pub(super) struct Deduplicator {
    pub(super) memory: Memory,
    /// `None` to count only.
    pub(super) output: Option<Output>,
    /// Print the repeats in place of the others.
    pub(super) repeated: bool,
    /// Stop at a record without the field.
    pub(super) strict: bool,
    pub(super) tally: Tally,
    /// For each key of the chunk, whether it is new.
    pub(super) new: Vec<bool>,
    /// For each record of the chunk, whether it is printed.
    pub(super) keep: Vec<bool>,
}

impl Deduplicator {
    /// Prints the chosen records of a chunk. This moves its bytes.
    ///
    /// After an error, a key is remembered only when all records before it were handled. So no
    /// record is lost, and the next run may print some a second time.
    pub(super) fn process(&mut self, chunk: &mut Chunk) -> Result<(), Failure> {
        if let Some(output) = &mut self.output {
            output.write(&chunk.header).map_err(|(_, error)| error)?;
        }
        let asked = self.memory.ask(chunk, &mut self.new);
        let unknown = (chunk.ends.len() - chunk.keyless.len()).saturating_sub(self.new.len());
        self.choose(chunk);
        let (written, kept) = chunk.compact(&self.keep);
        let bytes = chunk.buffer.get(..written).unwrap_or_default();
        let printed = self
            .output
            .as_mut()
            .map_or(Ok(()), |output| output.write(bytes));
        let handled = match &printed {
            Ok(()) => self.keep.len(),
            Err((written, _)) => whole(chunk, &self.keep, *written),
        };
        let keyless = chunk.keyless.partition_point(|record| *record < handled);
        let remembered = self.memory.remember(chunk, &self.new, handled - keyless);
        self.tally.records += self.keep.len() as u64;
        self.tally.kept += kept as u64;
        self.tally.cut_quotes += chunk.cut_quotes;
        let handled_of = |records: &[usize]| records.partition_point(|r| *r < self.keep.len());
        self.tally.keys += (self.keep.len() - handled_of(&chunk.keyless)) as u64;
        self.tally.lacking += handled_of(&chunk.lacking) as u64;

        if let Err((written, error)) = printed {
            let is_cut = written > bytes_of(chunk, &self.keep, handled);
            return Err(self.unprinted(chunk, handled, is_cut, error));
        }
        asked.map_err(|failure| self.unanswered(&failure, unknown))?;
        remembered.map_err(|failure| self.ungrown(&failure))?;
        if self.keep.len() < chunk.ends.len() {
            let number = self.tally.records + 1;
            return Err(Failure::Other(format!(
                "record {number} has no such field; those before it were handled, and without \
                 --strict this one would be printed as it is"
            )));
        }
        Ok(())
    }

    /// Decides for each record. One without a key is no repeat, nor is one for which a server gave
    /// no answer. A filter of this process that gave none has no room: the run ends there.
    fn choose(&mut self, chunk: &Chunk) {
        let repeated = self.repeated;
        let is_local = matches!(self.memory, Memory::Local(_));
        self.keep.clear();
        if chunk.keyless.is_empty() && self.new.len() == chunk.ends.len() {
            self.keep
                .extend(self.new.iter().map(|new| *new != repeated));
            return;
        }
        let mut keyless = chunk.keyless.iter().peekable();
        let mut new = self.new.iter();
        let first = chunk.lacking.first().filter(|_| self.strict);
        for record in 0..first.copied().unwrap_or(chunk.ends.len()) {
            let is_new = if keyless.next_if_eq(&&record).is_some() {
                true
            } else {
                match new.next() {
                    Some(is_new) => *is_new,
                    None if is_local => return,
                    None => true,
                }
            };
            self.keep.push(is_new != repeated);
        }
    }

    /// The failure of the output. A server has remembered what was not printed.
    fn unprinted(&self, chunk: &Chunk, handled: usize, is_cut: bool, error: io::Error) -> Failure {
        let cut = match is_cut {
            true => "; the output ends within a record, which comes again: remove that part",
            false => "",
        };
        let lost = chunk.ends.len() - handled;
        if matches!(self.memory, Memory::Server(_)) && !self.repeated {
            return Failure::Other(format!(
                "cannot write: {error}{cut}; the server remembers up to {lost} records that were \
                 not printed, after number {}",
                self.tally.records - lost as u64
            ));
        }
        match error.kind() {
            io::ErrorKind::BrokenPipe => error.into(),
            _ => Failure::Other(format!(
                "cannot write: {error}{cut}; what was not printed is not remembered"
            )),
        }
    }

    /// The filter of this process has no room for a record. Those before it were handled.
    fn ungrown(&self, failure: &Failure) -> Failure {
        let remembered = match &self.memory {
            Memory::Local(local) if local.lasts => ", and what was printed is remembered",
            _ => "",
        };
        Failure::Other(format!(
            "{failure}; the first {} records were handled{remembered}; a filter with a larger \
             --capacity is smaller than one that grows",
            self.tally.records
        ))
    }

    fn unanswered(&self, failure: &Failure, unknown: usize) -> Failure {
        if matches!(self.memory, Memory::Local(_)) {
            return self.ungrown(failure);
        }
        let deed = match self.repeated {
            true => "were not printed",
            false => "were printed",
        };
        let records = self.tally.records;
        let advice = match (self.memory.is_lost(), self.repeated) {
            (true, false) => {
                "; nothing is remembered any more: a further run with the same input prints all \
                 records again"
                    .to_owned()
            }
            (true, true) => "; nothing is remembered any more".to_owned(),
            (false, false) => format!(
                " and may be remembered or not; a further run with the same input prints those of \
                 them that are not remembered again, and goes on behind record {records}"
            ),
            (false, true) => format!(
                " and may be remembered or not; a further run with the same input takes those of \
                 the first {records} records that are remembered for repeats"
            ),
        };
        Failure::Other(format!(
            "{failure}; it gave no answer for {unknown} records, which {deed}{advice}"
        ))
    }
}

/// The records before the first one that is not all in so many bytes of output.
fn whole(chunk: &Chunk, keep: &[bool], written: usize) -> usize {
    let mut bytes = 0;
    let mut start = 0;
    let printed = chunk.ends.iter().zip(keep).take_while(|(end, keep)| {
        if **keep {
            bytes += **end - start;
        }
        start = **end;
        bytes <= written
    });
    printed.count()
}

/// The bytes that are printed of the first records.
fn bytes_of(chunk: &Chunk, keep: &[bool], records: usize) -> usize {
    let starts = std::iter::once(0).chain(chunk.ends.iter().copied());
    let sizes = chunk
        .ends
        .iter()
        .zip(starts)
        .map(|(end, start)| end - start);
    let kept = sizes.zip(keep).take(records).filter(|(_, keep)| **keep);
    kept.map(|(size, _)| size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(text: &str) -> Chunk {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        Chunk {
            buffer: text.into(),
            filled: text.len(),
            ends,
            ..Chunk::default()
        }
    }

    #[test]
    fn only_what_was_printed_whole_counts() {
        let chunk = chunk("a\nbb\nccc\nd\n");
        let keep = [true, false, true, true];
        // a\nccc\nd\n is printed, and bb needs nothing.
        let handled = [0, 0, 2, 2, 2, 2, 3, 3, 4];
        for (written, handled) in handled.into_iter().enumerate() {
            assert_eq!(whole(&chunk, &keep, written), handled, "{written}");
        }
        let bytes = [0, 2, 2, 6, 8];
        for (records, bytes) in bytes.into_iter().enumerate() {
            assert_eq!(bytes_of(&chunk, &keep, records), bytes, "{records}");
        }
    }
}
