//! The tables of the harness: what a run found goes into the page that tells of it,
//! between two marks, and nobody types it.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// What both tables begin and end with in a page.
fn marks(table: &str) -> (String, String) {
    (
        format!("<!-- {table}: begin -->"),
        format!("<!-- {table}: end -->"),
    )
}

/// Puts the `table` of the report in the folder `results` into the page at `path`:
/// `correctness`, or the name of an experiment for all its metrics.
pub(crate) fn write(table: &str, results: &Path, path: &Path) -> anyhow::Result<()> {
    let file = results.join("report.json");
    let text =
        std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let report: Value =
        serde_json::from_str(&text).with_context(|| format!("read {}", file.display()))?;
    let page = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let found = match table {
        "correctness" => correctness(&report)?,
        _ => measured(&report, table, results)?,
    };
    let found = format!("{found}{}", when(results)?);
    let page = replaced(&page, table, &found)?;
    std::fs::write(path, page).with_context(|| format!("write {}", path.display()))
}

/// `page` with `found` between the marks of `table`.
fn replaced(page: &str, table: &str, found: &str) -> anyhow::Result<String> {
    let (begin, end) = marks(table);
    let (Some(from), Some(to)) = (page.find(&begin), page.find(&end)) else {
        bail!("the page has no `{begin}` and `{end}`");
    };
    if to < from {
        bail!("`{end}` stands before `{begin}`");
    }
    let from = from + begin.len();
    Ok(format!("{}\n{found}{}", &page[..from], &page[to..]))
}

fn list<'v>(value: &'v Value, key: &str) -> anyhow::Result<&'v Vec<Value>> {
    value[key]
        .as_array()
        .with_context(|| format!("the report has no `{key}`"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

/// Which subject did what to the events of which experiment.
fn correctness(report: &Value) -> anyhow::Result<String> {
    let experiments = list(report, "experiments")?;
    let mut names: Vec<&str> = Vec::new();
    for subject in experiments
        .iter()
        .flat_map(|one| one["targets"].as_array())
        .flatten()
    {
        let name = text(&subject["name"]);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort_unstable();
    let mut table = format!("\n| | asked for | {} |\n", names.join(" | "));
    table.push_str(&format!("| --- | --- |{}\n", " --- |".repeat(names.len())));
    for experiment in experiments {
        let subjects = list(experiment, "targets")?;
        let asked: Vec<&str> = subjects
            .iter()
            .map(|one| text(&one["delivery"]["asked_for"]))
            .collect();
        let is_one = asked.windows(2).all(|pair| pair[0] == pair[1]);
        let common = if is_one {
            asked.first().copied().unwrap_or("-")
        } else {
            "see each"
        };
        table.push_str(&format!("| `{}` | {common} |", text(&experiment["name"])));
        for name in &names {
            let subject = subjects.iter().find(|one| text(&one["name"]) == *name);
            table.push_str(&format!(
                " {} |",
                subject.map_or_else(|| "-".to_owned(), |one| outcome(one, is_one))
            ));
        }
        table.push('\n');
    }
    table.push_str(&about(report));
    Ok(table)
}

fn outcome(subject: &Value, is_one: bool) -> String {
    let delivery = &subject["delivery"];
    let mark = match delivery["kept"].as_bool() {
        Some(true) => "pass",
        Some(false) => "**fail**",
        None => "unknown",
    };
    let number = |key: &str| delivery[key].as_u64().unwrap_or(0);
    let seen = match delivery["seen"].as_str() {
        Some(seen) => seen.to_owned(),
        None if number("sent") == 0 => "did not run to its end".to_owned(),
        None => "lost and duplicated".to_owned(),
    };
    let mut told = format!("{mark}, {seen}");
    let parts = [
        ("lost", number("lost")),
        ("duplicated", number("duplicated")),
    ];
    let parts = parts.iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    if !parts.is_empty() {
        told.push_str(&format!(" ({} of {})", parts.join(", "), number("sent")));
    }
    if !is_one {
        told.push_str(&format!("; asked for {}", text(&delivery["asked_for"])));
    }
    told
}

/// The numbers of one experiment, as the run itself tells them.
fn measured(report: &Value, name: &str, results: &Path) -> anyhow::Result<String> {
    let experiments = list(report, "experiments")?;
    if !experiments.iter().any(|one| one["name"] == name) {
        bail!("the report is of other experiments than `{name}`");
    }
    let file = results.join("report.md");
    let markdown =
        std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let title = format!("### {name}\n");
    let from = markdown
        .find(&title)
        .with_context(|| format!("{} has no part of `{name}`", file.display()))?;
    let body = &markdown[from + title.len()..];
    let to = body.find("\n### ").unwrap_or(body.len());
    let body: Vec<&str> = body[..to]
        .lines()
        .filter(|line| !line.starts_with("<sub>"))
        .collect();
    Ok(format!("{}\n", body.join("\n").trim_end()))
}

/// When the runs began, and how many there were of each.
fn when(results: &Path) -> anyhow::Result<String> {
    let file = results.join("targets.json");
    let text =
        std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let record: Value =
        serde_json::from_str(&text).with_context(|| format!("read {}", file.display()))?;
    let millis = record["started_wall_millis"].as_u64().unwrap_or(0);
    let (year, month, day) = date(millis / 86_400_000);
    let runs = record["plans"][0]["runs"].as_u64().unwrap_or(0);
    let each = if runs == 1 { "run" } else { "runs" };
    Ok(format!(
        "* made on {year:04}-{month:02}-{day:02} (UTC), {runs} {each} of each\n"
    ))
}

/// The date so many days after 1 January 1970: years and months are counted off.
fn date(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut left) = (1970, days);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

/// Where and what: below a table.
fn about(report: &Value) -> String {
    let mut told = String::from("\n");
    let facts = |key: &str| report[key].as_object().into_iter().flatten();
    for (name, version) in facts("versions") {
        told.push_str(&format!(
            "* {name}: {}\n",
            version
                .as_str()
                .unwrap_or("does not say its version")
                .trim()
        ));
    }
    let host: Vec<String> = facts("host")
        .map(|(name, fact)| format!("{name} {}", text(fact)))
        .collect();
    told.push_str(&format!("* host: {}\n", host.join("; ")));
    let left_out = report["left_out"].as_array().into_iter().flatten();
    for one in left_out {
        told.push_str(&format!(
            "* left out: {}: {}\n",
            text(&one["target"]),
            text(&one["reason"])
        ));
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn subject(name: &str, seen: Option<&str>, kept: Option<bool>, lost: u64) -> Value {
        json!({ "name": name, "delivery": {
            "asked_for": "exactly_once", "seen": seen, "kept": kept, "sent": 100, "lost": lost, "duplicated": 0,
        } })
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (11_016, (2000, 2, 29)),
            (19_675, (2023, 11, 14)),
            (20_779, (2026, 11, 22)),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn what_a_run_found_stands_between_the_marks() {
        let report = json!({
            "experiments": [
                { "name": "one", "targets": [
                    subject("birch", Some("exactly_once"), Some(true), 0),
                    subject("ash", Some("at_most_once"), Some(false), 3),
                ] },
                { "name": "two", "targets": [subject("ash", None, None, 0)] },
            ],
            "versions": { "ash": "1.2 " },
            "host": { "cpu": "a fast one" },
            "left_out": [{ "target": "elm", "reason": "not here" }],
        });
        let found = correctness(&report).unwrap();
        let page = "before\n<!-- correctness: begin -->\nold\n<!-- correctness: end -->\nafter\n";
        let page = replaced(page, "correctness", &found).unwrap();
        let wanted = "before\n<!-- correctness: begin -->\n\n\
             | | asked for | ash | birch |\n| --- | --- | --- | --- |\n\
             | `one` | exactly_once | **fail**, at_most_once (3 lost of 100) | pass, exactly_once |\n\
             | `two` | exactly_once | unknown, lost and duplicated | - |\n\n\
             * ash: 1.2\n* host: cpu a fast one\n* left out: elm: not here\n\
             <!-- correctness: end -->\nafter\n";
        assert_eq!(page, wanted);
        // Written once more it is the same.
        assert_eq!(replaced(&page, "correctness", &found).unwrap(), wanted);
        assert!(replaced("no marks", "correctness", &found).is_err());
    }
}
