//! Compression of a batch's records.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};

/// Compression codec of a batch's records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Compression {
    /// No compression.
    None,
    /// gzip, at its usual level.
    Gzip,
    /// Snappy, in the frames of Java's library.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard, at its usual level.
    Zstd,
}

/// Records could not be packed: they are too many, or a library refuses them.
#[derive(Debug, thiserror::Error)]
#[error("compress records for Kafka")]
pub struct CompressionFailed(#[from] io::Error);

/// Header before blocks of Snappy: a magic, and two versions.
const SNAPPY_BEGIN: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
const SNAPPY_BLOCK_BYTES: usize = 32 << 10;

impl Compression {
    /// Its number in a batch.
    pub(super) const fn number(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// Appends `records`, packed.
    pub(super) fn pack(self, records: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionFailed> {
        match self {
            Self::None => out.extend_from_slice(records),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(out, flate2::Compression::default());
                encoder.write_all(records)?;
                encoder.finish()?;
            }
            Self::Snappy => snappy(records, out)?,
            Self::Lz4 => {
                let how = FrameInfo::new().block_size(BlockSize::Max64KB);
                let mut encoder = FrameEncoder::with_frame_info(how, out);
                encoder.write_all(records)?;
                encoder.finish().map_err(io::Error::other)?;
            }
            Self::Zstd => zstd::stream::copy_encode(records, out, 0)?,
        }
        Ok(())
    }
}

fn snappy(records: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let mut encoder = snap::raw::Encoder::new();
    out.extend_from_slice(&SNAPPY_BEGIN);
    for block in records.chunks(SNAPPY_BLOCK_BYTES) {
        let packed = encoder.compress_vec(block)?;
        let length = u32::try_from(packed.len()).map_err(io::Error::other)?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&packed);
    }
    Ok(())
}
