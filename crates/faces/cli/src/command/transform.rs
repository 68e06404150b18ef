//! `stillwell transform`, and `nighthawk_output_transform`.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use stillwell_config::files::read_text;
use stillwell_nighthawk as nighthawk;
use stillwell_nighthawk::format::{LoadFormat, read_load, render_log, render_nighthawk};
use stillwell_report::Style;
use stillwell_report::load::{HistogramLog, NativeLoadFormat};

use crate::arguments::{NighthawkTransformArguments, TransformArguments, TransformSource};
use crate::command::load::format::render;
use crate::command::nighthawk_line;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

pub(crate) fn run(arguments: &TransformArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let text = read(arguments.file.as_deref()).and_then(|text| transform(&text, arguments, paint));
    let text = text.map_err(|error| {
        CommandError::new(Exit::Usage, error)
            .hint("`stillwell transform --help` lists the formats of each source")
    })?;
    let printed = Paint::data(&text).context("print the result");
    printed.map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(Exit::Held)
}

/// The whole of the ancestor's tool, with its own exit codes.
pub(crate) fn run_as_nighthawk() -> ExitCode {
    let arguments = match nighthawk_line::parse::<NighthawkTransformArguments>() {
        Ok(arguments) => arguments,
        Err(exit) => return exit.into(),
    };
    let text = read(None).and_then(|text| Ok(nighthawk::read_json(&text)?));
    let text = text.and_then(|output| {
        let format = LoadFormat::Nighthawk(arguments.output_format.0);
        Ok(render_nighthawk(&output, format, None)?)
    });
    let printed = text.and_then(|text| Ok(Paint::data(&text)?));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            Paint::print_message(&format!("Input error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn transform(text: &str, arguments: &TransformArguments, paint: &Paint) -> anyhow::Result<String> {
    let format = arguments.output_format;
    let statistic = arguments.statistic.as_deref();
    if statistic.is_some() && format != LoadFormat::Native(NativeLoadFormat::Hgrm) {
        bail!("--statistic needs --output-format hgrm");
    }
    let source = arguments.from.unwrap_or_else(|| source_of(text));
    let text = match source {
        TransformSource::Stillwell => {
            let style = Style {
                color: paint.out,
                width: Paint::columns(),
            };
            return Ok(render(&read_load(text)?, format, statistic, style)?);
        }
        TransformSource::Nighthawk => {
            let json = behind_logs(text);
            if is_summary(json) {
                bail!(
                    "it is the summary of a load, which has no histograms; convert the output of \
                     `stillwell load --format stillwell`"
                );
            }
            let output = nighthawk::read_json(json)?;
            render_nighthawk(&output, format, statistic)
        }
        TransformSource::NighthawkYaml => {
            let output = nighthawk::read_yaml(text)?;
            render_nighthawk(&output, format, statistic)
        }
        TransformSource::Hlog => {
            let log = HistogramLog::read(text).context("read the log of histograms")?;
            render_log(&log, format, statistic, env!("CARGO_PKG_VERSION"))
        }
    };
    Ok(text?)
}

/// Most bytes that are typed at a terminal.
const TYPED_MAX: u64 = 1 << 20;

fn read(file: Option<&Path>) -> anyhow::Result<String> {
    match file.filter(|file| *file != Path::new("-")) {
        Some(file) => read_text(file).with_context(|| format!("read {}", file.display())),
        None if io::stdin().is_terminal() => {
            let mut text = String::new();
            let typed = io::stdin().lock().take(TYPED_MAX);
            { typed }
                .read_to_string(&mut text)
                .context("read standard input")?;
            Ok(text)
        }
        None => read_text(Path::new("/dev/stdin")).context("read standard input"),
    }
}

/// Detects the format of a text.
fn source_of(text: &str) -> TransformSource {
    let behind = behind_logs(text);
    if behind.starts_with('{') {
        let schema = behind.contains("\"schema\"") && behind.contains("\"stillwell/load/");
        if schema {
            TransformSource::Stillwell
        } else {
            TransformSource::Nighthawk
        }
    } else if text.contains(",HISTFAAA") {
        TransformSource::Hlog
    } else {
        TransformSource::NighthawkYaml
    }
}

/// Returns true for JSON of `--format json`.
fn is_summary(json: &str) -> bool {
    json.contains("\"schema\"") && json.contains("\"stillwell/load-summary/")
}

/// `text` without lines in front of it that a tool logged, which begin with `[`.
fn behind_logs(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with('[') {
        match rest.split_once('\n') {
            Some((_, behind)) => rest = behind.trim_start(),
            None => return text,
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_known_by_their_looks() {
        for (text, source) in [
            (
                "[21:28:12][I] Starting\n{\"results\": []}",
                TransformSource::Nighthawk,
            ),
            (
                "{\"schema\": \"stillwell/load/v2\"}",
                TransformSource::Stillwell,
            ),
            ("#[a]\n0.0,1.0,2.0,HISTFAAAx\n", TransformSource::Hlog),
            ("options:\n  uri: a\n", TransformSource::NighthawkYaml),
        ] {
            assert_eq!(source_of(text), source, "{text}");
        }
    }
}
