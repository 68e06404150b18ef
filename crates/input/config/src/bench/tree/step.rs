//! Programs before and after a bench.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stillwell_text::{Keys, MapReader, Node, Reader, Value, code};
use stillwell_units::Nanos;

use super::texts;
use crate::files::resolve;

/// A program before or after a bench.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BenchStep {
    /// Its working directory.
    pub folder: PathBuf,
    /// The program, and its arguments.
    pub command: Vec<String>,
    /// Variables of its environment, besides those of the bench.
    pub environment: BTreeMap<String, String>,
    /// All of these are true before the next step.
    pub awaits: Vec<Await>,
    /// Pause before they are looked at first.
    pub await_min: Nanos,
    /// Time limit for the conditions and for the end of a program behind a bench, if given.
    pub await_max: Option<Nanos>,
}

/// Something that is waited for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Await {
    /// Something listens at this `host:port`.
    PortOpen(String),
    /// A length of time.
    Passed(Nanos),
    /// This URL is answered with a status from 200 to 299.
    HttpOk(String),
    /// There is a file or folder.
    FileExists(PathBuf),
    /// The program has ended with this code.
    Status(u8),
}

/// A list of programs, or one.
pub(super) fn read_steps(reader: &Reader, folder: &Path, node: &Node) -> Vec<BenchStep> {
    let single = std::slice::from_ref(node);
    let items = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => single,
    };
    let steps = items.iter();
    steps
        .filter_map(|item| read_step(reader, folder, item))
        .collect()
}

fn read_step(reader: &Reader, folder: &Path, node: &Node) -> Option<BenchStep> {
    let names = [
        "dir",
        "cmd",
        "args",
        "env",
        "await",
        "min-await-secs",
        "max-await-secs",
    ];
    let map = reader.map(node, &Keys::new("step", &names))?;
    let within = map.take("dir").and_then(|node| reader.text(node));
    let within = within.map_or_else(|| folder.to_path_buf(), |text| resolve(folder, text));
    let program = map.required("cmd").and_then(|node| reader.text(node));
    let arguments = map.take("args");
    let environment = map.take("env");
    let awaits = map.take("await");
    let step = BenchStep {
        command: program
            .map(str::to_owned)
            .into_iter()
            .chain(arguments.map_or_else(Vec::new, |node| texts(reader, node)))
            .collect(),
        environment: environment
            .map(|node| reader.text_map(node).into_iter().collect())
            .unwrap_or_default(),
        awaits: awaits.map_or_else(Vec::new, |node| read_awaits(reader, &within, node)),
        await_min: seconds(reader, &map, "min-await-secs").unwrap_or(Nanos::ZERO),
        await_max: seconds(reader, &map, "max-await-secs"),
        folder: within,
    };
    program.map(|_| step)
}

fn seconds(reader: &Reader, map: &MapReader<'_, '_>, key: &'static str) -> Option<Nanos> {
    let node = map.take(key)?;
    Some(Nanos::from_secs(reader.whole(node, 0, 86_400)?))
}

fn read_awaits(reader: &Reader, folder: &Path, node: &Node) -> Vec<Await> {
    let names = [
        "port-open",
        "wait-for-ms",
        "http-ok",
        "file-exists",
        "status",
    ];
    let Some(map) = reader.map(node, &Keys::new("await", &names)) else {
        return Vec::new();
    };
    let mut awaits = Vec::new();
    for name in names {
        let Some(node) = map.take(name) else { continue };
        for text in texts(reader, node) {
            match read_await(name, &text, folder) {
                Ok(item) => awaits.push(item),
                Err(wanted) => {
                    let message = format!("`{text}` is not a value of `{name}`");
                    let error = reader.error(code::BAD_VALUE, node.span, message);
                    reader.report(error.label(wanted));
                }
            }
        }
    }
    awaits
}

/// One condition; else what belongs there.
fn read_await(name: &str, text: &str, folder: &Path) -> Result<Await, &'static str> {
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    Ok(match name {
        "port-open" if is_port(text) => Await::PortOpen(format!("127.0.0.1:{text}")),
        "port-open" => {
            stillwell_text::check_address(text)?;
            Await::PortOpen(text.to_owned())
        }
        "wait-for-ms" => {
            let milliseconds = text.parse().map_err(|_| "a number of milliseconds")?;
            Await::Passed(Nanos::from_millis(milliseconds))
        }
        "http-ok" => {
            stillwell_text::check_url(text)?;
            Await::HttpOk(text.to_owned())
        }
        "file-exists" => Await::FileExists(resolve(folder, text)),
        _ => Await::Status(text.parse().map_err(|_| "an exit code from 0 to 255")?),
    })
}
