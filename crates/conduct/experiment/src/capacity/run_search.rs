//! Bounds and range of a search over runs, and the requirements that a run must meet.

use stillwell_plan::capacity::{CapacityBound, CapacityFigure};
use stillwell_plan::{GeneratorPlan, RateUnit, RunPlan};
use stillwell_verdict::capacity::quantile_of;

/// Default bound of requests that get responses.
pub const ERRORS_BOUND: &str = "errors<1%";
/// Default bound of a run: a target that falls behind passes less on than it is sent.
const THROUGHPUT_BOUND: &str = "throughput>99%";
/// Additional default bound with stamps and a sink.
const LOSS_BOUND: &str = "loss<1%";
/// Range of a search around the rate in a file.
const AROUND: (f64, f64) = (0.1, 100.0);

/// The reason why a run cannot be searched as requested.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunSearchError {
    /// Neither the file nor the caller states a rate.
    #[error("the run's file has no rate to search around")]
    NoRate,
    /// The ends of the range count different units.
    #[error("--from and --to have different units")]
    UnitsDiffer,
    /// One end of the range is missing, and the file has no rate in the unit of the given end.
    #[error("the run's file has no rate in that unit")]
    NoRateInUnit {
        /// The option of the missing end.
        option: &'static str,
    },
    /// Runs do not measure the figure of a bound.
    #[error("a run has no {figure}")]
    NotMeasured {
        /// The figure.
        figure: CapacityFigure,
    },
    /// The number of connections cannot be varied.
    #[error("generator `{id}` has no connections to vary")]
    NoConnections {
        /// Name of the generator.
        id: String,
    },
}

impl RunSearchError {
    /// Returns advice for the user, if there is any.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::NoRate => "give --from and --to, such as 100/s or 1 MiB/s".to_owned(),
            Self::UnitsDiffer => return None,
            Self::NoRateInUnit { option } => format!("give {option}, too"),
            Self::NotMeasured { .. } => "it has p50, p90, p99 and p99.9".to_owned(),
            Self::NoConnections { .. } => {
                "leave out --objective to search for the highest rate".to_owned()
            }
        })
    }
}

/// Returns the default bounds of a run of `plan` whose `generator` is varied.
#[must_use]
pub fn default_bounds(plan: &RunPlan, generator: &GeneratorPlan) -> Vec<&'static str> {
    let mut bounds = vec![THROUGHPUT_BOUND];
    if generator.stamps.is_some() && !plan.sinks.is_empty() {
        // An event that the target drops is sent as well, and has no latency.
        bounds.push(LOSS_BOUND);
    } else if generator.has_responses() {
        // A refusal is a response, and may be a fast one.
        bounds.push(ERRORS_BOUND);
    }
    bounds
}

/// Returns the range of a search of the rate of `generator`, with its unit: the given ends, and otherwise a range around
/// the rate of the file.
///
/// # Errors
/// An end is neither given nor follows from the file, or the ends have different units.
pub fn search_range(
    generator: &GeneratorPlan,
    from: Option<(RateUnit, f64)>,
    to: Option<(RateUnit, f64)>,
) -> Result<(RateUnit, (f64, f64)), RunSearchError> {
    let stated = generator.rate.shape.constant();
    let unit = match (from.or(to), stated) {
        (Some((unit, _)), _) => unit,
        (None, Some(_)) => generator.rate.unit,
        (None, None) => return Err(RunSearchError::NoRate),
    };
    let stated = stated.filter(|_| generator.rate.unit == unit);
    let end = |given: Option<(RateUnit, f64)>, share: f64, option| match (given, stated) {
        (Some((given_unit, per_second)), _) if given_unit == unit => Ok(per_second),
        (Some(_), _) => Err(RunSearchError::UnitsDiffer),
        (None, Some(stated)) => Ok(stated * share),
        (None, None) => Err(RunSearchError::NoRateInUnit { option }),
    };
    Ok((
        unit,
        (end(from, AROUND.0, "--from")?, end(to, AROUND.1, "--to")?),
    ))
}

/// Checks that captures contain the metric of `bound`.
///
/// # Errors
/// [`RunSearchError::NotMeasured`]: they do not.
pub fn check_measurable(bound: &CapacityBound) -> Result<(), RunSearchError> {
    let figure = bound.figure;
    match figure {
        CapacityFigure::Latency(share) if quantile_of(share).is_none() => {
            Err(RunSearchError::NotMeasured { figure })
        }
        _ => Ok(()),
    }
}

/// Checks that the number of connections of `generator` can be varied.
///
/// # Errors
/// [`RunSearchError::NoConnections`]: it cannot.
pub fn check_connections(generator: &GeneratorPlan) -> Result<(), RunSearchError> {
    if generator.transport.properties().has_variable_connections {
        return Ok(());
    }
    let id = generator.id.clone();
    Err(RunSearchError::NoConnections { id })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stillwell_config::files::InMemory;
    use stillwell_config::{Loader, RunOverrides};

    use super::*;

    /// A run with one generator of these keys, and sinks.
    fn run(generator: &str, sinks: &str) -> RunPlan {
        let text = format!(
            "target: {{command: ./relay}}\nworkload:\n  generators: [{{{generator}}}]\n{sinks}"
        );
        let files = InMemory::with([("/run.yaml", text.as_str())]);
        let loader = Loader::new(&files, &[]);
        let loaded = loader.run_plan(Path::new("/run.yaml"), &RunOverrides::default());
        loaded.unwrap_or_else(|errors| panic!("{errors}")).plan
    }

    /// With a bound of latency alone, a service that refused all requests looked fast.
    #[test]
    fn a_run_is_bounded_by_failures_that_its_latency_does_not_have() {
        let (http, tcp) = ("http: 'http://127.0.0.1:9100/'", "tcp: '127.0.0.1:9100'");
        let (stamped, sinks) = (", stamps: all", "  sinks: [{tcp: '127.0.0.1:9200'}]\n");
        for (transport, stamps, sinks, expected) in [
            (http, "", "", vec![THROUGHPUT_BOUND, ERRORS_BOUND]),
            (http, "", sinks, vec![THROUGHPUT_BOUND, ERRORS_BOUND]),
            (http, stamped, sinks, vec![THROUGHPUT_BOUND, LOSS_BOUND]),
            (tcp, "", sinks, vec![THROUGHPUT_BOUND]),
            (tcp, stamped, sinks, vec![THROUGHPUT_BOUND, LOSS_BOUND]),
        ] {
            let plan = run(&format!("{transport}, payload: ascii{stamps}"), sinks);
            let bounds = default_bounds(&plan, &plan.generators[0]);
            assert_eq!(bounds, expected, "{transport}{stamps} {sinks}");
        }
    }

    #[test]
    fn a_range_has_the_given_ends_or_lies_around_the_rate_of_the_file() {
        let (events, bytes) = (RateUnit::Events, RateUnit::Bytes);
        let no_rate = |option| Err(RunSearchError::NoRateInUnit { option });
        for (rate, from, to, expected) in [
            ("", None, None, Err(RunSearchError::NoRate)),
            (", rate: 20/s", None, None, Ok((events, (2.0, 2000.0)))),
            (
                ", rate: 20/s",
                Some((events, 5.0)),
                None,
                Ok((events, (5.0, 2000.0))),
            ),
            (
                "",
                Some((bytes, 1.0)),
                Some((bytes, 2.0)),
                Ok((bytes, (1.0, 2.0))),
            ),
            (", rate: 20/s", Some((bytes, 1.0)), None, no_rate("--to")),
            ("", None, Some((events, 1.0)), no_rate("--from")),
            (
                "",
                Some((bytes, 1.0)),
                Some((events, 2.0)),
                Err(RunSearchError::UnitsDiffer),
            ),
        ] {
            let plan = run(&format!("tcp: '127.0.0.1:9100', payload: ascii{rate}"), "");
            let range = search_range(&plan.generators[0], from, to);
            assert_eq!(range, expected, "{rate} {from:?} {to:?}");
        }
    }

    #[test]
    fn a_search_needs_connections_to_vary_and_figures_that_captures_have() {
        for (transport, has_connections) in [
            ("tcp: '127.0.0.1:9100'", true),
            ("udp: '127.0.0.1:9100'", false),
        ] {
            let plan = run(&format!("{transport}, payload: ascii"), "");
            let checked = check_connections(&plan.generators[0]);
            assert_eq!(checked.is_ok(), has_connections, "{transport}");
        }
        for (bound, is_measured) in [("p99<1s", true), ("p95<1s", false), ("errors<1%", true)] {
            let bound: CapacityBound = bound.parse().unwrap();
            let checked = check_measurable(&bound);
            assert_eq!(checked.is_ok(), is_measured, "{bound}");
        }
    }
}
