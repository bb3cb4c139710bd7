//! gzip, zstd, xz and bzip2, of any number of members, frames or streams.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, sink};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, DEFAULT_MAX_WINDOW_SIZE, FrameDecoder};

use super::magic::Packing;

/// How much of a packed file is read at once.
const PIECE: usize = 64 << 10;

/// The largest window of a zstd file, which is that of zstd(1).
const ZSTD_WINDOW: u64 = DEFAULT_MAX_WINDOW_SIZE;

/// The most memory for an xz file. `xz -9` needs 65 MiB.
const XZ_MEMORY: u32 = 256 << 20;

/// A reader of what was packed.
pub(crate) fn unpacked(
    packing: Packing,
    packed: impl Read + Send + 'static,
) -> Box<dyn Read + Send> {
    let packed = BufReader::with_capacity(PIECE, packed);
    match packing {
        Packing::Gzip => Box::new(Gzip {
            member: Some(GzDecoder::new(packed)),
        }),
        Packing::Bzip2 => Box::new(Named(MultiBzDecoder::new(packed))),
        Packing::Xz => {
            let decoder = XzReader::new_mem_limit(packed, true, XZ_MEMORY >> 10);
            Box::new(Named(decoder))
        }
        Packing::Zstd => Box::new(Zstd {
            packed,
            frame: FrameDecoder::new(),
            is_within: false,
        }),
    }
}

/// Members of gzip, one after the other. Zero bytes behind the last one are padding, as in gzip(1).
struct Gzip<R> {
    /// `None` behind the last one.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.member else {
                return Ok(0);
            };
            let count = member.read(place).map_err(named)?;
            if count > 0 || place.is_empty() {
                return Ok(count);
            }
            let Some(mut packed) = self.member.take().map(GzDecoder::into_inner) else {
                return Ok(0);
            };
            match skip_zeros(&mut packed)? {
                (_, true) => {}
                (false, false) => self.member = Some(GzDecoder::new(packed)),
                (true, false) => return Err(damaged("there are more bytes behind its end")),
            }
        }
    }
}

/// Skips zero bytes. Returns whether there were any, and whether they are the last bytes.
fn skip_zeros(reader: &mut impl BufRead) -> io::Result<(bool, bool)> {
    let mut any = false;
    loop {
        let bytes = reader.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        if zeros == 0 {
            return Ok((any, bytes.is_empty()));
        }
        any = true;
        reader.consume(zeros);
    }
}

/// A decoder whose errors are put in words of ours.
struct Named<D>(D);

impl<D: Read> Read for Named<D> {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        self.0.read(place).map_err(named)
    }
}

fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => cut_off(),
        // Only xz has a limit.
        io::ErrorKind::OutOfMemory => io::Error::other(format!(
            "it needs more than {} MiB of memory; unpack it with xz -dc",
            XZ_MEMORY >> 20
        )),
        _ => error,
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

/// The commonest errors in words of their own: nobody knows the decoder's.
fn undecoded(error: FrameDecoderError) -> io::Error {
    if let FrameDecoderError::WindowSizeTooBig { .. } = error {
        return io::Error::other(format!(
            "its window is larger than {} MiB; unpack it with zstd -dc --long=31",
            ZSTD_WINDOW >> 20
        ));
    }
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(reason) = cause {
        let io = reason.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof) {
            return cut_off();
        }
        cause = reason.source();
    }
    damaged(error)
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it is cut off")
}

fn damaged(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
