//! `stillwell ui`.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use clap::FromArgMatches as _;
use stillwell_cluster::Store;
use stillwell_config::{Diagnostic, Severity};
use stillwell_report::FullReport;
use stillwell_scope::{Scope, Token};
use stillwell_units::Nanos;
use stillwell_web::{
    BindError, CheckedFile, ClusterJobView, FileFinding, Program, Refusal, WebOptions, WebServer,
};

use crate::arguments::{Arguments, Command, Gate, UiArguments};
use crate::command::random::random;
use crate::command::{check, cluster, compare, history, output, places, report};
use crate::exit::{CommandError, Exit};
use crate::help;
use crate::paint::Paint;
use crate::signals;

/// Time between two looks at threads that may have failed.
const LOOK_PERIOD: Duration = Duration::from_millis(500);

pub(crate) fn run(arguments: &UiArguments) -> Result<Exit, CommandError> {
    let failed = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let (raise, raised) = sync_channel(1);
    let signals = signals::listen(move |_| {
        // Another one that waits already says the same.
        raise.try_send(()).ok();
    });
    let signals = signals.map_err(|error| failed(error.into()))?;
    let options = options(arguments).map_err(failed)?;
    let server = WebServer::bind(options).map_err(refused)?;
    let url = server.url();
    let mut scope = Scope::new(&Token::new());
    let started = server.start(&mut scope);
    started.map_err(|error| failed(error.into()))?;
    let announced = Paint::data(&format!("stillwell ui: {url}\n"));
    announced.map_err(|error| failed(error.into()))?;
    let browser = arguments.open.then(|| open(&url)).flatten();
    let mut ended = Vec::new();
    while ended.is_empty() && raised.recv_timeout(LOOK_PERIOD) == Err(RecvTimeoutError::Timeout) {
        ended = scope.ends();
    }
    ended.extend(scope.close(WebServer::CLOSE_MAX));
    signals.close(Nanos::from_millis(100));
    if let Some(mut browser) = browser {
        browser.try_wait().ok();
    }
    for end in ended {
        // A report may still be made; it is not needed any more.
        if end.name != "pages"
            && let Err(failure) = end.result
        {
            let error = anyhow::Error::new(failure).context(format!("thread {}", end.name));
            return Err(failed(error));
        }
    }
    Ok(Exit::Held)
}

fn options(arguments: &UiArguments) -> anyhow::Result<WebOptions> {
    let folders = match arguments.folders.as_slice() {
        [] => vec![PathBuf::from(".")],
        folders => folders.to_vec(),
    };
    let stores = match arguments.stores.as_slice() {
        [] => folders
            .iter()
            .flat_map(|folder| stores_in(folder))
            .collect(),
        stores => stores.to_vec(),
    };
    let token = random::<20>()?;
    Ok(WebOptions {
        listen: arguments.listen,
        is_remote_allowed: arguments.allow_remote,
        folders,
        stores,
        token: token.iter().map(|byte| format!("{byte:02x}")).collect(),
        executable: std::env::current_exe()?,
        program: Box::new(Commands),
    })
}

/// Returns the folder itself and the folders in it that are stores of a cluster.
fn stores_in(folder: &Path) -> Vec<PathBuf> {
    let below = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let below = below.map(|entry| entry.path());
    let all = [folder.to_path_buf()].into_iter().chain(below);
    let mut stores: Vec<_> = all.filter(|place| Store::is_at(place)).collect();
    stores.sort();
    stores
}

fn refused(error: BindError) -> CommandError {
    match error {
        BindError::Remote(_) => CommandError::new(Exit::Usage, error)
            .hint("use `ssh -L` to reach it, or --allow-remote in a network that you trust"),
        BindError::Folder { .. } | BindError::Listen { .. } => {
            CommandError::new(Exit::CouldNotRun, error)
        }
    }
}

/// Opens the page in a browser.
fn open(url: &str) -> Option<Child> {
    let mut command = std::process::Command::new("xdg-open");
    command.arg(url).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let opened = command.spawn();
    if let Err(error) = &opened {
        Paint::print_message(&format!("note: cannot open a browser: xdg-open: {error}"));
    }
    opened.ok()
}

/// The commands, as pages use them.
struct Commands;

impl Program for Commands {
    fn report(&self, path: &Path) -> Result<FullReport, Refusal> {
        let saved = report::saved(path, Gate::Normal);
        saved.map(|(report, _)| report).map_err(refusal)
    }

    fn compare(&self, baseline: &Path, comparison: &Path) -> Result<FullReport, Refusal> {
        let mut words = vec!["compare".to_owned(), "--".to_owned()];
        words.extend([baseline, comparison].map(output::show_path));
        match parse(&words).map_err(Refusal::new)? {
            Command::Compare(arguments) => {
                words.remove(1);
                let compared = compare::report(&arguments, line(&words));
                compared.map(|(report, _)| report).map_err(refusal)
            }
            _ => Err(Refusal::new("this is not a comparison")),
        }
    }

    fn history(&self, folders: &[PathBuf], only: &str) -> Result<FullReport, Refusal> {
        let mut words = vec!["history".to_owned()];
        if !only.is_empty() {
            words.push(format!("--only={only}"));
        }
        words.push("--".to_owned());
        words.extend(folders.iter().map(|folder| output::show_path(folder)));
        match parse(&words).map_err(Refusal::new)? {
            Command::History(arguments) => {
                let mut report = history::report(&arguments).map_err(refusal)?;
                words.retain(|word| word != "--");
                report.command = line(&words);
                Ok(FullReport::from(&report))
            }
            _ => Err(Refusal::new("this is not a history")),
        }
    }

    fn cluster_jobs(&self, store: &Path) -> Result<Vec<ClusterJobView>, Refusal> {
        let states = cluster::states(store).map_err(refusal)?;
        let jobs = states.into_iter().map(|state| ClusterJobView {
            engine: state
                .engine
                .into_iter()
                .chain(state.engine_job)
                .collect::<Vec<_>>()
                .join(" "),
            tasks: state
                .tasks
                .iter()
                .map(|task| (task.name.clone(), task.line()))
                .collect(),
            name: state.job,
            ended_early: state.ended_early,
        });
        Ok(jobs.collect())
    }

    fn check(&self, file: &Path) -> CheckedFile {
        let findings = |diagnostics: &stillwell_config::Diagnostics| {
            diagnostics
                .iter()
                .map(|diagnostic| finding(diagnostic, file))
                .collect()
        };
        match check::examine(&[file.to_path_buf()]) {
            Ok((summary, warnings)) => CheckedFile {
                findings: findings(&warnings),
                summary: Some(summary),
            },
            Err(diagnostics) => CheckedFile {
                findings: findings(&diagnostics),
                summary: None,
            },
        }
    }

    fn new_folder(&self, kind: &str, name: &str, is_taken: &dyn Fn(&str) -> bool) -> String {
        let is_taken = |folder: &Path| is_taken(&folder.to_string_lossy());
        let folder = places::fresh_where(kind, name, is_taken);
        folder.display().to_string()
    }

    fn check_words(&self, words: &[String]) -> Result<(), String> {
        parse(words).map(|_| ())
    }
}

/// Parses a command line; its error is the message without the usage.
fn parse(words: &[String]) -> Result<Command, String> {
    let words = std::iter::once("stillwell".to_owned()).chain(words.iter().cloned());
    let parsed = help::full()
        .try_get_matches_from(words)
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    parsed.map(|arguments| arguments.command).map_err(|error| {
        let text = error.to_string();
        let message = text.split("\n\n").next().unwrap_or_default();
        message.trim_start_matches("error: ").trim().to_owned()
    })
}

fn line(words: &[String]) -> String {
    let program = "stillwell".to_owned();
    output::typed(std::iter::once(&program).chain(words))
}

fn refusal(error: CommandError) -> Refusal {
    Refusal {
        message: format!("{:#}", error.error),
        hint: error.hint,
    }
}

fn finding(diagnostic: &Diagnostic, file: &Path) -> FileFinding {
    let place = diagnostic.place.as_ref();
    // A relative path is below the working folder.
    let here = |path: &Path| std::path::absolute(path).is_ok_and(|path| path == file);
    let start = place
        .filter(|place| here(place.file()))
        .map(|place| place.start());
    let elsewhere = place.filter(|place| !here(place.file()));
    let message = match elsewhere {
        Some(place) => format!("{}: {}", place.file().display(), diagnostic.message),
        None => diagnostic.message.clone(),
    };
    FileFinding {
        is_error: diagnostic.severity == Severity::Error,
        line: start.map(|start| start.line),
        column: start.map(|start| start.column),
        code: diagnostic.code.to_owned(),
        message,
        help: diagnostic
            .label
            .iter()
            .chain(&diagnostic.help)
            .cloned()
            .collect(),
    }
}
