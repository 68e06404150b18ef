//! Text becomes a plan: the only door for user input.
//!
//! [`Loader::run_plan`] reads one observed run, [`Loader::suite`] experiments, and [`requests`]
//! loads on a URL. The first two take native
//! files, and those of the formats that the loader is given: see [`foreign`]. They check
//! everything that can be checked by looking, and return either a plan that is right or
//! every mistake at once, each with its place, what is accepted and the nearest name.
//!
//! Each element of the native format is one file in `spec`: the table of its
//! keys, from which unknown keys are found and [`schema`] is made, and the
//! function that reads it. Before that, `matrix` makes several files of one: a
//! cell for each combination of its parameters, with their values filled in. The
//! module `files` is the only one that touches the
//! file system, behind a trait. [`manifest`] reads objects of Kubernetes.

mod ab;
mod bench;
mod descriptors;
mod discover;
mod element;
pub mod files;
pub mod foreign;
mod lint;
mod load;
mod loaded;
pub mod manifest;
mod matrix;
mod overrides;
mod rate;
pub mod requests;
pub mod rules;
pub mod scaffold;
pub mod scenario;
mod schema;
pub mod shared;
mod spec;

pub use ab::AbSpec;
pub use bench::{
    Await, BenchAsserts, BenchEndpoint, BenchFolder, BenchOptions, BenchStep, BenchTarget,
    BenchTree, FigureAssert, LoadedBench, TextAssert, is_byte_codec, is_wanted,
};
pub use descriptors::{
    Descriptors, DescriptorsError, GrpcMethod, MessageTextError, MethodError, MethodName,
    MethodNameError, TextFormatError, read_text_format,
};
pub use load::{AdjustableRun, Loader};
pub use loaded::Loaded;
pub use overrides::{
    CommandArgument, DesignOverride, ProgramOverride, RunOverrides, StoppingOverride,
    SuiteOverrides, TargetOverride, TargetsOverrides, VariantArgument, VariantArgumentError,
};
pub use rate::{RateError, parse_rate, parse_request_rate};
pub use schema::{SchemaOf, schema};
pub use stillwell_text::{
    Diagnostic, Diagnostics, Place, Position, Severity, Source, Span,
    code::ALL as DIAGNOSTIC_CODES, code::explain, nearest,
};

#[cfg(test)]
mod tests;
