//! What the first bytes of a file tell about the rest.

use std::io::{self, Read};

use super::read::read_again;

/// A format that begins with bytes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Packed(Packing),
    /// The mark with which some programs begin a text in UTF-8.
    ByteOrderMark,
    Unread(Unread),
}

/// A format that is not read here. `what` stands behind "it is".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// This program makes records of it.
    Piped {
        what: &'static str,
        through: &'static str,
    },
    /// Text, of which this program makes text in UTF-8.
    Text {
        what: &'static str,
        through: &'static str,
    },
    Foreign {
        what: &'static str,
        advice: &'static str,
    },
}

/// A packer whose files are unpacked here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

impl Packing {
    /// The program that unpacks to standard output.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Packing::Gzip => "gzip -dc",
            Packing::Zstd => "zstd -dc",
            Packing::Xz => "xz -dc",
            Packing::Bzip2 => "bzip2 -dc",
        }
    }
}

const fn piped(what: &'static str, through: &'static str) -> Format {
    Format::Unread(Unread::Piped { what, through })
}

const UTF_16: Format = Format::Unread(Unread::Text {
    what: "text in UTF-16",
    through: "iconv -f UTF-16 -t UTF-8",
});

const fn columns(what: &'static str) -> Format {
    let advice = "read it with Python (docs/guide/dedup-table.md)";
    Format::Unread(Unread::Foreign { what, advice })
}

/// The first bytes of each format, in hexadecimal; `??` is any digit. They are long enough
/// that no text begins with one.
const MAGICS: &[(&str, Format)] = &[
    ("1f 8b", Format::Packed(Packing::Gzip)),
    ("28 b5 2f fd", Format::Packed(Packing::Zstd)),
    // A frame that decoders skip. The next one follows it.
    ("5? 2a 4d 18", Format::Packed(Packing::Zstd)),
    ("fd 37 7a 58 5a 00", Format::Packed(Packing::Xz)),
    (
        "42 5a 68 3? 31 41 59 26 53 59",
        Format::Packed(Packing::Bzip2),
    ),
    (
        "42 5a 68 3? 17 72 45 38 50 90",
        Format::Packed(Packing::Bzip2),
    ),
    ("04 22 4d 18", piped("packed with lz4", "lz4 -dc")),
    ("02 21 4c 18", piped("packed with lz4", "lz4 -dc")),
    ("1f 9d", piped("packed with compress", "gzip -dc")),
    ("1f 1e", piped("packed with pack", "gzip -dc")),
    ("1f a0", piped("packed with compress -H", "gzip -dc")),
    ("4c 5a 49 50 01", piped("packed with lzip", "lzip -dc")),
    // Behind the name, the version: 0.6 and others.
    (
        "4c 52 5a 49 00 0?",
        piped("packed with lrzip", "lrzip -dqo -"),
    ),
    // The size is unknown, or less than 2^40. The packed bytes begin with 0.
    (
        "5d 00 00 ?? ?? ff ff ff ff ff ff ff ff 00",
        piped("packed with lzma", "xz -dc"),
    ),
    (
        "5d 00 00 ?? ?? ?? ?? ?? ?? ?? 00 00 00 00",
        piped("packed with lzma", "xz -dc"),
    ),
    ("89 4c 5a 4f 00", piped("packed with lzop", "lzop -dc")),
    (
        "ff 06 00 00 73 4e 61 50 70 59",
        piped("packed with snappy", "snzip -dc"),
    ),
    ("50 4b 03 04", piped("a ZIP archive", "unzip -p")),
    ("50 4b 05 06", piped("a ZIP archive", "unzip -p")),
    ("50 4b 07 08", piped("a ZIP archive", "unzip -p")),
    ("37 7a bc af 27 1c", piped("a 7z archive", "7z x -so")),
    ("52 61 72 21 1a 07", piped("a RAR archive", "unrar p -inul")),
    ("ff fe", UTF_16),
    ("fe ff", UTF_16),
    ("50 41 52 31 15", columns("a Parquet file")),
    ("50 41 52 45 ?? ?? 00 00", columns("a Parquet file")),
    ("41 52 52 4f 57 31 00 00", columns("an Arrow file")),
    (
        "ff ff ff ff ?? ?? 00 00 ?? 00 00 00",
        columns("a stream of Arrow"),
    ),
    // Four letters, which programs pad to eight bytes.
    ("46 45 41 31 00 00 00 00", columns("a Feather file")),
    ("4f 62 6a 01", columns("an Avro file")),
    (
        "45 56 52 42 4c 4f 4f 4d ?? 00",
        Format::Unread(Unread::Foreign {
            what: "a filter of everbloom, which does not know its records",
            advice: "give the records, or use `everbloom merge`",
        }),
    ),
    ("ef bb bf", Format::ByteOrderMark),
];

/// The header of the first file in a tar archive, as POSIX has it: its length, and what it has
/// where.
mod tar {
    pub(super) const HEADER: usize = 512;
    pub(super) const CHECKSUM: std::ops::Range<usize> = 148..156;
    pub(super) const MAGIC: usize = 257;
    /// Those of POSIX and of GNU.
    pub(super) const MAGICS: [&[u8]; 2] = [b"ustar\0", b"ustar  \0"];
}

/// The format with these first bytes, as far as only more than [`read_head`] reads tell it.
pub(crate) fn format_of_more(bytes: &[u8]) -> Option<Unread> {
    let header = bytes.get(..tar::HEADER)?;
    let magic = header.get(tar::MAGIC..)?;
    let has_magic = tar::MAGICS.iter().any(|other| magic.starts_with(other));
    let (what, through) = ("a tar archive", "tar -xOf");
    (has_magic && has_checksum(header)).then_some(Unread::Piped { what, through })
}

/// Whether the header of a tar archive has the sum of its bytes, of which those of the sum count as
/// spaces.
fn has_checksum(header: &[u8]) -> bool {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    let field = header.get(tar::CHECKSUM).unwrap_or_default();
    let spaces = vec![b' '; field.len()];
    let digits = std::str::from_utf8(field).unwrap_or_default();
    let digits = digits.trim_matches([' ', '\0']);
    u32::from_str_radix(digits, 8) == Ok(sum(header) - sum(field) + sum(&spaces))
}

/// The format with these first bytes.
pub(crate) fn format(bytes: &[u8]) -> Option<Format> {
    let found = MAGICS
        .iter()
        .find(|(magic, _)| length(magic) <= bytes.len() && agree(magic, bytes));
    found.map(|(_, format)| *format)
}

/// Reads the first bytes of an input, as many as tell its format. What comes from a terminal or a
/// pipe must not wait for more, unless it may be the beginning of a magic number.
pub(crate) fn read_head(reader: &mut (impl Read + ?Sized)) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    loop {
        let open = MAGICS
            .iter()
            .map(|(magic, _)| *magic)
            .filter(|magic| length(magic) > head.len() && agree(magic, &head));
        let Some(wanted) = open.map(length).min() else {
            return Ok(head);
        };
        let mut place = vec![0; wanted - head.len()];
        let count = read_again(reader, &mut place)?;
        if count == 0 {
            return Ok(head);
        }
        head.extend(place.iter().take(count));
    }
}

/// The bytes of a magic number.
fn length(magic: &str) -> usize {
    magic.split(' ').count()
}

/// Whether the magic number and the bytes agree as far as both reach.
fn agree(magic: &str, bytes: &[u8]) -> bool {
    let digit = |digit: u8, half: u8| {
        let digit = char::from(digit);
        digit == '?' || digit.to_digit(16) == Some(half.into())
    };
    magic.split(' ').zip(bytes).all(|(text, byte)| {
        matches!(text.as_bytes(), [high, low] if digit(*high, byte >> 4) && digit(*low, byte & 15))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that begin with the magic number; `?` becomes 0.
    fn example(magic: &str) -> Vec<u8> {
        let byte = |text: &str| u8::from_str_radix(&text.replace('?', "0"), 16).unwrap();
        magic.split(' ').map(byte).collect()
    }

    #[test]
    fn each_magic_number_is_read_whole_and_tells_its_format() {
        for (magic, expected) in MAGICS {
            let bytes = example(magic);
            let head = read_head(&mut [&bytes[..], b"more"].concat().as_slice()).unwrap();
            assert_eq!(format(&head), Some(*expected), "{magic}");
            let cut = &bytes[..bytes.len() - 1];
            assert_ne!(format(cut), Some(*expected), "{magic}");
        }
    }

    #[test]
    fn text_has_no_format_and_is_not_waited_for() {
        /// A reader that must not be read beyond its bytes.
        struct Typed(&'static [u8]);
        impl Read for Typed {
            fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
                assert!(!self.0.is_empty(), "it waits for more");
                self.0.read(place)
            }
        }
        for text in [
            "a\n", "BZh9\n", "PK\n", "PAR1\n", "7z\n", "LZIP\n", "Obj\n", "\n", "]\n",
        ] {
            let mut typed = Typed(text.as_bytes());
            let mut all = read_head(&mut typed).unwrap();
            assert_eq!(format(&all), None, "{text}");
            all.extend_from_slice(typed.0);
            assert_eq!(all, text.as_bytes());
        }
    }
}
