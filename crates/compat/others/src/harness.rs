//! Results of harnesses that ran several programs with dstat beside them: their
//! tables, and dstat's CSV.

mod table;

use std::collections::BTreeMap;

pub use table::dstat_table;

/// A table as text, as it is in a document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TextTable {
    /// The nearest heading above it, or the command that printed it.
    pub title: Option<String>,
    /// The names of its columns, that of the metrics first.
    pub head: Vec<String>,
    /// Its rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
    /// Lines below it such as `W = winner` and `PROGRAM = VERSION`: names and meanings.
    pub legend: Vec<(String, String)>,
}

/// Returns the Markdown tables of `text`, in order. Other text is skipped.
#[must_use]
pub fn tables(text: &str) -> Vec<TextTable> {
    let mut tables: Vec<TextTable> = Vec::new();
    let mut title = None;
    let mut open = false;
    for line in text.lines().map(str::trim) {
        let Some(cells) = cells(line) else {
            if let Some(heading) = line.strip_prefix('#') {
                let heading = heading.trim_start_matches('#').trim();
                // The first heading names the document, those below its parts.
                title.get_or_insert_with(|| heading.to_owned());
            }
            open = false;
            if let (Some(table), Some(line)) = (tables.last_mut(), legend(line)) {
                table.legend.push(line);
            }
            continue;
        };
        match tables.last_mut().filter(|_| open) {
            Some(_) if cells.iter().all(|cell| is_rule(cell)) => {}
            Some(table) => {
                let mut row = cells;
                row.resize(table.head.len(), String::new());
                table.rows.push(row);
            }
            None => {
                open = true;
                tables.push(TextTable {
                    title: title.clone(),
                    head: cells,
                    rows: Vec::new(),
                    legend: Vec::new(),
                });
            }
        }
    }
    tables.retain(|table| table.head.len() > 1 && !table.rows.is_empty());
    tables
}

fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    let cells = inner.split('|').map(|cell| cell.trim().to_owned());
    Some(cells.collect())
}

/// A name without spaces and its meaning.
fn legend(line: &str) -> Option<(String, String)> {
    let (name, meaning) = line.split_once(" = ")?;
    let (name, meaning) = (name.trim(), meaning.trim());
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace) && !meaning.is_empty();
    is_name.then(|| (name.to_owned(), meaning.to_owned()))
}

/// `:---` below a head.
fn is_rule(cell: &str) -> bool {
    cell.contains('-') && cell.chars().all(|c| matches!(c, '-' | ':'))
}

/// Samples that dstat recorded in one run, one per second.
#[derive(Clone, Debug, PartialEq)]
pub struct DstatRun {
    /// The samples of each column, by `GROUP/NAME` such as `net/total/recv`, without
    /// the first one: that is the mean since the host was started.
    pub columns: BTreeMap<String, Vec<f64>>,
    /// Number of samples.
    pub samples: usize,
}

/// A problem in dstat's CSV.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DstatError {
    /// It does not begin as dstat's files do.
    #[error("this is not a CSV file of dstat: its first line is not \"Dstat … CSV output\"")]
    Head,
    /// Its two lines of names are missing.
    #[error("the names of dstat's columns are missing")]
    Names,
    /// A sample is not a number.
    #[error("line {line}: `{field_text}` is not a number")]
    Number {
        /// The line, from 1.
        line: usize,
        /// The text in its place.
        field_text: String,
    },
    /// The file has only the first sample.
    #[error("there is no sample besides the first, which is the mean since the host was started")]
    Empty,
}

/// Reads dstat's CSV.
///
/// # Errors
/// [`DstatError`] where it is none, or damaged.
pub fn dstat(text: &str) -> Result<DstatRun, DstatError> {
    let mut lines = text.lines().enumerate();
    let first = lines.next().map_or("", |(_, line)| line);
    if !first.contains("Dstat") || !first.contains("CSV") {
        return Err(DstatError::Head);
    }
    let (mut groups, mut names) = (None, None);
    for (_, line) in lines.by_ref() {
        // Names of groups leave gaps, those of columns do not.
        let fields: Vec<&str> = fields(line);
        if groups.is_some() {
            names = Some(fields);
            break;
        }
        let is_head = fields
            .iter()
            .any(|field| matches!(*field, "net/total" | "total cpu usage"));
        groups = is_head.then_some(fields);
    }
    let (groups, names) = groups.zip(names).ok_or(DstatError::Names)?;
    let mut keys: Vec<String> = Vec::new();
    let mut group = "";
    for (at, name) in names.iter().enumerate() {
        group = groups
            .get(at)
            .copied()
            .filter(|name| !name.is_empty())
            .unwrap_or(group);
        keys.push(format!("{group}/{name}"));
    }
    let mut columns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut samples = 0_usize;
    for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        samples += 1;
        if samples == 1 {
            continue;
        }
        for (key, field) in keys.iter().zip(fields(line)) {
            let value = field.parse().map_err(|_| DstatError::Number {
                line: at + 1,
                field_text: field.to_owned(),
            })?;
            columns.entry(key.clone()).or_default().push(value);
        }
    }
    if samples < 2 {
        return Err(DstatError::Empty);
    }
    Ok(DstatRun {
        columns,
        samples: samples - 1,
    })
}

fn fields(line: &str) -> Vec<&str> {
    line.split(',')
        .map(|field| field.trim().trim_matches('"'))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tables_are_found_in_documents() {
        let text = "# A test of pipes\n\n## Results\n```\n| Metric | a | b |\n|:--|:-:|--:|\n\
                    | Net recv (sum) | 1MiB W | 2MiB |\n| Short | 1 |\n\nW = winner\na = 1.0 (x)\nx y = 2\n```\nText | with a bar\n";
        let field_text = tables(text);
        assert_eq!(field_text.len(), 1);
        assert_eq!(field_text[0].title.as_deref(), Some("A test of pipes"));
        assert_eq!(field_text[0].head, ["Metric", "a", "b"]);
        assert_eq!(
            field_text[0].rows,
            [["Net recv (sum)", "1MiB W", "2MiB"], ["Short", "1", ""]]
        );
        let legend = [("W", "winner"), ("a", "1.0 (x)")];
        let legend = legend.map(|(name, meaning)| (name.to_owned(), meaning.to_owned()));
        assert_eq!(field_text[0].legend, legend);
    }

    const CSV: &str = "\"Dstat 0.7.2 CSV output\"\n\"Author:\",\"x\"\n\"Host:\",\"y\"\n\"Cmdline:\",\"z\"\n\n\
        \"epoch\",\"total cpu usage\",,\"dsk/total\",,\"net/total\",\n\
        \"epoch\",\"usr\",\"sys\",\"read\",\"writ\",\"recv\",\"send\"\n\
        1.0,90,90,9,9,9,9\n2.0,10,5,0,100,1000,1000\n3.0,20,6,0,300,3000,1000\n";

    /// The first row is the mean since boot; a harness that kept it had its CPU
    /// crowned by what the host did before.
    #[test]
    fn the_mean_since_boot_is_no_sample() {
        let run = dstat(CSV).unwrap();
        assert_eq!(run.samples, 2);
        assert_eq!(run.columns["total cpu usage/usr"], [10.0, 20.0]);
        assert_eq!(run.columns["dsk/total/writ"], [100.0, 300.0]);
        assert_eq!(run.columns["net/total/recv"], [1000.0, 3000.0]);
    }

    #[test]
    fn other_texts_are_refused() {
        assert_eq!(dstat(""), Err(DstatError::Head));
        assert_eq!(
            dstat("\"Dstat 0.7.2 CSV output\"\n"),
            Err(DstatError::Names)
        );
        let short: String = CSV
            .lines()
            .take(8)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(dstat(&short), Err(DstatError::Empty));
        let error = dstat(&CSV.replace("300", "x")).unwrap_err();
        assert_eq!(error.to_string(), "line 10: `x` is not a number");
    }

    proptest! {
        #[test]
        fn for_all_texts_nothing_panics(text in "[|#a-z0-9,\"\n -]{0,200}") {
            drop(tables(&text));
            dstat(&format!("\"Dstat CSV\"\n{text}")).ok();
        }
    }
}
