//! The tables of docs/compatibility.md, which are made of marks in tests.
//!
//! A comment above a test says which part of another tool the test is about:
//! `// compat: nighthawk_client | --rps | works`. A fourth part is the reason of a difference:
//! `// compat: nighthawk_client | --tls-context | differs | suites without AEAD are replaced`.
//! So a row without a test cannot exist, and its name is right.

use std::collections::BTreeMap;

use super::Problem;
use super::files::SourceFile;

/// The page that holds the tables.
const PAGE: &str = "docs/compatibility.md";
const BEGIN: &str = "<!-- tables: begin -->";
const END: &str = "<!-- tables: end -->";
const MARK: &str = "// compat: ";

/// Support of a part of another tool.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Support {
    /// As there.
    Works,
    /// Otherwise, for a reason.
    Differs,
    /// Not at all, for a reason.
    Refused,
}

impl Support {
    const ALL: [Self; 3] = [Self::Works, Self::Differs, Self::Refused];

    const fn word(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Differs => "differs",
            Self::Refused => "refused",
        }
    }
}

/// One row of a table.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Row {
    support: Support,
    reason: String,
    tests: Vec<String>,
}

/// Rows by table and part.
#[derive(Debug, Default)]
struct PartTables(BTreeMap<String, BTreeMap<String, Row>>);

/// Checks that the page shows the tables of the marks.
pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let (tables, mut problems) = read(sources);
    let Some(page) = sources.iter().find(|file| file.path == PAGE) else {
        return problems;
    };
    match replaced(&page.text, &tables) {
        Some(current) if current == page.text => {}
        Some(_) => problems.push(Problem::new(
            PAGE,
            1,
            "its tables are not those of the marks in tests: run `cargo xtask compatibility`",
        )),
        None => problems.push(Problem::new(
            PAGE,
            1,
            format!("has no `{BEGIN}` and `{END}`"),
        )),
    }
    problems
}

/// Returns the page with the tables of the marks; `None` without a page that has room for them.
pub(super) fn page(sources: &[SourceFile]) -> Option<String> {
    let page = sources.iter().find(|file| file.path == PAGE)?;
    replaced(&page.text, &read(sources).0)
}

fn replaced(page: &str, tables: &PartTables) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}{END}{after}", render(tables)))
}

fn render(tables: &PartTables) -> String {
    let mut text = String::new();
    for (table, rows) in &tables.0 {
        text.push_str(&format!(
            "\n### {table}\n\n| | | test |\n| --- | --- | --- |\n"
        ));
        for (part, row) in rows {
            let support = match row.reason.as_str() {
                "" => row.support.word().to_owned(),
                reason => format!("{}: {reason}", row.support.word()),
            };
            let tests = row.tests.iter().map(|test| format!("`{test}`"));
            let tests = tests.collect::<Vec<_>>().join(", ");
            let part = part.replace('|', "\\|");
            text.push_str(&format!("| `{part}` | {support} | {tests} |\n"));
        }
    }
    text.push('\n');
    text
}

fn read(sources: &[SourceFile]) -> (PartTables, Vec<Problem>) {
    let (mut tables, mut problems) = (PartTables::default(), Vec::new());
    for file in sources.iter().filter(|file| file.path.ends_with(".rs")) {
        let lines: Vec<&str> = file.text.lines().map(str::trim_start).collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(mark) = line.strip_prefix(MARK) else {
                continue;
            };
            let test = lines[index..].iter().find_map(|line| test_name(line));
            let added = test
                .ok_or("there is no test below this mark")
                .and_then(|test| {
                    let (table, part, row) = parse(mark, test)?;
                    add(&mut tables, table, part, row)
                });
            if let Err(why) = added {
                problems.push(Problem::new(&file.path, index + 1, why));
            }
        }
    }
    (tables, problems)
}

fn test_name(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("async ")
        .unwrap_or(line)
        .strip_prefix("fn ")?;
    rest.split_once('(').map(|(name, _)| name)
}

/// Reads a mark; `test` is the name of the test below it.
fn parse<'m>(mark: &'m str, test: &str) -> Result<(&'m str, &'m str, Row), &'static str> {
    let parts: Vec<&str> = mark.splitn(4, " | ").map(str::trim).collect();
    let [table, part, word, reasons @ ..] = parts.as_slice() else {
        return Err("a mark is `table | part | works` or `table | part | differs | reason`");
    };
    let mut all = Support::ALL.into_iter();
    let support = all.find(|support| support.word() == *word);
    let support = support.ok_or("a part works, differs or is refused")?;
    let reason = reasons.first().copied().unwrap_or_default();
    if reason.is_empty() != (support == Support::Works) {
        return Err("only what differs or is refused has a reason, and must have one");
    }
    let row = Row {
        support,
        reason: reason.to_owned(),
        tests: vec![test.to_owned()],
    };
    Ok((table, part, row))
}

fn add(tables: &mut PartTables, table: &str, part: &str, row: Row) -> Result<(), &'static str> {
    let rows = tables.0.entry(table.to_owned()).or_default();
    let Some(known) = rows.get_mut(part) else {
        rows.insert(part.to_owned(), row);
        return Ok(());
    };
    if (known.support, &known.reason) != (row.support, &row.reason) {
        return Err("another mark says otherwise about this part");
    }
    known.tests.extend(row.tests);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> SourceFile {
        SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn marks_become_rows_with_the_test_below_them() {
        let test = "    // compat: tool | --b | works\n// compat: tool | --a | differs | why\n\
                    #[test]\nfn it_holds() {\n}\n// compat: tool | --b | works\n#[test]\nfn second() {}\n";
        let page = format!("x\n{BEGIN}\nold\n{END}\ny\n");
        let sources = [source("a.rs", test), source(PAGE, &page)];
        assert_eq!(check(&sources).len(), 1);
        let current = super::page(&sources).unwrap();
        let rows = "### tool\n\n| | | test |\n| --- | --- | --- |\n\
                    | `--a` | differs: why | `it_holds` |\n| `--b` | works | `it_holds`, `second` |\n";
        assert!(current.contains(rows), "{current}");
        assert_eq!(check(&[source("a.rs", test), source(PAGE, &current)]), []);
    }

    #[test]
    fn marks_without_content_are_problems() {
        for mark in [
            "tool | --a",
            "tool | --a | not",
            "tool | --a | differs",
            "tool | --a | works | why",
        ] {
            let text = format!("// compat: {mark}\n#[test]\nfn a() {{}}\n");
            assert_eq!(check(&[source("a.rs", &text)]).len(), 1, "{mark}");
        }
        let twice = "// compat: t | a | works\n// compat: t | a | refused | b\nfn a() {}\n";
        assert_eq!(check(&[source("a.rs", twice)]).len(), 1);
        assert_eq!(
            check(&[source("a.rs", "// compat: t | a | works\n")]).len(),
            1
        );
    }
}
