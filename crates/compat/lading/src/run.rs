//! A run with lading's arguments: a file, a folder of files or a text.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_config::files::{Disk, EntryKind, Files, absolute, read_source};
use stillwell_config::rules::{UsedNames, listening_place};
use stillwell_config::shared::{FileTarget, apply_to_run};
use stillwell_config::{Loaded, RunOverrides};
use stillwell_plan::observer::KernelSeries;
use stillwell_plan::{ObserverPlan, RunPlan, TargetPlan};
use stillwell_text::{Diagnostic, Diagnostics, NamedFiles, Node, Source, Value, code, parse};

use crate::case::{named_files, run_of};
use crate::file::{self, LadingFile, LadingTelemetry, TELEMETRY_UNUSED};
use crate::format::LADING;

/// Keys that only one file of a folder may have.
const ONCE: [&str; 4] = [
    "telemetry",
    "observer",
    "sample_period_milliseconds",
    "inspector",
];

/// Location of a lading configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LadingSource {
    /// A file, or a folder with `*.yaml` files that are merged.
    Path(PathBuf),
    /// This text.
    Text(String),
}

/// A run of lading's.
#[derive(Clone, Debug)]
pub struct LadingRun {
    /// The plan.
    pub plan: RunPlan,
    /// Destination of telemetry from the file.
    pub telemetry: Option<LadingTelemetry>,
}

/// Reads one run of lading.
///
/// # Errors
/// All errors in the files, with their places; or that they cannot be read.
pub fn load_lading(
    from: &LadingSource,
    overrides: &RunOverrides,
) -> Result<Loaded<LadingRun>, Diagnostics> {
    let from = match from {
        LadingSource::Path(path) => LadingSource::Path(absolute(path)),
        LadingSource::Text(_) => from.clone(),
    };
    load_lading_from(&Disk, &from, overrides)
}

/// [`load_lading`] on any files; a path is absolute.
pub(crate) fn load_lading_from(
    files: &dyn Files,
    from: &LadingSource,
    overrides: &RunOverrides,
) -> Result<Loaded<LadingRun>, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let has_subject = overrides.target.is_something();
    let parts: Vec<Part> = sources(files, from, &mut diagnostics)
        .into_iter()
        .filter_map(|(source, named)| Part::read(source, named, has_subject, &mut diagnostics))
        .collect();
    let enables_smaps = parts.iter().all(Part::enables_smaps);
    let run = join(parts, &mut diagnostics).map(|(run_plan, telemetry)| {
        let mut plan = run_of(run_plan, TargetPlan::none());
        plan.observer.kernel = KernelSeries {
            smaps: enables_smaps,
            ..KernelSeries::USUAL
        };
        apply_to_run(
            &mut plan,
            overrides,
            FileTarget::Never(LADING),
            &mut diagnostics,
        );
        LadingRun { plan, telemetry }
    });
    Loaded::checked(run, LADING, diagnostics)
}

/// One file of it.
struct Part {
    source: Arc<Source>,
    root: Option<Node>,
    run_plan: LadingFile,
    telemetry: Option<LadingTelemetry>,
}

impl Part {
    fn read(
        source: Arc<Source>,
        named: NamedFiles,
        has_subject: bool,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let (run_plan, remarks) = file::read(&source, has_subject, named);
        // Here it has an effect.
        let of_others = |remark: &Diagnostic| remark.message != TELEMETRY_UNUSED;
        diagnostics.append(remarks.into_iter().filter(of_others).collect());
        let (telemetry, remarks) = file::read_telemetry(&source);
        diagnostics.append(remarks);
        Some(Self {
            root: parse(&source).ok().map(|(root, _)| root),
            run_plan: run_plan?,
            telemetry,
            source,
        })
    }
}

impl Part {
    /// Default of `smaps`.
    fn enables_smaps(&self) -> bool {
        let observer = self.root.as_ref().and_then(|root| root.entry("observer"));
        let is_configured = observer.is_some_and(|node| node.entry("enable_smaps").is_some());
        !is_configured || self.run_plan.observer.kernel.smaps
    }
}

fn sources(
    files: &dyn Files,
    from: &LadingSource,
    diagnostics: &mut Diagnostics,
) -> Vec<(Arc<Source>, NamedFiles)> {
    let path = match from {
        LadingSource::Text(text) => {
            let source = Source::new("LADING_CONFIG", text.as_str());
            let named = named_files(files, Path::new("."), &source);
            return vec![(source, named)];
        }
        LadingSource::Path(path) => path,
    };
    let paths = if files.kind(path) == Some(EntryKind::Folder) {
        texts_in(files, path, diagnostics)
    } else {
        vec![path.clone()]
    };
    let mut sources = Vec::new();
    for path in paths {
        match read_source(files, &path) {
            Ok(source) => {
                let named = named_files(files, &path, &source);
                sources.push((source, named));
            }
            Err(error) => diagnostics.push(*error),
        }
    }
    sources
}

/// The files of a folder that count, by name.
fn texts_in(files: &dyn Files, folder: &Path, diagnostics: &mut Diagnostics) -> Vec<PathBuf> {
    let mut paths = files.list(folder).unwrap_or_default();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_text = name.ends_with(".yaml") && !name.starts_with('.');
        is_text && files.kind(path) == Some(EntryKind::File)
    });
    if paths.is_empty() {
        let message = format!("there is no `*.yaml` in {}", folder.display());
        diagnostics.push(Diagnostic::error(code::NOTHING_FOUND, message));
    }
    paths
}

/// Merges several files: lists are joined, other keys occur once.
fn join(
    parts: Vec<Part>,
    diagnostics: &mut Diagnostics,
) -> Option<(LadingFile, Option<LadingTelemetry>)> {
    check_once(&parts, diagnostics);
    let mut parts = parts.into_iter();
    let first = parts.next()?;
    let (mut run_plan, mut telemetry) = (first.run_plan, first.telemetry);
    let (mut generator_names, mut sink_names) = (UsedNames::new(), UsedNames::new());
    for generator in &run_plan.generators {
        generator_names.insert(&generator.id);
    }
    for sink in &run_plan.sinks {
        sink_names.insert(&sink.id);
    }
    let places = run_plan.sinks.iter();
    let mut places: BTreeSet<_> = places.map(|sink| listening_place(&sink.protocol)).collect();
    for part in parts {
        let observer = &mut run_plan.observer;
        // At most one of several files differs from the default.
        if observer.period == ObserverPlan::default().period {
            observer.period = part.run_plan.observer.period;
            observer.detail_period = part.run_plan.observer.detail_period;
        }
        observer.scrapes.extend(part.run_plan.observer.scrapes);
        let inspector = part.run_plan.observer.inspector;
        observer.inspector = observer.inspector.take().or(inspector);
        let from = part.source.path().display().to_string();
        let given = given_ids(part.root.as_ref(), "generator");
        for mut generator in part.run_plan.generators {
            let names = &mut generator_names;
            if let Some(error) = check_name(&mut generator.id, "generator", &given, names, &from) {
                diagnostics.push(error);
            }
            run_plan.generators.push(generator);
        }
        let given = given_ids(part.root.as_ref(), "blackhole");
        for mut sink in part.run_plan.sinks {
            let names = &mut sink_names;
            if let Some(error) = check_name(&mut sink.id, "blackhole", &given, names, &from) {
                diagnostics.push(error);
            }
            if !places.insert(listening_place(&sink.protocol)) {
                let message = format!(
                    "{from}: sink `{}` listens on an address that another sink already uses",
                    sink.id
                );
                diagnostics.push(Diagnostic::error(code::SAME_ADDRESS, message));
            }
            run_plan.sinks.push(sink);
        }
        telemetry = telemetry.or(part.telemetry);
    }
    Some((run_plan, telemetry))
}

fn check_once(parts: &[Part], diagnostics: &mut Diagnostics) {
    for key in ONCE {
        let has = |part: &&Part| {
            part.root
                .as_ref()
                .is_some_and(|root| root.entry(key).is_some())
        };
        let mut having = parts
            .iter()
            .filter(has)
            .map(|part| part.source.path().display());
        if let (Some(first), Some(second)) = (having.next(), having.next()) {
            let message = format!("`{key}` is in {first} and in {second}");
            let error = Diagnostic::error(code::DUPLICATE_KEY, message);
            diagnostics.push(error.help("only one file of a folder may have it"));
        }
    }
}

/// A name from a file must be unique, or an error is returned; a generated name is changed.
fn check_name(
    id: &mut String,
    key: &str,
    given: &BTreeSet<&str>,
    names: &mut UsedNames,
    from: &str,
) -> Option<Diagnostic> {
    if names.insert(id) {
        return None;
    }
    if given.contains(id.as_str()) {
        let message = format!("{from}: the id `{id}` is already used by a {key} of another file");
        return Some(Diagnostic::error(code::SAME_NAME, message));
    }
    *id = names.free(id);
    None
}

/// Returns the ids that the list below `key` contains.
fn given_ids<'n>(root: Option<&'n Node>, key: &str) -> BTreeSet<&'n str> {
    let list = root.and_then(|root| root.entry(key));
    let Some(Value::List(items)) = list.map(|node| &node.value) else {
        return BTreeSet::new();
    };
    let ids = items.iter().filter_map(|item| item.entry("id"));
    ids.filter_map(|id| match &id.value {
        Value::Scalar { text, .. } => Some(text.as_str()),
        _ => None,
    })
    .collect()
}
