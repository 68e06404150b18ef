//! Resources outside this process that a worker made and could not remove.

use std::collections::BTreeMap;

use stillwell_scope::PartError;

/// Each thing that is kept, by what it is called.
#[derive(Debug, Default)]
pub(super) struct Left(BTreeMap<String, Kept>);

#[derive(Debug)]
struct Kept {
    remedy: String,
    why: String,
}

/// Something that the worker could not take away again.
#[derive(Debug, thiserror::Error)]
#[error("left behind: {what}{}: {why}; remove it with `{remedy}`", and_more(*.more))]
pub(super) struct LeftBehind {
    what: String,
    more: usize,
    why: String,
    remedy: String,
}

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
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
        let first = self.0.into_iter().next();
        let left = first.map(|(what, kept)| LeftBehind {
            what,
            more,
            why: kept.why,
            remedy: kept.remedy,
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
        let of_two = "why; left behind: pod `a` and 1 more: no time; remove it with `rm a`";
        assert_eq!(message(&["b", "a"], Some("why")).as_deref(), Some(of_two));
    }
}
