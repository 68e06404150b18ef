//! Files that generators replay: read whole, and unpacked by what they begin with.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;

/// First bytes of a gzip file. The name of a file is not used.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// Limit of one worker's payload, so a small file that unpacks to a large one does not fill
/// the memory.
const BYTES_MAX: u64 = 4 << 30;

/// Returns the content of the file at `path`, unpacked if it is packed by gzip, zstd or xz. Several
/// packed pieces one after another are one text.
///
/// # Errors
///
/// The kernel's error; broken packed data; more than 4 GiB of data.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = BufReader::new(File::open(path)?);
    let mut head = [0; 6];
    let length = read_head(&mut file, &mut head)?;
    let head = &head[..length];
    let whole = head.chain(file);
    if head.starts_with(GZIP) {
        unpacked(MultiGzDecoder::new(whole))
    } else if head.starts_with(ZSTD) {
        unpacked(zstd::Decoder::new(whole)?)
    } else if head.starts_with(XZ) {
        unpacked(XzDecoder::new_multi_decoder(whole))
    } else {
        limited(whole)
    }
}

/// As much of `head` as there is.
fn read_head(file: &mut impl Read, head: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < head.len() {
        match file.read(&mut head[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

fn unpacked(packed: impl Read) -> io::Result<Vec<u8>> {
    limited(packed).map_err(|error| io::Error::new(error.kind(), format!("unpack it: {error}")))
}

fn limited(whole: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    whole.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other("it holds more than 4 GiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use liblzma::write::XzEncoder;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(text: &[u8]) -> Vec<u8> {
        let mut encoder = XzEncoder::new(Vec::new(), 1);
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), packed).unwrap();
        read(file.path())
    }

    #[test]
    fn files_are_known_by_what_they_begin_with() {
        let (first, two) = (b"{\"number\":1}\n".repeat(9), b"{\"number\":2}\n");
        let both = [first.as_slice(), two].concat();
        let zstd = |text: &[u8]| zstd::encode_all(text, 1).unwrap();
        for packed in [
            both.clone(),
            [gzip(&first), gzip(two)].concat(),
            [xz(&first), xz(two)].concat(),
            [zstd(&first), zstd(two)].concat(),
        ] {
            assert_eq!(unpacked(&packed).unwrap(), both);
        }
        for short in [b"".as_slice(), b"a", &GZIP[..1], &XZ[..5]] {
            assert_eq!(unpacked(short).unwrap(), short);
        }
    }

    #[test]
    fn a_packed_file_that_is_cut_off_is_refused() {
        let text = b"some text that is long enough to be packed, packed, packed".repeat(20);
        for packed in [gzip(&text), xz(&text), zstd::encode_all(&*text, 1).unwrap()] {
            let cut = &packed[..packed.len() - 5];
            let error = unpacked(cut).unwrap_err().to_string();
            assert!(error.starts_with("unpack it: "), "{error}");
        }
    }
}
