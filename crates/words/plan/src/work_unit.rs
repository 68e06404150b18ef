//! The unit of work of generators, as reports name it.

use serde::{Deserialize, Serialize};
use stillwell_units::human::{bytes, grouped};

use crate::{GeneratorPlan, RateUnit, TransportPlan};

/// Unit of the work of a generator, as reports name it: `2,500 requests/s`, `CPU per request`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkUnit {
    /// Payload bytes.
    Bytes,
    /// Whole blocks.
    Blocks,
    /// Events of a payload.
    #[default]
    Events,
    /// Requests to an HTTP or gRPC service.
    Requests,
    /// Users that follow the steps of a scenario.
    Users,
}

impl WorkUnit {
    /// Every unit.
    pub const ALL: [Self; 5] = [
        Self::Bytes,
        Self::Blocks,
        Self::Events,
        Self::Requests,
        Self::Users,
    ];

    /// Returns the unit of what `generators` send: requests if all of them send requests, else events.
    #[must_use]
    pub fn of(generators: &[GeneratorPlan]) -> Self {
        let units = generators.iter().map(|generator| {
            match generator.transport.properties().unit {
                // A user sends requests.
                Self::Users => Self::Requests,
                unit => unit,
            }
        });
        Self::common(units)
    }

    /// Returns the unit that all `units` are, else events.
    #[must_use]
    pub fn common(mut units: impl Iterator<Item = Self>) -> Self {
        let first = units.next().unwrap_or_default();
        match units.all(|unit| unit == first) {
            true => first,
            false => Self::Events,
        }
    }

    /// Returns the unit of a rate that counts `unit` and belongs to a generator with this transport. A transport without
    /// payload counts no bytes, although a rate of `max` is a rate of bytes.
    #[must_use]
    pub fn of_rate(unit: RateUnit, transport: &TransportPlan) -> Self {
        let properties = transport.properties();
        match unit {
            RateUnit::Bytes if properties.sends_payload => Self::Bytes,
            RateUnit::Blocks => Self::Blocks,
            RateUnit::Bytes | RateUnit::Events => properties.unit,
        }
    }

    /// Returns the noun for several of them: `requests`.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Blocks => "blocks",
            Self::Events => "events",
            Self::Requests => "requests",
            Self::Users => "users",
        }
    }

    /// Returns the noun for one of them: `request`.
    #[must_use]
    pub const fn singular(self) -> &'static str {
        match self {
            Self::Bytes => "byte",
            Self::Blocks => "block",
            Self::Events => "event",
            Self::Requests => "request",
            Self::Users => "user",
        }
    }

    /// Returns a rate with its unit: `2,500 requests/s`, `12.0 MiB/s`.
    #[must_use]
    pub fn rate(self, per_second: f64) -> String {
        if self == Self::Bytes {
            return format!("{}/s", bytes(per_second));
        }
        let number = match per_second.abs() {
            size if size < 9.995 => {
                let digits = format!("{per_second:.2}");
                let digits = digits.trim_end_matches('0').trim_end_matches('.');
                digits.to_owned()
            }
            _ => grouped(per_second),
        };
        format!("{number} {}/s", self.plural())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::MessageLength;

    #[test]
    fn a_rate_has_the_digits_that_matter_and_its_unit() {
        for (unit, per_second, text) in [
            (WorkUnit::Bytes, 12.0 * 1024.0 * 1024.0, "12.0 MiB/s"),
            (WorkUnit::Requests, 2500.0, "2,500 requests/s"),
            (WorkUnit::Users, 0.5, "0.5 users/s"),
            (WorkUnit::Events, 3.0, "3 events/s"),
            (WorkUnit::Blocks, 0.0, "0 blocks/s"),
            (WorkUnit::Requests, 9.994, "9.99 requests/s"),
            (WorkUnit::Requests, 9.996, "10 requests/s"),
        ] {
            assert_eq!(unit.rate(per_second), text);
        }
    }

    #[test]
    fn requests_and_users_count_only_in_generators_that_have_them() {
        let tcp = TransportPlan::Tcp {
            address: String::new(),
        };
        let unit = |unit| WorkUnit::of_rate(unit, &tcp);
        assert_eq!(unit(RateUnit::Events), WorkUnit::Events);
        assert_eq!(unit(RateUnit::Bytes), WorkUnit::Bytes);
        assert_eq!(unit(RateUnit::Blocks), WorkUnit::Blocks);
    }

    /// A generator of containers reported 1.33 bytes per second.
    #[test]
    fn without_a_payload_no_bytes_are_counted() {
        let round_trips = TransportPlan::TcpRr {
            address: String::new(),
            request_bytes: MessageLength::MIN,
            response_bytes: MessageLength::MIN,
        };
        assert_eq!(
            WorkUnit::of_rate(RateUnit::Bytes, &round_trips),
            WorkUnit::Events
        );
    }

    #[test]
    fn units_that_differ_are_events() {
        let common = |units: &[WorkUnit]| WorkUnit::common(units.iter().copied());
        let (requests, events) = (WorkUnit::Requests, WorkUnit::Events);
        assert_eq!(common(&[requests, requests]), requests);
        assert_eq!(common(&[requests, events]), events);
        assert_eq!(common(&[]), events);
    }
}
