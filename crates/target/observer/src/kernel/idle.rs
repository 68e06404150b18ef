//! The working set by idle page tracking: each page of memory has a mark, which the kernel clears when the page
//! is touched.
//!
//! All pages of the target are marked. At the next sample, pages without a mark were touched in between. Shared
//! pages are counted once. The cost for the target is small: clearing marks in its page tables. A sample reads
//! eight bytes for each mapped page.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::text;

/// The kernel's file of marks: a bit for each page of memory, in words of 64.
pub(super) const BITMAP: &str = "/sys/kernel/mm/page_idle/bitmap";

const WORD_BYTES: u64 = 8;
const WORD_PAGES: u64 = 64;
/// Words of the bitmap that are read at once.
const RUN_WORDS_MAX: u64 = 1024;
/// Entries of page tables that are read at once.
const ENTRIES_AT_ONCE: u64 = 4096;
/// Entries that are looked at in all: 32 GiB of mappings with pages of 4 KiB.
const ENTRIES_MAX: u64 = 8 << 20;
/// End of user-space addresses; kernel mappings above have no marks.
const USER_END: u64 = 1 << 56;

/// Of an entry of `pagemap`: the page is in memory, and where.
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

/// The marks of all pages.
#[derive(Debug)]
pub(super) struct IdlePages {
    bitmap: File,
    page_bytes: u64,
}

impl IdlePages {
    /// Returns `None` if the kernel has no marks, or does not permit access.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let bitmap = OpenOptions::new().read(true).write(true).open(path).ok()?;
        Some(Self {
            bitmap,
            page_bytes: u64::try_from(rustix::param::page_size()).unwrap_or(4096),
        })
    }

    /// Returns the bytes that the processes in `folders` have touched since the last call, and marks their
    /// pages again. Returns `None` if their pages cannot be determined.
    pub(super) fn sample(&self, folders: &[PathBuf], buffer: &mut Vec<u8>) -> Option<u64> {
        let (mut frames, mut remaining) = (Vec::new(), ENTRIES_MAX);
        let mut is_seen = false;
        for folder in folders {
            // A process without page tables has ended.
            let Ok(pagemap) = File::open(folder.join("pagemap")) else {
                continue;
            };
            let Some(text) = text::read(&folder.join("smaps"), buffer) else {
                continue;
            };
            is_seen = true;
            let ranges = resident_ranges(text, self.page_bytes)?;
            for (first, count) in ranges {
                remaining = remaining.checked_sub(count)?;
                add_frames(&pagemap, first, count, &mut frames)?;
            }
        }
        frames.sort_unstable();
        frames.dedup();
        let touched = self.touched(&frames)?;
        is_seen.then(|| text::scaled(touched, self.page_bytes))
    }

    /// Counts the pages of `frames`, in increasing order, whose marks are cleared, and marks them again.
    fn touched(&self, frames: &[u64]) -> Option<u64> {
        let mut touched = 0;
        let mut rest = frames;
        while let Some(first) = rest.first().map(|frame| frame / WORD_PAGES) {
            let is_near = |frame: &u64| frame / WORD_PAGES - first < RUN_WORDS_MAX;
            let (run, further) = rest.split_at(rest.partition_point(is_near));
            rest = further;
            let last = run.last()? / WORD_PAGES;
            let mut mark_words = vec![0_u64; usize::try_from(last - first + 1).ok()?];
            for frame in run {
                let word = mark_words.get_mut(usize::try_from(frame / WORD_PAGES - first).ok()?)?;
                *word |= 1 << (frame % WORD_PAGES);
            }
            let mut bytes = vec![0; mark_words.len() * 8];
            self.bitmap
                .read_exact_at(&mut bytes, first * WORD_BYTES)
                .ok()?;
            for (bytes, mark_word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(mark_words) {
                let lost = mark_word & !u64::from_ne_bytes(*bytes);
                touched += u64::from(lost.count_ones());
                // Writing a zero bit has no effect.
                *bytes = mark_word.to_ne_bytes();
            }
            self.bitmap.write_all_at(&bytes, first * WORD_BYTES).ok()?;
        }
        Some(touched)
    }
}

/// The mappings of which something is in memory, as their first page and how many they
/// are; `None` where there are too many to read.
fn resident_ranges(smaps: &[u8], page_bytes: u64) -> Option<Vec<(u64, u64)>> {
    if text::is_cut(smaps) {
        return None;
    }
    let (mut ranges, mut last) = (Vec::new(), None);
    for line in text::lines(smaps) {
        if let Some(range) = range_of(line) {
            last = Some(range);
        } else if text::value(line, b"Rss:").is_some_and(|size| size > 0)
            && let Some((start, end)) = last.take()
            && end <= USER_END
        {
            let pages = end.saturating_sub(start) / page_bytes;
            ranges.push((start / page_bytes, pages));
        }
    }
    Some(ranges)
}

/// Returns the address range of a mapping's first line.
fn range_of(line: &[u8]) -> Option<(u64, u64)> {
    let range = text::words(line).next()?;
    let (start, end) = std::str::from_utf8(range).ok()?.split_once('-')?;
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    Some((hexadecimal(start)?, hexadecimal(end)?))
}

/// Adds the frames of `count` pages from `first` on that are in memory. Returns `None` if the kernel hides
/// them.
fn add_frames(pagemap: &File, first: u64, count: u64, frames: &mut Vec<u64>) -> Option<()> {
    let (mut first, mut remaining) = (first, count);
    while remaining > 0 {
        let now = remaining.min(ENTRIES_AT_ONCE);
        let mut bytes = vec![0; usize::try_from(now * WORD_BYTES).ok()?];
        let Ok(length) = pagemap.read_at(&mut bytes, first * WORD_BYTES) else {
            // The mapping or the process no longer exists.
            return Some(());
        };
        for entry in bytes[..length].as_chunks::<8>().0 {
            let entry = u64::from_ne_bytes(*entry);
            if entry & PRESENT == 0 {
                continue;
            }
            // The kernel reports zeros to processes without permission.
            let frame = Some(entry & FRAME).filter(|frame| *frame > 0)?;
            frames.push(frame);
        }
        (first, remaining) = (first + now, remaining - now);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A recorded process: pages 16 and 17, of which one is in memory, and the shared page 32.
    fn tree(folder: &Path, frames: [u64; 3]) -> PathBuf {
        let page = u64::try_from(rustix::param::page_size()).unwrap();
        let at = |page_number: u64| format!("{:x}", page_number * page);
        let smaps = format!(
            "{}-{} r--p 00000000 fe:00 1 /a\nRss: 4 kB\nVmFlags: rd\n\
             {}-{} r--p 00000000 fe:00 1 /b\nRss: 4 kB\n\
             {}-{} r--p 00000000 00:00 0 \nRss: 0 kB\n\
             ffffffffff600000-ffffffffff601000 --xp 0 00:00 0 [vsyscall]\nRss: 4 kB\n",
            at(16),
            at(18),
            at(32),
            at(33),
            at(64),
            at(1 << 30),
        );
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("smaps"), smaps).unwrap();
        let pagemap = File::create(folder.join("pagemap")).unwrap();
        for (page, frame) in [16_u64, 17, 32].into_iter().zip(frames) {
            let entry = if frame == 0 { 0 } else { PRESENT | frame };
            pagemap
                .write_all_at(&entry.to_ne_bytes(), page * 8)
                .unwrap();
        }
        folder.to_owned()
    }

    fn bitmap(folder: &Path) -> PathBuf {
        let path = folder.join("bitmap");
        std::fs::write(&path, vec![0; 64 << 10]).unwrap();
        path
    }

    fn word(path: &Path, number: usize) -> u64 {
        let bytes = std::fs::read(path).unwrap();
        u64::from_ne_bytes(bytes[number * 8..][..8].try_into().unwrap())
    }

    #[test]
    fn what_lost_its_mark_was_touched_and_shared_pages_count_once() {
        let folder = tempfile::tempdir().unwrap();
        let page = u64::try_from(rustix::param::page_size()).unwrap();
        let folders = [
            tree(&folder.path().join("7"), [0, 3, 70_000]),
            tree(&folder.path().join("9"), [5, 0, 70_000]),
            folder.path().join("gone"),
        ];
        let marks = bitmap(folder.path());
        let pages = IdlePages::open(&marks).unwrap();
        // No page had a mark: all three count as touched.
        assert_eq!(pages.sample(&folders, &mut Vec::new()), Some(3 * page));
        assert_eq!(word(&marks, 0), 1 << 3 | 1 << 5);
        assert_eq!(word(&marks, 70_000 / 64), 1 << (70_000 % 64));
        assert_eq!(pages.sample(&folders, &mut Vec::new()), Some(0));
        // Clears a mark, as the kernel does.
        let file = OpenOptions::new().write(true).open(&marks).unwrap();
        file.write_all_at(&(1_u64 << 5).to_ne_bytes(), 0).unwrap();
        assert_eq!(pages.sample(&folders, &mut Vec::new()), Some(page));
        assert_eq!(pages.sample(&folders[2..], &mut Vec::new()), None);
    }

    /// Without permission, the kernel reports frames as zeros.
    #[test]
    fn no_working_set_is_reported_if_frames_are_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let folders = tree(&folder.path().join("7"), [0, 3, 4]);
        let pagemap = OpenOptions::new().write(true).open(folders.join("pagemap"));
        let hidden = PRESENT.to_ne_bytes();
        pagemap.unwrap().write_all_at(&hidden, 16 * 8).unwrap();
        let pages = IdlePages::open(&bitmap(folder.path())).unwrap();
        assert_eq!(pages.sample(&[folders], &mut Vec::new()), None);
        assert!(IdlePages::open(&folder.path().join("none")).is_none());
    }

    proptest! {
        #[test]
        fn for_all_bytes_nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            resident_ranges(&bytes, 4096);
            range_of(&bytes);
        }

        #[test]
        fn for_all_frames_each_is_counted_once(
            frames in proptest::collection::btree_set(1_u64..500_000, 0..200),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let pages = IdlePages::open(&bitmap(folder.path())).unwrap();
            let frames: Vec<u64> = frames.into_iter().collect();
            let count = u64::try_from(frames.len()).unwrap();
            prop_assert_eq!(pages.touched(&frames), Some(count));
            prop_assert_eq!(pages.touched(&frames), Some(0));
        }
    }
}
