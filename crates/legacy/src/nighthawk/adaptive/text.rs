//! The text form of protocol buffers, for the messages of a session.
//!
//! ```text
//! measuring_period { seconds: 2 }
//! metric_thresholds {
//!   metric_spec { metric_name: "success-rate" }
//!   threshold_spec {
//!     scoring_function {
//!       name: "nighthawk.binary_scoring"
//!       typed_config { [type.googleapis.com/…Config] { lower_threshold { value: 0.9 } } }
//!     }
//!   }
//! }
//! ```
//!
//! becomes the JSON form: durations are texts, wrappers are their values, `Any` has
//! its type under `@type`, fields that may stand several times are lists.

use serde_json::{Map, Number, Value};
use stillwell_units::Nanos;

use crate::nighthawk::fields::MessageError;
use crate::nighthawk::time::duration_text;

/// Fields that may stand several times.
const REPEATED: [&str; 12] = [
    "metrics_plugin_configs",
    "metric_thresholds",
    "informational_metric_specs",
    "request_headers",
    "endpoints",
    "labels",
    "stats_sinks",
    "user_defined_plugin_configs",
    "termination_predicates",
    "failure_predicates",
    "options",
    "header",
];

/// Of these, maps: entries with a key and a value.
const MAPS: [&str; 2] = ["termination_predicates", "failure_predicates"];

/// Durations.
const DURATIONS: [&str; 8] = [
    "measuring_period",
    "convergence_deadline",
    "testing_stage_duration",
    "benchmark_cooldown_duration",
    "duration",
    "timeout",
    "jitter_uniform",
    "stats_flush_interval_duration",
];

/// Messages with one field, `value`, that the JSON form has as messages, too.
const ENUMERATIONS: [&str; 8] = [
    "address_family",
    "verbosity",
    "output_format",
    "sequencer_idle_strategy",
    "experimental_h1_connection_reuse_strategy",
    "protocol",
    "tunnel_protocol",
    "header",
];

/// Deepest message within messages.
const DEPTH_MAX: u32 = 40;

/// The message that `text` says, in its JSON form.
pub(super) fn read(text: &str) -> Result<Value, MessageError> {
    let mut reader = Reader {
        rest: text,
        whole: text.len(),
        text,
    };
    let value = reader.message(None, 0)?;
    reader.skip();
    if reader.rest.is_empty() {
        Ok(value)
    } else {
        Err(reader.wrong("a closing brace that nothing opened"))
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    whole: usize,
}

impl Reader<'_> {
    fn wrong(&self, problem: &str) -> MessageError {
        let read = &self.text[..self.whole - self.rest.len()];
        let line = read.matches('\n').count() + 1;
        MessageError::Json {
            problem: format!("line {line} of the text proto: {problem}"),
        }
    }

    /// White space, comments and separators.
    fn skip(&mut self) {
        loop {
            self.rest = self
                .rest
                .trim_start_matches([' ', '\t', '\r', '\n', ',', ';']);
            match self.rest.strip_prefix('#') {
                Some(comment) => {
                    self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
                }
                None => return,
            }
        }
    }

    fn take(&mut self, mark: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Fields until `end`, or until the text ends.
    fn message(&mut self, end: Option<char>, depth: u32) -> Result<Value, MessageError> {
        if depth > DEPTH_MAX {
            return Err(self.wrong("messages lie too deep in each other"));
        }
        let mut fields = Map::new();
        loop {
            self.skip();
            if let Some(end) = end {
                if self.take(end) {
                    return Ok(Value::Object(fields));
                }
                if self.rest.is_empty() {
                    return Err(self.wrong("a message is not closed"));
                }
            } else if self.rest.is_empty() || self.rest.starts_with(['}', '>']) {
                return Ok(Value::Object(fields));
            }
            let name = self.name()?;
            let has_colon = self.take(':');
            self.field(&name, has_colon, depth, &mut fields)?;
        }
    }

    fn field(
        &mut self,
        name: &str,
        has_colon: bool,
        depth: u32,
        fields: &mut Map<String, Value>,
    ) -> Result<(), MessageError> {
        if has_colon && self.take('[') {
            while !self.take(']') {
                if self.rest.is_empty() {
                    return Err(self.wrong("a list is not closed"));
                }
                let value = self.value(name, true, depth)?;
                put(fields, name, value);
            }
            return Ok(());
        }
        let value = self.value(name, has_colon, depth)?;
        if let Some(kind) = name.strip_prefix("[") {
            // An `Any`: its fields stand beside its type.
            let kind = kind.trim_end_matches(']');
            if let Value::Object(own) = value {
                fields.extend(own);
            }
            fields.insert("@type".to_owned(), kind.into());
        } else {
            put(fields, name, value);
        }
        Ok(())
    }

    fn name(&mut self) -> Result<String, MessageError> {
        let end = if self.rest.starts_with('[') {
            self.rest.find(']').map(|end| end + 1)
        } else {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            self.rest.find(|c| !is_part(c)).or(Some(self.rest.len()))
        };
        match end {
            Some(end) if end > 0 => {
                let (name, rest) = self.rest.split_at(end);
                self.rest = rest;
                Ok(name.to_owned())
            }
            _ => Err(self.wrong("a field's name is missing")),
        }
    }

    fn value(&mut self, name: &str, has_colon: bool, depth: u32) -> Result<Value, MessageError> {
        for (open, close) in [('{', '}'), ('<', '>')] {
            if self.take(open) {
                let message = self.message(Some(close), depth + 1)?;
                return Ok(in_json(name, message));
            }
        }
        if !has_colon {
            return Err(self.wrong("a colon or a brace is missing"));
        }
        self.skip();
        if self.rest.starts_with(['"', '\'']) {
            let mut text = String::new();
            // Texts beside each other are one.
            while self.rest.starts_with(['"', '\'']) {
                text.push_str(&self.quoted()?);
                self.skip();
            }
            return Ok(Value::String(text));
        }
        let is_end = |c: char| c.is_whitespace() || ",;}>]#".contains(c);
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(self.wrong("a value is missing"));
        }
        self.rest = rest;
        Ok(scalar(word))
    }

    fn quoted(&mut self) -> Result<String, MessageError> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices();
        let Some((_, mark)) = characters.next() else {
            return Err(self.wrong("a text is missing"));
        };
        while let Some((place, c)) = characters.next() {
            match c {
                c if c == mark => {
                    self.rest = &self.rest[place + c.len_utf8()..];
                    return Ok(text);
                }
                '\\' => match characters.next().map(|(_, own)| own) {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some(own @ ('\\' | '"' | '\'')) => text.push(own),
                    _ => return Err(self.wrong("a text escapes what is not known here")),
                },
                '\n' => break,
                c => text.push(c),
            }
        }
        Err(self.wrong("a text is not closed"))
    }
}

fn scalar(word: &str) -> Value {
    match word {
        "true" | "True" => return Value::Bool(true),
        "false" | "False" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(whole) = word.parse::<u64>() {
        return whole.into();
    }
    let float = word.trim_end_matches(['f', 'F']).parse().ok();
    let number = float.and_then(Number::from_f64);
    number.map_or_else(|| Value::String(word.to_owned()), Value::Number)
}

/// The JSON form of the message in the field `name`.
fn in_json(name: &str, message: Value) -> Value {
    let Value::Object(fields) = &message else {
        return message;
    };
    if DURATIONS.contains(&name) {
        let part = |key: &str| fields.get(key).and_then(Value::as_u64).unwrap_or(0);
        let nanos = part("seconds").saturating_mul(1_000_000_000);
        return duration_text(Nanos::new(nanos.saturating_add(part("nanos")))).into();
    }
    if ENUMERATIONS.contains(&name) {
        return message;
    }
    // What wraps one value is that value.
    match fields.get("value") {
        Some(value) if fields.len() == 1 => value.clone(),
        _ => message,
    }
}

fn put(fields: &mut Map<String, Value>, name: &str, value: Value) {
    if MAPS.contains(&name) {
        let entry = (value.get("key").and_then(Value::as_str), value.get("value"));
        if let (Some(key), Some(own)) = entry {
            let map = fields
                .entry(name)
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = map {
                map.insert(key.to_owned(), own.clone());
            }
        }
    } else if REPEATED.contains(&name) && !(name == "header" && value.is_object()) {
        let list = fields
            .entry(name)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(value);
        }
    } else {
        fields.insert(name.to_owned(), value);
    }
}
