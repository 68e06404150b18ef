use super::*;

fn source(text: &str) -> Arc<Source> {
    Source::new("lading.yaml", text)
}

/// The new spelling of `text`; a second pass must change nothing.
fn fixed(text: &str) -> String {
    let once = fix(&source(text));
    assert_eq!(fix(&source(&once)), once);
    assert!(
        !lint(&source(&once)).iter().any(Finding::is_fixable),
        "{once}"
    );
    once
}

/// Lines and columns of what is found.
fn places(text: &str) -> Vec<(usize, usize)> {
    let result = lint(&source(text));
    let place = |finding: &Finding| {
        let start = finding.diagnostic.place.as_ref().unwrap().start();
        (start.line, start.column)
    };
    result.iter().map(place).collect()
}

const OLD: &str = "\
# What this is for.
generator:
  http:
    seed: [1, 2]   # far too few
    target_uri: \"http://localhost:8282/v1/input\"
    # Half of what the other one has.
    bytes_per_second: \"500 Mb\"

    block_sizes: ['1Mb', '0.5Mb', '8kb'] # three of them
    method:
      post:
        variant: dogstatsd
        block_cache_method: Streaming
        maximum_prebuild_cache_size_bytes: 256 Mb
  id: one
# Behind it.
blackhole:
  http:
    binding_addr: \"0.0.0.0:8080\"
";

const TODAY: &str = "\
# What this is for.
generator:
  - http:
      seed: [1, 2]   # far too few
      target_uri: \"http://localhost:8282/v1/input\"
      # Half of what the other one has.
      bytes_per_second: \"62.5 MB\"

      maximum_block_size: \"1 MB\" # three of them
      method:
        post:
          variant: {dogstatsd: {}}
          block_cache_method: Fixed
          maximum_prebuild_cache_size_bytes: 32 MB
    id: one
# Behind it.
blackhole:
  - http:
      binding_addr: \"0.0.0.0:8080\"
";

#[test]
fn an_old_file_is_written_as_today_with_its_comments_and_its_order() {
    assert_eq!(fixed(OLD), TODAY);
    assert_eq!(
        places(OLD),
        [
            (2, 1),
            (7, 23),
            (9, 5),
            (12, 18),
            (13, 29),
            (14, 44),
            (17, 1)
        ]
    );
    assert!(lint(&source(TODAY)).is_empty());
}

/// The options of a dogstatsd payload, inside a file.
fn with_options(options: &str) -> String {
    let options = options.replace('\n', "\n          ");
    format!(
        "generator:\n  - udp:\n      variant:\n        dogstatsd:\n          {options}\n      addr: \
         \"a:1\"\n"
    )
}

#[test]
fn earlier_options_of_dogstatsd_are_written_as_today() {
    for (old, today) in [
        (
            "contexts_minimum: 5 # few\nname_length: {constant: 5}\ncontexts_maximum: 10",
            "contexts: {inclusive: {min: 5, max: 10}} # few\nname_length: {constant: 5}",
        ),
        (
            "contexts_maximum: 6000",
            "contexts: {inclusive: {min: 5000, max: 6000}}",
        ),
        (
            "tag_value_length_minimum: 4",
            "tag_length: {inclusive: {min: 6, max: 201}}",
        ),
        (
            "name_length_range:\n  inclusive:\n    min: 1\n    max: 2",
            "name_length:\n  inclusive:\n    min: 1\n    max: 2",
        ),
        (
            "tag_key_length_minimum: 2\ntag_key_length_maximum: 4\ncontexts: {constant: 5}",
            "tag_length: {inclusive: {min: 4, max: 105}}\ncontexts: {constant: 5}",
        ),
        (
            "tag_key_length: {inclusive: {min: 1, max: 3}}\ntag_value_length: {constant: 7}",
            "tag_length: {inclusive: {min: 9, max: 11}}",
        ),
        (
            "contexts: {constant: 5}\ncontexts_minimum: 9",
            "contexts: {constant: 5}",
        ),
        (
            "prefix_metric_names: [a,\n  b]\ncontexts: {constant: 5}",
            "contexts: {constant: 5}",
        ),
    ] {
        assert_eq!(fixed(&with_options(old)), with_options(today), "{old}");
    }
}

/// The reader reports such ranges, so they have no current spelling.
#[test]
fn invalid_ranges_of_dogstatsd_stay() {
    for options in [
        "contexts_minimum: 9\ncontexts_maximum: 5",
        "contexts_maximum: 10",
        "tags_per_msg_maximum: 300",
        "tag_key_length_minimum: 101",
    ] {
        let text = with_options(options);
        assert_eq!(fixed(&text), text);
        assert_eq!(lint(&source(&text)).len(), 1, "{options}");
    }
}

#[test]
fn parts_are_written_as_today() {
    for (old, today) in [
        // Shapes in brackets.
        (
            "generator: {tcp: {addr: 'a]:1'}}\n",
            "generator: [{tcp: {addr: 'a]:1'}}]\n",
        ),
        // A kind of file_gen, and a list, one after the other.
        (
            "generator:\n  file_gen:\n    path_template: a\n    duplicates: 4\n",
            "generator:\n  - file_gen:\n      traditional:\n        path_template: a\n        duplicates: 4\n",
        ),
        (
            "generator:\n  - file_gen: {path_template: a}\n",
            "generator:\n  - file_gen: {traditional: {path_template: a}}\n",
        ),
        // Streams have no method of caches.
        (
            "generator:\n- tcp:\n    addr: a\n    block_cache_method: Fixed\n    x: y\n",
            "generator:\n- tcp:\n    addr: a\n    x: y\n",
        ),
        (
            "generator:\n- tcp:\n    block_cache_method: Fixed # why\n    x: y\n",
            "generator:\n- tcp:\n    # why\n    x: y\n",
        ),
        // Numbers, names, and sizes within them.
        (
            "generator:\n- tcp:\n    maximum_block_size: 1024\n    throttle: {linear: {initial_bytes_per_second: 1Mb}}\n",
            "generator:\n- tcp:\n    maximum_block_size: \"1024 B\"\n    throttle: {linear: {initial: 125 kB}}\n",
        ),
        (
            "generator:\n- udp:\n    block_sizes:\n      - 1024\n      - 4 Kib\n    maximum_block_size: 8 KiB\n",
            "generator:\n- udp:\n    maximum_block_size: 8 KiB\n",
        ),
        (
            "checks:\n- bounds: {series: \"lost_bytes['a']\", upper_bound: 0}\n",
            "checks:\n- bounds: {series: \"missed_bytes['a']\", upper_bound: 0}\n",
        ),
    ] {
        assert_eq!(fixed(old), today);
    }
}

#[test]
fn what_means_the_same_or_cannot_be_known_stays() {
    for text in [
        "",
        "generator: []\n",
        "definitions: {a: !const 1}\ngenerator: !with\n  bind:\n    rate: 8Mb\n  in: !var a\n",
        "generator: [\n",
        "generator:\n- http:\n    headers: {maximum_block_size: 7}\n    block_cache_method: Fixed\n",
        "generator:\n- tcp: {variant: {dogstatsd: {contexts: {constant: 5}}}}\n",
    ] {
        assert_eq!(fixed(text), text);
        assert!(lint(&source(text)).is_empty(), "{text}");
    }
    // A search for a rate has no counterpart, and of two rates one is meant.
    for text in [
        "generator:\n- tcp:\n    throttle: {predictive: {latency: 5}}\n",
        "generator:\n- tcp:\n    bytes_per_second: \"500 MB\"\n    throttle: all_out\n",
    ] {
        assert_eq!(fixed(text), text);
        let result = lint(&source(text));
        assert_eq!(result.len(), 1);
        assert!(!result[0].is_fixable());
    }
}

/// A file without findings is one that lading 0.33 reads.
// compat: lading, files | removed keys, weights, encodings and rates of older files (stillwell lint) | works
#[test]
fn keys_and_options_that_were_removed_are_reported() {
    let text = "\
experiment_duration: 60
generator:
  - file_gen:
      logrotate_fs:
        bytes_per_second: 10 MB # of each log
        variant: {opentelemetry_metrics: {metric_weights: {gauge: 1, sum: 2}}}
  - tcp: {bytes_per_second: 1 MB, throttle: all_out, variant: opentelemetry_traces}
  - http: {method: {post: {variant: {trace_agent: json}}}}
";
    assert_eq!(
        places(text),
        [(1, 1), (5, 9), (6, 75), (7, 35), (7, 63), (8, 51)]
    );
    let fixed_of = |text: &str| fix(&source(text));
    let fixed = fixed(text);
    assert!(
        fixed.contains("        load_profile: {constant: \"10 MB\"} # of each log\n"),
        "{fixed}"
    );
    let logs = |rate: &str| {
        format!(
            "a: &rate 1 MB\ngenerator:\n- file_gen: {{logrotate_fs: {{bytes_per_second: {rate}}}}}\n"
        )
    };
    for (old, today) in [("7", "\"7 B\""), ("10 Mb", "\"10 MB\"")] {
        let profile = format!("{{load_profile: {{constant: {today}}}}}");
        assert!(
            fixed_of(&logs(old)).contains(&profile),
            "{}",
            fixed_of(&logs(old))
        );
    }
    for shared in ["*rate", "&b 1 MB"] {
        assert_eq!(fix(&source(&logs(shared))), logs(shared));
    }
    let of_zero = "generator: [{tcp: {variant: {opentelemetry_metrics: {metric_weights: {gauge: 0, sum_delta: 1}}}}}]\n";
    assert_eq!(places(of_zero).len(), 1);
    let blocks = "generator: [{file_gen: {logrotate_fs: {block_sizes: [1 MiB], block_cache_method: streaming}}}]\n";
    assert_eq!(places(blocks).len(), 2);
    let of_smp = "target: {name: a}\nchecks: []\n";
    assert_eq!(places(of_smp), []);
}
