//! Undoing content codings. Output, codings and steps are bounded, since a short body may need
//! hours of work.

use std::io::{self, Read as _, Write};

use flate2::write::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use stillwell_units::as_usize;
use zstd::stream::raw::{self, InBuffer, Operation as _, OutBuffer};

/// Bytes decoded in one go: few, because they can become a thousand times as many.
const PIECE_BYTES: usize = 4 << 10;

/// The most codings of one body: each may multiply the work for the next by a thousand.
const CODINGS_MAX: usize = 2;

/// The most members (gzip) or frames (zstd) of one body. Each costs microseconds, however short.
const MEMBERS_MAX: usize = 10_000;

/// Room for what zlib writes in one step.
const ZLIB_OUT_BYTES: usize = 32 << 10;

/// Room for what zstd writes in one step.
const ZSTD_OUT_BYTES: usize = 128 << 10;

/// Encoding of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Coding {
    Gzip,
    /// The format of zlib, as the codings `deflate` and `zlib` mean it.
    Zlib,
    Zstd,
}

impl Coding {
    /// The codings that `header` lists, in the order in which they were done;
    /// `None` where one is not known, or more than two are listed.
    pub(crate) fn all(header: &str) -> Option<Vec<Self>> {
        Self::named(header.split(','))
    }

    /// The same of a body without its framing in chunks of S3: the name `aws-chunked` is skipped.
    pub(super) fn all_unframed(header: &str) -> Option<Vec<Self>> {
        let names = header.split(',');
        let names = names.filter(|name| !name.trim().eq_ignore_ascii_case("aws-chunked"));
        Self::named(names)
    }

    fn named<'n>(names: impl Iterator<Item = &'n str>) -> Option<Vec<Self>> {
        let mut codings = Vec::new();
        for name in names {
            match name.trim().to_ascii_lowercase().as_str() {
                "" | "identity" => {}
                "gzip" | "x-gzip" => codings.push(Self::Gzip),
                "deflate" | "zlib" => codings.push(Self::Zlib),
                "zstd" => codings.push(Self::Zstd),
                _ => return None,
            }
        }
        (codings.len() <= CODINGS_MAX).then_some(codings)
    }
}

/// The most bytes that one body may become, unless it is itself large: 20 ms of work.
const OUTPUT_BYTES_MAX: u64 = 32 << 20;

/// The most bytes that each byte of a large body may become, on average.
const RATIO_MAX: u64 = 100;

/// Undoes one coding, piece by piece.
pub(crate) struct Decoder {
    state: DecoderState,
    /// Bytes that went in and came out.
    counts: (u64, u64),
}

enum DecoderState {
    Gzip(Members),
    Zlib(ZlibStream),
    Zstd(Frames),
}

/// The members of a gzip stream.
struct Members {
    decoder: GzDecoder<Vec<u8>>,
    /// Members before the present one.
    ended: usize,
}

/// A zlib stream. The decoder of flate2 for writers does not check that the stream ends.
struct ZlibStream {
    decoder: Decompress,
    /// Room for one step: flate2 would fill all room behind `out` with zeros at each step.
    room: Vec<u8>,
    out: Vec<u8>,
    /// True at its end.
    is_whole: bool,
}

/// The frames of a zstd stream.
struct Frames {
    decoder: Box<raw::Decoder<'static>>,
    out: Vec<u8>,
    ended: usize,
    /// True between frames.
    is_whole: bool,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoder")
    }
}

impl Decoder {
    /// Undoes `coding`.
    ///
    /// # Errors
    /// The library's answer where it has no memory.
    pub(crate) fn new(coding: Coding) -> io::Result<Self> {
        let state = match coding {
            Coding::Gzip => DecoderState::Gzip(Members {
                decoder: GzDecoder::new(Vec::new()),
                ended: 0,
            }),
            Coding::Zlib => DecoderState::Zlib(ZlibStream {
                decoder: Decompress::new(true),
                room: vec![0; ZLIB_OUT_BYTES],
                out: Vec::new(),
                is_whole: false,
            }),
            Coding::Zstd => DecoderState::Zstd(Frames {
                decoder: Box::new(raw::Decoder::new()?),
                out: Vec::new(),
                ended: 0,
                is_whole: true,
            }),
        };
        Ok(Self {
            state,
            counts: (0, 0),
        })
    }

    /// Shows what `bytes` decode to, in pieces, to `take`.
    ///
    /// # Errors
    /// Where they are not so encoded, or become too many.
    pub(crate) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<()> {
        for piece in bytes.chunks(PIECE_BYTES) {
            self.write(piece)?;
            self.counts.0 += piece.len() as u64;
            self.counts.1 += self.out().len() as u64;
            let (taken, given) = self.counts;
            if given > OUTPUT_BYTES_MAX && given / RATIO_MAX > taken {
                return Err(io::Error::other("the body becomes too large"));
            }
            let out = self.out();
            if !out.is_empty() {
                take(out);
                out.clear();
            }
        }
        Ok(())
    }

    /// Shows what is left to `take`.
    ///
    /// # Errors
    /// Where there is no end to what was pushed.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        match &mut self.state {
            DecoderState::Gzip(members) => members.decoder.try_finish()?,
            DecoderState::Zlib(stream) if stream.is_whole => {}
            DecoderState::Zstd(frames) if frames.is_whole => {}
            DecoderState::Zlib(_) | DecoderState::Zstd(_) => {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let out = self.out();
        if !out.is_empty() {
            take(out);
            out.clear();
        }
        Ok(())
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        match &mut self.state {
            DecoderState::Gzip(members) => members.write(piece),
            DecoderState::Zlib(stream) => stream.write(piece),
            DecoderState::Zstd(frames) => frames.write(piece),
        }
    }

    fn out(&mut self) -> &mut Vec<u8> {
        match &mut self.state {
            DecoderState::Gzip(members) => members.decoder.get_mut(),
            DecoderState::Zlib(stream) => &mut stream.out,
            DecoderState::Zstd(frames) => &mut frames.out,
        }
    }
}

impl Members {
    fn write(&mut self, mut piece: &[u8]) -> io::Result<()> {
        while !piece.is_empty() {
            match self.decoder.write(piece)? {
                // The member is over: another begins.
                0 => {
                    self.decoder.try_finish()?;
                    count_ended(&mut self.ended)?;
                    let out = std::mem::take(self.decoder.get_mut());
                    self.decoder = GzDecoder::new(out);
                }
                taken => piece = &piece[taken..],
            }
        }
        Ok(())
    }
}

impl ZlibStream {
    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let mut rest = piece;
        loop {
            let (taken, given) = (self.decoder.total_in(), self.decoder.total_out());
            let none = FlushDecompress::None;
            let status = self.decoder.decompress(rest, &mut self.room, none)?;
            rest = &rest[as_usize(self.decoder.total_in() - taken)..];
            let length = as_usize(self.decoder.total_out() - given);
            self.out.extend_from_slice(&self.room[..length]);
            self.is_whole = status == Status::StreamEnd;
            if self.is_whole || length < self.room.len() {
                break;
            }
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(io::Error::other("bytes follow the end of the body"))
        }
    }
}

impl Frames {
    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let mut input = InBuffer::around(piece);
        loop {
            self.out.reserve(ZSTD_OUT_BYTES);
            let start = self.out.len();
            let mut output = OutBuffer::around_pos(&mut self.out, start);
            let hint = self.decoder.run(&mut input, &mut output)?;
            let is_out_full = output.pos() == output.capacity();
            self.is_whole = hint == 0;
            if self.is_whole {
                count_ended(&mut self.ended)?;
            }
            if input.pos() == piece.len() && (self.is_whole || !is_out_full) {
                return Ok(());
            }
        }
    }
}

/// Counts a member or frame that has ended.
fn count_ended(ended: &mut usize) -> io::Result<()> {
    *ended += 1;
    if *ended < MEMBERS_MAX {
        Ok(())
    } else {
        Err(io::Error::other("too many members"))
    }
}

/// `body` without `codings`; `None` where it is not so encoded, or longer than
/// `bytes_max` without.
pub(crate) fn decode(body: &[u8], codings: &[Coding], bytes_max: usize) -> Option<Vec<u8>> {
    let mut decoded = body.to_vec();
    for coding in codings.iter().rev() {
        let (mut decoder, mut out) = (Decoder::new(*coding).ok()?, Vec::new());
        for piece in decoded.chunks(PIECE_BYTES) {
            let pushed = decoder.push(piece, |bytes| out.extend_from_slice(bytes));
            pushed.ok()?;
            if out.len() > bytes_max {
                return None;
            }
        }
        let finished = decoder.finish(|bytes| out.extend_from_slice(bytes));
        finished.ok()?;
        decoded = out;
    }
    (decoded.len() <= bytes_max).then_some(decoded)
}

/// The most bytes that one byte of a block of Snappy can become: three say that 64
/// are repeated.
const SNAPPY_RATIO_MAX: usize = 22;

/// The chunk that begins a stream of frames of Snappy. No block begins with it.
const SNAPPY_STREAM: &[u8] = b"\xff\x06\x00\x00sNaPpY";

/// Returns true if `header` is the name of Snappy, as a block or as frames.
pub(crate) fn is_snappy(header: &str) -> bool {
    let name = header.trim();
    ["snappy", "x-snappy-framed"]
        .iter()
        .any(|snappy| name.eq_ignore_ascii_case(snappy))
}

/// A block or frames of Snappy unpacked; `None` where it is neither, or longer than
/// `bytes_max` when unpacked.
pub(crate) fn unpack_snappy(packed: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    if packed.starts_with(SNAPPY_STREAM) {
        unpack_frames(packed, bytes_max)
    } else {
        unpack_block(packed, bytes_max)
    }
}

fn unpack_frames(frames: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let limit = (bytes_max as u64).saturating_add(1);
    let mut unpacked = Vec::new();
    let mut decoder = snap::read::FrameDecoder::new(frames).take(limit);
    decoder.read_to_end(&mut unpacked).ok()?;
    (unpacked.len() <= bytes_max).then_some(unpacked)
}

fn unpack_block(block: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let length = snap::raw::decompress_len(block).ok()?;
    // What cannot be true is not given room.
    if length > bytes_max.min(block.len().saturating_mul(SNAPPY_RATIO_MAX)) {
        return None;
    }
    snap::raw::Decoder::new().decompress_vec(block).ok()
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    fn encoded(bytes: &[u8], coding: Coding) -> Vec<u8> {
        match coding {
            Coding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Coding::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Coding::Zstd => zstd::encode_all(bytes, 1).unwrap(),
        }
    }

    /// Writes the beginning of a stream also for nothing.
    fn snappy_frames(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = snap::write::FrameEncoder::new(SNAPPY_STREAM.to_vec());
        encoder.write_all(bytes).unwrap();
        encoder.into_inner().unwrap()
    }

    #[test]
    fn a_small_body_does_not_become_a_huge_one() {
        let member = encoded(&vec![0; 8 << 20], Coding::Gzip);
        let mut decoder = Decoder::new(Coding::Gzip).unwrap();
        let mut length = 0;
        let mut push = || decoder.push(&member, |bytes| length += bytes.len() as u64);
        let pushed: Vec<bool> = (0..5).map(|_| push().is_ok()).collect();
        assert_eq!(pushed, [true, true, true, true, false]);
        assert!(length <= OUTPUT_BYTES_MAX + (8 << 20), "{length}");
    }

    fn codings() -> impl Strategy<Value = Vec<Coding>> {
        let coding = prop::sample::select(vec![Coding::Gzip, Coding::Zlib, Coding::Zstd]);
        prop::collection::vec(coding, 0..3)
    }

    proptest! {
        #[test]
        fn for_all_codings_what_was_encoded_is_decoded(
            bytes in prop::collection::vec(any::<u8>(), 0..5000),
            repeats in 1_usize..20,
            codings in codings(),
        ) {
            let bytes = bytes.repeat(repeats);
            let body = codings.iter().fold(bytes.clone(), |body, coding| encoded(&body, *coding));
            prop_assert_eq!(decode(&body, &codings, bytes.len().max(body.len() * 2 + 5000)), Some(bytes));
        }

        #[test]
        fn for_all_blocks_of_snappy_what_was_packed_is_unpacked(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            repeats in 1_usize..400,
        ) {
            let bytes = bytes.repeat(repeats);
            let block = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
            prop_assert_eq!(unpack_snappy(&block, bytes.len()), Some(bytes.clone()));
            if let Some(less) = bytes.len().checked_sub(1) {
                prop_assert_eq!(unpack_snappy(&block, less), None);
            }
        }

        #[test]
        fn for_all_frames_of_snappy_what_was_packed_is_unpacked(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            repeats in 1_usize..400,
        ) {
            let bytes = bytes.repeat(repeats);
            let frames = snappy_frames(&bytes);
            prop_assert_eq!(unpack_snappy(&frames, bytes.len()), Some(bytes.clone()));
            if let Some(less) = bytes.len().checked_sub(1) {
                prop_assert_eq!(unpack_snappy(&frames, less), None);
            }
        }

        #[test]
        fn for_all_bytes_decoding_ends(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            codings in codings(),
        ) {
            decode(&bytes, &codings, 10_000);
            unpack_snappy(&bytes, 10_000);
            unpack_snappy(&[SNAPPY_STREAM, &bytes].concat(), 10_000);
        }
    }

    #[test]
    fn a_snappy_block_with_an_impossible_length_is_refused() {
        let zeros = vec![0; 10 << 20];
        let block = snap::raw::Encoder::new().compress_vec(&zeros).unwrap();
        assert!(block.len() < 1 << 20, "{}", block.len());
        assert_eq!(unpack_snappy(&block, zeros.len()), Some(zeros));
        // A length of 2^28 - 1 before nothing.
        assert_eq!(unpack_snappy(b"\xff\xff\xff\x7f\x00a", usize::MAX), None);
    }

    #[test]
    fn frames_of_snappy_that_are_cut_or_altered_are_refused() {
        let body = b"a body that is long enough";
        let mut frames = snappy_frames(body);
        assert_eq!(unpack_snappy(&frames, 1 << 20), Some(body.to_vec()));
        assert_eq!(unpack_snappy(&frames[..frames.len() - 1], 1 << 20), None);
        *frames.last_mut().unwrap() ^= 1;
        assert_eq!(unpack_snappy(&frames, 1 << 20), None);
    }

    #[test]
    fn a_body_that_swells_is_refused() {
        let zeros = vec![0; 10 << 20];
        for coding in [Coding::Gzip, Coding::Zlib, Coding::Zstd] {
            let body = encoded(&zeros, coding);
            assert!(body.len() < 100 << 10, "{coding:?}");
            assert_eq!(decode(&body, &[coding], 1 << 20), None, "{coding:?}");
        }
    }

    #[test]
    fn a_body_of_many_empty_members_is_refused() {
        for coding in [Coding::Gzip, Coding::Zstd] {
            let few = encoded(b"", coding).repeat(100);
            assert_eq!(
                decode(&few, &[coding], 1 << 20),
                Some(Vec::new()),
                "{coding:?}"
            );
            let many = encoded(b"", coding).repeat(MEMBERS_MAX + 1);
            assert_eq!(decode(&many, &[coding], 1 << 20), None, "{coding:?}");
        }
    }

    #[test]
    fn a_body_that_is_cut_is_refused() {
        for coding in [Coding::Gzip, Coding::Zlib, Coding::Zstd] {
            let body = encoded(b"a body that is long enough", coding);
            for length in 1..body.len() {
                let decoded = decode(&body[..length], &[coding], 1 << 20);
                assert_eq!(decoded, None, "{length} bytes of {coding:?}");
            }
        }
    }

    #[test]
    fn bytes_behind_the_end_of_a_body_are_refused() {
        for coding in [Coding::Gzip, Coding::Zlib, Coding::Zstd] {
            let body = encoded(b"a body that is long enough", coding);
            let long = [&body[..], b"x"].concat();
            assert_eq!(decode(&long, &[coding], 1 << 20), None, "{coding:?}");
            let mut decoder = Decoder::new(coding).unwrap();
            decoder.push(&body, |_| ()).unwrap();
            let pushed = decoder.push(b"x", |_| ());
            let finished = pushed.and_then(|()| decoder.finish(|_| ()));
            assert!(finished.is_err(), "{coding:?}");
        }
    }

    #[test]
    fn codings_are_read_as_they_are_listed() {
        let both = Some(vec![Coding::Gzip, Coding::Zstd]);
        assert_eq!(Coding::all("GZIP, identity,zstd"), both);
        assert_eq!(Coding::all("identity"), Some(Vec::new()));
        for zlib in ["deflate", "zlib"] {
            assert_eq!(Coding::all(zlib), Some(vec![Coding::Zlib]));
        }
        assert_eq!(Coding::all("br"), None);
        assert_eq!(Coding::all("gzip, gzip, gzip"), None);
    }

    #[test]
    fn the_framing_in_chunks_is_passed_over_only_where_it_is_undone() {
        for (header, codings) in [
            ("aws-chunked", Vec::new()),
            ("AWS-Chunked, gzip", vec![Coding::Gzip]),
        ] {
            assert_eq!(Coding::all(header), None, "{header}");
            assert_eq!(Coding::all_unframed(header), Some(codings), "{header}");
        }
        assert_eq!(Coding::all_unframed("aws-chunked,br"), None);
    }
}
