//! Processes of ours without what they need: outputs that are closed or full, limits of the system, no rights, folders
//! that are none, and inputs at standard input. Each ends by itself with its exit code and names the cause.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stillwell_testkit::{Process, free_port, wait_until};

use super::{ADDRESS_SPACE, KILL_AFTER, MARK, STILLWELL, orphans, tally};
use crate::interrupt::is_ignored;
use crate::suite::{STOP_MAX, Suite, assert_code, share_machine};

/// Exit code of a script whose fault cannot be made here.
const SKIPPED: i32 = 77;

/// A script with `$S`, the program, and `$U`, the URL of a server.
struct Case {
    script: &'static str,
    codes: &'static [i32],
    /// Part of its output.
    message: &'static str,
}

const fn case(script: &'static str, codes: &'static [i32], message: &'static str) -> Case {
    Case {
        script,
        codes,
        message,
    }
}

const FULL: &str = "No space left on device";
const OPEN_FILES: &str = "Too many open files";

/// Outputs that take nothing.
const OUTPUTS: [Case; 14] = [
    case("$S load -n5 $U >/dev/full", &[3], FULL),
    case("$S load -n5 $U >&-", &[0], ""),
    case("$S load -n5 $U 2>&-", &[0], "closed loop"),
    case("$S load -n5 $U 2>/dev/full", &[0], "closed loop"),
    case("$S load -n5 $U >&- 2>&- <&-", &[0], ""),
    case("$S load -n5 $U | true", &[0], ""),
    case("$S check run.yaml >/dev/full", &[3], FULL),
    case("$S schema >/dev/full", &[3], FULL),
    case("$S schema | true", &[0], ""),
    case("$S observe run.yaml --results r >/dev/full", &[3, 4], FULL),
    case("$S observe run.yaml --results r >&-", &[0, 4], "capture: r"),
    case(
        "$S observe run.yaml --results r 2>/dev/full",
        &[0, 4],
        "relay",
    ),
    case(
        "$S load -n5 $U --output /proc/none.json",
        &[3],
        "No such file",
    ),
    case("$S load -n5 $U --output .", &[2], "not a format of results"),
];

/// Inputs at standard input.
const INPUTS: [Case; 10] = [
    case(
        "$S transform --output-format json </dev/null",
        &[2],
        "error",
    ),
    case(
        "$S transform --output-format json </dev/zero",
        &[2],
        "device",
    ),
    case(
        "$S transform --output-format json </dev/full",
        &[2],
        "device",
    ),
    case("$S transform --output-format json <&-", &[2], "error"),
    case("$S transform --output-format json <.", &[2], "folder"),
    case("true | $S transform --output-format json", &[2], "error"),
    case(
        "head -c 300000 /dev/urandom | $S transform --output-format json",
        &[2],
        "UTF-8",
    ),
    case(
        "cat /dev/zero | $S transform --output-format json",
        &[2],
        "larger than 16 MiB",
    ),
    case(
        "truncate -s 20G s; $S transform --output-format json <s",
        &[2],
        "larger than 16 MiB",
    ),
    case(
        "yes '[' | head -c 400000 | $S transform --output-format json",
        &[2],
        "error",
    ),
];

/// Limits of the system.
const LIMITS: [Case; 9] = [
    case(
        "ulimit -n 20; $S load -n50 -c 40 $U",
        &[1, 3, 4],
        OPEN_FILES,
    ),
    case("ulimit -n 10; $S load -n5 -c 4 $U", &[3], "ulimit -n 1024"),
    case("ulimit -n 6; $S load -n5 -c 4 $U", &[3], "ulimit -n 1024"),
    // The limit is raised for this program, and not for its target.
    case(
        "ulimit -S -n 64; $S load -n400 -c 200 $U",
        &[0],
        "closed loop",
    ),
    case(
        "ulimit -S -n 64; $S observe limit.yaml --results r; cat limit",
        &[0],
        "\n64\n",
    ),
    case(
        "ulimit -n 20; $S observe run.yaml --results r",
        &[3, 4],
        OPEN_FILES,
    ),
    case(
        "c=$( (ulimit -f 0; $S observe run.yaml --results r 2>&1; echo code $?) ); echo \"$c\"; exit ${c##*code }",
        &[3, 4],
        "File too large",
    ),
    case(
        "c=$( (ulimit -f 0; $S load -n5 $U --output f.json 2>&1; echo code $?) ); echo \"$c\"; exit ${c##*code }",
        &[3],
        "File too large",
    ),
    case(
        "ulimit -c unlimited; $S load -n5 $U && test ! -e core",
        &[0],
        "closed loop",
    ),
];

/// Folders for results and state that are missing, or belong to another user.
const PLACES: [Case; 14] = [
    case(
        "mkfifo first; $S run suite.yaml --results r >first 2>&1 & p=$!; exec 3<first; grep -qm1 'pair 1' <&3; \
         $S run suite.yaml --results r; c=$?; kill $p; wait $p; exit $c",
        &[2, 3],
        "error",
    ),
    case("$S observe run.yaml --results /dev/null", &[3], "/dev/null"),
    case(
        "$S observe run.yaml --results /proc/none",
        &[3],
        "/proc/none",
    ),
    case(
        "$S observe run.yaml --results run.yaml",
        &[3],
        "File exists",
    ),
    case(
        "ln -s loop loop; $S observe run.yaml --results loop",
        &[3],
        "loop",
    ),
    case(
        "mkfifo pipe; $S observe run.yaml --results pipe",
        &[3],
        "File exists",
    ),
    case(
        "$S observe run.yaml --results $(printf %0300d 1)",
        &[3],
        "name too long",
    ),
    case(
        "TMPDIR=/proc/none $S observe run.yaml --results r",
        &[3],
        "/proc/none",
    ),
    case(
        "HOME=/proc XDG_RUNTIME_DIR=/proc/none $S load -n5 $U",
        &[0],
        "closed loop",
    ),
    case("env -i $S load -n5 $U", &[0], "closed loop"),
    case(
        "mkdir gone; cd gone; rmdir ../gone; $S load -n5 $U",
        &[0],
        "closed loop",
    ),
    case(
        "mkdir gone; cd gone; rmdir ../gone; $S observe ../run.yaml",
        &[2, 3],
        "error",
    ),
    case(
        "test $(id -u) = 0 || exit 77; chmod 755 .; setpriv --reuid 65534 --clear-groups $S load -n5 $U",
        &[0],
        "closed loop",
    ),
    case(
        "test $(id -u) = 0 || exit 77; chmod 755 .; setpriv --reuid 65534 --clear-groups $S observe run.yaml --results r",
        &[3],
        "denied",
    ),
];

/// Limits of the group of processes that we are in. The group is made, and removed, by the script.
const GROUPS: [Case; 3] = [
    case(
        "group pids pids.max 1 load -n5 $U",
        &[3, 4],
        "Resource temporarily unavailable",
    ),
    case(
        "group cpu cpu.cfs_quota_us 5000 load -n3 $U",
        &[0, 4],
        "closed loop",
    ),
    case(
        "group memory memory.limit_in_bytes 4194304 load -n5 $U",
        &[137],
        "",
    ),
];

/// Runs a program within a new group of a controller: `group CONTROLLER FILE LIMIT WORDS…`.
const GROUP: &str = r#"group() {
  g=/sys/fs/cgroup/$1/stillwell-test-$$; f=$2; n=$3; shift 3
  mkdir $g 2>/dev/null && test -e $g/$f || { rmdir $g 2>/dev/null; exit 77; }
  echo $n >$g/$f || { rmdir $g; exit 77; }
  sh -c 'echo $$ >'$g'/cgroup.procs && exec "$@"' sh $S "$@"; code=$?
  for i in $(seq 200); do rmdir $g 2>/dev/null && break; sleep 0.05; done; exit $code
}
"#;

/// A disk that is full before anything is measured, or in the first pair.
const DISKS: [Case; 2] = [
    case("disk 8k $S run suite.yaml --results full/r", &[3], FULL),
    case("disk 100k $S run suite.yaml --results full/r", &[3], FULL),
];

const DISK: &str = r#"disk() {
  size=$1; shift
  test $(id -u) = 0 && mkdir full && mount -t tmpfs -o size=$size none full || exit 77
  "$@"; code=$?; umount full; exit $code
}
"#;

/// A run at the ports `listen` and `sink`.
fn run_text(listen: u16, sink: u16) -> String {
    format!(
        "target:\n  command: [\"{{self}}\", relay, --in, \"tcp://127.0.0.1:{listen}\", --out, \"tcp://127.0.0.1:{sink}\"]\n  \
         ready: {{tcp: \"127.0.0.1:{listen}\"}}\nworkload:\n  generators:\n    - {{tcp: \"127.0.0.1:{listen}\", payload: \
         syslog5424, cache: 1 MiB, rate: 500/s}}\n  sinks: [{{tcp: \"127.0.0.1:{sink}\"}}]\n\
         phases: {{warmup: 0s, measure: 200ms, quiet: 50ms, drain: 100ms}}\n"
    )
}

/// The fault of one case; `None` in place of it where it cannot be made here.
fn fault(case: &Case, url: &str) -> Option<Option<String>> {
    let folder = tempfile::tempdir().unwrap();
    let text = run_text(free_port(), free_port());
    let suite = "variants: {one: {}, two: {environment: {A: b}}}\npairs: 2\nconfirm: false\ngoals: [cpu, memory]\n";
    let shell = format!(
        "[sh, -c, 'ulimit -n >{}/limit; exec \"$@\"', sh, \"{{self}}\",",
        folder.path().display()
    );
    let limit = text.replace("[\"{self}\",", &shell);
    fs::write(folder.path().join("limit.yaml"), limit).unwrap();
    fs::write(folder.path().join("run.yaml"), &text).unwrap();
    fs::write(folder.path().join("suite.yaml"), text + suite).unwrap();
    let mark = format!("{}-{}", std::process::id(), free_port());
    let script = format!("ulimit -v {ADDRESS_SPACE}; {GROUP}{DISK}{}", case.script);
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path());
    command.envs([("S", STILLWELL), ("U", url), (MARK, &mark)]);
    let ended = Process::start(&mut command).finish(KILL_AFTER);
    if ended.code == SKIPPED {
        return None;
    }
    let output = ended.stdout + &ended.stderr;
    let left = orphans(&mark);
    let is_right = case.codes.contains(&ended.code)
        && output.contains(case.message)
        && !output.contains("panicked")
        && left.is_empty();
    let code = ended.code;
    Some((!is_right).then(|| format!("{}: exit code {code}, left {left:?}: {output}", case.script)))
}

fn check(kind: &str, cases: &[Case]) {
    let _machine = share_machine();
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let address = format!("127.0.0.1:{port}");
    let server = Process::start(Command::new(STILLWELL).args(["serve", "-a", &address]));
    assert!(wait_until(KILL_AFTER, || server
        .stderr()
        .contains(&address)));
    let tried: Vec<Option<String>> = cases.iter().filter_map(|case| fault(case, &url)).collect();
    if tried.len() < cases.len() {
        println!(
            "SKIPPED: {} of {kind}: no right to make them",
            cases.len() - tried.len()
        );
    }
    let faults: Vec<String> = tried.iter().flatten().cloned().collect();
    tally(kind, tried.len(), &faults);
}

#[test]
fn an_output_that_takes_nothing_is_named() {
    check("outputs", &OUTPUTS);
}

#[test]
fn standard_input_is_read_within_bounds() {
    check("standard input", &INPUTS);
}

#[test]
fn limits_of_the_system_are_named() {
    check("limits of the system", &LIMITS);
}

#[test]
fn places_that_are_not_there_are_named() {
    check("places", &PLACES);
}

#[test]
fn limits_of_this_control_group_leave_nothing_behind() {
    check("limits of the cgroup", &GROUPS);
}

/// The report on the terminal names the full disk, since no file can.
#[test]
fn a_disk_that_is_full_before_the_first_pair_still_gives_a_report() {
    check("full disks", &DISKS);
}

/// A target that starts twenty daemons of two processes each.
const DAEMONS: &str =
    "for i in $(seq 20); do (setsid sh -c 'sleep 300 & sleep 300' &); done; exec \"$@\"";

/// SIGHUP and its like, while the target has twenty daemons in sessions of their own.
#[test]
fn a_signal_ends_every_daemon_of_the_target() {
    let signals = [("HUP", 1), ("TERM", 15), ("INT", 2), ("QUIT", 3)];
    let signals = signals
        .into_iter()
        .filter(|(_, number)| !is_ignored(*number));
    let mut tried = 0;
    for (signal, number) in signals {
        tried += 1;
        let suite = Suite::new()
            .script(DAEMONS)
            .with("phases", "{warmup: 200ms, measure: 60s}");
        let process = suite.observe(&[]);
        suite.wait_measuring(&suite.results());
        assert!(wait_until(STOP_MAX, || suite
            .target_processes("sleep")
            .len()
            >= 40));
        process.signal(signal);
        assert_code(&process.finish(STOP_MAX), 128 + number);
        suite.assert_nothing_left();
    }
    tally("signals with daemons", tried, &[]);
}

/// Peers of a load over HTTP/3 that do not speak it: each request ends in an outcome, and the load names the cause.
#[test]
fn a_load_over_http3_ends_with_every_kind_of_server() {
    let _machine = share_machine();
    let answers: [(&str, &[u8]); 6] = [
        ("silence", b""),
        ("a byte", b"\0"),
        ("text", b"HTTP/1.1 200 OK\r\n\r\n"),
        ("a long header of no version", &[0xc0; 1200]),
        ("a short header", &[0x40; 60]),
        (
            "a negotiation of versions",
            b"\x80\0\0\0\0\x08abcdefgh\x08abcdefgh\x1a\x2a\x3a\x4a",
        ),
    ];
    let mut faults = Vec::new();
    for (name, answer) in answers {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let address = socket.local_addr().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let mut datagram = [0; 2048];
                while !is_over.load(Ordering::Relaxed) {
                    if let (Ok((_, peer)), false) =
                        (socket.recv_from(&mut datagram), answer.is_empty())
                    {
                        socket.send_to(answer, peer).ok();
                    }
                }
            });
            let code = three(&format!("https://{address}/"));
            is_over.store(true, Ordering::Relaxed);
            faults.extend(code.map(|fault| format!("{name}: {fault}")));
        });
    }
    faults.extend(
        three(&format!("https://127.0.0.1:{}/", free_port()))
            .map(|fault| format!("nothing: {fault}")),
    );
    tally("peers over HTTP/3", answers.len() + 1, &faults);
}

/// The fault of a load on `url`, which answers nothing.
fn three(url: &str) -> Option<String> {
    let words = "load -n 3 -c 1 --protocol http3 --insecure --timeout 1s --connect-timeout 300ms";
    let words = words.split(' ').chain([url]);
    let ended = Process::start(Command::new(STILLWELL).args(words)).finish(KILL_AFTER);
    let output = ended.stdout + &ended.stderr;
    let is_right = [1, 3].contains(&ended.code)
        && output.contains("no request was ")
        && !output.contains("panicked");
    (!is_right).then(|| format!("exit code {}: {output}", ended.code))
}

/// Folders that hold what a run may not follow: links in place of its files.
#[test]
fn links_in_place_of_results_are_replaced_and_not_followed() {
    let _machine = share_machine();
    let names = [
        "manifest.json",
        "events.jsonl",
        "series.jsonl",
        "summary.json",
        "target.stdout.log",
        "target.stderr.log",
    ];
    let mut faults = Vec::new();
    for name in names {
        let folder = tempfile::tempdir().unwrap();
        let link_target = folder.path().join("victim");
        fs::write(&link_target, "kept").unwrap();
        fs::create_dir(folder.path().join("r")).unwrap();
        std::os::unix::fs::symlink(&link_target, folder.path().join("r").join(name)).unwrap();
        fs::write(
            folder.path().join("run.yaml"),
            run_text(free_port(), free_port()),
        )
        .unwrap();
        faults.extend(followed(folder.path(), name, &link_target));
    }
    tally("links in place of results", names.len(), &faults);
}

fn followed(folder: &Path, name: &str, link_target: &Path) -> Option<String> {
    let words = ["observe", "run.yaml", "--results", "r"];
    let mut command = Command::new(STILLWELL);
    let ended = Process::start(command.args(words).current_dir(folder)).finish(KILL_AFTER);
    let is_kept = fs::read(link_target).is_ok_and(|content| content == b"kept");
    (!is_kept || ![0, 2, 3, 4].contains(&ended.code))
        .then(|| format!("{name}: exit code {}: {}", ended.code, ended.stderr))
}
