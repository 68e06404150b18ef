//! The tables of the harness: the result of a run is written into its page, between two
//! marks, without typing.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// The marks at the beginning and the end of both tables in a page.
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
    let content = match table {
        "correctness" => correctness(&report)?,
        _ => measured(&report, table, results)?,
    };
    let content = format!("{content}{}", when(results)?);
    let page = replaced(&page, table, &content)?;
    std::fs::write(path, page).with_context(|| format!("write {}", path.display()))
}

/// `page` with `content` between the marks of `table`.
fn replaced(page: &str, table: &str, content: &str) -> anyhow::Result<String> {
    let (begin, end) = marks(table);
    let (Some(from), Some(to)) = (page.find(&begin), page.find(&end)) else {
        bail!("the page has no `{begin}` and `{end}`");
    };
    if to < from {
        bail!("`{end}` is before `{begin}`");
    }
    let from = from + begin.len();
    Ok(format!("{}\n{content}{}", &page[..from], &page[to..]))
}

fn list<'v>(value: &'v Value, key: &str) -> anyhow::Result<&'v Vec<Value>> {
    value[key]
        .as_array()
        .with_context(|| format!("the report has no `{key}`"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

/// The delivery of each target in each experiment.
fn correctness(report: &Value) -> anyhow::Result<String> {
    let experiments = list(report, "experiments")?;
    let mut names: Vec<&str> = Vec::new();
    for target in experiments
        .iter()
        .flat_map(|experiment| experiment["targets"].as_array())
        .flatten()
    {
        let name = text(&target["name"]);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort_unstable();
    let mut table = format!("\n| | requested | {} |\n", names.join(" | "));
    table.push_str(&format!("| --- | --- |{}\n", " --- |".repeat(names.len())));
    for experiment in experiments {
        let targets = list(experiment, "targets")?;
        let requested: Vec<&str> = targets
            .iter()
            .map(|target| text(&target["delivery"]["requested"]))
            .collect();
        let is_one = requested.windows(2).all(|pair| pair[0] == pair[1]);
        let common = if is_one {
            requested.first().copied().unwrap_or("-")
        } else {
            "see each"
        };
        table.push_str(&format!("| `{}` | {common} |", text(&experiment["name"])));
        for name in &names {
            let target = targets.iter().find(|target| text(&target["name"]) == *name);
            table.push_str(&format!(
                " {} |",
                target.map_or_else(|| "-".to_owned(), |target| outcome(target, is_one))
            ));
        }
        table.push('\n');
    }
    table.push_str(&about(report));
    Ok(table)
}

fn outcome(target: &Value, is_one: bool) -> String {
    let delivery = &target["delivery"];
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
    let mut outcome = format!("{mark}, {seen}");
    let parts = [
        ("lost", number("lost")),
        ("duplicated", number("duplicated")),
    ];
    let parts = parts.iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    if !parts.is_empty() {
        outcome.push_str(&format!(" ({} of {})", parts.join(", "), number("sent")));
    }
    if !is_one {
        outcome.push_str(&format!("; requested {}", text(&delivery["requested"])));
    }
    outcome
}

/// The numbers of one experiment, as the run itself reports them.
fn measured(report: &Value, name: &str, results: &Path) -> anyhow::Result<String> {
    let experiments = list(report, "experiments")?;
    if !experiments
        .iter()
        .any(|experiment| experiment["name"] == name)
    {
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

/// Host and versions: below a table.
fn about(report: &Value) -> String {
    let mut lines = String::from("\n");
    let facts = |key: &str| report[key].as_object().into_iter().flatten();
    for (name, version) in facts("versions") {
        lines.push_str(&format!(
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
    lines.push_str(&format!("* host: {}\n", host.join("; ")));
    let left_out = report["left_out"].as_array().into_iter().flatten();
    for entry in left_out {
        lines.push_str(&format!(
            "* left out: {}: {}\n",
            text(&entry["target"]),
            text(&entry["reason"])
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(name: &str, seen: Option<&str>, kept: Option<bool>, lost: u64) -> Value {
        json!({ "name": name, "delivery": {
            "requested": "exactly_once", "seen": seen, "kept": kept, "sent": 100, "lost": lost, "duplicated": 0,
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
    fn a_result_is_written_between_the_marks() {
        let report = json!({
            "experiments": [
                { "name": "one", "targets": [
                    target("birch", Some("exactly_once"), Some(true), 0),
                    target("ash", Some("at_most_once"), Some(false), 3),
                ] },
                { "name": "two", "targets": [target("ash", None, None, 0)] },
            ],
            "versions": { "ash": "1.2 " },
            "host": { "cpu": "a fast one" },
            "left_out": [{ "target": "elm", "reason": "not here" }],
        });
        let table = correctness(&report).unwrap();
        let page = "before\n<!-- correctness: begin -->\nold\n<!-- correctness: end -->\nafter\n";
        let page = replaced(page, "correctness", &table).unwrap();
        let expected = "before\n<!-- correctness: begin -->\n\n\
             | | requested | ash | birch |\n| --- | --- | --- | --- |\n\
             | `one` | exactly_once | **fail**, at_most_once (3 lost of 100) | pass, exactly_once |\n\
             | `two` | exactly_once | unknown, lost and duplicated | - |\n\n\
             * ash: 1.2\n* host: cpu a fast one\n* left out: elm: not here\n\
             <!-- correctness: end -->\nafter\n";
        assert_eq!(page, expected);
        // Written once more it is the same.
        assert_eq!(replaced(&page, "correctness", &table).unwrap(), expected);
        assert!(replaced("no marks", "correctness", &table).is_err());
    }
}
