use proptest::prelude::*;

use super::*;

/// An invented table; a row is its metric and its cells.
fn table(title: &str, rows: &[[&str; 4]]) -> ImportedTable {
    let head = ["Metric", "ash", "birch", "cedar"].map(str::to_owned);
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.map(str::to_owned).to_vec())
        .collect();
    ImportedTable::read(title.to_owned(), &head, &rows)
}

const PIPE: [[&str; 4]; 6] = [
    ["Test count", "6", "6", "6"],
    ["CPU usr (max)", "20", "30", "10"],
    ["Mem used (max)", "20MiB", "30MiB", "11MiB"],
    ["Disk writ (sum)", "1.5GiB", "1.6GiB", "1.4GiB"],
    ["Net recv (sum)", "1.5GiB", "1.6gib", "1.4GiB"],
    ["TCP estab (avg)", "3", "4", "5"],
];

fn reasons(table: &ImportedTable, remaining: &[&ImportedTable]) -> String {
    let warnings = imported_warnings(table, remaining);
    let lines: Vec<String> = warnings
        .iter()
        .map(|left| format!("{:?} {}", left.columns, left.reason))
        .collect();
    lines.join("\n")
}

#[test]
fn a_table_without_contradictions_has_no_warning() {
    assert_eq!(imported_warnings(&table("Disk buffers", &PIPE), &[]), []);
}

#[test]
fn cells_are_read_with_units_and_marks() {
    for (text, value, is_best) in [
        ("251.7MiB/s W", Some(251.7 * 1_048_576.0), true),
        ("4.5gib", Some(4.5 * 1_073_741_824.0), false),
        ("1910", Some(1910.0), false),
        ("2 W", Some(2.0), true),
        ("12 (+3%)", Some(12.0), false),
        ("W", None, false),
        ("n/a", None, false),
    ] {
        let cell = ImportedCell::read(text);
        assert_eq!((cell.value, cell.is_best), (value, is_best), "{text}");
    }
}

#[test]
fn columns_of_another_test_are_found() {
    let mut rows = PIPE;
    rows[4][3] = "9GiB";
    let (left, right) = (table("Disk buffers", &PIPE), table("Pipes", &rows));
    let text = reasons(&left, &[&right]);
    assert!(
        text.starts_with(r#"["ash", "birch"] 2 of 3 columns equal those of `Pipes`"#),
        "{text}"
    );
    // What all columns share, such as the count of runs, is no sign.
    let few = table("Pipes", &[PIPE[0], PIPE[5]]);
    assert_eq!(imported_warnings(&left, &[&few]), []);
}

#[test]
fn a_disk_buffer_that_wrote_nothing_is_found() {
    let mut rows = PIPE;
    rows[3] = ["Disk writ (sum)", "2.5MiB W", "3MiB", "1.4GiB"];
    let text = reasons(&table("disk_buffer_performance", &rows), &[]);
    assert!(
        text.contains(r#"["ash", "birch"] this is a test of buffers on disk"#),
        "{text}"
    );
    assert!(
        text.contains("at most 3MiB reached a disk while up to 1.6gib passed through"),
        "{text}"
    );
    assert!(
        text.contains("`Disk writ (sum)` marks `ash` as the best because it wrote least"),
        "{text}"
    );
    // In another test no program is to write.
    assert_eq!(imported_warnings(&table("tcp_to_tcp", &rows), &[]), []);
}

#[test]
fn a_disk_buffer_that_wrote_exactly_nothing_is_named_with_its_number() {
    for written in [["0B", "0B", "0B"], ["0B", "0", "1.4GiB"]] {
        let mut rows = PIPE;
        rows[3] = ["Disk writ (sum)", written[0], written[1], written[2]];
        let text = reasons(&table("disk_buffer_performance", &rows), &[]);
        assert!(
            text.contains("at most 0B reached a disk while up to 1.6gib passed through"),
            "{text}"
        );
    }
}

#[test]
fn the_target_with_the_least_work_is_no_winner() {
    let mut rows = PIPE;
    rows[1][3] = "10 W";
    rows[4][3] = "0.1GiB";
    let text = reasons(&table("Pipes", &rows), &[]);
    assert!(
        text.starts_with(r#"["cedar"] CPU usr (max): the program marked as best received less"#),
        "{text}"
    );
}

#[test]
fn one_run_has_no_spread() {
    let mut rows = PIPE;
    rows[0] = ["Test count", "1", "6", "1"];
    let text = reasons(&table("Pipes", &rows), &[]);
    assert_eq!(
        text,
        r#"["ash", "cedar"] one run each: differences may be chance"#
    );
}

proptest! {
    #[test]
    fn for_all_cells_nothing_panics(texts in proptest::collection::vec("[0-9.A-Za-z/ ()%µ|-]{0,8}", 12)) {
        let rows: Vec<Vec<String>> = texts.chunks(3).map(<[String]>::to_vec).collect();
        let head = ["Metric", "a", "b"].map(str::to_owned);
        let left = ImportedTable::read("disk buffer".to_owned(), &head, &rows);
        drop(imported_warnings(&left, &[&left]));
    }
}
