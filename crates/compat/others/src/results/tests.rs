//! Results in the documented shapes, made here.

use proptest::prelude::*;
use stillwell_metric::Unit;

use super::*;

fn value(result: &ToolResult, name: &str) -> f64 {
    let figure = result.figures.iter().find(|figure| figure.name == name);
    figure.unwrap_or_else(|| panic!("no `{name}`")).value
}

fn shown(result: &ToolResult) -> Vec<&str> {
    let figures = result.figures.iter().filter(|figure| figure.shown);
    figures.map(|figure| figure.name.as_str()).collect()
}

fn near(actual: f64, expected: f64) {
    assert!(
        (actual - expected).abs() <= 1e-9 * expected.abs().max(1.0),
        "{actual} is not {expected}"
    );
}

const NIGHTHAWK: &str = r#"[2026-01-01 00:00:00][info] starting
{
 "options": {"connections": 1, "duration": "2s"},
 "results": [
  {"name": "worker_0", "statistics": [], "counters": []},
  {"name": "global",
   "statistics": [
    {"count": "0", "id": "sequencer.blocking", "percentiles": [], "mean": "0s"},
    {"count": "40", "id": "benchmark_http_client.request_to_response",
     "percentiles": [
      {"percentile": 0, "count": "1", "duration": "0.001s"},
      {"percentile": 0.5, "count": "20", "duration": "0.002s"},
      {"percentile": 0.9, "count": "36", "duration": "0.004s"},
      {"percentile": 0.990625, "count": "40", "duration": "0.008s"},
      {"percentile": 1, "count": "40", "duration": "0.009s"}],
     "mean": "0.0025s", "pstdev": "0.000816497s", "min": "0.001s", "max": "0.009s"},
    {"count": "40", "id": "benchmark_http_client.response_body_size", "percentiles": [],
     "raw_mean": 10, "raw_pstdev": 0, "raw_min": "10", "raw_max": "10"}],
   "counters": [
    {"name": "benchmark.http_2xx", "value": "40"},
    {"name": "upstream_rq_total", "value": "42"}],
   "execution_duration": "2s"}],
 "timestamp": "2026-01-01T00:00:02Z"
}"#;

#[test]
fn both_forms_of_a_load_of_ours_give_the_same_figures() {
    let summary = r#"{"schema": "stillwell/load-summary/v1", "requests_per_second": 20.0,
        "error_share": 0.25, "latency": {"p50": 0.002, "p99": 0.008, "p99.9": 0.009}}"#;
    let full = r#"{"schema": "stillwell/load/v2", "health": {"sent_per_second": 20.0},
        "global": {"outcomes": [{"outcome": "ok", "count": 3}, {"outcome": "status_5xx", "count": 1},
        {"outcome": "unfinished", "count": 7}], "statistics": [{"id": "stillwell.response_time",
        "histogram": {"p50": 2000000, "p99": 8000000, "p999": 9000000}}]}}"#;
    let [summary, full] = [summary, full].map(|text| read_result(text).unwrap());
    assert_eq!(summary.tool, ResultTool::Stillwell);
    for result in [&summary, &full] {
        near(value(result, "requests_per_second"), 20.0);
        near(value(result, "latency_p50"), 2e6);
        near(value(result, "latency_p999"), 9e6);
        near(value(result, "errors"), 0.25);
    }
    assert_eq!(shown(&summary), shown(&full));
}

#[test]
fn a_summary_as_csv_gives_the_figures_of_its_json() {
    let json = r#"{"schema": "stillwell/load-summary/v1", "command": "a,b",
        "requests_per_second": 20.5, "error_share": 0.25,
        "routes": [{"name": "GET /a", "error_share": 0.5, "latency": {"p50": 0.001, "p99": 0.002}}],
        "latency": {"p50": 0.002, "p99": 0.008, "p99.9": 0.009}}"#;
    let csv = "name,value\nbytes_received,7\nschema,stillwell/load-summary/v1\ncommand,\"a,b\"\n\
        requests_per_second,20.5\nerror_share,0.25\nroutes.0.name,GET /a\n\
        routes.0.error_share,0.5\nroutes.0.latency.p50,0.001\nroutes.0.latency.p99,0.002\n\
        latency.p50,0.002\nlatency.p99,0.008\nlatency.p99.9,0.009\n";
    let [json, csv] = [json, csv].map(|text| read_result(text).unwrap());
    assert_eq!(json, csv);
    near(value(&csv, "latency_p99['GET /a']"), 2e6);
    near(value(&csv, "error_share['GET /a']"), 0.5);
}

#[test]
fn a_row_of_a_list_has_a_number() {
    for (name, is_row) in [
        ("routes.0.name", true),
        ("targets.18446744073709551615", true),
        ("routes.first.name", false),
        ("targets.-1", false),
        ("warnings.18446744073709551616.code", false),
        ("status_codes.first", true),
    ] {
        let read = load_csv(&format!("name,value\nbytes_received,7\n{name},1\n"));
        let expected = match is_row {
            true => None,
            false => Some(ResultError::ListRow {
                name: name.to_owned(),
            }),
        };
        assert_eq!(read.err(), expected);
    }
}

#[test]
fn nighthawk_gives_the_figures_of_all_workers_together() {
    let result = read_result(NIGHTHAWK).unwrap();
    assert_eq!(result.tool, ResultTool::Nighthawk);
    near(value(&result, "requests_per_second"), 21.0);
    near(value(&result, "latency_p50"), 2e6);
    // The first entry that is not below 0.75.
    near(value(&result, "latency_p75"), 4e6);
    near(value(&result, "latency_p99"), 8e6);
    near(value(&result, "latency_p999"), 9e6);
    near(value(&result, "latency_mean"), 2.5e6);
    near(
        value(&result, "benchmark_http_client.response_body_size.mean"),
        10.0,
    );
    near(value(&result, "benchmark.http_2xx"), 40.0);
    near(value(&result, "benchmark.http_2xx:rate"), 20.0);
    assert_eq!(
        shown(&result),
        [
            "requests_per_second",
            "latency_p50",
            "latency_p90",
            "latency_p99",
            "latency_p999",
            "latency_mean",
            "errors"
        ]
    );
}

/// A comparison of Nighthawk's results had no errors, and its fast failures counted as throughput.
#[test]
fn errors_of_nighthawk_are_all_outcomes_but_2xx_and_3xx() {
    type Counters<'a> = &'a [(&'a str, u32)];
    let clean = r#"{"name": "benchmark.http_2xx", "value": "40"}"#;
    let cases: [(Counters<'_>, Option<f64>); 7] = [
        (&[("upstream_cx_total", 40)], None),
        (&[("benchmark.http_2xx", 40)], Some(0.0)),
        (&[("benchmark.http_4xx", 40)], Some(1.0)),
        (
            &[("benchmark.http_2xx", 99), ("benchmark.http_5xx", 1)],
            Some(0.01),
        ),
        (
            &[("benchmark.http_3xx", 30), ("benchmark.http_5xx", 10)],
            Some(0.25),
        ),
        (
            &[("benchmark.http_2xx", 2), ("benchmark.pool_overflow", 2)],
            Some(0.5),
        ),
        (
            &[
                ("benchmark.http_2xx", 2),
                ("benchmark.stream_resets", 1),
                ("benchmark.pool_connection_failure", 1),
            ],
            Some(0.5),
        ),
    ];
    for (counters, expected) in cases {
        let counters = counters.iter().map(|(name, count)| {
            let count = count.to_string();
            serde_json::json!({"name": name, "value": count}).to_string()
        });
        let counters = counters.collect::<Vec<_>>().join(",");
        let result = read_result(&NIGHTHAWK.replace(clean, &counters)).unwrap();
        let figure = result.figures.iter().find(|item| item.name == "errors");
        assert_eq!(figure.map(|figure| figure.value), expected, "{counters}");
        assert!(figure.is_none_or(|figure| figure.shown), "{counters}");
    }
}

const FORTIO: &str = r#"{
  "Labels": "a", "RequestedQPS": "100", "ActualQPS": 99.5, "ActualDuration": 2000000000,
  "DurationHistogram": {"Count": 199, "Min": 0.001, "Max": 0.02, "Sum": 0.398, "Avg": 0.002,
    "StdDev": 0.0001, "Data": [],
    "Percentiles": [{"Percentile": 50, "Value": 0.0019}, {"Percentile": 99.9, "Value": 0.019}]},
  "RetCodes": {"200": 190, "503": 10}
}"#;

#[test]
fn fortio_gives_its_figures() {
    let result = read_result(FORTIO).unwrap();
    assert_eq!(result.tool, ResultTool::Fortio);
    near(value(&result, "requests_per_second"), 99.5);
    near(value(&result, "latency_p50"), 1.9e6);
    near(value(&result, "latency_p999"), 1.9e7);
    near(value(&result, "latency_mean"), 2e6);
    near(value(&result, "errors"), 0.05);
    let latency = result
        .figures
        .iter()
        .find(|figure| figure.name == "latency_p50")
        .unwrap();
    assert_eq!(latency.unit, FigureUnit::of(Unit::Nanoseconds));
    assert_eq!(latency.better, Some(Direction::LowerIsBetter));
}

/// A result in which each request failed had no figure of errors, and its fast failures counted as throughput.
#[test]
fn failures_alone_are_errors() {
    let text = FORTIO.replace("\"200\": 190, \"503\": 10", "\"503\": 200");
    near(value(&read_result(&text).unwrap(), "errors"), 1.0);
    // Nighthawk writes successes alone: they prove nothing.
    let text = FORTIO.replace(", \"503\": 10", "");
    let result = read_result(&text).unwrap();
    assert!(result.figures.iter().all(|figure| figure.name != "errors"));
}

/// A redirect was an error of fortio, and of no other tool.
#[test]
fn a_redirect_is_no_error() {
    for (codes, expected) in [
        ("\"200\": 100, \"302\": 90, \"503\": 10", 0.05),
        ("\"301\": 190, \"404\": 10", 0.05),
        ("\"200\": 190, \"304\": 10", 0.0),
        ("\"SERVING\": 190, \"-1\": 10", 0.05),
        ("\"OK\": 190, \"-1\": 10", 0.05),
    ] {
        let text = FORTIO.replace("\"200\": 190, \"503\": 10", codes);
        near(value(&read_result(&text).unwrap(), "errors"), expected);
    }
}

#[test]
fn counts_written_as_text_are_counts() {
    let text = FORTIO
        .replace(": 190", ": \"190\"")
        .replace("99.5", "\"99.5\"");
    let result = read_result(&text).unwrap();
    near(value(&result, "requests_per_second"), 99.5);
    near(value(&result, "errors"), 0.05);
}

// compat: nighthawk_client | layout of fortio in early 2020, read by stillwell compare | works
#[test]
fn percentiles_may_be_shares() {
    let text = FORTIO
        .replace("\"Percentile\": 50,", "\"Percentile\": 0.5,")
        .replace("99.9,", "0.999,");
    let result = read_result(&text).unwrap();
    near(value(&result, "latency_p50"), 1.9e6);
    near(value(&result, "latency_p999"), 1.9e7);
}

#[test]
fn a_file_that_is_no_result_is_refused() {
    let error = |text: &str| read_result(text).unwrap_err().to_string();
    assert!(error("{\"a\": 1}").starts_with("it is not JSON of a known tool"));
    assert!(error("").starts_with("it is not complete JSON"));
    assert!(error(&NIGHTHAWK[..NIGHTHAWK.len() - 40]).contains("line"));
    assert_eq!(
        error("{\"results\": []}"),
        "it looks like a result of Nighthawk, but has no result named `global`"
    );
    assert!(error("{\"DurationHistogram\": 3}").contains("object `DurationHistogram`"));
}

/// Lists and lines of other tools were refused like a result that had been cut.
#[test]
fn json_of_another_tool_is_not_a_result_that_was_cut() {
    let repeated = format!("{FORTIO}\n{FORTIO}");
    for (text, is_unknown) in [
        ("{\"a\": 1}\n{\"a\": 2}\n", true),
        ("[\n  {\"a\": 1},\n  {\"a\": 2}\n]\n", true),
        ("[\n  1,\n  2\n]\n", true),
        ("{\"a\": [", false),
        (&NIGHTHAWK[..NIGHTHAWK.len() - 40], false),
        (&FORTIO[..FORTIO.len() - 40], false),
        (repeated.as_str(), false),
    ] {
        let error = read_result(text).unwrap_err();
        assert_eq!(error == ResultError::Unknown, is_unknown, "{text}");
    }
}

#[test]
fn numbers_have_their_units() {
    for (text, expected, unit, per_second) in [
        ("7.88", 7.88, Unit::Unknown, false),
        (" -3e-2 ", -0.03, Unit::Unknown, false),
        ("1_000", 1000.0, Unit::Unknown, false),
        ("2e3", 2000.0, Unit::Unknown, false),
        ("7.5MiB", 7_864_320.0, Unit::Bytes, false),
        ("1.5 GB/s", 1.5e9, Unit::Bytes, true),
        ("12.5 ms", 1.25e7, Unit::Nanoseconds, false),
        ("3µs", 3000.0, Unit::Nanoseconds, false),
        ("3 %", 0.03, Unit::Ratio, false),
        ("5k/s", 5000.0, Unit::Count, true),
        ("5/s", 5.0, Unit::Count, true),
    ] {
        let (value, actual) = parse_number(text).unwrap();
        near(value, expected);
        assert_eq!(actual, FigureUnit { unit, per_second }, "{text}");
    }
    for text in [
        "",
        "e5",
        "x",
        "7.8 Mb",
        "1,5",
        "1e999",
        "nan",
        "inf",
        "--1",
        "1 2",
        "3 parsecs",
    ] {
        assert!(parse_number(text).is_err(), "{text}");
    }
}

fn values(text: &str) -> Vec<f64> {
    let mut columns = parse_columns(text).unwrap().columns;
    assert_eq!(columns.len(), 1, "{columns:?}");
    columns.remove(0).values
}

#[test]
fn a_plain_column_is_one_number_a_line() {
    assert_eq!(
        values("# runs\n7.88\n\n7.86\r\n  7.85 \n"),
        [7.88, 7.86, 7.85]
    );
    assert_eq!(values("\u{feff}1 KiB\n2 KiB\n"), [1024.0, 2048.0]);
    assert_eq!(values("throughput\n3\n4\n"), [3.0, 4.0]);
}

#[test]
fn a_table_names_its_columns() {
    let text = "run,commit,\"p99, ms\",rate\n1,abc,3 ms,5/s\n2,def,4 ms,6/s\n";
    for text in [
        text.to_owned(),
        text.replace(',', "\t").replace("p99\t", "p99,"),
    ] {
        let columns = parse_columns(&text).unwrap();
        let names: Vec<_> = columns
            .columns
            .iter()
            .map(|column| column.name.as_deref())
            .collect();
        assert_eq!(names, [Some("p99, ms"), Some("rate")]);
        assert_eq!(columns.columns[0].values, [3e6, 4e6]);
        let texts: Vec<&str> = columns
            .texts
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        assert_eq!(texts, ["run", "commit"]);
        assert_eq!(columns.not_runs, None);
    }
}

#[test]
fn a_cell_in_quotes_may_hold_line_breaks_and_quotes() {
    let text = "commit,rate\n\"fix:\nsay \"\"hi\"\"\",5/s\nplain,6/s\n";
    let columns = parse_columns(text).unwrap();
    assert_eq!(columns.columns[0].values, [5.0, 6.0]);
    let text = text.replace("6/s", "6/s,7");
    let error = parse_columns(&text).unwrap_err().to_string();
    assert!(error.starts_with("line 4: 3 cells"), "{error}");
}

#[test]
fn mistakes_in_columns_have_their_line() {
    for (text, error) in [
        ("", "there is no number in it"),
        ("# nothing\n\n", "there is no number in it"),
        ("a,b\n", "there is no number in it"),
        ("1\n2\nthree\n", "line 3: `three` is not a number"),
        ("1,2\n3,4\n", "line 1: several numbers in a line"),
        (
            "a,b\n1,2\n\n3\n",
            "line 4: 1 cells, where the first line names 2",
        ),
        ("1 MiB\n2\n", "line 2: a number of another unit"),
        (
            "a,b\nx,y\n",
            "none of its columns holds numbers only: `a`: line 2: `x` is not a number",
        ),
        ("a\n1 s\n2\n", "`a`: line 3: a number of another unit"),
    ] {
        let actual = parse_columns(text).unwrap_err().to_string();
        assert!(
            actual.starts_with(error) || actual.contains(error),
            "{text:?}: {actual}"
        );
    }
}

#[test]
fn columns_on_the_command_line_are_numbers_only() {
    let column = parse_inline("7.88MiB,7.86MiB").unwrap().unwrap();
    assert_eq!(column.values.len(), 2);
    assert!(parse_inline("a.csv,b.csv").is_none());
    assert!(parse_inline("").is_none());
    assert!(parse_inline("1 s,1").unwrap().is_err());
}

/// Numbers that do not follow one another: the mixing step of splitmix64.
fn noise(at: f64) -> f64 {
    let mixed = (at.to_bits() ^ (at.to_bits() >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    f64::from(u32::try_from(mixed >> 40).unwrap())
}

/// So many rows, each what `row` says of its number.
fn rows(head: &str, count: u32, row: impl Fn(f64) -> String) -> String {
    let rows = (0..count).map(|at| row(f64::from(at)));
    std::iter::once(head.to_owned())
        .chain(rows)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn rows_that_are_seconds_are_reported() {
    for (name, text, reason) in [
        (
            "seconds",
            rows("second,rate", 5, |at| format!("{at},{}", noise(at))),
            "counts the seconds",
        ),
        (
            "index",
            rows("fetch_index,rate", 5, |at| format!("{at},1")),
            "counts the seconds",
        ),
        (
            "clock",
            rows("time,rate", 9, |at| {
                format!("{},{}", 1_700_000_000.0 + at, noise(at))
            }),
            "even steps of 1 s",
        ),
        (
            "milliseconds",
            rows("timestamp,rate", 9, |at| {
                format!("{},{}", 1.7e12 + 1000.0 * at, noise(at))
            }),
            "even steps of 1 s",
        ),
        (
            "runs",
            rows("run_id,rate", 4, |at| format!("{},1", at % 2.0)),
            "the same run in several rows",
        ),
        (
            "walk",
            rows("rate", 60, |at| format!("{}", 100.0 + (at / 7.0).sin())),
            "are autocorrelated",
        ),
    ] {
        let actual = parse_columns(&text).unwrap().not_runs;
        assert!(
            actual
                .as_ref()
                .is_some_and(|actual| actual.contains(reason)),
            "{name}: {actual:?}"
        );
    }
}

#[test]
fn runs_are_not_taken_for_seconds() {
    for text in [
        rows("rate", 100, |at| format!("{}", noise(at))),
        rows("run,rate", 20, |at| format!("{at},{}", noise(at))),
        // Minutes apart, as a history is.
        rows("time,rate", 20, |at| {
            format!("{},{}", 1_700_000_000.0 + 90.0 * at, noise(at))
        }),
        rows("rate", 60, |_| "5".to_owned()),
    ] {
        assert_eq!(parse_columns(&text).unwrap().not_runs, None, "{text}");
    }
}

proptest! {
    /// For all texts: columns or an error, never a panic, and all numbers finite.
    #[test]
    fn any_text_is_read_without_panic(text in "(?s).{0,300}") {
        if let Ok(columns) = parse_columns(&text) {
            for column in columns.columns {
                prop_assert!(column.values.iter().all(|value| value.is_finite()));
            }
        }
        drop(read_result(&text));
        drop(parse_inline(&text));
    }

    /// For all tables of such cells: the same.
    #[test]
    fn any_table_is_read_without_panic(
        text in "([a-z0-9.,;\t\"%µ +-]{0,20}\n){0,12}",
    ) {
        drop(parse_columns(&text));
    }

    /// For all results cut or changed anywhere: figures or an error, all finite.
    #[test]
    fn damaged_results_are_read_without_panic(
        nighthawk: bool,
        at: prop::sample::Index,
        byte in prop::sample::select(b"\"{}[],:0e-sx".to_vec()),
    ) {
        let text = if nighthawk { NIGHTHAWK } else { FORTIO };
        let mut bytes = text.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let text = String::from_utf8(bytes).unwrap();
        if let Ok(result) = read_result(&text) {
            prop_assert!(result.figures.iter().all(|figure| figure.value.is_finite()));
        }
    }

    /// For all columns of finite numbers: they read back.
    #[test]
    fn columns_read_back(values in prop::collection::vec(-1e12_f64..1e12, 1..29)) {
        let text = values.iter().map(|value| format!("{value}\n")).collect::<String>();
        prop_assert_eq!(super::tests::values(&text), values);
    }
}
