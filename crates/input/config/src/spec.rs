//! The native format: one file for each element, with the table of its keys
//! and the function that reads it.

mod check;
mod context;
mod course;
mod design;
mod disk;
mod experiment;
mod generator;
mod goal;
mod network;
mod observe;
mod operating_point;
mod payload;
mod phases;
mod placement;
mod rate;
mod series;
mod sink;
mod stamp;
mod stopping;
mod target;
mod targets;
mod timeline;
mod variant;

pub(crate) use context::ReadContext;
pub(crate) use design::problem as design_problem;
pub(crate) use experiment::{EXPERIMENT, ExperimentSpec, read_experiment};
pub use generator::check_cache_size;
pub use generator::{ENGINE_SOCKET, TREE_DEPTH_MAX, is_image_part};
pub(crate) use generator::{RateContext, counted_by, rate_problem};
pub use goal::default_goals;
pub(crate) use goal::{Workload, goal_problem, parse_goal};
pub(crate) use operating_point::{PROBE_DEFAULT, parse_share};
pub use payload::{
    NativeDialect, PayloadDialect, read_binary_payload, read_pattern, read_range, read_template,
    read_trace_agent,
};
pub use series::parse_series;
pub(crate) use stopping::{LOOKS_PAIRS_MAX, PAIRS_MAX};
pub(crate) use target::{TARGET, name_of_program, read_target};
pub(crate) use variant::check_variants;
