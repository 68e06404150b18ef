//! Runs of text with a meaning.

use stillwell_verdict::Verdict;

/// Meaning of a run of text, which each renderer shows in its own way.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Role {
    /// No special meaning.
    Plain,
    /// Important.
    Strong,
    /// A number with its unit.
    Number,
    /// Better, or as it should be.
    Good,
    /// Worse, or failed.
    Bad,
    /// Uncertain.
    Warning,
    /// Not valid.
    Invalid,
    /// Less important.
    Dim,
    /// Something to type, or a name in a program.
    Code,
}

/// Kind of an answer; each renderer has a sign for it that repeats the word behind it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Sign {
    /// Worse.
    Worse,
    /// Better.
    Better,
    /// The same.
    Same,
    /// Changed, but not clearly better or worse.
    Different,
    /// Inconclusive.
    Unclear,
    /// Not valid.
    Invalid,
}

impl Sign {
    /// Returns the role of the word behind the sign.
    #[must_use]
    pub const fn role(self) -> Role {
        match self {
            Self::Worse => Role::Bad,
            Self::Better | Self::Same => Role::Good,
            Self::Different | Self::Unclear => Role::Warning,
            Self::Invalid => Role::Invalid,
        }
    }
}

impl From<Verdict> for Sign {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Regressed => Self::Worse,
            Verdict::Improved => Self::Better,
            Verdict::Equivalent => Self::Same,
            Verdict::Different => Self::Different,
            Verdict::Inconclusive => Self::Unclear,
            Verdict::Invalid => Self::Invalid,
        }
    }
}

/// Values in order, drawn in one line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sparkline {
    /// The values; `None` is a space.
    pub values: Vec<Option<f64>>,
    /// Indices of values before which something changed.
    pub changes: Vec<usize>,
    /// True if bars begin at zero and not at the lowest value.
    pub is_from_zero: bool,
}

impl Sparkline {
    /// Returns values whose bars begin at zero.
    #[must_use]
    pub fn from_zero(values: &[Option<f64>]) -> Self {
        Self {
            values: values.to_vec(),
            changes: Vec::new(),
            is_from_zero: true,
        }
    }

    /// Returns a bar for each value up to the highest, with `|` before each change.
    #[must_use]
    pub fn bars(&self) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let present = || self.values.iter().copied().flatten();
        let low = present().fold(f64::INFINITY, f64::min);
        let low = if self.is_from_zero { 0.0 } else { low };
        let high = present().fold(f64::NEG_INFINITY, f64::max);
        let mut text = String::new();
        for (place, value) in self.values.iter().enumerate() {
            if self.changes.contains(&place) {
                text.push('|');
            }
            let Some(value) = value else {
                // HTML and Markdown join plain spaces.
                text.push('\u{a0}');
                continue;
            };
            let share = if high > low {
                (value - low) / (high - low)
            } else {
                0.0
            };
            let bar = if self.is_from_zero {
                share * 8.0
            } else {
                (share * 7.0).round()
            };
            let bar = stillwell_units::floor_to_u64(bar);
            text.push(BARS[usize::try_from(bar).unwrap_or(0).min(7)]);
        }
        text
    }
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Inline {
    /// A run of text with a role.
    Run(Role, String),
    /// A sign and its word.
    Answer(Sign, String),
    /// A link: its text and its target.
    Link(String, String),
    /// Values in order.
    Sparkline(Sparkline),
}

/// One line of text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text(pub Vec<Inline>);

impl Text {
    /// Returns text with one role.
    pub fn of(role: Role, text: impl Into<String>) -> Self {
        Self(vec![Inline::Run(role, text.into())])
    }

    /// Returns important text.
    pub fn strong(text: impl Into<String>) -> Self {
        Self::of(Role::Strong, text)
    }

    /// Returns text about a failure.
    pub fn bad(text: impl Into<String>) -> Self {
        Self::of(Role::Bad, text)
    }

    /// Returns less important text.
    pub fn dim(text: impl Into<String>) -> Self {
        Self::of(Role::Dim, text)
    }

    /// Returns code.
    pub fn code(text: impl Into<String>) -> Self {
        Self::of(Role::Code, text)
    }

    /// Returns a sign and its word.
    pub fn answer(sign: impl Into<Sign>, word: impl Into<String>) -> Self {
        Self(vec![Inline::Answer(sign.into(), word.into())])
    }

    /// Returns a verdict's sign and name.
    #[must_use]
    pub fn verdict(verdict: Verdict) -> Self {
        Self::answer(verdict, verdict.name())
    }

    /// Returns this text with more behind it.
    #[must_use]
    pub fn and(mut self, more: impl Into<Self>) -> Self {
        self.0.extend(more.into().0);
        self
    }

    /// Returns this text with `role` in place of plain.
    pub(crate) fn with_default(mut self, role: Role) -> Self {
        for part in &mut self.0 {
            if let Inline::Run(entry @ Role::Plain, _) = part {
                *entry = role;
            }
        }
        self
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::of(Role::Plain, text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::of(Role::Plain, text)
    }
}
