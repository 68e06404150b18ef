//! Values of a load as they are typed, one at a time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use stillwell_metric::LoadCounter;
use stillwell_plan::load::PredicatePlan;
use stillwell_units::{Nanos, as_usize};

/// Reads a time above zero.
///
/// # Errors
/// What is accepted.
pub fn above_zero(text: &str) -> Result<Nanos, String> {
    match text.parse() {
        Ok(Nanos::ZERO) => Err("write a time above zero, such as 5s".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(format!("{error}")),
    }
}

/// Reads a share from 0 to 1, or percent.
///
/// # Errors
/// What is accepted.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().map(|number| number / scale);
    match share {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a share from 0 to 1, or from 0% to 100%".to_owned()),
    }
}

/// Number of threads that send, as typed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Concurrency {
    /// This many.
    Workers(u16),
    /// One for each CPU that this process may use.
    Auto,
}

impl Concurrency {
    /// Returns the number of workers on a host that runs `cpus` threads at once; `auto`
    /// leaves no worker without a connection to each of `endpoints`.
    #[must_use]
    pub fn workers(self, cpus: usize, connections: u32, endpoints: usize) -> u16 {
        match self {
            Self::Workers(workers) => workers,
            Self::Auto => {
                let fed = as_usize(connections) / endpoints.max(1);
                u16::try_from(cpus.min(fed).max(1)).unwrap_or(u16::MAX)
            }
        }
    }
}

impl FromStr for Concurrency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Self::Auto),
            Ok(workers @ 1..) => Ok(Self::Workers(workers)),
            Ok(0) | Err(_) => Err("write a number of at least 1, or auto".to_owned()),
        }
    }
}

/// A header, typed as `name: value`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Header(pub String, pub String);

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A pseudo-header begins with a colon that is part of its name.
        let colon = text.get(1..).and_then(|rest| rest.find(':'));
        let colon = colon.ok_or_else(|| "write `name: value`".to_owned())? + 1;
        let (name, value) = (&text[..colon], &text[colon + 1..]);
        Ok(Self(name.trim().to_owned(), value.trim().to_owned()))
    }
}

/// A predicate, typed as `COUNTER:N`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Predicate(pub PredicatePlan);

impl FromStr for Predicate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || "write COUNTER:N, such as status_5xx:0".to_owned();
        let (counter, threshold) = text.rsplit_once(':').ok_or_else(shape)?;
        Ok(Self(PredicatePlan {
            counter: counter
                .parse::<LoadCounter>()
                .map_err(|error| error.to_string())?,
            threshold: threshold.parse().map_err(|_| shape())?,
        }))
    }
}

/// Rate of the messages of one call, as the time between two of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MessageRate(pub Nanos);

impl FromStr for MessageRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix("/s").unwrap_or(text);
        let rate: f64 = number.trim().parse().unwrap_or(0.0);
        // A slower rate is never waited for, and a faster one is no distance.
        if !(1e-6..=1e9).contains(&rate) {
            return Err("write messages a second, such as 10/s or 0.5/s".to_owned());
        }
        Ok(Self(Nanos::from_secs_f64(1.0 / rate)))
    }
}

/// Address of a page, typed as `[IP:]PORT`; on loopback without an IP address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PageListen(pub SocketAddr);

impl FromStr for PageListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = text.strip_prefix(':').unwrap_or(text);
        if let Ok(port) = port.parse() {
            return Ok(Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        let address = text.parse().map(Self);
        address.map_err(|_| "write a port, or IP:PORT such as 127.0.0.1:9464".to_owned())
    }
}

/// Label of all series, typed as `KEY=VALUE`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatsLabel(pub String, pub String);

impl FromStr for StatsLabel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = key.starts_with(is_first) && key.chars().all(is_plain);
        // Names that Prometheus reserves, and those of our own labels.
        if !is_name || key.starts_with("__") || matches!(key, "outcome" | "le") {
            return Err(format!("`{key}` cannot be the name of a label here"));
        }
        Ok(Self(key.to_owned(), value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_cut_at_the_first_colon_that_is_not_in_front() {
        for (text, name, value) in [
            ("a: b", "a", "b"),
            ("a:b:c", "a", "b:c"),
            (":authority: x", ":authority", "x"),
            ("a:", "a", ""),
        ] {
            let header = Header(name.to_owned(), value.to_owned());
            assert_eq!(text.parse(), Ok(header), "{text}");
        }
        for text in ["", "a", ":", ":a"] {
            assert!(text.parse::<Header>().is_err(), "{text}");
        }
    }

    #[test]
    fn predicates_name_a_counter_that_there_is() {
        let Predicate(plan) = "benchmark.http_2xx:24".parse().unwrap();
        assert_eq!(
            (plan.counter.to_string().as_str(), plan.threshold),
            ("ok", 24)
        );
        let error = "benchmark.http_2x:24".parse::<Predicate>().unwrap_err();
        assert!(
            error.contains("unknown counter `benchmark.http_2x`"),
            "{error}"
        );
        for text in ["status_5xx", "status_5xx:-1", "status_5xx:a"] {
            assert!(text.parse::<Predicate>().is_err(), "{text}");
        }
    }

    #[test]
    fn rates_of_messages_are_distances() {
        for (text, millis) in [("10/s", 100), ("0.5/s", 2000), ("4", 250)] {
            assert_eq!(text.parse(), Ok(MessageRate(Nanos::from_millis(millis))));
        }
        for text in ["", "0/s", "-1/s", "x", "inf", "NaN"] {
            assert!(text.parse::<MessageRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_page_is_on_loopback_by_default() {
        for (text, address) in [
            ("9464", "127.0.0.1:9464"),
            (":9464", "127.0.0.1:9464"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:2", "[::1]:2"),
        ] {
            let PageListen(read) = text.parse().unwrap();
            assert_eq!(read, address.parse().unwrap());
        }
        for text in ["localhost", "localhost:9464"] {
            assert!(text.parse::<PageListen>().is_err(), "{text}");
        }
    }

    #[test]
    fn labels_have_names_that_every_receiver_accepts() {
        assert_eq!(
            "a_1=b=c".parse(),
            Ok(StatsLabel("a_1".to_owned(), "b=c".to_owned()))
        );
        for text in ["a", "1a=b", "=b", "a.b=c", "__a=b", "outcome=ok", "le=1"] {
            assert!(text.parse::<StatsLabel>().is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_of_one_or_percent() {
        for (text, value) in [("0", 0.0), ("1", 1.0), ("0.25", 0.25), ("1 %", 0.01)] {
            assert!((share(text).unwrap() - value).abs() < 1e-12, "{text}");
        }
        for text in ["", "2", "-0.1", "101%", "NaN", "half"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
