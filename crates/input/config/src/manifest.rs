//! Manifests of Kubernetes: one object, as YAML or JSON.

use serde_json::{Map, Number, Value as Json, json};
use stillwell_plan::generator::KubernetesKind;
use stillwell_text::{Node, Reader, Source, Value, code};

/// The longest name of an object, less what is put behind it where there are several.
const NAME_BYTES_MAX: usize = 253 - "-00000".len();

/// The longest name of a namespace.
const NAMESPACE_BYTES_MAX: usize = 63;

/// Fields of a manifest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Manifest {
    /// Its kind.
    pub kind: KubernetesKind,
    /// Its name, if given.
    pub name: Option<String>,
    /// Its namespace, if given.
    pub namespace: Option<String>,
    /// All of it: a map.
    pub object: Json,
}

/// The manifest at `node`: a map, or a text that is YAML by itself. It must be of `kind`
/// if that is known already, else it must say what it is.
#[must_use]
pub fn read_manifest(
    reader: &Reader,
    node: &Node,
    kind: Option<KubernetesKind>,
) -> Option<Manifest> {
    let Value::Scalar { text, .. } = &node.value else {
        return read_object(reader, node, kind);
    };
    // Its mistakes have its line numbers: their position in the file depends on how the text was
    // folded.
    let file = reader.source().path().display();
    let line = reader.source().position(node.span.start).line;
    let name = format!("{file} (manifest at line {line})");
    let inner = Reader::new(Source::new(name, text.clone()));
    let manifest = inner
        .parse()
        .and_then(|root| read_object(&inner, &root, kind));
    for diagnostic in inner.finish().iter() {
        reader.report(diagnostic.clone());
    }
    manifest
}

fn read_object(reader: &Reader, node: &Node, kind: Option<KubernetesKind>) -> Option<Manifest> {
    if node.entries().is_none() {
        reader.wrong_shape(node, "a manifest, which is a map");
        return None;
    }
    let kind = read_kind(reader, node, kind)?;
    let mut is_good = true;
    let mut refuse = |node: &Node, message: String, label: String| {
        let error = reader.error(code::BAD_VALUE, node.span, message);
        reader.report(error.label(label));
        is_good = false;
    };
    if let Some(version) = node.entry("apiVersion")
        && let Some(text) = reader.text(version)
        && text != kind.api_version()
    {
        let message = format!("`{text}` is not the apiVersion of a {}", kind.name());
        refuse(version, message, format!("write `{}`", kind.api_version()));
    }
    let metadata = node.entry("metadata");
    let part = |key| metadata.and_then(|metadata: &Node| metadata.entry(key));
    let name = part("name").and_then(|node| Some((node, reader.text(node)?)));
    if let Some((node, text)) = name
        && !is_name(text, NAME_BYTES_MAX)
    {
        let message = format!("`{text}` cannot be the name of a {}", kind.word());
        let label = "lowercase letters, digits, `-` and `.`, a letter or digit at both ends";
        refuse(node, message, label.to_owned());
    }
    let namespace = part("namespace").and_then(|node| Some((node, reader.text(node)?)));
    if let Some((node, text)) = namespace {
        if !kind.is_namespaced() {
            let message = format!("a {} belongs to no namespace", kind.word());
            refuse(node, message, "leave it out".to_owned());
        } else if !is_name(text, NAMESPACE_BYTES_MAX) || text.contains('.') {
            let message = format!("`{text}` cannot be a namespace");
            let label = "lowercase letters, digits and `-`";
            refuse(node, message, label.to_owned());
        }
    }
    is_good.then(|| Manifest {
        kind,
        name: name.map(|(_, text)| text.to_owned()),
        namespace: namespace.map(|(_, text)| text.to_owned()),
        object: to_json(node),
    })
}

fn read_kind(
    reader: &Reader,
    node: &Node,
    expected: Option<KubernetesKind>,
) -> Option<KubernetesKind> {
    let words = KubernetesKind::ALL.map(|kind| (kind.name(), kind));
    let Some(kind_node) = node.entry("kind") else {
        if expected.is_none() {
            let error = reader.error(code::MISSING_KEY, node.span, "a manifest needs `kind`");
            let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
            reader.report(error.help(format!("accepted here: {}", names.join(", "))));
        }
        return expected;
    };
    let Some(expected) = expected else {
        return reader.word(kind_node, "kind of object", &words);
    };
    let text = reader.text(kind_node)?;
    if text == expected.name() {
        return Some(expected);
    }
    let message = format!(
        "this manifest is a `{text}` and not a `{}`",
        expected.name()
    );
    let error = reader.error(code::BAD_VALUE, kind_node.span, message);
    let known = words.iter().find(|(name, _)| *name == text);
    reader.report(match known {
        Some((_, kind)) => error.label(format!("it belongs under `{}`", kind.word())),
        None => error.label(format!("write `kind: {}`", expected.name())),
    });
    None
}

/// Returns true if `text` can be a name, which becomes part of a path.
fn is_name(text: &str, bytes_max: usize) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| is_inner(*byte));
    let bytes = text.as_bytes();
    text.len() <= bytes_max
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes
            .iter()
            .all(|byte| is_inner(*byte) || b"-.".contains(byte))
}

/// Returns the value at `node`, as `kubectl` would send it: plain `true` and numbers are booleans
/// and
/// numbers, a plain number after a `0` is octal.
#[must_use]
pub fn to_json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Map(entries) => {
            let pairs = entries
                .iter()
                .map(|entry| (entry.key.text.clone(), to_json(&entry.value)));
            Json::Object(pairs.collect::<Map<_, _>>())
        }
        Value::Scalar { text, quoted: true } => json!(text),
        Value::Scalar { text, .. } => plain(text),
    }
}

fn plain(text: &str) -> Json {
    match text {
        "true" | "True" | "TRUE" => return Json::Bool(true),
        "false" | "False" | "FALSE" => return Json::Bool(false),
        _ => {}
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let is_all = |digits: &str, radix| {
        !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
    };
    let (digits, radix) = if let Some(digits) = digits.strip_prefix("0x") {
        (digits, 16)
    } else if let Some(digits) = digits.strip_prefix("0o") {
        (digits, 8)
    } else if digits.len() > 1 && digits.starts_with('0') && is_all(digits, 8) {
        (digits, 8)
    } else {
        (digits, 10)
    };
    if is_all(digits, radix)
        && let Ok(number) = i64::from_str_radix(digits, radix)
    {
        return json!(sign * number);
    }
    fraction(text).map_or_else(|| json!(text), Json::Number)
}

/// A number with a fraction or an exponent.
fn fraction(text: &str) -> Option<Number> {
    let is_of_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    if !has_digit || !text.bytes().all(is_of_number) {
        return None;
    }
    Number::from_f64(text.parse().ok()?)
}

#[cfg(test)]
mod tests;
