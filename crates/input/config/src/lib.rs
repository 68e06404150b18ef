//! Text becomes a plan: the only door for user input.
//!
//! [`load_rig`] reads one observed run, [`load_lab`] experiments, and
//! [`requests`] loads on a URL. The first two take
//! native files, `lading.yaml` and SMP cases; [`load_lading`] takes what lading
//! itself would. All check everything that can be
//! checked by looking, and return either a plan that is right or every mistake
//! at once, each with its place, what is accepted and the nearest name.
//!
//! Each element of the native format is one file in `spec`: the table of its
//! keys, from which unknown keys are found and [`schema`] is made, and the
//! function that reads it. Before that, `matrix` makes several files of one: a
//! cell for each combination of its parameters, with their values filled in. The
//! module `files` is the only one that touches the
//! file system, behind a trait.

mod bench;
mod descriptors;
mod discover;
mod files;
mod lint;
mod load;
mod matrix;
mod overrides;
pub mod requests;
mod schema;
mod smp;
mod spec;

pub use bench::{
    Await, BenchAsked, BenchAsserts, BenchEndpoint, BenchFolder, BenchStep, BenchSubject,
    BenchTree, FigureAssert, LoadedBench, TextAssert, is_wanted, load_bench, load_bench_tree,
};
pub use descriptors::{
    Descriptors, DescriptorsError, GrpcMethod, MessageTextError, MethodError, MethodName,
    MethodNameError,
};
pub use files::{Disk, EntryKind, Files, read_source};
pub use lint::{Linted, lint_files};
pub use load::{
    FileKind, LadingRun, LadingSource, Loaded, has_subjects, load_lab, load_lading, load_rig,
    load_subjects,
};
pub use overrides::{
    CommandArgument, DesignOverride, LabOverrides, ProgramOverride, RigOverrides, StoppingOverride,
    SubjectsOverrides, TargetOverride, VariantArgument, VariantArgumentError,
};
pub use schema::{SchemaOf, schema};
pub use stillwell_legacy::lading::{
    LadingTelemetry, TelemetryFormat, TelemetryFormatKind, TelemetryPlace,
};
pub use stillwell_text::{
    Diagnostic, Diagnostics, Place, Position, Severity, Source, Span, code::explain,
};

#[cfg(test)]
mod tests;
