use proptest::prelude::*;
use stillwell_metric::empty_histogram;
use stillwell_report::Style;
use stillwell_report::load::*;
use stillwell_units::Nanos;

use super::*;
use crate::{
    CommandLineOptions, Counter, Percentile, Protocol, Quantity, Statistic, read_json, read_yaml,
};

#[path = "../../../../judge/report/src/load/fixture.rs"]
#[expect(
    dead_code,
    reason = "some of it is for the tests of the native forms alone"
)]
mod fixture;

fn rendered(format: NighthawkFormat) -> String {
    render_as(&fixture::report(), format)
}

#[test]
fn every_format() {
    for format in NighthawkFormat::ALL {
        let report = match format {
            NighthawkFormat::Human | NighthawkFormat::Human2020 | NighthawkFormat::Csv => {
                fixture::report()
            }
            _ => fixture::brief(),
        };
        insta::assert_snapshot!(format.name(), render_as(&report, format));
    }
}

// compat: nighthawk_client | layout of human | differs | today's; that of 2020 is human-2020
// compat: nighthawk_client | layout of fortio | differs | today's; that of early 2020 is fortio-2020
/// The layouts as in Nighthawk's own test data, of the same message.
#[test]
fn nighthawks_own_data_gives_its_own_layouts() {
    let output = gold();
    for (name, format) in [
        ("gold_human", NighthawkFormat::Human),
        ("gold_csv", NighthawkFormat::Csv),
        ("gold_dotted", NighthawkFormat::Dotted),
        ("gold_fortio", NighthawkFormat::Fortio),
    ] {
        let text = render_nighthawk(&output, LoadFormat::Nighthawk(format), None);
        insta::assert_snapshot!(name, text.unwrap());
    }
    for (format, text) in [
        (NighthawkFormat::Human, GOLD_HUMAN),
        (NighthawkFormat::Csv, GOLD_CSV),
        (NighthawkFormat::Prometheus, GOLD_PROMETHEUS),
    ] {
        let written = render_nighthawk(&output, LoadFormat::Nighthawk(format), None);
        assert_eq!(written.unwrap(), text);
    }
}

fn gold() -> Output {
    let time = |micros: u64| Some(Quantity::Time(Nanos::new(micros * 1000)));
    let raw = |value: f64| Some(Quantity::Raw(value));
    let list = |values: [Option<Quantity>; 4]| {
        // 0.8 is reached with the largest sample, so only 1 is beyond 0.75.
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

// compat: nighthawk_client | layout of human in 2020, as human-2020 | works
// compat: nighthawk_client | layout of fortio in early 2020, as fortio-2020 | works
#[test]
fn layouts_of_2020_have_the_lines_and_keys_of_then() {
    let mut output = gold();
    output.options.labels = vec!["a".to_owned(), "b".to_owned()];
    let mut render = |format, id: &str| {
        output.results[1].statistics[3].id = id.to_owned();
        render_nighthawk(&output, LoadFormat::Nighthawk(format), None).unwrap()
    };
    let human = render(NighthawkFormat::Human2020, id::REQUEST_TO_RESPONSE);
    let expected = concat!(
        "Request start to response end\n",
        "  samples: 4\n",
        "  mean:    0s 000ms 195us\n",
        "  pstdev:  0s 000ms 011us\n\n",
        "  Percentile  Count       Latency\n",
        "  0           1           0s 000ms 180us\n",
        "  0.5         2           0s 000ms 190us\n",
        "  0.75        3           0s 000ms 200us\n",
        "  1           4           0s 000ms 210us\n\n",
        "Counter                                 Value       Per second\n",
        "client.bar                              2           2.00\n",
        "client.foo                              1           1.00\n\n",
    );
    assert!(human.ends_with(expected), "{human}");
    let size = render(NighthawkFormat::Human2020, id::RESPONSE_BODY_SIZE);
    assert!(!size.contains("Response body size"), "{size}");
    let fortio = render(NighthawkFormat::Fortio2020, id::REQUEST_TO_RESPONSE);
    let fortio: serde_json::Value = serde_json::from_str(&fortio).unwrap();
    assert_eq!(fortio["Labels"], "a b Nighthawk");
    assert_eq!(
        fortio["DurationHistogram"]["Percentiles"][0]["Percentile"],
        0.5
    );
    for key in [
        "RunType",
        "Sizes",
        "HeaderSizes",
        "BytesSent",
        "BytesReceived",
    ] {
        assert!(fortio.get(key).is_none(), "{key}");
    }
}

/// For all protocols: several connections for each worker only if they are requested.
#[test]
fn fortio_has_the_connections_of_all_workers() {
    let typed = CommandLineOptions {
        connections: Some(8),
        max_active_requests: Some(100),
        max_concurrent_streams: Some(2_147_483_647),
        ..CommandLineOptions::default()
    };
    let with = |protocol, streams, several| CommandLineOptions {
        protocol: Some(protocol),
        max_concurrent_streams: streams,
        experimental_h2_use_multiple_connections: Some(several),
        ..typed.clone()
    };
    let h2 = |several| CommandLineOptions {
        h2: Some(true),
        experimental_h2_use_multiple_connections: several,
        ..typed.clone()
    };
    for (options, connections) in [
        (typed.clone(), 8),
        (with(Protocol::Http1, None, false), 8),
        (h2(None), 1),
        (h2(Some(false)), 1),
        (h2(Some(true)), 8),
        (with(Protocol::Http2, None, false), 1),
        (with(Protocol::Http3, None, false), 1),
        (with(Protocol::Http2, None, true), 8),
        (with(Protocol::Http2, Some(50), false), 2),
        (with(Protocol::Http3, Some(1), false), 8),
        (with(Protocol::Http2, Some(0), false), 8),
    ] {
        let mut output = gold();
        let worker = WorkerResult {
            name: "worker_1".to_owned(),
            ..output.results[0].clone()
        };
        output.results.insert(1, worker);
        output.options = options;
        let format = LoadFormat::Nighthawk(NighthawkFormat::Fortio);
        let text = render_nighthawk(&output, format, None).unwrap();
        let fortio: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = 2 * connections;
        assert_eq!(fortio["NumThreads"], expected, "{:?}", output.options);
    }
}

/// Rows of 2020 are of the entries that Nighthawk lists, so their shares are those of then.
#[test]
fn rows_of_2020_are_ticks() {
    let text = rendered(NighthawkFormat::Human2020);
    for row in ["\n  0.990625    ", "\n  0.999023    ", "\n  1           "] {
        assert!(text.contains(row), "{text}");
    }
    assert!(!text.contains("\n  0.99 "), "{text}");
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

const GOLD_PROMETHEUS: &str = r#"# TYPE nighthawk_bar counter
nighthawk_bar{scope="worker_0"} 2
nighthawk_bar{scope="global"} 2
# TYPE nighthawk_foo counter
nighthawk_foo{scope="worker_0"} 1
nighthawk_foo{scope="global"} 1
# TYPE nighthawk_foo_latency summary
nighthawk_foo_latency{scope="worker_0",quantile="0"} 180
nighthawk_foo_latency{scope="worker_0",quantile="0.5"} 190
nighthawk_foo_latency{scope="worker_0",quantile="0.75"} 200
nighthawk_foo_latency{scope="worker_0",quantile="1"} 210
nighthawk_foo_latency_count{scope="worker_0"} 4
nighthawk_foo_latency_sum{scope="worker_0"} 780
nighthawk_foo_latency{scope="global",quantile="0"} 180
nighthawk_foo_latency{scope="global",quantile="0.5"} 190
nighthawk_foo_latency{scope="global",quantile="0.75"} 200
nighthawk_foo_latency{scope="global",quantile="1"} 210
nighthawk_foo_latency_count{scope="global"} 4
nighthawk_foo_latency_sum{scope="global"} 780
# TYPE nighthawk_foo_latency_max counter
nighthawk_foo_latency_max{scope="worker_0"} 210
nighthawk_foo_latency_max{scope="global"} 210
# TYPE nighthawk_foo_latency_mean counter
nighthawk_foo_latency_mean{scope="worker_0"} 195
nighthawk_foo_latency_mean{scope="global"} 195
# TYPE nighthawk_foo_latency_min counter
nighthawk_foo_latency_min{scope="worker_0"} 180
nighthawk_foo_latency_min{scope="global"} 180
# TYPE nighthawk_foo_latency_pstdev counter
nighthawk_foo_latency_pstdev{scope="worker_0"} 11
nighthawk_foo_latency_pstdev{scope="global"} 11
# TYPE nighthawk_foo_size summary
nighthawk_foo_size{scope="worker_0",quantile="0"} 14
nighthawk_foo_size{scope="worker_0",quantile="0.5"} 15
nighthawk_foo_size{scope="worker_0",quantile="0.75"} 16
nighthawk_foo_size{scope="worker_0",quantile="1"} 17
nighthawk_foo_size_count{scope="worker_0"} 4
nighthawk_foo_size_sum{scope="worker_0"} 62
nighthawk_foo_size{scope="global",quantile="0"} 14
nighthawk_foo_size{scope="global",quantile="0.5"} 15
nighthawk_foo_size{scope="global",quantile="0.75"} 16
nighthawk_foo_size{scope="global",quantile="1"} 17
nighthawk_foo_size_count{scope="global"} 4
nighthawk_foo_size_sum{scope="global"} 62
# TYPE nighthawk_foo_size_max counter
nighthawk_foo_size_max{scope="worker_0"} 17
nighthawk_foo_size_max{scope="global"} 17
# TYPE nighthawk_foo_size_mean counter
nighthawk_foo_size_mean{scope="worker_0"} 15.5
nighthawk_foo_size_mean{scope="global"} 15.5
# TYPE nighthawk_foo_size_min counter
nighthawk_foo_size_min{scope="worker_0"} 14
nighthawk_foo_size_min{scope="global"} 14
# TYPE nighthawk_foo_size_pstdev counter
nighthawk_foo_size_pstdev{scope="worker_0"} 1.118033988749895
nighthawk_foo_size_pstdev{scope="global"} 1.118033988749895
# TYPE nighthawk_stat_id_count counter
nighthawk_stat_id_count{scope="worker_0"} 3
nighthawk_stat_id_count{scope="global"} 3
# TYPE nighthawk_stat_id_max counter
nighthawk_stat_id_max{scope="worker_0"} 3000
nighthawk_stat_id_max{scope="global"} 3000
# TYPE nighthawk_stat_id_mean counter
nighthawk_stat_id_mean{scope="worker_0"} 2000
nighthawk_stat_id_mean{scope="global"} 2000
# TYPE nighthawk_stat_id_min counter
nighthawk_stat_id_min{scope="worker_0"} 1000
nighthawk_stat_id_min{scope="global"} 1000
# TYPE nighthawk_stat_id_pstdev counter
nighthawk_stat_id_pstdev{scope="worker_0"} 816
nighthawk_stat_id_pstdev{scope="global"} 816
# TYPE nighthawk_stat_id_sum counter
nighthawk_stat_id_sum{scope="worker_0"} 6000
nighthawk_stat_id_sum{scope="global"} 6000
"#;

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
fn a_written_message_reads_back_as_json_and_yaml() {
    let output = nighthawk_output(&fixture::report());
    assert_eq!(
        read_json(&rendered(NighthawkFormat::Json)).as_ref(),
        Ok(&output)
    );
    assert_eq!(
        read_yaml(&rendered(NighthawkFormat::Yaml)).as_ref(),
        Ok(&output)
    );
    let names: Vec<&str> = output.results.iter().map(|result| &*result.name).collect();
    assert_eq!(names, ["worker_0", "worker_1", "global"]);
    let mut single = fixture::report();
    single.workers.truncate(1);
    assert_eq!(nighthawk_output(&single).results.len(), 1);
}

#[test]
fn consumers_find_the_percentiles_that_they_look_up_by_equality() {
    let output = nighthawk_output(&fixture::report());
    let statistic = output
        .global()
        .and_then(|result| result.statistic(id::REQUEST_TO_RESPONSE));
    for quantile in [0.5, 0.75, 0.8, 0.9, 0.95, 0.99, 0.999] {
        let mut all = statistic
            .iter()
            .flat_map(|statistic| &statistic.percentiles);
        assert!(
            all.any(|percentile| percentile.percentile.to_bits() == f64::to_bits(quantile)),
            "{quantile}"
        );
    }
}

#[test]
fn options_as_given_in_nighthawks_words_are_printed_as_given() {
    let mut report = fixture::report();
    let given = CommandLineOptions {
        requests_per_second: Some(7),
        ..Default::default()
    };
    report.options.original = Some(serde_json::to_value(&given).unwrap());
    assert_eq!(nighthawk_output(&report).options, given);
    // The text layouts lacked the counters that a process of Nighthawk always has.
    for format in [
        NighthawkFormat::Human,
        NighthawkFormat::Csv,
        NighthawkFormat::Json,
    ] {
        let text = render_as(&report, format);
        assert!(text.contains("runtime.load_success"), "{text}");
    }
    let again = read_load_json(&write_load_json(&report));
    assert_eq!(again, Ok(report));
}

/// A result of a load with several URLs had no target.
#[test]
fn several_targets_that_differ_in_host_and_port_alone_are_in_the_result() {
    let cases: [([&str; 2], &[&str]); 6] = [
        (
            ["http://a:1/x?y=z", "http://[::1]:2/x?y=z"],
            &["http://a:1/x?y=z", "http://[::1]:2/x?y=z"],
        ),
        (["http://a/", "b"], &["http://a:80/", "http://b:80/"]),
        (
            ["https://[::1]", "https://b:1"],
            &["https://[::1]:443/", "https://b:1/"],
        ),
        (["http://a:1/x", "http://b:1/y"], &[]),
        (["http://a:1/", "https://b:1/"], &[]),
        (["3*http://a:1/", "http://b:1/"], &[]),
    ];
    for (targets, expected) in cases {
        let mut report = fixture::brief();
        report.options.targets = targets.map(str::to_owned).to_vec();
        let written = nighthawk_output(&report).options.targets();
        assert_eq!(written, expected, "{targets:?}");
    }
}

#[test]
fn every_counter_of_an_output_can_be_named_in_a_predicate() {
    let mut report = fixture::report();
    let given = CommandLineOptions::default();
    report.options.original = Some(serde_json::to_value(&given).unwrap());
    for counter in nighthawk_output(&report)
        .results
        .iter()
        .flat_map(|result| &result.counters)
    {
        let read = crate::request::values::PredicateKind::Failure.named(&counter.name, 0);
        assert!(read.is_ok(), "{read:?}");
    }
}

/// Reads a file as plotters do: rows of four numbers between spaces.
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
    let format = NativeLoadFormat::Hgrm;
    let text = render_load(&report, format, None, Style::default()).unwrap();
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
    assert!(rows.is_sorted_by(|left, right| left.0 <= right.0 && left.1 < right.1));
    assert_eq!(text.lines().filter(|line| line.ends_with("inf")).count(), 1);
    // The same statistic through Nighthawk's message has the same rows.
    let output = nighthawk_output(&report);
    let again = render_nighthawk(&output, LoadFormat::Native(format), None).unwrap();
    assert_eq!(plotted(&again), rows);
}

#[test]
fn a_result_without_a_response_has_an_empty_table_of_percentiles() {
    let format = NativeLoadFormat::Hgrm;
    let render = |output: &Output| render_nighthawk(output, LoadFormat::Native(format), None);
    // As `load` writes it: without the statistics that have no sample.
    let mut report = fixture::report();
    let statistics = &mut report.global.statistics;
    statistics.retain(|statistic| statistic.id == id::LATENESS);
    let of_load = render_load(&report, format, None, Style::default()).unwrap();
    assert_eq!(render(&nighthawk_output(&report)), Ok(of_load.clone()));
    // As Nighthawk writes it: with all statistics, and with the last row of some.
    let last = Percentile {
        percentile: 1.0,
        ..Percentile::default()
    };
    for percentiles in [vec![], vec![last]] {
        let latency = Statistic {
            id: id::REQUEST_TO_RESPONSE.to_owned(),
            percentiles,
            ..Statistic::default()
        };
        let global = WorkerResult {
            name: GLOBAL.to_owned(),
            statistics: vec![latency],
            ..WorkerResult::default()
        };
        let output = Output {
            results: vec![global],
            ..Output::default()
        };
        let expected = of_load.replace(id::RESPONSE_TIME, id::REQUEST_TO_RESPONSE);
        assert_eq!(render(&output), Ok(expected));
    }
    // Samples without a list of percentiles, or with other names, are not nothing.
    let mut moments = gold();
    assert!(render(&moments).is_err());
    moments.results[1].statistics[0].id = id::REQUEST_TO_RESPONSE.to_owned();
    assert!(render(&moments).is_err());
}

#[test]
fn a_distribution_that_a_result_does_not_have_is_refused() {
    let output = nighthawk_output(&fixture::report());
    let format = LoadFormat::Native(NativeLoadFormat::Hgrm);
    assert!(render_nighthawk(&output, format, Some("class.none")).is_err());
}

#[test]
fn what_a_source_cannot_carry_is_refused_by_name() {
    let output = nighthawk_output(&fixture::report());
    let mut texts: Vec<String> = [NativeLoadFormat::Hlog, NativeLoadFormat::Stillwell]
        .map(|format| {
            render_nighthawk(&output, LoadFormat::Native(format), None)
                .unwrap_err()
                .to_string()
        })
        .to_vec();
    let empty = Output::default();
    texts.push(
        render_nighthawk(&empty, LoadFormat::Nighthawk(NighthawkFormat::Csv), None)
            .unwrap_err()
            .to_string(),
    );
    let log = HistogramLog::of(&fixture::report());
    for format in LoadFormat::all() {
        let result = render_log(&log, format, None, "0.1.0");
        texts.extend(result.err().map(|error| error.to_string()));
    }
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn prometheus_text_has_only_names_that_it_takes() {
    let mut report = fixture::report();
    report.global.count("ssl.ciphers.ECDHE-RSA-AES128", 1);
    let text = render_as(&report, NighthawkFormat::Prometheus);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split('{').next().unwrap();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(name.chars().all(fits), "{line}");
        let value = line.rsplit(' ').next().unwrap();
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
    }
    assert!(text.contains("nighthawk_ssl_ciphers_ECDHE_RSA_AES128{scope=\"global\"} 1"));
}

proptest! {
    // Each case holds a histogram of some hundred thousand counters.
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// For all loads of this shape: the message reads back.
    #[test]
    fn a_written_message_reads_back(
        samples in prop::collection::vec(0_u64..60_000_000_000, 0..60),
        rate in 0.0_f64..1e6,
        name in ".{0,9}",
    ) {
        let mut histogram = empty_histogram();
        samples.iter().for_each(|sample| histogram.record(*sample).unwrap());
        let mut worker = LoadResult::named(name);
        worker.add_statistic(LoadStatistic::of_times(id::REQUEST_TO_RESPONSE, &histogram));
        let mut report = fixture::brief();
        report.workers = vec![worker];
        report.global = LoadResult::merged(GLOBAL, &report.workers);
        report.options.rate = RequestedRate::PerSecond(rate);
        let message = render_as(&report, NighthawkFormat::Json);
        prop_assert_eq!(read_json(&message), Ok(nighthawk_output(&report)));
    }
}
