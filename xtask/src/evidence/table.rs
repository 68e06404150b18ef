//! The ledger as tables.

use stillwell_stats::{Level, binomial_share};

use super::{BackgroundLoad, Compared, LOADS, Trial};

/// Returns both tables and the machines on which the trials were made.
pub(super) fn markdown(trials: &[Trial]) -> String {
    let mut text = String::from(
        "| quickstart, beside | trials | `regressed` (right) | no decision, with its reason | \
         no decision, no reason | wrong | seconds |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let is_wrong = |trial: &Trial| matches!(trial.verdict.as_str(), "improved" | "equivalent");
    for load in LOADS {
        let selected = of_kind(trials, Compared::Quickstart, load);
        let open = |trial: &Trial| trial.verdict != "regressed" && !is_wrong(trial);
        text.push_str(&row(
            load,
            &selected,
            &[
                share(&selected, |trial| trial.verdict == "regressed"),
                share(&selected, |trial| open(trial) && trial.is_explained),
                share(&selected, |trial| open(trial) && !trial.is_explained),
                share(&selected, is_wrong),
            ],
        ));
    }
    text.push_str(
        "\n| equal versions, beside | trials | `equivalent` | no decision, with its reason | \
         no decision, no reason | false alarms | seconds |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let is_alarm = |trial: &Trial| matches!(trial.verdict.as_str(), "improved" | "regressed");
    for load in LOADS {
        let selected = of_kind(trials, Compared::Equal, load);
        let open = |trial: &Trial| trial.verdict != "equivalent" && !is_alarm(trial);
        text.push_str(&row(
            load,
            &selected,
            &[
                share(&selected, |trial| trial.verdict == "equivalent"),
                share(&selected, |trial| open(trial) && trial.is_explained),
                share(&selected, |trial| open(trial) && !trial.is_explained),
                share(&selected, is_alarm),
            ],
        ));
    }
    text.push_str(&machines(trials));
    text
}

fn of_kind(trials: &[Trial], compared: Compared, load: BackgroundLoad) -> Vec<&Trial> {
    let same = trials.iter();
    same.filter(|trial| (trial.compared, trial.background) == (compared, load))
        .collect()
}

fn row(load: BackgroundLoad, selected: &[&Trial], shares: &[String; 4]) -> String {
    let name = match load {
        BackgroundLoad::Nothing => "nothing",
        BackgroundLoad::OneLoop => "one busy loop",
        BackgroundLoad::TwoLoops => "two busy loops",
        BackgroundLoad::CargoBuild => "`cargo build -j2`",
    };
    let (trials, shares) = (selected.len(), shares.join(" | "));
    format!("| {name} | {trials} | {shares} | {} |\n", seconds(selected))
}

/// Returns the count, and the exact 95 % interval of the true share.
fn share(selected: &[&Trial], is: impl Fn(&Trial) -> bool) -> String {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let hits = count(selected.iter().filter(|trial| is(trial)).count());
    let share = binomial_share(hits, count(selected.len()), Level::NINETY_FIVE);
    format!(
        "{hits} ({:.1} to {:.1} %)",
        100.0 * share.lower,
        100.0 * share.upper
    )
}

/// Returns the median and the range.
fn seconds(selected: &[&Trial]) -> String {
    let mut values: Vec<f64> = selected.iter().map(|trial| trial.seconds).collect();
    values.sort_unstable_by(f64::total_cmp);
    let (Some(least), Some(most)) = (values.first(), values.last()) else {
        return "n/a".to_owned();
    };
    let half = values.len() / 2;
    let median = 0.5 * (values[half] + values[(values.len() - 1) / 2]);
    format!("{median:.0} ({least:.0} to {most:.0})")
}

fn machines(trials: &[Trial]) -> String {
    let facts = trials.iter();
    let mut facts: Vec<String> = facts
        .map(|trial| format!("\nVersion {} on {} CPUs.\n", trial.version, trial.cpus))
        .collect();
    facts.sort_unstable();
    facts.dedup();
    facts.concat()
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn each_trial_is_in_one_column_of_its_row() {
        let mut trials: Vec<Trial> = ["regressed", "inconclusive", "invalid", "equivalent"]
            .map(|verdict| example(Compared::Quickstart, BackgroundLoad::OneLoop, verdict))
            .to_vec();
        trials[2].is_explained = false;
        trials[3].seconds = 100.0;
        let text = markdown(&trials);
        let row = text.lines().nth(3).unwrap();
        let quarter = "1 (0.6 to 80.6 %)";
        let expected = format!(
            "| one busy loop | 4 | {quarter} | {quarter} | {quarter} | {quarter} | 42 (42 to 100) |"
        );
        assert_eq!(row, expected);
        assert!(
            text.contains("| nothing | 0 | 0 (0.0 to 100.0 %) |"),
            "{text}"
        );
        assert!(text.ends_with("\nVersion 0.1.0 on 2 CPUs.\n"), "{text}");
    }

    #[test]
    fn an_alarm_of_equal_versions_goes_both_ways() {
        let trials: Vec<Trial> = ["regressed", "improved", "equivalent", "different"]
            .map(|verdict| example(Compared::Equal, BackgroundLoad::Nothing, verdict))
            .to_vec();
        let text = markdown(&trials);
        let row = text.lines().nth(9).unwrap();
        assert!(
            row.starts_with("| nothing | 4 | 1 (0.6 to 80.6 %) | 1 ("),
            "{row}"
        );
        assert!(
            row.ends_with("| 0 (0.0 to 60.2 %) | 2 (6.8 to 93.2 %) | 42 (42 to 42) |"),
            "{row}"
        );
    }
}
