//! Compares runs of any tool. Each side is text that names files, folders or numbers:
//! runs of Stillwell, captures of lading, results of load generators, columns.
//!
//! [`compare_sides`] reads both sides and compares them. The comparison itself is
//! [`stillwell_verdict::across`], which knows numbers by name and no format.

mod ancestors;
#[cfg(test)]
mod fixture;
mod goals;
mod lookup;
mod read;
mod saved_load;

use std::collections::BTreeSet;

use anyhow::ensure;
use stillwell_report::{ComparisonGroup, ComparisonReport};
use stillwell_units::Nanos;
use stillwell_verdict::across::{CompareOptions, RunGroup, apply_holm, compare_group, match_runs};

use crate::read::{Run, SideReader, Source};
pub use crate::saved_load::read_saved_load;

/// Options for reading and comparing two sides.
#[derive(Clone, Debug)]
pub struct SideOptions {
    /// Metrics, pairs, direction and tolerance.
    pub compare: CompareOptions,
    /// Names of the experiments to compare; `*` matches any text. Empty: all.
    pub only: Vec<String>,
    /// Also compute the tables of an older tool.
    pub method: Option<Method>,
    /// Time to skip at the start of each lading capture, if it is not the default.
    pub warmup: Option<Nanos>,
    /// CPUs of the target, for the tables of an older tool.
    pub cpus: u16,
    /// Name of the target in the heads of the tables of an older tool.
    pub target_name: Option<String>,
    /// ID of the job in the head of the report of 2023.
    pub run_id: Option<String>,
    /// Each row of a file of numbers is a run, even if rows look like seconds.
    pub rows_are_runs: bool,
}

/// Methods of older tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Method {
    /// Vector's soak rig of 2022: Welch's test on the seconds of all runs.
    Soak2022,
    /// The Regression Detector of 2023, as far as its reports describe it.
    Smp2023,
}

/// Compares two sides. Without `comparison`, the first two variants of `baseline`.
///
/// The report's `command` and `version` are empty: the caller sets them.
///
/// # Errors
///
/// A side cannot be read, or its runs cannot be compared; the text is for the user. A single side needs
/// two variants.
pub fn compare_sides(
    baseline: &str,
    comparison: Option<&str>,
    options: &SideOptions,
) -> anyhow::Result<ComparisonReport> {
    let mut reader = SideReader::new(options);
    let place = comparison.unwrap_or(baseline);
    let same_place = baseline == place;
    let mut baseline_runs = reader.read(baseline)?;
    let mut comparison_runs = reader.read(place)?;
    let chosen = match same_place {
        true => None,
        false => keep_tested(&mut baseline_runs, &mut comparison_runs),
    };
    if !same_place {
        reader.warn_of_variants(baseline, &baseline_runs);
        reader.warn_of_variants(place, &comparison_runs);
    }
    let mut remarks = reader.into_remarks();
    let mut matched = match_runs(baseline_runs, comparison_runs, same_place, &options.only)?;
    if comparison.is_none() {
        remarks.extend(keep_two_variants(place, &mut matched.groups)?);
    }
    remarks.extend(matched.remarks);
    remarks.extend(chosen);
    let [baseline, comparison] = match same_place {
        true => variants_of(place, &matched.groups),
        false => [baseline.to_owned(), place.to_owned()],
    };
    let groups = matched.groups.iter();
    let groups = groups.map(|group| compared(group, options));
    let mut groups = groups.collect::<anyhow::Result<Vec<_>>>()?;
    apply_holm(groups.iter_mut().flat_map(|group| &mut group.rows));
    Ok(ComparisonReport {
        baseline,
        comparison,
        groups,
        remarks,
        command: String::new(),
        version: String::new(),
    })
}

/// Keeps the groups of the only side `place` that have two variants: the runs of a variant would be compared with themselves.
/// Returns a remark for each group that is removed.
fn keep_two_variants(place: &str, groups: &mut Vec<RunGroup<Run>>) -> anyhow::Result<Vec<String>> {
    fn variant(runs: &[Run]) -> Option<&str> {
        runs.first()?.variant.as_deref()
    }
    let mut remarks = Vec::new();
    groups.retain(|group| {
        let has_two = variant(&group.baseline) != variant(&group.comparison);
        if !has_two {
            let name = group.name.as_deref().unwrap_or(place);
            remarks.push(format!(
                "`{name}` has no two variants, so it is not compared"
            ));
        }
        has_two
    });
    ensure!(
        !groups.is_empty(),
        "{place} has no two variants to compare: give a second argument"
    );
    Ok(remarks)
}

/// Returns the names of both sides of `place`: the variants that every group compares, where there are any.
fn variants_of(place: &str, groups: &[RunGroup<Run>]) -> [String; 2] {
    let side = |runs: fn(&RunGroup<Run>) -> &[Run]| {
        let variants = groups.iter().flat_map(runs);
        let variants: BTreeSet<_> = variants.map(|run| run.variant.as_deref()).collect();
        match (variants.len(), variants.first()) {
            (1, Some(Some(name))) => format!("{place} ({name})"),
            _ => place.to_owned(),
        }
    };
    [
        side(|group| &group.baseline),
        side(|group| &group.comparison),
    ]
}

/// If both sides hold the runs of several variants, keeps the variant that each experiment tested, and returns a
/// remark about it.
fn keep_tested(baseline: &mut Vec<Run>, comparison: &mut Vec<Run>) -> Option<String> {
    let is_tested = |run: &Run| match &run.source {
        Source::Saved(saved) => saved.variants.get(1) == run.variant.as_ref(),
        _ => true,
    };
    let has_several = |runs: &[Run]| {
        let variants = runs.iter().filter_map(|run| run.variant.as_ref());
        let variants: BTreeSet<&String> = variants.collect();
        variants.len() > 1 && runs.iter().any(is_tested)
    };
    if !has_several(baseline) || !has_several(comparison) {
        return None;
    }
    let name = comparison
        .iter()
        .find(|run| is_tested(run))?
        .variant
        .clone()?;
    baseline.retain(is_tested);
    comparison.retain(is_tested);
    Some(format!(
        "both sides hold runs of several variants: the tested ones, such as `{name}`, are compared; PATH@NAME \
         selects another"
    ))
}

fn compared(group: &RunGroup<Run>, options: &SideOptions) -> anyhow::Result<ComparisonGroup> {
    let compared = compare_group(group, &options.compare)?;
    let names = compared.rows.iter().map(|row| row.metric.clone());
    let names: Vec<String> = names.collect();
    let ancestors = match options.method {
        Some(method) => Some(ancestors::tables(group, method, &names, options)?),
        None => None,
    };
    let mut remarks = compared.remarks;
    remarks.extend(memory_remark(group, &names));
    Ok(ComparisonGroup {
        name: group.name.clone(),
        rows: compared.rows,
        ancestors,
        remarks,
        curves: Vec::new(),
    })
}

/// Returns a remark if memory is compared, and not all runs measure it by the same series.
fn memory_remark(group: &RunGroup<Run>, names: &[String]) -> Option<String> {
    let is_memory = |name: &String| name == "memory" || name == "memory_peak";
    if !names.iter().any(is_memory) {
        return None;
    }
    let runs = group.baseline.iter().chain(&group.comparison);
    let series: BTreeSet<&str> = runs.filter_map(Run::memory_series).collect();
    (series.len() > 1).then(|| {
        "memory is `total_pss_bytes` (PSS) in some runs and `total_rss_bytes` (RSS) in others; RSS \
         counts each shared page in full"
            .to_owned()
    })
}

#[cfg(test)]
mod tests;
