//! Certificates and keys from PEM.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use stillwell_plan::tls::{PemSource, TlsIdentity};

use super::TlsError;

/// Identifier of a DSA key in certificates and in keys, in DER: 1.2.840.10040.4.1.
const DSA: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01];

/// Head of a DSA key in its older form.
const DSA_SECTION: &[u8] = b"-----BEGIN DSA PRIVATE KEY-----";

/// A chain of certificates, its own first, and its key.
pub(super) struct Identity {
    pub(super) certificates: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Identity {
    pub(super) fn read(from: &TlsIdentity) -> Result<Self, TlsError> {
        Ok(Self {
            certificates: certificates(&from.certificates)?,
            key: key(&from.key)?,
        })
    }
}

/// An error about a certificate and key of `from`.
pub(super) fn unusable(from: &TlsIdentity) -> impl FnOnce(rustls::Error) -> TlsError {
    let (certificates, key) = (place(&from.certificates), place(&from.key));
    move |source| TlsError::Identity {
        certificates,
        key,
        source,
    }
}

/// Adds the certificates in `sources` to `roots`.
pub(super) fn add_roots(
    roots: &mut RootCertStore,
    sources: impl IntoIterator<Item = PemSource>,
) -> Result<(), TlsError> {
    for source in sources {
        for certificate in certificates(&source)? {
            roots.add(certificate).map_err(|error| TlsError::Root {
                place: place(&source),
                source: error,
            })?;
        }
    }
    Ok(())
}

fn certificates(from: &PemSource) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = text(from)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| TlsError::Pem {
        place: place(from),
        message: error.to_string(),
    })?;
    if chain.is_empty() {
        return Err(TlsError::Missing {
            place: place(from),
            missing: "certificate",
            section: "CERTIFICATE",
        });
    }
    if chain.iter().any(|certificate| holds(certificate, DSA)) {
        return Err(TlsError::Dsa { place: place(from) });
    }
    Ok(chain)
}

fn key(from: &PemSource) -> Result<PrivateKeyDer<'static>, TlsError> {
    use rustls::pki_types::pem::Error;
    let text = text(from)?;
    let dsa = || TlsError::Dsa { place: place(from) };
    if holds(&text, DSA_SECTION) {
        return Err(dsa());
    }
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        Error::NoItemsFound => TlsError::Missing {
            place: place(from),
            missing: "private key",
            section: "PRIVATE KEY",
        },
        error => TlsError::Pem {
            place: place(from),
            message: error.to_string(),
        },
    })?;
    if holds(key.secret_der(), DSA) {
        return Err(dsa());
    }
    Ok(key)
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn text(from: &PemSource) -> Result<Vec<u8>, TlsError> {
    match from {
        PemSource::Text(text) => Ok(text.clone().into_bytes()),
        PemSource::File(path) => read(path),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    read_bounded(path).map_err(|source| TlsError::Read {
        path: path.to_path_buf(),
        source,
    })
}

/// Largest file of certificates or keys.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads a regular file, or a pipe that this process has open already, such as `/dev/fd/63` of a shell's `<(…)`.
/// Another pipe may never have a writer, and a device may have no end.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let kind = std::fs::metadata(path)?.file_type();
    let open_already = ["/dev/fd", "/dev/stdin", "/proc/self/fd"];
    let is_open_pipe = kind.is_fifo() && open_already.iter().any(|open| path.starts_with(open));
    if !kind.is_file() && !is_open_pipe {
        return Err(io::Error::other("this is not a regular file"));
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(FILE_BYTES_MAX);
    file.read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length == FILE_BYTES_MAX) {
        return Err(io::Error::other("larger than 16 MiB"));
    }
    Ok(bytes)
}

fn place(of: &PemSource) -> String {
    match of {
        PemSource::File(path) => path.display().to_string(),
        PemSource::Text(_) => "the configuration".to_owned(),
    }
}
