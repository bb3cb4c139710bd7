//! A file as a row of events.

use std::borrow::Cow;
use std::io::Read;

use super::error::{Fault, ReadError};
use super::format::{MAGIC, NEWEST_VERSION, OLDEST_VERSION, VALKEY_VERSION, kind, opcode};
use super::source::Source;
use super::{skip, value};
use crate::Value;

/// What comes next in a file.
#[derive(Debug)]
pub enum Event {
    /// An auxiliary field, such as `redis-ver`.
    Aux {
        /// Its name.
        name: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// The database of the keys that follow.
    SelectDb(u64),
    /// How many keys the database has, and how many of them expire: a hint that may be wrong.
    Resize {
        /// All keys.
        keys: u64,
        /// Those that expire.
        expiring: u64,
    },
    /// A key.
    Key {
        /// Unix time in milliseconds from which it is gone; it may be past.
        expires_at: Option<u64>,
        /// Seconds since its last access.
        idle: Option<u64>,
        /// How often it is accessed, on a logarithmic scale.
        freq: Option<u8>,
        /// Its name.
        key: Vec<u8>,
        /// What it holds.
        value: Value,
    },
    /// Something that this server does not keep, and that was walked over.
    Skipped {
        /// The type of the key, such as `list`; a module's type by its name; or what it is when it
        /// is no key: `function library`, `auxiliary data of ` a module's type.
        type_name: Cow<'static, str>,
        /// The name of the key, unless it is no key.
        key: Option<Vec<u8>>,
    },
    /// The end; the checksum is right.
    End {
        /// How many bytes the file had up to here. More may follow: commands, behind the base of an
        /// append-only file.
        bytes: u64,
    },
}

/// What a value turned out to be.
pub(super) enum Loaded {
    Value(Value),
    Foreign(Cow<'static, str>),
}

/// Reads a file.
///
/// Memory grows with what was read, never with what a length claims.
///
/// ```
/// use everbloom_files::rdb::{Event, Reader};
/// let file = b"REDIS0009\xfe\x00\x00\x01k\x01v\xff\0\0\0\0\0\0\0\0";
/// let mut reader = Reader::new(&file[..], u64::MAX)?;
/// assert!(matches!(reader.next_event()?, Event::SelectDb(0)));
/// assert!(matches!(reader.next_event()?, Event::Key { key, .. } if key == b"k"));
/// assert!(matches!(reader.next_event()?, Event::End { bytes: 25 }));
/// # Ok::<(), everbloom_files::rdb::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    source: Source<R>,
    version: u16,
    max_filter_bytes: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the header. A filter whose bit arrays take more than `max_filter_bytes` is an error.
    /// No buffering around `inner` is needed.
    ///
    /// # Errors
    ///
    /// It is no RDB file, or of a version that is not read.
    pub fn new(inner: R, max_filter_bytes: u64) -> Result<Self, ReadError> {
        let mut source = Source::new(inner);
        let version = read_version(&mut source)?;
        Ok(Reader {
            source,
            version,
            max_filter_bytes,
        })
    }

    /// The file's version.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// How many bytes were read and understood so far.
    pub fn position(&self) -> u64 {
        self.source.offset()
    }

    /// What the file was read from, and the bytes behind what was understood that were read
    /// already.
    pub fn into_parts(self) -> (R, Vec<u8>) {
        self.source.into_parts()
    }

    /// What comes next. After [`Event::End`] nothing does, and there is no use in asking.
    ///
    /// # Errors
    ///
    /// What is wrong with the file, and where.
    pub fn next_event(&mut self) -> Result<Event, ReadError> {
        let version = self.version;
        let source = &mut self.source;
        let (mut expires_at, mut idle, mut freq) = (None, None, None);
        loop {
            let offset = source.offset();
            match source.byte("a key or the end")? {
                opcode::EXPIRES_MS => {
                    let time = i64::from_le_bytes(source.array("an expiry in milliseconds")?);
                    expires_at = expiry(time);
                }
                opcode::EXPIRES_S => {
                    let time = i32::from_le_bytes(source.array("an expiry in seconds")?);
                    expires_at = expiry(i64::from(time).saturating_mul(1000));
                }
                opcode::IDLE => idle = Some(source.length("an idle time")?),
                opcode::FREQ => freq = Some(source.byte("an access frequency")?),
                opcode::SLOT_INFO => {
                    for _ in 0..3 {
                        source.length("slot information")?;
                    }
                }
                opcode::SLOT_IMPORT if version == VALKEY_VERSION => {
                    source.skip_string("the name of a migration")?;
                    for _ in 0..source.length("how many ranges of slots")? {
                        source.length("the first slot")?;
                        source.length("the last slot")?;
                    }
                }
                code @ (opcode::AUX
                | opcode::SELECT
                | opcode::RESIZE
                | opcode::FUNCTION
                | opcode::FUNCTION_PRE_GA
                | opcode::MODULE_AUX
                | opcode::END) => return self.between_keys(code, offset),
                kind => {
                    let key = source.string("a key's name")?;
                    return Ok(
                        match read_value(source, version, kind, offset, self.max_filter_bytes)? {
                            Loaded::Value(value) => Event::Key {
                                expires_at,
                                idle,
                                freq,
                                key,
                                value,
                            },
                            Loaded::Foreign(type_name) => Event::Skipped {
                                type_name,
                                key: Some(key),
                            },
                        },
                    );
                }
            }
        }
    }

    /// What follows an opcode that is no part of a key.
    fn between_keys(&mut self, code: u8, offset: u64) -> Result<Event, ReadError> {
        let source = &mut self.source;
        Ok(match code {
            opcode::AUX => Event::Aux {
                name: source.string("the name of an auxiliary field")?,
                value: source.string("the value of an auxiliary field")?,
            },
            opcode::SELECT => Event::SelectDb(source.length("a database's number")?),
            opcode::RESIZE => Event::Resize {
                keys: source.length("the number of keys")?,
                expiring: source.length("the number of keys that expire")?,
            },
            opcode::FUNCTION => {
                source.skip_string("a function library")?;
                Event::Skipped {
                    type_name: "function library".into(),
                    key: None,
                }
            }
            opcode::MODULE_AUX => {
                let name = value::module_type(source)?.name();
                value::skip_fields(source)?;
                let type_name = format!("auxiliary data of {name}").into();
                Event::Skipped {
                    type_name,
                    key: None,
                }
            }
            opcode::END => return self.end(),
            _ => {
                let found = "a function library as release candidates of Redis 7.0 wrote it";
                return Err(ReadError::unexpected(offset, "a key or the end", found));
            }
        })
    }

    fn end(&mut self) -> Result<Event, ReadError> {
        let computed = self.source.checksum();
        let offset = self.source.offset();
        let stored = u64::from_le_bytes(self.source.array("the checksum")?);
        if stored != 0 && stored != computed {
            return Err(ReadError::new(offset, Fault::Checksum { stored, computed }));
        }
        Ok(Event::End {
            bytes: self.source.offset(),
        })
    }
}

/// Reads the header: five letters and four digits, or six letters and three digits.
fn read_version<R: Read>(source: &mut Source<R>) -> Result<u16, ReadError> {
    let magic: [u8; 5] = source.array("the header \"REDIS\"")?;
    if !MAGIC.contains(&&magic) {
        let found = format!("\"{}\"", magic.escape_ascii());
        return Err(ReadError::unexpected(0, "the header \"REDIS\"", found));
    }
    let rest: [u8; 4] = source.array("the version")?;
    let (digits, versions) = if magic == *b"REDIS" {
        (&rest[..], OLDEST_VERSION..=NEWEST_VERSION)
    } else {
        let digits = rest.strip_prefix(b"Y").unwrap_or_default();
        (digits, VALKEY_VERSION..=VALKEY_VERSION)
    };
    let version = std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok())
        .filter(|version| versions.contains(version));
    version.ok_or_else(|| {
        let text = rest.escape_ascii().to_string();
        ReadError::new(5, Fault::Version(text))
    })
}

/// A time that may be before 1970; -1 stands for none.
fn expiry(time: i64) -> Option<u64> {
    (time != -1).then(|| u64::try_from(time).unwrap_or(0))
}

/// Reads a value of that type in a file of that version, or walks over it. `offset` is that of the
/// type, for the error.
pub(super) fn read_value<R: Read>(
    source: &mut Source<R>,
    version: u16,
    type_byte: u8,
    offset: u64,
    max_filter_bytes: u64,
) -> Result<Loaded, ReadError> {
    match type_byte {
        kind::STRING => {
            let text = source.string("a string value")?;
            Ok(Loaded::Value(Value::Text(text.into())))
        }
        kind::MODULE => {
            let module_type = value::module_type(source)?;
            let Some(kind) = module_type.kind() else {
                value::skip_fields(source)?;
                return Ok(Loaded::Foreign(module_type.name().into()));
            };
            let filter = value::filter(source, kind, module_type.version, max_filter_bytes)?;
            Ok(Loaded::Value(Value::Filter(filter)))
        }
        _ => match skip::skip_value(source, version, type_byte)? {
            Some(name) => Ok(Loaded::Foreign(name.into())),
            None => {
                let found = format_args!("the byte {type_byte:02x}");
                Err(ReadError::unexpected(
                    offset,
                    "a type of value or an opcode",
                    found,
                ))
            }
        },
    }
}
