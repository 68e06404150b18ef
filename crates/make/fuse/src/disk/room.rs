//! Used and free bytes of a disk. No I/O.

/// Bytes of all files; a hole counts with its length.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Room {
    used: u64,
}

impl Room {
    pub(super) const fn new(used: u64) -> Self {
        Self { used }
    }

    pub(super) const fn used(self) -> u64 {
        self.used
    }

    /// Returns how many of `length` bytes may be written at `offset` of a file of `size` bytes, on
    /// a disk of `limit`; `None` where none may.
    pub(super) fn fit(
        self,
        size: u64,
        offset: u64,
        length: u64,
        limit: Option<u64>,
    ) -> Option<u64> {
        let Some(limit) = limit else {
            return Some(length);
        };
        let end = size.saturating_add(limit.saturating_sub(self.used));
        let fits = end.saturating_sub(offset).min(length);
        (fits > 0 || length == 0).then_some(fits)
    }

    /// A file of `before` bytes has `after` now.
    pub(super) const fn resized(&mut self, before: u64, after: u64) {
        self.used = self.used.saturating_sub(before).saturating_add(after);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn existing_files_may_be_written_over_on_a_full_disk() {
        let full = Room::new(100);
        assert_eq!(full.fit(40, 0, 40, Some(100)), Some(40));
        assert_eq!(full.fit(40, 30, 40, Some(100)), Some(10));
        assert_eq!(full.fit(40, 40, 1, Some(100)), None);
        assert_eq!(full.fit(40, 40, 1, None), Some(1));
    }

    proptest! {
        #[test]
        fn a_disk_never_holds_more_than_its_limit(
            limit in 0_u64..1000,
            writes in prop::collection::vec((0_usize..4, 0_u64..400, 0_u64..300), 0..60),
        ) {
            let mut sizes = [0_u64; 4];
            let mut room = Room::default();
            for (file, offset, length) in writes {
                let Some(fits) = room.fit(sizes[file], offset, length, Some(limit)) else {
                    continue;
                };
                prop_assert!(fits <= length);
                if fits == 0 {
                    continue;
                }
                let after = sizes[file].max(offset + fits);
                room.resized(sizes[file], after);
                sizes[file] = after;
                prop_assert!(room.used() <= limit);
                prop_assert_eq!(room.used(), sizes.iter().sum::<u64>());
            }
        }
    }
}
