//! The memory that a set lies in.

use memmap2::{Advice, MmapMut};
use stillwell_units::ByteSize;

use crate::BuildError;

/// The size of a large page of most kernels. Only whole ones are laid where one
/// begins.
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Bytes that are written once, from the front. They lie in large pages where
/// the kernel gives them: touching memory for the first time would otherwise
/// cost about as much as filling it, and sending it would look up hundreds of
/// times as many pages.
#[derive(Debug)]
pub(crate) struct Memory {
    room: MmapMut,
    used: usize,
}

impl Memory {
    /// Room for `size` bytes, which costs nothing before it is written.
    pub(crate) fn new(size: usize) -> Result<Self, BuildError> {
        let whole = match size {
            LARGE_PAGE_BYTES.. => size.checked_next_multiple_of(LARGE_PAGE_BYTES),
            size => Some(size.max(1)),
        };
        let room = whole.and_then(|whole| MmapMut::map_anon(whole).ok());
        let room = room.ok_or_else(|| BuildError::NoMemory {
            requested: ByteSize::new(size as u64),
        })?;
        // A kernel without large pages refuses, and small ones do as well.
        room.advise(Advice::HugePage).unwrap_or_default();
        Ok(Self { room, used: 0 })
    }

    /// All that was written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[..self.used]
    }

    pub(crate) const fn len(&self) -> usize {
        self.used
    }

    /// Appends `bytes`, in new room where there is none left.
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), BuildError> {
        let end = self.used + bytes.len();
        if end > self.room.len() {
            self.grow(end)?;
        }
        self.room[self.used..end].copy_from_slice(bytes);
        self.used = end;
        Ok(())
    }

    /// Writes `bytes` over those at `start`, which are there.
    pub(crate) fn replace(&mut self, start: usize, bytes: &[u8]) {
        self.room[..self.used][start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// Forgets what lies beyond the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.used = self.used.min(len);
    }

    /// Happens where a first block is larger than its set was to be.
    #[cold]
    fn grow(&mut self, size: usize) -> Result<(), BuildError> {
        let mut larger = Self::new(size.max(2 * self.room.len()))?;
        larger.room[..self.used].copy_from_slice(self.bytes());
        larger.used = self.used;
        *self = larger;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_pieces_and_sizes_what_is_pushed_is_there(
            size in 0_usize..100,
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
            kept in 0_usize..1000,
        ) {
            let mut memory = Memory::new(size).unwrap();
            for piece in &pieces {
                memory.push(piece).unwrap();
            }
            let mut expected = pieces.concat();
            prop_assert_eq!(memory.bytes(), &expected[..]);
            memory.truncate(kept);
            expected.truncate(kept);
            prop_assert_eq!(memory.bytes(), &expected[..]);
            prop_assert_eq!(memory.len(), expected.len());
        }
    }

    #[test]
    fn what_no_address_space_holds_is_refused() {
        assert!(matches!(
            Memory::new(usize::MAX / 2),
            Err(BuildError::NoMemory { .. })
        ));
    }
}
