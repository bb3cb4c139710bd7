//! Reading the commands of a log file, from a stream, trusting none of its numbers.
//!
//! The format is drawn in [the module above](super). What is read is what Redis writes, to the
//! byte; an announced length is an upper bound for what is read, never an amount to allocate.
//!
//! A file that just ends, within a command or within a transaction, is
//! [`Truncated`](ReadError::Truncated): the machine stopped while it was written, and what comes
//! before is good. So is a file whose end is zeros: its length was on the disk, and its bytes were
//! not. Anything else that does not belong there is [`Damaged`](ReadError::Damaged), zeros with
//! something behind them included. So is an argument that goes up to the end of the commands or
//! beyond while there are whole commands in what it covers: its length is wrong, and a cut in front
//! of it would take good commands away.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use everbloom_resp::Batch;
use thiserror::Error;

use super::batch::{Commands, MAX_ARGS, TransactionWord, whole_units};
use super::covered::whole_command;
use crate::limits::{LOG_AHEAD_BYTES, LOG_BUFFER_BYTES};

/// The longest annotation with its line feed, as Redis reads it.
const MAX_ANNOTATION: u64 = 1024;

/// One command of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Where in the file it begins.
    pub offset: u64,
    /// The command's name and its arguments; at least the name.
    pub args: Vec<Vec<u8>>,
}

impl Command {
    /// Its name and its arguments.
    pub fn words(&self) -> Vec<&[u8]> {
        self.args.iter().map(Vec::as_slice).collect()
    }
}

/// What takes effect as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A single command.
    Command(Command),
    /// The commands between a `MULTI` and its `EXEC`, without these two; there may be none.
    Transaction(Vec<Command>),
}

impl Unit {
    /// Its commands, in order.
    pub fn commands(&self) -> &[Command] {
        match self {
            Unit::Command(command) => std::slice::from_ref(command),
            Unit::Transaction(commands) => commands,
        }
    }
}

/// What a log is read in.
#[derive(Debug)]
pub enum Piece<'r> {
    /// Whole units that lie in the bytes that were read.
    Commands(Commands<'r>),
    /// A unit that goes beyond these bytes, or that an annotation precedes.
    Unit(Unit),
}

/// Why the reading of a log file ended before its end.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file ends within a command or within a transaction, or in zeros.
    #[error(
        "{file}: the file ends at byte {len}, in the middle of {within}; \
         it is complete up to byte {valid_up_to}"
    )]
    Truncated {
        /// The file.
        file: String,
        /// Where to cut the file so that it is complete: after the last unit or annotation, and
        /// before the `MULTI` of a transaction that has no `EXEC`.
        valid_up_to: u64,
        /// Where it ends.
        len: u64,
        /// What is incomplete.
        within: &'static str,
    },
    /// Something else stands where the format has a certain byte, or a limit is exceeded.
    #[error("{file}, byte {offset}: expected {expected}, found {found}")]
    Damaged {
        /// The file.
        file: String,
        /// Where.
        offset: u64,
        /// What the format has there.
        expected: Cow<'static, str>,
        /// What is there.
        found: String,
    },
    /// The file cannot be read.
    #[error("{file}, byte {offset}: {source}")]
    Io {
        /// The file.
        file: String,
        /// How far it was read.
        offset: u64,
        /// What the storage said.
        source: io::Error,
    },
}

/// Streams the units of a log file; ends after the first error.
///
/// Memory is bounded by the unit that is being read: for a command, about twice the bytes of it
/// that have been read, and 1 MiB more.
#[derive(Debug)]
pub struct CommandReader<R> {
    input: BufReader<R>,
    file: String,
    max_bulk: u64,
    /// Where in the file the next byte is.
    offset: u64,
    /// The end of the last complete unit or annotation.
    valid: u64,
    /// What is being read.
    within: &'static str,
    failed: bool,
    batch: Batch,
    /// Bytes of the buffer whose commands were returned.
    taken: usize,
    /// In how many bytes commands are looked for at once.
    ahead: usize,
}

impl<R: Read> CommandReader<R> {
    /// Reads `input` from the start of the file, whose name is for the errors. An argument of more
    /// than `max_bulk` bytes is damage: the caller says how much memory there is, and not what
    /// clients may send now, for the log may come from a time of other settings.
    pub fn new(input: R, file: impl Into<String>, max_bulk: u64) -> Self {
        Self::starting_at(0, input, file, max_bulk)
    }

    /// Reads `input` from byte `offset` of the file on: behind the RDB file that an old-style log
    /// may begin with.
    pub fn starting_at(offset: u64, input: R, file: impl Into<String>, max_bulk: u64) -> Self {
        CommandReader {
            input: BufReader::with_capacity(LOG_BUFFER_BYTES.get(), input),
            file: file.into(),
            max_bulk,
            offset,
            valid: offset,
            within: "a command",
            failed: false,
            batch: Batch::new(),
            taken: 0,
            ahead: LOG_BUFFER_BYTES.get(),
        }
    }

    /// How far the file was read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How far the file is complete.
    pub fn valid_up_to(&self) -> u64 {
        self.valid
    }

    /// All units that the buffer has, or the next one, if it has none that is whole; `None` at the
    /// end of the file. Faster than [`next_unit`](Self::next_unit), which it must not be mixed
    /// with.
    ///
    /// `check` sees each command of a transaction whose end has not been read, and says why the
    /// server cannot run it. That is damage: an `EXEC` with a wrong byte would otherwise take all
    /// that follows into a transaction without an end.
    pub fn next_piece(
        &mut self,
        check: &dyn Fn(&Command) -> Result<(), String>,
    ) -> Result<Option<Piece<'_>>, ReadError> {
        self.input.consume(std::mem::take(&mut self.taken));
        if !self.failed && self.peek()? == Some(b'*') {
            let bytes = self.input.buffer();
            let bytes = bytes.get(..self.ahead).unwrap_or(bytes);
            self.taken = whole_units(bytes, self.max_bulk, &mut self.batch);
            // The commands found after an annotation are not used.
            self.ahead = match self.taken {
                taken if (1..bytes.len() / 2).contains(&taken) => LOG_AHEAD_BYTES.get(),
                _ => (2 * self.ahead).min(LOG_BUFFER_BYTES.get()),
            };
        }
        if self.taken == 0 {
            return Ok(self.checked_unit(check)?.map(Piece::Unit));
        }
        let offset = self.offset;
        self.offset += self.taken as u64;
        self.valid = self.offset;
        Ok(Some(Piece::Commands(Commands {
            bytes: self.input.buffer(),
            batch: &self.batch,
            offset,
        })))
    }

    /// The next unit; `None` at the end of the file.
    pub fn next_unit(&mut self) -> Result<Option<Unit>, ReadError> {
        self.checked_unit(&|_| Ok(()))
    }

    fn checked_unit(
        &mut self,
        check: &dyn Fn(&Command) -> Result<(), String>,
    ) -> Result<Option<Unit>, ReadError> {
        if self.failed {
            return Ok(None);
        }
        let unit = self.unit(check);
        self.failed = unit.is_err();
        unit
    }

    fn unit(
        &mut self,
        check: &dyn Fn(&Command) -> Result<(), String>,
    ) -> Result<Option<Unit>, ReadError> {
        let Some(command) = self.command(true)? else {
            return Ok(None);
        };
        let unit = match TransactionWord::of(&command.args) {
            Some(TransactionWord::Multi) => {
                self.within = "a transaction";
                Unit::Transaction(self.transaction(check)?)
            }
            Some(_) => return Err(self.unexpected(&command, "a command, or MULTI before EXEC")),
            None => Unit::Command(command),
        };
        self.valid = self.offset;
        self.within = "a command";
        Ok(Some(unit))
    }

    /// The commands up to `EXEC`, which are valid only with it.
    fn transaction(
        &mut self,
        check: &dyn Fn(&Command) -> Result<(), String>,
    ) -> Result<Vec<Command>, ReadError> {
        const EXPECTED: &str = "a command of the transaction, or EXEC";
        let mut commands = Vec::new();
        loop {
            let command = self.command(false)?.ok_or_else(|| self.truncated())?;
            match TransactionWord::of(&command.args) {
                Some(TransactionWord::Exec) => return Ok(commands),
                Some(_) => return Err(self.unexpected(&command, EXPECTED)),
                None => check(&command)
                    .map_err(|problem| self.damaged(command.offset, EXPECTED, problem))?,
            }
            commands.push(command);
        }
    }

    /// The next command; `None` when the file ends in front of it. Annotations before it are
    /// skipped, and are valid by themselves outside of a transaction.
    fn command(&mut self, outside: bool) -> Result<Option<Command>, ReadError> {
        loop {
            let offset = self.offset;
            let Some(first) = self.peek()? else {
                return Ok(None);
            };
            match first {
                b'#' => {
                    self.annotation()?;
                    if outside {
                        self.valid = self.offset;
                    }
                }
                b'*' => {
                    let args = self.args()?;
                    return Ok(Some(Command { offset, args }));
                }
                other => return Err(self.wrong_byte(offset, "'*' or '#'", other)),
            }
        }
    }

    /// Skips a line.
    fn annotation(&mut self) -> Result<(), ReadError> {
        let start = self.offset;
        loop {
            let offset = self.offset;
            match self.byte()? {
                b'\n' => return Ok(()),
                0 => return Err(self.wrong_byte(offset, "a character", 0)),
                _ => {}
            }
            if self.offset - start >= MAX_ANNOTATION {
                let expected = format!("an annotation of at most {MAX_ANNOTATION} bytes");
                return Err(self.damaged(start, expected, "a longer one".into()));
            }
        }
    }

    fn args(&mut self) -> Result<Vec<Vec<u8>>, ReadError> {
        let count = self.head(b'*', "a number of arguments", 1, MAX_ARGS)?;
        let mut args = Vec::new();
        for _ in 0..count {
            let head = self.offset + 1;
            let len = self.head(b'$', "a length", 0, self.max_bulk)?;
            let start = self.offset;
            let arg = self.bulk(len)?;
            let ended = match arg.len() as u64 == len {
                true => self.line_end(),
                false => Err(self.truncated()),
            };
            if let Err(error) = ended {
                return Err(self.unended(error, head, len, start, &arg));
            }
            args.push(arg);
        }
        Ok(args)
    }

    /// A line of a mark and a number within `min..=max`.
    fn head(&mut self, mark: u8, what: &str, min: u64, max: u64) -> Result<u64, ReadError> {
        self.expect(mark)?;
        let start = self.offset;
        let mut number: Option<u64> = Some(0);
        loop {
            let offset = self.offset;
            match self.byte()? {
                digit @ b'0'..=b'9' => {
                    let digit = u64::from(digit - b'0');
                    number = number.and_then(|n| n.checked_mul(10)?.checked_add(digit));
                    number = number.filter(|n| *n <= max);
                    if number.is_none() {
                        let expected = format!("{what} of at most {max}");
                        return Err(self.damaged(start, expected, "a larger one".into()));
                    }
                }
                b'\r' if offset > start => break,
                other => {
                    let expected = if offset > start {
                        "a digit or CR"
                    } else {
                        "a digit"
                    };
                    return Err(self.wrong_byte(offset, expected, other));
                }
            }
        }
        self.expect(b'\n')?;
        match number {
            Some(number) if number >= min => Ok(number),
            _ => Err(self.damaged(
                start,
                format!("{what} of at least {min}"),
                "a smaller one".into(),
            )),
        }
    }

    fn line_end(&mut self) -> Result<(), ReadError> {
        self.expect(b'\r')?;
        self.expect(b'\n')
    }

    /// The error of an argument without the end of its line. It is damage if the end of the file
    /// comes before that, and the argument covers a whole command: the length at `head` is wrong.
    #[cold]
    fn unended(
        &self,
        error: ReadError,
        head: u64,
        len: u64,
        start: u64,
        bytes: &[u8],
    ) -> ReadError {
        let covered = match error {
            ReadError::Truncated { .. } => whole_command(bytes),
            _ => None,
        };
        let Some(at) = covered else { return error };
        let beyond = match (bytes.len() as u64) < len {
            true => "beyond the end of the file and ",
            false => "",
        };
        let found = format!(
            "{len}, which goes {beyond}over a whole command at byte {}",
            start + at as u64
        );
        self.damaged(head, format!("a length of at most {}", at - 2), found)
    }

    /// The next bytes, so many; fewer where the file ends.
    fn bulk(&mut self, len: u64) -> Result<Vec<u8>, ReadError> {
        let buffered = usize::try_from(len).ok();
        let bytes = match buffered.and_then(|len| self.input.buffer().get(..len)) {
            Some(bytes) => {
                let bytes = bytes.to_vec();
                self.input.consume(bytes.len());
                bytes
            }
            None => {
                // Memory is taken as bytes come, not as the length says.
                let mut bytes = Vec::new();
                let read = (&mut self.input).take(len).read_to_end(&mut bytes);
                read.map_err(|error| self.io(error))?;
                bytes
            }
        };
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), ReadError> {
        let offset = self.offset;
        match self.byte()? {
            found if found == wanted => Ok(()),
            other => Err(self.wrong_byte(offset, byte_text(wanted), other)),
        }
    }

    fn byte(&mut self) -> Result<u8, ReadError> {
        let byte = self.peek()?.ok_or_else(|| self.truncated())?;
        self.input.consume(1);
        self.offset += 1;
        Ok(byte)
    }

    /// The next byte without taking it; `None` at the end of the file.
    fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            match self.input.fill_buf() {
                Ok(buffered) => return Ok(buffered.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.io(error)),
            }
        }
    }

    /// The error of a byte that does not belong there. If it is a zero with nothing but zeros behind
    /// it, the end of the file is torn.
    #[cold]
    fn wrong_byte(
        &mut self,
        offset: u64,
        expected: impl Into<Cow<'static, str>>,
        found: u8,
    ) -> ReadError {
        let is_torn = match found {
            0 => self.skip_zeros(),
            _ => Ok(false),
        };
        match is_torn {
            Ok(true) => {
                self.within = "a row of zeros";
                self.truncated()
            }
            Ok(false) => self.damaged(offset, expected, byte_text(found)),
            Err(error) => error,
        }
    }

    /// Skips the zeros that come next; true if the file ends with them.
    fn skip_zeros(&mut self) -> Result<bool, ReadError> {
        while self.peek()?.is_some() {
            let buffered = self.input.buffer();
            let zeros = buffered.iter().take_while(|byte| **byte == 0).count();
            if zeros < buffered.len() {
                return Ok(false);
            }
            self.input.consume(zeros);
            self.offset += zeros as u64;
        }
        Ok(true)
    }

    #[cold]
    fn truncated(&self) -> ReadError {
        ReadError::Truncated {
            file: self.file.clone(),
            valid_up_to: self.valid,
            len: self.offset,
            within: self.within,
        }
    }

    #[cold]
    fn damaged(
        &self,
        offset: u64,
        expected: impl Into<Cow<'static, str>>,
        found: String,
    ) -> ReadError {
        let (file, expected) = (self.file.clone(), expected.into());
        ReadError::Damaged {
            file,
            offset,
            expected,
            found,
        }
    }

    #[cold]
    fn unexpected(&self, command: &Command, expected: &'static str) -> ReadError {
        let name = command
            .args
            .first()
            .map(|name| String::from_utf8_lossy(name));
        self.damaged(
            command.offset,
            expected,
            name.unwrap_or_default().into_owned(),
        )
    }

    #[cold]
    fn io(&self, source: io::Error) -> ReadError {
        ReadError::Io {
            file: self.file.clone(),
            offset: self.offset,
            source,
        }
    }
}

impl<R: Read> Iterator for CommandReader<R> {
    type Item = Result<Unit, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_unit().transpose()
    }
}

/// A byte as an error shows it.
fn byte_text(byte: u8) -> String {
    match byte {
        b'\r' => "CR".into(),
        b'\n' => "LF".into(),
        b' '..=b'~' => format!("'{}'", char::from(byte)),
        other => format!("byte 0x{other:02x}"),
    }
}
