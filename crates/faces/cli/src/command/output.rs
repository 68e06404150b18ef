//! Reports, delivered: printed, written to files, kept with the results.

use std::fs::{self, OpenOptions};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_capture::write_private;
pub(crate) use stillwell_report::history::quoted;
use stillwell_report::{Format, FullReport, Style};
use stillwell_target::Privileges;
use stillwell_units::MASK;

use crate::arguments::OutputArguments;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::secrets;

/// Advice about a command line whose secrets are masked.
const REPLACE_MASKS: &str = "replace each *** by the secret that was typed";

/// Refuses files of --output and a folder of --assets that could not be written in the end, before anything is run.
/// Makes nothing that stays.
pub(crate) fn check_outputs(output: &OutputArguments) -> Result<(), CommandError> {
    check_writable(&output.output)?;
    output.assets.as_deref().map_or(Ok(()), check_folder)
}

/// Refuses files that could not be written in the end, before anything is run. Makes nothing that stays.
pub(crate) fn check_writable(files: &[PathBuf]) -> Result<(), CommandError> {
    check_writable_as(files, |file| format_of(file).map(|_| ()))
}

/// As [`check_writable`], with another check of the file's extension.
pub(crate) fn check_writable_as(
    files: &[PathBuf],
    check: impl Fn(&Path) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    for file in files {
        check(file)?;
        check_file(file)
            .with_context(|| format!("write the report to {}", file.display()))
            .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    }
    Ok(())
}

/// Opens `file` for writing. One that was missing is removed again.
fn check_file(file: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(_) => {
            // What cannot be removed, as in a folder with the attribute `a`, can still be written.
            fs::remove_file(file).ok();
            return Ok(());
        }
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    match fs::read_link(file) {
        // A link to a missing file, which the report makes. Links in a circle are an error here, not missing.
        Ok(target) if matches!(file.try_exists(), Ok(false)) => {
            check_file(&file.with_file_name(target))
        }
        _ => OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .map(drop),
    }
}

/// Refuses a folder in which no file can be made. A missing one is not made: its nearest ancestor is checked.
fn check_folder(folder: &Path) -> Result<(), CommandError> {
    let mut places = folder.ancestors();
    let nearest = places.find(|place| place.symlink_metadata().is_ok());
    // Commands that begin at the same time do not share it.
    let name = format!(".stillwell-check-{}", std::process::id());
    let nearest = nearest.unwrap_or_else(|| Path::new(""));
    check_file(&nearest.join(name))
        .with_context(|| format!("write the charts to {}", folder.display()))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}

/// Prints the report, and writes it to the files of --output and its charts to --assets. Each is done although another one
/// fails.
///
/// # Errors
/// The first of them.
pub(crate) fn deliver(
    output: &OutputArguments,
    paint: &Paint,
    report: &FullReport,
) -> Result<(), CommandError> {
    let assets = output.assets.as_deref();
    let charts = assets.map_or(Ok(()), |folder| write_charts(report, folder));
    let format = output.format;
    let style = match format {
        Format::Terminal => styled(paint),
        _ => plain(),
    };
    let text = match assets {
        Some(folder) if format == Format::Markdown => {
            report.markdown_with_charts(&folder.to_string_lossy())
        }
        _ => report.render(format, style),
    };
    let printed = print(&text);
    let written = write_files(&output.output, report, assets);
    charts.and(printed).and(written)
}

/// Returns the first error of a report and of an upload. An upload that a signal ended goes first: the signal is the exit
/// code.
pub(crate) fn with_upload(
    reported: Result<(), CommandError>,
    uploaded: Result<(), CommandError>,
) -> Result<(), CommandError> {
    match uploaded {
        Err(error) if matches!(error.exit, Exit::Interrupted(_)) => Err(error),
        uploaded => reported.and(uploaded),
    }
}

/// Returns the exit code of a command that ran and ended with `exit`, whose report was `delivered`. An error
/// that is not returned is printed.
///
/// # Errors
/// The error of the report, if nothing else went wrong, with exit code 4; the error of an upload that a signal ended.
pub(crate) fn exit_after(
    exit: Exit,
    delivered: Result<(), CommandError>,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    match delivered {
        Ok(()) => Ok(exit),
        // A signal ended the upload.
        Err(error) if matches!(error.exit, Exit::Interrupted(_)) => Err(error),
        // It has run, so it is no longer a matter of starting.
        Err(error) if exit == Exit::Held => Err(CommandError {
            exit: Exit::Invalid,
            ..error
        }),
        // What went wrong before goes first: a full disk takes no report either.
        Err(error) => {
            paint.error(&error);
            Ok(exit)
        }
    }
}

/// Prints data.
pub(crate) fn print(text: &str) -> Result<(), CommandError> {
    Paint::data(text).map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}

/// Writes all `files` with `write`, also after one that cannot be written; the first error is returned.
pub(crate) fn write_each<T>(
    files: impl IntoIterator<Item = T>,
    write: impl Fn(T) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut written = Ok(());
    for file in files {
        let result = write(file);
        written = written.and(result);
    }
    written
}

/// Writes the report to all `files`, each in the format of its extension; Markdown shows the charts in `assets`.
pub(crate) fn write_files(
    files: &[PathBuf],
    report: &FullReport,
    assets: Option<&Path>,
) -> Result<(), CommandError> {
    write_each(files, |file| {
        let text = match (format_of(file)?, assets) {
            (Format::Markdown, Some(folder)) => {
                report.markdown_with_charts(&seen_from(file, folder))
            }
            (format, _) => report.render(format, plain()),
        };
        write(file, &text)
    })
}

fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    fs::write(file, text)
        .with_context(|| format!("write the report to {}", file.display()))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}

/// Writes every chart as a file into the folder.
fn write_charts(report: &FullReport, folder: &Path) -> Result<(), CommandError> {
    fs::create_dir_all(folder)
        .with_context(|| format!("make the folder {}", folder.display()))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    write_each(report.charts(), |chart| {
        write(&folder.join(format!("{}.svg", chart.name)), &chart.svg)
    })
}

/// Returns the address of `folder` in a page in `file`: relative where the folder is beside or below the file.
fn seen_from(file: &Path, folder: &Path) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let (file, folder) = (absolute(file), absolute(folder));
    let relative = file
        .parent()
        .and_then(|here| folder.strip_prefix(here).ok());
    match relative {
        Some(same) if same.as_os_str().is_empty() => ".".to_owned(),
        Some(below) => below.to_string_lossy().into_owned(),
        None => folder.to_string_lossy().into_owned(),
    }
}

/// Keeps the report in all formats beside the results.
pub(crate) fn keep(report: &FullReport, results: &Path) -> Result<(), CommandError> {
    for (name, format) in [
        ("report.txt", Format::Terminal),
        ("report.md", Format::Markdown),
        ("report.json", Format::Json),
        ("report.html", Format::Html),
    ] {
        let path = results.join(name);
        write_private(&path, report.render(format, plain()))
            .with_context(|| format!("write the report to {}", path.display()))
            .map_err(|error| CommandError::new(Exit::Invalid, error))?;
    }
    Ok(())
}

/// The format of a file, by its ending.
pub(crate) fn format_of(file: &Path) -> Result<Format, CommandError> {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("md") => Ok(Format::Markdown),
        Some("json") => Ok(Format::Json),
        Some("html") => Ok(Format::Html),
        Some("txt") => Ok(Format::Terminal),
        _ => Err(CommandError::new(
            Exit::Usage,
            anyhow::anyhow!("the extension of {} is not a report format", file.display()),
        )
        .hint("name it .html, .md, .json or .txt")),
    }
}

pub(crate) fn styled(paint: &Paint) -> Style {
    Style {
        color: paint.out,
        width: Paint::columns(),
    }
}

pub(crate) fn plain() -> Style {
    Style {
        color: false,
        width: 100,
    }
}

/// Says which isolation this process cannot give, if its runs need `privileges`.
pub(crate) fn report_privileges(privileges: Option<&Privileges>, quiet: bool) {
    if let (Some(Privileges::None(note)), false) = (privileges, quiet) {
        Paint::print_message(&format!("note: no {}: {}", note.what, note.why));
    }
}

/// A path as a person would type it: relative where it lies below here.
pub(crate) fn show_path(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// The same as a word of a command line, quoted for a shell.
pub(crate) fn path_word(path: &Path) -> String {
    match show_path(path) {
        here if here.is_empty() => ".".to_owned(),
        shown => quoted(&shown),
    }
}

/// The command line, as it could be typed again.
pub(crate) fn command_line() -> String {
    typed(secrets::command_words())
}

/// The same of any words; the first is the program.
pub(crate) fn typed(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let arguments = words.into_iter().skip(1);
    let arguments = arguments.map(|word| quoted(word.as_ref()));
    let line: Vec<String> = iter::once("stillwell".to_owned())
        .chain(arguments)
        .collect();
    line.join(" ")
}

/// The same for a message: the user is to type it again.
pub(crate) fn repeat_line() -> String {
    with_note(command_line())
}

/// The command that goes on where this one stopped, with what lies in `results`.
pub(crate) fn resume_line(results: &str) -> String {
    with_note(resumed(
        secrets::command_words().into_iter().skip(1),
        results,
    ))
}

/// Returns a `line` of this command's words with a note for the user if secrets in it are masked.
pub(crate) fn with_note(line: String) -> String {
    noted(line, secrets::are_masked())
}

/// The note is a comment of the shell: the line stays one command.
fn noted(line: String, is_masked: bool) -> String {
    match is_masked {
        true => format!("{line}  # {REPLACE_MASKS}"),
        false => line,
    }
}

/// Refuses `--resume` with the mask of a secret, as printed: it would be measured as if it were the secret.
pub(crate) fn check_resumed(is_resumed: bool) -> Result<(), CommandError> {
    if !is_resumed || !secrets::is_mask_typed() {
        return Ok(());
    }
    let error = anyhow::anyhow!("`{MASK}` on the command line is in place of a secret");
    Err(CommandError::new(Exit::Usage, error).hint(REPLACE_MASKS))
}

/// The command that reports what lies in `results`.
pub(crate) fn report_line(results: &str) -> String {
    format!("stillwell report {} --format markdown", quoted(results))
}

/// Replaces both flags, which may be used only once.
fn resumed(words: impl Iterator<Item = String>, results: &str) -> String {
    let mut line = vec!["stillwell".to_owned()];
    let mut words: Vec<String> = words.collect();
    let end = words.iter().position(|word| word == "--");
    // After `--` every word is a path, also one that looks like a flag.
    let paths = words.split_off(end.unwrap_or(words.len()));
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--resume" => {}
            "--results" => drop(words.next()),
            other if other.starts_with("--results=") => {}
            other => line.push(quoted(other)),
        }
    }
    line.extend([
        "--results".to_owned(),
        quoted(results),
        "--resume".to_owned(),
    ]);
    line.extend(paths.iter().map(|path| quoted(path)));
    line.join(" ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::arguments::ColorWhen;

    fn outputs(output: Vec<PathBuf>, assets: Option<PathBuf>) -> OutputArguments {
        OutputArguments {
            format: Format::Json,
            output,
            assets,
            quiet: true,
        }
    }

    #[test]
    fn a_place_that_takes_no_report_does_not_cost_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let [directory, file, assets] =
            ["a.md", "b.md", "charts"].map(|name| folder.path().join(name));
        fs::create_dir(&directory).unwrap();
        fs::write(&assets, "").unwrap();
        let report = FullReport::default();
        let files = vec![directory.clone(), file.clone()];
        let written = write_files(&files, &report, None);
        let error = written.unwrap_err().to_string();
        let expected = format!("write the report to {}", directory.display());
        assert!(error.starts_with(&expected), "{error}");
        fs::remove_file(&file).unwrap();
        let paint = Paint::new(ColorWhen::Never);
        let delivered = deliver(&outputs(files, Some(assets.clone())), &paint, &report);
        let error = delivered.unwrap_err().to_string();
        let expected = format!("make the folder {}", assets.display());
        assert!(error.starts_with(&expected), "{error}");
        assert!(file.exists());
    }

    #[test]
    fn a_check_of_outputs_refuses_those_that_take_nothing_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("folder.md")).unwrap();
        fs::create_dir(path("charts")).unwrap();
        fs::write(path("old.md"), "old").unwrap();
        symlink("missing.md", path("link.md")).unwrap();
        symlink("link.md", path("links.md")).unwrap();
        symlink("circle.md", path("circle.md")).unwrap();
        let names = || {
            let entries = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        for (file, assets, expected) in [
            ("new.md", "charts", Ok(())),
            ("old.md", "new/charts", Ok(())),
            ("link.md", "new", Ok(())),
            ("links.md", "new", Ok(())),
            ("circle.md", "new", Err(Exit::CouldNotRun)),
            ("folder.md", "new", Err(Exit::CouldNotRun)),
            ("none/new.md", "new", Err(Exit::CouldNotRun)),
            ("new.pdf", "new", Err(Exit::Usage)),
            ("new.md", "old.md", Err(Exit::CouldNotRun)),
            ("new.md", "old.md/charts", Err(Exit::CouldNotRun)),
            ("new.md", "link.md", Err(Exit::CouldNotRun)),
        ] {
            let output = outputs(vec![path(file)], Some(path(assets)));
            let checked = check_outputs(&output).map_err(|error| error.exit);
            assert_eq!(checked, expected, "{file} {assets}");
        }
        assert_eq!(names(), before);
        assert_eq!(fs::read_dir(path("charts")).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(path("old.md")).unwrap(), "old");
    }

    #[test]
    fn a_path_is_one_word_of_a_command_line() {
        let here = std::env::current_dir().unwrap();
        for (path, word) in [
            (here.join("shop"), "shop"),
            (here.join("my tests"), "'my tests'"),
            ("/srv/my tests".into(), "'/srv/my tests'"),
            (here, "."),
        ] {
            assert_eq!(path_word(&path), word, "{}", path.display());
        }
    }

    #[test]
    fn a_command_line_is_quoted_for_a_shell() {
        let words = ["/some/where/stillwell", "run", "two words", "--pairs=4"];
        assert_eq!(typed(words), "stillwell run 'two words' --pairs=4");
    }

    #[test]
    fn a_line_that_resumes_has_each_flag_once() {
        let line = |words: &str| resumed(words.split(' ').map(str::to_owned), "my results");
        let expected = "stillwell run suite --pairs 4 --results 'my results' --resume";
        for words in [
            "run suite --pairs 4",
            "run --results old suite --pairs 4",
            "run suite --results=old --pairs 4 --resume",
        ] {
            assert_eq!(line(words), expected);
        }
    }

    #[test]
    fn a_line_that_resumes_has_its_flags_before_the_paths() {
        let line = |words: &str| resumed(words.split(' ').map(str::to_owned), "r");
        for (words, expected) in [
            (
                "run --results old -- suite",
                "stillwell run --results r --resume -- suite",
            ),
            (
                "run --pairs 4 -- --resume -- x",
                "stillwell run --pairs 4 --results r --resume -- --resume -- x",
            ),
        ] {
            assert_eq!(line(words), expected);
        }
    }

    #[test]
    fn a_line_with_masked_secrets_has_a_note() {
        let line = "stillwell run --password '***' --resume";
        assert_eq!(noted(line.to_owned(), false), line);
        assert_eq!(
            noted(line.to_owned(), true),
            format!("{line}  # replace each *** by the secret that was typed")
        );
    }

    #[test]
    fn the_folder_in_a_line_that_reports_is_quoted_for_a_shell() {
        let expected = "stillwell report 'my results' --format markdown";
        assert_eq!(report_line("my results"), expected);
    }

    #[test]
    fn a_report_that_cannot_be_written_changes_only_the_exit_code_of_success() {
        let paint = Paint::new(ColorWhen::Never);
        let after = |exit: Exit, delivered: Result<(), CommandError>| {
            exit_after(exit, delivered, &paint).map_err(|error| error.exit)
        };
        let full = || CommandError::new(Exit::CouldNotRun, anyhow::anyhow!("the disk is full"));
        assert_eq!(after(Exit::Held, Ok(())), Ok(Exit::Held));
        assert_eq!(after(Exit::Held, Err(full())), Err(Exit::Invalid));
        for exit in [Exit::Failed, Exit::Invalid, Exit::Interrupted(2)] {
            assert_eq!(after(exit, Ok(())), Ok(exit));
            assert_eq!(after(exit, Err(full())), Ok(exit));
        }
    }

    #[test]
    fn a_signal_that_ended_an_upload_is_the_exit_code() {
        let paint = Paint::new(ColorWhen::Never);
        let signal = Exit::Interrupted(2);
        for exit in [Exit::Held, Exit::Failed, Exit::Invalid, signal] {
            let ended = Err(CommandError::new(signal, anyhow::anyhow!("no response")));
            let result = exit_after(exit, ended, &paint).map_err(|error| error.exit);
            assert_eq!(result, Err(signal), "{exit:?}");
        }
    }

    #[test]
    fn the_error_of_a_report_goes_before_that_of_an_upload_unless_a_signal_ended_it() {
        let failed = |exit: Exit| Err(CommandError::new(exit, anyhow::anyhow!("failed")));
        let [report, upload, signal] = [Exit::CouldNotRun, Exit::Invalid, Exit::Interrupted(2)];
        for (reported, uploaded, expected) in [
            (Ok(()), Ok(()), Ok(())),
            (failed(report), Ok(()), Err(report)),
            (Ok(()), failed(upload), Err(upload)),
            (failed(report), failed(upload), Err(report)),
            (failed(report), failed(signal), Err(signal)),
            (Ok(()), failed(signal), Err(signal)),
        ] {
            let result = with_upload(reported, uploaded).map_err(|error| error.exit);
            assert_eq!(result, expected);
        }
    }

    #[test]
    fn formats_follow_endings() {
        assert_eq!(format_of(Path::new("a.md")).unwrap(), Format::Markdown);
        assert!(format_of(Path::new("a.pdf")).is_err());
    }
}
