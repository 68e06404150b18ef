//! The limit of open files: loads have a descriptor for each connection.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Highest limit that is set: more connections than this need several addresses.
const OPEN_FILES_MAX: u64 = 65_536;

/// The limit before it was raised. Targets get it back.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit of open files of this process as far as it may, to 65,536 at most. Shells
/// commonly set 1,024. The kernel's refusal leaves the limit as it is.
///
/// A target starts with the limit that was there before.
pub fn raise_open_files() {
    let before = getrlimit(Resource::Nofile);
    let Some(raised) = raised(&before) else {
        return;
    };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        BEFORE.get_or_init(|| before);
    }
}

/// Returns the limit that a target starts with, if this process has another one.
pub(crate) fn limit_before() -> Option<Rlimit> {
    BEFORE.get().copied()
}

/// Returns the limit to set; `None` if it is high enough, or the highest possible.
fn raised(before: &Rlimit) -> Option<Rlimit> {
    let current = before.current?;
    let wanted = before
        .maximum
        .map_or(OPEN_FILES_MAX, |most| most.min(OPEN_FILES_MAX));
    (current < wanted).then_some(Rlimit {
        current: Some(wanted),
        maximum: before.maximum,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_to_what_is_permitted_and_never_lowered() {
        for (current, maximum, expected) in [
            (Some(1_024), Some(4_096), Some(4_096)),
            (Some(1_024), Some(1_048_576), Some(65_536)),
            (Some(1_024), None, Some(65_536)),
            (Some(4_096), Some(4_096), None),
            (Some(100_000), Some(1_048_576), None),
            (None, None, None),
        ] {
            let raised = raised(&Rlimit { current, maximum });
            assert_eq!(raised.as_ref().and_then(|limit| limit.current), expected);
            assert!(raised.is_none_or(|limit| limit.maximum == maximum));
        }
    }
}
