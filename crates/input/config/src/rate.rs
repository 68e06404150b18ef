//! Rates as they are typed, in files and flags.

use stillwell_plan::rate::{Ramp, RateStep};
use stillwell_plan::{RatePlan, RateShape, RateUnit};
use stillwell_units::{ByteRate, EventRate, Nanos, ParseError, float_from_u64};

const ACCEPTED: &str =
    "`10 MiB/s`, `5k/s` or `max`, a ramp `0/s..5k/s:30s`, or steps `100/s:10s,1k/s:10s`";

/// Error of a rate's text.
#[derive(Debug, thiserror::Error)]
pub enum RateError {
    /// A number without a unit of time; the text to write instead.
    #[error("a rate needs a unit of time: {0}")]
    Unit(String),
    /// A ramp or steps of bytes and events.
    #[error("a rate counts either bytes or events")]
    Mixed,
    /// Not a rate, or out of bounds.
    #[error(transparent)]
    Value(#[from] ParseError),
}

/// A rate at one time; zero has no unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) unit: Option<RateUnit>,
    pub(crate) per_second: f64,
}

/// Reads `max`, a constant rate of bytes or events, a ramp, or steps.
///
/// # Errors
/// [`RateError`], with what is accepted.
pub fn parse_rate(text: &str) -> Result<RatePlan, RateError> {
    let text = text.trim();
    if text == "max" {
        return Ok(RatePlan::MAX);
    }
    let (shape, levels) = if let Some((from, rest)) = text.split_once("..") {
        let (to, over) = rest.split_once(':').ok_or_else(|| not_a_rate(text))?;
        let (from, to) = (parse_level(from)?, parse_level(to)?);
        (ramp(from, to, length(over)?), vec![from, to])
    } else {
        match split_steps(text)[..] {
            [text] if !text.contains(':') => {
                let level = parse_level(text)?;
                let per_second = level.per_second;
                (RateShape::Constant { per_second }, vec![level])
            }
            ref texts => steps(texts)?,
        }
    };
    Ok(RatePlan {
        unit: unit(text, &levels)?,
        shape,
    })
}

/// Reads the rate of a load, which counts requests.
///
/// # Errors
/// A message with what is accepted.
pub fn parse_request_rate(text: &str) -> Result<RateShape, String> {
    match parse_rate(text) {
        Ok(rate) if rate.is_max() || rate.unit == RateUnit::Events => Ok(rate.shape),
        Ok(_) => Err("a load counts requests, not bytes: write a rate such as 1000/s".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns an even change from one rate to another.
pub(crate) const fn ramp(from: Level, to: Level, over: Nanos) -> RateShape {
    RateShape::Ramp(Ramp {
        from_per_second: from.per_second,
        to_per_second: to.per_second,
        over,
    })
}

/// Returns the unit that all `levels` of `text` have, one of which is above zero.
pub(crate) fn unit(text: &str, levels: &[Level]) -> Result<RateUnit, RateError> {
    let mut units = levels.iter().filter_map(|level| level.unit);
    let Some(first) = units.next() else {
        return Err(RateError::Value(ParseError::Range {
            input: text.to_owned(),
            kind: "rate",
            bounds: "above zero",
        }));
    };
    match units.all(|unit| unit == first) {
        true => Ok(first),
        false => Err(RateError::Mixed),
    }
}

/// Reads a constant rate, which may be zero.
pub(crate) fn parse_level(text: &str) -> Result<Level, RateError> {
    let text = text.trim();
    if matches!(text, "0" | "0/s") {
        return Ok(Level {
            unit: None,
            per_second: 0.0,
        });
    }
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(not_a_rate(text));
    }
    let Some((amount, _)) = text.split_once('/') else {
        let hint = match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) {
            number if number.len() == text.len() => {
                format!("write `{text}/s` for events or `{text} KiB/s` for bytes")
            }
            // `100rps`, `100 qps`: what counts them is not part of a rate.
            number if text.ends_with("ps") || text.ends_with(" req") => {
                format!("write `{}/s`", number.trim_end())
            }
            _ => format!("write `{text}/s`"),
        };
        return Err(RateError::Unit(hint));
    };
    let (unit, per_second) = if amount.contains(['B', 'b']) {
        let rate: ByteRate = text.parse()?;
        (RateUnit::Bytes, float_from_u64(rate.bytes_per_second()))
    } else {
        let rate: EventRate = text.parse()?;
        (RateUnit::Events, rate.events_per_second())
    };
    Ok(Level {
        unit: Some(unit),
        per_second,
    })
}

/// The last step needs no length: it continues.
fn steps(texts: &[&str]) -> Result<(RateShape, Vec<Level>), RateError> {
    let (mut steps, mut levels) = (Vec::new(), Vec::new());
    for text in texts {
        let (level, length) = match text.split_once(':') {
            Some((level, over)) => (parse_level(level)?, length(over)?),
            None => (parse_level(text)?, Nanos::SECOND),
        };
        steps.push(RateStep {
            per_second: level.per_second,
            length,
        });
        levels.push(level);
    }
    Ok((RateShape::Steps { steps }, levels))
}

/// Splits at commas, but not at those behind a digit: `1,000/s` has thousands, and `0,5/s` is refused as a rate.
fn split_steps(text: &str) -> Vec<&str> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    for (comma, _) in text.match_indices(',') {
        let part = text[begin..comma].trim();
        if !part.ends_with(|c: char| c.is_ascii_digit()) {
            parts.push(part);
            begin = comma + 1;
        }
    }
    parts.push(&text[begin..]);
    parts
}

fn length(text: &str) -> Result<Nanos, RateError> {
    match text.parse()? {
        Nanos::ZERO => Err(RateError::Value(ParseError::Range {
            input: text.to_owned(),
            kind: "length",
            bounds: "above zero, such as 5s",
        })),
        length => Ok(length),
    }
}

fn not_a_rate(text: &str) -> RateError {
    RateError::Value(ParseError::Shape {
        input: text.to_owned(),
        kind: "rate",
        accepted: ACCEPTED,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> RateShape {
        parse_rate(text).unwrap().shape
    }

    #[test]
    fn constant_rates_read_as_typed() {
        for (text, unit, per_second) in [
            ("10 MiB/s", RateUnit::Bytes, 10_485_760.0),
            ("5k/s", RateUnit::Events, 5000.0),
            ("1,000/s", RateUnit::Events, 1000.0),
            ("300/m", RateUnit::Events, 5.0),
            ("30/m", RateUnit::Events, 0.5),
            ("1 B/s", RateUnit::Bytes, 1.0),
        ] {
            let rate = parse_rate(text).unwrap();
            assert_eq!(rate, RatePlan::constant(unit, per_second), "{text}");
        }
        assert!(parse_rate("max").unwrap().is_max());
    }

    #[test]
    fn ramps_and_steps_read_as_typed() {
        let ramp = |from_per_second, to_per_second| {
            RateShape::Ramp(Ramp {
                from_per_second,
                to_per_second,
                over: Nanos::from_secs(30),
            })
        };
        assert_eq!(shape("0..5k/s:30s"), ramp(0.0, 5000.0));
        assert_eq!(shape("4 KiB/s..1 KiB/s:30s"), ramp(4096.0, 1024.0));
        let step = |per_second, seconds| RateStep {
            per_second,
            length: Nanos::from_secs(seconds),
        };
        let steps = vec![step(1000.0, 10), step(0.0, 2), step(500.0, 1)];
        assert_eq!(
            shape("1,000/s:10s, 0/s:2s, 500/s"),
            RateShape::Steps { steps }
        );
        assert_eq!(parse_rate("0:1s,5 B/s").unwrap().unit, RateUnit::Bytes);
    }

    #[test]
    fn mistakes_name_what_is_accepted() {
        for (text, hint) in [
            ("", "steps `100/s:10s"),
            ("500 MiB", "write `500 MiB/s`"),
            ("500", "`500/s` for events"),
            ("0/s", "above zero"),
            ("0..0:1s", "above zero"),
            ("500 Mb/s", "not a size"),
            ("10 MiB/m", "write bytes per second, such as `10 MiB/s`"),
            ("fast", "`5k/s` or `max`"),
            ("1/s..2/s", "a ramp `0/s..5k/s:30s`"),
            ("1/s:5", "needs a unit"),
            ("1/s:0s", "above zero"),
            ("1/s..1 B/s:1s", "either bytes or events"),
        ] {
            let error = parse_rate(text).unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
        assert!(parse_request_rate("1 MiB/s").is_err());
    }

    #[test]
    fn a_decimal_comma_is_refused_and_never_begins_a_step() {
        for text in [
            "0,5/s",
            "1,5/s",
            "0,500/s",
            "0,5/s:10s,1/s",
            "1/s:10s,0,5/s",
            "0..1,5/s:10s",
            "0,5 MiB/s",
        ] {
            let error = parse_rate(text).unwrap_err();
            let is_shape = matches!(error, RateError::Value(ParseError::Shape { .. }));
            assert!(is_shape, "{text}: {error}");
        }
        let steps = |text| match shape(text) {
            RateShape::Steps { steps } => steps.len(),
            unexpected => panic!("{text}: {unexpected:?}"),
        };
        assert_eq!(steps("0/s,5/s"), 2);
        assert_eq!(steps("0:1s,1,500/s"), 2);
    }
}
