//! Benches, and trees of them.

use std::path::Path;

use stillwell_plan::generator::FileLayout;
use stillwell_plan::payload::{ReplayCut, ReplayEnd, ReplayPlan};
use stillwell_plan::stamp::{PrefixFraming, StampForm};
use stillwell_plan::{BenchPlan, PayloadFormat, RateShape, TargetKind, TransportPlan};
use stillwell_text::{Diagnostics, Node, parse};
use stillwell_units::Nanos;

use super::InMemory;
use crate::foreign::{ForeignFile, ForeignFormat};
use crate::{Await, BenchOptions, BenchTarget, Loader, SchemaOf, is_wanted, schema};

/// A format of another tool, whose files are known by their ending and hold native keys.
#[derive(Debug)]
struct Program;

impl ForeignFormat for Program {
    fn name(&self) -> &'static str {
        "program"
    }

    fn is_bench(&self, path: &Path, _text: Option<&str>) -> bool {
        path.extension().is_some_and(|ending| ending == "troy")
    }

    fn read_bench(&self, file: &ForeignFile<'_>, _found: &mut Diagnostics) -> Option<Node> {
        parse(file.source).ok().map(|(tree, _)| tree)
    }
}

const TARGET: &str = "\
target: {command: [relay], ready: {tcp: \"127.0.0.1:9100\"}}
in: tcp://127.0.0.1:9100
out: tcp://127.0.0.1:9200
";

/// Reads a bench file; its recording exists.
fn load(text: &str, flags: BenchOptions) -> Result<BenchPlan, String> {
    let files = InMemory::with([("/b/one/bench.yaml", text), ("/b/one/in.json", "{}\n")]);
    let path = Path::new("/b/one/bench.yaml");
    let loaded = Loader::new(&files, &[&Program]).bench(Some(path), flags);
    loaded
        .map(|loaded| loaded.plan)
        .map_err(|diagnostics| joined_messages(&diagnostics))
}

fn joined_messages(diagnostics: &Diagnostics) -> String {
    let all: Vec<String> = diagnostics
        .iter()
        .map(|item| item.message.clone())
        .collect();
    all.join("; ")
}

fn read(text: &str) -> Result<BenchPlan, String> {
    load(&format!("{TARGET}{text}"), BenchOptions::default())
}

fn replay(plan: &BenchPlan) -> &ReplayPlan {
    match &plan.run_plan.generators[0].payload.format {
        PayloadFormat::Replay(replay) => replay,
        next => panic!("{next:?}"),
    }
}

/// Each of the two ways to name the recording is in one of the texts.
const EVERY_KEY: [&str; 2] = [
    "name: all\ncodec: json\nrate: 5k/s\nstop_after: 3s\nwarmup: 1s\nlimit: 9s\ndrain: 2s\nbatch: 1\n\
     connections: 1\nstamps: true\nretries: 0\nlossy: false\nshared_network: false\nseed: 1\n\
     postprocessors: [separate]\npreprocessors: [{name: separate}]\n\
     config: {source: in.json, base64: false, is_transactional: false, structured: false}\n",
    "path: in.json\niters: 1\ninterval: 1ms\nchunk_size: 100\nstop_after_secs: 1\nwarmup_secs: 1\n\
     significant_figures: 2\nstamps: false\n",
];

/// The reader accepts all keys of the schema, and both have the keys of Tremor's connector.
#[test]
fn every_key_of_the_schema_is_read() {
    let mut used = vec!["target", "in", "out"];
    for text in EVERY_KEY {
        read(text).unwrap();
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        used.extend(words);
    }
    let to_splunk = TARGET.replace("in: tcp", "in: hec");
    load(
        &format!("{to_splunk}source: in.json\ntoken: t\n"),
        BenchOptions::default(),
    )
    .unwrap();
    used.push("token");
    let schema = schema(SchemaOf::Bench);
    let keys = |element: &str| -> Vec<String> {
        let properties = &schema["$defs"][element]["properties"];
        properties.as_object().unwrap().keys().cloned().collect()
    };
    for key in keys("bench") {
        assert!(used.contains(&key.as_str()), "{key}");
    }
    let mut tremors = crate::bench::connector::KEYS.map(str::to_owned).to_vec();
    tremors.sort();
    assert_eq!(keys("config"), tremors);
    assert!(tremors.iter().all(|key| keys("bench").contains(key)));
}

// compat: Tremor | path | works
// compat: Tremor | codec | works
// compat: Tremor | stop_after_secs | works
// compat: Tremor | warmup_secs | works
// compat: Tremor | significant_figures | differs | from 1 to 5
#[test]
fn the_keys_of_the_seed_are_a_bench() {
    let nested = "codec: json\nconfig: {source: in.json, stop_after_secs: 10, warmup_secs: 2}\n";
    let flat = "source: in.json\nstop_after_secs: 10\nwarmup_secs: 2\n";
    let path = "path: in.json\nstop_after: 10s\nwarmup: 2s\n";
    let plans = [nested, flat, path].map(|text| read(text).unwrap());
    let [plan, following @ ..] = &plans;
    for next in following {
        assert_eq!(plan, next);
    }
    assert_eq!(plan.name, "one");
    assert_eq!(plan.run_plan.phases.measure, Nanos::from_secs(10));
    assert_eq!(plan.run_plan.phases.warmup, Nanos::from_secs(2));
    assert_eq!((plan.significant_figures, plan.structured), (2, false));
    assert_eq!(plan.unstamped, None);
    let generator = &plan.run_plan.generators[0];
    assert!(generator.rate.is_max() && generator.stamps.is_some());
    let replay = replay(plan);
    assert_eq!(
        (replay.cut, replay.end),
        (ReplayCut::Lines, ReplayEnd::LineFeed)
    );
    assert_eq!((replay.rounds, replay.base64), (None, false));
}

#[test]
fn an_interval_is_a_rate_and_rounds_have_a_limit() {
    let plan = read("source: in.json\ninterval: 1000000\niters: 3\n").unwrap();
    let shape = &plan.run_plan.generators[0].rate.shape;
    assert_eq!(*shape, RateShape::Constant { per_second: 1000.0 });
    assert_eq!(replay(&plan).rounds, Some(3));
    assert_eq!(plan.run_plan.phases.measure, Nanos::from_secs(600));
    let plan = read("source: in.json\niters: 3\nlimit: 5s\ninterval: 0\n").unwrap();
    assert_eq!(plan.run_plan.phases.measure, Nanos::from_secs(5));
    assert!(plan.run_plan.generators[0].rate.is_max());
}

#[test]
fn what_has_no_place_for_stamps_is_only_counted() {
    for (text, why, end) in [
        ("codec: influx\n", "`influx`", ReplayEnd::LineFeed),
        ("codec: binary\n", "`binary`", ReplayEnd::Nothing),
        ("chunk_size: 64\n", "chunks", ReplayEnd::Nothing),
        (
            "stamps: false\n",
            "none were requested",
            ReplayEnd::LineFeed,
        ),
    ] {
        let plan = read(&format!("source: in.json\niters: 1\n{text}")).unwrap();
        assert!(plan.unstamped.as_ref().unwrap().contains(why), "{text}");
        assert_eq!(plan.run_plan.generators[0].stamps, None);
        assert_eq!(replay(&plan).end, end, "{text}");
    }
}

// compat: Tremor | preprocessors, postprocessors: ingest-ns, length-prefixed, separate | works
#[test]
fn names_of_tremors_interceptors_select_time_prefixes() {
    let sent = |text: &str| {
        let plan = read(&format!("source: in.json\niters: 1\n{text}"))?;
        let stamps = plan.run_plan.generators[0].stamps.map(|stamps| stamps.form);
        Ok::<_, String>((
            stamps,
            plan.run_plan.sinks[0].prefix,
            plan.unstamped.is_some(),
        ))
    };
    let lines = Some(PrefixFraming::Lines);
    let lengths = Some(PrefixFraming::LengthPrefixed);
    for (text, framing) in [
        (
            "postprocessors: [ingest-ns]\npreprocessors: [ingest-ns]\n",
            lines,
        ),
        (
            "postprocessors: [{name: ingest-ns}, separate]\npreprocessors: [separate, ingest-ns]\n",
            lines,
        ),
        (
            "postprocessors: [ingest-ns, length-prefixed]\npreprocessors: [length-prefixed, ingest-ns]\n",
            lengths,
        ),
    ] {
        let form = framing.map(StampForm::Prefix);
        assert_eq!(sent(text), Ok((form, framing, true)), "{text}");
    }
    let plain = "postprocessors: [separate]\npreprocessors: [separate]\n";
    assert_eq!(sent(plain), Ok((Some(StampForm::Text), None, false)));
    for (text, message) in [
        (
            "postprocessors: [gzip]\n",
            "these postprocessors are not supported",
        ),
        (
            "preprocessors: [ingest-ns, separate]\n",
            "these preprocessors are not supported",
        ),
        (
            "codec: binary\npostprocessors: [ingest-ns]\n",
            "`ingest-ns` without `length-prefixed` needs events that end in a line feed, and these do not",
        ),
    ] {
        assert_eq!(sent(text), Err(message.to_owned()), "{text}");
    }
    let http = TARGET.replace("tcp://127.0.0.1:9100\n", "http://127.0.0.1:9100/\n");
    let text = format!("{http}source: in.json\niters: 1\npostprocessors: [ingest-ns]\n");
    let message = load(&text, BenchOptions::default()).unwrap_err();
    assert_eq!(
        message,
        "`postprocessors` are not supported for requests and files"
    );
}

#[test]
fn flags_go_before_the_file() {
    let flags = BenchOptions {
        iters: Some(7),
        is_transactional: Some(true),
        input: Some("http://127.0.0.1:9100/in".parse().unwrap()),
        target: Some(BenchTarget::Absent),
        ..BenchOptions::default()
    };
    let text = format!("{TARGET}source: in.json\niters: 3\n");
    let plan = load(&text, flags).unwrap();
    assert_eq!(replay(&plan).rounds, Some(7));
    assert_eq!(plan.run_plan.target.kind, TargetKind::None);
    let TransportPlan::Acknowledged(transport) = &plan.run_plan.generators[0].transport else {
        panic!("{plan:?}");
    };
    assert_eq!(transport.retries, 10);
    assert_eq!(transport.end_timeout, Nanos::from_secs(10));
    for (key, rate, interval, per_second) in [
        ("interval: 5ms\n", Some("2k/s"), None, 2000.0),
        ("rate: 5k/s\n", None, Some(Nanos::from_millis(1)), 1000.0),
    ] {
        let flags = BenchOptions {
            rate: rate.map(str::to_owned),
            interval,
            ..BenchOptions::default()
        };
        let plan = load(&format!("{TARGET}source: in.json\n{key}"), flags).unwrap();
        let shape = &plan.run_plan.generators[0].rate.shape;
        assert_eq!(*shape, RateShape::Constant { per_second }, "{key}");
    }
}

#[test]
fn acknowledgements_are_waited_for_as_long_as_the_drain_may_take() {
    let flags = BenchOptions {
        drain: Some(Nanos::from_secs(45)),
        input: Some("hec://127.0.0.1:9100".parse().unwrap()),
        ..BenchOptions::default()
    };
    let plan = load(&format!("{TARGET}source: in.json\n"), flags).unwrap();
    let TransportPlan::Acknowledged(transport) = &plan.run_plan.generators[0].transport else {
        panic!("{plan:?}");
    };
    assert_eq!(transport.end_timeout, Nanos::from_secs(45));
    assert_eq!(plan.run_plan.phases.drain, transport.end_timeout);
}

#[test]
fn contradictions_are_reported() {
    for (text, message) in [
        ("iters: 1\n", "a bench needs a recording"),
        ("source: nope.json\n", "there is no file /b/one/nope.json"),
        (
            "source: in.json\nis_transactional: true\n",
            "`is_transactional` needs a target that acknowledges",
        ),
        (
            "source: in.json\niters: 1\nrate: 5k/s\ninterval: 5\n",
            "`interval` and `rate` set the same thing",
        ),
        (
            "source: in.json\niters: 2\nconnections: 2\n",
            "with several connections, `iters` would not replay the whole recording each time",
        ),
        ("source: in.json\ncodec: jason\n", "unknown codec `jason`"),
        (
            "source: in.json\nstop_after: 0s\n",
            "with `stop_after` of 0 nothing would be sent",
        ),
        (
            "source: in.json\niters: 1\nlimit: 0s\n",
            "with `limit` of 0 nothing would be sent",
        ),
        (
            "source: in.json\niters: 1\nretries: 3\n",
            "`retries` needs a target that answers",
        ),
        (
            "source: in.json\niters: 1\ntoken: abc\n",
            "`token` is only sent to Splunk's collector",
        ),
        (
            "source: in.json\nstop_after_sec: 3\n",
            "unknown bench key `stop_after_sec`",
        ),
    ] {
        assert_eq!(read(text).unwrap_err(), message, "{text}");
    }
    let same = TARGET.replace("9200", "9100") + "source: in.json\n";
    let message = load(&same, BenchOptions::default()).unwrap_err();
    assert!(
        message.contains("cannot receive and send events at"),
        "{message}"
    );
}

#[test]
fn a_file_is_appended_to_by_one_connection_only() {
    let into = |more: &str| {
        let text = TARGET.replace("in: tcp://127.0.0.1:9100", "in: file:///b/in");
        load(
            &format!("{text}source: in.json\n{more}"),
            BenchOptions::default(),
        )
    };
    let plan = into("stop_after: 1s\n").unwrap();
    let TransportPlan::Files { layout, .. } = &plan.run_plan.generators[0].transport else {
        panic!("{plan:?}");
    };
    let path = "/b/in".into();
    assert_eq!(*layout, FileLayout::Appended { path });
    let message = into("stop_after: 1s\nconnections: 2\n").unwrap_err();
    assert_eq!(
        message,
        "several connections would mix their lines in one file"
    );
}

#[test]
fn all_rounds_are_due_without_a_time() {
    for (text, due) in [
        ("iters: 3\n", Some(3)),
        ("iters: 3\nlimit: 5s\n", Some(3)),
        ("iters: 3\nstop_after: 5s\n", None),
        ("stop_after: 5s\n", None),
    ] {
        let plan = read(&format!("source: in.json\n{text}")).unwrap();
        assert_eq!(plan.rounds_due, due, "{text}");
    }
}

// compat: Tremor | tags.yaml | works
// compat: Tremor | env.yaml | works
// compat: Tremor | before.yaml | works
// compat: Tremor | after.yaml | works
// compat: Tremor | assert.yaml | works
// compat: Tremor | meta.yaml | differs | every folder with a bench is one
#[test]
fn trees_are_read_as_tremor_reads_them() {
    let files = InMemory::with([
        ("/t/tags.yaml", "[all]"),
        ("/t/a/bench.yaml", "x"),
        ("/t/a/tags.json", "[\"quick\", \"tcp\"]"),
        ("/t/a/env.yaml", "PORT: 9100\n"),
        (
            "/t/a/before.yaml",
            "- dir: .\n  cmd: server\n  args: [--port, $PORT]\n  await: {port-open: [9100], \
             wait-for-ms: [5], status: 3}\n  max-await-secs: 4\n",
        ),
        ("/t/a/after.yaml", "cmd: clean\n"),
        (
            "/t/a/assert.yaml",
            "status: 1\nasserts:\n  - {source: stdout, contains: [inf], doesnt_contain: panic}\n\
             figures: {count: 10, throughput.events_per_second: {min: 1_000}}\n",
        ),
        ("/t/b/c/bench.yml", "x"),
        ("/t/.hidden/bench.yaml", "x"),
        ("/t/d/bench.troy", "define flow main"),
        ("/t/d/other.troy", "define flow other"),
    ]);
    let tree = Loader::new(&files, &[&Program])
        .bench_tree(Path::new("/t"))
        .unwrap();
    let names: Vec<&str> = tree.folders.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["a", "b/c", "d"]);
    assert_eq!(tree.folders[2].file, Path::new("/t/d/bench.troy"));
    assert!(joined_messages(&tree.warnings).contains("/t/d/other.troy is ignored"));
    let bench = &tree.folders[0];
    assert_eq!(bench.tags, ["all", "quick", "tcp", "a"]);
    assert_eq!(tree.folders[1].tags, ["all", "c"]);
    let [step] = bench.before.as_slice() else {
        panic!("{:?}", bench.before);
    };
    assert_eq!(step.command, ["server", "--port", "$PORT"]);
    assert_eq!(step.folder, Path::new("/t/a"));
    assert_eq!(step.await_max, Some(Nanos::from_secs(4)));
    assert_eq!(
        step.awaits,
        [
            Await::PortOpen("127.0.0.1:9100".to_owned()),
            Await::Passed(Nanos::from_millis(5)),
            Await::Status(3),
        ]
    );
    assert_eq!(bench.after[0].command, ["clean"]);
    assert_eq!((bench.asserts.status, bench.asserts.texts.len()), (1, 1));
    assert_eq!(bench.asserts.texts[0].lacks, ["panic"]);
    assert_eq!(bench.asserts.figures[1].min, Some(1000.0));
}

#[test]
fn a_tree_with_a_mistake_or_without_a_bench_is_refused() {
    let refused = |files: InMemory| {
        joined_messages(
            &Loader::new(&files, &[&Program])
                .bench_tree(Path::new("/t"))
                .unwrap_err(),
        )
    };
    assert_eq!(
        refused(InMemory::with([("/t/x", "")])),
        "there is no bench at or below /t"
    );
    let text = "- {cmd: x, await: {port-opened: 1}}\n";
    let files = [("/t/bench.yaml", ""), ("/t/before.yaml", text)];
    assert_eq!(
        refused(InMemory::with(files)),
        "unknown await key `port-opened`"
    );
}

// compat: Tremor | --includes, --excludes | works
#[test]
fn tags_choose() {
    let tags = ["tcp", "quick"].map(str::to_owned);
    for (includes, excludes, expected) in [
        (vec![], vec![], true),
        (vec!["tcp"], vec![], true),
        (vec!["http"], vec![], false),
        (vec![], vec!["quick"], false),
        (vec![], vec!["slow"], true),
        (vec!["tcp"], vec!["quick"], true),
        (vec!["http"], vec!["slow"], false),
    ] {
        let owned = |list: &[&str]| list.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        let diagnostics = is_wanted(&tags, &owned(&includes), &owned(&excludes));
        assert_eq!(diagnostics, expected, "{includes:?} {excludes:?}");
    }
}

#[test]
fn a_bench_of_another_format_is_read_as_a_tree_of_native_keys() {
    let text = format!("{TARGET}source: in.json\niters: 2\n");
    let files = InMemory::with([("/b/one/x.troy", text.as_str()), ("/b/one/in.json", "{}\n")]);
    let path = Path::new("/b/one/x.troy");
    let loaded = Loader::new(&files, &[&Program]).bench(Some(path), BenchOptions::default());
    let plan = loaded.unwrap().plan;
    assert_eq!((plan.name.as_str(), plan.rounds_due), ("x", Some(2)));
}
