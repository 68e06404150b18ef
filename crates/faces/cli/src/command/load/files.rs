//! Files to which the result of a load is written.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_capture::{CaptureError, LoadCapture};
use stillwell_report::Format;
use stillwell_report::load::{LoadReport, NativeLoadFormat, human, render_load};

use crate::command::output;
use crate::exit::{CommandError, Exit};
use crate::secrets;

/// Format of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FileFormat {
    /// A form of reports.
    Report(Format),
    /// A format of loads.
    Load(NativeLoadFormat),
}

/// Returns the format that the extension of `file` names.
pub(super) fn format_of(file: &Path) -> Result<FileFormat, CommandError> {
    Ok(
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("json") => FileFormat::Load(NativeLoadFormat::Json),
            Some("csv") => FileFormat::Load(NativeLoadFormat::Csv),
            Some("hgrm") => FileFormat::Load(NativeLoadFormat::Hgrm),
            Some("hlog") => FileFormat::Load(NativeLoadFormat::Hlog),
            Some("txt") => FileFormat::Report(Format::Terminal),
            Some("md") => FileFormat::Report(Format::Markdown),
            Some("html") => FileFormat::Report(Format::Html),
            _ => {
                let error = anyhow::anyhow!(
                    "the extension of {} is not a format of results",
                    file.display()
                );
                let error = CommandError::new(Exit::Usage, error);
                return Err(error.hint("name it .json, .csv, .html, .md, .txt, .hgrm or .hlog"));
            }
        },
    )
}

/// Makes the folder of --capture, before anything is sent. Refuses one that takes no file, and one that has the manifest of
/// something else than a load.
pub(super) fn check_capture(folder: Option<&Path>) -> Result<(), CommandError> {
    let Some(folder) = folder else {
        return Ok(());
    };
    if !LoadCapture::can_replace(folder) {
        let manifest = folder.join("manifest.json");
        let error = anyhow::anyhow!("{} is not the manifest of a load", manifest.display());
        return Err(CommandError::new(Exit::Usage, error)
            .hint("name a new folder, or one with the capture of a load"));
    }
    LoadCapture::prepare(folder).map_err(capture_error)
}

/// Writes `capture` to the folder of --capture.
pub(super) fn write_capture(
    capture: &LoadCapture,
    folder: Option<&Path>,
) -> Result<(), CommandError> {
    match folder {
        Some(folder) => capture
            .write(folder, secrets::handling())
            .map_err(capture_error),
        None => Ok(()),
    }
}

fn capture_error(error: CaptureError) -> CommandError {
    let CaptureError { path, source } = error;
    let what = format!("write the capture to {}", path.display());
    CommandError::new(Exit::CouldNotRun, anyhow::Error::new(source).context(what))
}

/// Writes the result to all `files`, also after one that cannot be written; the first error is returned.
pub(super) fn write(report: &LoadReport, files: &[PathBuf]) -> Result<(), CommandError> {
    output::write_each(files, |file| write_file(report, file))
}

fn write_file(report: &LoadReport, file: &Path) -> Result<(), CommandError> {
    let text = match format_of(file)? {
        FileFormat::Report(format) => human::render(report, format, output::plain()),
        FileFormat::Load(format) => render_load(report, format, None, output::plain())
            .map_err(|error| CommandError::new(Exit::Invalid, error))?,
    };
    fs::write(file, text)
        .with_context(|| format!("write the result to {}", file.display()))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}
