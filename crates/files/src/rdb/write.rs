//! A file, key by key.

use std::fmt;
use std::io::Write;

use everbloom_commands::{Filter, Parts};

use super::error::WriteError;
use super::format::{WRITTEN_VERSION, kind, opcode};
use super::length::{Strings, put_length};
use super::output::Output;
use super::pieces::put_pieces;
use super::value::{put_filter, put_filter_in_pieces};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether strings are compressed: `rdbcompression`.
    pub compression: bool,
    /// Whether there is a checksum at the end: `rdbchecksum`.
    pub checksum: bool,
}

impl Default for WriteOptions {
    /// Both, as in Redis.
    fn default() -> WriteOptions {
        WriteOptions {
            compression: true,
            checksum: true,
        }
    }
}

/// The auxiliary fields at the start of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aux<'a> {
    /// Version of Redis that the server is compatible with: `redis-ver`.
    pub version: &'a str,
    /// Unix time in seconds: `ctime`.
    pub created: u64,
    /// Bytes of memory in use: `used-mem`.
    pub used_memory: u64,
    /// Whether the file is the base of an append-only file: `aof-base`.
    pub aof_base: Option<bool>,
    /// The log that was not kept when the file was made: `everbloom-log`.
    pub log: Option<LogMark>,
}

/// What a snapshot says of the log that lay beside it and was not kept when it was made.
///
/// Its text is `includes ID` or `ignores ID`, with 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMark {
    /// The number that the manifest of that log has since its end.
    pub id: u64,
    /// Whether the snapshot holds all that the log holds. Otherwise the server that made it had
    /// not read the log.
    pub includes: bool,
}

impl LogMark {
    /// The name of the auxiliary field.
    pub const AUX_NAME: &str = "everbloom-log";

    /// Reads the value of the auxiliary field.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (word, id) = str::from_utf8(value).ok()?.split_once(' ')?;
        let includes = match word {
            "includes" => true,
            "ignores" => false,
            _ => return None,
        };
        let id = u64::from_str_radix(id, 16).ok()?;
        Some(LogMark { id, includes })
    }
}

impl fmt::Display for LogMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.includes { "includes" } else { "ignores" };
        write!(f, "{word} {:016x}", self.id)
    }
}

/// Writes a file.
///
/// A filter is written in one call, or piece by piece when it must be fetched in pieces; the bytes
/// are the same.
///
/// ```
/// use everbloom::host::LayeredFilter;
/// use everbloom_commands::Filter;
/// use everbloom_files::rdb::{WriteOptions, Writer};
///
/// let mut filter = LayeredFilter::builder().capacity(1000).build()?;
/// filter.insert("a");
/// let filter = Filter::from(filter);
/// let mut writer = Writer::new(Vec::new(), WriteOptions::default())?;
/// writer.select_db(0)?;
/// writer.filter(b"whole", None, &filter)?;
///
/// let mut offset = 0;
/// writer.long_filter(b"pieces", Some(4_102_444_800_000), &filter.parts(), |place| {
///     *place = filter.stream_chunk(offset, 256).unwrap_or_default().into_owned();
///     offset += place.len() as u64;
///     Ok(())
/// })?;
/// let (file, bytes) = writer.finish()?;
/// assert_eq!(file.len() as u64, bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: Output<W>,
    strings: Strings,
}

impl<W: Write> Writer<W> {
    /// Starts a file. No buffering around `inner` is needed.
    ///
    /// # Errors
    ///
    /// The bytes were not taken.
    pub fn new(inner: W, options: WriteOptions) -> Result<Self, WriteError> {
        let mut out = Output::new(inner, options.checksum);
        write!(out, "REDIS{WRITTEN_VERSION:04}")?;
        Ok(Writer {
            out,
            strings: Strings::new(options.compression),
        })
    }

    /// How many bytes the file has so far, those still buffered included.
    pub fn position(&self) -> u64 {
        self.out.position()
    }

    /// Writes the auxiliary fields: those of Redis in its order, then ours.
    ///
    /// # Errors
    ///
    /// [`WriteError`]
    pub fn aux(&mut self, aux: &Aux<'_>) -> Result<(), WriteError> {
        self.aux_field("redis-ver", aux.version)?;
        self.aux_field("redis-bits", &usize::BITS.to_string())?;
        self.aux_field("ctime", &aux.created.to_string())?;
        self.aux_field("used-mem", &aux.used_memory.to_string())?;
        if let Some(is_base) = aux.aof_base {
            self.aux_field("aof-base", if is_base { "1" } else { "0" })?;
        }
        if let Some(log) = aux.log {
            self.aux_field(LogMark::AUX_NAME, &log.to_string())?;
        }
        Ok(())
    }

    fn aux_field(&mut self, name: &str, value: &str) -> Result<(), WriteError> {
        self.out.write_all(&[opcode::AUX])?;
        self.strings.put(&mut self.out, name.as_bytes())?;
        Ok(self.strings.put(&mut self.out, value.as_bytes())?)
    }

    /// The database of the keys that follow.
    ///
    /// # Errors
    ///
    /// [`WriteError`]
    pub fn select_db(&mut self, number: u64) -> Result<(), WriteError> {
        self.out.write_all(&[opcode::SELECT])?;
        Ok(put_length(&mut self.out, number)?)
    }

    /// A hint how many keys follow and how many of them expire.
    ///
    /// # Errors
    ///
    /// [`WriteError`]
    pub fn resize(&mut self, keys: u64, expiring: u64) -> Result<(), WriteError> {
        self.out.write_all(&[opcode::RESIZE])?;
        put_length(&mut self.out, keys)?;
        Ok(put_length(&mut self.out, expiring)?)
    }

    /// A key that holds a string. Expiries here and below are Unix times in milliseconds.
    ///
    /// # Errors
    ///
    /// [`WriteError`]
    pub fn text(
        &mut self,
        key: &[u8],
        expires_at: Option<u64>,
        value: &[u8],
    ) -> Result<(), WriteError> {
        self.key(kind::STRING, key, expires_at)?;
        Ok(self.strings.put(&mut self.out, value)?)
    }

    /// A key that holds a string of `len` bytes, which come piece by piece: `next` puts some in
    /// place of those that it put there before. After an error the file is of no use.
    ///
    /// # Errors
    ///
    /// [`WriteError`], also when more bytes come, or none.
    pub fn long_text(
        &mut self,
        key: &[u8],
        expires_at: Option<u64>,
        len: u64,
        mut next: impl FnMut(&mut Vec<u8>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        self.key(kind::STRING, key, expires_at)?;
        put_pieces(&mut self.out, &mut self.strings, (len, false), &mut next)
    }

    /// A key that holds a filter.
    ///
    /// # Errors
    ///
    /// [`WriteError`]
    pub fn filter(
        &mut self,
        key: &[u8],
        expires_at: Option<u64>,
        filter: &Filter,
    ) -> Result<(), WriteError> {
        self.key(kind::MODULE, key, expires_at)?;
        Ok(put_filter(&mut self.out, &mut self.strings, filter)?)
    }

    /// A key that holds a filter of these parts. Its arrays come piece by piece, as the string of
    /// [`long_text`](Self::long_text) does; each piece belongs to one array.
    ///
    /// # Errors
    ///
    /// [`WriteError`], also when more bytes come than an array has, or none.
    pub fn long_filter(
        &mut self,
        key: &[u8],
        expires_at: Option<u64>,
        parts: &Parts,
        mut next: impl FnMut(&mut Vec<u8>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        self.key(kind::MODULE, key, expires_at)?;
        put_filter_in_pieces(&mut self.out, &mut self.strings, parts, &mut next)
    }

    /// Ends the file; answers where it went and how many bytes it has.
    ///
    /// # Errors
    ///
    /// [`WriteError`]
    pub fn finish(mut self) -> Result<(W, u64), WriteError> {
        self.out.write_all(&[opcode::END])?;
        Ok(self.out.finish()?)
    }

    /// What comes before a value.
    fn key(&mut self, kind: u8, key: &[u8], expires_at: Option<u64>) -> Result<(), WriteError> {
        if let Some(time) = expires_at {
            // The format has signed times; what is beyond them never comes.
            let time = i64::try_from(time).unwrap_or(i64::MAX);
            self.out.write_all(&[opcode::EXPIRES_MS])?;
            self.out.write_all(&time.to_le_bytes())?;
        }
        self.out.write_all(&[kind])?;
        Ok(self.strings.put(&mut self.out, key)?)
    }
}
