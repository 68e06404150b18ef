//! Tables and numbers as both predecessors wrote them.

use crate::document::escape;

/// Bytes as the soak rig wrote them: by 1024, rounded to two decimals, without
/// zeros at the end.
pub(super) fn human_bytes(value: f64) -> String {
    let mut scaled = value;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if scaled.abs() < 1024.0 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    format!("{}{unit}", (scaled * 100.0).round_ties_even() / 100.0)
}

/// Six digits that matter, as C's `%g` has them.
pub(super) fn general(value: f64) -> String {
    const DIGITS: i32 = 6;
    if !value.is_finite() || value.abs() < f64::MIN_POSITIVE {
        return format!("{value}");
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        trim(&format!("{value:.decimals$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    }
}

/// Escapes a name for a cell of a Markdown table that people also read as plain text: underscores, which
/// are common in names and cannot change the table, stay as they are.
pub(super) fn escaped(name: &str) -> String {
    escape::markdown(name, None, false).replace("\\_", "_")
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextColumn {
    head: &'static str,
    /// True if its cells are numbers, which are aligned at their points.
    is_number: bool,
}

/// A column of words, or of numbers with a unit.
pub(super) const fn words(head: &'static str) -> TextColumn {
    TextColumn {
        head,
        is_number: false,
    }
}

/// A column of numbers.
pub(super) const fn numbers(head: &'static str) -> TextColumn {
    TextColumn {
        head,
        is_number: true,
    }
}

/// Spaces that a head has at least beyond its text.
const HEAD_PADDING: usize = 2;

/// A table as both predecessors posted it: padded cells, so it also reads as plain text.
pub(super) fn github_table(columns: &[TextColumn], rows: &[Vec<String>]) -> String {
    let cells: Vec<Vec<String>> = columns
        .iter()
        .enumerate()
        .map(|of| cells(of, rows))
        .collect();
    let width = |(column, cells): (&TextColumn, &Vec<String>)| {
        let cells = cells.iter().map(|cell| cell.chars().count());
        let head = column.head.chars().count() + HEAD_PADDING;
        cells.chain([head]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = columns.iter().zip(&cells).map(width).collect();
    let line = |cells: &[&str]| {
        let padded = columns.iter().zip(&widths).enumerate();
        let padded = padded.map(|(at, (column, width))| match column.is_number {
            true => format!(" {:>width$} |", cells[at]),
            false => format!(" {:<width$} |", cells[at]),
        });
        format!("|{}\n", padded.collect::<String>())
    };
    let rule = widths
        .iter()
        .map(|width| format!("{}|", "-".repeat(width + 2)));
    let heads: Vec<&str> = columns.iter().map(|column| column.head).collect();
    let mut text = line(&heads);
    text.push_str(&format!("|{}\n", rule.collect::<String>()));
    for row in 0..rows.len() {
        let row: Vec<&str> = cells.iter().map(|column| column[row].as_str()).collect();
        text.push_str(&line(&row));
    }
    text
}

/// Returns the cells of one column. Those of numbers end with as many spaces as they lack digits
/// after the point.
fn cells((at, column): (usize, &TextColumn), rows: &[Vec<String>]) -> Vec<String> {
    let after_point = |cell: &String| {
        cell.split_once('.')
            .map_or(0, |(_, digits)| digits.len() + 1)
    };
    let column_cells = rows.iter().filter_map(|row| row.get(at));
    if !column.is_number {
        return column_cells.cloned().collect();
    }
    let most = column_cells.clone().map(after_point).max().unwrap_or(0);
    let pad = |cell: &String| format!("{cell}{}", " ".repeat(most - after_point(cell)));
    column_cells.map(pad).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_numbers_are_written_as_the_ancestors_did() {
        for (value, text) in [
            (0.0, "0B"),
            (1023.0, "1023B"),
            (-28_538.88, "-27.87KiB"),
            (8_283_750.4, "7.9MiB"),
            (3.5e12, "3.18TiB"),
        ] {
            assert_eq!(human_bytes(value), text);
        }
        for (value, text) in [
            (0.0, "0"),
            (-0.35, "-0.35"),
            (0.004_168_049, "0.00416805"),
            (2.225_764, "2.22576"),
            (-0.042_254_5, "-0.0422545"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_012_3, "1.23e-05"),
            (100.0, "100"),
        ] {
            assert_eq!(general(value), text);
        }
    }

    #[test]
    fn names_cannot_add_cells_links_or_markup() {
        let name = "a|b\n<img src=x> [c](d) *e*";
        let table = github_table(&[words("experiment")], &[vec![escaped(name)]]);
        let row = table.lines().last().unwrap_or_default();
        assert_eq!(table.lines().count(), 3, "{table}");
        for markup in ["a|b", "<img", "[c](d)", " *e*"] {
            assert!(!row.contains(markup), "{row}");
        }
    }

    #[test]
    fn heads_have_two_spaces_more_and_numbers_meet_at_their_points() {
        let rows = [
            vec![escaped("long|er"), "-0.0422545".to_owned()],
            vec!["b".to_owned(), "2".to_owned()],
        ];
        let table = github_table(&[words("a"), numbers("Δ %")], &rows);
        let lines = "| a        |        Δ % |\n|----------|------------|\n\
                     | long\\|er | -0.0422545 |\n| b        |  2         |\n";
        assert_eq!(table, lines);
    }
}
