//! A suite for one test: a folder with an experiment around `stillwell relay`, and access
//! to its processes and captures.

use std::any::Any;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use stillwell_capture::{Capture, Manifest};
use stillwell_plan::Phase;
pub(crate) use stillwell_testkit::LONG;
use stillwell_testkit::{Finished, Process, free_port, wait_until};
use tempfile::TempDir;

/// The binary.
pub(crate) const STILLWELL: &str = env!("CARGO_BIN_EXE_stillwell");

/// Permitted time of a phase beyond its deadline, on a busy machine; well below [`LONG`].
pub(crate) const STOP_MAX: Duration = Duration::from_secs(20);

/// An environment variable of the target, which its descendants inherit.
const MARK: &str = "STILLWELL_TEST";

/// Tests share the machine, except one whose runs must be reliable.
static MACHINE: RwLock<()> = RwLock::new(());

/// Shares the machine with other tests, but not with one whose runs must be reliable.
pub(crate) fn share_machine() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// A folder with an experiment. A test has one, because it holds the machine.
pub(crate) struct Suite {
    folder: TempDir,
    mark: String,
    keys: Vec<(&'static str, String)>,
    /// URL schemes of the target's input and of the sink.
    schemes: [&'static str; 2],
    pub(crate) listen: String,
    pub(crate) sink: String,
    _machine: Box<dyn Any>,
}

impl Suite {
    /// Lines at a low rate through a relay, four pairs of short runs.
    pub(crate) fn new() -> Self {
        Self::on(Box::new(share_machine()))
    }

    /// The same, with no other test beside it.
    pub(crate) fn alone() -> Self {
        Self::on(Box::new(
            MACHINE.write().unwrap_or_else(PoisonError::into_inner),
        ))
    }

    /// The same, with datagrams in.
    pub(crate) fn datagrams() -> Self {
        let mut suite = Self::alone();
        suite.schemes = ["udp", "tcp"];
        suite.with("ready", "{delay: 200ms}").relay(&[])
    }

    /// The same, with requests out.
    pub(crate) fn into_http() -> Self {
        let mut suite = Self::alone();
        suite.schemes = ["tcp", "http"];
        suite.relay(&[])
    }

    fn on(machine: Box<dyn Any>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::Builder::new().prefix("sw").tempdir().unwrap();
        let mut suite = Self {
            mark: format!("{}-{number}", std::process::id()),
            listen: format!("127.0.0.1:{}", free_port()),
            sink: format!("127.0.0.1:{}", free_port()),
            folder,
            keys: Vec::new(),
            schemes: ["tcp", "tcp"],
            _machine: machine,
        };
        fs::create_dir(suite.path("state")).unwrap();
        suite.set("variants", "{one: {}, two: {environment: {SIDE: two}}}");
        suite.set(
            "phases",
            "{ready: 10s, warmup: 200ms, measure: 1s, drain: 2s, quiet: 50ms}",
        );
        suite.set("pairs", "4");
        // What is found here is not what these tests are about.
        suite.set("confirm", "false");
        suite.set("goals", "[cpu, memory]");
        let ready = format!("{{tcp: \"{}\"}}", suite.listen);
        suite.set("ready", &ready);
        suite.set("rate", "500/s");
        suite.set("stop", "{grace: 2s}");
        suite.relay(&[])
    }

    /// The relay with more `arguments`.
    pub(crate) fn relay(self, arguments: &[&str]) -> Self {
        let words = self.relay_words();
        let words = words.iter().map(String::as_str).chain(arguments.to_vec());
        let words: Vec<&str> = words.collect();
        self.command(&words)
    }

    /// A shell script in place of the relay, with the relay's words as its
    /// arguments: `"$@"` is the relay.
    pub(crate) fn script(self, script: &str) -> Self {
        let relay = self.relay_words();
        let mut words = vec!["sh", "-c", script, "sh"];
        words.extend(relay.iter().map(String::as_str));
        self.command(&words)
    }

    fn relay_words(&self) -> Vec<String> {
        let (input, output) = (&self.listen, &self.sink);
        let [into, out] = self.schemes;
        let (input, output) = (format!("{into}://{input}"), format!("{out}://{output}"));
        ["{self}", "relay", "--in", &input, "--out", &output]
            .map(str::to_owned)
            .to_vec()
    }

    fn command(mut self, words: &[&str]) -> Self {
        let words = serde_json::to_string(words).unwrap();
        self.set("command", &words);
        self
    }

    /// Another value of a key: one at the top, or `command`, `ready` and `stop` of the target,
    /// or `rate` of the generator.
    pub(crate) fn with(mut self, key: &'static str, value: &str) -> Self {
        self.set(key, value);
        self
    }

    fn set(&mut self, key: &'static str, value: &str) {
        self.keys.retain(|(known, _)| *known != key);
        self.keys.push((key, value.to_owned()));
    }

    fn text(&self) -> String {
        let mut top = String::new();
        let (mut rate, mut target_text) = (String::new(), String::new());
        for (key, value) in &self.keys {
            let line = format!("{key}: {value}");
            match *key {
                "rate" => rate = line,
                "ready" | "stop" | "command" => target_text += &format!("  {line}\n"),
                _ => top += &format!("{line}\n"),
            }
        }
        let (mark, listen, sink) = (&self.mark, &self.listen, &self.sink);
        let [into, out] = self.schemes;
        format!(
            "target:\n  name: relay\n  environment: {{{MARK}: \"{mark}\"}}\n{target_text}\
             workload:\n  generators:\n    - {into}: \"{listen}\"\n      payload: syslog5424\n      \
             cache: 1 MiB\n      {rate}\n  sinks:\n    - {out}: \"{sink}\"\n{top}"
        )
    }

    /// A path in the suite's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder that all results go to.
    pub(crate) fn results(&self) -> PathBuf {
        self.path("results")
    }

    /// A condition for a [`script`](Self::script): true for the first target of this pair alone.
    pub(crate) fn is_first_of_pair(&self, pair: u32) -> String {
        let capture = self.capture_of(pair, "one");
        let folder = capture.parent().unwrap();
        let once = self.path("once");
        format!("test -d {} && mkdir {}", folder.display(), once.display())
    }

    /// The capture of one run of `stillwell run`.
    pub(crate) fn capture_of(&self, pair: u32, variant: &str) -> PathBuf {
        let experiment = self.path("experiment");
        let name = experiment.file_name().unwrap();
        self.results()
            .join(name)
            .join(format!("pair-{pair:03}"))
            .join(variant)
    }

    /// Writes the experiment and gives its file.
    pub(crate) fn write(&self) -> PathBuf {
        let file = self.path("experiment/experiment.yaml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, self.text()).unwrap();
        file
    }

    /// Writes another file into the folder.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    /// `program` with caches, state and working directory in the suite's folder.
    pub(crate) fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("TMPDIR", self.path("state"))
            .env_remove("NO_COLOR");
        command
    }

    /// `stillwell` with these words.
    pub(crate) fn stillwell(&self, words: &[&str]) -> Command {
        let mut command = self.program(STILLWELL);
        command.args(words);
        command
    }

    /// `stillwell run` of the experiment, results in their place.
    pub(crate) fn run(&self, words: &[&str]) -> Process {
        self.write();
        let mut command = self.stillwell(&["run", "experiment", "--results", "results"]);
        Process::start(command.args(words))
    }

    /// `stillwell run` of the experiment's file, its capture in their place.
    pub(crate) fn observe(&self, words: &[&str]) -> Process {
        self.write();
        let file = "experiment/experiment.yaml";
        let mut command = self.stillwell(&["observe", file, "--results", "results"]);
        Process::start(command.args(words))
    }

    /// Anything else that ends soon.
    pub(crate) fn call(&self, words: &[&str]) -> Finished {
        Process::start(&mut self.stillwell(words)).finish(LONG)
    }

    /// The target's processes whose command line holds `word`.
    pub(crate) fn target_processes(&self, word: &str) -> Vec<u32> {
        let mark = format!("{MARK}={}", self.mark);
        processes(|pid| holds(pid, "environ", &mark) && holds(pid, "cmdline", word))
    }

    /// Fails if anything that was started here, directly or not, still runs, or
    /// has left its state behind.
    pub(crate) fn assert_nothing_left(&self) {
        self.assert_no_process(Duration::ZERO);
        let left: Vec<_> = fs::read_dir(self.path("state")).unwrap().collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// Fails if a process still runs after `at_most`.
    pub(crate) fn assert_no_process(&self, at_most: Duration) {
        let mark = format!("{MARK}={}", self.mark);
        let folder = self.folder.path().to_string_lossy().into_owned();
        let ours = |pid| holds(pid, "environ", &mark) || holds(pid, "cmdline", &folder);
        let gone = wait_until(at_most, || processes(ours).is_empty());
        assert!(gone, "still running: {:?}", processes(ours));
    }

    /// Waits until the run whose capture is in `folder` measures.
    pub(crate) fn wait_measuring(&self, folder: &Path) {
        let measuring = || {
            Capture::open(folder).is_ok_and(|capture| {
                let mut series = capture.series.iter();
                series.any(|(_, _, series)| {
                    let mut points = series.points.iter();
                    points.any(|point| point.phase == Phase::Measure)
                })
            })
        };
        assert!(wait_until(LONG, measuring), "{folder:?} never measured");
    }
}

/// A capture, which must be readable by us and by `stillwell report`.
pub(crate) fn open(suite: &Suite, folder: &Path) -> Manifest {
    let capture = Capture::open(folder).unwrap();
    let report = suite.call(&["report", &folder.to_string_lossy()]);
    assert_eq!(report.code, 0, "{}", report.stderr);
    assert!(report.stdout.contains("run of "), "{}", report.stdout);
    capture.manifest
}

/// Events of the run whose capture is in `folder`.
pub(crate) fn events(folder: &Path) -> Vec<String> {
    let events = Capture::open(folder).unwrap().events;
    events.into_iter().map(|event| event.what).collect()
}

/// Fails if a results folder has more than the reason why nothing was run.
#[track_caller]
pub(crate) fn assert_nothing_ran(results: &Path) {
    let Ok(entries) = std::fs::read_dir(results) else {
        return;
    };
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["problems.json"]);
}

/// Fails, showing all that was said, unless the exit code is `code`.
pub(crate) fn assert_code(ended: &Finished, code: i32) {
    let (out, err) = (&ended.stdout, &ended.stderr);
    assert_eq!(ended.code, code, "\n--- stdout\n{out}\n--- stderr\n{err}");
}

/// Parts of messages of a suite about a host that other programs use, processes or virtual
/// machines. They are right.
const BY_OTHERS: [&str; 3] = [
    "waited for other programs for",
    "the hypervisor took",
    // The host stalled. It comes before the reasons of generators and sinks, and hides them.
    "samples missing for",
];

/// The same about a generator without a CPU, which its own load may have taken.
const OF_GENERATOR: [&str; 2] = [
    "had something to send but no CPU",
    "its workers waited for a CPU",
];

/// Returns true where the suite gives no verdict because other programs use this host:
/// the test then proves nothing, and prints so.
pub(crate) fn is_disturbed(test: &str, ended: &Finished) -> bool {
    is_disturbed_by(&[&BY_OTHERS[..], &OF_GENERATOR].concat(), test, ended)
}

/// The same for a test of the reason: one about the generator is no excuse for another.
pub(crate) fn is_disturbed_by_others(test: &str, ended: &Finished) -> bool {
    is_disturbed_by(&BY_OTHERS, test, ended)
}

fn is_disturbed_by(disturbances: &[&str], test: &str, ended: &Finished) -> bool {
    // A report may break its lines within a message.
    let stdout: Vec<&str> = ended.stdout.split_whitespace().collect();
    let stdout = stdout.join(" ");
    let mut output = disturbances.iter();
    let is_disturbed = ended.code == 4 && output.any(|output| stdout.contains(output));
    if is_disturbed {
        println!("DISTURBED: {test}: others use this host");
    }
    is_disturbed
}

/// Fails, showing all of `text`, unless it has all of `parts`.
pub(crate) fn assert_holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

fn processes(wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| wanted(*pid)).collect()
}

/// Returns true if a file of the process contains `word`, or anything for an empty one. Those of a
/// zombie are empty.
fn holds(pid: u32, file: &str, word: &str) -> bool {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    if word.is_empty() {
        return !bytes.is_empty();
    }
    bytes
        .windows(word.len())
        .any(|window| window == word.as_bytes())
}
