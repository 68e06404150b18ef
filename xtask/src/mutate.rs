//! Mistakes in other people's configurations: `stillwell check` must find each
//! of them, at its line.
//!
//! The cases below a folder are copied, one mistake is made in one file, the
//! program checks the case, and what it says is compared with where the mistake
//! is. The mistakes are the same on every machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

mod change;
mod judge;
mod scan;

use change::{MistakeKind, Mutation};

/// Mutated files of each case, by their path in the case's folder.
const FILES: [&str; 3] = [
    "experiment.yaml",
    "lading/lading.yaml",
    "lading/templates/template.yaml",
];

/// One mistake in one file.
struct Attempt {
    case: String,
    file: &'static str,
    mutation: Mutation,
}

/// Makes `count` mistakes in the cases below `corpus` and checks each with
/// `program`. Returns how many there were of each kind, as text.
///
/// # Errors
/// A mistake that was not found or was found elsewhere, each with its text; a
/// file that cannot be read; a program that cannot be run.
pub(crate) fn run(corpus: &Path, program: &Path, count: usize) -> anyhow::Result<String> {
    let cases = cases_below(corpus)?;
    let attempts = choose(&cases, count)?;
    let work = std::env::temp_dir().join(format!("stillwell-mutate-{}", std::process::id()));
    let outcome = try_all(&cases, &attempts, program, &work);
    // What could not be removed lies in a folder for things that do not last.
    drop(std::fs::remove_dir_all(&work));
    let wrong = outcome?;
    ensure!(
        wrong.is_empty(),
        "{} of {} mistakes were not reported as they should be:\n{}",
        wrong.len(),
        attempts.len(),
        wrong.join("\n")
    );
    let mut summary = String::new();
    for kind in MistakeKind::ALL {
        let matching = attempts
            .iter()
            .filter(|attempt| attempt.mutation.kind == kind);
        writeln!(
            summary,
            "{}: {} reported at their lines",
            kind.name(),
            matching.count()
        )?;
    }
    Ok(summary)
}

/// The folders below `corpus` that hold an `experiment.yaml`, with their names.
fn cases_below(corpus: &Path) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let folder = corpus.join("vector/cases");
    let mut cases = BTreeMap::new();
    let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if let Some(name) = path.file_name()
            && path.join("experiment.yaml").is_file()
        {
            cases.insert(name.to_string_lossy().into_owned(), path.clone());
        }
    }
    if cases.is_empty() {
        bail!("{} holds no case", folder.display());
    }
    Ok(cases)
}

/// `count` of all mistakes that can be made, as many of each kind as of another.
fn choose(cases: &BTreeMap<String, PathBuf>, count: usize) -> anyhow::Result<Vec<Attempt>> {
    let mut chosen = Vec::new();
    for (index, kind) in MistakeKind::ALL.into_iter().enumerate() {
        let mut possible = Vec::new();
        for (case, folder) in cases {
            for file in FILES.into_iter().filter(|file| folder.join(file).is_file()) {
                let text = std::fs::read_to_string(folder.join(file))?;
                possible.extend(
                    change::of_kind(kind, &text)
                        .into_iter()
                        .map(|mutation| Attempt {
                            case: case.clone(),
                            file,
                            mutation,
                        }),
                );
            }
        }
        let share = (count + index) / MistakeKind::ALL.len();
        ensure!(
            possible.len() >= share,
            "only {} mistakes of kind {} can be made, {share} are wanted",
            possible.len(),
            kind.name()
        );
        // An even walk over all files, and not the first ones only.
        let (length, mut each) = (possible.len(), 0);
        possible.retain(|_| {
            let before = each * share / length;
            each += 1;
            each * share / length > before
        });
        chosen.extend(possible);
    }
    Ok(chosen)
}

fn try_all(
    cases: &BTreeMap<String, PathBuf>,
    attempts: &[Attempt],
    program: &Path,
    work: &Path,
) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (name, folder) in cases {
        copy(folder, &work.join(name))?;
        // Without a mistake no error may be reported.
        judge::is_fine(program, &work.join(name))?;
    }
    for attempt in attempts {
        let case = work.join(&attempt.case);
        let path = case.join(attempt.file);
        let whole = std::fs::read_to_string(&path)?;
        std::fs::write(&path, &attempt.mutation.text)?;
        if let Err(reason) = judge::is_reported(program, &case, &path, &attempt.mutation)? {
            wrong.push(format!(
                "{}/{}, {}: {}: {reason}",
                attempt.case,
                attempt.file,
                attempt.mutation.kind.name(),
                attempt.mutation.what
            ));
        }
        std::fs::write(&path, whole)?;
    }
    Ok(wrong)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            // Its text only: what is read-only there is written here.
            std::fs::write(&target, std::fs::read(entry.path())?)?;
        }
    }
    Ok(())
}
