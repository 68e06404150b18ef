//! Blocks that are served as files of a mounted file system, in place of workers.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use stillwell_fuse::{Mount, MountError, MountNote, MountOwner};
use stillwell_metric::{GeneratorShard, LogFsShard};
use stillwell_pacer::Turns;
use stillwell_payload::BlockSet;
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Moment;

/// A file system that takes the place of workers.
pub trait Mounted: Debug + Send + Sync {
    /// The blocks that it serves; `None` once it is shown.
    fn set(&self) -> Option<&BlockSet>;

    /// Its counters as a generator.
    fn load(&self) -> Arc<GeneratorShard>;

    /// Its other counters.
    fn shard(&self) -> Arc<LogFsShard>;

    /// Mounts the files for `owner` and starts the thread that answers for them, until the
    /// scope's token is cancelled or the mount has ended; `None` where that was done.
    ///
    /// # Errors
    /// [`ShowError`], which says what to do.
    fn show(
        &mut self,
        scope: &mut Scope,
        place: &Place,
        owner: MountOwner<'_>,
    ) -> Result<Option<(Mount, Vec<MountNote>)>, ShowError>;

    /// Files grow from `start` on, in `turns` alone if there are any, until `stop` is
    /// cancelled.
    fn begin(&self, start: Moment, stop: &Token, turns: Option<Turns>);
}

/// Reasons for which logs cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// Their file system cannot be mounted.
    #[error(
        "show the logs of generator `{id}` in a separate file system; if this host cannot mount it, \
         write `folder` instead of `mount`: files are real then, and missed events are not counted"
    )]
    Mount {
        /// The generator.
        id: String,
        /// The cause.
        source: MountError,
    },
    /// The kernel starts no more threads.
    #[error("start the thread that serves the logs of generator `{id}`")]
    Thread {
        /// The generator.
        id: String,
        /// The kernel's answer.
        source: io::Error,
    },
}
