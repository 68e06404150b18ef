//! Exit status of a process.

use serde::{Deserialize, Serialize};

/// Exit status of a process, and its resource usage.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Exit {
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// It left a core file.
    pub core: bool,
    /// CPU time in user mode of it and of the children that it waited for, in
    /// microseconds.
    pub cpu_user_micros: u64,
    /// The same in the kernel.
    pub cpu_system_micros: u64,
}

impl Exit {
    /// It ended by itself with code 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => {
                let core = if self.core { " with a core file" } else { "" };
                write!(f, "ended by signal {signal}{core}")
            }
            (None, None) => f.write_str("ended with an unknown status"),
        }
    }
}
