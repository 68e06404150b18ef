//! Answers about the program: from flags, and on a terminal from the user.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use stillwell_config::CommandArgument;
use stillwell_config::scaffold::{ProgramKind, ScaffoldOutput};

use crate::arguments::InitArguments;
use crate::command::places;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Programs that run the file that their first argument names.
const INTERPRETERS: [&str; 9] = [
    "bash", "java", "node", "perl", "php", "python", "python3", "ruby", "sh",
];
/// Longest answer that is read.
const ANSWER_MAX: u64 = 64 << 10;

/// Complete answers.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    /// Program and arguments; `None` for services that run already.
    pub(super) command: Option<Vec<String>>,
    /// URLs of services that run already, or empty.
    pub(super) urls: [String; 2],
    /// Kind of the program; `None` to find it.
    pub(super) kind: Option<ProgramKind>,
    pub(super) broker: String,
    pub(super) topic: String,
    /// Receiver of the output of a pipeline.
    pub(super) output: Option<ScaffoldOutput>,
    pub(super) folder: PathBuf,
    pub(super) name: String,
}

impl Answers {
    /// Returns the answers of the flags; what is missing comes from the terminal, or is an error without one.
    pub(super) fn complete(arguments: &InitArguments) -> Result<Self, CommandError> {
        let dialog = Dialog::new();
        let urls = urls(arguments)?;
        let has_urls = urls.is_some();
        let command = match (&arguments.command, has_urls) {
            (_, true) => None,
            (Some(command), false) => Some(words(command)),
            (None, false) => {
                let question = "Command that starts the program";
                let typed = dialog.require(question, "--command COMMAND, or --url twice")?;
                let command: CommandArgument = typed.parse().map_err(usage)?;
                Some(words(&command))
            }
        };
        let kind = match (arguments.kind, &arguments.command, has_urls) {
            (None, None, false) => dialog.kind()?,
            (kind, ..) => kind,
        };
        let is_consumer = kind == Some(ProgramKind::Kafka);
        let (mut broker, mut topic) = (String::new(), String::new());
        if is_consumer {
            broker = match &arguments.broker {
                Some(broker) => broker.clone(),
                None => dialog.require("Broker, as HOST:PORT", "--broker HOST:PORT")?,
            };
            topic = match &arguments.topic {
                Some(topic) => topic.clone(),
                None => dialog.require("Topic", "--topic TOPIC")?,
            };
        }
        let output = match &arguments.output {
            Some(output) => Some(output.clone()),
            None if has_urls => None,
            None => dialog.output(kind)?,
        };
        check_build(arguments)?;
        let folder = match &arguments.folder {
            Some(folder) => folder.clone(),
            None => default_folder(command.as_deref()),
        };
        let name = arguments.name.clone();
        let name = name.unwrap_or_else(|| places::name_of(&folder));
        Ok(Self {
            command,
            urls: urls.unwrap_or_default(),
            kind,
            broker,
            topic,
            output,
            folder,
            name,
        })
    }
}

/// Returns the build command and its output, which a workflow needs.
pub(super) fn build(arguments: &InitArguments) -> Result<[String; 2], CommandError> {
    let dialog = Dialog::new();
    let build = match &arguments.build {
        Some(build) => build.clone(),
        None => dialog.require("Shell command that builds a revision", "--build COMMAND")?,
    };
    let output = match &arguments.build_output {
        Some(output) => output.clone(),
        None => dialog.require("Executable that the build makes", "--build-output PATH")?,
    };
    Ok([build, output])
}

fn usage(text: String) -> CommandError {
    CommandError::new(Exit::Usage, anyhow::anyhow!(text))
}

/// Returns the two URLs, if any was given.
fn urls(arguments: &InitArguments) -> Result<Option<[String; 2]>, CommandError> {
    match arguments.urls.as_slice() {
        [] => Ok(None),
        [baseline, comparison] => Ok(Some([baseline.clone(), comparison.clone()])),
        _ => Err(usage("--url must be given exactly twice".to_owned())
            .hint("give the URL of the baseline, then that of the comparison")),
    }
}

/// Refuses a variant of a revision that cannot be built.
fn check_build(arguments: &InitArguments) -> Result<(), CommandError> {
    let variants = [&arguments.baseline, &arguments.comparison];
    let is_built = variants
        .into_iter()
        .flatten()
        .any(|variant| matches!(variant, stillwell_config::VariantArgument::Git(_)));
    if is_built && (arguments.build.is_none() || arguments.build_output.is_none()) {
        let error = "a git: variant needs --build COMMAND and --build-output PATH";
        return Err(usage(error.to_owned()));
    }
    Ok(())
}

fn words(command: &CommandArgument) -> Vec<String> {
    let program = command.program.to_string_lossy().into_owned();
    [program]
        .into_iter()
        .chain(command.arguments.clone())
        .collect()
}

/// Returns a folder with the name of the program, or of the file that an interpreter runs. A file of that name, often
/// the program itself, gets a suffix.
fn default_folder(command: Option<&[String]>) -> PathBuf {
    let name = match command {
        None | Some([]) => "experiment".to_owned(),
        Some([program, arguments @ ..]) => {
            let program = places::name_of(Path::new(program));
            let is_interpreter = INTERPRETERS.contains(&program.as_str());
            let script = arguments.first().filter(|word| !word.starts_with('-'));
            match script.filter(|_| is_interpreter) {
                Some(script) => places::name_of(Path::new(script)),
                None => program,
            }
        }
    };
    match Path::new(&name).is_file() {
        true => format!("{name}-experiment").into(),
        false => name.into(),
    }
}

/// Questions on a terminal.
#[derive(Debug)]
struct Dialog {
    is_terminal: bool,
}

impl Dialog {
    fn new() -> Self {
        Self {
            is_terminal: io::stdin().is_terminal() && io::stderr().is_terminal(),
        }
    }

    /// Returns the answer to a question; without a terminal an error that names the `flag`.
    fn require(&self, question: &str, flag: &str) -> Result<String, CommandError> {
        let line = self.line(question);
        line.filter(|line| !line.is_empty())
            .ok_or_else(|| usage(format!("a value is missing: give {flag}")))
    }

    fn kind(&self) -> Result<Option<ProgramKind>, CommandError> {
        if !self.is_terminal {
            return Ok(None);
        }
        for kind in ProgramKind::ALL {
            Paint::print_message(&format!("  {:<6} {}", kind.name(), kind.about()));
        }
        let line = self.line("Kind of the program [detect it from the ports]");
        match line.filter(|line| !line.is_empty()) {
            Some(line) => line.parse().map(Some).map_err(usage),
            None => Ok(None),
        }
    }

    /// Returns the output of a pipeline; `None` if it has none.
    fn output(&self, kind: Option<ProgramKind>) -> Result<Option<ScaffoldOutput>, CommandError> {
        let is_pipeline =
            kind.is_some_and(|kind| !matches!(kind, ProgramKind::Http | ProgramKind::Kafka));
        if !is_pipeline {
            return Ok(None);
        }
        let line = self.line("Output of the program, as tcp:127.0.0.1:9200 or file:PATH [none]");
        match line.filter(|line| !line.is_empty()) {
            Some(line) => line.parse().map(Some).map_err(usage),
            None => Ok(None),
        }
    }

    /// Reads one line; `None` at the end of the input or without a terminal.
    fn line(&self, question: &str) -> Option<String> {
        if !self.is_terminal {
            return None;
        }
        Paint::print_message(&format!("{question}:"));
        let mut line = String::new();
        let mut input = io::stdin().lock().take(ANSWER_MAX);
        let length = input.read_line(&mut line).ok()?;
        (length > 0).then(|| line.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_named_after_the_program_or_its_script() {
        for (command, expected) in [
            ("./bin/my-server --port 80", "my-server"),
            ("python3 service.py 1", "service"),
            ("sh -c 'exit 1'", "sh"),
            ("java", "java"),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(default_folder(Some(&words)), Path::new(expected));
        }
        assert_eq!(default_folder(None), Path::new("experiment"));
    }
}
