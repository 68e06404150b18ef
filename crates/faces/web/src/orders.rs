//! Forms become command lines of this program. Every value is one argument behind its option, so none can be another
//! option, and no shell reads it.

use crate::fields::{Fields, LINE_MAX};

/// Kind of a form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OrderKind {
    Load,
    Ab,
    Experiment,
    /// A new experiment file.
    Init,
}

impl OrderKind {
    pub(crate) const ALL: [Self; 4] = [Self::Load, Self::Ab, Self::Experiment, Self::Init];

    /// Returns the command, which is also the name of the form in its address.
    pub(crate) const fn command(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Ab => "ab",
            Self::Experiment => "run",
            Self::Init => "init",
        }
    }

    pub(crate) fn of_command(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.command() == name)
    }

    /// Returns the folder below `.stillwell` of its results, and the option that names it; `None` if a field names the
    /// folder.
    pub(crate) const fn results(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Load => Some(("loads", "--capture")),
            Self::Ab | Self::Experiment => Some(("results", "--results")),
            Self::Init => None,
        }
    }

    /// Returns its fields in the order of the form.
    pub(crate) const fn fields(self) -> &'static [OrderField] {
        match self {
            Self::Load => &LOAD,
            Self::Ab => &AB,
            Self::Experiment => &EXPERIMENT,
            Self::Init => &INIT,
        }
    }
}

/// A field of a form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderField {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) preset: &'static str,
    pub(crate) input: FieldInput,
    /// The option; empty for an argument without one.
    option: &'static str,
}

/// Input of a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FieldInput {
    /// A URL, which is required.
    Url,
    /// One line; empty for the default.
    Line,
    /// One value on each line, each with the option.
    Lines,
    /// Text of a body.
    Body,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// An option without a value.
    Switch,
    /// An experiment file below a root.
    File,
    /// A folder below the first root, which may be new.
    Folder,
}

const fn field(
    name: &'static str,
    option: &'static str,
    input: FieldInput,
    preset: &'static str,
    [label, hint]: [&'static str; 2],
) -> OrderField {
    OrderField {
        name,
        label,
        hint,
        preset,
        input,
        option,
    }
}

const METHODS: &[&str] = &["GET", "POST", "PUT", "HEAD", "DELETE", "PATCH", "OPTIONS"];

#[rustfmt::skip]
const LOAD: [OrderField; 9] = [
    field("url", "", FieldInput::Url, "", ["URL", "such as http://127.0.0.1:8080/"]),
    field("rate", "--rate", FieldInput::Line, "1k/s", ["Rate", "such as 500/s, 100/s..5k/s:30s, or max: as fast as responses arrive"]),
    field("duration", "--duration", FieldInput::Line, "10s", ["Duration", "such as 30s or 5m"]),
    field("warmup", "--warmup", FieldInput::Line, "", ["Warm-up", "part of the duration that is not measured; none if empty"]),
    field("connections", "--connections", FieldInput::Line, "", ["Connections", "the default if empty"]),
    field("method", "--method", FieldInput::Choice(METHODS), "GET", ["Method", ""]),
    field("threshold", "--threshold", FieldInput::Lines, "", ["Bounds", "one on each line, such as p99<20ms or errors<0.1%"]),
    field("header", "--header", FieldInput::Lines, "", ["Headers", "one on each line, as name: value"]),
    field("body", "--body", FieldInput::Body, "", ["Body", "text, or payload:json:4KiB"]),
];

#[rustfmt::skip]
const AB: [OrderField; 8] = [
    field("baseline", "", FieldInput::Url, "", ["URL of A, the baseline", "such as http://127.0.0.1:8080/"]),
    field("comparison", "", FieldInput::Url, "", ["URL of B", "such as http://127.0.0.1:8081/"]),
    field("rate", "--rate", FieldInput::Line, "1k/s", ["Rate", "such as 500/s or 5k/s"]),
    field("duration", "--duration", FieldInput::Line, "1s", ["Duration of each run", "such as 1s"]),
    field("max_pairs", "--max-pairs", FieldInput::Line, "10", ["Maximum number of pairs", "more pairs show smaller changes"]),
    field("goal", "--goal", FieldInput::Line, "", ["Goal", "such as latency_p99:10%; latency_p50 if empty"]),
    field("method", "--method", FieldInput::Choice(METHODS), "GET", ["Method", ""]),
    field("header", "--header", FieldInput::Lines, "", ["Headers", "one on each line, as name: value"]),
];

#[rustfmt::skip]
const EXPERIMENT: [OrderField; 4] = [
    field("file", "", FieldInput::File, "", ["Experiment", ""]),
    field("max_pairs", "--max-pairs", FieldInput::Line, "", ["Maximum number of pairs", "the experiment's if empty"]),
    field("measure", "--measure", FieldInput::Line, "", ["Measurement of each run", "such as 10s; the experiment's if empty"]),
    field("quick", "--quick", FieldInput::Switch, "", ["Quick: finish within about two minutes", ""]),
];

/// The kind that `init` finds by itself.
const FOUND: &str = "detect it";
const PROGRAMS: &[&str] = &[FOUND, "http", "tcp", "udp", "files", "otlp", "kafka"];

#[rustfmt::skip]
const INIT: [OrderField; 7] = [
    field("folder", "", FieldInput::Folder, "", ["Folder", "a new one for the file, such as shop or experiments/shop"]),
    field("command", "--command", FieldInput::Line, "", ["Command", "such as ./server --port 8080; it is started once to find its port"]),
    field("url", "--url", FieldInput::Lines, "", ["Or two URLs", "of running services, the baseline first"]),
    field("kind", "--kind", FieldInput::Choice(PROGRAMS), FOUND, ["Kind of program", "what it reads"]),
    field("comparison", "--comparison", FieldInput::Line, "", ["Comparison", "such as bin:./new-server or args:--fast; empty: no change"]),
    field("output", "--output", FieldInput::Line, "", ["Output", "of a pipeline, such as tcp:127.0.0.1:9200; none if empty"]),
    field("rate", "--rate", FieldInput::Line, "", ["Rate", "such as 1k/s; a probe finds it if empty"]),
];

/// Returns a message of the command line at the field with its option, such as `… for '--rate <RATE>': the reason`.
pub(crate) fn located(kind: OrderKind, message: String) -> FieldError {
    let field = kind.fields().iter().find(|field| {
        let option = format!("'{} ", field.option);
        !field.option.is_empty() && message.contains(&option)
    });
    match (field, message.split_once(">': ")) {
        (Some(field), Some((_, reason))) => FieldError {
            field: field.name,
            message: reason.to_owned(),
        },
        _ => FieldError { field: "", message },
    }
}

/// A value that is not accepted, and its field.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FieldError {
    pub(crate) field: &'static str,
    pub(crate) message: String,
}

/// Returns the words of the command after the name of the program. `results` is the folder of the results and `file` the
/// path of the experiment, both below the working folder.
pub(crate) fn words(
    kind: OrderKind,
    fields: &Fields,
    results: &str,
    file: Option<&str>,
) -> Result<Vec<String>, FieldError> {
    let mut words = vec![kind.command().to_owned()];
    words.extend(
        kind.results()
            .map(|(_, option)| format!("{option}={results}")),
    );
    let mut arguments = Vec::new();
    if kind == OrderKind::Init && fields.line("command").is_empty() == fields.line("url").is_empty()
    {
        return Err(FieldError {
            field: "command",
            message: "give a command, or two URLs".to_owned(),
        });
    }
    for field in kind.fields() {
        let value = match field.input {
            // Browsers send lines with CR LF.
            FieldInput::Body => fields.text(field.name).replace("\r\n", "\n"),
            _ => fields.line(field.name).to_owned(),
        };
        let added = add(field, &value, file, &mut words, &mut arguments);
        added.map_err(|message| FieldError {
            field: field.name,
            message,
        })?;
    }
    // Arguments follow `--`, so none of them is an option.
    words.push("--".to_owned());
    words.extend(arguments);
    Ok(words)
}

/// Adds the words of one field.
fn add(
    field: &OrderField,
    value: &str,
    file: Option<&str>,
    words: &mut Vec<String>,
    arguments: &mut Vec<String>,
) -> Result<(), String> {
    let option = field.option;
    match field.input {
        FieldInput::Url => arguments.push(url(value)?),
        FieldInput::File => {
            let file = file.ok_or("choose an experiment")?;
            arguments.push(format!("./{file}"));
        }
        FieldInput::Folder if value.is_empty() => return Err("name a folder".to_owned()),
        FieldInput::Folder => arguments.push(format!("./{}", line(value)?)),
        FieldInput::Choice(choices) => {
            if !value.is_empty() && !choices.contains(&value) {
                return Err("choose one of the values".to_owned());
            }
            if !value.is_empty() && value != field.preset {
                words.push(format!("{option}={value}"));
            }
        }
        FieldInput::Switch => {
            if !value.is_empty() {
                words.push(option.to_owned());
            }
        }
        FieldInput::Line if value.is_empty() => {}
        FieldInput::Line => words.push(format!("{option}={}", line(value)?)),
        FieldInput::Lines => {
            for value in value.lines().map(str::trim).filter(|line| !line.is_empty()) {
                words.push(format!("{option}={}", line(value)?));
            }
        }
        FieldInput::Body => {
            let value = body(value)?;
            words.extend(value.map(|value| format!("{option}={value}")));
        }
    }
    Ok(())
}

/// Returns a body: the text as it was entered, or the name of a payload. `None` if there is no text.
fn body(text: &str) -> Result<Option<&str>, String> {
    let trimmed = text.trim();
    if trimmed.starts_with('@') {
        return Err("a file (@FILE) cannot be sent from here: enter the text itself".to_owned());
    }
    if text.contains('\0') {
        return Err("the text has a zero byte".to_owned());
    }
    let body = match trimmed.starts_with("payload:") {
        true => trimmed,
        false => text,
    };
    Ok((!trimmed.is_empty()).then_some(body))
}

fn line(value: &str) -> Result<&str, String> {
    if value.len() > LINE_MAX {
        return Err(format!("the value has more than {LINE_MAX} bytes"));
    }
    if value.chars().any(char::is_control) {
        return Err("the value has a control character".to_owned());
    }
    Ok(value)
}

fn url(value: &str) -> Result<String, String> {
    let value = line(value)?;
    let is_url = value.starts_with("http://") || value.starts_with("https://");
    match is_url && !value.contains(char::is_whitespace) {
        true => Ok(value.to_owned()),
        false => Err("write a URL such as http://127.0.0.1:8080/".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn load(text: &str) -> Result<Vec<String>, FieldError> {
        words(
            OrderKind::Load,
            &Fields::parse(text.as_bytes()),
            "out",
            None,
        )
    }

    #[test]
    fn fields_become_options_with_their_values() {
        let words = load(
            "url=http://a/&rate=500/s&duration=2s&method=POST&header=a:+b%0D%0Ac:+d&body=%7B%7D&warmup=",
        );
        let expected = [
            "load",
            "--capture=out",
            "--rate=500/s",
            "--duration=2s",
            "--method=POST",
            "--header=a: b",
            "--header=c: d",
            "--body={}",
            "--",
            "http://a/",
        ];
        assert_eq!(words.unwrap(), expected);
        let fields = Fields::parse(b"quick=on&max_pairs=4");
        let words = words_of(
            OrderKind::Experiment,
            &fields,
            Some("suite/experiment.yaml"),
        );
        let expected = [
            "run",
            "--results=out",
            "--max-pairs=4",
            "--quick",
            "--",
            "./suite/experiment.yaml",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_body_is_sent_as_it_was_entered() {
        for (typed, sent) in [
            ("+a%0D%0Ab%0D%0A", Some(" a\nb\n")),
            ("a%0Db", Some("a\rb")),
            ("%0D%0Apayload:json:4KiB%0D%0A", Some("payload:json:4KiB")),
            ("+%0D%0A", None),
            ("", None),
        ] {
            let words = load(&format!("url=http://a/&body={typed}")).unwrap();
            let body = words.iter().find_map(|word| word.strip_prefix("--body="));
            assert_eq!(body, sent, "{typed}");
        }
    }

    #[test]
    fn a_new_experiment_needs_a_folder_and_a_program() {
        let init = |text: &str| words(OrderKind::Init, &Fields::parse(text.as_bytes()), "x", None);
        let words = init("folder=a/b&command=./server+--port+1&kind=http&url=&rate=");
        let expected = [
            "init",
            "--command=./server --port 1",
            "--kind=http",
            "--",
            "./a/b",
        ];
        assert_eq!(words.unwrap(), expected);
        let words = init("folder=a&url=http://a/%0D%0Ahttp://b/&kind=detect+it");
        let expected = ["init", "--url=http://a/", "--url=http://b/", "--", "./a"];
        assert_eq!(words.unwrap(), expected);
        for (text, field) in [
            ("folder=&command=x", "folder"),
            ("folder=a", "command"),
            ("folder=a&command=x&url=http://a/", "command"),
            ("folder=a&command=x&kind=--force", "kind"),
        ] {
            assert_eq!(init(text).unwrap_err().field, field, "{text}");
        }
    }

    fn words_of(kind: OrderKind, fields: &Fields, file: Option<&str>) -> Vec<String> {
        words(kind, fields, "out", file).unwrap()
    }

    #[test]
    fn values_that_could_be_something_else_are_refused() {
        for (text, field) in [
            ("", "url"),
            ("url=--capture", "url"),
            ("url=3*http://a/", "url"),
            ("url=http://a/+b", "url"),
            ("url=http://a/&body=@/etc/passwd", "body"),
            ("url=http://a/&body=%0D%0A@/etc/passwd", "body"),
            ("url=http://a/&rate=1%00", "rate"),
            ("url=http://a/&method=GET+/", "method"),
            ("url=http://a/&header=a%1b", "header"),
        ] {
            assert_eq!(load(text).unwrap_err().field, field, "{text}");
        }
        let long = format!("url=http://a/{}", "a".repeat(LINE_MAX));
        assert_eq!(load(&long).unwrap_err().field, "url");
        assert!(words(OrderKind::Experiment, &Fields::default(), "out", None).is_err());
    }

    #[test]
    fn a_message_of_the_command_line_belongs_to_its_field() {
        let message = "invalid value 'x' for '--rate <RATE>': `x` is not a rate";
        let error = located(OrderKind::Load, message.to_owned());
        assert_eq!(
            (error.field, error.message.as_str()),
            ("rate", "`x` is not a rate")
        );
        let error = located(OrderKind::Load, "something else".to_owned());
        assert_eq!(
            (error.field, error.message.as_str()),
            ("", "something else")
        );
    }

    proptest! {
        #[test]
        fn for_all_values_the_options_are_those_of_the_form(rate in ".{0,20}", body in ".{0,20}", url in ".{0,20}") {
            let mut text = form_urlencoded::Serializer::new(String::new());
            text.append_pair("url", &format!("http://{url}")).append_pair("rate", &rate).append_pair("body", &body);
            if let Ok(words) = load(&text.finish()) {
                let split = words.iter().position(|word| word == "--").unwrap();
                for word in &words[1..split] {
                    let known = ["--capture=", "--rate=", "--body="];
                    prop_assert!(known.iter().any(|option| word.starts_with(option)), "{}", word);
                }
                prop_assert!(words[split + 1].starts_with("http://"));
                prop_assert_eq!(words.len(), split + 2);
            }
        }
    }
}
