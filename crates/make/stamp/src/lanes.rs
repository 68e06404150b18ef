//! The two costs of every stamp, with the widest registers of the processor.

use memchr::memmem::Finder;

use crate::code::decode;
use crate::stamp::BASE;

#[cfg(target_arch = "x86_64")]
mod wide;

/// Work with the best registers that there are.
pub(crate) trait Work {
    /// The result.
    type Outcome;

    /// Does it. To be inlined always: only so is all of it made for these registers.
    fn by(self, lanes: impl Lanes) -> Self::Outcome;
}

/// Does `work` with the best registers that this processor has.
#[inline]
pub(crate) fn best<W: Work>(work: W) -> W::Outcome {
    #[cfg(target_arch = "x86_64")]
    if let Some(wide) = wide::Wide::new() {
        return wide.within(work);
    }
    work.by(Plain)
}

/// A way of looking for stamps and reading them.
pub(crate) trait Lanes: Copy {
    /// Finds the first magic with `finder`.
    fn find(self, finder: &Finder<'static>, bytes: &[u8]) -> Option<usize>;

    /// The characters of a stamp as words, the first of them zero, and zero; or
    /// anything, and something else than zero, if one of them is not of a stamp.
    fn decode(self, characters: &[u8; 64]) -> ([u32; 8], u32);
}

/// Registers that every processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

impl Lanes for Plain {
    #[inline(always)]
    fn find(self, finder: &Finder<'static>, bytes: &[u8]) -> Option<usize> {
        finder.find(bytes)
    }

    #[inline(always)]
    fn decode(self, characters: &[u8; 64]) -> ([u32; 8], u32) {
        let (words, wrong) = decode(characters, &BASE);
        (words, u32::from(wrong))
    }
}
