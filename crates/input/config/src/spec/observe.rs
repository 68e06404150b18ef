//! `observe`.

use std::num::NonZeroU32;

use stillwell_plan::ObserverPlan;
use stillwell_plan::observer::{
    CallGraph, InspectorPlan, PerfPlan, ProfilePlan, ScrapeFormat, ScrapePlan,
};
use stillwell_text::{Node, code};
use stillwell_units::Nanos;

use super::ReadContext;
use super::target::{COMMAND, read_environment};
use crate::element::{DURATION, Element, Shape, TEXT_MAP, TEXTS, optional, required};

const SCRAPE: Element = Element::new(
    "prometheus page",
    "A page of the target's metrics.",
    &[
        required(
            "url",
            Shape::Like("http://127.0.0.1:9090/metrics"),
            "URL of the page.",
        ),
        optional("names", TEXTS, "Only these metrics; all by default."),
        optional("labels", TEXT_MAP, "Labels added to every series."),
    ],
);

const EXPVAR: Element = Element::new(
    "expvar page",
    "A page of the target's variables, as Go's package `expvar` serves it.",
    &[
        required(
            "url",
            Shape::Like("http://127.0.0.1:5000/debug/vars"),
            "URL of the page.",
        ),
        optional(
            "names",
            TEXTS,
            "Only these variables, as JSON pointers such as `/memstats/Alloc`; all by default.",
        ),
        optional("labels", TEXT_MAP, "Labels added to every series."),
    ],
);

const PPROF: Element = Element::new(
    "profile",
    "A profile of the target, as Go's package `pprof` serves it.",
    &[
        required(
            "url",
            Shape::Like("http://127.0.0.1:6060/debug/pprof/heap"),
            "URL of the page.",
        ),
        optional(
            "every",
            DURATION,
            "Time from the end of one profile to the next; 5s by default.",
        ),
    ],
);

const PERF: Element = Element::new(
    "perf profile",
    "A CPU profile of the target by the program `perf`, kept in the run's folder as a pprof file.",
    &[
        optional(
            "frequency",
            Shape::Whole,
            "Samples for each second of CPU time, 1 to 10000; 99 by default.",
        ),
        optional(
            "call_graph",
            Shape::Words(&["frame_pointers", "dwarf"]),
            "The way to find callers: `frame_pointers` (default), or `dwarf` for programs without them.",
        ),
    ],
);

const INSPECTOR: Element = Element::new(
    "inspector",
    "A program that inspects the target, from its readiness until just before its end.",
    &[
        required(
            "command",
            COMMAND,
            "Program and arguments; `TARGET_PID` in its environment is the process ID of the target.",
        ),
        optional(
            "environment",
            TEXT_MAP,
            "Variables set besides PATH and TARGET_PID.",
        ),
        optional(
            "stdout",
            Shape::Text,
            "File for its standard output; a file in the run's folder by default.",
        ),
        optional(
            "stderr",
            Shape::Text,
            "File for its standard error; a file in the run's folder by default.",
        ),
    ],
);

pub(super) const OBSERVE: Element = Element::new(
    "observer",
    "Metrics to record, and their interval.",
    &[
        optional("period", DURATION, "Time between samples; 1s by default."),
        optional(
            "detail_period",
            DURATION,
            "Time between samples that are expensive to read; 10s by default.",
        ),
        optional(
            "prometheus",
            Shape::List(&Shape::Element(&SCRAPE)),
            "Pages of the target's metrics.",
        ),
        optional(
            "expvar",
            Shape::List(&Shape::Element(&EXPVAR)),
            "Pages of the target's variables.",
        ),
        optional(
            "pprof",
            Shape::List(&Shape::Element(&PPROF)),
            "Profiles of the target, kept in the run's folder.",
        ),
        optional(
            "perf",
            Shape::Element(&PERF),
            "A CPU profile by `perf`; in place of `inspector`.",
        ),
        optional(
            "kernel",
            TEXTS,
            "Series that are read from the kernel: processes, smaps, working_set, cgroup, vmstat, and instructions (CPU \
             instructions of the target; goals and checks that need them also record them).",
        ),
        optional(
            "inspector",
            Shape::Element(&INSPECTOR),
            "A program that inspects the target.",
        ),
    ],
);

/// Below this, watching would be the load.
const PERIOD_MIN: Nanos = Nanos::from_millis(10);

pub(super) fn read_observe(context: &ReadContext<'_>, node: &Node) -> Option<ObserverPlan> {
    let reader = context.reader;
    let map = reader.map(node, &OBSERVE.keys())?;
    let mut observer = ObserverPlan::default();
    for (key, period) in [
        ("period", &mut observer.period),
        ("detail_period", &mut observer.detail_period),
    ] {
        if let Some(node) = map.take(key)
            && let Some(value) = reader.parsed::<Nanos>(node)
        {
            *period = value;
            if value < PERIOD_MIN {
                let message = format!("`{key}` is out of range");
                let error = reader.error(code::OUT_OF_RANGE, node.span, message);
                reader.report(error.label(format!("at least {PERIOD_MIN}")));
            }
        }
    }
    if let Some(node) = map.take("prometheus") {
        let items = reader.list(node).unwrap_or_default();
        let read = |item| read_scrape(context, item, &SCRAPE, ScrapeFormat::Prometheus);
        observer.scrapes.extend(items.iter().filter_map(read));
    }
    if let Some(node) = map.take("expvar") {
        let items = reader.list(node).unwrap_or_default();
        let read = |item| read_scrape(context, item, &EXPVAR, ScrapeFormat::Expvar);
        observer.scrapes.extend(items.iter().filter_map(read));
    }
    if let Some(node) = map.take("pprof") {
        let items = reader.list(node).unwrap_or_default();
        let profiles = items.iter().filter_map(|item| read_profile(context, item));
        observer.profiles = profiles.collect();
    }
    if let Some(node) = map.take("kernel") {
        read_kernel(context, node, &mut observer);
    }
    if let Some(node) = map.take("inspector") {
        observer.inspector = read_inspector(context, node);
    }
    if let Some(node) = map.take("perf") {
        observer.perf = read_perf(context, node);
        if observer.inspector.is_some() {
            let message = "`perf` and `inspector` exclude each other: `perf` runs as the inspector";
            let error = reader.error(code::BAD_VALUE, node.span, message);
            reader.report(error.label("leave out one of them"));
        }
    }
    Some(observer)
}

/// Above this, sampling is the load.
const PERF_FREQUENCY_MAX: u32 = 10_000;

fn read_perf(context: &ReadContext<'_>, node: &Node) -> Option<PerfPlan> {
    let reader = context.reader;
    let map = reader.map(node, &PERF.keys())?;
    let frequency = match map.take("frequency") {
        Some(node) => reader
            .whole(node, 1, PERF_FREQUENCY_MAX)
            .and_then(NonZeroU32::new),
        None => NonZeroU32::new(99),
    };
    let words = [
        ("frame_pointers", CallGraph::FramePointers),
        ("dwarf", CallGraph::Dwarf),
    ];
    let call_graph = map.read_or("call_graph", CallGraph::FramePointers, |node| {
        reader.word(node, "call graph", &words)
    });
    Some(PerfPlan {
        frequency: frequency?,
        call_graph: call_graph?,
    })
}

fn read_inspector(context: &ReadContext<'_>, node: &Node) -> Option<InspectorPlan> {
    let map = context.reader.map(node, &INSPECTOR.keys())?;
    let environment = read_environment(context, map.take("environment"));
    let file = |key| context.path(map.take(key)?);
    let (stdout, stderr) = (file("stdout"), file("stderr"));
    let command = map
        .required("command")
        .and_then(|node| context.program(node));
    let mut words = command?.into_iter();
    Some(InspectorPlan {
        program: words.next()?.into(),
        arguments: words.collect(),
        environment,
        stdout,
        stderr,
    })
}

fn read_kernel(context: &ReadContext<'_>, node: &Node, observer: &mut ObserverPlan) {
    const WORDS: [&str; 6] = [
        "processes",
        "smaps",
        "working_set",
        "cgroup",
        "vmstat",
        "instructions",
    ];
    let words = WORDS.map(|word| (word, word));
    let kernel = &mut observer.kernel;
    for item in context.reader.list(node).unwrap_or_default() {
        match context.reader.word(item, "kind of series", &words) {
            Some("processes") => kernel.processes = true,
            Some("smaps") => kernel.smaps = true,
            Some("working_set") => kernel.working_set = true,
            Some("cgroup") => kernel.cgroup = true,
            Some("instructions") => observer.instructions = true,
            Some(_) => kernel.vmstat = true,
            None => {}
        }
    }
}

fn read_profile(context: &ReadContext<'_>, node: &Node) -> Option<ProfilePlan> {
    let map = context.reader.map(node, &PPROF.keys())?;
    let url = map.required("url").and_then(|node| context.any_url(node));
    // Runs are short, and growth needs two profiles.
    let every = map.read_or("every", Nanos::from_secs(5), |node| {
        context.reader.parsed::<Nanos>(node)
    });
    Some(ProfilePlan {
        url: url?,
        every: every?,
    })
}

fn read_scrape(
    context: &ReadContext<'_>,
    node: &Node,
    element: &Element,
    format: ScrapeFormat,
) -> Option<ScrapePlan> {
    let reader = context.reader;
    let map = reader.map(node, &element.keys())?;
    let names = map.take("names").map(|node| reader.texts(node));
    let labels = map.take("labels").map(|node| reader.text_map(node));
    let url = map.required("url").and_then(|node| context.any_url(node));
    Some(ScrapePlan {
        url: url?,
        names,
        labels: labels.unwrap_or_default(),
        format,
    })
}
