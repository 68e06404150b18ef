//! Other clients, as programs that are there or not.

use std::process::Command;

use anyhow::Context;
use stillwell_testkit::find_program;
use stillwell_units::Nanos;

use crate::{Figure, SENDER_CPU};

/// The job of a client: as many requests as are answered.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Name in tables.
    pub name: &'static str,
    /// HTTP/2, by prior knowledge where there is no TLS, else HTTP/1.1.
    pub is_http2: bool,
    /// True over TLS. Clients do not check the certificate.
    pub has_tls: bool,
    /// Connections at once.
    pub connections: u32,
    /// Requests at once on each.
    pub streams: u32,
    /// Length of a turn, in seconds.
    pub seconds: u32,
}

impl Question {
    /// Returns true if `words` name it, or no question.
    #[must_use]
    pub fn is_among(&self, words: &[String]) -> bool {
        let mut names = words
            .iter()
            .filter(|word| word.starts_with("HTTP"))
            .peekable();
        names.peek().is_none() || names.any(|name| name == self.name)
    }

    /// The URL at `port` of this machine.
    #[must_use]
    pub fn url(&self, port: u16) -> String {
        let scheme = if self.has_tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{port}/")
    }
}

/// Another client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Peer {
    /// C, HTTP/1.1 alone, latencies to three digits.
    Wrk,
    /// C++ with nghttp2, latencies of a sample.
    H2load,
    /// Rust with hyper.
    Oha,
    /// Go.
    Fortio,
}

impl Peer {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Wrk, Self::H2load, Self::Oha, Self::Fortio];

    /// Its program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
            Self::Oha => "oha",
            Self::Fortio => "fortio",
        }
    }

    /// Returns true if its program is installed.
    #[must_use]
    pub fn is_there(self) -> bool {
        find_program(self.name()).is_some()
    }

    /// Returns true if it can send the requests of `question`.
    #[must_use]
    pub const fn can(self, question: &Question) -> bool {
        match self {
            Self::Wrk => !question.is_http2,
            Self::H2load | Self::Oha => true,
            // It speaks HTTP/2 over TLS alone.
            Self::Fortio => !question.is_http2 || question.has_tls,
        }
    }

    /// Loads `port` from the sender's CPU; `receive_cpu` stays empty.
    ///
    /// # Errors
    /// When it cannot run, or does not print how much it did.
    pub fn turn(self, question: &Question, port: u16) -> anyhow::Result<Figure> {
        let before = children_cpu()?;
        let mut command = Command::new("taskset");
        command.args(["-c", &SENDER_CPU.to_string(), self.name()]);
        command
            .args(self.arguments(question))
            .arg(question.url(port));
        let output = command.output().context("start a peer")?;
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        let operations = self.operations(&text);
        Ok(Figure {
            operations: operations
                .with_context(|| format!("read what {} said: {text}", self.name()))?,
            send_cpu: children_cpu()?.saturating_sub(before),
            ..Figure::default()
        })
    }

    fn arguments(self, question: &Question) -> Vec<String> {
        let Question {
            connections,
            streams,
            seconds,
            ..
        } = question;
        let text = match (self, question.is_http2) {
            (Self::Wrk, _) => format!("-t1 -c{connections} -d{seconds}s"),
            (Self::H2load, false) => format!("--h1 -t1 -c{connections} -D{seconds}"),
            (Self::H2load, true) => format!("-t1 -c{connections} -m{streams} -D{seconds}"),
            (Self::Oha, false) => format!("--no-tui --insecure -c {connections} -z {seconds}s"),
            (Self::Oha, true) => {
                format!("--no-tui --insecure --http2 -c {connections} -p {streams} -z {seconds}s")
            }
            (Self::Fortio, false) => {
                format!("load -quiet -k -qps 0 -c {connections} -t {seconds}s")
            }
            // It opens a connection for each of its threads.
            (Self::Fortio, true) => format!(
                "load -quiet -k -h2 -stdclient -qps 0 -c {} -t {seconds}s",
                connections * streams
            ),
        };
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn operations(self, text: &str) -> Option<u64> {
        match self {
            Self::Wrk => number_before(text, " requests in "),
            Self::H2load => number_before(text, " succeeded, "),
            Self::Oha => number_before(text, " responses"),
            Self::Fortio => number_before(text, " calls "),
        }
    }
}

fn number_before(text: &str, word: &str) -> Option<u64> {
    let (before, _) = text.split_once(word)?;
    before.split_whitespace().last()?.parse().ok()
}

/// CPU time of children that have ended, in steps of 10 ms.
fn children_cpu() -> anyhow::Result<Nanos> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The second field may hold anything, and ends with the last parenthesis.
    let (_, fields) = text.rsplit_once(')').context("read our own times")?;
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: Vec<u64> = ticks.map(str::parse).collect::<Result<_, _>>()?;
    Ok(Nanos::from_millis(10 * ticks.iter().sum::<u64>()))
}
