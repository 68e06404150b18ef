//! Reading of each side: from text to runs.

mod files;
mod pages;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use stillwell_experiment::SavedReader;
use stillwell_lading::capture::{CaptureRun, LadingError, LadingFormat, SeriesWanted, read_lading};
use stillwell_others::results::{
    Column, Figure, ResultError, ResultTool, is_load_csv, parse_columns, parse_inline, read_result,
};
use stillwell_units::human::counted;
use stillwell_verdict::RunSummary;
use stillwell_verdict::across::{SavedRun, listed};

pub(crate) use self::files::text_of;
use self::files::{capture_folder, items, start_of, walk};
use self::pages::reported_runs;
pub(crate) use self::pages::{data_of, is_page};
use crate::SideOptions;
use crate::goals;
use crate::saved_load::{is_scenario, scenario};

/// The name of a column that has none.
pub(crate) const UNNAMED: &str = "value";

/// A run of one side.
#[derive(Debug)]
pub(crate) struct Run {
    /// Its origin, for messages.
    pub(crate) label: String,
    pub(crate) experiment: Option<String>,
    pub(crate) variant: Option<String>,
    pub(crate) source: Source,
}

/// Data of a run.
#[derive(Debug)]
pub(crate) enum Source {
    /// A run of ours.
    Saved(Box<SavedRun>),
    /// A run in a capture of lading.
    Lading {
        run: CaptureRun,
        /// Start of the measured phase: milliseconds since 1970.
        from_millis: u64,
        /// True if its phases are marked: ticks outside the measured phase have been removed.
        is_marked: bool,
        /// All metrics of its file, for messages.
        metrics: BTreeSet<String>,
    },
    /// Named numbers: a result of a load generator.
    Result(ResultTool, Vec<Figure>),
    /// Named numbers: a row of a file.
    Row(Vec<Figure>),
}

/// Reads both sides, and remembers what readers should know.
pub(crate) struct SideReader<'a> {
    options: &'a SideOptions,
    wanted: SeriesWanted,
    warmup_millis: u64,
    saved: SavedReader,
    remarks: Vec<String>,
}

impl<'a> SideReader<'a> {
    pub(crate) fn new(options: &'a SideOptions) -> Self {
        let warmup = options.warmup.unwrap_or(goals::LADING_WARMUP);
        Self {
            options,
            wanted: goals::lading_series(&options.compare.metrics),
            warmup_millis: warmup.as_u64() / 1_000_000,
            saved: SavedReader::default(),
            remarks: Vec::new(),
        }
    }

    pub(crate) fn into_remarks(self) -> Vec<String> {
        let mut remarks = self.remarks;
        remarks.extend(self.saved.into_remarks());
        remarks.dedup();
        remarks
    }

    /// Remarks that the captures of several variants are one side.
    pub(crate) fn warn_of_variants(&mut self, typed: &str, runs: &[Run]) {
        let captures = runs
            .iter()
            .filter(|run| matches!(run.source, Source::Lading { .. }));
        let names: BTreeSet<String> = captures.filter_map(|run| run.variant.clone()).collect();
        if names.len() > 1 {
            let names: Vec<String> = names.into_iter().collect();
            self.remarks.push(format!(
                "{typed} holds captures of {}, which are one side here; `stillwell compare {typed}` \
                 compares them with each other",
                listed(&names)
            ));
        }
    }

    /// The runs of the side that is typed like this; at least one.
    pub(crate) fn read(&mut self, typed: &str) -> anyhow::Result<Vec<Run>> {
        let column = if Path::new(typed).exists() {
            None
        } else {
            parse_inline(typed)
        };
        if let Some(column) = column {
            let column = column.with_context(|| format!("read `{typed}`"))?;
            return Ok(rows_of(typed, vec![column]));
        }
        let mut runs = Vec::new();
        for (path, choice) in items(typed)? {
            runs.extend(self.read_path(&path, choice.as_deref())?);
        }
        drop_repeated(&mut runs, &mut self.remarks);
        ensure!(!runs.is_empty(), "there is no run in {typed}");
        Ok(runs)
    }

    fn read_saved(&mut self, folder: &Path) -> anyhow::Result<Option<Run>> {
        let saved = self.saved.read(folder)?;
        Ok(saved.map(|saved| run_of(saved, folder)))
    }

    fn read_path(&mut self, path: &Path, choice: Option<&str>) -> anyhow::Result<Vec<Run>> {
        let mut runs = Vec::new();
        if let Some(folder) = capture_folder(path) {
            runs.extend(self.read_saved(&folder)?);
        } else if path.is_dir() {
            let mut files = Vec::new();
            walk(path, 0, &mut files)?;
            let before = self.remarks.len();
            for path in files {
                if path.is_dir() {
                    runs.extend(self.read_saved(&path)?);
                } else {
                    let mut read = self.read_file(&path, None, true)?;
                    for run in &mut read {
                        name_by_folders(run, &path);
                    }
                    runs.extend(read);
                }
            }
            if runs.is_empty() {
                let missing = format!("no capture or result was found in {}", path.display());
                // Without a comparison no reader gets the remarks.
                let mut problems = vec![missing];
                problems.extend(self.remarks.drain(before..));
                bail!(problems.join("; "));
            }
        } else {
            // A table takes the choice for itself.
            let runs = self.read_file(path, choice, false)?;
            let rows = runs.iter().all(|run| matches!(run.source, Source::Row(_)));
            if rows {
                return Ok(runs);
            }
            return chosen(runs, path, choice);
        }
        chosen(runs, path, choice)
    }

    /// The runs in a file; of one that was found in a folder nothing, if it is of
    /// some other kind.
    fn read_file(
        &mut self,
        path: &Path,
        choice: Option<&str>,
        in_folder: bool,
    ) -> anyhow::Result<Vec<Run>> {
        let start = start_of(path)?;
        if LadingFormat::sniff(&start).is_some() {
            return match in_folder {
                true => self.read_lading_of_folder(path),
                false => self.read_lading(path),
            };
        }
        if str::from_utf8(&start).is_ok_and(is_load_csv) {
            return text_of(path).and_then(|text| read_json(&text, path));
        }
        let first = start.trim_ascii_start().first().copied();
        if in_folder {
            return Ok(match first {
                Some(b'{' | b'[') => self.read_json_of_folder(path),
                _ => Vec::new(),
            });
        }
        if is_page(&start) {
            let page = text_of(path)?;
            let data = data_of(&page).with_context(|| format!("read {}", path.display()))?;
            return self.read_report(data, path);
        }
        if matches!(first, Some(b'{' | b'[')) {
            return self.read_report(&text_of(path)?, path);
        }
        if start.starts_with(b"options:") {
            let output = stillwell_nighthawk::read_yaml(&text_of(path)?)
                .with_context(|| format!("read {}", path.display()))?;
            return read_json(&stillwell_nighthawk::write_json(&output), path);
        }
        self.read_columns(path, choice)
    }

    /// Returns the run in a file of JSON that was found in a folder. Files of other tools are skipped; a result
    /// that cannot be read is left out with a remark.
    fn read_json_of_folder(&mut self, path: &Path) -> Vec<Run> {
        let runs = text_of(path).and_then(|text| read_json(&text, path));
        runs.unwrap_or_else(|error| {
            // Reports beside captures have the same runs again.
            let is_unknown = error.downcast_ref::<ResultError>() == Some(&ResultError::Unknown);
            if !is_unknown {
                self.leave_out(&error);
            }
            Vec::new()
        })
    }

    /// Returns the runs in a capture of lading that was found in a folder. A table that cannot be read is left out
    /// with a remark.
    fn read_lading_of_folder(&mut self, path: &Path) -> anyhow::Result<Vec<Run>> {
        let runs = self.read_lading(path);
        runs.or_else(|error| match error.downcast_ref::<LadingError>() {
            Some(LadingError::NoFooter { .. } | LadingError::Table { .. }) => {
                self.leave_out(&error);
                Ok(Vec::new())
            }
            _ => Err(error),
        })
    }

    /// Adds the remark that a file of a folder is left out.
    fn leave_out(&mut self, error: &anyhow::Error) {
        let remark = format!("{error:#}: the file is left out");
        // Both sides may be the same folder.
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Returns the runs in a suite's report, or the one run in other data.
    fn read_report(&mut self, data: &str, path: &Path) -> anyhow::Result<Vec<Run>> {
        let reported = reported_runs(data, path);
        let reported = reported.with_context(|| format!("read {}", path.display()))?;
        let Some(reported) = reported else {
            return read_json(data, path);
        };
        if reported.confirmations > 0 {
            self.remarks.push(format!(
                "{}: {} not included",
                path.display(),
                counted(
                    reported.confirmations,
                    "confirmation run is",
                    "confirmation runs are"
                )
            ));
        }
        let runs = reported.runs.into_iter();
        Ok(runs.map(|run| run_of(run, path)).collect())
    }

    fn read_lading(&mut self, path: &Path) -> anyhow::Result<Vec<Run>> {
        let capture = read_lading(path, &self.wanted)?;
        if let Some(cut) = &capture.cut {
            let path = path.display();
            self.remarks.push(format!(
                "{path}: {cut}; its writer was killed, and the complete part is used"
            ));
        }
        let several = capture.runs.len() > 1;
        let warmup_millis = self.warmup_millis;
        // Ours mark their phases; a warm-up that is named goes before.
        let marked = |run: &CaptureRun| {
            let measured = run.measured.filter(|_| self.options.warmup.is_none());
            measured.map(|(from, _)| from)
        };
        let are_marked = capture.runs.iter().all(|run| marked(run).is_some());
        let runs = capture.runs.into_iter().map(|run| {
            let length = run.ended_wall_millis.saturating_sub(run.started_wall_millis);
            let start = marked(&run);
            ensure!(
                start.is_some() || length > warmup_millis,
                "{} lasts {} s, and the first {} s of each capture are skipped as warm-up: give --warmup",
                path.display(),
                length / 1000,
                warmup_millis / 1000,
            );
            let label = if several {
                format!("{} ({})", path.display(), run.run_id)
            } else {
                path.display().to_string()
            };
            Ok(Run {
                label,
                experiment: run.experiment.clone(),
                variant: run.variant.clone(),
                source: Source::Lading {
                    from_millis: start
                        .unwrap_or_else(|| run.started_wall_millis.saturating_add(warmup_millis)),
                    run: match start {
                        Some(_) => run.only_measured(),
                        None => run,
                    },
                    is_marked: start.is_some(),
                    metrics: capture.metrics.clone(),
                },
            })
        });
        let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
        if are_marked {
            return Ok(runs);
        }
        self.remarks.push(format!(
            "a lading capture does not mark the end of warm-up: its first {} s are skipped{}",
            warmup_millis / 1000,
            if self.options.warmup.is_none() {
                ", the default of lading; --warmup changes it"
            } else {
                ""
            }
        ));
        Ok(runs)
    }

    fn read_columns(&self, path: &Path, choice: Option<&str>) -> anyhow::Result<Vec<Run>> {
        let text = text_of(path)?;
        let read = || format!("read {}", path.display());
        let table = parse_columns(&text).with_context(read)?;
        if let (Some(reason), false) = (&table.not_runs, self.options.rows_are_runs) {
            bail!(
                "{}: {reason}, and a test on seconds reports most comparisons of a program \
                 with itself as significant. Give one number for each run, or --rows-are-runs \
                 if each row is a run",
                path.display()
            );
        }
        let mut columns = table.columns;
        if let Some(choice) = choice {
            let names: Vec<String> = columns
                .iter()
                .filter_map(|column| column.name.clone())
                .collect();
            columns.retain(|column| column.name.as_deref() == Some(choice));
            let text = table.texts.iter().find(|text| text.name == choice);
            if let Some(text) = text {
                bail!("{}: column `{choice}`: {}", path.display(), text.reason);
            }
            ensure!(
                !columns.is_empty(),
                "{} has no column `{choice}`; it has {}",
                path.display(),
                listed(&names)
            );
            // Both columns are compared, even with different names.
            for column in &mut columns {
                column.name = None;
            }
        }
        Ok(rows_of(&path.display().to_string(), columns))
    }
}

/// Sets what a capture without labels lacks from folders as soaks have them:
/// `EXPERIMENT/VARIANT/NUMBER/FILE` or `EXPERIMENT/VARIANT/FILE`.
fn name_by_folders(run: &mut Run, path: &Path) {
    let is_variant = |folder: &&Path| {
        let name = folder.file_name().and_then(|name| name.to_str());
        matches!(name, Some("baseline" | "comparison"))
    };
    let Some(folder) = path.ancestors().skip(1).take(2).find(is_variant) else {
        return;
    };
    let name_of = |folder: &Path| Some(folder.file_name()?.to_string_lossy().into_owned());
    run.variant = run.variant.take().or_else(|| name_of(folder));
    let experiment = folder.parent().and_then(name_of);
    run.experiment = run.experiment.take().or(experiment);
}

fn run_of(saved: SavedRun, path: &Path) -> Run {
    let identity = saved.summary.identity.as_ref();
    Run {
        label: path.display().to_string(),
        experiment: identity.map(|identity| identity.experiment.clone()),
        variant: identity.map(|identity| identity.variant.clone()),
        source: Source::Saved(Box::new(saved)),
    }
}

/// One run: a summary of ours, or a result of a load generator.
fn read_json(text: &str, path: &Path) -> anyhow::Result<Vec<Run>> {
    if let Ok(summary) = serde_json::from_str::<RunSummary>(text) {
        return Ok(vec![run_of(SavedRun::new(summary), path)]);
    }
    let read = || format!("read {}", path.display());
    let result = match serde_json::from_str(text) {
        Ok(value) if is_scenario(&value) => {
            read_result(&scenario(text).with_context(read)?.summary().to_json())
        }
        _ => read_result(text),
    };
    let result = result.with_context(read)?;
    Ok(vec![Run {
        label: path.display().to_string(),
        experiment: None,
        variant: None,
        source: Source::Result(result.tool, result.figures),
    }])
}

/// One run a row.
fn rows_of(label: &str, columns: Vec<Column>) -> Vec<Run> {
    let rows = columns.iter().map(|column| column.values.len()).max();
    let row = |at: usize| {
        let figures = columns.iter().filter_map(|column| {
            Some(Figure {
                name: column.name.clone().unwrap_or_else(|| UNNAMED.to_owned()),
                unit: column.unit,
                better: None,
                shown: true,
                value: *column.values.get(at)?,
            })
        });
        Run {
            label: format!("{label}, number {}", at + 1),
            experiment: None,
            variant: None,
            source: Source::Row(figures.collect()),
        }
    };
    (0..rows.unwrap_or(0)).map(row).collect()
}

/// The runs of the variant that was chosen, if one was.
fn chosen(mut runs: Vec<Run>, path: &Path, choice: Option<&str>) -> anyhow::Result<Vec<Run>> {
    let Some(choice) = choice else {
        return Ok(runs);
    };
    let names: BTreeSet<String> = runs.iter().filter_map(|run| run.variant.clone()).collect();
    runs.retain(|run| run.variant.as_deref() == Some(choice));
    let names: Vec<String> = names.into_iter().collect();
    ensure!(
        !runs.is_empty(),
        "{} has no run of a variant `{choice}`; it has {}",
        path.display(),
        listed(&names)
    );
    Ok(runs)
}

/// lading's `multi` format writes every run twice.
fn drop_repeated(runs: &mut Vec<Run>, remarks: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    let before = runs.len();
    runs.retain(|run| match &run.source {
        Source::Lading { run, .. } if !run.run_id.is_empty() => seen.insert(run.run_id.clone()),
        _ => true,
    });
    let dropped = before - runs.len();
    if dropped > 0 {
        remarks.push(format!(
            "{} in another file as well",
            counted(
                dropped,
                "capture was skipped: its run is",
                "captures were skipped: their runs are"
            )
        ));
    }
}

#[cfg(test)]
mod tests;
