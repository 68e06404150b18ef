//! One session: loads one after the other, until the search has an answer.

use std::error::Error;

use stillwell_scope::clock;
use stillwell_units::{Nanos, floor_to_u64};

use super::control::{Controller, ControllerStep};
use super::{BenchmarkResult, Evaluation, MetricError, SessionOutput, SessionSpec};
use crate::request::{NighthawkRequest, RequestError};
use crate::{CommandLineOptions, Output};

/// The side of a session that makes loads and shows progress.
pub trait SessionLoads {
    /// Makes one load and returns its result.
    ///
    /// # Errors
    /// No result.
    fn load(&mut self, request: &NighthawkRequest) -> Result<Output, Box<dyn Error + Send + Sync>>;

    /// Returns whether the session is to end: a load that was cut short says nothing.
    fn is_interrupted(&self) -> bool;

    /// Reports progress.
    fn report(&mut self, event: SessionEvent<'_>);

    /// Waits before the next load.
    fn cool_down(&self, length: Nanos);
}

/// Progress of a session. Rates are requests per second of each worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SessionEvent<'e> {
    /// A load has ended.
    Loaded {
        /// Rate of the load.
        rate: u64,
        /// True if all thresholds held.
        holds: bool,
        /// Metrics of the load.
        evaluations: &'e [Evaluation],
    },
    /// The search has its answer, which the last load tests.
    Converged {
        /// The highest rate at which thresholds held.
        rate: u64,
    },
    /// Thresholds did not hold in the last load.
    TestingFailed,
}

/// A session that ends without an answer. [`SessionOutput`] has the loads before.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Thresholds fail at the first rate already.
    #[error(
        "thresholds do not hold at the first rate of {initial} requests/s: lower initial_value"
    )]
    FirstRate {
        /// The rate.
        initial: f64,
    },
    /// The deadline came before the answer.
    #[error("the search did not converge within {deadline}: raise convergence_deadline")]
    NotConverged {
        /// The deadline.
        deadline: Nanos,
    },
    /// A signal ended the session.
    #[error("interrupted")]
    Interrupted,
    /// The template describes no load.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A load has no result.
    #[error(transparent)]
    Load(Box<dyn Error + Send + Sync>),
    /// A metric is unknown.
    #[error(transparent)]
    Metric(#[from] MetricError),
}

/// A template that describes no load of a session.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// A field that would change nothing.
    #[error("nighthawk_traffic_template.{field} has no effect here: leave it out")]
    WithoutEffect {
        /// The field.
        field: &'static str,
    },
    /// A service that would make the loads.
    #[error(
        "nighthawk_traffic_template.nighthawk_service names another service, but this process runs the load"
    )]
    Service,
    /// No target.
    #[error("nighthawk_traffic_template has neither uri nor multi_target")]
    NoTarget,
    /// A value outside of its range.
    #[error("Bad argument: {0}")]
    Value(RequestError),
    /// A field that no request has.
    #[error("nighthawk_traffic_template.{}", field_of(.0))]
    Field(RequestError),
}

/// Returns `error` with the name of a field first.
fn field_of(error: &RequestError) -> String {
    let why = error.to_string();
    why.strip_prefix("options.").unwrap_or(&why).to_owned()
}

impl SessionSpec {
    /// Searches the highest rate at which thresholds hold, and tests it. Results go to
    /// `output` load after load.
    ///
    /// # Errors
    /// [`SessionError`]; `output` has the loads before.
    pub fn run(
        &self,
        loads: &mut dyn SessionLoads,
        output: &mut SessionOutput,
    ) -> Result<(), SessionError> {
        let begin = clock::now();
        let mut controller = Controller::new(self.search);
        let rate = loop {
            let rate = match controller.step() {
                ControllerStep::Converged(rate) => break whole(rate),
                ControllerStep::FirstRateFailed => {
                    let initial = self.search.initial;
                    return Err(SessionError::FirstRate { initial });
                }
                ControllerStep::Load(rate) => whole(rate),
            };
            if clock::now().since(begin) > self.convergence_deadline {
                return Err(SessionError::NotConverged {
                    deadline: self.convergence_deadline,
                });
            }
            let (result, holds) = self.load(rate, self.measuring_period, loads)?;
            output.adjusting.push(result);
            controller.observe(holds);
            loads.cool_down(self.cooldown);
        };
        loads.report(SessionEvent::Converged { rate });
        let (result, holds) = self.load(rate, self.testing_stage, loads)?;
        output.testing = Some(result);
        if !holds {
            loads.report(SessionEvent::TestingFailed);
        }
        Ok(())
    }

    /// Makes one load, and returns whether all thresholds held.
    fn load(
        &self,
        rate: u64,
        length: Nanos,
        loads: &mut dyn SessionLoads,
    ) -> Result<(BenchmarkResult, bool), SessionError> {
        let request = self.request(rate, length)?;
        let started = clock::wall();
        let output = loads.load(&request).map_err(SessionError::Load)?;
        let ended = clock::wall();
        if loads.is_interrupted() {
            return Err(SessionError::Interrupted);
        }
        let (evaluations, holds) = self.evaluate(&output)?;
        loads.report(SessionEvent::Loaded {
            rate,
            holds,
            evaluations: &evaluations,
        });
        let result = BenchmarkResult {
            output,
            evaluations,
            started,
            ended,
        };
        Ok((result, holds))
    }

    /// Returns the load of the template at `rate`, in requests per second of each worker.
    ///
    /// # Errors
    /// [`TemplateError`].
    pub fn request(&self, rate: u64, length: Nanos) -> Result<NighthawkRequest, TemplateError> {
        let template = &self.template;
        if let Some(field) = field_without_effect(template) {
            return Err(TemplateError::WithoutEffect { field });
        }
        if template.nighthawk_service.is_some() {
            return Err(TemplateError::Service);
        }
        if template.uri.is_none() && template.multi_target.is_none() {
            return Err(TemplateError::NoTarget);
        }
        let is_bare = template.failure_predicates.is_empty();
        let options = CommandLineOptions {
            requests_per_second: Some(u32::try_from(rate).unwrap_or(u32::MAX)),
            duration: Some(length),
            no_duration: None,
            // A search must see loads that fail.
            open_loop: Some(template.open_loop.unwrap_or(true)),
            no_default_failure_predicates: is_bare
                .then_some(true)
                .or(template.no_default_failure_predicates),
            ..template.clone()
        };
        NighthawkRequest::try_from(&options).map_err(|error| match error {
            RequestError::Value { .. } => TemplateError::Value(error),
            error => TemplateError::Field(error),
        })
    }
}

/// Rates of Nighthawk are whole numbers.
fn whole(rate: f64) -> u64 {
    floor_to_u64(rate).max(1)
}

/// Returns the first field of a template that would be read and change nothing.
fn field_without_effect(template: &CommandLineOptions) -> Option<&'static str> {
    let fields = [
        ("scheduled_start", template.scheduled_start.is_some()),
        ("execution_id", template.execution_id.is_some()),
        (
            "user_defined_plugin_configs",
            !template.user_defined_plugin_configs.is_empty(),
        ),
        ("verbosity", template.verbosity.is_some()),
        ("output_format", template.output_format.is_some()),
    ];
    let mut set = fields.into_iter().filter(|(_, is_set)| *is_set);
    set.next().map(|(field, _)| field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptive::ExponentialSearch;
    use crate::format::{LoadFormat, NighthawkFormat};
    use crate::request::{LogLevel, NighthawkLoad, NighthawkTarget, SequencerIdle};
    use crate::{IdleStrategy, Protocol};

    fn request(
        template: &CommandLineOptions,
        rate: u64,
        length: Nanos,
    ) -> Result<NighthawkRequest, TemplateError> {
        let spec = SessionSpec {
            template: template.clone(),
            thresholds: Vec::new(),
            informational: Vec::new(),
            search: ExponentialSearch {
                initial: 1.0,
                factor: 2.0,
            },
            measuring_period: length,
            convergence_deadline: length,
            testing_stage: length,
            cooldown: Nanos::ZERO,
        };
        spec.request(rate, length)
    }

    #[test]
    fn a_template_becomes_its_request() {
        let mut template = CommandLineOptions {
            uri: Some("http://a/".to_owned()),
            connections: Some(3),
            timeout: Some(Nanos::from_secs(5)),
            h2: Some(true),
            ..CommandLineOptions::default()
        };
        let read = request(&template, 7, Nanos::from_millis(1500)).unwrap();
        let expected = NighthawkLoad {
            rps: 7,
            connections: 3,
            duration: Some(Nanos::from_millis(1500)),
            timeout: Nanos::from_secs(5),
            open_loop: true,
            no_default_failure_predicates: true,
            ..NighthawkLoad::DEFAULT
        };
        assert_eq!(read.load, expected);
        assert_eq!(read.uri.as_deref(), Some("http://a/"));
        let expected = NighthawkTarget {
            h2: true,
            ..NighthawkTarget::default()
        };
        assert_eq!(read.target, expected);
        assert_eq!(read.output.verbosity, LogLevel::Warn);
        let json = LoadFormat::Nighthawk(NighthawkFormat::Json);
        assert_eq!(read.output.output_format, json);
        template.stats_sinks = vec![serde_json::json!({"name": "envoy.stat_sinks.statsd"})];
        template.stats_flush_interval = Some(2);
        template.sequencer_idle_strategy = Some(IdleStrategy::Sleep);
        let tunnel =
            serde_json::json!({"tunnel_uri": "http://p", "tunnel_protocol": {"value": "HTTP2"}});
        template
            .raw_fields
            .insert("tunnel_options".to_owned(), tunnel);
        let read = request(&template, 7, Nanos::SECOND).unwrap();
        assert_eq!(read.load.sequencer_idle_strategy, SequencerIdle::Sleep);
        assert_eq!(read.output.stats_flush_interval, Some(2));
        assert_eq!(read.target.tunnel_uri.as_deref(), Some("http://p"));
        assert_eq!(read.target.tunnel_protocol, Some(Protocol::Http2));
        template.uri = None;
        let error = request(&template, 7, Nanos::SECOND)
            .unwrap_err()
            .to_string();
        assert!(error.contains("neither uri nor multi_target"), "{error}");
    }

    #[test]
    fn fields_without_an_effect_are_refused_by_name() {
        let mut template = CommandLineOptions {
            uri: Some("http://a/".to_owned()),
            ..CommandLineOptions::default()
        };
        template
            .raw_fields
            .insert("nobody_knows".to_owned(), "{}".into());
        let error = request(&template, 7, Nanos::SECOND)
            .unwrap_err()
            .to_string();
        assert!(error.contains("template.nobody_knows"), "{error}");
        template.scheduled_start = Some(Nanos::SECOND);
        let error = request(&template, 7, Nanos::SECOND)
            .unwrap_err()
            .to_string();
        assert!(error.contains("template.scheduled_start"), "{error}");
    }
}
