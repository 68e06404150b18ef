//! The live view of `stillwell load`, on a terminal that is one.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use stillwell_testkit::{signal_process, wait_until};

use crate::load::{LONG, STILLWELL, serve};

/// Our end of a terminal, which shows what is written to it and reports its cursor.
struct Emulator {
    master: File,
    /// All that was written to it.
    written: Vec<u8>,
    parser: vt100::Parser,
    /// Bytes of `written` that the parser has processed.
    processed: usize,
}

/// The request for the place of the cursor.
const CURSOR_REQUEST: &[u8] = b"\x1b[6n";

impl Emulator {
    /// One of so many columns, and the end that a program uses.
    fn open(rows: u16, columns: u16) -> (Self, OwnedFd) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        unlockpt(&master).unwrap();
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        rustix::io::ioctl_fionbio(&master, true).unwrap();
        let mut emulator = Self {
            master: File::from(master),
            written: Vec::new(),
            parser: vt100::Parser::new(rows, columns, 0),
            processed: 0,
        };
        emulator.resize(rows, columns);
        (emulator, slave)
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.master, size).unwrap();
        self.parser.screen_mut().set_size(rows, columns);
    }

    fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Takes what has been written since, and answers requests for the cursor.
    fn read(&mut self) {
        let mut room = [0; 4096];
        loop {
            match self.master.read(&mut room) {
                Ok(0) => break,
                Ok(count) => self.written.extend_from_slice(&room[..count]),
                // The other end is closed, or has written nothing more.
                Err(error) if error.kind() != ErrorKind::Interrupted => break,
                Err(_) => {}
            }
        }
        while let Some(at) = find(&self.written[self.processed..], CURSOR_REQUEST) {
            let end = self.processed + at + CURSOR_REQUEST.len();
            self.parser.process(&self.written[self.processed..end]);
            self.processed = end;
            let (row, column) = self.parser.screen().cursor_position();
            self.type_in(&format!("\x1b[{};{}R", row + 1, column + 1));
        }
        self.parser.process(&self.written[self.processed..]);
        self.processed = self.written.len();
    }

    fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// A command with this terminal as input and for messages.
fn started(slave: OwnedFd, arguments: &[&str]) -> Child {
    Command::new(STILLWELL)
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::from(slave.try_clone().unwrap()))
        .stdout(Stdio::piped())
        .stderr(Stdio::from(slave))
        .spawn()
        .unwrap()
}

/// The exit code of a child, and what it printed.
fn ended(mut child: Child, emulator: &mut Emulator) -> (Option<i32>, String) {
    let mut status = None;
    wait_until(LONG, || {
        emulator.read();
        status = child.try_wait().unwrap();
        status.is_some()
    });
    emulator.read();
    let mut report = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut report).unwrap();
    (status.and_then(|status| status.code()), report)
}

/// Requests the end of a load.
#[derive(Clone, Copy, Debug)]
enum End {
    Signal(&'static str),
    Key(&'static str),
}

#[test]
fn a_live_view_is_drawn_and_every_end_restores_the_terminal() {
    let (_server, url) = serve(&[]);
    for (columns, end, code) in [
        (100, None, 0),
        (60, Some(End::Signal("INT")), 130),
        (80, Some(End::Signal("TERM")), 143),
        (80, Some(End::Key("q")), 130),
    ] {
        let (mut emulator, slave) = Emulator::open(30, columns);
        let modes = tcgetattr(&slave).unwrap();
        let kept = slave.try_clone().unwrap();
        let duration = if end.is_some() { "60s" } else { "6s" };
        let child = started(
            slave,
            &["load", &url, "--rate=200/s", "--duration", duration],
        );
        wait_until(LONG, || {
            emulator.read();
            let shown = emulator.screen();
            shown.contains("generator") && shown.contains("q: end")
        });
        let shown = emulator.screen();
        for word in [
            &url[..16],
            "rate",
            "p50",
            "p99",
            "outcomes",
            " ok",
            "running",
            "q: end",
        ] {
            assert!(shown.contains(word), "{word}: {shown}");
        }
        assert!(emulator.parser.screen().hide_cursor(), "{shown}");
        match end {
            Some(End::Signal(signal)) => signal_process(child.id(), signal),
            Some(End::Key(key)) => emulator.type_in(key),
            None => {}
        }
        let (ended, report) = ended(child, &mut emulator);
        // A machine without time to spare gives an unreliable load.
        assert!(
            ended == Some(code) || (code, ended) == (0, Some(4)),
            "{end:?} {ended:?} {report}"
        );
        assert!(report.contains("requests/s"), "{report}");
        assert_eq!(emulator.screen(), "", "{end:?}");
        assert!(!emulator.parser.screen().hide_cursor());
        let restored = tcgetattr(&kept).unwrap();
        assert_eq!(restored.local_modes, modes.local_modes, "{end:?}");
    }
}

#[test]
fn a_live_view_follows_the_size_of_its_terminal() {
    let (_server, url) = serve(&[]);
    let (mut emulator, slave) = Emulator::open(24, 100);
    let child = started(slave, &["load", &url, "--rate=200/s", "--duration=60s"]);
    for (rows, columns) in [(24, 100), (12, 60), (40, 120), (5, 30), (24, 80)] {
        emulator.resize(rows, columns);
        let word = if rows < 10 { "p99" } else { "generator" };
        wait_until(LONG, || {
            emulator.read();
            emulator.screen().contains(word)
        });
    }
    emulator.type_in("q");
    let (ended, _) = ended(child, &mut emulator);
    assert_eq!(ended, Some(130));
}

#[test]
fn a_terminal_that_does_not_report_its_cursor_gets_lines() {
    let (_server, url) = serve(&[]);
    let (mut emulator, slave) = Emulator::open(24, 80);
    let child = Command::new(STILLWELL)
        .args(["load", &url, "--rate=200/s", "--duration=60s"])
        .env("TERM", "xterm")
        // Without input there are no reports.
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::from(slave))
        .spawn()
        .unwrap();
    let has_lines = wait_until(LONG, || {
        emulator.read();
        emulator.text().contains("0 failed")
    });
    signal_process(child.id(), "INT");
    ended(child, &mut emulator);
    assert!(has_lines, "{}", emulator.text());
}

#[test]
fn a_dumb_terminal_gets_lines() {
    let (_server, url) = serve(&[]);
    let (mut terminal, slave) = Emulator::open(24, 80);
    let mut child = Command::new(STILLWELL)
        .args(["load", &url, "--rate=200/s", "--duration=60s"])
        .env("TERM", "dumb")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(slave))
        .spawn()
        .unwrap();
    let has_lines = wait_until(LONG, || {
        terminal.read();
        terminal.text().contains("0 failed")
    });
    signal_process(child.id(), "INT");
    wait_until(LONG, || {
        terminal.read();
        child.try_wait().unwrap().is_some()
    });
    terminal.read();
    let written = terminal.text();
    assert!(has_lines, "{written}");
    assert!(!written.contains('\x1b'), "{written}");
}

/// It was stopped for good (SIGTTOU) when it restored the terminal.
#[test]
fn a_command_that_went_to_the_background_ends_there() {
    let (_server, url) = serve(&[]);
    let (mut emulator, slave) = Emulator::open(24, 80);
    // A shell with job control: it has the terminal again once the command is suspended.
    let script = "set -m; \"$@\"; bg; kill -TERM %1; wait %1; exit $?";
    let mut child = Command::new("setsid")
        .args(["--ctty", "sh", "-c", script, "sh", STILLWELL])
        .args(["load", &url, "--rate=200/s", "--duration=60s"])
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm")
        .stdin(Stdio::from(slave.try_clone().unwrap()))
        .stdout(Stdio::piped())
        .stderr(Stdio::from(slave))
        .spawn()
        .unwrap();
    let is_shown = wait_until(LONG, || {
        emulator.read();
        emulator.screen().contains("q: end")
    });
    // Ctrl-Z.
    emulator.type_in("\x1a");
    let has_ended = wait_until(LONG, || {
        emulator.read();
        child.try_wait().unwrap().is_some()
    });
    if !has_ended {
        child.kill().unwrap();
    }
    let (code, report) = ended(child, &mut emulator);
    assert!(is_shown && has_ended, "{}", emulator.text());
    assert_eq!(code, Some(143), "{report} {}", emulator.text());
}
