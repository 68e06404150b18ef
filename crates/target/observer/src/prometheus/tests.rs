use proptest::prelude::*;

use super::*;

const PAGE: &str = r#"# HELP events_total Things "seen" {by} us.
# TYPE events_total counter
events_total{path="C:\\x",text="a \"b\" } \n,=",} 1027 1395066363000
# TYPE heat gauge
heat -3.5
# TYPE wait histogram
wait_bucket{le="0.5"} 3 # {trace_id="x"} 0.4 1.6
wait_bucket{le="+Inf"} 4
wait_sum 17.5
wait_count 4
# TYPE om counter
om_total 5
om_created 1.6e9
# TYPE quantiles summary
quantiles{quantile="0.9"} NaN
quantiles_count 2
plain +Inf
{"dotted.name",zone="a"} 1
  spaced { a = "b" , c="d" } 2
# EOF
"#;

#[test]
fn a_page_is_read() {
    let page = parse_page(PAGE.as_bytes(), None, 100);
    assert_eq!((page.malformed, page.surplus), (0, 0));
    let shown: Vec<String> = page
        .series
        .iter()
        .map(|series| {
            let labels: Vec<String> = series
                .labels
                .iter()
                .map(|(k, v)| format!("{k}={v:?}"))
                .collect();
            let (name, kind, value) = (&series.name, series.kind.name(), series.value);
            format!("{kind} {name} [{}] {value}", labels.join(" "))
        })
        .collect();
    let expected = [
        r#"counter events_total [path="C:\\x" text="a \"b\" } \n,="] 1027"#,
        "gauge heat [] -3.5",
        r#"counter wait_bucket [le="0.5"] 3"#,
        r#"counter wait_bucket [le="+Inf"] 4"#,
        "counter wait_sum [] 17.5",
        "counter wait_count [] 4",
        "counter om_total [] 5",
        "gauge om_created [] 1600000000",
        r#"gauge quantiles [quantile="0.9"] NaN"#,
        "counter quantiles_count [] 2",
        "gauge plain [] inf",
        r#"gauge dotted.name [zone="a"] 1"#,
        r#"gauge spaced [a="b" c="d"] 2"#,
    ];
    assert_eq!(shown, expected);
}

#[test]
fn what_is_not_understood_is_counted_and_skipped() {
    for line in [
        "a",
        "a{",
        "a{} ",
        "a{b} 1",
        "a{b=c} 1",
        "a{b=\"c} 1",
        "a{b=\"c\" d=\"e\"} 1",
        "a{=\"c\"} 1",
        "a{,} 1",
        "1a 1",
        "{} 1",
        "a x",
        "ä 1",
        "a{\"b\"} 1",
        "a{b=\"\\",
    ] {
        let page = parse_page(format!("{line}\ngood 1\n").as_bytes(), None, 100);
        assert_eq!((page.malformed, page.series.len()), (1, 1), "{line}");
    }
    assert_eq!(parse_page(b"\xff\xfe 1\ngood 1\n", None, 100).malformed, 1);
}

#[test]
fn series_above_the_limit_are_counted() {
    let page = parse_page(b"a 1\nb 1\nc 1\n", None, 2);
    assert_eq!((page.series.len(), page.surplus), (2, 1));
}

#[test]
fn series_that_are_not_requested_do_not_count_for_the_limit() {
    let names = ["c", "wait"].map(str::to_owned);
    let text = b"a 1\nb 1\nc 1\nwait_sum 1\nwait_count 1\nbroken{\n";
    let page = parse_page(text, Some(&names), 2);
    let shown: Vec<&str> = page
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    assert_eq!(shown, ["c", "wait_sum"]);
    assert_eq!((page.surplus, page.malformed), (1, 1));
}

/// Kinds and names of a page's series.
fn kinds_and_names(page: &Page) -> Vec<String> {
    let series = page.series.iter();
    let shown = series.map(|series| format!("{} {}", series.kind.name(), series.name));
    shown.collect()
}

#[test]
fn dotted_names_are_selected_and_have_the_type_of_the_page() {
    let text = b"# TYPE a__b counter\na__b 1\n# TYPE c__d summary\nc__d_sum 2\ne 3\n";
    let dotted = ["a.b", "c.d"].map(str::to_owned);
    let plain = ["a__b", "c__d"].map(str::to_owned);
    let page = parse_dotted(text, None, 100);
    let all = ["counter a.b", "counter c.d_sum", "gauge e"];
    assert_eq!(kinds_and_names(&page), all);
    let page = parse_dotted(text, Some(&dotted), 100);
    assert_eq!(kinds_and_names(&page), all[..2]);
    assert_eq!(parse_dotted(text, Some(&plain), 100), Page::default());
    let page = parse_page(text, Some(&plain), 100);
    let of_page = ["counter a__b", "counter c__d_sum"];
    assert_eq!(kinds_and_names(&page), of_page);
    assert_eq!(parse_page(text, Some(&dotted), 100), Page::default());
}

proptest! {
    #[test]
    fn for_all_bytes_nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(parse_page(&bytes, None, 3).series.len() <= 3);
    }

    #[test]
    fn for_all_changed_pages_nothing_panics_and_other_lines_are_read(
        changes in proptest::collection::vec((0..PAGE.len(), prop_oneof![
            any::<u8>(), proptest::sample::select(b"{}\"\\,=# \n".to_vec()),
        ]), 0..8),
    ) {
        let mut bytes = PAGE.as_bytes().to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes.extend_from_slice(b"\nlast_one 7\n");
        let page = parse_page(&bytes, None, 100);
        let last = page.series.last().map(|series| series.name.as_str());
        prop_assert_eq!(last, Some("last_one"));
    }

    #[test]
    fn for_all_label_values_what_is_written_is_read(value in "\\PC{0,20}", number in any::<f64>()) {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let page = parse_page(format!("a{{b=\"{escaped}\"}} {number}").as_bytes(), None, 1);
        prop_assert_eq!(page.series[0].labels.value("b"), Some(value.as_str()));
        let read = page.series[0].value;
        prop_assert!(read.to_bits() == number.to_bits() || (read.is_nan() && number.is_nan()));
    }
}

/// lading's task panics on such a page.
#[test]
fn a_series_of_type_untyped_is_a_gauge() {
    let page = parse_page(
        b"# TYPE a untyped\na 1\n# TYPE b unknown\nb{c=\"d\"} 2\n",
        None,
        100,
    );
    assert_eq!(page.malformed, 0);
    let kinds: Vec<_> = page
        .series
        .iter()
        .map(|series| series.kind.name())
        .collect();
    assert_eq!(kinds, ["gauge", "gauge"]);
}
