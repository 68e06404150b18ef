//! Values that belong to open streams.

use super::streams::Stream;

/// The values of a connection's open streams, by slot. Allocates nothing once the largest
/// number of streams has been open.
#[derive(Debug)]
pub struct StreamTable<T> {
    slots: Vec<Option<(Stream, T)>>,
}

impl<T> StreamTable<T> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Vec::new() }
    }

    /// Sets the value of `stream`, in place of that of an earlier stream in its slot.
    pub fn insert(&mut self, stream: Stream, value: T) {
        if self.slots.len() <= stream.slot() {
            self.slots.resize_with(stream.slot() + 1, || None);
        }
        self.slots[stream.slot()] = Some((stream, value));
    }

    /// The value of `stream`.
    pub fn get_mut(&mut self, stream: Stream) -> Option<&mut T> {
        let (holder, value) = self.slots.get_mut(stream.slot())?.as_mut()?;
        (*holder == stream).then_some(value)
    }

    /// Removes the value of `stream`.
    pub fn remove(&mut self, stream: Stream) -> Option<T> {
        let slot = self.slots.get_mut(stream.slot())?;
        let entry = slot.take_if(|(holder, _)| *holder == stream)?;
        Some(entry.1)
    }

    /// All values.
    pub fn iter(&self) -> impl Iterator<Item = (Stream, &T)> {
        let entries = self.slots.iter().flatten();
        entries.map(|(stream, value)| (*stream, value))
    }
}

impl<T> Default for StreamTable<T> {
    fn default() -> Self {
        Self::new()
    }
}
