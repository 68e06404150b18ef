use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry, LogIteratorError};
use proptest::prelude::*;
use stillwell_metric::{Outcome, empty_histogram};
use stillwell_units::Nanos;

use super::*;
use crate::{Format, Style};

#[test]
fn plain_numbers_are_written_unchanged() {
    let text = hgrm::of_load(&fixture::sizes()).unwrap();
    assert!(text.starts_with("#[foo_size in bytes]\n"), "{text}");
    let max = fixture::sizes().moments.max;
    assert!(
        text.contains(&format!("#[Max     = {max:>5}.000000")),
        "{text}"
    );
}

#[test]
fn a_generator_that_was_late_itself_is_named_as_the_cause() {
    let mut report = fixture::report();
    let mut late = report.global.statistic(id::LATENESS).cloned().unwrap();
    late.id = id::GENERATOR_LATENESS.to_owned();
    report.global.add_statistic(late);
    let text = human::human(&report, Style::default());
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("the generator itself was late"), "{text}");
}

#[test]
fn text_breaks_where_the_terminal_ends_and_nothing_is_lost() {
    let mut report = fixture::invalid();
    report.health.warnings[0].text = "word ".repeat(60) + "end";
    let printed = |width| {
        let style = Style {
            color: false,
            width,
        };
        human::human(&report, style)
    };
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for width in [0, 40, 77, 500] {
        let text = printed(width);
        assert_eq!(words(&text), words(&printed(100)));
        let is_text = |line: &&str| line.contains("word") || line.contains("closed loop");
        let widest = text
            .lines()
            .filter(is_text)
            .map(|line| line.chars().count());
        assert!(
            widest
                .skip(1)
                .all(|columns| columns <= usize::from(width.clamp(40, 100)))
        );
    }
}

#[test]
fn a_load_without_answers() {
    let mut report = fixture::invalid();
    report.options.targets.truncate(1);
    let refused = OutcomeCount {
        outcome: Outcome::ConnectRefused,
        count: 350,
    };
    report.global.outcomes = vec![refused];
    report.global.statistics.clear();
    report.global.classes.clear();
    report.global.counters = [("upstream_cx_connect_fail".to_owned(), 400)].into();
    report.ending = Ending::Duration;
    insta::assert_snapshot!(human::human(&report, Style::default()));
}

#[test]
fn requests_in_flight_at_the_end_are_neither_counted_nor_errors() {
    let mut report = fixture::report();
    let expected = human::human(&report, Style::default());
    let unfinished = OutcomeCount {
        outcome: Outcome::Unfinished,
        count: 5_000,
    };
    report.global.outcomes.push(unfinished);
    report.global.classes[0].outcomes.push(unfinished);
    let last = report.intervals.last_mut().unwrap();
    last.outcomes.push(unfinished);
    let text = human::human(&report, Style::default());
    assert_eq!(text.replace(", 5,000 unfinished", ""), expected);
    assert_eq!(text.matches(", 5,000 unfinished").count(), 2, "{text}");
}

/// The output described a pure closed loop and left out the rate.
#[test]
fn a_closed_loop_with_a_rate_was_reported_as_having_none() {
    let mut report = fixture::report();
    report.options.open_loop = false;
    let mut failed = report.global.statistic(id::LATENESS).cloned().unwrap();
    failed.id = id::of_class(id::FAILED_TIME, Outcome::TimedOut);
    report.global.add_statistic(failed);
    let text = human::human(&report, Style::default());
    insta::assert_snapshot!(text);
}

#[test]
fn a_second_without_a_response_has_no_p99() {
    let mut report = fixture::report();
    let line = |report: &LoadReport| {
        let text = human::human(report, Style::default());
        let mut lines = text.lines().map(str::trim);
        let line = lines.find(|line| line.starts_with("p99 ") && line.contains('█'));
        line.unwrap().to_owned()
    };
    let whole = line(&report);
    report.intervals[2].response_time = PackedHistogram::default();
    assert_eq!(line(&report), whole.replace("▁▁▁█▁", "▁▁\u{a0}█▁"));
}

#[test]
fn many_workers_are_summed_with_the_busiest() {
    let mut report = fixture::report();
    let worker = report.health.workers[0].clone();
    report.health.workers = (0..16)
        .map(|index| WorkerHealth {
            name: format!("worker_{index}"),
            running: worker.running + Nanos::from_millis(index % 5 * 100),
            ..worker.clone()
        })
        .collect();
    let text = human::human(&report, Style::default());
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("worker"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_load_that_is_unreliable() {
    let report = fixture::invalid();
    insta::assert_snapshot!(human::human(&report, Style::default()));
}

#[test]
fn what_is_no_result_of_ours_is_named() {
    let error = |text| read_load_json(text).unwrap_err().to_string();
    let expected = "its schema is none, not stillwell/load/v2";
    assert_eq!(error("{}"), expected);
    let expected = "its schema is stillwell/load/v3, not stillwell/load/v2";
    assert_eq!(error(r#"{"schema":"stillwell/load/v3"}"#), expected);
    assert!(error("{").starts_with("it is not a load result: EOF"));
    let mut value: serde_json::Value =
        serde_json::from_str(&write_load_json(&fixture::report())).unwrap();
    value["global"]["statistics"][0]["histogram"]["v2"] = "HISTFAAA".into();
    let cut = error(&value.to_string());
    assert!(cut.contains("not an HdrHistogram in V2 encoding"), "{cut}");
}

#[test]
fn a_log_reads_in_hdrhistograms_own_reader() {
    let text = HistogramLog::of(&fixture::report()).write(&fixture::report().version);
    let report = fixture::report();
    let mut main = empty_histogram();
    let mut tags = std::collections::BTreeSet::new();
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            tags.extend(interval.tag().map(|tag| tag.as_str().to_owned()));
            let base64 = interval.encoded_histogram();
            // Readers of other languages take compressed ones alone.
            assert!(base64.starts_with("HISTFAAA"), "{base64}");
            let packed = PackedHistogram::from_base64(base64).unwrap();
            if interval.tag().is_none() {
                main.add(packed.unpack()).unwrap();
            }
        }
    }
    let all = report.intervals.iter();
    let all = all.map(|interval| interval.response_time.unpack());
    assert_eq!(main, merge_histograms(all));
    assert!(tags.contains(id::SERVICE_TIME) && tags.contains(id::SEQUENCER_CALLBACK));
    assert!(tags.contains("class.GET_/.response_time"), "{tags:?}");
}

#[test]
fn a_log_reads_back() {
    let log = HistogramLog::of(&fixture::report());
    let mut again = HistogramLog::read(&log.write("0.1.0")).unwrap();
    // A file is exact to the millisecond, and tags have no spaces in it.
    let to_millis = |time: Nanos| Nanos::from_millis(time.as_u64() / 1_000_000);
    assert_eq!(again.base, to_millis(log.base));
    let mut log = log;
    for entry in &mut log.entries {
        entry.length = to_millis(entry.length);
        entry.tag = entry.tag.as_ref().map(|tag| tag.replace(' ', "_"));
    }
    again.base = log.base;
    assert_eq!(again, log);
}

#[test]
fn logs_of_others_are_read() {
    let histogram = PackedHistogram::new(&{
        let mut histogram = empty_histogram();
        histogram.record(5).unwrap();
        histogram
    });
    let line = histogram.to_base64();
    let text = format!(
        "#[Histogram log format version 1.3]\n\"StartTimestamp\",\"Interval_Length\"\r\n\
         1441812279.474,1.007,2.769,{line}\r\nTag=b,1441812280.474,1,2.769,{line}"
    );
    let log = HistogramLog::read(&text).unwrap();
    assert_eq!(log.base, Nanos::from_millis(1_441_812_279_474));
    assert_eq!(log.entries[0].start, Nanos::ZERO);
    assert_eq!(log.entries[1].start, Nanos::SECOND);
    assert_eq!(log.entries[1].tag.as_deref(), Some("b"));
    let result = log.to_result();
    assert_eq!(result.statistic("b").map(LoadStatistic::count), Some(1));
    let wrong = [
        ("", HistogramLogError::Empty),
        ("#only a comment\n", HistogramLogError::Empty),
        ("0,1,2\n", HistogramLogError::Line { line: 1 }),
        (
            "#\n0,1,2,HISTFAAAnot\n",
            HistogramLogError::Line { line: 2 },
        ),
        ("x,1,2,HISTFAAA\n", HistogramLogError::Line { line: 1 }),
    ];
    for (text, error) in wrong {
        assert_eq!(HistogramLog::read(text), Err(error), "{text}");
    }
}

/// The last start time and the number of intervals that the library's iterator reads, or its
/// error.
fn read_by_library(text: &str) -> Result<(Option<Duration>, usize), LogIteratorError> {
    let (mut start_time, mut intervals) = (None, 0);
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        match entry? {
            LogEntry::StartTime(time) => start_time = Some(time),
            LogEntry::BaseTime(_) => {}
            LogEntry::Interval(_) => intervals += 1,
        }
    }
    Ok((start_time, intervals))
}

#[test]
fn the_library_refuses_logs_that_other_tools_write() {
    let mut histogram = empty_histogram();
    histogram.record(5).unwrap();
    let line = PackedHistogram::new(&histogram).to_base64();
    let header = "#[StartTime: 1441812279.474 (seconds since epoch), 2015]\n";
    // The form of Java's writer is read by both.
    let text = format!("{header}0.127,1.007,2.769,{line}\n");
    let start_time = Duration::from_millis(1_441_812_279_474);
    assert_eq!(read_by_library(&text), Ok((Some(start_time), 1)));
    assert_eq!(
        HistogramLog::read(&text).map(|log| log.entries.len()),
        Ok(1)
    );
    for (name, text) in [
        ("whole seconds", format!("{header}1,1.007,2.769,{line}\n")),
        (
            "no last line break",
            format!("{header}0.127,1.007,2.769,{line}"),
        ),
        (
            "a comment without a line break",
            format!("0.127,1.007,2.769,{line}\n#end"),
        ),
        ("spaces", format!("{header}0.127, 1.007, 2.769, {line}\n")),
        // JavaScript's writer leaves one after the start time.
        (
            "an empty line",
            format!("{header}\n0.127,1.007,2.769,{line}\n"),
        ),
    ] {
        let error = read_by_library(&text);
        assert!(
            matches!(error, Err(LogIteratorError::ParseError { .. })),
            "{name}: {error:?}"
        );
        let read = HistogramLog::read(&text);
        assert_eq!(read.map(|log| log.entries.len()), Ok(1), "{name}");
    }
    // Go's writer omits the milliseconds of the start time: the library reads a comment.
    let text =
        format!("#[StartTime: 1441812279 (seconds since epoch), 2015]\n0.5,1.5,2.5,{line}\n");
    assert_eq!(read_by_library(&text), Ok((None, 1)));
    let log = HistogramLog::read(&text).unwrap();
    assert_eq!(log.base, Nanos::from_secs(1_441_812_279));
}

fn samples() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1_u64..3_600_000_000_000, 0..60)
}

fn result_of(name: &str, samples: &[u64]) -> LoadResult {
    let mut histogram = empty_histogram();
    let mut moments = Moments::default();
    for sample in samples {
        histogram.record(*sample).unwrap();
        moments.record(*sample);
    }
    let mut result = LoadResult::named(name);
    let statistic = LoadStatistic::of_times(id::RESPONSE_TIME, &histogram);
    result.add_statistic(LoadStatistic {
        moments,
        ..statistic
    });
    result.count("upstream_rq_total", histogram.len());
    result.end(Outcome::Ok, histogram.len());
    result
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// For all splits of all samples: the parts merge to the same as the whole.
    #[test]
    fn workers_merge_to_what_one_would_have_found(samples in samples(), at in 0_usize..60) {
        let (left, right) = samples.split_at(at.min(samples.len()));
        let parts = [result_of("a", left), result_of("b", right), result_of("c", &[])];
        let merged = LoadResult::merged("all", &parts);
        let whole = LoadResult::merged("all", &[result_of("all", &samples)]);
        prop_assert_eq!(merged.statistic(id::RESPONSE_TIME), whole.statistic(id::RESPONSE_TIME));
        prop_assert_eq!(merged.counters, whole.counters);
        prop_assert_eq!(merged.outcomes[0].count, whole.outcomes[0].count);
    }

    /// For all samples: moments are those of the textbook.
    #[test]
    fn moments_are_exact(samples in prop::collection::vec(0_u64..60_000_000_000, 1..50)) {
        let mut moments = Moments::default();
        samples.iter().for_each(|sample| moments.record(*sample));
        let count = u128::from(moments.count);
        let sum: u128 = samples.iter().map(|sample| u128::from(*sample)).sum();
        // The sum of squares about the mean, times the count.
        let deviations: u128 = samples
            .iter()
            .map(|sample| (u128::from(*sample) * count).abs_diff(sum).pow(2))
            .sum();
        let variance = deviations as f64 / (count * count * count) as f64;
        prop_assert!((moments.pstdev() - variance.sqrt()).abs() <= 1e-6 * variance.sqrt() + 1e-6);
        prop_assert_eq!(moments.min, *samples.iter().min().unwrap());
        prop_assert_eq!(moments.max, *samples.iter().max().unwrap());
    }

    /// For all histograms: packed ones are the same again, also as text.
    #[test]
    fn histograms_pack_and_unpack(samples in samples()) {
        let mut histogram = empty_histogram();
        samples.iter().for_each(|sample| histogram.record(*sample).unwrap());
        let packed = PackedHistogram::new(&histogram);
        prop_assert_eq!(&packed.unpack(), &histogram);
        prop_assert_eq!(PackedHistogram::from_base64(&packed.to_base64()), Ok(packed));
    }

    /// For all texts: an answer, and never a panic.
    #[test]
    fn any_text_is_answered(text in "\\PC{0,80}") {
        drop(HistogramLog::read(&text));
        drop(read_load_json(&text));
        drop(PackedHistogram::from_base64(&text));
    }
}

proptest! {
    // Each case holds histograms of some hundred thousand counters.
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// For all loads of this shape: our JSON reads back, and is written the same.
    #[test]
    fn written_json_reads_back(
        samples in samples(),
        rate in 0.0_f64..1e6,
        name in ".{0,9}",
        requested in prop::option::of(any::<u64>()),
    ) {
        let mut report = fixture::brief();
        report.workers = vec![result_of(&name, &samples)];
        report.global = LoadResult::merged(GLOBAL, &report.workers);
        report.options.rate = RequestedRate::PerSecond(rate);
        report.intervals[0].requested = requested;
        let text = write_load_json(&report);
        let again = read_load_json(&text).unwrap();
        prop_assert_eq!(&again, &report);
        prop_assert_eq!(write_load_json(&again), text);
    }
}

/// Merges histograms that are all held at once.
fn merged_at_once(parts: &[Histogram<u64>]) -> Histogram<u64> {
    let digits = parts.iter().map(Histogram::sigfig).max().unwrap_or(3);
    let high = parts.iter().map(Histogram::high).max().unwrap_or(2);
    let mut all = Histogram::<u64>::new_with_bounds(1, high, digits).unwrap();
    all.auto(true);
    parts.iter().for_each(|part| all.add(part).unwrap());
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// For all histograms of mixed bounds, in any order: one after the other merges to the same as all at once.
    #[test]
    fn histograms_merge_one_after_the_other(
        parts in prop::collection::vec(
            (1_u8..4, 0_u32..2, prop::collection::vec(0_u64..1 << 30, 0..20)),
            0..5,
        ),
    ) {
        let histogram = |(digits, magnitude, samples): &(u8, u32, Vec<u64>)| {
            let low = 1000_u64.pow(*magnitude);
            let high = samples.iter().copied().max().unwrap_or_default().max(2 * low);
            let mut histogram = Histogram::<u64>::new_with_bounds(low, high, *digits).unwrap();
            samples.iter().for_each(|sample| histogram.record(*sample).unwrap());
            histogram
        };
        let parts: Vec<_> = parts.iter().map(histogram).collect();
        let expected = merged_at_once(&parts);
        prop_assert_eq!(merge_histograms(parts), expected);
    }
}

/// The library's own reader takes the bytes that we keep.
#[test]
fn packed_bytes_are_the_librarys_own() {
    let mut histogram = empty_histogram();
    histogram.record_n(1_234_567, 3).unwrap();
    let text = PackedHistogram::new(&histogram).to_base64();
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap();
    let again: Histogram<u64> = Deserializer::new().deserialize(&mut &*bytes).unwrap();
    assert_eq!(again, histogram);
}

#[test]
fn a_page_of_a_load_has_charts_and_its_data() {
    let page = human::render(&fixture::report(), Format::Html, Style::default());
    for part in [
        "requests per second over time",
        "latency over time",
        "latency by percentile",
        "p99.9",
        "id=\"stillwell-data\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_page_of_a_load_names_its_seed() {
    for format in [Format::Html, Format::Markdown] {
        let page = human::render(&fixture::report(), format, Style::default());
        assert!(page.contains(", seed 42, Stillwell 0.1.0"), "{page}");
    }
}

/// Returns sums over intervals.
fn totals(intervals: &[LoadInterval]) -> [u64; 8] {
    let sum = |of: fn(&LoadInterval) -> u64| intervals.iter().map(of).sum::<u64>();
    [
        sum(|interval| interval.length.as_u64()),
        sum(|interval| interval.requested.unwrap_or_default()),
        sum(|interval| interval.sent),
        sum(|interval| interval.outcomes.iter().map(|ended| ended.count).sum()),
        sum(|interval| interval.bytes_received),
        sum(|interval| interval.bytes_sent),
        sum(|interval| PackedHistogram::merged([&interval.response_time]).len()),
        sum(|interval| PackedHistogram::merged([&interval.lateness]).len()),
    ]
}

#[test]
fn the_data_of_a_page_does_not_grow_with_the_duration_of_the_load() {
    let second = fixture::report().intervals[3].clone();
    // Most seconds have no response: unpacking takes long without optimisation.
    let times = |index: u64| match index % 100 {
        0 => second.response_time.clone(),
        _ => PackedHistogram::default(),
    };
    let report_of = |seconds: u64| LoadReport {
        intervals: (0..seconds)
            .map(|index| LoadInterval {
                start: Nanos::from_secs(index),
                response_time: times(index),
                service_time: PackedHistogram::default(),
                lateness: times(index + 1),
                ..second.clone()
            })
            .collect(),
        ..fixture::report()
    };
    let report = report_of(3000);
    let page = human::render(&report, Format::Html, Style::default());
    let (_, data) = page.split_once("id=\"stillwell-data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let read = read_load_json(data).unwrap();
    assert!(read.intervals.len() <= 240, "{}", read.intervals.len());
    assert_eq!(totals(&read.intervals), totals(&report.intervals));
    assert_eq!(read.global.counters, report.global.counters);
    assert_eq!(read.global.outcomes, report.global.outcomes);
    let is_gapless = |pair: &[LoadInterval]| pair[0].start + pair[0].length == pair[1].start;
    assert!(read.intervals.windows(2).all(is_gapless));
    // The complete form has every second.
    let report = report_of(241);
    let full = crate::FullReport::from(&report);
    for (text, expected) in [(full.page_data.unwrap(), 121), (full.data, 241)] {
        assert_eq!(read_load_json(&text).unwrap().intervals.len(), expected);
    }
}
