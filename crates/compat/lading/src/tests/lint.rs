//! Files are rewritten to today's spelling and mean the same.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use stillwell_config::Loader;
use stillwell_text::{NamedFiles, Source};

use super::InMemory;
use crate::{FORMATS, file as lading, spelling as lint};

const SEED: &str = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, \
                    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]";

/// The meaning of a file, which must be right.
fn plan(source: &Arc<Source>) -> String {
    let (run_plan, result) = lading::read(source, false, NamedFiles::default());
    assert!(!result.has_errors(), "{result}\n{}", source.text());
    let run_plan = run_plan.unwrap();
    format!("{:?}", (run_plan.seed, run_plan.generators, run_plan.sinks))
}

/// One of several pieces of a file, as old as can be or as today.
fn piece(choices: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(choices)
}

fn file() -> impl Strategy<Value = String> {
    let shape = piece(&["  tcp:", "  - tcp:", "- tcp:"]);
    let rate = piece(&[
        "",
        "bytes_per_second: \"500 Mb\"",
        "bytes_per_second: 8Mib # slow",
        "bytes_per_second: 1000000",
        "throttle: all_out",
        "throttle: {linear: {initial_bytes_per_second: 1 kB, maximum_bytes_per_second: '9 Mb', \
         rate_of_change: 1kB}}",
        "throttle:\n  linear:\n    initial: {blocks_per_second: 1}\n    maximum: {blocks_per_second: \
         4}\n    # each second\n    rate_of_change: {blocks_per_second: 1}",
    ]);
    let blocks = piece(&[
        "",
        "block_sizes: ['1Mb', \"0.5Mb\"]",
        "block_sizes:\n  - 8 kb\n  - 4096\n# kept",
        "maximum_block_size: 65536",
        "block_sizes: [1kB]\nmaximum_block_size: 8 Kib",
    ]);
    let variant = piece(&[
        "variant: ascii",
        "variant: \"dogstatsd\"",
        "variant: {opentelemetry_logs: {}}",
        "variant: opentelemetry_metrics # all kinds",
        "variant:\n  dogstatsd:\n    contexts_minimum: 9\n    contexts_maximum: \
         20\n    prefix_metric_names: []\n    name_length: {constant: 9}",
        "variant:\n  dogstatsd: {name_length: {constant: 9}, tag_length: {inclusive: {min: 9, max: 12}}}",
        "variant:\n  dogstatsd:\n    # how long\n    tag_key_length_minimum: 8\n    tag_key_length_maximum: \
         9\n    tags_per_msg_range: {inclusive: {min: 1, max: 3}}",
    ]);
    let cache = piece(&[
        "maximum_prebuild_cache_size_bytes: 256 Mb",
        "maximum_prebuild_cache_size_bytes: \"1 MiB\"",
        "maximum_prebuild_cache_size_bytes: 1048576",
    ]);
    (shape, rate, blocks, variant, cache, any::<bool>()).prop_map(
        |(shape, rate, blocks, variant, cache, is_listening)| {
            let depth = shape.len() - shape.trim_start_matches([' ', '-']).len() + 2;
            let indent = " ".repeat(depth);
            let mut text = format!("# A file.\ngenerator:\n{shape}\n{indent}seed: {SEED}\n");
            text += &format!("{indent}addr: 127.0.0.1:9\n\n");
            for piece in [rate, blocks, variant, cache] {
                for line in piece.lines() {
                    text += &format!("{indent}{line}\n");
                }
            }
            if is_listening {
                text += "blackhole:\n  tcp: {binding_addr: \"127.0.0.1:8080\"}\n";
            }
            text
        },
    )
}

proptest! {
    /// For all files out of old and new pieces: today's spelling makes the same
    /// plan, keeps every comment, has nothing left to fix, and stays as it is.
    #[test]
    fn todays_spelling_means_the_same(text in file()) {
        let source = Source::new("lading.yaml", text.as_str());
        let fixed = lint::fix(&source);
        let today = Source::new("lading.yaml", fixed.as_str());
        prop_assert_eq!(plan(&source), plan(&today), "{}\n{}", text, fixed);
        prop_assert_eq!(&lint::fix(&today), &fixed);
        prop_assert!(lint::lint(&today).is_empty(), "{}", fixed);
        for comment in ["# A file.", "# slow", "# each second", "# kept", "# all kinds", "# how long"] {
            prop_assert_eq!(text.contains(comment), fixed.contains(comment), "{}", fixed);
        }
    }
}

#[test]
fn folders_are_searched_and_other_files_left_alone() {
    let old = "blackhole:\n  tcp:\n    binding_addr: 127.0.0.1:1\n";
    let native = "workload: {sinks: [{tcp: '127.0.0.1:1'}]}\ngenerator: 7\n";
    let files = InMemory::with([
        ("/lab/a/lading/lading.yaml", old),
        (
            "/lab/a/experiment.yaml",
            "checks:\n- name: x\n  bounds: {series: lost_bytes, upper_bound: 0}\n",
        ),
        ("/lab/b/run.yaml", native),
        ("/lab/target/lading.yaml", old),
        ("/lab/README.md", old),
    ]);
    let linted = Loader::new(&files, FORMATS)
        .lint(&[PathBuf::from("/lab")])
        .unwrap();
    let names: Vec<String> = linted
        .iter()
        .map(|value| value.path.display().to_string())
        .collect();
    assert_eq!(
        names,
        ["/lab/a/experiment.yaml", "/lab/a/lading/lading.yaml"]
    );
    for file in &linted {
        assert_eq!(
            (file.diagnostics.len(), file.fixable),
            (1, 1),
            "{}",
            file.diagnostics
        );
        assert!(file.fixed.is_some());
    }
    let none = Loader::new(&files, FORMATS).lint(&[PathBuf::from("/nowhere")]);
    assert!(
        none.unwrap_err()
            .to_string()
            .contains("no such file or folder: /nowhere")
    );
}
