//! `stillwell runs`.

mod store;

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::json;
use stillwell_experiment::library::{Library, ResultEntry, ResultRoots, describe_result};
use stillwell_report::Format;
use stillwell_report::document::{Block, Cell, Column, Document, Table, escape};
use stillwell_report::history::utc_minute;
use stillwell_units::{float_from_u64, human};

use crate::arguments::{RunsArguments, RunsCommand};
use crate::command::output;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Maximum number of files of one result.
const FILES_MAX: usize = 20_000;

/// A file of a result: its path below it, with `/`, and its size in bytes.
type ResultFile = (String, u64);

pub(crate) fn run(arguments: &RunsArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let done = match &arguments.command {
        RunsCommand::List { place, json } => list(place.as_deref(), *json, paint),
        RunsCommand::Show { result } => show(result, paint),
        RunsCommand::Rm { results, yes } => return remove(results, *yes),
        RunsCommand::Push { results, to } => push(results, to),
        RunsCommand::Pull { place, folder } => store::pull(place, folder.as_deref()),
    };
    done.map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(Exit::Held)
}

fn list(place: Option<&Path>, is_json: bool, paint: &Paint) -> anyhow::Result<()> {
    let place = place.unwrap_or_else(|| Path::new("."));
    if let Some(store) = store::of(place)? {
        return store::list(&store, is_json, paint);
    }
    let folder = place.canonicalize();
    let folder = folder.with_context(|| format!("open {}", place.display()))?;
    let listing = Library::default().survey(&ResultRoots::new(vec![folder]));
    if is_json {
        for entry in &listing.results {
            let line = json!({
                "path": place.join(entry.place.shown()),
                "kind": entry.kind.name(),
                "started_millis": entry.started_millis,
                "verdict": entry.headline.as_ref().map(|headline| &headline.text),
                "command": entry.command,
            });
            Paint::data(&format!("{line}\n"))?;
        }
    } else {
        let heads = ["started (UTC)", "kind", "path", "verdict"];
        let rows = listing.results.iter().map(|entry| row(place, entry));
        table(&heads, rows.collect(), paint)?;
    }
    if listing.is_cut {
        Paint::print_message("note: the list is not complete: give a folder with fewer entries");
    }
    Ok(())
}

fn row(place: &Path, entry: &ResultEntry) -> Vec<Cell> {
    let path = match place == Path::new(".") {
        true => entry.place.shown(),
        false => place.join(entry.place.shown()).display().to_string(),
    };
    let verdict = entry
        .headline
        .as_ref()
        .map(|headline| headline.text.clone());
    vec![
        utc_minute(entry.started_millis).as_str().into(),
        entry.kind.name().into(),
        path.as_str().into(),
        verdict.unwrap_or_default().as_str().into(),
    ]
}

/// Prints a table.
fn table(heads: &[&str], rows: Vec<Vec<Cell>>, paint: &Paint) -> anyhow::Result<()> {
    let columns = heads.iter().copied().map(Column::named);
    let document = Document::new([Block::Table(Table::new(columns, rows))]);
    let render = Format::Terminal.renderer();
    let render = render.context("there is no renderer for terminals")?;
    Paint::data(&render(&document, output::styled(paint)))?;
    Ok(())
}

fn show(result: &Path, paint: &Paint) -> anyhow::Result<()> {
    let files = match store::of(result)? {
        Some(store) => store::files(&store)?,
        None => {
            let entry = entry(result)?;
            let started = utc_minute(entry.started_millis);
            Paint::data(&format!("{}, {started} UTC\n", entry.kind.name()))?;
            for line in [
                entry.headline.map(|headline| headline.text),
                Some(entry.command),
            ] {
                let line = line.filter(|line| !line.is_empty());
                let line = line.map(|line| escape::terminal(&line));
                line.map_or(Ok(()), |line| Paint::data(&format!("{line}\n")))?;
            }
            files_of(result)?
        }
    };
    let rows = files.iter().map(|(name, size)| {
        let size = human::bytes(float_from_u64(*size));
        vec![name.as_str().into(), size.as_str().into()]
    });
    table(&["file", "size"], rows.collect(), paint)
}

/// Returns `path` without a slash or a dot at its end, which would lead through a link.
fn without_end(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Returns the result at `path`, which is not a link.
fn entry(path: &Path) -> anyhow::Result<ResultEntry> {
    let path = without_end(path);
    let read = || format!("open {}", path.display());
    let data = path.symlink_metadata().with_context(read)?;
    ensure!(
        !data.is_symlink(),
        "{} is a symbolic link: give the path of the result itself",
        path.display()
    );
    let entry = describe_result(&path);
    entry.with_context(|| format!("{} is not a result of Stillwell", path.display()))
}

/// Returns the regular files of a result, by name. A result that is one file has no name in it.
fn files_of(result: &Path) -> anyhow::Result<Vec<ResultFile>> {
    let mut files = Vec::new();
    if result.is_file() {
        let size = result.metadata()?.len();
        files.push((String::new(), size));
    } else {
        walk(result, "", &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn walk(folder: &Path, below: &str, files: &mut Vec<ResultFile>) -> anyhow::Result<()> {
    let read = || format!("read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(read)? {
        let entry = entry.with_context(read)?;
        let kind = entry.file_type().with_context(read)?;
        let Ok(name) = entry.file_name().into_string() else {
            anyhow::bail!("{} has a name that is not UTF-8", entry.path().display());
        };
        let name = format!("{below}{name}");
        ensure!(
            files.len() < FILES_MAX,
            "more than {FILES_MAX} files in one result"
        );
        // Links and sockets belong to no result.
        if kind.is_dir() {
            walk(&entry.path(), &format!("{name}/"), files)?;
        } else if kind.is_file() {
            files.push((name, entry.metadata().with_context(read)?.len()));
        }
    }
    Ok(())
}

/// Results that are to be removed.
enum RemovableResult {
    Local(PathBuf),
    Stored(Box<stillwell_experiment::ObjectStore>),
}

fn remove(results: &[PathBuf], is_confirmed: bool) -> Result<Exit, CommandError> {
    let failed = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let (mut removals, mut count, mut bytes) = (Vec::new(), 0, 0);
    for result in results {
        let (location, files) = located(result).map_err(failed)?;
        count += files.len();
        bytes += files.iter().map(|(_, size)| size).sum::<u64>();
        removals.push((location, files));
    }
    let size = human::bytes(float_from_u64(bytes));
    let summary = format!("results: {}, files: {count}, {size}", removals.len());
    if !is_confirmed {
        if !io::stdin().is_terminal() {
            let error = anyhow::anyhow!("nothing was removed ({summary})");
            return Err(
                CommandError::new(Exit::Usage, error).hint("without a terminal, --yes is needed")
            );
        }
        Paint::print_message(&format!("remove {summary}? [y/N]"));
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        read.map_err(|error| failed(error.into()))?;
        if !matches!(line.trim(), "y" | "Y" | "yes") {
            Paint::print_message("nothing was removed");
            return Ok(Exit::Failed);
        }
    }
    for (location, files) in removals {
        let removed = match location {
            RemovableResult::Local(path) if path.is_file() => {
                fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))
            }
            RemovableResult::Local(path) => {
                fs::remove_dir_all(&path).with_context(|| format!("remove {}", path.display()))
            }
            RemovableResult::Stored(store) => store::remove(&store, files),
        };
        removed.map_err(failed)?;
    }
    Paint::print_message(&format!("removed {summary}"));
    Ok(Exit::Held)
}

/// Returns the place of a result, and its files.
fn located(result: &Path) -> anyhow::Result<(RemovableResult, Vec<ResultFile>)> {
    if let Some(store) = store::of(result)? {
        let files = store::files(&store)?;
        ensure!(
            store::is_result(&store, &files)?,
            "{} is not a result of Stillwell",
            result.display()
        );
        return Ok((RemovableResult::Stored(Box::new(store)), files));
    }
    entry(result)?;
    let path = without_end(result);
    let files = files_of(&path)?;
    Ok((RemovableResult::Local(path), files))
}

fn push(results: &[PathBuf], to: &Path) -> anyhow::Result<()> {
    let store =
        store::of(to)?.with_context(|| format!("{} is not s3://BUCKET/PREFIX", to.display()))?;
    for result in results {
        entry(result)?;
        store::push(&store, result, &files_of(result)?)?;
    }
    Ok(())
}
