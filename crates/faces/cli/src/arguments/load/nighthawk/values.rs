//! Values as Nighthawk reads them, refused in its words.

use stillwell_nighthawk::format::LoadFormat;
use stillwell_plan::PredicatePlan;
use stillwell_units::Nanos;

use super::NighthawkPredicate;
use crate::arguments::load::{Concurrency, Header};

/// Above this a number was negative, for those who read it without a sign.
const COUNT_MAX: u32 = u32::MAX - 30_000;

/// A number from `LEAST` to `MOST`.
pub(super) fn count<const LEAST: u32, const MOST: u32>(text: &str) -> Result<u32, String> {
    let number = match text.parse::<i64>() {
        Ok(number) => u32::try_from(number).ok(),
        Err(_) => return Err(format!("Couldn't read argument value from string '{text}'")),
    };
    let number = number.filter(|number| *number <= COUNT_MAX);
    let number = number.ok_or_else(|| format!("Invalid value '{text}'"))?;
    if (LEAST..=MOST).contains(&number) {
        return Ok(number);
    }
    Err(match MOST {
        u32::MAX => format!("value must be greater than or equal to {LEAST}"),
        _ => format!("value must be inside range [{LEAST}, {MOST}]"),
    })
}

/// Whole seconds, or a time with its unit.
pub(super) fn seconds(text: &str) -> Result<Nanos, String> {
    match text.parse::<i64>() {
        Ok(seconds) => {
            let seconds = u32::try_from(seconds).ok().filter(|own| *own <= COUNT_MAX);
            let seconds = seconds.ok_or_else(|| format!("Invalid value '{text}'"))?;
            Ok(Nanos::from_secs(seconds.into()))
        }
        Err(_) => length(text),
    }
}

/// A time with its unit; `.5s` is one.
pub(super) fn length(text: &str) -> Result<Nanos, String> {
    if text.starts_with('-') {
        return Err(format!("Invalid value '{text}': it is out of range"));
    }
    let whole = match text.strip_prefix('.') {
        Some(fraction) => format!("0.{fraction}"),
        None => text.to_owned(),
    };
    whole.parse().map_err(|error| format!("{error}"))
}

pub(super) fn concurrency(text: &str) -> Result<Concurrency, String> {
    if text == "auto" {
        return Ok(Concurrency::Auto);
    }
    match text.parse::<i64>() {
        Ok(..=0) => Err("Value for --concurrency should be greater then 0.".to_owned()),
        Ok(number) => u16::try_from(number)
            .map(Concurrency::Workers)
            .map_err(|_| "Value out of range: --concurrency".to_owned()),
        Err(_) => Err("Invalid value for --concurrency".to_owned()),
    }
}

pub(super) fn termination(text: &str) -> Result<NighthawkPredicate, String> {
    predicate("Termination", text)
}

pub(super) fn failure(text: &str) -> Result<NighthawkPredicate, String> {
    predicate("Failure", text)
}

fn predicate(kind: &str, text: &str) -> Result<NighthawkPredicate, String> {
    let badly = || format!("{kind} predicate '{text}' is badly formatted.");
    let (name, threshold) = text.rsplit_once(':').ok_or_else(badly)?;
    let threshold = threshold.trim().parse();
    let threshold = threshold
        .map_err(|_| format!("{kind} predicate '{text}' has an out of range threshold."))?;
    let counter = name.trim().parse();
    let counter = counter.map_err(|error: stillwell_metric::CounterError| {
        format!("{badly}: {error}", badly = badly())
    })?;
    Ok(NighthawkPredicate {
        name: name.trim().to_owned(),
        plan: PredicatePlan { counter, threshold },
    })
}

/// `IPv4:port`, `[IPv6]:port` or `DNS:port`.
pub(super) fn endpoint(text: &str) -> Result<String, String> {
    let wrong = || {
        format!(
            "--multi-target-endpoint must be in the format IPv4:port, [IPv6]:port, or DNS:port. \
             Got '{text}'"
        )
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    if host.is_empty() || !is_port || (host.contains(':') && !is_bracketed) {
        return Err(wrong());
    }
    Ok(text.to_owned())
}

pub(super) fn header(text: &str) -> Result<Header, String> {
    text.parse()
        .map_err(|error| format!("--request-header '{text}': {error}"))
}

pub(super) fn output_format(text: &str) -> Result<LoadFormat, String> {
    text.parse().map_err(|error| format!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_refused_in_nighthawks_words() {
        let rps = count::<1, 1_000_000>;
        assert_eq!(rps("1000000"), Ok(1_000_000));
        for (text, says) in [
            ("0", "value must be inside range [1, 1000000]"),
            ("1000001", "value must be inside range [1, 1000000]"),
            ("-1", "Invalid value '-1'"),
            ("4294937296", "Invalid value '4294937296'"),
            ("a", "Couldn't read argument value from string 'a'"),
        ] {
            assert_eq!(rps(text), Err(says.to_owned()));
        }
        assert_eq!(count::<1, { u32::MAX }>("4294937295"), Ok(COUNT_MAX));
    }

    #[test]
    fn times_may_lack_their_unit_or_their_zero() {
        assert_eq!(seconds("3"), Ok(Nanos::from_secs(3)));
        assert_eq!(seconds("500ms"), Ok(Nanos::from_millis(500)));
        assert_eq!(length(".00001s"), Ok(Nanos::new(10_000)));
        assert!(seconds("-1").is_err() && length("-1s").is_err() && length("1").is_err());
    }

    #[test]
    fn predicates_and_endpoints_are_refused_in_nighthawks_words() {
        let read = termination("benchmark.http_2xx:24").unwrap();
        assert_eq!(
            (read.name.as_str(), read.plan.threshold),
            ("benchmark.http_2xx", 24)
        );
        for (text, says) in [
            (
                "a:a",
                "Termination predicate 'a:a' has an out of range threshold.",
            ),
            ("a", "Termination predicate 'a' is badly formatted."),
        ] {
            assert_eq!(termination(text), Err(says.to_owned()));
        }
        let error = failure("benchmark.http_2x:0").unwrap_err();
        assert!(
            error.contains("there is no counter `benchmark.http_2x`"),
            "{error}"
        );
        for text in ["127.0.0.1:80", "[::1]:80", "a:1"] {
            assert_eq!(endpoint(text).as_deref(), Ok(text));
        }
        for text in ["a", "a:0", "::1:80", ":80", "a:b"] {
            assert!(endpoint(text).unwrap_err().contains(text), "{text}");
        }
    }
}
