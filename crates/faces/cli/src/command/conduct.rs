//! Parts of the process that suites need: folders, signals and a progress display.

use std::fs;
use std::path::{Path, PathBuf};

use stillwell_experiment::SuiteOptions;
use stillwell_run::Interrupt;
use stillwell_scope::Scope;
use stillwell_units::Nanos;

use crate::command::{places, reflection};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::progress::ProgressDisplay;
use crate::secrets;
use crate::signals;

/// From here to [`Conductor::end`], SIGINT and SIGTERM end what it conducts.
pub(crate) struct Conductor<'a> {
    paint: &'a Paint,
    is_quiet: bool,
    stillwell: PathBuf,
    cache: PathBuf,
    state_root: PathBuf,
    interrupt: Interrupt,
    signals: Scope,
}

impl<'a> Conductor<'a> {
    /// Builds are kept in `cache`, or where they usually are.
    ///
    /// # Errors
    /// Exit code 3 where the process does not find itself or a folder, or the
    /// kernel gives no thread.
    pub(crate) fn begin(
        cache: Option<&PathBuf>,
        paint: &'a Paint,
        is_quiet: bool,
    ) -> Result<Self, CommandError> {
        let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
        let interrupt = Interrupt::new();
        let raised = interrupt.clone();
        Ok(Self {
            paint,
            is_quiet,
            stillwell: std::env::current_exe().map_err(|e| could_not(e.into()))?,
            cache: places::cache(cache).map_err(could_not)?,
            state_root: places::guarded_state_root().map_err(could_not)?,
            interrupt,
            signals: signals::listen(move |signal| raised.raise(signal))
                .map_err(|e| could_not(e.into()))?,
        })
    }

    /// Returns the options of a suite with results in `results`.
    pub(crate) fn options(&self, results: &Path, resume: bool) -> SuiteOptions {
        SuiteOptions {
            results: results.to_path_buf(),
            resume,
            judge_only: false,
            wait_for_quiet: true,
            problems: Vec::new(),
            command: secrets::command_words(),
            secrets: secrets::handling(),
            stillwell: self.stillwell.clone(),
            cache: self.cache.clone(),
            state_root: self.state_root.clone(),
            keep_state: false,
            metrics: None,
            describer: reflection::describer(),
        }
    }

    pub(crate) const fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    pub(crate) fn display(&self) -> ProgressDisplay<'a> {
        ProgressDisplay::new(self.paint, self.is_quiet, &self.interrupt)
    }

    /// The signal that came, if one did.
    pub(crate) fn end(self) -> Option<i32> {
        self.signals.close(Nanos::SECOND);
        // It holds only temporary state.
        fs::remove_dir_all(&self.state_root).ok();
        self.interrupt.signal()
    }
}
