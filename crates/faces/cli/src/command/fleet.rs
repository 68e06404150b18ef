//! Engine, store and command lines of tasks, for all commands on several machines.

use std::path::{Path, PathBuf};

use stillwell_cluster::{
    Engine, EngineError, FleetError, JobStore, KubernetesEngine, KubernetesOptions, LocalEngine,
    RetryBounds, SlurmEngine, Store, StoreError,
};
use stillwell_run::Interrupt;
use stillwell_units::{Secrets, Seed};

use super::random::random;
use crate::arguments::{Command, EngineName, JobArguments};
use crate::command_line::read_words;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::secrets;

pub(crate) fn could_not(error: impl Into<anyhow::Error>) -> CommandError {
    CommandError::new(Exit::CouldNotRun, error)
}

pub(crate) fn usage(why: impl Into<String>) -> CommandError {
    CommandError::new(Exit::Usage, anyhow::anyhow!(why.into()))
}

/// Returns the end of a job. After a signal, an error has the exit code of that signal.
pub(crate) fn interrupted_by<T>(
    interrupt: &Interrupt,
    ended: Result<T, CommandError>,
) -> Result<T, CommandError> {
    ended.map_err(|error| match interrupt.signal() {
        Some(signal) => CommandError {
            exit: Exit::Interrupted(signal),
            ..error
        },
        None => error,
    })
}

/// Returns the error of a job that is to be printed, and whose engine is not named.
pub(crate) fn no_engine() -> CommandError {
    usage("--on and --store are required")
}

/// Prints `text`, with which an engine would start tasks.
pub(crate) fn print_rendered(text: &str) -> Result<Exit, CommandError> {
    Paint::data(text).map_err(could_not)?;
    Ok(Exit::Held)
}

/// Returns the engine with these options.
pub(crate) fn engine_named(
    name: EngineName,
    job: &JobArguments,
) -> Result<Box<dyn Engine>, CommandError> {
    let options = &job.engine_option;
    Ok(match name {
        EngineName::Local => Box::new(LocalEngine),
        EngineName::Slurm => Box::new(SlurmEngine {
            options: options.clone(),
        }),
        EngineName::Kubernetes => Box::new(KubernetesEngine {
            options: KubernetesOptions::parse(options)
                .map_err(|error| CommandError::new(Exit::Usage, error))?,
        }),
    })
}

/// Returns the objects of a job; its name begins with `kind` if it is random.
pub(crate) fn open_store(
    job: &JobArguments,
    kind: &str,
    is_made: bool,
) -> Result<JobStore, CommandError> {
    let place = job.store.as_deref().unwrap_or_else(|| Path::new(""));
    // Generators may run in other folders.
    let place = match place.starts_with("s3:") {
        true => Ok(place.to_owned()),
        false => std::path::absolute(place),
    };
    let store = Store::open(&place.map_err(could_not)?, is_made).map_err(could_not)?;
    let job = match &job.job {
        Some(job) => job.clone(),
        None => {
            let number = u32::from_le_bytes(random().map_err(could_not)?);
            format!("{kind}-{number:08x}")
        }
    };
    JobStore::new(store, &job, RetryBounds::default())
        .map_err(|error| CommandError::new(Exit::Usage, error))
}

/// Returns the place of the store, as generators know it.
pub(crate) fn place(job: &JobArguments, store: &JobStore) -> PathBuf {
    let folder = store.store().folder().or(job.store.as_deref());
    folder.unwrap_or_else(|| Path::new("")).to_owned()
}

/// Returns the folder of the logs of a job.
pub(crate) fn logs(store: &JobStore) -> Result<PathBuf, CommandError> {
    match store.store().folder() {
        Some(folder) => Ok(folder.join(store.job()).join("logs")),
        None => {
            std::path::absolute(PathBuf::from(format!("{}-logs", store.job()))).map_err(could_not)
        }
    }
}

/// Returns the arguments of each task.
pub(crate) fn task_words(job: &JobArguments, store: &JobStore) -> Vec<String> {
    let mut words = vec![
        "cluster".to_owned(),
        "generate".to_owned(),
        format!("--store={}", place(job, store).display()),
        format!("--job={}", store.job()),
    ];
    if secrets::handling() == Secrets::Kept {
        words.push("--keep-secrets".to_owned());
    }
    words
}

/// Returns the working folder and the command line of this process, which tasks read again.
///
/// # Errors
/// [`CommandError`] if a secret is in it: the store would contain it in plain text.
pub(crate) fn shared_line() -> Result<(PathBuf, Vec<String>), CommandError> {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // These name a secret of the cluster.
    let is_name = |word: &String| {
        let option = word.strip_prefix("--engine-option=").unwrap_or(word);
        ["--store-secret=", "--pull-secret="]
            .iter()
            .any(|name| option.starts_with(name))
    };
    let typed: Vec<String> = words
        .iter()
        .filter(|word| !is_name(word))
        .cloned()
        .collect();
    if secrets::handling().words(&typed) != typed {
        return Err(usage(
            "a secret on the command line would be saved in the store: put it into a file",
        )
        .hint("--keep-secrets saves it in the store and in the results"));
    }
    Ok((std::env::current_dir().map_err(could_not)?, words))
}

/// Reads the command line of a job in its working folder, and its seed.
///
/// # Errors
/// [`CommandError`] if another version of Stillwell has made the job, or this machine lacks the folder.
pub(crate) fn typed_line(
    version: &str,
    (folder, words): (&Path, &[String]),
    seed: &str,
) -> Result<(Command, Seed), CommandError> {
    let self_version = env!("CARGO_PKG_VERSION");
    if version != self_version {
        return Err(could_not(anyhow::anyhow!(
            "the job was made by Stillwell {version}, and this is {self_version}: use the same version"
        )));
    }
    std::env::set_current_dir(folder).map_err(could_not)?;
    let words = words.iter().map(std::ffi::OsString::from).collect();
    let typed = read_words(words).map_err(could_not)?;
    let seed = seed.parse().map_err(|_| {
        usage("the seed of the job is not valid: start it again under another --job")
    })?;
    Ok((typed.command, seed))
}

pub(crate) fn refused(error: FleetError) -> CommandError {
    match error {
        FleetError::Store(StoreError::Taken(_))
        | FleetError::TooManyExperiments(_)
        | FleetError::Engine(EngineError::Option { .. }) => CommandError::new(Exit::Usage, error),
        _ => could_not(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_after_a_signal_has_the_exit_code_of_the_signal() {
        let interrupt = Interrupt::new();
        let ended = || Err::<(), _>(could_not(anyhow::anyhow!("no store")));
        let before = interrupted_by(&interrupt, ended()).unwrap_err();
        assert_eq!(before.exit, Exit::CouldNotRun);
        interrupt.raise(15);
        let after = interrupted_by(&interrupt, ended()).unwrap_err();
        assert_eq!(after.exit.code(), 143);
        assert_eq!(after.to_string(), "no store");
        assert!(interrupted_by(&interrupt, Ok(())).is_ok());
    }
}
