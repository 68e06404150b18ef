//! `stillwell lint`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use stillwell_config::foreign::Linted;
use stillwell_units::human::counted;

use crate::arguments::LintArguments;
use crate::command::{output, select};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;

/// Does what `arguments` say.
pub(crate) fn run(arguments: &LintArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let linted = loader()
        .lint(&arguments.paths)
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    let (mut left, mut fixed) = (0, 0);
    for file in &linted {
        if let (true, Some(text)) = (arguments.fix, &file.fixed) {
            rewrite(&file.path, text)
                .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
            fixed += file.fixable;
            left += file.diagnostics.len() - file.fixable;
            let path = output::show_path(&file.path);
            output::print(&format!("{path}: {} rewritten\n", file.fixable))?;
        } else {
            left += file.diagnostics.len();
        }
        let is_left = !arguments.fix || file.fixable < file.diagnostics.len();
        if is_left && !file.diagnostics.is_empty() {
            Paint::print_message(&file.diagnostics.render(paint.err));
        }
    }
    output::print(&summary(&linted, left, fixed, arguments.fix))?;
    Ok(if left == 0 { Exit::Held } else { Exit::Failed })
}

fn summary(linted: &[Linted], left: usize, fixed: usize, is_fixing: bool) -> String {
    let files = linted.len();
    let fixable: usize = linted.iter().map(|file| file.fixable).sum();
    let files = counted(files, "file", "files");
    let spellings = |number| counted(number, "outdated spelling", "outdated spellings");
    match (left, is_fixing) {
        (0, false) => format!("{files}, no outdated spellings\n"),
        (0, true) => format!("{files}, {} rewritten\n", spellings(fixed)),
        (_, true) => format!("{files}, {} rewritten, {left} left\n", spellings(fixed)),
        (_, false) => {
            let left = spellings(left);
            format!("{files}, {left}; `--fix` rewrites {fixable} of them\n")
        }
    }
}

/// Replaces a file in one step; its permissions stay.
fn rewrite(path: &Path, text: &str) -> anyhow::Result<()> {
    // What a link points at is rewritten, not the link.
    let path = &fs::canonicalize(path).with_context(|| format!("find {}", path.display()))?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let write = || {
        fs::write(&new, text)?;
        fs::set_permissions(&new, fs::metadata(path)?.permissions())?;
        fs::rename(&new, path)
    };
    write().with_context(|| format!("rewrite {}", path.display()))
}
