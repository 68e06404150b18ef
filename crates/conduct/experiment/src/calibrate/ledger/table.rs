//! The ledger as a table of docs/internals/calibration.md.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use stillwell_stats::{Level, binomial_share};

use super::entry::{Entry, Kind, Ledger};
use super::truth::truth_of;

/// The rows of the first table: what they are called, and of which kinds.
const EQUAL_VERSIONS: [(&str, &[Kind]); 5] = [
    ("sliced, quiet", &[Kind::AaQuiet]),
    ("sliced, under load", &[Kind::AaLoaded]),
    ("paired, quiet", &[Kind::AaGoalsQuiet]),
    ("paired, under load", &[Kind::AaGoalsLoaded]),
    ("all", &EQUAL),
];

/// All kinds of equal versions.
const EQUAL: [Kind; 4] = [
    Kind::AaQuiet,
    Kind::AaLoaded,
    Kind::AaGoalsQuiet,
    Kind::AaGoalsLoaded,
];

/// The rows of the second: the metric, after its measured change, and the kinds.
const CHANGED: [(&str, &[Kind]); 6] = [
    ("CPU per event", &[Kind::CpuPlus1]),
    ("CPU per event, under load", &[Kind::CpuPlus1Loaded]),
    ("throughput", &[Kind::ThroughputMinus5]),
    ("throughput", &[Kind::ThroughputMinus3]),
    ("throughput, under load", &[Kind::ThroughputMinus3Loaded]),
    ("all", &CHANGED_KINDS),
];

/// All kinds with a change.
const CHANGED_KINDS: [Kind; 5] = [
    Kind::CpuPlus1,
    Kind::CpuPlus1Loaded,
    Kind::ThroughputMinus5,
    Kind::ThroughputMinus3,
    Kind::ThroughputMinus3Loaded,
];

/// The three tables, and the machines on which they were measured.
#[must_use]
pub fn markdown(ledger: &Ledger) -> String {
    let entries = ledger.entries();
    let mut text = String::new();
    let written = write_equal_versions(&mut text, entries)
        .and_then(|()| write_changed(&mut text, entries))
        .and_then(|()| write_references(&mut text, entries))
        .and_then(|()| write_hosts(&mut text, entries));
    // Writing to a string cannot fail.
    written.unwrap_or_default();
    text
}

fn write_equal_versions(text: &mut String, entries: &[Entry]) -> fmt::Result {
    writeln!(
        text,
        "| equal versions | experiments | comparisons | flagged by the search | after confirmation | interval \
         without zero | `equivalent` | `inconclusive` | `invalid` | pair sd | pairs | minutes |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    )?;
    let kinds = EQUAL_VERSIONS.map(|(name, kinds)| (name.to_owned(), of_kinds(entries, kinds)));
    for (name, selected) in kinds.into_iter().chain(by_goal(entries)) {
        if selected.is_empty() {
            continue;
        }
        // Secondary goals are not confirmed.
        let primary: Vec<&Entry> = selected
            .iter()
            .copied()
            .filter(|entry| !entry.secondary)
            .collect();
        writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            primary.len(),
            selected.len(),
            share(&selected, Entry::was_flagged),
            share(&primary, Entry::is_flagged),
            share(&selected, Entry::excludes_zero),
            share(&selected, |entry| entry.verdict == "equivalent"),
            count(&selected, |entry| entry.verdict == "inconclusive"),
            count(&selected, |entry| entry.verdict == "invalid"),
            deviation(&selected),
            pairs(&selected),
            minutes(&selected),
        )?;
    }
    writeln!(text)?;
    Ok(())
}

fn write_changed(text: &mut String, entries: &[Entry]) -> fmt::Result {
    writeln!(
        text,
        "| true change | experiments | found by the search | after confirmation | interval holds \
         the truth | `invalid` | pair sd | pairs | minutes |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    )?;
    for (name, kinds) in CHANGED {
        let selected = of_kinds(entries, kinds);
        if selected.is_empty() {
            continue;
        }
        // The measured change, not the one that the kind was planned with.
        let truth = match kinds {
            [kind] => truth_of(*kind, entries).map(|truth| format!("{} ", signed(truth))),
            _ => None,
        };
        let truth = truth.unwrap_or_default();
        // Without a confirmation, the change of some kinds is not known.
        let mut known = selected.clone();
        known.retain(|entry| truth_for(entry, entries).is_some());
        writeln!(
            text,
            "| {truth}{name} | {} | {} | {} | {} | {} | {} | {} | {} |",
            selected.len(),
            share(&selected, |entry| entry.searched == "regressed"),
            share(&selected, |entry| entry.verdict == "regressed"),
            share(&known, |entry| {
                truth_for(entry, entries).is_some_and(|truth| entry.covers(truth))
            }),
            count(&selected, |entry| entry.verdict == "invalid"),
            deviation(&selected),
            pairs(&selected),
            minutes(&selected),
        )?;
    }
    writeln!(text)?;
    Ok(())
}

fn write_references(text: &mut String, entries: &[Entry]) -> fmt::Result {
    for entry in entries.iter().filter(|entry| entry.kind.is_reference()) {
        writeln!(
            text,
            "* {}: {} rounds more than {} are {} of {}, by {} pairs of {} s, {}.",
            entry.kind.name(),
            entry.rounds_more,
            entry.rounds,
            change(entry),
            entry.goal,
            entry.pairs,
            entry.measure_seconds,
            entry.design,
        )?;
    }
    for kind in CHANGED_KINDS {
        let Some(last) = entries.iter().rfind(|entry| entry.kind == kind) else {
            continue;
        };
        let truths = truths_by_cpu(kind, entries);
        if truths.is_empty() {
            continue;
        }
        let reference = match kind {
            Kind::CpuPlus1 | Kind::CpuPlus1Loaded => "the reference and ",
            _ => "",
        };
        writeln!(
            text,
            "* {}: {} rounds more are {}, by {reference}the new pairs of all confirmations.",
            kind.name(),
            last.rounds_more,
            truths.join(" and ")
        )?;
    }
    Ok(())
}

/// The true change of an entry's kind on the entry's model of CPU, where a round may take another share.
fn truth_for(entry: &Entry, entries: &[Entry]) -> Option<f64> {
    let of_model = entries.iter().filter(|of| of.cpu_model == entry.cpu_model);
    truth_of(entry.kind, of_model)
}

/// The true changes of `kind` on each model of CPU, as text.
fn truths_by_cpu(kind: Kind, entries: &[Entry]) -> Vec<String> {
    let mut trials: Vec<&Entry> = entries.iter().filter(|entry| entry.kind == kind).collect();
    trials.sort_by(|left, right| left.cpu_model.cmp(&right.cpu_model));
    trials.dedup_by(|left, right| left.cpu_model == right.cpu_model);
    let truths = trials.into_iter().filter_map(|trial| {
        let truth = truth_for(trial, entries)?;
        Some(format!(
            "{} on {}",
            signed(truth),
            known(trial.cpu_model.as_deref())
        ))
    });
    truths.collect()
}

/// A fact of a host, if it is known.
fn known(fact: Option<&str>) -> &str {
    fact.unwrap_or("unknown")
}

fn write_hosts(text: &mut String, entries: &[Entry]) -> fmt::Result {
    let mut hosts: Vec<String> = entries.iter().map(host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    for host in hosts {
        writeln!(text, "* Measured with {host}.")?;
    }
    Ok(())
}

fn host(entry: &Entry) -> String {
    format!(
        "version {} on {} CPUs ({}), kernel {}",
        entry.version,
        entry.cpus,
        known(entry.cpu_model.as_deref()),
        known(entry.kernel.as_deref())
    )
}

/// The result of one experiment in one line, for progress.
pub(super) fn line(entry: &Entry) -> String {
    format!(
        "{:<25} {:>3}  {:<18}  {:<12} {:<12} {}  pairs {} + {} − {}, {:.0} s{}",
        entry.kind.name(),
        entry.number,
        entry.goal,
        entry.searched,
        entry.verdict,
        change(entry),
        entry.pairs,
        entry.pairs_confirming,
        entry.pairs_discarded,
        entry.seconds,
        entry
            .warnings
            .first()
            .map_or_else(String::new, |warning| format!("; {warning}")),
    )
}

fn of_kinds<'a>(entries: &'a [Entry], kinds: &[Kind]) -> Vec<&'a Entry> {
    let selected = entries.iter().filter(|entry| kinds.contains(&entry.kind));
    selected.collect()
}

/// Those of equal versions, by goal.
fn by_goal(entries: &[Entry]) -> BTreeMap<String, Vec<&Entry>> {
    let mut goals = BTreeMap::<String, Vec<&Entry>>::new();
    for entry in of_kinds(entries, &EQUAL) {
        goals
            .entry(format!("`{}`", entry.goal))
            .or_default()
            .push(entry);
    }
    goals
}

fn count(entries: &[&Entry], is: impl Fn(&Entry) -> bool) -> u32 {
    let hits = entries.iter().filter(|entry| is(entry)).count();
    stillwell_units::count(hits)
}

/// The count, and the exact 95 % interval of the true share. Goals of the same runs depend on each other, so there is no
/// interval with secondary ones.
fn share(entries: &[&Entry], is: impl Fn(&Entry) -> bool) -> String {
    let hits = count(entries, is);
    if entries.iter().any(|entry| entry.secondary) {
        return hits.to_string();
    }
    let share = binomial_share(hits, count(entries, |_| true), Level::NINETY_FIVE);
    format!(
        "{hits} ({:.1} to {:.1} %)",
        100.0 * share.lower,
        100.0 * share.upper
    )
}

fn change(entry: &Entry) -> String {
    let shown = |share: Option<f64>| share.map_or_else(|| "n/a".to_owned(), signed);
    format!(
        "{} [{}, {}]",
        shown(entry.estimate_share),
        shown(entry.lower_share),
        shown(entry.upper_share)
    )
}

fn signed(share: f64) -> String {
    format!("{:+.2} %", 100.0 * share).replace('-', "−")
}

fn deviation(entries: &[&Entry]) -> String {
    let values = entries.iter().filter_map(|entry| entry.pair_deviation);
    spread(values.map(|value| 100.0 * value).collect(), 2, " %")
}

/// Of search and confirmation together.
fn pairs(entries: &[&Entry]) -> String {
    let values = entries.iter();
    let values = values.map(|entry| f64::from(entry.pairs + entry.pairs_confirming));
    spread(values.collect(), 0, "")
}

fn minutes(entries: &[&Entry]) -> String {
    let values = entries.iter().map(|entry| entry.seconds / 60.0);
    spread(values.collect(), 1, "")
}

/// The median and the range.
fn spread(mut values: Vec<f64>, digits: usize, unit: &str) -> String {
    values.sort_unstable_by(f64::total_cmp);
    let (Some(least), Some(most)) = (values.first(), values.last()) else {
        return "n/a".to_owned();
    };
    let half = values.len() / 2;
    // Of an even number the mean of the middle two.
    let median = 0.5 * (values[half] + values[(values.len() - 1) / 2]);
    format!("{median:.digits$}{unit} ({least:.digits$} to {most:.digits$}{unit})")
}

#[cfg(test)]
mod tests {
    use super::super::entry::example;
    use super::*;

    #[test]
    fn rows_have_the_counts_of_the_ledger() {
        let mut entries: Vec<Entry> = (1..=10)
            .map(|number| example(Kind::AaQuiet, number))
            .collect();
        entries[0].searched = "regressed".to_owned();
        entries[0].verdict = "inconclusive".to_owned();
        entries[0].lower_share = Some(0.001);
        entries.push(example(Kind::AaLoaded, 1));
        let mut text = String::new();
        write_equal_versions(&mut text, &entries).unwrap();
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            rows[0],
            "| sliced, quiet | 10 | 10 | 1 (0.3 to 44.5 %) | 0 (0.0 to 30.8 %) | 1 (0.3 to 44.5 %) | \
             9 (55.5 to 99.7 %) | 1 | 0 | 0.60 % (0.60 to 0.60 %) | 6 (6 to 6) | 0.3 (0.3 to 0.3) |"
        );
        assert!(rows[2].starts_with("| all | 11 | 11 | 1 ("), "{}", rows[2]);
        assert!(
            rows[3].starts_with("| `cpu_per_event` | 11 | 11 | 1 ("),
            "{}",
            rows[3]
        );
    }

    /// A secondary goal cannot be confirmed, so it is no evidence that confirmation protects.
    #[test]
    fn secondary_goals_count_as_comparisons_and_not_as_confirmed() {
        let of = |number, secondary| Entry {
            secondary,
            searched: "regressed".to_owned(),
            verdict: "regressed".to_owned(),
            ..example(Kind::AaGoalsQuiet, number)
        };
        let entries = [of(1, false), of(1, true), of(1, true)];
        let mut text = String::new();
        write_equal_versions(&mut text, &entries).unwrap();
        let row = text.lines().nth(2).unwrap();
        let begins = "| paired, quiet | 1 | 3 | 3 | 1 (2.5 to 100.0 %) | 0 | 0 | ";
        assert!(row.starts_with(begins), "{row}");
    }

    #[test]
    fn found_is_what_was_confirmed_as_worse() {
        let mut entries: Vec<Entry> = (1..=2)
            .map(|number| example(Kind::CpuPlus1, number))
            .collect();
        for entry in &mut entries {
            entry.searched = "regressed".to_owned();
            entry.cpu_model = Some("A".to_owned());
        }
        entries[0].verdict = "regressed".to_owned();
        entries[0].confirming_share = Some(0.0069);
        entries[0].pairs_confirming = 6;
        entries[1].lower_share = None;
        let mut text = String::new();
        write_changed(&mut text, &entries).unwrap();
        let row = text.lines().nth(2).unwrap();
        assert!(
            row.starts_with(
                "| +0.69 % CPU per event | 2 | 2 (15.8 to 100.0 %) | 1 (1.3 to 98.7 %) | 1 ("
            ),
            "{row}"
        );
        let mut text = String::new();
        write_references(&mut text, &entries).unwrap();
        assert_eq!(
            text,
            "* cpu_plus_1: 0 rounds more are +0.69 % on A, by the reference and the new pairs of all confirmations.\n"
        );
    }

    /// F8: twenty of twenty were read as certain power, and a row had the size that was planned
    /// where the measured one was larger.
    #[test]
    fn f8_rows_have_the_measured_change_and_the_interval_of_their_share() {
        let mut entries: Vec<Entry> = (1..=20)
            .map(|number| example(Kind::ThroughputMinus5, number))
            .collect();
        for entry in &mut entries {
            entry.searched = "regressed".to_owned();
            entry.verdict = "regressed".to_owned();
            entry.confirming_share = Some(-0.0619);
            entry.pairs_confirming = 6;
        }
        let mut text = String::new();
        write_changed(&mut text, &entries).unwrap();
        let row = text.lines().nth(2).unwrap();
        let begins = "| −6.19 % throughput | 20 | 20 (83.2 to 100.0 %) | 20 (83.2 to 100.0 %) |";
        assert!(row.starts_with(begins), "{row}");
        let equal: Vec<Entry> = (1..=100)
            .map(|number| example(Kind::AaQuiet, number))
            .collect();
        let mut text = String::new();
        write_equal_versions(&mut text, &equal).unwrap();
        let row = text.lines().nth(2).unwrap();
        assert!(
            row.starts_with("| sliced, quiet | 100 | 100 | 0 (0.0 to 3.6 %) |"),
            "{row}"
        );
    }

    #[test]
    fn an_interval_misses_no_truth_that_is_not_known() {
        let kind = Kind::ThroughputMinus3;
        let entries: Vec<Entry> = (1..=2).map(|number| example(kind, number)).collect();
        let mut text = String::new();
        write_changed(&mut text, &entries).unwrap();
        let row = text.lines().nth(2).unwrap();
        let none = "0 (0.0 to 84.2 %)";
        let begins = format!("| throughput | 2 | {none} | {none} | 0 (0.0 to 100.0 %) | ");
        assert!(row.starts_with(&begins), "{row}");
    }

    /// The mean over two machines is the truth of neither.
    #[test]
    fn an_interval_holds_the_truth_of_its_own_model_of_cpu() {
        let of = |model: &str, share| Entry {
            confirming_share: Some(share),
            pairs_confirming: 6,
            cpu_model: Some(model.to_owned()),
            ..example(Kind::ThroughputMinus3, 1)
        };
        let entries = [of("A", -0.03), of("B", 0.004)];
        let mut text = String::new();
        write_changed(&mut text, &entries).unwrap();
        let row = text.lines().nth(2).unwrap();
        let none = "0 (0.0 to 84.2 %)";
        let begins = format!("| −1.31 % throughput | 2 | {none} | {none} | 1 (1.3 to 98.7 %) | ");
        assert!(row.starts_with(&begins), "{row}");
        let mut text = String::new();
        write_references(&mut text, &entries).unwrap();
        let truths = "−3.00 % on A and +0.40 % on B, by the new pairs of all confirmations.";
        assert!(text.contains(truths), "{text}");
    }

    #[test]
    fn medians_lie_in_the_middle() {
        assert_eq!(spread(vec![3.0, 1.0, 2.0], 0, ""), "2 (1 to 3)");
        assert_eq!(spread(vec![4.0, 1.0], 1, " %"), "2.5 % (1.0 to 4.0 %)");
        assert_eq!(spread(Vec::new(), 0, ""), "n/a");
    }
}
