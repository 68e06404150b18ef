//! The live view of `stillwell load`, on a terminal that is one.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use stillwell_testkit::{signal_process, wait_until};

use crate::load::{LONG, STILLWELL, serve};

/// Our end of a terminal.
struct Terminal {
    master: File,
    /// All that was written to it.
    written: String,
}

impl Terminal {
    /// One of so many columns, and the end that a program writes to.
    fn open(columns: u16) -> (Self, OwnedFd) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_col: columns,
            ws_row: 30,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        rustix::io::ioctl_fionbio(&master, true).unwrap();
        let terminal = Self {
            master: File::from(master),
            written: String::new(),
        };
        (terminal, slave)
    }

    /// Takes what has been written since.
    fn read(&mut self) {
        let mut room = [0; 4096];
        loop {
            match self.master.read(&mut room) {
                Ok(0) => return,
                Ok(count) => self.written += &String::from_utf8_lossy(&room[..count]),
                // The other end is closed, or has written nothing more.
                Err(error) if error.kind() != ErrorKind::Interrupted => return,
                Err(_) => {}
            }
        }
    }
}

/// The text on a terminal after all of `written`, and the row of the cursor.
fn screen(written: &str) -> (Vec<String>, usize) {
    let mut rows = vec![String::new()];
    let (mut row, mut column) = (0_usize, 0_usize);
    let mut rest = written.chars();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\x1b' => {
                let mut number = String::new();
                let mut after = rest.by_ref().skip(1);
                let letter = after.find(|c| {
                    number.push(*c);
                    c.is_ascii_alphabetic()
                });
                number.pop();
                let number = number.parse().unwrap_or(1);
                match letter {
                    Some('A') => row = row.saturating_sub(number),
                    Some('K') => rows[row] = rows[row].chars().take(column).collect(),
                    Some('J') => {
                        rows[row] = rows[row].chars().take(column).collect();
                        rows.truncate(row + 1);
                    }
                    other => assert_eq!(other, Some('m'), "{written:?}"),
                }
            }
            c => {
                let before: String = rows[row].chars().take(column).collect();
                let after: String = rows[row].chars().skip(column + 1).collect();
                rows[row] = format!("{before}{c}{after}");
                column += 1;
            }
        }
        rows.resize(rows.len().max(row + 1), String::new());
    }
    (rows, row)
}

#[test]
fn a_live_view_is_drawn_and_leaves_nothing_behind() {
    let (_server, url) = serve(&[]);
    for (columns, signal, code) in [(100, None, 0), (60, Some("INT"), 130)] {
        let (mut terminal, slave) = Terminal::open(columns);
        let duration = if signal.is_some() { "60s" } else { "2500ms" };
        let mut child = Command::new(STILLWELL)
            .args(["load", &url, "--rate=200/s", "--duration", duration])
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(slave))
            .spawn()
            .unwrap();
        wait_until(LONG, || {
            terminal.read();
            terminal.written.contains("generator")
        });
        let (rows, _) = screen(&terminal.written);
        let shown = rows.join("\n");
        for word in [&url[..16], "rate", "p50", "p99", "ended", " ok", "running"] {
            assert!(shown.contains(word), "{word}: {shown}");
        }
        assert!(rows.iter().all(|row| row.chars().count() < columns.into()));
        if let Some(signal) = signal {
            signal_process(child.id(), signal);
        }
        let mut status = None;
        wait_until(LONG, || {
            terminal.read();
            status = child.try_wait().unwrap();
            status.is_some()
        });
        terminal.read();
        let mut report = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut report).unwrap();
        // A machine without time to spare gives an unreliable load.
        let ended = status.and_then(|status| status.code()).unwrap();
        assert!(ended == code || (code, ended) == (0, 4), "{report}");
        assert!(report.contains("requests/s"), "{report}");
        assert_eq!(screen(&terminal.written), (vec![String::new()], 0));
    }
}

#[test]
fn a_dumb_terminal_gets_lines() {
    let (_server, url) = serve(&[]);
    let (mut terminal, slave) = Terminal::open(80);
    let mut child = Command::new(STILLWELL)
        .args(["load", &url, "--rate=200/s", "--duration=1500ms"])
        .env("TERM", "dumb")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(slave))
        .spawn()
        .unwrap();
    wait_until(LONG, || {
        terminal.read();
        child.try_wait().unwrap().is_some()
    });
    terminal.read();
    assert!(
        terminal.written.contains("0 failed"),
        "{}",
        terminal.written
    );
    assert!(!terminal.written.contains('\x1b'), "{}", terminal.written);
}
