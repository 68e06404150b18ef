//! Length of a template's events, and a check of the template.

use super::{
    Alphabet, TEMPLATE_DEPTH_MAX, TEMPLATE_EVENT_MAX, TemplatePart, TemplatePlan, TemplateValue,
    TimeField, TimeText,
};
use crate::payload::Between;

/// Parts that the making of one event may take.
const WORK_MAX: u64 = 1 << 20;

/// Width of a stamp and the blank behind it, in bytes.
const STAMP_BYTES: u64 = 65;

/// An escaped byte takes six at most, as in `\u001f`.
const ESCAPED_BYTES: u64 = 6;

/// Reason why a template makes no events.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TemplateError {
    /// A definition that is not there.
    #[error("definition {index} does not exist")]
    NoDefinition {
        /// Its index.
        index: usize,
    },
    /// A definition that uses itself.
    #[error("definition {index} uses itself")]
    Circle {
        /// Its index.
        index: usize,
    },
    /// A variable where it has no value.
    #[error("variable {index} has no value at this place")]
    NoVariable {
        /// Its index.
        index: usize,
    },
    /// A choice without anything to choose, or a range that runs backwards.
    #[error("a choice or range is empty")]
    Empty,
    /// Parts too deep inside each other.
    #[error("more than {TEMPLATE_DEPTH_MAX} parts are nested")]
    TooDeep,
    /// An event that could be too long, or take too many parts to make.
    #[error(
        "an event could have {bytes} bytes from {parts} parts, more than {TEMPLATE_EVENT_MAX} or {WORK_MAX}"
    )]
    TooLong {
        /// Bytes of the longest event.
        bytes: u64,
        /// Parts of the longest event.
        parts: u64,
    },
}

impl TemplatePlan {
    /// The least and the most bytes of an event.
    ///
    /// # Errors
    /// When no event can be made, or one could be too long.
    pub fn lengths(&self) -> Result<Between<u64>, TemplateError> {
        let size = self.measure()?;
        if size.high > TEMPLATE_EVENT_MAX || size.parts > WORK_MAX {
            return Err(TemplateError::TooLong {
                bytes: size.high,
                parts: size.parts,
            });
        }
        Ok(Between::new(size.low, size.high))
    }

    /// The most bytes that there are at once while an event is made: with variables that
    /// leave none in it.
    ///
    /// # Errors
    /// As [`TemplatePlan::lengths`].
    pub fn room(&self) -> Result<u64, TemplateError> {
        let lengths = self.lengths()?;
        let beside = self.measure()?.beside;
        Ok(lengths.high.saturating_add(beside))
    }

    /// Returns true if every event has room for a stamp. None has where no event can be
    /// made.
    #[must_use]
    pub fn has_stamp(&self) -> bool {
        self.measure().is_ok_and(|size| size.has_stamp)
    }

    fn measure(&self) -> Result<Size, TemplateError> {
        let mut measure = Measure {
            definitions: vec![Definition::Unknown; self.definitions.len()],
            variables: vec![None; self.variables],
            plan: self,
        };
        // Those that nothing uses must be right, too.
        for index in 0..self.definitions.len() {
            measure.definition(index, 0)?;
        }
        measure.part(&self.root, 0)
    }
}

#[derive(Clone, Copy, Debug)]
struct Size {
    low: u64,
    high: u64,
    /// The most bytes of variables that are there while it is made, besides its own.
    beside: u64,
    parts: u64,
    /// True if there is always a stamp in it that nothing moves.
    has_stamp: bool,
}

#[derive(Clone, Copy, Debug)]
enum Definition {
    Unknown,
    Open,
    Known(Size),
}

struct Measure<'p> {
    plan: &'p TemplatePlan,
    definitions: Vec<Definition>,
    variables: Vec<Option<Size>>,
}

impl Measure<'_> {
    fn definition(&mut self, index: usize, depth: usize) -> Result<Size, TemplateError> {
        match self.definitions.get(index) {
            None => Err(TemplateError::NoDefinition { index }),
            Some(Definition::Open) => Err(TemplateError::Circle { index }),
            Some(Definition::Known(size)) => Ok(*size),
            Some(Definition::Unknown) => {
                self.definitions[index] = Definition::Open;
                // What holds where a definition is used does not hold in it.
                let outer = std::mem::take(&mut self.variables);
                self.variables = vec![None; outer.len()];
                let size = self.part(&self.plan.definitions[index], depth + 1);
                self.variables = outer;
                self.definitions[index] = Definition::Known(size.clone()?);
                size
            }
        }
    }

    fn part(&mut self, part: &TemplatePart, depth: usize) -> Result<Size, TemplateError> {
        if depth > TEMPLATE_DEPTH_MAX {
            return Err(TemplateError::TooDeep);
        }
        let depth = depth + 1;
        let mut size = match part {
            TemplatePart::Sequence(parts) => self.sum(parts, depth)?,
            TemplatePart::Choice(parts) => self.choice(parts, depth)?,
            TemplatePart::Use(index) => self.definition(*index, depth)?,
            TemplatePart::Repeat {
                low,
                high,
                separator,
                part,
            } => {
                check_range(low <= high)?;
                let size = self.part(part, depth)?;
                let separator = separator.len() as u64;
                let times = |bytes: u64, count: u32| {
                    let count = u64::from(count);
                    let gaps = count.saturating_sub(1).saturating_mul(separator);
                    bytes.saturating_mul(count).saturating_add(gaps)
                };
                Size {
                    low: times(size.low, *low),
                    high: times(size.high, *high),
                    beside: if *high > 0 { size.beside } else { 0 },
                    parts: size.parts.saturating_mul(u64::from(*high)),
                    has_stamp: size.has_stamp && *low > 0,
                }
            }
            TemplatePart::With { variables, part } => self.with(variables, part, depth)?,
            TemplatePart::Variable(index) => {
                let size = self.variables.get(*index).copied().flatten();
                let size = size.ok_or(TemplateError::NoVariable { index: *index })?;
                Size {
                    has_stamp: false,
                    ..size
                }
            }
            TemplatePart::Inside(part) => {
                let size = self.part(part, depth)?;
                Size {
                    low: size.low.saturating_sub(2),
                    high: size.high.saturating_mul(ESCAPED_BYTES),
                    beside: size.beside,
                    parts: size.parts,
                    has_stamp: false,
                }
            }
            TemplatePart::Join(parts) => {
                let size = self.sum(parts, depth)?;
                Size {
                    low: 0,
                    high: size.high.saturating_add(parts.len() as u64),
                    beside: size.beside,
                    parts: size.parts,
                    has_stamp: false,
                }
            }
            simple => simple_size(simple)?,
        };
        size.parts = size.parts.saturating_add(1);
        Ok(size)
    }

    fn sum(&mut self, parts: &[TemplatePart], depth: usize) -> Result<Size, TemplateError> {
        let mut sum = Size {
            low: 0,
            high: 0,
            beside: 0,
            parts: 0,
            has_stamp: false,
        };
        for part in parts {
            let size = self.part(part, depth)?;
            sum.low = sum.low.saturating_add(size.low);
            sum.high = sum.high.saturating_add(size.high);
            sum.beside = sum.beside.max(size.beside);
            sum.parts = sum.parts.saturating_add(size.parts);
            sum.has_stamp |= size.has_stamp;
        }
        Ok(sum)
    }

    fn choice(
        &mut self,
        parts: &[(u32, TemplatePart)],
        depth: usize,
    ) -> Result<Size, TemplateError> {
        check_range(parts.iter().any(|(weight, _)| *weight > 0))?;
        let mut all: Option<Size> = None;
        for (_, part) in parts.iter().filter(|(weight, _)| *weight > 0) {
            let size = self.part(part, depth)?;
            let before = all.unwrap_or(size);
            all = Some(Size {
                low: before.low.min(size.low),
                high: before.high.max(size.high),
                beside: before.beside.max(size.beside),
                parts: before.parts.max(size.parts),
                has_stamp: before.has_stamp && size.has_stamp,
            });
        }
        all.ok_or(TemplateError::Empty)
    }

    fn with(
        &mut self,
        variables: &[(usize, TemplatePart)],
        part: &TemplatePart,
        depth: usize,
    ) -> Result<Size, TemplateError> {
        let mut sizes = Vec::new();
        for (index, part) in variables {
            sizes.push((*index, self.part(part, depth)?));
        }
        let outer = self.variables.clone();
        let (mut work, mut beside) = (0_u64, 0_u64);
        for (index, size) in sizes {
            let place = self.variables.get_mut(index);
            let place = place.ok_or(TemplateError::NoVariable { index })?;
            work = work.saturating_add(size.parts);
            // A large variable is work, though it may leave no bytes.
            work = work.saturating_add(size.high >> 6);
            beside = beside.max(size.high.saturating_add(size.beside));
            *place = Some(Size {
                parts: 1,
                beside: 0,
                ..size
            });
        }
        let size = self.part(part, depth);
        self.variables = outer;
        let size = size?;
        Ok(Size {
            beside: size.beside.max(beside),
            parts: size.parts.saturating_add(work),
            ..size
        })
    }
}

/// The size of what has no parts.
fn simple_size(part: &TemplatePart) -> Result<Size, TemplateError> {
    let (low, high) = match part {
        TemplatePart::Text(text) => (text.len() as u64, text.len() as u64),
        TemplatePart::Integer { low, high, digits } => {
            check_range(low <= high)?;
            let least = u64::from((*digits).max(1));
            (least, least.max(19) + 1)
        }
        TemplatePart::Decimal {
            low,
            high,
            decimals,
        } => {
            check_range(low <= high && (1..=9).contains(decimals))?;
            (u64::from(*decimals) + 2, 22 + u64::from(*decimals))
        }
        TemplatePart::Counter { .. } => (1, 20),
        TemplatePart::Time(text) => time_size(text),
        TemplatePart::Clock => (20, 20),
        TemplatePart::Random { count, alphabet } => {
            check_range(*count > 0)?;
            debug_assert!(matches!(
                alphabet,
                Alphabet::Digits | Alphabet::Hexadecimal | Alphabet::Letters | Alphabet::Base64
            ));
            (u64::from(*count), u64::from(*count))
        }
        TemplatePart::Value(value) => match value {
            TemplateValue::Application
            | TemplateValue::Host
            | TemplateValue::User
            | TemplateValue::Word => (1, 32),
            TemplateValue::Ipv4 => (7, 15),
            TemplateValue::Ipv6 => (39, 39),
            TemplateValue::Message => (1, 512),
            TemplateValue::Path => (4, 128),
            TemplateValue::Uuid => (36, 36),
        },
        TemplatePart::Stamp => (0, STAMP_BYTES),
        _ => (0, 0),
    };
    Ok(Size {
        low,
        high,
        beside: 0,
        parts: 0,
        has_stamp: matches!(part, TemplatePart::Stamp),
    })
}

fn time_size(text: &TimeText) -> (u64, u64) {
    let size = match text {
        TimeText::Rfc3339 => 24,
        TimeText::CommonLog => 26,
        TimeText::Rfc3164 => 15,
        TimeText::Epoch { digits } => 10 + u64::from(*digits),
        TimeText::Pattern(pattern) => pattern.fields.iter().map(field_size).sum(),
    };
    (size, size)
}

fn field_size(field: &TimeField) -> u64 {
    match field {
        TimeField::Text(text) => text.len() as u64,
        TimeField::Year => 4,
        TimeField::MonthName => 3,
        TimeField::ShortYear
        | TimeField::Month
        | TimeField::Day
        | TimeField::PaddedDay
        | TimeField::Hour
        | TimeField::Minute
        | TimeField::Second => 2,
        TimeField::Fraction(digits) => u64::from(*digits),
        TimeField::PointFraction(digits) => u64::from(digits.unwrap_or(3)) + 1,
        TimeField::Epoch => 10,
        TimeField::Offset => 5,
        TimeField::OffsetColon => 6,
    }
}

const fn check_range(holds: bool) -> Result<(), TemplateError> {
    if holds {
        Ok(())
    } else {
        Err(TemplateError::Empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(
        root: TemplatePart,
        definitions: Vec<TemplatePart>,
    ) -> Result<Between<u64>, TemplateError> {
        TemplatePlan {
            root,
            definitions,
            variables: 1,
        }
        .lengths()
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        use TemplatePart as P;
        let text = |text: &str| P::Text(text.to_owned());
        let choice = P::Choice(vec![(1, text("abc")), (0, text("a")), (3, P::Use(0))]);
        assert_eq!(lengths(choice, vec![text("12345")]), Ok(Between::new(3, 5)));
        assert_eq!(
            lengths(P::Use(0), vec![P::Use(1), P::Use(0)]),
            Err(TemplateError::Circle { index: 0 })
        );
        assert_eq!(
            lengths(P::Use(1), vec![]),
            Err(TemplateError::NoDefinition { index: 1 })
        );
        assert_eq!(
            lengths(P::Variable(0), vec![]),
            Err(TemplateError::NoVariable { index: 0 })
        );
        assert_eq!(
            lengths(P::Choice(vec![(0, text("a"))]), vec![]),
            Err(TemplateError::Empty)
        );
        let mut deep = text("a");
        for _ in 0..100 {
            deep = P::Sequence(vec![deep]);
        }
        assert_eq!(lengths(deep, vec![]), Err(TemplateError::TooDeep));
        // Each uses the one before it twice: nothing is written, without end.
        let mut definitions = vec![text("")];
        for index in 0..40 {
            definitions.push(P::Sequence(vec![P::Use(index), P::Use(index)]));
        }
        let long = lengths(P::Use(40), definitions);
        assert!(matches!(
            long,
            Err(TemplateError::TooDeep | TemplateError::TooLong { .. })
        ));
    }

    #[test]
    fn variables_hold_inside_only() {
        use TemplatePart as P;
        let with = P::With {
            variables: vec![(0, P::Text("abc".to_owned()))],
            part: Box::new(P::Sequence(vec![P::Variable(0), P::Variable(0)])),
        };
        assert_eq!(lengths(with.clone(), vec![]), Ok(Between::new(6, 6)));
        let after = P::Sequence(vec![with, P::Variable(0)]);
        assert_eq!(
            lengths(after, vec![]),
            Err(TemplateError::NoVariable { index: 0 })
        );
    }
}
