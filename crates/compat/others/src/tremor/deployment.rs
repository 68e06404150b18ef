//! The bench that a program deploys.

use stillwell_config::is_byte_codec;
use stillwell_text::{Entry, Key, Node, Span, Value, code};

use super::Mistake;
use super::program::{Connector, End, Instance, Name, Program};

/// Address at which the relay receives events.
const IN: &str = "127.0.0.1:9861";

/// Address to which it sends them.
const OUT: &str = "127.0.0.1:9862";

/// Maximum number of pipelines in a row.
const PIPELINES_MAX: usize = 64;

/// Returns the tree of the bench file that does what the program does.
pub(super) fn bench_of(program: &Program) -> Result<Node, Mistake> {
    check_deployment(program)?;
    let bench = bench_connector(program)?;
    check_path(program, bench)?;
    let definition = definition(program, bench)?;
    let mut entries = Vec::new();
    for setting in &definition.settings {
        entries.push(setting_of(setting)?);
    }
    check_codec(&entries)?;
    let codec = entries.iter().find(|entry| entry.key.text == "codec");
    let is_json = codec.is_none_or(|entry| {
        matches!(&entry.value.value, Value::Scalar { text, .. } if text.starts_with("json"))
    });
    entries.extend(pipeline(bench.name.span, is_json));
    Ok(Node {
        span: definition.name.span,
        value: Value::Map(entries),
    })
}

fn check_deployment(program: &Program) -> Result<(), Mistake> {
    let start = Span { start: 0, end: 0 };
    let incomplete = |span, message: &str| Mistake {
        code: code::NOTHING_MEASURED,
        span,
        message: message.to_owned(),
        help: "write `deploy flow NAME;` after the definition of a flow".to_owned(),
    };
    let (flow, deployed) = match (program.flows.as_slice(), program.deployed.as_slice()) {
        (_, []) => return Err(incomplete(start, "the program deploys no flow")),
        ([], [deployed, ..]) => {
            return Err(incomplete(deployed.span, "the program defines no flow"));
        }
        ([flow], [deployed]) => (flow, deployed),
        ([_, second, ..], _) | (_, [_, second, ..]) => {
            return Err(Mistake::unsupported(second.span, "a second flow"));
        }
    };
    if flow.text != deployed.text {
        let message = format!("there is no flow `{}`", deployed.text);
        return Err(incomplete(deployed.span, &message));
    }
    Ok(())
}

/// The one connector of kind `bench`; others are refused.
fn bench_connector(program: &Program) -> Result<&Instance, Mistake> {
    let mut bench = None;
    for instance in &program.instances {
        match instance.kind.as_str() {
            "pipeline" => check_pipeline(program, instance)?,
            "connector" => {
                let kind = &definition(program, instance)?.kind;
                if kind.text != "bench" {
                    let what = format!("connector `{}`", kind.text);
                    return Err(Mistake::unsupported(kind.span, &what));
                }
                if bench.replace(instance).is_some() {
                    let what = "a second connector `bench`";
                    return Err(Mistake::unsupported(instance.name.span, what));
                }
            }
            other => {
                let what = format!("`create {other}`");
                return Err(Mistake::unsupported(instance.name.span, &what));
            }
        }
    }
    let span = program
        .flows
        .first()
        .map_or(Span { start: 0, end: 0 }, |flow| flow.span);
    bench.ok_or_else(|| unknown(span, "the flow creates no connector `bench`".to_owned()))
}

fn unknown(span: Span, message: String) -> Mistake {
    Mistake {
        code: code::BAD_VALUE,
        span,
        message,
        help: "`define` it, `create` it in the flow, and `connect` it".to_owned(),
    }
}

fn definition<'p>(program: &'p Program, instance: &Instance) -> Result<&'p Connector, Mistake> {
    let mut all = program.connectors.iter();
    let definition = all.find(|connector| connector.name.text == instance.of.text);
    definition.ok_or_else(|| not_defined("connector", &instance.of))
}

fn check_pipeline(program: &Program, instance: &Instance) -> Result<(), Mistake> {
    // Tremor's own definition of a pipeline that passes events on.
    let known = ["pipelines::passthrough", "tremor::pipelines::passthrough"];
    let is_defined = program
        .pipelines
        .iter()
        .any(|name| name.text == instance.of.text);
    match is_defined || known.contains(&instance.of.text.as_str()) {
        true => Ok(()),
        false => Err(not_defined("pipeline", &instance.of)),
    }
}

fn not_defined(kind: &str, name: &Name) -> Mistake {
    unknown(
        name.span,
        format!("there is no definition of {kind} `{}`", name.text),
    )
}

/// Checks that events go from the bench through pipelines back to it, and nowhere else.
fn check_path(program: &Program, bench: &Instance) -> Result<(), Mistake> {
    for end in program.connections.iter().flat_map(|(from, to)| [from, to]) {
        let is_it = |instance: &&Instance| {
            (&instance.kind, &instance.name.text) == (&end.kind, &end.name.text)
        };
        if !program.instances.iter().any(|instance| is_it(&instance)) {
            let message = format!("there is no {} `{}`", end.kind, end.name.text);
            return Err(unknown(end.name.span, message));
        }
    }
    let mut at = End {
        kind: bench.kind.clone(),
        name: bench.name.clone(),
    };
    for _ in 0..PIPELINES_MAX {
        let is_from = |from: &End| (&from.kind, &from.name.text) == (&at.kind, &at.name.text);
        let mut next = program.connections.iter().filter(|(from, _)| is_from(from));
        let Some((_, to)) = next.next() else {
            let message = format!(
                "events end in {} `{}` and are not measured",
                at.kind, at.name.text
            );
            return Err(unknown(at.name.span, message));
        };
        if let Some((second, _)) = next.next() {
            let what = format!("a second connection from {} `{}`", at.kind, at.name.text);
            return Err(Mistake::unsupported(second.name.span, &what));
        }
        if (&to.kind, &to.name.text) == (&bench.kind, &bench.name.text) {
            return Ok(());
        }
        at = to.clone();
    }
    let message = "events never come back to the connector `bench`".to_owned();
    Err(unknown(at.name.span, message))
}

/// A setting of the connector as a key of a bench file.
fn setting_of(setting: &Entry) -> Result<Entry, Mistake> {
    let mut setting = setting.clone();
    if let ("codec", Value::Map(entries)) = (setting.key.text.as_str(), &setting.value.value) {
        let [name] = entries.as_slice() else {
            let what = "the configuration of a codec";
            return Err(Mistake::unsupported(setting.key.span, what));
        };
        if name.key.text != "name" {
            return Err(Mistake::unsupported(
                name.key.span,
                &format!("`{}`", name.key.text),
            ));
        }
        setting.value = name.value.clone();
    }
    Ok(setting)
}

/// Refuses bytes without line ends, because the relay forwards lines. Chunks may have line ends.
fn check_codec(settings: &[Entry]) -> Result<(), Mistake> {
    let setting = |name: &str| {
        let entry = settings.iter().find(|entry| entry.key.text == name);
        entry.map(|entry| &entry.value)
    };
    let config = setting("config").and_then(|config| config.entry("chunk_size"));
    let is_chunked = config.or_else(|| setting("chunk_size")).is_some();
    if let Some(codec) = setting("codec")
        && let Value::Scalar { text, .. } = &codec.value
        && is_byte_codec(text)
        && !is_chunked
    {
        let what = format!("codec `{text}`");
        return Err(Mistake::unsupported(codec.span, &what));
    }
    Ok(())
}

/// The keys of the relay in place of the pipelines.
fn pipeline(span: Span, is_json: bool) -> Vec<Entry> {
    let scalar = |text: &str| Node {
        span,
        value: Value::Scalar {
            text: text.to_owned(),
            quoted: true,
        },
    };
    let entry = |key: &str, value| Entry {
        key: Key {
            text: key.to_owned(),
            span,
        },
        value,
    };
    let map = |entries| Node {
        span,
        value: Value::Map(entries),
    };
    let (into, out) = (format!("tcp://{IN}"), format!("tcp://{OUT}"));
    let mut words = vec!["{self}", "relay", "--in", &into, "--out", &out];
    if is_json {
        words.extend(["--events", "json", "--parse"]);
    }
    let command = Node {
        span,
        value: Value::List(words.into_iter().map(scalar).collect()),
    };
    let ready = map(vec![entry("tcp", scalar(IN))]);
    vec![
        entry(
            "target",
            map(vec![entry("command", command), entry("ready", ready)]),
        ),
        entry("in", scalar(&into)),
        entry("out", scalar(&out)),
    ]
}
