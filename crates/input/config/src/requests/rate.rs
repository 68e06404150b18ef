//! Rates as they are typed.

use std::str::FromStr;

use stillwell_plan::{LoadCurve, LoadStep};
use stillwell_units::{EventRate, Nanos};

use super::values::above_zero;

/// Rate of requests, as typed.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadRate {
    /// As fast as answers come.
    Max,
    /// By a schedule.
    Curve(LoadCurve),
}

const ACCEPTED: &str = "write max, 1000/s, 100/s..5k/s:30s, or 100/s:10s,1k/s:10s,500/s";

impl FromStr for LoadRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "max" {
            return Ok(Self::Max);
        }
        if let Some((from, to)) = text.split_once("..") {
            let (to, over) = to.split_once(':').ok_or_else(|| ACCEPTED.to_owned())?;
            return Ok(Self::Curve(LoadCurve::Ramp {
                from_per_second: rate(from, true)?,
                to_per_second: rate(to, true)?,
                over: length(over)?,
            }));
        }
        if text.contains([',', ':']) {
            let steps = text.split(',').map(step).collect::<Result<_, _>>()?;
            return Ok(Self::Curve(LoadCurve::Steps { steps }));
        }
        Ok(Self::Curve(LoadCurve::Constant {
            per_second: rate(text, false)?,
        }))
    }
}

fn step(text: &str) -> Result<LoadStep, String> {
    // The last one needs no length: it goes on anyhow.
    let (per_second, length_text) = match text.split_once(':') {
        Some((per_second, length)) => (per_second, Some(length)),
        None => (text, None),
    };
    Ok(LoadStep {
        per_second: rate(per_second, true)?,
        length: length_text.map_or(Ok(Nanos::SECOND), length)?,
    })
}

fn rate(text: &str, may_be_zero: bool) -> Result<f64, String> {
    let text = text.trim();
    if may_be_zero && matches!(text, "0" | "0/s") {
        return Ok(0.0);
    }
    let rate: EventRate = text
        .parse()
        .map_err(|error| format!("{error}; {ACCEPTED}"))?;
    Ok(rate.events_per_second())
}

fn length(text: &str) -> Result<Nanos, String> {
    above_zero(text).map_err(|error| format!("{error}; {ACCEPTED}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_as_written() {
        let constant = |per_second| LoadRate::Curve(LoadCurve::Constant { per_second });
        assert_eq!("max".parse(), Ok(LoadRate::Max));
        assert_eq!("1k/s".parse(), Ok(constant(1000.0)));
        assert_eq!("30/m".parse(), Ok(constant(0.5)));
        let ramp = LoadCurve::Ramp {
            from_per_second: 0.0,
            to_per_second: 5000.0,
            over: Nanos::from_secs(30),
        };
        assert_eq!("0..5k/s:30s".parse(), Ok(LoadRate::Curve(ramp)));
        let step = |per_second, seconds| LoadStep {
            per_second,
            length: Nanos::from_secs(seconds),
        };
        let steps = vec![step(100.0, 10), step(0.0, 2), step(500.0, 1)];
        let steps = LoadRate::Curve(LoadCurve::Steps { steps });
        assert_eq!("100/s:10s, 0/s:2s, 500/s".parse(), Ok(steps));
        for text in ["", "1000", "0/s", "1/s..2/s", "1/s:5", "fast"] {
            assert!(text.parse::<LoadRate>().is_err(), "{text}");
        }
    }
}
