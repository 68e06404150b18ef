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

/// Undoes the codings of a body, piece by piece.
#[derive(Debug)]
pub(crate) struct BodyDecoder {
    /// Undoes the coding that was done last.
    last: Decoder,
    /// Undoes the one before it, if there are two.
    first: Option<Box<Decoder>>,
}

/// Undoes one coding, piece by piece.
struct Decoder {
    state: DecoderState,
    /// Bytes of the body that went in, and bytes that came out.
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

impl BodyDecoder {
    /// Undoes `codings`, which are in the order in which they were done; `None` where there are
    /// none, or more than two, or no memory.
    pub(crate) fn new(codings: &[Coding]) -> Option<Self> {
        let (first, last) = match codings {
            [last] => (None, last),
            [first, last] => (Some(Box::new(Decoder::new(*first).ok()?)), last),
            _ => return None,
        };
        let last = Decoder::new(*last).ok()?;
        Some(Self { last, first })
    }

    /// Shows what `bytes` decode to, in pieces, to `take`.
    ///
    /// # Errors
    /// Where they are not so encoded, or become too many.
    pub(crate) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let Some(first) = &mut self.first else {
            return self.last.push(bytes, take);
        };
        // The bytes of the body bound the output of both.
        first.counts.0 += bytes.len() as u64;
        // Each byte can become a million, so the output of one call is bounded, too.
        let output_max = first.counts.1 + OUTPUT_BYTES_MAX;
        let mut shown = Ok(());
        let pushed = self.last.push(bytes, |decoded| {
            if shown.is_ok() {
                shown = first.push_counted(decoded, output_max, &mut take);
            }
        });
        pushed.and(shown)
    }

    /// Shows what is left to `take`.
    ///
    /// # Errors
    /// Where there is no end to what was pushed.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let Some(first) = &mut self.first else {
            return self.last.finish(take);
        };
        let output_max = first.counts.1 + OUTPUT_BYTES_MAX;
        let mut shown = Ok(());
        let finished = self.last.finish(|decoded| {
            shown = first.push_counted(decoded, output_max, &mut take);
        });
        finished.and(shown)?;
        first.finish(take)
    }
}

impl Decoder {
    /// Undoes `coding`.
    ///
    /// # Errors
    /// The library's answer where it has no memory.
    fn new(coding: Coding) -> io::Result<Self> {
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

    /// Shows what `bytes` of the body decode to, in pieces, to `take`.
    ///
    /// # Errors
    /// Where they are not so encoded, or become too many.
    fn push(&mut self, bytes: &[u8], take: impl FnMut(&[u8])) -> io::Result<()> {
        self.counts.0 += bytes.len() as u64;
        self.push_counted(bytes, u64::MAX, take)
    }

    /// Decodes `bytes`, without adding them to the count of the body's bytes. The whole body may
    /// become up to `output_max` bytes.
    fn push_counted(
        &mut self,
        bytes: &[u8],
        output_max: u64,
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        for piece in bytes.chunks(PIECE_BYTES) {
            self.write(piece)?;
            self.counts.1 += self.out().len() as u64;
            let (taken, given) = self.counts;
            let is_too_dense = given > OUTPUT_BYTES_MAX && given / RATIO_MAX > taken;
            if is_too_dense || given > output_max {
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
    fn finish(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
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
    use stillwell_units::Seed;

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

    /// The ratio of each coding alone is allowed.
    #[test]
    fn a_small_body_in_two_codings_does_not_become_a_huge_one() {
        let noise = (0..40).flat_map(|number| *Seed::from_number(number).bytes());
        let member: Vec<u8> = noise.chain(std::iter::repeat_n(0, 98_000)).collect();
        let stream = encoded(&member, Coding::Gzip).repeat(700);
        let body = encoded(&stream, Coding::Gzip);
        let mut decoder = BodyDecoder::new(&[Coding::Gzip, Coding::Gzip]).unwrap();
        let mut length = 0;
        let push = |part| decoder.push(part, |bytes| length += bytes.len() as u64);
        let mut parts = body.chunks(body.len().div_ceil(8));
        let pushed = parts.try_for_each(push);
        pushed.unwrap_err();
        assert!(length <= OUTPUT_BYTES_MAX, "{length}");
    }

    /// The ratio of the whole body is allowed.
    #[test]
    fn a_part_of_a_body_in_two_codings_does_not_become_a_huge_one() {
        let noise = (0..16_384).flat_map(|number| *Seed::from_number(number).bytes());
        let noise = encoded(&noise.collect::<Vec<u8>>(), Coding::Gzip);
        let zeros = encoded(&vec![0; 1 << 20], Coding::Gzip).repeat(40);
        let mut decoder = BodyDecoder::new(&[Coding::Gzip, Coding::Gzip]).unwrap();
        let begun = decoder.push(&encoded(&noise, Coding::Gzip), |_| ());
        begun.unwrap();
        let mut length = 0;
        let part = encoded(&zeros, Coding::Gzip);
        let pushed = decoder.push(&part, |bytes| length += bytes.len() as u64);
        pushed.unwrap_err();
        assert!(length <= OUTPUT_BYTES_MAX, "{length}");
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
