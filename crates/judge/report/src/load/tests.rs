use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use proptest::prelude::*;
use stillwell_legacy::nighthawk::{
    Counter, Output, Percentile, Quantity, Statistic, WorkerResult, read_json, read_yaml,
};
use stillwell_metric::{Outcome, empty_histogram};
use stillwell_units::Nanos;

use super::*;
use crate::Style;

fn told(format: LoadFormat) -> String {
    render_load(&fixture::report(), format, None, Style::default()).unwrap()
}

#[test]
fn every_format() {
    for format in LoadFormat::ALL {
        let report = match format {
            LoadFormat::Human | LoadFormat::NighthawkHuman | LoadFormat::Csv => fixture::report(),
            _ => fixture::brief(),
        };
        let text = render_load(&report, format, None, Style::default());
        insta::assert_snapshot!(format.name(), text.unwrap());
    }
}

#[test]
fn plain_numbers_are_told_as_they_are() {
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
    late.id = id::OWN_LATENESS.to_owned();
    report.global.add_statistic(late);
    let text = render_load(&report, LoadFormat::Human, None, Style::default()).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("the generator itself was late"), "{text}");
}

#[test]
fn text_breaks_where_the_terminal_ends_and_nothing_is_lost() {
    let mut report = fixture::invalid();
    report.health.findings[0].text = "word ".repeat(60) + "end";
    let told = |width| {
        let style = Style {
            color: false,
            width,
        };
        render_load(&report, LoadFormat::Human, None, style).unwrap()
    };
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for width in [0, 40, 77, 500] {
        let text = told(width);
        assert_eq!(words(&text), words(&told(100)));
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
fn a_load_that_nobody_answered() {
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
    let text = render_load(&report, LoadFormat::Human, None, Style::default());
    insta::assert_snapshot!(text.unwrap());
}

/// It said that only what follows an answer is sent, and asked for a rate that
/// was given.
#[test]
fn a_closed_loop_with_a_rate_was_told_as_one_without() {
    let mut report = fixture::report();
    report.options.open_loop = false;
    let mut failed = report.global.statistic(id::LATENESS).cloned().unwrap();
    failed.id = id::of_class(id::FAILED_TIME, Outcome::TimedOut);
    report.global.add_statistic(failed);
    let text = render_load(&report, LoadFormat::Human, None, Style::default()).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn of_many_workers_all_and_the_busiest_are_told() {
    let mut report = fixture::report();
    let one = report.health.workers[0].clone();
    report.health.workers = (0..16)
        .map(|index| WorkerHealth {
            name: format!("worker_{index}"),
            running: one.running + Nanos::from_millis(index % 5 * 100),
            ..one.clone()
        })
        .collect();
    let text = render_load(&report, LoadFormat::Human, None, Style::default()).unwrap();
    let told: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("worker"))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_load_that_must_not_be_believed() {
    let report = fixture::invalid();
    let text = render_load(&report, LoadFormat::Human, None, Style::default());
    insta::assert_snapshot!(text.unwrap());
}

/// The layouts as in Nighthawk's own test data, of the same message.
#[test]
fn nighthawks_own_data_gives_its_own_layouts() {
    let output = gold();
    for (name, format) in [
        ("gold_human", LoadFormat::NighthawkHuman),
        ("gold_csv", LoadFormat::Csv),
        ("gold_dotted", LoadFormat::Dotted),
        ("gold_prometheus", LoadFormat::Prometheus),
        ("gold_fortio", LoadFormat::Fortio),
    ] {
        insta::assert_snapshot!(name, render_nighthawk(&output, format, None).unwrap());
    }
    let human = render_nighthawk(&output, LoadFormat::NighthawkHuman, None).unwrap();
    assert_eq!(human, GOLD_HUMAN);
    let csv = render_nighthawk(&output, LoadFormat::Csv, None).unwrap();
    assert_eq!(csv, GOLD_CSV);
}

fn gold() -> Output {
    let time = |micros: u64| Some(Quantity::Time(Nanos::new(micros * 1000)));
    let raw = |value: f64| Some(Quantity::Raw(value));
    let list = |values: [Option<Quantity>; 4]| {
        // 0.8 is reached with the largest sample, so that only 1 is beyond 0.75.
        let shares = [
            (0.0, 1, 0),
            (0.5, 2, 1),
            (0.6, 3, 2),
            (0.75, 3, 2),
            (1.0, 4, 3),
        ];
        let entries = shares.map(|(percentile, count, index)| Percentile {
            percentile,
            count,
            value: values[index],
        });
        entries.to_vec()
    };
    let statistic = |id: &str, count, moments: [Option<Quantity>; 4], percentiles| {
        let [mean, pstdev, min, max] = moments;
        Statistic {
            count,
            id: id.to_owned(),
            percentiles,
            mean,
            pstdev,
            min,
            max,
        }
    };
    let pstdev = |nanoseconds| Some(Quantity::Time(Nanos::new(nanoseconds)));
    let counter = |name: &str, value| Counter {
        name: name.to_owned(),
        value,
    };
    let result = |name: &str| WorkerResult {
        name: name.to_owned(),
        statistics: vec![
            statistic(
                "stat_id",
                3,
                [time(2000), pstdev(816_497), time(1000), time(3000)],
                vec![],
            ),
            Statistic::default(),
            statistic(
                "foo_size",
                4,
                [raw(15.5), raw(1.118_033_988_749_895), raw(14.0), raw(17.0)],
                list([raw(14.0), raw(15.0), raw(16.0), raw(17.0)]),
            ),
            statistic(
                "foo_latency",
                4,
                [time(195), pstdev(11_180), time(180), time(210)],
                list([time(180), time(190), time(200), time(210)]),
            ),
        ],
        counters: vec![counter("bar", 2), counter("foo", 1)],
        execution_duration: Some(Nanos::SECOND),
        ..WorkerResult::default()
    };
    Output {
        results: vec![result("worker_0"), result("global")],
        ..Output::default()
    }
}

const GOLD_HUMAN: &str = concat!(
    "Nighthawk - A layer 7 protocol benchmarking tool.\n\n",
    "stat_id (3 samples)\n",
    "  min: 0s 001ms 000us | mean: 0s 002ms 000us | max: 0s 003ms 000us | pstdev: 0s 000ms 816us\n\n",
    "foo_size (4 samples)\n",
    "  min: 14 | mean: 15.5 | max: 17 | pstdev: 1.118033988749895\n\n",
    "  Percentile  Count       Value          \n",
    "  0.5         2           15             \n",
    "  0.75        3           16             \n\n",
    "foo_latency (4 samples)\n",
    "  min: 0s 000ms 180us | mean: 0s 000ms 195us | max: 0s 000ms 210us | pstdev: 0s 000ms 011us\n\n",
    "  Percentile  Count       Value          \n",
    "  0.5         2           0s 000ms 190us \n",
    "  0.75        3           0s 000ms 200us \n\n",
    "Counter                                 Value       Per second\n",
    "bar                                     2           2.00\n",
    "foo                                     1           1.00\n\n",
);

const GOLD_CSV: &str = "Nighthawk - A layer 7 protocol benchmarking tool.

stat_id (3 samples)
Min,Mean,Max,Pstdev
0s 001ms 000us,0s 002ms 000us,0s 003ms 000us,0s 000ms 816us

foo_size (4 samples)
Min,Mean,Max,Pstdev
14,15.5,17,1.118033988749895
Percentile,Count,Value(microseconds),Value
0.5,2,0,15
0.75,3,0,16

foo_latency (4 samples)
Min,Mean,Max,Pstdev
0s 000ms 180us,0s 000ms 195us,0s 000ms 210us,0s 000ms 011us
Percentile,Count,Value(microseconds),Value
0.5,2,190,0s 000ms 190us
0.75,3,200,0s 000ms 200us

Counter,Value,Per second
bar,2,2.00
foo,1,1.00

";

#[test]
fn our_message_reads_back_as_json_and_yaml() {
    let output = nighthawk_output(&fixture::report());
    assert_eq!(read_json(&told(LoadFormat::Json)).as_ref(), Ok(&output));
    assert_eq!(read_yaml(&told(LoadFormat::Yaml)).as_ref(), Ok(&output));
    let names: Vec<&str> = output.results.iter().map(|own| &*own.name).collect();
    assert_eq!(names, ["worker_0", "worker_1", "global"]);
    let mut one = fixture::report();
    one.workers.truncate(1);
    assert_eq!(nighthawk_output(&one).results.len(), 1);
}

#[test]
fn consumers_find_the_percentiles_that_they_look_up_by_equality() {
    let output = nighthawk_output(&fixture::report());
    let statistic = output
        .global()
        .and_then(|own| own.statistic(id::REQUEST_TO_RESPONSE));
    for wanted in [0.5, 0.75, 0.8, 0.9, 0.95, 0.99, 0.999] {
        let mut all = statistic.iter().flat_map(|own| &own.percentiles);
        assert!(
            all.any(|own| own.percentile.to_bits() == f64::to_bits(wanted)),
            "{wanted}"
        );
    }
}

#[test]
fn options_as_given_in_nighthawks_words_are_printed_as_given() {
    let mut report = fixture::report();
    let given = stillwell_legacy::nighthawk::CommandLineOptions {
        requests_per_second: Some(7),
        ..Default::default()
    };
    report.options.nighthawk = Some(Box::new(given.clone()));
    assert_eq!(nighthawk_output(&report).options, given);
    let again = read_load_json(&write_load_json(&report));
    assert_eq!(again, Ok(report));
}

#[test]
fn what_is_no_result_of_ours_is_named() {
    let error = |text| read_load_json(text).unwrap_err().to_string();
    let wanted = "its schema is none, not stillwell/load/v1";
    assert_eq!(error("{}"), wanted);
    let other = "its schema is stillwell/load/v2, not stillwell/load/v1";
    assert_eq!(error(r#"{"schema":"stillwell/load/v2"}"#), other);
    assert!(error("{").starts_with("it is no result of a load: EOF"));
    let mut value: serde_json::Value =
        serde_json::from_str(&write_load_json(&fixture::report())).unwrap();
    value["global"]["statistics"][0]["histogram"]["v2"] = "HISTFAAA".into();
    let cut = error(&value.to_string());
    assert!(cut.contains("no HdrHistogram in V2 encoding"), "{cut}");
}

/// What plotters take of a file: rows of four numbers, told apart by spaces.
fn plotted(text: &str) -> Vec<(f64, f64)> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.map(|line| line.split(' ').filter(|cell| !cell.is_empty()).collect());
    let rows = rows.filter_map(|cells: Vec<&str>| match cells.as_slice() {
        // In their language "inf" is no number, but "Infinity" is.
        [value, _, _, inverse] if *inverse != "inf" => {
            Some((value.parse().ok()?, inverse.parse().ok()?))
        }
        _ => None,
    });
    rows.collect()
}

#[test]
fn plotters_take_every_row_of_percentiles_but_the_last() {
    let report = fixture::report();
    let text = told(LoadFormat::Hgrm);
    let rows = plotted(&text);
    let percentiles = percentile::ticks(
        &report
            .global
            .statistic(id::RESPONSE_TIME)
            .unwrap()
            .histogram
            .as_ref()
            .unwrap()
            .unpack(),
    );
    assert_eq!(rows.len(), percentiles.len() - 1);
    assert!(rows.is_sorted_by(|one, other| one.0 <= other.0 && one.1 < other.1));
    assert_eq!(text.lines().filter(|line| line.ends_with("inf")).count(), 1);
    // The same statistic through Nighthawk's message has the same rows.
    let output = nighthawk_output(&report);
    let again = render_nighthawk(&output, LoadFormat::Hgrm, None).unwrap();
    assert_eq!(plotted(&again), rows);
}

#[test]
fn a_distribution_that_is_not_there_is_named() {
    let report = fixture::report();
    let size = Some(id::RESPONSE_BODY_SIZE);
    let error = render_load(&report, LoadFormat::Hgrm, size, Style::default()).unwrap_err();
    insta::assert_snapshot!(error.to_string());
    let blocking = Some("class.none");
    let output = nighthawk_output(&report);
    assert!(render_nighthawk(&output, LoadFormat::Hgrm, blocking).is_err());
}

#[test]
fn what_a_source_cannot_carry_is_refused_by_name() {
    let output = nighthawk_output(&fixture::report());
    let mut told: Vec<String> = [LoadFormat::Hlog, LoadFormat::Stillwell]
        .map(|format| {
            render_nighthawk(&output, format, None)
                .unwrap_err()
                .to_string()
        })
        .to_vec();
    let nobody = Output::default();
    told.push(
        render_nighthawk(&nobody, LoadFormat::Csv, None)
            .unwrap_err()
            .to_string(),
    );
    let log = HistogramLog::of(&fixture::report());
    for format in LoadFormat::ALL {
        let result = render_log(&log, format, None, "0.1.0");
        told.extend(result.err().map(|error| error.to_string()));
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_log_reads_in_hdrhistograms_own_reader() {
    let text = told(LoadFormat::Hlog);
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
    let all: Vec<_> = report
        .intervals
        .iter()
        .map(|own| own.response_time.unpack())
        .collect();
    assert_eq!(main, merge_histograms(&all));
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
    for own in &mut log.entries {
        own.length = to_millis(own.length);
        own.tag = own.tag.as_ref().map(|tag| tag.replace(' ', "_"));
    }
    again.base = log.base;
    assert_eq!(again, log);
}

#[test]
fn logs_of_others_are_read() {
    let histogram = PackedHistogram::new(&{
        let mut own = empty_histogram();
        own.record(5).unwrap();
        own
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

#[test]
fn prometheus_text_has_only_names_that_it_takes() {
    let mut report = fixture::report();
    report.global.count("ssl.ciphers.ECDHE-RSA-AES128", 1);
    let text = render_load(&report, LoadFormat::Prometheus, None, Style::default()).unwrap();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split('{').next().unwrap();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(name.chars().all(fits), "{line}");
        let value = line.rsplit(' ').next().unwrap();
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
    }
    assert!(text.contains("nighthawk_ssl_ciphers_ECDHE_RSA_AES128{scope=\"global\"} 1"));
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
    result.add_statistic(statistic.with_moments(moments));
    result.count("upstream_rq_total", histogram.len());
    result.end(Outcome::Ok, histogram.len());
    result
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// For all splits of all samples: the parts merge to the same as the whole.
    #[test]
    fn workers_merge_to_what_one_would_have_found(samples in samples(), at in 0_usize..60) {
        let (one, other) = samples.split_at(at.min(samples.len()));
        let parts = [result_of("a", one), result_of("b", other), result_of("c", &[])];
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
        let sum: u128 = samples.iter().map(|own| u128::from(*own)).sum();
        // The sum of squares about the mean, times the count.
        let deviations: u128 = samples
            .iter()
            .map(|own| (u128::from(*own) * count).abs_diff(sum).pow(2))
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
    fn our_json_reads_back(
        samples in samples(),
        rate in 0.0_f64..1e6,
        name in ".{0,9}",
        asked in prop::option::of(any::<u64>()),
    ) {
        let mut report = fixture::brief();
        report.workers = vec![result_of(&name, &samples)];
        report.global = LoadResult::merged(GLOBAL, &report.workers);
        report.options.rate = AskedRate::PerSecond(rate);
        report.intervals[0].asked = asked;
        let text = write_load_json(&report);
        let again = read_load_json(&text).unwrap();
        prop_assert_eq!(&again, &report);
        prop_assert_eq!(write_load_json(&again), text);
        let message = render_load(&report, LoadFormat::Json, None, Style::default());
        prop_assert_eq!(read_json(&message.unwrap()), Ok(nighthawk_output(&report)));
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
