//! Captures made here, whole, cut and damaged.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const START: u64 = 1_700_000_000_000;

/// One line: two generators share a counter, as labels show.
fn line(tick: u64, metric: &str, kind: &str, id: &str, value: f64) -> String {
    let time = START + 1000 * tick;
    format!(
        "{{\"run_id\":\"r1\",\"time\":{time},\"fetch_index\":{tick},\"metric_name\":\"{metric}\",\
         \"metric_kind\":\"{kind}\",\"value\":{value},\"component\":\"generator\",\"id\":\"{id}\",\
         \"experiment\":\"tcp\",\"variant\":\"baseline\"}}\n"
    )
}

/// Sixty seconds: 100 B/s of `a`, 50 B/s of `b` from second 10 on, memory of
/// 1000 and 3000 in turn.
fn lines() -> String {
    let mut text = String::new();
    for (tick, tick_number) in (0..60_u64).zip(0_u32..) {
        let seconds = f64::from(tick_number);
        text += &line(tick, "bytes_written", "counter", "a", 100.0 * seconds);
        if tick >= 10 {
            text += &line(
                tick,
                "bytes_written",
                "counter",
                "b",
                50.0 * (seconds - 10.0),
            );
        }
        let memory = if tick % 2 == 0 { 1000.0 } else { 3000.0 };
        text += &line(tick, "total_rss_bytes", "gauge", "", memory);
        text += &line(tick, "unasked", "gauge", "", 1.0);
    }
    text
}

fn wanted() -> SeriesWanted {
    SeriesWanted::new()
        .with("bytes_written", None)
        .with("bytes_written", Some("b"))
        .with("total_rss_bytes", None)
}

fn read_bytes(name: &str, bytes: &[u8]) -> Result<LadingCapture, LadingError> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    read_lading(&path, &wanted())
}

fn assert_figures(capture: &LadingCapture) {
    let [run] = capture.runs.as_slice() else {
        panic!("{:?}", capture.runs);
    };
    assert_eq!(run.run_id, "r1");
    assert_eq!(run.experiment.as_deref(), Some("tcp"));
    assert_eq!(run.variant.as_deref(), Some("baseline"));
    assert_eq!(run.started_wall_millis, START);
    assert_eq!(run.ended_wall_millis, START + 59_000);
    let near = |result: Result<f64, SeriesProblem>, expected: f64| {
        assert!((result.unwrap() - expected).abs() < 1e-9, "{expected}");
    };
    let sent = run.series("bytes_written", None).unwrap();
    near(sent.rate(START + 20_000), 150.0);
    near(
        run.series("bytes_written", Some("b")).unwrap().rate(START),
        50.0,
    );
    let memory = run.series("total_rss_bytes", None).unwrap();
    near(memory.mean(START + 20_000), 2000.0);
    near(memory.peak(START), 3000.0);
    assert_eq!(memory.rate(START), Err(SeriesProblem::NoCounter));
    assert_eq!(sent.mean(START), Err(SeriesProblem::NoGauge));
    assert_eq!(sent.rate(START + 59_000), Err(SeriesProblem::TooShort));
    assert_eq!(sent.rate(START + 99_000), Err(SeriesProblem::TooShort));
    assert!(run.series("unasked", None).is_none());
    assert!(capture.metrics.contains("unasked"));
}

#[test]
fn lines_become_runs() {
    let capture = read_bytes("a.captures", lines().as_bytes()).unwrap();
    assert_figures(&capture);
    assert_eq!(capture.cut, None);
}

/// JSON has no NaN: writers put null in its place. One such line made all others unreadable.
#[test]
fn a_value_of_null_costs_only_its_own_series() {
    let text = line(0, "unasked", "gauge", "", 1.0);
    let null = lines().replacen(&text, &text.replace("\"value\":1", "\"value\":null"), 1);
    assert!(null.contains("null"), "{text}");
    assert_figures(&read_bytes("a.captures", null.as_bytes()).unwrap());
}

#[test]
fn compressed_lines_are_read_too() {
    let packed = zstd::encode_all(lines().as_bytes(), 1).unwrap();
    assert_figures(&read_bytes("a.jsonl.zst", &packed).unwrap());
    // Cut in the middle of a frame: what came before is kept.
    let cut = read_bytes("a.jsonl.zst", &packed[..packed.len() - 9]);
    assert!(matches!(
        cut,
        Ok(LadingCapture { cut: Some(_), .. }) | Err(LadingError::Empty { .. })
    ));
}

#[test]
fn a_line_that_was_cut_takes_its_tick_with_it() {
    let text = lines();
    let capture = read_bytes("a.jsonl", &text.as_bytes()[..text.len() - 20]).unwrap();
    assert_eq!(
        capture.cut.as_deref(),
        Some("the file is truncated within line 230")
    );
    let ticks = &capture.runs[0].series("bytes_written", None).unwrap().ticks;
    assert_eq!(ticks.last().unwrap().index, 58);
}

#[test]
fn a_bad_line_in_the_middle_is_named() {
    for (bad, problem) in [
        (
            "{\"run_id\":3}",
            "invalid type: integer `3`, expected a string",
        ),
        ("nonsense", "expected ident at column 2"),
        (&*line(1, "m", "meter", "", 1.0), "`metric_kind` is `meter`"),
        (&*"x".repeat(2 << 20), "longer than 1 MiB"),
    ] {
        let text = format!(
            "{}{}\n{}",
            line(0, "m", "gauge", "", 1.0),
            bad.trim(),
            lines()
        );
        let error = read_bytes("a.jsonl", text.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("line 2 of "), "{error}");
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_counter_that_fell_makes_no_rate() {
    let text = [(0, 10.0), (1, 20.0), (2, 5.0)]
        .map(|(tick, value)| line(tick, "bytes_written", "counter", "a", value))
        .concat();
    let capture = read_bytes("a.jsonl", text.as_bytes()).unwrap();
    let series = capture.runs[0].series("bytes_written", None).unwrap();
    assert_eq!(series.rate(START), Err(SeriesProblem::Fell));
}

#[test]
fn several_runs_in_one_file_stay_apart() {
    let text = lines()
        + &lines()
            .replace("\"r1\"", "\"r0\"")
            .replace("baseline", "comparison");
    let capture = read_bytes("a.jsonl", text.as_bytes()).unwrap();
    let names: Vec<&str> = capture.runs.iter().map(|run| run.run_id.as_str()).collect();
    assert_eq!(names, ["r1", "r0"]);
    assert_eq!(capture.runs[1].variant.as_deref(), Some("comparison"));
}

#[test]
fn a_file_that_is_no_capture_is_refused() {
    let error = |bytes: &[u8]| read_bytes("a", bytes).unwrap_err();
    assert!(matches!(error(b""), LadingError::Empty { .. }));
    assert!(matches!(error(b" \n \n"), LadingError::Empty { .. }));
    assert!(matches!(error(b"7.88\n"), LadingError::Unknown { .. }));
    assert!(matches!(
        error(b"{\"results\":[]}"),
        LadingError::Unknown { .. }
    ));
    assert!(matches!(error(b"PAR1"), LadingError::NoFooter { .. }));
    let missing = read_lading(std::path::Path::new("/nowhere/a"), &wanted());
    assert!(matches!(missing, Err(LadingError::Read { .. })));
}

/// The shape of lading's second capture schema.
const MESSAGE: &str = "message arrow_schema {
    REQUIRED BYTE_ARRAY run_id (UTF8);
    REQUIRED INT64 time (TIMESTAMP(MILLIS,true));
    REQUIRED INT64 fetch_index (INTEGER(64,false));
    REQUIRED BYTE_ARRAY metric_name (UTF8);
    REQUIRED BYTE_ARRAY metric_kind (UTF8);
    OPTIONAL INT64 value_int (INTEGER(64,false));
    OPTIONAL DOUBLE value_float;
    REQUIRED GROUP labels (MAP) {
        REPEATED GROUP entries {
            REQUIRED BYTE_ARRAY key (UTF8);
            OPTIONAL BYTE_ARRAY value (UTF8);
        }
    }
    OPTIONAL BYTE_ARRAY value_histogram;
}";

type Group<'g, 'b> = SerializedRowGroupWriter<'g, &'b mut Vec<u8>>;

/// The next column, all of whose values are there.
fn texts(group: &mut Group<'_, '_>, rows: &[Sample], text: impl Fn(&Sample) -> String) {
    let values = rows.iter().map(|row| ByteArray::from(text(row).as_str()));
    labels(group, values.collect(), None, None);
}

fn labels(
    group: &mut Group<'_, '_>,
    values: Vec<ByteArray>,
    definitions: Option<&[i16]>,
    repetitions: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    let ColumnWriter::ByteArrayColumnWriter(typed) = column.untyped() else {
        panic!("no column of texts");
    };
    typed
        .write_batch(&values, definitions, repetitions)
        .unwrap();
    column.close().unwrap();
}

fn integers(group: &mut Group<'_, '_>, rows: &[Sample], number: impl Fn(&Sample) -> Option<u64>) {
    let levels: Vec<i16> = rows
        .iter()
        .map(|row| i16::from(number(row).is_some()))
        .collect();
    let values: Vec<i64> = rows
        .iter()
        .filter_map(number)
        .map(u64::cast_signed)
        .collect();
    let mut column = group.next_column().unwrap().unwrap();
    let ColumnWriter::Int64ColumnWriter(typed) = column.untyped() else {
        panic!("no column of integers");
    };
    typed.write_batch(&values, Some(&levels), None).unwrap();
    column.close().unwrap();
}

fn floats(group: &mut Group<'_, '_>, rows: &[Sample], number: impl Fn(&Sample) -> Option<f64>) {
    let levels: Vec<i16> = rows
        .iter()
        .map(|row| i16::from(number(row).is_some()))
        .collect();
    let values: Vec<f64> = rows.iter().filter_map(number).collect();
    let mut column = group.next_column().unwrap().unwrap();
    let ColumnWriter::DoubleColumnWriter(typed) = column.untyped() else {
        panic!("no column of floats");
    };
    typed.write_batch(&values, Some(&levels), None).unwrap();
    column.close().unwrap();
}

/// The same samples as a table.
fn table() -> Vec<u8> {
    let rows: Vec<Sample> = lines()
        .lines()
        .map(|line| super::lines::sample(line.as_bytes()).unwrap())
        .collect();
    let message = Arc::new(parse_message_type(MESSAGE).unwrap());
    let mut bytes = Vec::new();
    let properties = Arc::new(WriterProperties::default());
    let mut file = SerializedFileWriter::new(&mut bytes, message, properties).unwrap();
    let mut group = file.next_row_group().unwrap();
    let is_whole = |row: &Sample| row.kind == Kind::Counter;
    texts(&mut group, &rows, |row| row.run_id.clone());
    integers(&mut group, &rows, |row| Some(row.wall_millis));
    integers(&mut group, &rows, |row| Some(row.tick));
    texts(&mut group, &rows, |row| row.metric.clone());
    texts(&mut group, &rows, |row| row.kind.name().to_owned());
    integers(&mut group, &rows, |row| {
        let value = row.value.filter(|_| is_whole(row));
        value.map(stillwell_units::floor_to_u64)
    });
    floats(&mut group, &rows, |row| {
        row.value.filter(|_| !is_whole(row))
    });
    let pairs = rows.iter().flat_map(|row| {
        let text = |text: &Option<String>| ByteArray::from(text.as_deref().unwrap_or_default());
        [
            ("experiment", text(&row.experiment)),
            ("id", text(&row.id)),
            ("variant", text(&row.variant)),
        ]
    });
    let (keys, values): (Vec<ByteArray>, Vec<ByteArray>) = pairs
        .map(|(key, value)| (ByteArray::from(key), value))
        .unzip();
    let repetitions: Vec<i16> = (0..keys.len()).map(|at| i16::from(at % 3 != 0)).collect();
    let levels = |level: i16| vec![level; repetitions.len()];
    labels(&mut group, keys, Some(&levels(1)), Some(&repetitions));
    labels(&mut group, values, Some(&levels(2)), Some(&repetitions));
    labels(&mut group, Vec::new(), Some(&vec![0; rows.len()]), None);
    group.close().unwrap();
    file.close().unwrap();
    bytes
}

#[test]
fn a_table_gives_what_its_lines_give() {
    let capture = read_bytes("a.parquet", &table()).unwrap();
    assert_figures(&capture);
    let lines = read_bytes("a.jsonl", lines().as_bytes()).unwrap();
    assert_eq!(capture.runs, lines.runs);
}

#[test]
fn a_table_whose_writer_was_killed_is_reported_as_unreadable() {
    let bytes = table();
    let error = read_bytes("a.parquet", &bytes[..bytes.len() / 2]).unwrap_err();
    assert!(matches!(error, LadingError::NoFooter { .. }));
    assert!(error.to_string().contains("has no footer"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// For all bytes, valid or not: no panic.
    #[test]
    fn any_bytes_are_read_without_panic(
        start in prop::sample::select(vec![&b""[..], b"PAR1", b"{\"metric_name\"", b"\x28\xb5\x2f\xfd"]),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        end in prop::sample::select(vec![&b""[..], b"\n", b"PAR1", b"\x10\0\0\0PAR1"]),
    ) {
        let mut all = start.to_vec();
        all.write_all(&bytes).unwrap();
        all.write_all(end).unwrap();
        drop(read_bytes("any", &all));
    }

    /// For all single bytes changed in a table: an answer or an error, no panic.
    #[test]
    fn damaged_tables_are_read_without_panic(at: prop::sample::Index, byte: u8) {
        let mut bytes = table();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        drop(read_bytes("a.parquet", &bytes));
    }

    /// For all lines cut anywhere: what is left is read, or there is nothing.
    #[test]
    fn cut_lines_are_read_up_to_the_cut(at: prop::sample::Index) {
        let text = lines();
        let at = at.index(text.len());
        match read_bytes("a.jsonl", &text.as_bytes()[..at]) {
            Ok(capture) => prop_assert_eq!(capture.runs.len(), 1),
            Err(error) => prop_assert!(
                matches!(error, LadingError::Empty { .. } | LadingError::Unknown { .. }),
                "{}", error
            ),
        }
    }
}
