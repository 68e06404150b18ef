//! Fields that were sent before (RFC 7541, 2.3.2 and 4).

use std::collections::VecDeque;

use super::static_table::STATIC;

/// Size of an entry beside its name and its value.
const ENTRY_OVERHEAD_BYTES: usize = 32;

/// The index space of one direction of a connection: the static entries, then
/// the dynamic ones, newest first. Holds at most twice `bytes_max` bytes.
#[derive(Debug)]
pub(super) struct Table {
    /// Names and values; those before the oldest entry's are out of use.
    bytes: Vec<u8>,
    /// Newest first.
    entries: VecDeque<Entry>,
    size: usize,
    bytes_max: usize,
    /// Number of changes of the content.
    changes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    name_bytes: usize,
    value_bytes: usize,
}

/// Place of a field in the table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Found {
    Field(usize),
    Name(usize),
    Nothing,
}

impl Table {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            entries: VecDeque::new(),
            size: 0,
            bytes_max,
            changes: 0,
        }
    }

    pub(super) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.evict(0);
    }

    /// Returns true if `index` means the same in every table.
    pub(super) const fn is_static(index: usize) -> bool {
        index <= STATIC.len()
    }

    /// Name and value at `index`, where there is such an entry.
    pub(super) fn field(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let index = index.checked_sub(1)?;
        if let Some((name, value)) = STATIC.get(index) {
            return Some((name.as_bytes(), value.as_bytes()));
        }
        let entry = self.entries.get(index - STATIC.len())?;
        let field = &self.bytes[entry.start..][..entry.name_bytes + entry.value_bytes];
        Some(field.split_at(entry.name_bytes))
    }

    /// Adds a field, for which older ones go. One that is larger than the table
    /// empties it (RFC 7541, 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = size(name, value);
        self.evict(size);
        if size > self.bytes_max {
            return;
        }
        self.changes += 1;
        if self.bytes.len() + name.len() + value.len() > 2 * self.bytes_max {
            self.compact();
        }
        let entry = Entry {
            start: self.bytes.len(),
            name_bytes: name.len(),
            value_bytes: value.len(),
        };
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push_front(entry);
        self.size += size;
    }

    /// The best index for a field.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Found {
        let mut result = Found::Nothing;
        let dynamic = (0..self.entries.len()).map(|place| place + STATIC.len());
        for place in (0..STATIC.len()).chain(dynamic) {
            let index = place + 1;
            match self.field(index) {
                Some((known, same)) if known == name && same == value => {
                    return Found::Field(index);
                }
                Some((known, _)) if known == name && result == Found::Nothing => {
                    result = Found::Name(index);
                }
                _ => {}
            }
        }
        result
    }

    /// Makes room for `size` bytes.
    fn evict(&mut self, size: usize) {
        while self.size + size > self.bytes_max {
            let Some(oldest) = self.entries.pop_back() else {
                break;
            };
            self.size -= oldest.name_bytes + oldest.value_bytes + ENTRY_OVERHEAD_BYTES;
            self.changes += 1;
        }
        if self.entries.is_empty() {
            self.bytes.clear();
        }
    }

    /// Moves what is in use to the front.
    fn compact(&mut self) {
        let unused = self
            .entries
            .back()
            .map_or(self.bytes.len(), |entry| entry.start);
        self.bytes.drain(..unused);
        for entry in &mut self.entries {
            entry.start -= unused;
        }
    }
}

/// Size of a field in a table or a list, in bytes.
pub(super) const fn size(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD_BYTES
}
