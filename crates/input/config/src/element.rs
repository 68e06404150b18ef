//! The parts of tables of keys. Imports no table.
//!
//! Readers find unknown keys with these very tables, and the JSON Schema is made from them:
//! schema and reader cannot accept different keys.

use stillwell_text::Keys;

/// One kind of map.
#[derive(Debug)]
pub(crate) struct Element {
    /// Name in messages.
    pub(crate) name: &'static str,
    /// One sentence.
    pub(crate) about: &'static str,
    /// Its keys.
    pub(crate) fields: &'static [Field],
    /// Exactly one of these keys must be there, if there are any.
    pub(crate) one_of: &'static [&'static str],
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// Kinds of values of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Boolean,
    Whole,
    Number,
    Text,
    /// A text with an inner grammar; an example of it.
    Like(&'static str),
    Words(&'static [&'static str]),
    List(&'static Self),
    /// Free names.
    Map(&'static Self),
    Element(&'static Element),
    Any(&'static [Self]),
    /// A key without a value.
    Null,
    /// Any value; another reader checks it.
    Free,
}

/// One value that is read as a text; YAML may take it for a number or a boolean.
const SCALAR: Shape = Shape::Any(&[Shape::Text, Shape::Number, Shape::Boolean]);
/// A list of texts.
pub(crate) const TEXTS: Shape = Shape::List(&SCALAR);
/// Names and texts.
pub(crate) const TEXT_MAP: Shape = Shape::Map(&SCALAR);
/// A length of time.
pub(crate) const DURATION: Shape = Shape::Like("10s");
/// A size in bytes.
pub(crate) const SIZE: Shape = Shape::Like("64 KiB");

/// A key that may be left out.
pub(crate) const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        required: false,
        about,
    }
}

/// A key that must be there.
pub(crate) const fn required(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        required: true,
        about,
    }
}

impl Element {
    pub(crate) const fn new(
        name: &'static str,
        about: &'static str,
        fields: &'static [Field],
    ) -> Self {
        Self {
            name,
            about,
            fields,
            one_of: &[],
        }
    }

    /// Exactly one of these keys must be there.
    pub(crate) const fn one_of(self, one_of: &'static [&'static str]) -> Self {
        Self { one_of, ..self }
    }

    /// Its keys, for the reader.
    pub(crate) fn keys(&self) -> Keys {
        let names: Vec<&'static str> = self.fields.iter().map(|field| field.name).collect();
        Keys::new(self.name, &names)
    }

    /// The name of its definition in a schema.
    pub(crate) fn id(&self) -> String {
        self.name.replace(' ', "_")
    }
}

/// Joins two lists of keys.
pub(crate) const fn concat<const N: usize>(first: &[Field], second: &[Field]) -> [Field; N] {
    let mut fields = [first[0]; N];
    let mut index = 0;
    while index < N {
        fields[index] = if index < first.len() {
            first[index]
        } else {
            second[index - first.len()]
        };
        index += 1;
    }
    fields
}
