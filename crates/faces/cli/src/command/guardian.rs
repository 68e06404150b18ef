//! A small process that outlives this one, and ends what a killed run has left behind.
//!
//! The kernel ends the target's first process with this one, but neither its descendants nor its
//! groups. The guardian waits at a pipe. The pipe closes when this process ends, however it ends.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, getppid};
use stillwell_run::clear_memory_disks;
use stillwell_target::end_leftovers;

use crate::command::places;
use crate::exit::Exit;

/// Name under which this program is the guardian.
pub(crate) const NAME: &str = "stillwell-guardian";

/// The guardian of this process. Its pipe stays open until the process ends.
static GUARDIAN: OnceLock<Option<Child>> = OnceLock::new();

/// Pause between two looks at the parent.
const PAUSE: Duration = Duration::from_millis(10);

/// Longest wait for the end of the parent, in pauses.
const PAUSES_MAX: u32 = 300;

/// Starts the guardian of the runs in this process, once. Without one, the next run ends what is left.
pub(crate) fn start() {
    GUARDIAN.get_or_init(|| {
        let mut command = Command::new("/proc/self/exe");
        command.arg0(NAME).current_dir("/").env_clear();
        // They name the folder of all state.
        for name in ["XDG_RUNTIME_DIR", "TMPDIR"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        // Signals of a terminal go to a group of processes. This one is in its own.
        command.process_group(0);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok()
    });
}

/// Runs as the guardian: waits for the end of the parent, then ends what it has left.
pub(crate) fn run() -> Exit {
    let parent = getppid();
    let mut byte = [0];
    while std::io::stdin()
        .read(&mut byte)
        .is_ok_and(|length| length > 0)
    {}
    wait_for_end_of(parent);
    end_leftovers();
    clear_memory_disks();
    places::remove_abandoned_state();
    Exit::Held
}

/// Waits until `parent` is no longer the parent: its files close shortly before it ends.
#[expect(
    clippy::disallowed_methods,
    reason = "the guardian has no scope, and the number of pauses is bounded"
)]
fn wait_for_end_of(parent: Option<Pid>) {
    let mut pauses = 0;
    while getppid() == parent
        && pauses < PAUSES_MAX
        && parent.is_some_and(|parent| Path::new("/proc").join(parent.to_string()).exists())
    {
        std::thread::sleep(PAUSE);
        pauses += 1;
    }
}
