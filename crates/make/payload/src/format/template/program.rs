//! A template as it is carried out.

use stillwell_plan::payload::{Alphabet, TemplateValue, TimeText};

use crate::text::Fragment;

/// A template as it is carried out.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) root: Step,
    pub(super) definitions: Box<[Step]>,
    /// The first numbers of the counters.
    pub(super) counters: Vec<u64>,
    /// Number of clocks.
    pub(super) clocks: usize,
}

/// One thing to do.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A text of up to 32 bytes.
    Short(Fragment),
    /// A longer one.
    Long(Box<[u8]>),
    All(Box<[Self]>),
    /// One of short texts.
    PickShort(Box<[Fragment]>),
    Pick(Pick, Box<[Self]>),
    /// From `low` to `low` + `width` - 1, below 1000.
    Small {
        low: u16,
        width: u16,
    },
    Integer {
        low: i64,
        high: i64,
        digits: u8,
    },
    Decimal {
        low: i64,
        high: i64,
        decimals: u8,
    },
    Counter(usize),
    Time(TimeText),
    Clock(usize),
    Random {
        alphabet: Alphabet,
        count: u16,
    },
    Value(TemplateValue),
    Use(usize),
    Repeat {
        low: u32,
        high: u32,
        separator: Box<[u8]>,
        step: Box<Self>,
    },
    With {
        variables: Box<[(usize, Self)]>,
        step: Box<Self>,
    },
    Variable(usize),
    Inside(Box<Self>),
    /// The inner form of a JSON text in a variable.
    InsideVariable(usize),
    Join(Box<[Self]>),
    Stamp,
}

/// The choice of one of several.
#[derive(Clone, Debug)]
pub(super) enum Pick {
    /// An index for each share; as long as there are shares, which are few.
    Table(Box<[u16]>),
    /// The shares up to and with each; the last is all of them.
    Sums(Box<[u64]>),
}

/// Most shares that a table is made of.
pub(super) const TABLE_MAX: u64 = 1 << 12;

impl Step {
    /// `text` in as few steps as can be.
    pub(super) fn text(text: &[u8]) -> Self {
        match std::str::from_utf8(text) {
            Ok(short) if text.len() <= Fragment::MAX => Self::Short(Fragment::new(short)),
            _ => Self::Long(text.into()),
        }
    }

    /// Returns its constant value, if it is a text.
    pub(super) fn as_text(&self) -> Option<&[u8]> {
        match self {
            Self::Short(fragment) => Some(fragment.text().as_bytes()),
            Self::Long(text) => Some(text),
            Self::All(steps) if steps.is_empty() => Some(b""),
            _ => None,
        }
    }
}
