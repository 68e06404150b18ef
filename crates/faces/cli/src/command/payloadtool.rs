//! `payloadtool`: builds and describes the payloads of generators.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_config::files::{read_input, read_text};
use stillwell_config::{RunOverrides, TargetOverride};
use stillwell_payload::{Fingerprint, PrintedFingerprints};
use stillwell_plan::GeneratorPlan;
use stillwell_units::ByteSize;
use stillwell_worker::Prepared;

use crate::arguments::PayloadtoolArguments;
use crate::command::select;
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;

/// Largest file whose content is sent.
const CONTENT_MAX: u64 = 4 << 30;

/// Does what `arguments` say.
pub(crate) fn run(arguments: &PayloadtoolArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let overrides = RunOverrides {
        target: TargetOverride::None,
        ..RunOverrides::default()
    };
    let loaded = loader()
        .run_plan(&arguments.config, &overrides)
        .map_err(|diagnostics| select::refused_as_lading(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    let generators = &loaded.plan.generators;
    let chosen = chosen(generators, arguments.generator_id.as_deref())?;
    let expected = arguments.verify.as_deref().map(read_expected).transpose();
    let expected = expected.map_err(could_not)?;
    let dump = arguments.dump.as_deref().map(create).transpose();
    let mut dump = dump.map_err(could_not)?;
    let mut mistakes = 0_u32;
    for plan in &chosen {
        let prepared = build(plan).map_err(could_not)?;
        mistakes +=
            print_sources(plan, &prepared, arguments, expected.as_ref()).map_err(could_not)?;
        if let Some(dump) = &mut dump {
            write_all(dump, &prepared).map_err(could_not)?;
        }
    }
    if arguments.memory_stats {
        print_memory(&chosen);
    }
    if mistakes == 0 {
        return Ok(Exit::Held);
    }
    let prints = match mistakes {
        1 => "fingerprint is",
        _ => "fingerprints are",
    };
    let error = anyhow::anyhow!("{mistakes} {prints} not as expected");
    Err(CommandError::new(Exit::Failed, error))
}

fn chosen<'p>(
    generators: &'p [GeneratorPlan],
    id: Option<&str>,
) -> Result<Vec<&'p GeneratorPlan>, CommandError> {
    let is_meant = |plan: &&GeneratorPlan| id.is_none_or(|id| plan.id == id);
    let chosen: Vec<&GeneratorPlan> = generators.iter().filter(is_meant).collect();
    if let (Some(id), true) = (id, chosen.is_empty()) {
        let ids: Vec<&str> = generators.iter().map(|plan| plan.id.as_str()).collect();
        let error = anyhow::anyhow!("no generator is called `{id}`");
        let error = CommandError::new(Exit::Usage, error);
        return Err(error.hint(format!("the generators are: {}", ids.join(", "))));
    }
    Ok(chosen)
}

/// Lines of `NAME: FINGERPRINT`.
fn read_expected(path: &Path) -> anyhow::Result<PrintedFingerprints> {
    let text = read_text(path).with_context(|| format!("read {}", path.display()))?;
    Ok(PrintedFingerprints::parse(&text))
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("write to {}", path.display()))
}

fn build(plan: &GeneratorPlan) -> anyhow::Result<Prepared> {
    let read = |path: &PathBuf| {
        read_input(path, CONTENT_MAX)
            .with_context(|| format!("read {} for `{}`", path.display(), plan.id))
    };
    let contents = plan.payload.format.files().iter().map(read);
    let contents: Vec<Vec<u8>> = contents.collect::<anyhow::Result<_>>()?;
    Ok(stillwell_run::prepare(plan, contents.as_slice())?)
}

/// Prints what each worker would send. Returns the number of unexpected fingerprints.
fn print_sources(
    plan: &GeneratorPlan,
    prepared: &Prepared,
    arguments: &PayloadtoolArguments,
    expected: Option<&PrintedFingerprints>,
) -> anyhow::Result<u32> {
    let mut mistakes = 0;
    for (worker, set) in prepared.sets().enumerate() {
        let name = match plan.concurrency.workers() {
            1 => plan.id.clone(),
            _ => format!("{}/{worker}", plan.id),
        };
        if let Some(expected) = expected {
            mistakes += u32::from(!is_expected(&name, &set.fingerprint(), expected));
        } else if arguments.fingerprint {
            Paint::data(&format!("{name}: {}\n", set.fingerprint()))?;
        } else {
            let total = set.total();
            Paint::data(&format!(
                "{name}: {} blocks, {} events, {} of {}\n",
                set.len(),
                total.events,
                ByteSize::new(total.bytes),
                plan.payload.cache,
            ))?;
        }
    }
    Ok(mistakes)
}

fn is_expected(name: &str, print: &Fingerprint, expected: &PrintedFingerprints) -> bool {
    let Some(expected_print) = expected.get(name) else {
        Paint::print_message(&format!(
            "{name}: no expected fingerprint; add the line that --fingerprint prints"
        ));
        return false;
    };
    if print.matches(expected_print) {
        Paint::print_message(&format!("{name}: as expected"));
        return true;
    }
    Paint::print_message(&format!(
        "{name}: expected {expected_print}\n  found {print}"
    ));
    false
}

fn write_all(dump: &mut File, prepared: &Prepared) -> anyhow::Result<()> {
    for set in prepared.sets() {
        dump.write_all(set.bytes()).context("write the payload")?;
    }
    Ok(())
}

/// The largest memory that this process had, beside the largest cache: blocks of
/// one generator are given back before those of the next are built.
fn print_memory(generators: &[&GeneratorPlan]) {
    let largest = generators.iter().map(|plan| plan.payload.cache).max();
    let status = read_text(Path::new("/proc/self/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let peak = kib.map_or_else(
        || "unknown".to_owned(),
        |kib| ByteSize::new(kib.saturating_mul(1024)).to_string(),
    );
    let cache = largest.map_or_else(|| "none".to_owned(), |cache| cache.to_string());
    Paint::print_message(&format!(
        "peak of resident memory: {peak}; largest cache: {cache}"
    ));
}
