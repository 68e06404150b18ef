//! `stillwell completions` and `stillwell man`.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::exit::{CommandError, Exit};
use crate::help;
use crate::paint::Paint;

/// Prints the completions of `shell`.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut help::full(), "stillwell", &mut script);
    Paint::data(&String::from_utf8_lossy(&script))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(Exit::Held)
}

/// Writes a man page of each command to `folder`.
pub(crate) fn man(folder: &Path) -> Result<Exit, CommandError> {
    let written = fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(help::full(), folder))
        .with_context(|| format!("write man pages to {}", folder.display()));
    written.map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(Exit::Held)
}
