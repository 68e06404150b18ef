//! Matching of the runs of one side with those of the other.

use std::collections::{BTreeMap, BTreeSet};

use super::CompareError;
use super::run::{ComparableRun, listed};

/// The runs of one comparison.
#[derive(Debug)]
pub struct RunGroup<R> {
    /// The experiment, where there is one.
    pub name: Option<String>,
    /// The runs of the baseline.
    pub baseline: Vec<R>,
    /// The runs that are compared with it.
    pub comparison: Vec<R>,
}

/// All comparisons, at least one, and what could not be compared.
#[derive(Debug)]
pub struct MatchedRuns<R> {
    /// The comparisons.
    pub groups: Vec<RunGroup<R>>,
    /// Experiments and variants that are not compared, one sentence each.
    pub remarks: Vec<String>,
}

/// Matches experiments by name; the only one of each side by any name.
/// Where both sides are the `same_place`, the first variant of each experiment is
/// compared with its second.
///
/// # Errors
/// Why nothing can be compared.
pub fn match_runs<R: ComparableRun>(
    baseline: Vec<R>,
    comparison: Vec<R>,
    same_place: bool,
    only: &[String],
) -> Result<MatchedRuns<R>, CompareError> {
    let (mut left, mut right) = (by_experiment(baseline), by_experiment(comparison));
    if !only.is_empty() {
        let wanted = |name: &Option<String>| {
            let name = name.as_deref().unwrap_or_default();
            only.iter().any(|pattern| fits(pattern, name))
        };
        left.retain(|name, _| wanted(name));
        right.retain(|name, _| wanted(name));
        if left.is_empty() || right.is_empty() {
            let names = listed(only);
            return Err(CompareError::NoneNamed { names });
        }
    }
    let mut remarks = Vec::new();
    let mut groups = Vec::new();
    if let (1, 1) = (left.len(), right.len()) {
        let (left, right) = (left.pop_first(), right.pop_first());
        if let (Some((one_name, baseline)), Some((other_name, comparison))) = (left, right) {
            let name = match (one_name, other_name) {
                (Some(left), Some(right)) if left != right => {
                    Some(format!("{right} against {left}"))
                }
                (left, right) => right.or(left),
            };
            groups.push(RunGroup {
                name,
                baseline,
                comparison,
            });
        }
    } else {
        for (name, baseline) in left {
            match right.remove(&name) {
                Some(comparison) => groups.push(RunGroup {
                    name,
                    baseline,
                    comparison,
                }),
                None => remarks.push(alone(name.as_deref(), "baseline")),
            }
        }
        let left = right.keys();
        remarks.extend(left.map(|name| alone(name.as_deref(), "comparison")));
    }
    if groups.is_empty() {
        let alone = remarks.join("; ");
        return Err(CompareError::NoneOnBoth { alone });
    }
    for group in &mut groups {
        remarks.extend(choose_variants(group, same_place)?);
    }
    Ok(MatchedRuns { groups, remarks })
}

fn by_experiment<R: ComparableRun>(runs: Vec<R>) -> BTreeMap<Option<String>, Vec<R>> {
    let mut groups: BTreeMap<Option<String>, Vec<R>> = BTreeMap::new();
    for run in runs {
        let experiment = run.experiment().map(str::to_owned);
        groups.entry(experiment).or_default().push(run);
    }
    groups
}

fn alone(name: Option<&str>, side: &str) -> String {
    let name = name.map_or_else(
        || "runs without an experiment are".to_owned(),
        |name| format!("experiment `{name}` is"),
    );
    format!("{name} only in the {side}")
}

/// Leaves one variant on each side, and returns a remark if the same place has more than two.
fn choose_variants<R: ComparableRun>(
    group: &mut RunGroup<R>,
    same_place: bool,
) -> Result<Option<String>, CompareError> {
    let (left, right) = (variants(&group.baseline), variants(&group.comparison));
    if let (true, [first, second, further @ ..]) = (same_place, left.as_slice()) {
        let keep = |runs: &mut Vec<R>, name: &str| {
            runs.retain(|run| run.variant() == Some(name));
        };
        keep(&mut group.baseline, first);
        keep(&mut group.comparison, second);
        let remark = || {
            let experiment = group.name.iter();
            let experiment: String = experiment
                .map(|name| format!("experiment `{name}`: "))
                .collect();
            format!(
                "{experiment}only the first two variants are compared, without {}; PATH@NAME \
                 selects one",
                listed(further)
            )
        };
        return Ok((!further.is_empty()).then(remark));
    }
    for (side, names) in [("baseline", &left), ("comparison", &right)] {
        if names.len() > 1 {
            let names = listed(names);
            return Err(CompareError::SeveralVariants { side, names });
        }
    }
    Ok(None)
}

/// The names of variants: in the order of the plan, else what is called baseline
/// first and the rest by name.
fn variants<R: ComparableRun>(runs: &[R]) -> Vec<String> {
    let names: BTreeSet<&str> = runs.iter().filter_map(R::variant).collect();
    let planned = runs.iter().find_map(|run| {
        let saved = run.saved().filter(|saved| !saved.variants.is_empty());
        saved.map(|saved| saved.variants.clone())
    });
    let planned = planned.unwrap_or_default();
    let place = |name: &str| {
        let at = planned.iter().position(|item| item == name);
        (at.unwrap_or(planned.len()), name != "baseline")
    };
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    names.sort_by(|left, right| place(left).cmp(&place(right)).then(left.cmp(right)));
    names
}

/// Returns true if `name` matches `pattern`, in which `*` matches any text.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_text() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("*", "", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
