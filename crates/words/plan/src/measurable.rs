//! Checks whose series a run never records.

mod recorders;

use stillwell_metric::{Kind, catalogue};

use crate::check::SeriesSelector;
use crate::observer::KernelSeries;
use crate::{CheckPlan, GeneratorPlan, GoalMetric, RunPlan, SinkPlan, TargetKind};

use recorders::{Parts, Recorders, place_of, records_series};

impl RunPlan {
    /// Returns the checks that no run of this plan can measure, each with the reason.
    #[must_use]
    pub fn unmeasurable_checks(&self) -> Vec<(&CheckPlan, String)> {
        let checks = self.checks.iter();
        checks
            .filter_map(|check| Some((check, self.missing_for(&check.series)?)))
            .collect()
    }

    /// Returns the reason why no run of this plan records a series; `None` if one can.
    #[must_use]
    pub fn missing_for(&self, series: &SeriesSelector) -> Option<String> {
        let (name, id) = (series.metric.as_str(), series.id.as_deref());
        let mut goals = GoalMetric::ALL.iter();
        if let Some(goal) = goals.find(|goal| goal.name() == name && id.is_none()) {
            return self.missing_for_goal(goal).map(str::to_owned);
        }
        let Some(place) = place_of(name) else {
            return self.missing_for_unlisted(name);
        };
        let missing = Recorders::of(place).find_map(|row| self.missing_part(row, id));
        let is_histogram = catalogue::ALL[place].kind == Kind::Histogram;
        missing.or_else(|| {
            is_histogram.then(|| {
                "it is a histogram: bound a quantile, such as `latency_p99`, `service_time_p99`, \
                 `first_byte_p99` or `event_latency_p99`"
                    .to_owned()
            })
        })
    }

    /// Returns true if a series is a number of things that a part of this plan counts: one that a run has not
    /// recorded was 0.
    #[must_use]
    pub fn counts(&self, series: &SeriesSelector) -> bool {
        let Some(place) = place_of(&series.metric) else {
            return false;
        };
        // Absent for other reasons: bodies without compression, events with one unit each, and drops that the
        // kernel does not show. The total has no part.
        let of_some = [
            catalogue::DECODED_BYTES_RECEIVED,
            catalogue::UNITS_WRITTEN,
            catalogue::DATAGRAMS_DROPPED,
            catalogue::TOTAL_BYTES_RECEIVED,
        ];
        let is_of_parts = Recorders::of(place)
            .any(|row| matches!(row.parts, Parts::Generators(_) | Parts::Sinks(_)));
        is_of_parts
            && catalogue::ALL[place].kind == Kind::Counter
            && of_some.iter().all(|metric| metric.name != series.metric)
            && self.missing_for(series).is_none()
    }

    /// Returns the reason why no part of this plan, or not the one called `id`, is of `row`.
    fn missing_part(&self, row: &Recorders, id: Option<&str>) -> Option<String> {
        let is_called = |part: &str| id.is_none_or(|id| id == part);
        let is_of = |plan: &GeneratorPlan| is_called(&plan.id);
        let is_of_sink = |plan: &SinkPlan| is_called(&plan.id);
        let (is_there, has_part) = match row.parts {
            Parts::Generators(are) => (
                self.generators.iter().any(is_of),
                self.generators.iter().any(|plan| is_of(plan) && are(plan)),
            ),
            Parts::Sinks(are) => (
                self.sinks.iter().any(is_of_sink),
                self.sinks.iter().any(|plan| is_of_sink(plan) && are(plan)),
            ),
            Parts::Run(is) => (true, is(self)),
        };
        match id {
            _ if has_part => None,
            Some(id) if !is_there => Some(match row.parts {
                Parts::Sinks(_) => format!("no sink is called `{id}`"),
                _ => format!("no generator is called `{id}`"),
            }),
            _ => Some(row.missing.to_owned()),
        }
    }

    fn missing_for_goal(&self, goal: &GoalMetric) -> Option<&'static str> {
        let series = match goal {
            GoalMetric::Duplicated => catalogue::EVENTS_DUPLICATED,
            GoalMetric::EventLatency(_) => catalogue::EVENT_LATENCY,
            GoalMetric::FirstByte(_) => catalogue::FIRST_BYTE_TIME,
            goal if goal.is_of_answers() => catalogue::RESPONSE_TIME,
            _ => return None,
        };
        let mut rows = Recorders::of(place_of(series.name)?);
        let row = rows.find(|row| self.missing_part(row, None).is_some());
        row.map(|row| row.missing)
    }

    /// The same for a name outside of the catalogue: the kernel's, or the target's own.
    fn missing_for_unlisted(&self, name: &str) -> Option<String> {
        let mut kernel = KernelSeries::default();
        kernel.request(name);
        if !kernel.is_none() {
            let has_target = !matches!(self.target.kind, TargetKind::None);
            return (!has_target && !kernel.vmstat).then(|| "there is no target".to_owned());
        }
        let receives_series = self.sinks.iter().any(records_series);
        let is_recorded = receives_series || !self.observer.scrapes.is_empty();
        (!is_recorded).then(|| {
            "no part of this run records it, and no page of the target's metrics is scraped"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Aggregation, SeriesSelector};
    use crate::estimate::tests::experiment;
    use crate::{GoalPlan, StoppingPlan};

    fn reason(run_plan: &mut RunPlan, metric: &str, id: Option<&str>) -> Option<String> {
        run_plan.checks = vec![CheckPlan {
            name: "check".to_owned(),
            description: None,
            series: SeriesSelector {
                metric: metric.to_owned(),
                id: id.map(str::to_owned),
                aggregation: Aggregation::Each,
            },
            upper: Some(1.0),
            lower: None,
        }];
        let reasons = run_plan.unmeasurable_checks();
        reasons.into_iter().next().map(|(_, reason)| reason)
    }

    #[test]
    fn a_series_without_its_part_is_never_measured() {
        let mut run_plan = experiment(StoppingPlan::DEFAULT).run_plan;
        for (metric, id, words) in [
            ("bytes_written", None, "no generator"),
            ("connections_open", None, "no sink"),
            ("target_requests", None, "no page"),
        ] {
            let reason = reason(&mut run_plan, metric, id).expect(metric);
            assert!(reason.contains(words), "{metric}: {reason}");
        }
        assert!(reason(&mut run_plan, "total_rss_bytes", None).is_some());
        run_plan.target.kind = TargetKind::Pid(1);
        for metric in ["total_rss_bytes", "loss", "vmstat.pgfault"] {
            assert_eq!(reason(&mut run_plan, metric, None), None, "{metric}");
        }
    }

    /// A reason names what the plan lacks.
    #[test]
    fn a_series_that_no_part_of_this_kind_records_is_never_measured() {
        let mut run_plan = experiment(StoppingPlan::DEFAULT).run_plan;
        run_plan.generators = vec![generator("g")];
        run_plan.sinks = vec![sink("s")];
        for (metric, words) in [
            ("data_points_transmitted", "one item"),
            ("response_time", "waits for responses"),
            ("ack_ids_acked", "polls"),
            ("response_bytes", "`grpc`"),
            ("requests_scheduled", "only `load`"),
            ("target_restarts", "no step"),
            ("decoded_bytes_received", "replaces a service"),
            ("messages_received", "neither requests nor datagrams"),
            ("datagrams_dropped", "`udp`"),
            ("bodies_parsed", "`datadog`"),
            ("calls_received", "gRPC"),
            ("statuses", "`http`"),
            ("requests_again", "`splunk_hec`"),
            ("requests_refused", "no step"),
            ("stamped_events_sent", "stamps: all"),
            ("prefixes_read", "time prefixes"),
            ("missed_bytes", "growing logs"),
            ("fs_read", "growing logs"),
            ("disk_fsyncs", "disk"),
            ("scrape_ok", "scraped"),
            ("duplicated", "stamps: all"),
            ("latency_p99", "waits for responses"),
        ] {
            let reason = reason(&mut run_plan, metric, None).expect(metric);
            assert!(reason.contains(words), "{metric}: {reason}");
        }
        for (metric, id) in [
            ("bytes_written", "g"),
            ("connections_open", "s"),
            ("sink_errors", "s"),
        ] {
            assert_eq!(reason(&mut run_plan, metric, Some(id)), None, "{metric}");
            let reason = reason(&mut run_plan, metric, Some("x")).expect(metric);
            assert!(reason.ends_with("is called `x`"), "{metric}: {reason}");
        }
    }

    #[test]
    fn parts_of_other_kinds_record_what_they_have() {
        let mut run_plan = experiment(StoppingPlan::DEFAULT).run_plan;
        let url = || "http://127.0.0.1:1/".to_owned();
        let http = crate::TransportPlan::Http {
            url: url(),
            headers: Vec::new(),
            exchange: Box::default(),
        };
        run_plan.generators = vec![GeneratorPlan {
            transport: http,
            ..generator("g")
        }];
        run_plan.sinks = vec![sink("s")];
        for metric in [
            "statuses",
            "latency_p99",
            "connections_max",
            "connections_accepted",
        ] {
            assert_eq!(reason(&mut run_plan, metric, None), None, "{metric}");
        }
        for metric in ["first_byte_time", "response_time"] {
            let reason = reason(&mut run_plan, metric, None).expect(metric);
            assert!(reason.contains("histogram"), "{metric}: {reason}");
        }
        run_plan.generators[0].transport = crate::TransportPlan::Grpc { url: url() };
        run_plan.sinks[0].protocol = crate::SinkProtocol::Intake {
            service: crate::sink::IntakeService::Loki,
            address: ([127, 0, 0, 1], 1).into(),
            delay: stillwell_units::Nanos::ZERO,
            connections_max: 1,
        };
        for metric in ["response_bytes", "calls_received", "bodies_malformed"] {
            assert_eq!(reason(&mut run_plan, metric, None), None, "{metric}");
        }
    }

    /// A part of the right kind that is not set up for a series does not record it.
    #[test]
    fn parts_that_do_not_record_it_are_no_recorders() {
        use crate::step::{StepAction, StepPlan, TargetChange};

        let mut run_plan = experiment(StoppingPlan::DEFAULT).run_plan;
        run_plan.generators = vec![GeneratorPlan {
            stamps: Some(crate::StampPlan {
                every: std::num::NonZeroU32::MIN,
                copies: 1,
                late_after: None,
                form: crate::stamp::StampForm::Text,
            }),
            ..generator("g")
        }];
        let no_sink = reason(&mut run_plan, "events_damaged", None);
        assert!(no_sink.is_some_and(|reason| reason.contains("no sink")));
        run_plan.sinks = vec![sink("s")];
        run_plan.sinks[0].protocol = crate::SinkProtocol::Intake {
            service: crate::sink::IntakeService::Datadog {
                record: crate::sink::SeriesRecord::None,
            },
            address: ([127, 0, 0, 1], 1).into(),
            delay: stillwell_units::Nanos::ZERO,
            connections_max: 1,
        };
        for metric in ["points_skipped", "series_of_the_target"] {
            assert!(reason(&mut run_plan, metric, None).is_some(), "{metric}");
        }
        run_plan.timeline = vec![StepPlan {
            at: stillwell_units::Nanos::ZERO,
            action: StepAction::Target(TargetChange::Pause),
        }];
        assert!(reason(&mut run_plan, "target_restarts", None).is_some());
    }

    /// Nothing is counted until it happens: a bound of 0 on errors is kept, not unmeasured.
    #[test]
    fn a_counter_of_a_part_is_0_until_it_counts() {
        let mut run_plan = experiment(StoppingPlan::DEFAULT).run_plan;
        run_plan.generators = vec![generator("g")];
        run_plan.sinks = vec![sink("s")];
        let counts = |metric: &str| {
            run_plan.counts(&SeriesSelector {
                metric: metric.to_owned(),
                id: None,
                aggregation: Aggregation::Each,
            })
        };
        assert!(counts("sink_errors") && counts("blocks_again"));
        assert!(!counts("bodies_malformed") && !counts("messages_received"));
        // A gauge, a histogram, the target's, and what is no metric.
        assert!(!counts("connections_open") && !counts("lateness"));
        assert!(!counts("target_cpu") && !counts("x"));
    }

    fn generator(id: &str) -> GeneratorPlan {
        GeneratorPlan {
            id: id.to_owned(),
            transport: crate::TransportPlan::Tcp {
                address: "127.0.0.1:1".to_owned(),
            },
            payload: crate::PayloadPlan::PACE,
            rate: crate::RatePlan::MAX,
            concurrency: crate::generator::Concurrency::ONE,
            seed: stillwell_units::Seed::from_number(1),
            stamps: None,
        }
    }

    fn sink(id: &str) -> SinkPlan {
        SinkPlan {
            id: id.to_owned(),
            protocol: crate::SinkProtocol::Tcp {
                address: ([127, 0, 0, 1], 1).into(),
            },
            workers: std::num::NonZeroU16::MIN,
            limit: None,
            lines: None,
            prefix: None,
        }
    }

    #[test]
    fn instructions_are_counted_where_a_check_or_a_goal_needs_them() {
        let mut run_plan = experiment(StoppingPlan::DEFAULT).run_plan;
        run_plan.target.kind = TargetKind::Pid(1);
        let is_counted = |run_plan: &RunPlan, goals: &[GoalPlan]| {
            run_plan.clone().recording(goals).observer.instructions
        };
        assert!(!is_counted(&run_plan, &[]));
        for (goal, expected) in [
            ("instructions_per_event", true),
            ("series:target_instructions:rate", true),
            ("cpu_per_event", false),
            ("series:target_cpu:rate", false),
        ] {
            let goal = GoalPlan::new(goal.parse().unwrap());
            assert_eq!(is_counted(&run_plan, std::slice::from_ref(&goal)), expected);
        }
        for (check, expected) in [
            ("instructions_per_event", true),
            ("target_instructions", true),
            ("total_rss_bytes", false),
        ] {
            assert_eq!(reason(&mut run_plan, check, None), None, "{check}");
            assert_eq!(is_counted(&run_plan, &[]), expected, "{check}");
        }
    }

    #[test]
    fn checks_request_the_series_of_the_kernel_that_they_bound() {
        let mut run_plan = experiment(StoppingPlan::DEFAULT).run_plan;
        let cgroup = "cgroup.v2.cpu.stat.usage_usec";
        assert!(reason(&mut run_plan, cgroup, None).is_some());
        let kernel = run_plan.clone().recording(&[]).observer.kernel;
        assert!(kernel.cgroup && !kernel.processes);
        assert!(reason(&mut run_plan, "total_cpu_usage_millicores", None).is_some());
        assert!(run_plan.recording(&[]).observer.kernel.processes);
    }
}
