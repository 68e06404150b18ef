//! Owners of resources that may outlive them.
//!
//! A killed Stillwell cannot clean up. Therefore its resources carry its process id and start time. A later
//! Stillwell can detect those without a living owner.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::tree::Stat;

/// A process, identified uniquely since the host's boot. Its text has constant length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Owner {
    /// The pid namespace of its process id. If it is 0, unknown, the owner never counts as ended.
    namespace: u64,
    pid: u32,
    /// Ticks between the boot and its start: process ids are reused.
    started: u64,
}

impl Owner {
    /// This process.
    #[must_use]
    pub fn this_process() -> Self {
        let pid = std::process::id();
        let stat = Stat::read(pid);
        // A `/proc` of another namespace shows another process id, or none.
        let is_ours =
            fs::read_link("/proc/self").is_ok_and(|path| path.as_os_str() == &*pid.to_string());
        match stat {
            Some(stat) if is_ours => Self {
                namespace: pid_namespace(),
                pid,
                started: stat.started,
            },
            _ => Self {
                namespace: 0,
                pid,
                started: 0,
            },
        }
    }

    /// Returns true if it has certainly ended. Processes in namespaces other than that of `this_process` are
    /// unknown.
    #[must_use]
    pub fn is_gone(self, this_process: Self) -> bool {
        let is_comparable = self.namespace != 0 && self.namespace == this_process.namespace;
        is_comparable
            && Stat::read(self.pid)
                .is_none_or(|stat| stat.is_zombie() || stat.started != self.started)
    }

    /// Parses the text of an [`Owner`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split('-');
        let mut field = |width: usize| {
            let digits = fields.next()?;
            let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            (digits.len() == width && digits.bytes().all(is_digit))
                .then(|| u64::from_str_radix(digits, 16).ok())?
        };
        let owner = Self {
            namespace: field(16)?,
            pid: u32::try_from(field(8)?).ok()?,
            started: field(16)?,
        };
        fields.next().is_none().then_some(owner)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:016x}-{:08x}-{:016x}",
            self.namespace, self.pid, self.started
        )
    }
}

fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |file| file.ino())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_an_owner_prints_is_one() {
        let text = "00000000effffffc-00000539-000000000001e240";
        let owner = Owner::parse(text).unwrap();
        assert_eq!((owner.pid, owner.started), (1337, 123_456));
        for text in [
            "",
            "1337",
            "00000000effffffc-00000539",
            "00000000effffffc-539-000000000001e240",
            "00000000effffffc-00000539-000000000001E240",
            "00000000effffffc-00000539-000000000001e240-",
            "00000000effffffc-00000539-+00000000001e240",
            " 0000000effffffc-00000539-000000000001e240",
            "00000000effffffc.00000539.000000000001e240",
        ] {
            assert_eq!(Owner::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_living_are_not_gone_and_the_dead_are() {
        let this_process = Owner::this_process();
        assert!(!this_process.is_gone(this_process));
        let earlier = Owner {
            started: this_process.started.wrapping_sub(1),
            ..this_process
        };
        assert!(earlier.is_gone(this_process), "another had our number");
        let elsewhere = Owner {
            namespace: this_process.namespace + 1,
            ..earlier
        };
        assert!(
            !elsewhere.is_gone(this_process),
            "numbers of elsewhere say nothing"
        );
        let unknown = Owner {
            namespace: 0,
            ..earlier
        };
        assert!(!unknown.is_gone(unknown));
    }

    proptest! {
        #[test]
        fn for_all_owners_what_is_printed_is_read(
            namespace in any::<u64>(), pid in any::<u32>(), started in any::<u64>(),
        ) {
            let owner = Owner { namespace, pid, started };
            let text = owner.to_string();
            prop_assert_eq!(text.len(), 42);
            prop_assert_eq!(Owner::parse(&text), Some(owner));
        }
    }
}
