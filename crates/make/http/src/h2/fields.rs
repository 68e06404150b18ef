//! Lists of fields, as they were decoded.

/// Fields in the order in which they arrived; its room is used again.
#[derive(Clone, Debug, Default)]
pub struct FieldList {
    /// Names and values, one after the other.
    bytes: Vec<u8>,
    ends: Vec<Ends>,
    /// Size of the list: names, values and 32 for each field, with those that were not kept.
    counted_bytes: usize,
    overflowed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    name: usize,
    value: usize,
}

/// A look at a list of fields: pseudo-fields first, names in lower case.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    ends: &'a [Ends],
}

impl FieldList {
    /// Without fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns its fields.
    #[must_use]
    pub fn fields(&self) -> Fields<'_> {
        Fields {
            bytes: &self.bytes,
            ends: &self.ends,
        }
    }

    /// Returns true if fields are missing because there were too many.
    #[must_use]
    pub const fn is_overflowed(&self) -> bool {
        self.overflowed
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.counted_bytes = 0;
        self.overflowed = false;
    }

    /// Counts a field; false where it cannot be kept.
    pub(crate) const fn charge(&mut self, field_bytes: usize, bytes_max: usize) -> bool {
        self.counted_bytes += field_bytes;
        self.overflowed |= self.counted_bytes > bytes_max;
        !self.overflowed
    }

    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(name);
        let value_start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.close(value_start);
    }

    /// Returns the room for the next name and value; call [`Self::close`] or
    /// [`Self::abandon`] after it.
    pub(crate) const fn open(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(crate) fn close(&mut self, value_start: usize) {
        self.ends.push(Ends {
            name: value_start,
            value: self.bytes.len(),
        });
    }

    pub(crate) fn abandon(&mut self, name_start: usize) {
        self.bytes.truncate(name_start);
    }
}

impl<'a> Fields<'a> {
    /// Number of fields.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true for an empty list.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let bytes = self.bytes;
        self.ends.iter().scan(0, move |start, ends| {
            let field = (&bytes[*start..ends.name], &bytes[ends.name..ends.value]);
            *start = ends.value;
            Some(field)
        })
    }

    /// The value of the first field called `name`, which is in lower case.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&'a [u8]> {
        self.iter()
            .find(|(known, _)| *known == name.as_bytes())
            .map(|(_, value)| value)
    }

    /// Names and values together, in bytes.
    #[must_use]
    pub const fn bytes_len(&self) -> usize {
        self.bytes.len()
    }
}

impl std::fmt::Debug for Fields<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let fields = self.iter().map(|(name, value)| (text(name), text(value)));
        formatter.debug_map().entries(fields).finish()
    }
}

impl PartialEq for Fields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Fields<'_> {}
