//! `stillwell init`.

mod answers;
mod choice;
mod probe;
mod unwritten;
mod workflow;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use stillwell_config::scaffold::{
    OutputProtocol, ProgramKind, Scaffold, ScaffoldBuild, ScaffoldInput, ScaffoldOutput,
    ScaffoldProgram, ScaffoldTarget,
};
use stillwell_config::{Loader, SchemaOf, SuiteOverrides, VariantArgument};
use stillwell_run::Interrupt;
use stillwell_scope::Token;
use stillwell_target::Privileges;
use stillwell_units::Nanos;

use self::answers::Answers;
use self::probe::{ProbeError, ProbeReport, ProbeRequest};
use self::unwritten::Unwritten;
use crate::arguments::InitArguments;
use crate::command::{output, places, select};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::signals;

/// Name of the file in the folder of an experiment.
const EXPERIMENT: &str = "experiment.yaml";
/// Name of the file with its schema.
const SCHEMA: &str = "experiment.schema.json";

pub(crate) fn run(
    arguments: &InitArguments,
    paint: &Paint,
    privileges: &Privileges,
) -> Result<Exit, CommandError> {
    if let Some(host) = arguments.ci {
        return workflow::run(host, arguments);
    }
    let answers = Answers::complete(arguments)?;
    let folder = answers.folder.clone();
    // Before anything is started.
    refuse_existing(&folder.join(EXPERIMENT), arguments.force)?;
    let (scaffold, report) = match &answers.command {
        Some(words) => {
            output::report_privileges(Some(privileges), false);
            of_program(arguments, &answers, words)?
        }
        None => (of_urls(arguments, &answers), Vec::new()),
    };
    for remark in &report {
        Paint::print_message(&format!("  {remark}"));
    }
    let file = folder.join(EXPERIMENT);
    check(&file, &scaffold.text(), paint)?;
    write(&file, &scaffold.text(), arguments.force)?;
    write_schema(&folder)?;
    output::print(&closing_lines(&file, &folder))?;
    Ok(Exit::Held)
}

/// Returns the lines about what was written, and the commands to run next.
fn closing_lines(file: &Path, folder: &Path) -> String {
    let folder = output::path_word(folder);
    format!(
        "wrote {}\nnext: stillwell check {folder}\n      stillwell run {folder} --quick\n",
        output::show_path(file)
    )
}

/// Starts the program once, and returns its experiment with remarks.
fn of_program(
    arguments: &InitArguments,
    answers: &Answers,
    words: &[String],
) -> Result<(Scaffold, Vec<String>), CommandError> {
    let here = std::env::current_dir().context("find the working directory");
    let here = here.map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    let experiment = std::path::absolute(&answers.folder);
    let experiment = experiment.map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    let back = Back::between(&here, &experiment);
    let input_file = (answers.kind == Some(ProgramKind::Files)).then(|| arguments.file.clone());
    let output_file = answers.output.as_ref().and_then(file_of_output);
    let mut files = input_file.as_deref().into_iter().chain(output_file);
    let directory = words.iter().skip(1).any(|word| names_path(word)) || files.any(is_relative);
    let request = ProbeRequest {
        words: words.to_vec(),
        directory: directory.then(|| here.clone()),
        experiment,
        kind: answers.kind,
        input_file,
        needs_host: answers.kind == Some(ProgramKind::Kafka),
        wait: arguments.wait,
    };
    Paint::print_message(&format!("starting {} once …", output::quoted(&words[0])));
    let report = probed(&request)?;
    let ProbeReport {
        choice,
        has_private_network,
    } = report;
    let input = match choice.kind {
        ProgramKind::Files => ScaffoldInput::File(back.path(&arguments.file)),
        ProgramKind::Kafka => ScaffoldInput::Topic {
            broker: answers.broker.clone(),
            topic: answers.topic.clone(),
        },
        _ => choice.input,
    };
    let same = VariantArgument::Same;
    let variants = [&arguments.baseline, &arguments.comparison];
    let variants = variants.map(|typed| typed.as_ref().unwrap_or(&same));
    let program = ScaffoldProgram {
        words: back.of_command(words),
        directory: directory.then(|| back.path("")),
        ready: Some(choice.ready),
        has_private_network,
        variants: variants.map(|variant| back.of_variant(variant)),
        build: ScaffoldBuild {
            command: arguments.build.clone().unwrap_or_default(),
            output: arguments.build_output.clone().unwrap_or_default(),
            repository: Some(back.path("")),
        },
    };
    let scaffold = Scaffold {
        name: answers.name.clone(),
        folder: output::path_word(&answers.folder),
        kind: choice.kind,
        target: ScaffoldTarget::Program(Box::new(program)),
        input,
        output: answers.output.as_ref().map(|output| back.of_output(output)),
        payload: arguments.payload.clone(),
        rate: arguments.rate.clone(),
        remarks: choice.remarks.clone(),
    };
    Ok((scaffold, choice.remarks))
}

/// Runs the probe in a folder for its state, which is removed.
fn probed(request: &ProbeRequest) -> Result<ProbeReport, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let state_root = places::guarded_state_root().map_err(could_not)?;
    let (interrupt, token) = (Interrupt::new(), Token::new());
    let (raised, cancelled) = (interrupt.clone(), token.clone());
    let signals = signals::listen(move |signal| {
        raised.raise(signal);
        cancelled.cancel();
    });
    let signals = signals.map_err(|error| could_not(error.into()))?;
    let result = probe::probe(request, &state_root, &token);
    signals.close(Nanos::SECOND);
    // It holds only temporary state.
    fs::remove_dir_all(&state_root).ok();
    result.map_err(|error| match interrupt.signal() {
        Some(signal) => CommandError::new(Exit::Interrupted(signal), error),
        None => refused(error, request.directory.is_some()),
    })
}

fn of_urls(arguments: &InitArguments, answers: &Answers) -> Scaffold {
    let [baseline, comparison] = &answers.urls;
    Scaffold {
        name: answers.name.clone(),
        folder: output::path_word(&answers.folder),
        kind: ProgramKind::Http,
        target: ScaffoldTarget::Urls([baseline.clone(), comparison.clone()]),
        input: ScaffoldInput::Target,
        output: None,
        payload: None,
        rate: arguments.rate.clone(),
        remarks: Vec::new(),
    }
}

/// Returns the error with a hint. `is_here` is true if the program starts in the working directory.
fn refused(error: ProbeError, is_here: bool) -> CommandError {
    let hint = match &error {
        ProbeError::Ended { exit, .. } if exit.is_success() => {
            "a target stays in the foreground: use the option of the program that keeps it there, such as \
             `daemon off;` of nginx"
        }
        ProbeError::Ended { .. } if is_here => {
            "PATH is its only environment variable, and it has no standard input: use `env -i` to try it"
        }
        ProbeError::Ended { .. } => {
            "its working directory is a new folder, PATH is its only environment variable, and it has no standard input: \
             use absolute paths, and `env -i` to try it"
        }
        ProbeError::NoPort { .. } => {
            "use a longer --wait; a program that opens no port needs --kind files or --kind kafka"
        }
        ProbeError::Start(_) => "check the name and the path of the program",
        ProbeError::Interrupted => "nothing was written",
    };
    let error = anyhow::Error::new(error);
    CommandError::new(Exit::CouldNotRun, error).hint(hint)
}

/// Refuses a file that exists.
fn refuse_existing(file: &Path, is_forced: bool) -> Result<(), CommandError> {
    if is_forced || !file.exists() {
        return Ok(());
    }
    let error = anyhow::anyhow!("{} exists", output::show_path(file));
    Err(CommandError::new(Exit::Usage, error).hint("give another folder, or --force to replace it"))
}

/// Writes a file and its folders; one that exists stays unless `is_forced`.
fn write(file: &Path, text: &str, is_forced: bool) -> Result<(), CommandError> {
    refuse_existing(file, is_forced)?;
    let written = || -> anyhow::Result<()> {
        if let Some(folder) = file
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.write(true);
        match is_forced {
            true => options.create(true).truncate(true),
            // Another program may have made it in the meantime.
            false => options.create_new(true),
        };
        options.open(file)?.write_all(text.as_bytes())?;
        Ok(())
    };
    written()
        .with_context(|| format!("write {}", file.display()))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}

/// Writes the schema for editors, which this program makes; it replaces an older one.
fn write_schema(folder: &Path) -> Result<(), CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let schema = stillwell_config::schema(SchemaOf::Experiment);
    let schema = serde_json::to_string(&schema).map_err(|error| could_not(error.into()))?;
    write(&folder.join(SCHEMA), &(schema + "\n"), true)
}

/// Checks the text of a file before it is written: flags such as --rate are copied into it.
fn check(file: &Path, text: &str, paint: &Paint) -> Result<(), CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let path = std::path::absolute(file).map_err(|error| could_not(error.into()))?;
    let folder = path.parent().unwrap_or(&path).to_owned();
    let is_new = !folder.exists();
    // Relative paths in the file lead through it.
    fs::create_dir_all(&folder)
        .with_context(|| format!("make the folder {}", folder.display()))
        .map_err(could_not)?;
    let paths = [path.clone()];
    let files = Unwritten {
        path,
        text: text.to_owned(),
    };
    let loaded = Loader::new(&files, &[]).suite(&paths, &SuiteOverrides::default());
    loaded.map(drop).map_err(|diagnostics| {
        if is_new {
            // It is empty. What cannot be removed stays.
            fs::remove_dir(&folder).ok();
        }
        select::refused(&diagnostics, paint)
    })
}

/// Returns true if an argument names a file or folder by a relative path.
fn names_path(word: &str) -> bool {
    let value = word.rsplit_once('=').map_or(word, |(_, value)| value);
    let is_relative = !value.starts_with(['/', '{', '-']) && !value.is_empty();
    is_relative && Path::new(value).exists()
}

/// Returns true if the path of an option counts from the working directory.
fn is_relative(path: &str) -> bool {
    !path.starts_with(['/', '{'])
}

/// Returns the path of an output that is a file.
fn file_of_output(output: &ScaffoldOutput) -> Option<&str> {
    let is_file = output.protocol == OutputProtocol::File;
    is_file.then_some(output.place.as_str())
}

/// The way from the folder of an experiment back to the working directory.
#[derive(Clone, Debug)]
struct Back(String);

impl Back {
    fn between(here: &Path, experiment: &Path) -> Self {
        // With `..`, a path that begins with the working directory may lead out of it.
        let is_down = |below: &&Path| {
            let mut parts = below.components();
            parts.all(|part| matches!(part, Component::Normal(_)))
        };
        let below = experiment.strip_prefix(here).ok().filter(is_down);
        Self(match below {
            Some(below) => vec![".."; below.components().count()].join("/"),
            None => here.to_string_lossy().into_owned(),
        })
    }

    /// Returns a relative path as seen from the experiment.
    fn path(&self, path: &str) -> String {
        let path = path.trim_start_matches("./");
        match (self.0.is_empty(), path.is_empty()) {
            _ if !is_relative(path) => path.to_owned(),
            (true, true) => ".".to_owned(),
            (true, false) => format!("./{path}"),
            (false, true) => self.0.clone(),
            (false, false) => format!("{}/{path}", self.0),
        }
    }

    /// Returns a command whose program, if it is a path, is seen from the experiment.
    fn of_command(&self, words: &[String]) -> Vec<String> {
        let mut words = words.to_vec();
        if let Some(program) = words.first_mut().filter(|program| program.contains('/')) {
            *program = self.path(program);
        }
        words
    }

    /// Returns an output whose place, if it is a file, is seen from the experiment.
    fn of_output(&self, output: &ScaffoldOutput) -> ScaffoldOutput {
        let mut moved = output.clone();
        if let Some(path) = file_of_output(output) {
            moved.place = self.path(path);
        }
        moved
    }

    fn of_variant(&self, variant: &VariantArgument) -> VariantArgument {
        let moved = |path: &PathBuf| PathBuf::from(self.path(&path.to_string_lossy()));
        match variant {
            VariantArgument::Binary(path) => VariantArgument::Binary(moved(path)),
            VariantArgument::Files(path) => VariantArgument::Files(moved(path)),
            VariantArgument::Command(words) => VariantArgument::Command(self.of_command(words)),
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_to_run_next_can_be_pasted() {
        let folder = Path::new("my tests");
        assert_eq!(
            closing_lines(&folder.join(EXPERIMENT), folder),
            "wrote my tests/experiment.yaml\n\
             next: stillwell check 'my tests'\n      stillwell run 'my tests' --quick\n"
        );
    }

    #[test]
    fn only_a_program_that_starts_in_a_new_folder_has_a_hint_about_it() {
        for is_here in [true, false] {
            let ended = ProbeError::Ended {
                after: Nanos::ZERO,
                exit: stillwell_target::Exit::default(),
                lines: String::new(),
            };
            let hint = refused(ended, is_here).hint.unwrap();
            assert_eq!(hint.contains("a new folder"), !is_here, "{hint}");
        }
    }

    #[test]
    fn paths_are_seen_from_the_folder_of_the_experiment() {
        let here = Path::new("/srv");
        for (experiment, path, expected) in [
            ("/srv/shop", "./server", "../server"),
            ("/srv/a/b", "bin/server", "../../bin/server"),
            ("/srv", "server/x", "./server/x"),
            ("/srv", "", "."),
            ("/srv/shop", "", ".."),
            ("/other/shop", "./server", "/srv/server"),
            ("/srv/shop", "/usr/bin/server", "/usr/bin/server"),
            ("/srv/shop", "{state}/x", "{state}/x"),
        ] {
            let back = Back::between(here, Path::new(experiment));
            assert_eq!(back.path(path), expected, "{experiment}");
        }
        let back = Back::between(here, Path::new("/srv/shop"));
        let words = ["server", "./x"].map(str::to_owned);
        assert_eq!(back.of_command(&words), words, "a name is looked up");
    }

    #[test]
    fn a_relative_file_of_an_option_is_in_the_working_directory() {
        let back = Back::between(Path::new("/srv"), Path::new("/srv/shop"));
        for (typed, expected, is_here) in [
            ("file:out.log", "file:../out.log", true),
            ("file:./logs/out", "file:../logs/out", true),
            ("file:/tmp/out", "file:/tmp/out", false),
            ("file:{state}/out", "file:{state}/out", false),
            ("tcp:127.0.0.1:9200", "tcp:127.0.0.1:9200", false),
        ] {
            let output: ScaffoldOutput = typed.parse().unwrap();
            assert_eq!(back.of_output(&output).to_string(), expected);
            assert_eq!(
                file_of_output(&output).is_some_and(is_relative),
                is_here,
                "{typed}"
            );
        }
    }

    #[test]
    fn a_folder_beside_the_working_directory_is_not_below_it() {
        let here = Path::new("/srv/app");
        for experiment in ["/srv/app/../bench", "/srv/app/a/../../bench"] {
            let back = Back::between(here, Path::new(experiment));
            assert_eq!(back.path("./server"), "/srv/app/server", "{experiment}");
        }
    }
}
