//! Resources outside this process that a worker made and could not remove.

use std::collections::BTreeMap;

use stillwell_scope::PartError;

/// Largest number of commands in a message.
const REMEDIES_MAX: usize = 20;

/// Each thing that is kept, by what it is called.
#[derive(Debug, Default)]
pub(super) struct Left(BTreeMap<String, Kept>);

#[derive(Debug)]
struct Kept {
    remedy: String,
    why: String,
}

/// Resources that the worker could not take away again.
#[derive(Debug, thiserror::Error)]
#[error("left behind: {what}{}: {why}; remove {}", and_more(*.more), with(.remedies, *.more))]
pub(super) struct LeftBehind {
    what: String,
    /// Number of others.
    more: usize,
    /// The reason of the first.
    why: String,
    /// The first commands, one for each resource.
    remedies: Vec<String>,
}

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

/// Returns the commands that remove one resource and `more`.
fn with(remedies: &[String], more: usize) -> String {
    let object = if more == 0 { "it" } else { "them" };
    let unnamed = (more + 1).saturating_sub(remedies.len());
    let commands: Vec<String> = remedies.iter().map(|text| format!("`{text}`")).collect();
    format!("{object} with {}{}", commands.join(", "), and_more(unnamed))
}

impl Left {
    /// `what` is kept; the latest reason counts.
    pub(super) fn keep(&mut self, what: &str, remedy: &str, why: &str) {
        let (remedy, why) = (remedy.to_owned(), why.to_owned());
        self.0.insert(what.to_owned(), Kept { remedy, why });
    }

    /// It is kept no longer.
    pub(super) fn drop(&mut self, what: &str) {
        self.0.remove(what);
    }

    /// Returns the result of a worker that ended by `failure`, with the resources that are
    /// left.
    pub(super) fn at_the_end(self, failure: Option<PartError>) -> Result<(), PartError> {
        let more = self.0.len().saturating_sub(1);
        let remedies = self.0.values().take(REMEDIES_MAX);
        let remedies = remedies.map(|kept| kept.remedy.clone()).collect();
        let first = self.0.into_iter().next();
        let left = first.map(|(what, kept)| LeftBehind {
            what,
            more,
            why: kept.why,
            remedies,
        });
        match (failure, left) {
            (None, None) => Ok(()),
            (Some(failure), None) => Err(failure),
            (None, Some(left)) => Err(left.into()),
            (Some(failure), Some(left)) if failure.to_string() == left.why => Err(left.into()),
            (Some(failure), Some(left)) => Err(format!("{failure}; {left}").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_left_resources_and_the_failure() {
        let message = |kept: &[&str], failure: Option<&str>| {
            let mut left = Left::default();
            left.keep("pod `z`", "kubectl delete pod z", "no time");
            left.drop("pod `z`");
            for name in kept {
                left.keep(&format!("pod `{name}`"), &format!("rm {name}"), "no time");
            }
            let ended = left.at_the_end(failure.map(Into::into));
            ended.err().map(|error| error.to_string())
        };
        assert_eq!(message(&[], None), None);
        assert_eq!(message(&[], Some("why")).as_deref(), Some("why"));
        let of_one = "left behind: pod `a`: no time; remove it with `rm a`";
        assert_eq!(message(&["a"], None).as_deref(), Some(of_one));
        assert_eq!(message(&["a"], Some("no time")).as_deref(), Some(of_one));
        let of_two =
            "why; left behind: pod `a` and 1 more: no time; remove them with `rm a`, `rm b`";
        assert_eq!(message(&["b", "a"], Some("why")).as_deref(), Some(of_two));
    }

    #[test]
    fn every_left_resource_has_its_command_up_to_a_bound() {
        let message = |count: usize| {
            let mut left = Left::default();
            for number in 0..count {
                let name = format!("pod `{number:03}`");
                left.keep(&name, &format!("rm {number:03}"), "no time");
            }
            left.at_the_end(None).unwrap_err().to_string()
        };
        let commands = |count: usize| {
            let commands = (0..count).map(|number| format!("`rm {number:03}`"));
            commands.collect::<Vec<_>>().join(", ")
        };
        let all = message(REMEDIES_MAX);
        assert!(
            all.ends_with(&format!("them with {}", commands(20))),
            "{all}"
        );
        let more = message(REMEDIES_MAX + 9);
        let expected = format!("them with {} and 9 more", commands(20));
        assert!(more.ends_with(&expected), "{more}");
    }
}
