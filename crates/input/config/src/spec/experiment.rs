//! The whole file: an experiment, or a single run without variants.

use stillwell_plan::Validity;
use stillwell_plan::disk::DiskPlan;
use stillwell_plan::experiment::{OperatingPoint, ReportLink};
use stillwell_plan::placement::IsolationPlan;
use stillwell_plan::stopping::{DesignPlan, WarmupPlan};
use stillwell_plan::target::ReadyProbe;
use stillwell_plan::targets::ComparedTargetPlan;
use stillwell_plan::{
    CheckPlan, GeneratorPlan, GoalPlan, ObserverPlan, PlacementPlan, RatePlan, RunPlan, SinkPlan,
    StepPlan, StoppingPlan, TargetPlan, TransportPlan, VariantPlan,
};
use stillwell_text::{MapReader, Node, Reader, Span, Value, code};
use stillwell_units::{Nanos, Seed, Target};

use super::generator::{self, GeneratorSpec, RateContext};
use super::goal::{self, Workload};
use super::target::{self, TargetSpec};
use super::{
    PROBE_DEFAULT, ReadContext, check, course, design, disk, network, observe, operating_point,
    phases, placement, sink, stamp, stopping, targets, timeline, variant,
};
use crate::element::{DURATION, Element, Shape, optional, required};
use crate::matrix;
use crate::rules::{Placed, check_bypasses_target, check_sink_addresses, ready_probe_of};

const WORKLOAD: Element = Element::new(
    "workload",
    "Generators, and the sinks that receive the events after the target.",
    &[
        optional(
            "generators",
            Shape::List(&Shape::Element(&generator::GENERATOR)),
            "Sources of load; none for an idle target.",
        ),
        optional(
            "sinks",
            Shape::List(&Shape::Element(&sink::SINK)),
            "Receivers of what the target forwards.",
        ),
    ],
);

const LINK: Element = Element::new(
    "report link",
    "A link that is shown in reports.",
    &[
        required("text", Shape::Text, "Text of the link."),
        required(
            "link",
            Shape::Text,
            "URL of the link. Variables are filled in: `{{ experiment }}`, `{{ variant }}`, `{{ job_id }}`, \
             `{{ start_time_ms }}`, `{{ end_time_ms }}`, `{{ filter_start }}`, `{{ filter_end }}`.",
        ),
    ],
);

/// The top of a native file.
pub(crate) const EXPERIMENT: Element = Element::new(
    "experiment",
    "An experiment; without variants, a single run.",
    &[
        optional(
            "description",
            Shape::Text,
            "One line; the first sentence of README.md by default.",
        ),
        optional(
            "seed",
            Shape::Any(&[Shape::Whole, Shape::Text]),
            "Seed of everything random; 0 by default.",
        ),
        optional(
            "target",
            Shape::Element(&target::TARGET),
            "The program being measured.",
        ),
        optional(
            "variants",
            Shape::Map(&Shape::Any(&[
                Shape::Element(&variant::VARIANT),
                Shape::Null,
            ])),
            "Two or more. The first, or the one called baseline, is the baseline; all others \
             are compared with it.",
        ),
        optional(
            "targets",
            Shape::Map(&Shape::Element(&targets::TARGET_ENTRY)),
            "Several programs by their names, in place of `target` and `variants`: each gets \
             the same load, one after the other.",
        ),
        optional(
            "runs",
            Shape::Whole,
            "Runs of each of the `targets`; 6 by default.",
        ),
        optional(
            "matrix",
            matrix::SHAPE,
            "Parameters, each with a list of values: one experiment for each combination, in which \
             `{matrix.NAME}` is replaced by the value. `exclude` and `include` list combinations \
             to leave out and to add.",
        ),
        optional(
            "workload",
            Shape::Element(&WORKLOAD),
            "Generators and sinks.",
        ),
        optional(
            "operating_point",
            operating_point::SHAPE,
            "How the rate is chosen. `stated`: as in the file. `probe`: a share of the capacity that a \
             probe finds. `max`: at full speed.",
        ),
        optional(
            "phases",
            Shape::Element(&phases::PHASES),
            "Lengths of the phases.",
        ),
        optional(
            "observe",
            Shape::Element(&observe::OBSERVE),
            "Metrics to record besides those of the target.",
        ),
        optional(
            "disks",
            Shape::List(&Shape::Element(&disk::DISK)),
            "Simulated disks, which can be slow or small.",
        ),
        optional(
            "timeline",
            Shape::List(&Shape::Element(&timeline::STEP)),
            "Changes during a run.",
        ),
        optional(
            "network",
            Shape::Element(&network::NETWORK),
            "Links of the target, on which faults can be injected.",
        ),
        optional(
            "isolation",
            Shape::Element(&placement::ISOLATION),
            "Isolation from other programs.",
        ),
        optional(
            "placement",
            Shape::Element(&placement::PLACEMENT),
            "CPUs of the target and of the generators.",
        ),
        optional(
            "goals",
            Shape::List(&goal::SHAPE),
            "Metrics to compare; the first is primary.",
        ),
        optional(
            "checks",
            Shape::List(&Shape::Element(&check::CHECK)),
            "Bounds that every run must keep.",
        ),
        optional(
            "pairs",
            stopping::SHAPE,
            "Number of pairs of runs. A number is fixed; `{max: 20}` by default. Verdicts need at least four.",
        ),
        optional(
            "builds",
            Shape::Whole,
            "Number of builds of each variant that comes from a revision; 1 by default. Each build has \
             a different `STILLWELL_BUILD_SEED` in its environment. The first half is used for the \
             search, the other half for the confirmation. With `confirm: false`, the search uses all \
             builds.",
        ),
        optional(
            "design",
            design::SHAPE,
            "How the runs of a pair share the machine; `paired` by default. `paired`: one after the \
             other. `duet`: both at once, on different CPUs. `sliced`: both at once, with the load \
             switched between them.",
        ),
        optional(
            "max_time",
            DURATION,
            "Discarded pairs are replaced until the runs of the experiment have taken this long; `10m` \
             by default. One discarded pair for every four planned ones is replaced even after that.",
        ),
        optional(
            "confirm",
            Shape::Boolean,
            "`true`: a regression is confirmed on new runs before it fails the experiment; `true` by default.",
        ),
        optional(
            "include_startup",
            Shape::Boolean,
            "`true`: measurement begins with the first event, without a warm-up.",
        ),
        optional(
            "report_links",
            Shape::List(&Shape::Element(&LINK)),
            "Links in reports.",
        ),
        optional(
            "erratic",
            Shape::Boolean,
            "`true`: verdicts are information only, and never change the exit code.",
        ),
        optional(
            "validity",
            Shape::Words(&["strict", "normal", "off"]),
            "Strictness of the limits above which a run is unreliable.",
        ),
    ],
);

/// A native file, as far as it could be understood.
#[derive(Debug)]
pub(crate) struct ExperimentSpec {
    pub(crate) description: Option<String>,
    pub(crate) run_plan: RunPlan,
    pub(crate) rate_context: RateContext,
    /// Empty where the file compares nothing.
    pub(crate) variants: Vec<VariantPlan>,
    /// Programs that are put side by side, if any are.
    pub(crate) targets: Vec<ComparedTargetPlan>,
    /// Runs of each of them.
    pub(crate) runs: Option<u32>,
    pub(crate) goals: Vec<GoalPlan>,
    pub(crate) workload: Workload,
    pub(crate) operating_point: OperatingPoint,
    /// Ids of generators that keep a stated rate of `max` in a probe.
    pub(crate) stated_max: Vec<String>,
    pub(crate) stopping: StoppingPlan,
    pub(crate) design: DesignPlan,
    pub(crate) warmup: WarmupPlan,
    pub(crate) max_time: Nanos,
    pub(crate) builds: u32,
    pub(crate) confirm: bool,
    pub(crate) report_links: Vec<ReportLink>,
    pub(crate) erratic: bool,
    /// Place of missing keys.
    pub(crate) span: Span,
    /// `true`: `target` has a value, valid or invalid.
    pub(crate) has_target: bool,
    /// `true`: `variants` has a value, valid or invalid.
    pub(crate) has_variants: bool,
    /// `true`: `targets` has a value, valid or invalid.
    pub(crate) has_several_targets: bool,
}

/// Reads the file. What it returns may be run only if its reader has no errors.
pub(crate) fn read_experiment(context: &ReadContext<'_>, root: &Node) -> Option<ExperimentSpec> {
    let reader = context.reader;
    let map = reader.map(root, &EXPERIMENT.keys())?;
    let description = map.take("description");
    let description = description.and_then(|node| context.filled(node));
    let seed = read_seed(reader, &map);
    let (target, variants) = read_compared(context, &map);
    let (generators, sinks) = read_workload(context, &map, &seed).unwrap_or_default();
    check_paths(reader, &map, &generators, &sinks);
    let operating_point = read_operating_point(context, &map, &generators);
    let stated_max = stated_max(operating_point, &generators);
    let (goals, workload) = read_goals(context, &map, &generators);
    let course = course::read(context, &map);
    let has_network = map.take("network").is_some();
    let around = timeline::Around {
        phases: &course.phases,
        sinks: &sinks,
        generators: generators.iter().map(|spec| &spec.plan.value).collect(),
        // They are read together with what happens to them.
        disks: &[],
        has_network,
    };
    network::check_ends(reader, &map, &sinks, &generators);
    let mut parts = Parts::read(context, &map, around);
    generator::check_network(reader, &generators, &mut parts.isolation);
    let compared = variants.as_deref().unwrap_or_default();
    target::check_url(context, &map, (compared, &generators), &mut parts.isolation);
    // It was read before anything else.
    map.ignore("matrix");
    let rate_context = generator::rate_context(&generators);
    let generators = plans_of(generators, has_network);
    let ready = ready_probe_of(&generators, sinks.iter().map(|sink| &sink.value));
    let (targets, runs) = targets::read_targets(context, &map, &ready);
    let target = finish_target(target.flatten(), ready);
    target::check_delays(reader, &map, (&target, &targets), course.phases.ready);
    network::check_probes(reader, &map, (&target, &targets));
    Some(ExperimentSpec {
        description: description.map(str::to_owned),
        run_plan: RunPlan {
            seed,
            generators,
            sinks: sinks.into_iter().map(|sink| sink.value).collect(),
            target,
            disks: parts.disks,
            observer: parts.observer,
            phases: course.phases,
            timeline: parts.timeline,
            isolation: parts.isolation,
            placement: parts.placement,
            checks: parts.checks,
        },
        rate_context,
        variants: variants.unwrap_or_default(),
        targets,
        runs,
        goals,
        workload,
        operating_point,
        stated_max,
        stopping: course.stopping,
        design: course.design,
        warmup: course.warmup,
        max_time: course.max_time,
        builds: course.builds,
        confirm: course.confirm,
        report_links: read_links(reader, &map),
        erratic: map.take("erratic").and_then(|node| reader.boolean(node)) == Some(true),
        span: map.span(),
        has_target: map.take("target").is_some(),
        has_variants: map.take("variants").is_some(),
        has_several_targets: map.take("targets").is_some(),
    })
}

fn read_seed(reader: &Reader, map: &MapReader<'_, '_>) -> Seed {
    let seed = map.take("seed").and_then(|node| reader.parsed(node));
    seed.unwrap_or_else(|| Seed::from_number(0))
}

/// Warns of generators that send past the target, if there is one.
fn check_paths(
    reader: &Reader,
    map: &MapReader<'_, '_>,
    generators: &[GeneratorSpec],
    sinks: &[Placed<SinkPlan>],
) {
    if map.take("target").is_none() && map.take("targets").is_none() {
        return;
    }
    let placed = generators.iter().map(|spec| spec.plan.clone());
    check_bypasses_target(reader, &placed.collect::<Vec<_>>(), sinks);
}

/// Returns the plans of generators; with a `network`, those that send from its link.
fn plans_of(generators: Vec<GeneratorSpec>, has_network: bool) -> Vec<GeneratorPlan> {
    let generators = generators.into_iter().map(|spec| spec.plan.value);
    let mut generators: Vec<GeneratorPlan> = generators.collect();
    if has_network {
        network::send_from_link(&mut generators);
    }
    generators
}

/// The target and the variants, where the file has them.
fn read_compared(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
) -> (Option<Option<TargetSpec>>, Option<Vec<VariantPlan>>) {
    let target = map.take("target");
    let variants = map.take("variants");
    (
        target.map(|node| target::read_target(context, node)),
        variants.map(|node| variant::read_variants(context, node)),
    )
}

/// Placeholders that stay in a file.
#[derive(Default)]
struct Parts {
    disks: Vec<DiskPlan>,
    observer: ObserverPlan,
    timeline: Vec<StepPlan>,
    isolation: IsolationPlan,
    placement: PlacementPlan,
    checks: Vec<CheckPlan>,
}

impl Parts {
    fn read(
        context: &ReadContext<'_>,
        map: &MapReader<'_, '_>,
        around: timeline::Around<'_>,
    ) -> Self {
        let mut parts = Self::default();
        if let Some(node) = map.take("observe") {
            parts.observer = observe::read_observe(context, node).unwrap_or_default();
        }
        if let Some(node) = map.take("validity") {
            let word = context.reader.word(node, "validity", &Validity::WORDS);
            parts.observer.validity = word.unwrap_or_default();
        }
        if let Some(node) = map.take("disks") {
            parts.disks = disk::read_disks(context, node);
        }
        if let Some(node) = map.take("timeline") {
            let disks = &parts.disks;
            let around = timeline::Around { disks, ..around };
            parts.timeline = timeline::read_timeline(context, node, &around);
        }
        if let Some(node) = map.take("isolation") {
            parts.isolation = placement::read_isolation(context, node).unwrap_or_default();
        }
        let links = network::read_network(context, map);
        network::finish(context, map, links, &parts.timeline, &mut parts.isolation);
        if let Some(node) = map.take("placement") {
            parts.placement = placement::read_placement(context, node).unwrap_or_default();
        }
        if let Some(node) = map.take("checks") {
            let items = context.reader.list(node).unwrap_or_default();
            let checks = items
                .iter()
                .filter_map(|item| check::read_check(context, item));
            parts.checks = checks.collect();
        }
        parts
    }
}

fn read_workload(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    seed: &Seed,
) -> Option<(Vec<GeneratorSpec>, Vec<Placed<SinkPlan>>)> {
    let node = map.take("workload")?;
    let map = context.reader.map(node, &WORKLOAD.keys())?;
    let generators = map.take("generators");
    let generators = generators.map(|node| generator::read_generators(context, node, seed));
    let sinks = map
        .take("sinks")
        .map(|node| sink::read_sinks(context, node));
    let sinks = sinks.unwrap_or_default();
    check_sink_addresses(context.reader, &sinks);
    Some((generators.unwrap_or_default(), sinks))
}

/// Returns the requested operating point; else the rates of the file, if all generators have one.
/// A probe finds the rates of generators without one, the others keep theirs.
fn read_operating_point(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    generators: &[GeneratorSpec],
) -> OperatingPoint {
    let all_stated = generators.iter().all(|spec| spec.has_rate);
    let all_max = generators.iter().all(|spec| spec.plan.value.rate.is_max());
    let any_max = generators.iter().any(|spec| spec.plan.value.rate.is_max());
    let given = map
        .take("operating_point")
        .and_then(|node| operating_point::read_operating_point(context, node));
    let reader = context.reader;
    let can_send = match given {
        Some((OperatingPoint::Max, span)) => check_full_speed(reader, span, generators),
        _ => true,
    };
    match given {
        Some((OperatingPoint::Stated, span)) if !all_stated => {
            let message = "the operating point is `stated`, but not every generator states a rate";
            let missing = generators.iter().find(|spec| !spec.has_rate);
            let mut error = reader.error(code::OPERATING_POINT, span, message);
            if let Some(spec) = missing {
                error = error.context(reader.place(spec.plan.span), "this one has no `rate`");
            }
            reader.report(error);
            OperatingPoint::Stated
        }
        Some((OperatingPoint::Max, span)) if can_send && all_stated && !all_max => {
            let message = "the operating point is `max`: the rates of generators are ignored";
            reader.report(reader.warning(code::OPERATING_POINT, span, message));
            OperatingPoint::Max
        }
        Some((OperatingPoint::Probe { .. }, span)) if generators.is_empty() => {
            let message = "a probe needs a generator";
            reader.report(reader.error(code::OPERATING_POINT, span, message));
            OperatingPoint::Stated
        }
        Some((OperatingPoint::Probe { .. }, span)) if !any_max => {
            let message = "the operating point is a probe, but every generator states a rate";
            let error = reader.error(code::OPERATING_POINT, span, message);
            reader.report(
                error.help("remove `operating_point`, or the `rate` that the probe should find"),
            );
            OperatingPoint::Stated
        }
        Some((point, _)) => point,
        None if generators.is_empty() => OperatingPoint::Stated,
        None if all_stated && all_max => OperatingPoint::Max,
        None if all_stated => OperatingPoint::Stated,
        None => PROBE_DEFAULT,
    }
}

/// Reports generators that cannot send at full speed. For a rate of `max`, this was reported at the generator. Returns
/// true if it reported nothing.
fn check_full_speed(reader: &Reader, span: Span, generators: &[GeneratorSpec]) -> bool {
    let mut can_send = true;
    for spec in generators {
        let plan = &spec.plan.value;
        if plan.rate.is_max() {
            continue;
        }
        let Some(problem) = generator::rate_problem(plan, &RatePlan::MAX, spec.has_arrivals) else {
            continue;
        };
        let message = format!("the operating point is `max`: {}", problem.message);
        let error = reader.error(code::OPERATING_POINT, span, message);
        let error = error.context(
            reader.place(spec.plan.span),
            "this one cannot send at full speed",
        );
        reader.report(error.help("remove `operating_point`"));
        can_send = false;
    }
    can_send
}

/// Returns the ids of generators that keep a stated rate of `max` in a probe. If all generators state a rate, there are
/// none: the probe finds the rates of those at `max`.
fn stated_max(point: OperatingPoint, generators: &[GeneratorSpec]) -> Vec<String> {
    let is_probe = matches!(point, OperatingPoint::Probe { .. });
    if !is_probe || generators.iter().all(|spec| spec.has_rate) {
        return Vec::new();
    }
    let stated = generators.iter().filter(|spec| spec.has_rate);
    let stated = stated.map(|spec| &spec.plan.value);
    stated
        .filter(|plan| plan.rate.is_max())
        .map(|plan| plan.id.clone())
        .collect()
}

/// The goals, and the workload that they need.
fn read_goals(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    specs: &[GeneratorSpec],
) -> (Vec<GoalPlan>, Workload) {
    let workload = workload_of(context, map, specs);
    let goals = match (map.take("goals"), context.target_url) {
        (Some(node), _) => {
            let goals = goal::read_goals(context, node);
            goal::check_goals(context.reader, &goals, &workload);
            goals.into_iter().map(|goal| goal.plan).collect()
        }
        (None, None) => goal::default_goals(workload.generators),
        (None, Some(_)) => goal::default_goals_of_url(),
    };
    (goals, workload)
}

/// Goals are held against what the file lists, not against what of it could be
/// understood: one mistake must not cause another.
fn workload_of(
    context: &ReadContext<'_>,
    map: &MapReader<'_, '_>,
    specs: &[GeneratorSpec],
) -> Workload {
    let workload = map.take("workload");
    let generators = workload.map_or(&[][..], |node| items(node, "generators"));
    let sinks = workload.map_or(&[][..], |node| items(node, "sinks"));
    let observe = map.take("observe");
    let pages = |key: &'static str| observe.is_some_and(|node| !items(node, key).is_empty());
    let is_silent = |item: &Node| {
        let silent = ["tcp", "udp", "unix_stream", "unix_datagram"];
        silent.iter().any(|kind| item.entry(kind).is_some())
    };
    Workload {
        generators: !generators.is_empty(),
        sinks: !sinks.is_empty(),
        answers: !generators.iter().all(is_silent),
        stamps: generators.iter().any(|item| item.entry("stamps").is_some()),
        numbers: generators.iter().any(stamp::has_numbers),
        scrapes: pages("prometheus") || pages("expvar"),
        is_process: context.target_url.is_none_or(is_on_loopback),
        are_all_known: specs.len() == generators.len() && !context.reader.has_errors(),
        routes: specs.iter().flat_map(routes_of).collect(),
    }
}

/// Returns true if a process of this host may listen at `url`, which is then watched.
fn is_on_loopback(url: &str) -> bool {
    Target::from_url(url).is_ok_and(|target| target.loopback().is_some())
}

/// Names of the routes of a generator that have figures of their own.
fn routes_of(spec: &GeneratorSpec) -> Vec<String> {
    let routes = match &spec.plan.value.transport {
        TransportPlan::Requests(plan) => plan.routes().clone(),
        TransportPlan::Scenario(plan) => plan.routes(),
        _ => return Vec::new(),
    };
    match routes.are_several() {
        true => routes.names().to_vec(),
        false => Vec::new(),
    }
}

/// Returns the items of the list at `key`, if it is a list.
fn items<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    match node.entry(key).map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

fn read_links(reader: &Reader, map: &MapReader<'_, '_>) -> Vec<ReportLink> {
    let Some(node) = map.take("report_links") else {
        return Vec::new();
    };
    let items = reader.list(node).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| {
            let map = reader.map(item, &LINK.keys())?;
            let text = map.required("text").and_then(|node| reader.text(node));
            let link = map.required("link").and_then(|node| reader.text(node));
            Some(ReportLink {
                text: text?.to_owned(),
                link: link?.to_owned(),
            })
        })
        .collect()
}

fn finish_target(target: Option<TargetSpec>, ready: ReadyProbe) -> TargetPlan {
    match target {
        Some(spec) if spec.has_probe => spec.plan,
        Some(spec) => TargetPlan { ready, ..spec.plan },
        None => TargetPlan::none(),
    }
}
