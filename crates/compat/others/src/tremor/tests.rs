//! Programs, as trees of bench files and as mistakes.

use stillwell_config::files::Disk;
use stillwell_text::{Source, Value};

use super::*;

/// The benchmark of Tremor's documentation, in its form.
const DOCUMENTED: &str = r#"
define flow main
flow
  use tremor::connectors;
  define connector bench from bench
  with
    codec = "json",
    config = {
      "source": "in.json",
      "stop_after_secs": 10,
      "warmup_secs": 2
    }
  end;
  create connector bench;
  define pipeline bench_me
  pipeline
    # a pipeline without logic
    select event from in into out;
  end;
  create pipeline bench_me;
  connect /connector/bench to /pipeline/bench_me;
  connect /pipeline/bench_me to /connector/bench;
end;
deploy flow main;
"#;

/// Returns the tree of a program in short, or its mistake with its line.
fn read(text: &str) -> Result<String, String> {
    let source = Source::new("bench.troy", text);
    let file = ForeignFile {
        files: &Disk,
        path: Path::new("bench.troy"),
        source: &source,
    };
    let mut diagnostics = Diagnostics::new();
    let tree = TremorPrograms.read_bench(&file, &mut diagnostics);
    let first = diagnostics.iter().next().unwrap();
    match tree {
        Some(tree) => Ok(short(&tree)),
        None => {
            let line = first.place.as_ref().unwrap().start().line;
            Err(format!("{line}: {}", first.message))
        }
    }
}

fn short(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Scalar { text, .. } => text.clone(),
        Value::List(items) => format!(
            "[{}]",
            items.iter().map(short).collect::<Vec<_>>().join(" ")
        ),
        Value::Map(entries) => {
            let entries = entries.iter();
            let entries =
                entries.map(|entry| format!("{}={}", entry.key.text, short(&entry.value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(" "))
        }
    }
}

#[test]
fn programs_are_known() {
    assert!(is_program(Path::new("bench.troy"), ""));
    assert!(is_program(Path::new("bench"), "\ndefine flow main\nflow\n"));
    assert!(!is_program(Path::new("bench.yaml"), "source: in.json\n"));
}

// compat: Tremor | .troy programs | differs | events pass stillwell relay; the rest of the language is refused by name
#[test]
fn the_documented_program_is_a_bench_through_the_relay() {
    assert_eq!(
        read(DOCUMENTED).unwrap(),
        "{codec=json config={source=in.json stop_after_secs=10 warmup_secs=2} \
         target={command=[{self} relay --in tcp://127.0.0.1:9861 --out tcp://127.0.0.1:9862 \
         --events json --parse] ready={tcp=127.0.0.1:9861}} \
         in=tcp://127.0.0.1:9861 out=tcp://127.0.0.1:9862}"
    );
}

#[test]
fn values_and_definitions_are_read_in_all_their_spellings() {
    let text = r#"
use std::time::nanos;
define connector source from bench with
  codec = {"name": "influx"},
  config = {"path": "a \"b\"", "interval": nanos::from_millis(1), "iters": 1_000, "base64": true,
            "x": [1, null,], },
end;
define flow main flow
  create connector b from source;
  create pipeline p from tremor::pipelines::passthrough;
  connect /connector/b/out to /pipeline/p/in;
  connect /pipeline/p/out to /connector/b/in;
end;
deploy flow main
"#;
    let tree = read(text).unwrap();
    let begin = "{codec=influx config={path=a \"b\" interval=1000000 iters=1000 base64=true x=[1 null]} \
                 target={command=[{self} relay --in tcp://127.0.0.1:9861 --out tcp://127.0.0.1:9862]";
    assert!(tree.starts_with(begin), "{tree}");
}

#[test]
fn the_rest_of_the_language_is_refused_by_name_and_place() {
    let changed = |from: &str, to: &str| DOCUMENTED.replace(from, to);
    for (text, expected) in [
        (
            changed("from in into", "from in where true into"),
            "18: `where` in a pipeline is not supported",
        ),
        (
            changed("select event", "select event.a"),
            "18: expected a query, found `.`",
        ),
        (
            changed("from bench\n", "from file\n"),
            "5: connector `file` is not supported",
        ),
        (
            changed("pipeline bench_me\n", "pipeline bench_me\nargs a\n"),
            "16: `args` is not supported",
        ),
        (
            changed("tremor::connectors", "mine"),
            "4: module `mine` is not supported",
        ),
        (
            changed("\"in.json\"", "args.file"),
            "9: `args` is not supported",
        ),
        (
            changed("10,", "5 + 5,"),
            "10: `+` after a value is not supported",
        ),
        (
            changed("\"in.json\"", "\"#{x}\""),
            "9: interpolation in a string is not supported",
        ),
        (
            changed("deploy flow main", "deploy flow other"),
            "24: there is no flow `other`",
        ),
        (
            changed("deploy flow main;", ""),
            "1: the program deploys no flow",
        ),
        (
            changed("connect /pipeline/bench_me to /connector/bench;", ""),
            "21: events end in pipeline `bench_me` and are not measured",
        ),
        (
            changed("to /connector/bench;", "to /connector/other;"),
            "22: there is no connector `other`",
        ),
        (
            changed("create pipeline bench_me", "create pipeline x"),
            "20: there is no definition of pipeline `x`",
        ),
        (
            changed("/connector/bench to", "/connector/bench/err to"),
            "21: port `err` is not supported",
        ),
        (
            changed("\"json\"", "\"json"),
            "7: a string without its closing quote",
        ),
        (
            "define flow main flow".to_owned(),
            "1: the program ends before a statement",
        ),
    ] {
        assert_eq!(read(&text), Err(expected.to_owned()));
    }
}

#[test]
fn codecs_of_bytes_are_refused_unless_they_are_sent_in_chunks() {
    for (codec, name) in [
        ("\"binary\"", "binary"),
        ("{\"name\": \"msgpack\"}", "msgpack"),
    ] {
        let text = DOCUMENTED.replace("\"json\"", codec);
        let message = format!("7: codec `{name}` is not supported");
        assert_eq!(read(&text), Err(message));
        let tree = read(&text.replace("stop_after_secs", "chunk_size")).unwrap();
        let begin = format!("{{codec={name} config={{source=in.json chunk_size=10 ");
        assert!(tree.starts_with(&begin), "{tree}");
    }
}

proptest::proptest! {
    #[test]
    fn for_all_programs_cut_or_changed_there_is_a_bench_or_a_mistake_with_a_place(
        at in 0..DOCUMENTED.len(), length in 0_usize..40, instead in "[a-z0-9:;/{}\\[\\]\"#., ]{0,8}",
    ) {
        let end = (at + length).min(DOCUMENTED.len());
        let text = format!("{}{instead}{}", &DOCUMENTED[..at], &DOCUMENTED[end..]);
        // Its result is checked by `read`: a mistake has a place.
        let result = read(&text);
        proptest::prop_assert!(result.is_ok() || result.is_err_and(|mistake| mistake.contains(": ")));
    }
}
