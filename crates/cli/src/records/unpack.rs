//! gzip and zstd, of any number of members or frames.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, sink};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// What a gzip file starts with.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What a zstd file starts with.
pub(crate) const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How much of a packed file is read at once.
const PIECE: usize = 64 << 10;

/// A reader of what was packed, or the same reader when its first bytes are no magic number.
pub(crate) fn unpacked(magic: &[u8], packed: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    if magic.starts_with(&GZIP) {
        Box::new(MultiGzDecoder::new(BufReader::with_capacity(PIECE, packed)))
    } else if magic.starts_with(&ZSTD) {
        Box::new(Zstd {
            packed: BufReader::with_capacity(PIECE, packed),
            frame: FrameDecoder::new(),
            is_within: false,
        })
    } else {
        Box::new(packed)
    }
}

/// Frames of zstd, one after the other.
struct Zstd<R> {
    packed: R,
    frame: FrameDecoder,
    /// Whether a frame has begun and was not read to its end.
    is_within: bool,
}

impl<R: BufRead> Zstd<R> {
    /// Begins the next frame; false when there is none.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.packed.fill_buf()?.is_empty() {
            match self.frame.reset(&mut self.packed) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut (&mut self.packed).take(length.into()), &mut sink())?;
                }
                Err(error) => return Err(undecoded(error)),
            }
        }
        Ok(false)
    }

    fn check(&self) -> io::Result<()> {
        match self.frame.get_checksum_from_data() {
            Some(sum) if self.frame.get_calculated_checksum() != Some(sum) => {
                Err(damaged("wrong checksum"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_within {
                self.is_within = self.begin()?;
                if !self.is_within {
                    return Ok(0);
                }
            }
            if self.frame.can_collect() > 0 {
                return self.frame.read(place);
            }
            if self.frame.is_finished() {
                self.check()?;
                self.is_within = false;
            } else {
                self.frame
                    .decode_blocks(&mut self.packed, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(undecoded)?;
            }
        }
    }
}

/// The commonest error in words of its own: nobody knows the decoder's.
fn undecoded(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(reason) = cause {
        let io = reason.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof) {
            return io::Error::new(io::ErrorKind::UnexpectedEof, "it is cut off");
        }
        cause = reason.source();
    }
    damaged(error)
}

fn damaged(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
