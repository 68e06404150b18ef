//! Course of an experiment: its phases, its stopping rule, and contradictions among them.

use stillwell_plan::experiment::{BUILDS_MAX, MAX_TIME_DEFAULT};
use stillwell_plan::stopping::{DesignPlan, WarmupPlan};
use stillwell_plan::{PhasesPlan, StoppingPlan};
use stillwell_text::{MapReader, code};
use stillwell_units::Nanos;

use super::{ReadContext, design, phases, stopping};

/// The keys of a file that say how an experiment goes.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) phases: PhasesPlan,
    pub(super) warmup: WarmupPlan,
    pub(super) stopping: StoppingPlan,
    pub(super) design: DesignPlan,
    pub(super) max_time: Nanos,
    pub(super) builds: u32,
    pub(super) confirm: bool,
}

pub(super) fn read(context: &ReadContext<'_>, map: &MapReader<'_, '_>) -> Course {
    let reader = context.reader;
    let phases = map.take("phases");
    let phases = phases.and_then(|node| phases::read_phases(context, node));
    let mut phases = phases.unwrap_or_default();
    let stopping = map.take("pairs");
    let stopping = stopping.and_then(|node| stopping::read_stopping(context, node));
    let design_node = map.take("design");
    let design = design_node.and_then(|node| design::read_design(context, node));
    let max_time = map.take("max_time").and_then(|node| reader.parsed(node));
    let builds = map.take("builds");
    let builds = builds.and_then(|node| reader.whole(node, 1, BUILDS_MAX));
    let confirm = map.take("confirm").and_then(|node| reader.boolean(node));
    let startup = map.take("include_startup");
    let includes_startup = startup.and_then(|node| reader.boolean(node)) == Some(true);
    if let (true, Some(node), Some(warmup)) = (includes_startup, startup, phases.warmup_span) {
        let message = "`include_startup` and `warmup` exclude each other";
        reader.report(
            reader
                .error(code::COURSE, node.span, message)
                .label("remove one of them")
                .context(reader.place(warmup), "the warm-up"),
        );
    }
    if includes_startup {
        phases.plan.warmup = Nanos::ZERO;
        phases.warmup = WarmupPlan::Stated;
    }
    let design = design.unwrap_or_default();
    if let (Some(node), Some(problem)) = (design_node, design::problem(design, &phases.plan)) {
        let error = reader.error(code::COURSE, node.span, problem);
        reader.report(error.label("shorten the turns, or measure for longer"));
    }
    Course {
        phases: phases.plan,
        warmup: phases.warmup,
        stopping: stopping.unwrap_or_default(),
        design,
        max_time: max_time.unwrap_or(MAX_TIME_DEFAULT),
        builds: builds.unwrap_or(1),
        confirm: confirm.unwrap_or(true),
    }
}
