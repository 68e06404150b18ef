//! Times as patterns in the manner of `strftime`.

use serde::{Deserialize, Serialize};

/// A pattern of a date and a time.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TimePattern {
    /// Its fields, in order.
    pub fields: Vec<TimeField>,
}

/// A part of a time.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeField {
    /// This text.
    Text(String),
    /// `%Y`: the year in four digits.
    Year,
    /// `%y`: its last two digits.
    ShortYear,
    /// `%m`
    Month,
    /// `%b`: `Jan`
    MonthName,
    /// `%d`
    Day,
    /// `%e`: the day, filled up with a space.
    PaddedDay,
    /// `%H`
    Hour,
    /// `%M`
    Minute,
    /// `%S`
    Second,
    /// Parts of a second in this many digits: `%3f`, `%6f`, `%9f`; `%f` is nine.
    Fraction(u8),
    /// The same behind a point: `%.3f`, `%.6f`, `%.9f`; `%.f` is as many as
    /// there are when read, and three when written.
    PointFraction(Option<u8>),
    /// `%s`: seconds since 1970.
    Epoch,
    /// `%z`: `+0000`
    Offset,
    /// `%:z`: `+00:00`
    OffsetColon,
}

/// Reason why a text is not a pattern of times.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TimePatternError {
    /// A field that is not known.
    #[error("`{field}` is not a known field of a time")]
    Unknown {
        /// The field.
        field: String,
    },
    /// `%Z`, whose names mean different offsets in different places.
    #[error("`%Z` does not state the offset: use `%z` or `%:z`")]
    ZoneName,
    /// There is no field in it.
    #[error("`{pattern}` has no field such as `%H`")]
    Empty {
        /// The pattern.
        pattern: String,
    },
}

impl TimePattern {
    /// Reads `pattern`: `%Y-%m-%dT%H:%M:%S`, say. `%F`, `%T`, `%D` and `%R` are
    /// their long forms; `%%` is a percent sign.
    ///
    /// # Errors
    /// When a field is not known, or there is none.
    pub fn parse(pattern: &str) -> Result<Self, TimePatternError> {
        let mut fields = Vec::new();
        let mut rest = pattern;
        while let Some((before, after)) = rest.split_once('%') {
            push_text(&mut fields, before);
            rest = field(&mut fields, after)?;
        }
        push_text(&mut fields, rest);
        if fields
            .iter()
            .all(|field| matches!(field, TimeField::Text(_)))
        {
            let pattern = pattern.to_owned();
            return Err(TimePatternError::Empty { pattern });
        }
        Ok(Self { fields })
    }
}

fn push_text(fields: &mut Vec<TimeField>, text: &str) {
    match fields.last_mut() {
        _ if text.is_empty() => {}
        Some(TimeField::Text(before)) => before.push_str(text),
        _ => fields.push(TimeField::Text(text.to_owned())),
    }
}

/// Reads the field that begins `text`, after its percent sign, and gives what
/// follows.
fn field<'t>(fields: &mut Vec<TimeField>, text: &'t str) -> Result<&'t str, TimePatternError> {
    use TimeField as T;
    let long = [
        (".3f", T::PointFraction(Some(3))),
        (".6f", T::PointFraction(Some(6))),
        (".9f", T::PointFraction(Some(9))),
        (".f", T::PointFraction(None)),
        ("3f", T::Fraction(3)),
        ("6f", T::Fraction(6)),
        ("9f", T::Fraction(9)),
        (":z", T::OffsetColon),
    ];
    for (name, field) in long {
        if let Some(rest) = text.strip_prefix(name) {
            fields.push(field);
            return Ok(rest);
        }
    }
    let mut characters = text.chars();
    let letter = characters.next();
    let short = match letter {
        Some('Y') => T::Year,
        Some('y') => T::ShortYear,
        Some('m') => T::Month,
        Some('b' | 'h') => T::MonthName,
        Some('d') => T::Day,
        Some('e') => T::PaddedDay,
        Some('H') => T::Hour,
        Some('M') => T::Minute,
        Some('S') => T::Second,
        Some('f') => T::Fraction(9),
        Some('s') => T::Epoch,
        Some('z') => T::Offset,
        _ => return composite(fields, letter).map(|()| characters.as_str()),
    };
    fields.push(short);
    Ok(characters.as_str())
}

fn composite(fields: &mut Vec<TimeField>, letter: Option<char>) -> Result<(), TimePatternError> {
    let long = match letter {
        Some('F') => "%Y-%m-%d",
        Some('T') => "%H:%M:%S",
        Some('D') => "%m/%d/%y",
        Some('R') => "%H:%M",
        Some('%') => {
            push_text(fields, "%");
            return Ok(());
        }
        Some('t') => {
            push_text(fields, "\t");
            return Ok(());
        }
        Some('Z') => return Err(TimePatternError::ZoneName),
        other => {
            let field = other.map_or_else(|| "%".to_owned(), |letter| format!("%{letter}"));
            return Err(TimePatternError::Unknown { field });
        }
    };
    fields.extend(TimePattern::parse(long)?.fields);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_or_refused() {
        use TimeField as T;
        let fields = |pattern| TimePattern::parse(pattern).map(|pattern| pattern.fields);
        assert_eq!(fields("%F").unwrap(), fields("%Y-%m-%d").unwrap());
        assert_eq!(
            fields("[%T%.3f %z] 100%%"),
            Ok(vec![
                T::Text("[".into()),
                T::Hour,
                T::Text(":".into()),
                T::Minute,
                T::Text(":".into()),
                T::Second,
                T::PointFraction(Some(3)),
                T::Text(" ".into()),
                T::Offset,
                T::Text("] 100%".into()),
            ])
        );
        assert_eq!(fields("%H %Z"), Err(TimePatternError::ZoneName));
        for bad in ["%Q", "%", "%-d", "%é"] {
            assert!(
                matches!(fields(bad), Err(TimePatternError::Unknown { .. })),
                "{bad}"
            );
        }
        for bad in ["", "now", "%%"] {
            assert!(
                matches!(fields(bad), Err(TimePatternError::Empty { .. })),
                "{bad}"
            );
        }
    }
}
