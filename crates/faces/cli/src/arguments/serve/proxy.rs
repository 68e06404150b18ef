//! Flags of a proxy, which scripts give to `nighthawk_test_server` because it was one.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// Flags with a value.
const VALUES: [&str; 23] = [
    "base-id-path",
    "bootstrap-version",
    "component-log-level",
    "disable-extensions",
    "drain-strategy",
    "drain-time-s",
    "file-flush-interval-msec",
    "file-flush-min-size-kb",
    "local-address-ip-version",
    "log-format",
    "log-format-prefix-with-location",
    "log-path",
    "max-obj-name-len",
    "max-stats",
    "mode",
    "parent-shutdown-time-s",
    "restart-epoch",
    "service-cluster",
    "service-node",
    "service-zone",
    "socket-mode",
    "socket-path",
    "stats-tag",
];

/// Flags without a value.
const SWITCHES: [&str; 14] = [
    "allow-unknown-fields",
    "allow-unknown-static-fields",
    "cpuset-threads",
    "disable-hot-restart",
    "enable-core-dump",
    "enable-fine-grain-logging",
    "enable-mutex-tracing",
    "ignore-unknown-dynamic-fields",
    "log-format-escaped",
    "log-stacktrace-single-entry",
    "reject-unknown-dynamic-fields",
    "skip-deprecated-logs",
    "skip-hot-restart-on-no-parent",
    "skip-hot-restart-parent-stats",
];

/// Flags of a proxy that were given; none has an effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProxyFlags {
    /// Their names.
    pub(crate) names: Vec<&'static str>,
}

impl Args for ProxyFlags {
    fn augment_args(command: Command) -> Command {
        let flag = |name: &'static str| Arg::new(name).long(name).hide(true).value_name("VALUE");
        let values = VALUES.map(|name| match name {
            // Others would end after they have read the file.
            "mode" => flag(name).value_parser(["serve"]),
            _ => flag(name).action(ArgAction::Append),
        });
        let switches = SWITCHES.map(|name| flag(name).action(ArgAction::SetTrue));
        command.args(values).args(switches)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ProxyFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let values = VALUES.into_iter();
        let values = values.filter(|name| matches.contains_id(name));
        let switches = SWITCHES.into_iter().filter(|name| matches.get_flag(name));
        Ok(Self {
            names: values.chain(switches).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // compat: nighthawk_test_server | flags of Envoy for restarts, logs and nodes | differs | no effect, with a note
    // compat: nighthawk_test_server | --use-dynamic-base-id | differs | no effect
    // compat: nighthawk_test_server | --log-level | differs | no effect
    #[test]
    fn flags_of_a_proxy_are_accepted_and_named() {
        let read = |line: &str| {
            let command = ProxyFlags::augment_args(Command::new("x").no_binary_name(true));
            let matches = command.try_get_matches_from(line.split_whitespace())?;
            ProxyFlags::from_arg_matches(&matches).map(|flags| flags.names)
        };
        let names = read("--disable-hot-restart --mode serve --drain-time-s=5").unwrap();
        assert_eq!(names, ["drain-time-s", "mode", "disable-hot-restart"]);
        assert!(read("").unwrap().is_empty());
        for name in VALUES.into_iter().filter(|name| *name != "mode") {
            assert_eq!(read(&format!("--{name} x")).unwrap(), [name]);
            assert!(read(&format!("--{name}")).is_err(), "{name}");
        }
        for name in SWITCHES {
            assert_eq!(read(&format!("--{name}")).unwrap(), [name]);
            assert!(read(&format!("--{name}=x")).is_err(), "{name}");
        }
        assert!(read("--mode validate").is_err());
    }
}
