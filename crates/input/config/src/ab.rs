//! Comparisons of two URLs, from flags to a plan.

use std::path::PathBuf;

use stillwell_plan::experiment::OperatingPoint;
use stillwell_plan::generator::{self, ExchangePlan, RequestsPlan};
use stillwell_plan::goal::{LatencyQuantile, RouteGoal, TypedTolerance};
use stillwell_plan::load::{LoadPlanParts, Reuse, Routes, UntilPlan};
use stillwell_plan::placement::{CpuChoice, IsolationPlan, PlacementPlan, Wanted};
use stillwell_plan::stopping::{DesignPlan, PAIRS_MIN, WarmupPlan};
use stillwell_plan::target::ReadyProbe;
use stillwell_plan::{
    ExperimentPlan, GeneratorPlan, GoalMetric, GoalPlan, LoadPlan, ObserverPlan, PayloadPlan,
    PhasesPlan, RatePlan, RateShape, RateUnit, RunPlan, StoppingPlan, SuitePlan, TargetKind,
    TargetPlan, TransportPlan, VariantPlan,
};
use stillwell_units::{Nanos, Secrets, Seed};

use crate::files::{Disk, Files};
use crate::requests::{
    Concurrency, ConnectingSpec, LoadSpecError, MixedRequest, RequestOrigin, RequestSpec,
    ShapeSpec, TlsSpec, endpoint_of, read_requests_file, spacing, target, tls_plan,
};
use crate::spec::parse_goal;

/// Time of runs up to which lost pairs are replaced: an answer within about a minute.
const MAX_TIME: Nanos = Nanos::from_secs(60);
/// Deadline for a connection before a run.
const READY: Nanos = Nanos::from_secs(2);
/// Maximum length of the load that looks at the responses before the first run.
const TRIAL_MAX: Nanos = Nanos::from_secs(2);
/// Smallest and largest number of its requests.
const TRIAL_REQUESTS: (u64, u64) = (10, 1000);
/// Maximum number of routes with a goal of their own.
const ROUTES_JUDGED: usize = 8;
/// Time without responses after which the end of a run is over.
const QUIET: Nanos = Nanos::from_millis(10);

/// A comparison of two URLs as it was typed.
#[derive(Clone, Debug)]
pub struct AbSpec {
    /// The baseline, and what is compared with it.
    pub urls: [String; 2],
    /// Rate of requests, the same for both.
    pub rate: RateShape,
    /// Distribution of requests in time.
    pub shape: ShapeSpec,
    /// Threads that send.
    pub concurrency: Concurrency,
    /// Content of requests. Only the paths of URLs in files count.
    pub request: RequestSpec,
    /// Opening and use of connections.
    pub connecting: ConnectingSpec,
    /// TLS settings.
    pub tls: TlsSpec,
    /// Length of the warm-up of each run.
    pub warmup: Nanos,
    /// Length of the measurement of each run.
    pub measure: Nanos,
    /// Maximum number of pairs of runs.
    pub max_pairs: u32,
    /// True if a regression is confirmed on new runs.
    pub confirm: bool,
    /// The goal that gates, as `METRIC` or `METRIC:TOLERANCE`.
    pub goal: Option<String>,
    /// Tolerance of the goals that are times, and of `goal`, unless it states its own.
    pub tolerance: Option<TypedTolerance>,
    /// Seed of everything random.
    pub seed: Seed,
    /// Handling of secrets of the URLs in the description of the comparison.
    pub secrets: Secrets,
}

impl AbSpec {
    /// Reads the files that it names and makes its plan; `cpus` is the number of CPUs.
    ///
    /// # Errors
    /// The first mistake: a file that cannot be read, a URL or a goal that makes no sense.
    pub fn plan(&self, cpus: usize) -> Result<SuitePlan, LoadSpecError> {
        let [baseline, comparison] = &self.urls;
        let mut variants = vec![
            VariantPlan::unchanged("A".to_owned()),
            VariantPlan::unchanged("B".to_owned()),
        ];
        for (variant, url) in variants.iter_mut().zip([baseline, comparison]) {
            variant.url = Some(absolute(url)?);
        }
        if self.rate.is_max() && self.shape != ShapeSpec::default() {
            return Err(LoadSpecError::text(
                "--burst-size, --jitter-uniform, --poisson and --zipf have no effect without --rate \
                 N/s: leave them out, or give a rate",
            ));
        }
        if self.max_pairs < PAIRS_MIN {
            return Err(LoadSpecError::text(format!(
                "{} pairs are too few for a verdict: it needs {PAIRS_MIN}",
                self.max_pairs
            )));
        }
        let run_plan = self.run_plan(&absolute(baseline)?, cpus)?;
        let goals = match &run_plan.generators[0].transport {
            TransportPlan::Requests(requests) => self.goals(requests.routes())?,
            _ => self.goals(&Routes::default())?,
        };
        let experiment = ExperimentPlan {
            name: "ab".to_owned(),
            summary: Some(self.summary()),
            folder: PathBuf::new(),
            run_plan: run_plan.recording(&goals),
            variants,
            goals,
            stopping: StoppingPlan::Sequential {
                max_pairs: self.max_pairs,
            },
            design: DesignPlan::Paired,
            warmup: WarmupPlan::Stated,
            max_time: MAX_TIME,
            confirm: self.confirm,
            builds: 1,
            family: None,
            operating_point: OperatingPoint::Stated,
            stated_max: Vec::new(),
            report_links: Vec::new(),
            erratic: false,
        };
        Ok(SuitePlan {
            experiments: vec![experiment],
            seed: self.seed,
        })
    }

    /// Describes the comparison for reports.
    fn summary(&self) -> String {
        let [baseline, comparison] = self.urls.each_ref().map(|url| self.secrets.text(url));
        format!("{baseline} against {comparison}")
    }

    fn run_plan(&self, url: &str, cpus: usize) -> Result<RunPlan, LoadSpecError> {
        let connecting = &self.connecting;
        let connections = u16::try_from(connecting.connections).map_err(|_| {
            LoadSpecError::text(format!("at most {} connections are possible", u16::MAX))
        })?;
        let workers = self.concurrency.workers(cpus, connecting.connections, 1);
        let address = target(url)?.dial_address();
        let generator = GeneratorPlan {
            id: "requests".to_owned(),
            transport: TransportPlan::Requests(Box::new(self.requests(url)?)),
            payload: PayloadPlan::PACE,
            rate: RatePlan {
                unit: RateUnit::Events,
                shape: self.rate.clone(),
            },
            concurrency: generator::Concurrency::try_new(connections, workers)
                .map_err(|error| LoadSpecError::text(error.to_string()))?,
            seed: self.seed.derive("payload", 0),
            stamps: None,
        };
        Ok(RunPlan {
            seed: self.seed,
            generators: vec![generator],
            sinks: Vec::new(),
            target: TargetPlan {
                name: address.clone(),
                kind: TargetKind::Url(url.to_owned()),
                ready: ReadyProbe::Tcp { address },
                cpus: CpuChoice::Any,
                ..TargetPlan::none()
            },
            disks: Vec::new(),
            observer: ObserverPlan::default(),
            phases: PhasesPlan {
                ready: READY,
                warmup: self.warmup,
                measure: self.measure,
                quiet: QUIET,
                ..PhasesPlan::default()
            },
            timeline: Vec::new(),
            isolation: IsolationPlan {
                network: Wanted::No,
                ..IsolationPlan::default()
            },
            placement: PlacementPlan::default(),
            checks: Vec::new(),
        })
    }

    fn requests(&self, url: &str) -> Result<RequestsPlan, LoadSpecError> {
        let (request, connecting) = (&self.request, &self.connecting);
        let files: &dyn Files = &Disk;
        let origin = match (&request.requests_file, &request.har) {
            (Some(path), _) => RequestOrigin::Lines(read_requests_file(files, path)?),
            (None, Some(path)) => RequestOrigin::Har(read_requests_file(files, path)?),
            (None, None) => RequestOrigin::Mix(vec![MixedRequest::usual()]),
        };
        let exchange = ExchangePlan {
            protocol: connecting.protocol,
            streams: connecting.streams,
            tls: tls_plan(&self.tls),
            timeout: connecting.timeout,
            connect_timeout: connecting.connect_timeout,
            reuse: connecting.reuse.unwrap_or(Reuse::Mru),
            requests_max: connecting.requests_max,
        };
        let endpoint = endpoint_of(url, request, origin, files)?;
        let plan = RequestsPlan::try_new(url.to_owned(), endpoint, exchange.client())?;
        Ok(plan.to_target().spaced(spacing(&self.shape)))
    }

    /// Returns a load of a few requests to each of the URLs of `plan`, in their order: each request
    /// is sent at least once.
    ///
    /// # Errors
    /// A plan of requests that a load cannot have.
    pub fn trials(&self, plan: &SuitePlan) -> Result<Vec<LoadPlan>, LoadSpecError> {
        let mut trials = Vec::new();
        for experiment in &plan.experiments {
            for variant in &experiment.variants {
                let target = experiment.target_of(variant, None);
                let run_plan = experiment.run_plan.around(target);
                let transports = run_plan.generators.into_iter();
                for transport in transports.map(|generator| generator.transport) {
                    if let TransportPlan::Requests(requests) = transport {
                        trials.push(trial(&requests, self.seed)?);
                    }
                }
            }
        }
        Ok(trials)
    }

    /// The gating goal first, then all others, then those of each route.
    fn goals(&self, routes: &Routes) -> Result<Vec<GoalPlan>, LoadSpecError> {
        let mut goals: Vec<GoalPlan> = [
            GoalMetric::Latency(LatencyQuantile::P50),
            GoalMetric::Latency(LatencyQuantile::P99),
            GoalMetric::ErrorShare,
            GoalMetric::RequestThroughput,
        ]
        .map(GoalPlan::new)
        .into();
        let names = routes.names().iter().filter(|_| routes.are_several());
        goals.extend(names.take(ROUTES_JUDGED).filter_map(|route| {
            let goal = RouteGoal::new(GoalMetric::Latency(LatencyQuantile::P50), route.clone());
            goal.map(|goal| GoalPlan::new(GoalMetric::Route(goal)))
        }));
        let mut typed_tolerance = None;
        if let Some(typed) = &self.goal {
            let typed = parse_goal(typed).map_err(LoadSpecError::text)?;
            let mut primary = GoalPlan::new(typed.metric);
            primary.direction = typed.direction.unwrap_or(primary.direction);
            typed_tolerance = typed.tolerance;
            goals.retain(|goal| goal.metric != primary.metric);
            goals.insert(0, primary);
        }
        let goals = goals.into_iter().enumerate().map(|(index, goal)| {
            let is_typed = index == 0 && self.goal.is_some();
            let primary = typed_tolerance.filter(|_| is_typed);
            let common = self.tolerance.filter(|_| is_typed || goal.metric.is_time());
            match primary.or(common) {
                Some(tolerance) => goal.tolerating(tolerance).map_err(LoadSpecError::text),
                None => Ok(goal),
            }
        });
        goals.collect()
    }
}

/// Returns a load of `requests`, each at least once, over one connection.
fn trial(requests: &RequestsPlan, seed: Seed) -> Result<LoadPlan, LoadSpecError> {
    let count = requests.endpoint().requests.len() as u64;
    let endpoints = vec![requests.endpoint().clone()];
    let plan = LoadPlan::try_new(LoadPlanParts {
        until: UntilPlan {
            duration: Some(TRIAL_MAX),
            requests: Some(count.clamp(TRIAL_REQUESTS.0, TRIAL_REQUESTS.1)),
            ..UntilPlan::default()
        },
        ..LoadPlanParts::closed(endpoints, requests.client().clone(), seed)
    });
    Ok(plan?)
}

/// Returns `url` with its scheme.
fn absolute(url: &str) -> Result<String, LoadSpecError> {
    let target = target(url)?;
    let scheme = target.scheme().as_str();
    Ok(format!(
        "{scheme}://{}{}",
        target.authority(),
        target.path_and_query()
    ))
}

#[cfg(test)]
mod tests {
    use stillwell_plan::load::LoadProtocol;
    use stillwell_units::Tolerance;

    use super::*;

    fn goals(goal: Option<&str>, tolerance: &str) -> Result<Vec<GoalPlan>, LoadSpecError> {
        let spec = AbSpec {
            urls: ["http://a/", "http://b/"].map(str::to_owned),
            rate: RateShape::Max,
            shape: ShapeSpec::default(),
            concurrency: Concurrency::Workers(1),
            request: RequestSpec::default(),
            connecting: ConnectingSpec {
                connections: 1,
                protocol: LoadProtocol::Http1,
                streams: 1,
                timeout: Nanos::SECOND,
                connect_timeout: Nanos::SECOND,
                late: false,
                over: None,
                requests_max: None,
                reuse: None,
                idle: None,
            },
            tls: TlsSpec::default(),
            warmup: Nanos::ZERO,
            measure: Nanos::SECOND,
            max_pairs: PAIRS_MIN,
            confirm: true,
            goal: goal.map(str::to_owned),
            tolerance: Some(tolerance.parse().unwrap()),
            seed: Seed::from_number(1),
            secrets: Secrets::Masked,
        };
        let plan = spec.plan(1)?;
        Ok(plan.experiments[0].goals.clone())
    }

    #[test]
    fn a_tolerance_applies_to_times_and_to_the_typed_goal_unless_that_states_its_own() {
        for (goal, expected) in [
            (None, "5%"),
            (Some("latency_p99"), "5%"),
            (Some("request_throughput"), "5%"),
            (Some("error_share"), "5%"),
            (Some("request_throughput:3%"), "3%"),
        ] {
            let goals = goals(goal, "5%").unwrap();
            let tolerance = |text: &str| text.parse::<Tolerance>().unwrap();
            assert_eq!(goals[0].tolerance, tolerance(expected), "{goal:?}");
            for further in &goals[1..] {
                let expected = match further.metric.is_time() {
                    true => tolerance("5%"),
                    false => further.metric.default_tolerance(),
                };
                assert_eq!(further.tolerance, expected, "{goal:?}, {}", further.metric);
            }
        }
    }

    #[test]
    fn a_tolerance_that_is_a_time_is_refused_for_a_typed_goal_that_is_not_a_time() {
        let error = goals(Some("request_throughput"), "50us").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`request_throughput` is not a time: write a tolerance such as `3%`"
        );
        let goals = goals(Some("request_throughput:3%"), "50us").unwrap();
        let times = goals.iter().filter(|goal| goal.tolerance_time.is_some());
        assert_eq!(times.count(), 2);
    }
}
