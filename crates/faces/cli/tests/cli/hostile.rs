//! Commands that read a file, with files that were not made for them: each ends by itself, with its
//! exit code and a message, within a limit of memory, and leaves no process.
//!
//! The table is the product of [`READERS`] and [`INPUTS`]. Further tables have servers that get hostile bytes,
//! processes with closed outputs, limits or no rights, and recordings.

#[path = "hostile/attacks.rs"]
mod attacks;
#[path = "hostile/processes.rs"]
mod processes;
#[path = "hostile/recordings.rs"]
mod recordings;
#[path = "hostile/servers.rs"]
mod servers;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use stillwell_testkit::Process;

use crate::suite::share_machine;

const STILLWELL: &str = env!("CARGO_BIN_EXE_stillwell");

/// A process that runs longer than this is killed.
const KILL_AFTER: Duration = Duration::from_secs(60);

/// Limit of the address space of each process, in KiB: the size of the program in a test build, its threads, and
/// what it reads.
const ADDRESS_SPACE: &str = "4000000";

/// Variable that marks processes of one case.
const MARK: &str = "STILLWELL_HOSTILE_CASE";

/// A command that reads one file.
struct Reader {
    name: &'static str,
    /// `FILE` is the file.
    words: &'static str,
    /// Inputs that it takes: without a file that concerns it, it has nothing to do.
    accepted: &'static [&'static str],
}

const fn reader(name: &'static str, words: &'static str) -> Reader {
    Reader {
        name,
        words,
        accepted: &[],
    }
}

const READERS: [Reader; 17] = [
    reader("check", "check FILE"),
    reader("observe", "observe FILE"),
    reader("run", "run FILE"),
    reader("import", "import FILE"),
    reader("transform", "transform --output-format json FILE"),
    reader("compare", "compare FILE"),
    reader("report", "report FILE"),
    Reader {
        name: "lint",
        words: "lint FILE",
        accepted: &["folder", "empty", "nul", "deep", "bomb"],
    },
    reader("requests", "load -d 1s --requests-file FILE"),
    reader("recorded requests", "load -d 1s --har FILE"),
    reader("scenario", "load -d 1s http://127.0.0.1:1/ --scenario FILE"),
    reader(
        "descriptors",
        "load -d 1s http://127.0.0.1:1/ --grpc-method a.B/c --grpc-descriptors FILE",
    ),
    reader("server", "serve --config FILE"),
    reader("authorities", "load -d 1s https://127.0.0.1:1/ --ca FILE"),
    reader(
        "offered requests",
        "service --listen 127.0.0.1:0 --service request-source --requests FILE",
    ),
    reader(
        "client authorities",
        "service --listen 127.0.0.1:0 --tls self-signed --client-ca FILE",
    ),
    reader("token", "service --listen 127.0.0.1:0 --token-file FILE"),
];

const INPUTS: [&str; 14] = [
    "/dev/zero",
    "/dev/full",
    "pipe",
    "folder",
    "missing",
    "socket",
    "random",
    "empty",
    "nul",
    "deep",
    "sparse",
    "bomb",
    "loop",
    "latin",
];

/// Makes all inputs in `folder`. The socket lives as long as what is returned.
fn make_inputs(folder: &Path) -> UnixListener {
    let path = |name: &str| folder.join(name);
    let made = Command::new("mkfifo").arg(path("pipe")).status();
    assert!(made.unwrap().success());
    fs::create_dir(path("folder")).unwrap();
    let mut state = 1_u32;
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    // It begins with a byte that no text begins with.
    let random: Vec<u8> = [0xff].into_iter().chain(random.take(100_000)).collect();
    fs::write(path("random"), random).unwrap();
    fs::write(path("empty"), "").unwrap();
    fs::write(path("nul"), [0; 4]).unwrap();
    fs::write(path("deep"), "[".repeat(200_000)).unwrap();
    File::create(path("sparse"))
        .unwrap()
        .set_len(20 << 30)
        .unwrap();
    let mut bomb = "a: &a [x, x]\n".to_owned();
    for (name, before) in ('b'..='t').zip('a'..) {
        let before = format!("*{before},").repeat(9);
        bomb.push_str(&format!("{name}: &{name} [{before}]\n"));
    }
    fs::write(path("bomb"), bomb).unwrap();
    symlink("loop", path("loop")).unwrap();
    fs::write(path("latin"), b"a: \xff\xfe\n").unwrap();
    UnixListener::bind(path("socket")).unwrap()
}

/// Processes with the mark of a case.
fn orphans(mark: &str) -> Vec<String> {
    let entry = format!("{MARK}={mark}");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let is_marked = |path: &Path| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == entry.as_bytes())
    };
    let marked = processes.filter(|process| is_marked(&process.path()));
    marked
        .map(|process| process.path().display().to_string())
        .collect()
}

/// The failure of the case of `reader` and `input`, if anything.
fn fault(folder: &Path, reader: &Reader, input: &str) -> Option<String> {
    let mark = format!("{}-{}-{input}", std::process::id(), reader.name);
    let words = reader.words.split(' ').map(|word| match word {
        "FILE" => input,
        word => word,
    });
    let mut command = Command::new("sh");
    let limited = format!("ulimit -v {ADDRESS_SPACE}; exec \"$@\"");
    command.args(["-c", &limited, "sh", STILLWELL]).args(words);
    command.current_dir(folder).env(MARK, &mark);
    let ended = Process::start(&mut command).finish(KILL_AFTER);
    let code = if reader.accepted.contains(&input) {
        0
    } else {
        2
    };
    let case = format!("{} with {input}", reader.name);
    if ended.code != code {
        return Some(format!(
            "{case}: exit code {}, {}",
            ended.code, ended.stderr
        ));
    }
    if code != 0 && !ended.stderr.contains("error") {
        return Some(format!("{case}: no error: {}", ended.stderr));
    }
    for word in ["panicked", "out of memory", "SECRET"] {
        if ended.stderr.contains(word) {
            return Some(format!("{case}: {}", ended.stderr));
        }
    }
    let left = orphans(&mark);
    (!left.is_empty()).then(|| format!("{case}: left {left:?}"))
}

#[test]
fn every_reader_of_a_file_refuses_every_file_that_is_not_for_it() {
    let _machine = share_machine();
    let folder = tempfile::tempdir().unwrap();
    let _socket = make_inputs(folder.path());
    let mut faults = Vec::new();
    for reader in &READERS {
        for input in INPUTS {
            faults.extend(fault(folder.path(), reader, input));
        }
    }
    tally("files that are none", READERS.len() * INPUTS.len(), &faults);
}

/// Prints the number of cases of a kind, in the form that `.ci/faults` reads, and fails if one has a fault.
pub(crate) fn tally(kind: &str, tried: usize, faults: &[String]) {
    let held = tried.saturating_sub(faults.len());
    println!("FAULTS | {kind} | {tried} | {held} |");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
