//! Random numbers.

use std::fs::File;
use std::io::{self, Read};

/// Bytes of the kernel's.
///
/// # Errors
/// The kernel's answer where it has none to give.
pub(crate) fn random<const COUNT: usize>() -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(random::<16>().unwrap(), random::<16>().unwrap());
    }
}
