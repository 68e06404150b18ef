//! Answers about a program become the text of an experiment.
//!
//! [`Scaffold::text`] is pure. The text is a native file with the keys that matter, and it can be checked and run as it
//! is.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use stillwell_plan::target::ReadyProbe;

use crate::VariantArgument;

/// Kind of a program, by what it reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProgramKind {
    /// An HTTP service.
    Http,
    /// A pipeline that reads a TCP stream.
    Tcp,
    /// A pipeline that reads UDP datagrams.
    Udp,
    /// A pipeline that follows a file.
    Files,
    /// A pipeline that receives OpenTelemetry data.
    Otlp,
    /// A program that reads a topic of Kafka.
    Kafka,
}

impl ProgramKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Http,
        Self::Tcp,
        Self::Udp,
        Self::Files,
        Self::Otlp,
        Self::Kafka,
    ];

    /// Returns its name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Files => "files",
            Self::Otlp => "otlp",
            Self::Kafka => "kafka",
        }
    }

    /// Returns its description.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Http => "an HTTP service",
            Self::Tcp => "a pipeline that reads a TCP stream",
            Self::Udp => "a pipeline that reads UDP datagrams",
            Self::Files => "a pipeline that follows a file",
            Self::Otlp => "a pipeline that receives OpenTelemetry data",
            Self::Kafka => "a program that reads a topic of Kafka",
        }
    }

    /// Returns true if it listens on a port.
    #[must_use]
    pub const fn has_port(self) -> bool {
        matches!(self, Self::Http | Self::Tcp | Self::Udp | Self::Otlp)
    }

    /// Returns the format of events, unless another one is requested; requests have none.
    #[must_use]
    pub const fn payload(self) -> Option<&'static str> {
        match self {
            Self::Http => None,
            Self::Tcp | Self::Udp => Some("syslog5424"),
            Self::Files | Self::Kafka => Some("json"),
            Self::Otlp => Some("opentelemetry_logs"),
        }
    }

    /// Returns the rate for programs that a probe at full speed would not show the capacity of.
    const fn rate(self) -> Option<&'static str> {
        match self {
            Self::Http | Self::Tcp | Self::Otlp => None,
            Self::Udp => Some("5k/s"),
            Self::Files => Some("5 MiB/s"),
            Self::Kafka => Some("5k/s"),
        }
    }
}

impl FromStr for ProgramKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.name() == text).ok_or_else(|| {
            format!("`{text}` is not a kind of program; write http, tcp, udp, files, otlp or kafka")
        })
    }
}

/// Protocol by which a pipeline sends its output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OutputProtocol {
    /// A TCP stream.
    Tcp,
    /// UDP datagrams.
    Udp,
    /// HTTP requests.
    Http,
    /// OpenTelemetry.
    Otlp,
    /// A file that it writes.
    File,
}

/// Receiver of a pipeline's output.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ScaffoldOutput {
    /// Its protocol.
    pub protocol: OutputProtocol,
    /// The address at which a sink listens, or the path of the file.
    pub place: String,
}

impl FromStr for ScaffoldOutput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not an output; write tcp:ADDRESS:PORT, udp:…, http:… or otlp:… with \
                 an IP address, such as tcp:127.0.0.1:9200, or file:PATH"
            )
        };
        let (protocol, place) = text.split_once(':').ok_or_else(wrong)?;
        let protocol = match protocol {
            "tcp" => OutputProtocol::Tcp,
            "udp" => OutputProtocol::Udp,
            "http" => OutputProtocol::Http,
            "otlp" => OutputProtocol::Otlp,
            "file" => OutputProtocol::File,
            _ => return Err(wrong()),
        };
        let is_valid = match protocol {
            OutputProtocol::File => !place.is_empty(),
            _ => place.parse::<std::net::SocketAddr>().is_ok(),
        };
        if !is_valid {
            return Err(wrong());
        }
        Ok(Self {
            protocol,
            place: place.to_owned(),
        })
    }
}

impl fmt::Display for ScaffoldOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = self.protocol.sink();
        write!(f, "{protocol}:{}", self.place)
    }
}

impl OutputProtocol {
    /// Returns the key of its sink.
    const fn sink(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Http => "http",
            Self::Otlp => "otlp",
            Self::File => "file",
        }
    }
}

/// Build of `git:` variants.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ScaffoldBuild {
    /// The shell command.
    pub command: String,
    /// Path of the executable that it leaves.
    pub output: String,
    /// Folder of the repository, seen from the experiment.
    pub repository: Option<String>,
}

/// A program that Stillwell starts.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaffoldProgram {
    /// Program and arguments, with paths seen from the experiment.
    pub words: Vec<String>,
    /// Working directory, seen from the experiment; `None` for a new folder of each run.
    pub directory: Option<String>,
    /// Its readiness check; `None` for the default.
    pub ready: Option<ReadyProbe>,
    /// True if each run may have its own network.
    pub has_private_network: bool,
    /// Baseline and comparison.
    pub variants: [VariantArgument; 2],
    /// Build of variants that come from a revision.
    pub build: ScaffoldBuild,
}

/// Target of a [`Scaffold`].
#[derive(Clone, Debug, PartialEq)]
pub enum ScaffoldTarget {
    /// A program that Stillwell starts.
    Program(Box<ScaffoldProgram>),
    /// Two services that run already: the URLs of baseline and comparison.
    Urls([String; 2]),
}

/// Input of the program: where the load goes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ScaffoldInput {
    /// A URL, or `host:port`.
    Address(String),
    /// A file that the program reads.
    File(String),
    /// A topic of a broker.
    Topic {
        /// `host:port` of the broker.
        broker: String,
        /// The topic.
        topic: String,
    },
    /// The URLs of the target.
    Target,
}

/// Answers about a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaffold {
    /// Name in reports.
    pub name: String,
    /// Folder of the experiment, as it can be typed.
    pub folder: String,
    /// Its kind.
    pub kind: ProgramKind,
    /// Its start.
    pub target: ScaffoldTarget,
    /// Destination of the load.
    pub input: ScaffoldInput,
    /// Receiver of its output, if it has one.
    pub output: Option<ScaffoldOutput>,
    /// Format of events; `None` for that of its kind.
    pub payload: Option<String>,
    /// Rate of the load; `None` for that of its kind.
    pub rate: Option<String>,
    /// Sentences about the program, as comments of the file.
    pub remarks: Vec<String>,
}

/// Column in which comments begin.
const COMMENT_COLUMN: usize = 44;

impl Scaffold {
    /// Returns the text of the experiment file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from("# yaml-language-server: $schema=./experiment.schema.json\n");
        text.push_str("# Compares two versions under the same load. All keys: stillwell schema\n");
        text.push_str(&format!(
            "#   stillwell run {0} --quick   a first verdict in about two minutes\n\
             #   stillwell check {0}         shows what would run\n",
            self.folder
        ));
        for remark in &self.remarks {
            text.push_str(&format!("# {}\n", one_line(remark)));
        }
        text.push('\n');
        self.write_target(&mut text);
        self.write_variants(&mut text);
        self.write_workload(&mut text);
        self.write_course(&mut text);
        self.write_goals(&mut text);
        text
    }

    fn write_target(&self, text: &mut String) {
        match &self.target {
            ScaffoldTarget::Urls([baseline, _]) => {
                text.push_str("target:\n");
                text.push_str(&format!("  name: {}\n", quoted(&self.name)));
                commented(
                    text,
                    &format!("  url: {}", quoted(baseline)),
                    "the baseline",
                );
            }
            ScaffoldTarget::Program(program) => {
                if !program.has_private_network {
                    commented(
                        text,
                        "isolation: {network: no}",
                        "it uses the network of this host",
                    );
                    text.push('\n');
                }
                text.push_str("target:\n");
                text.push_str(&format!("  name: {}\n", quoted(&self.name)));
                text.push_str(&format!("  command: {}\n", list(&program.words)));
                if let Some(directory) = &program.directory {
                    let line = format!("  directory: {}", quoted(directory));
                    commented(text, &line, "relative to the folder of this file");
                }
                if let Some(ready) = &program.ready {
                    let line = format!("  ready: {}", probe(ready));
                    commented(text, &line, "when the load may begin");
                }
            }
        }
    }

    fn write_variants(&self, text: &mut String) {
        text.push('\n');
        match &self.target {
            ScaffoldTarget::Urls([_, comparison]) => {
                text.push_str("variants:\n  baseline: {}\n");
                text.push_str(&format!("  comparison: {{url: {}}}\n", quoted(comparison)));
            }
            ScaffoldTarget::Program(program) => {
                let [baseline, comparison] = &program.variants;
                let variants = [("baseline", baseline), ("comparison", comparison)];
                if baseline == comparison {
                    text.push_str(
                        "# Both are the same now, so the verdict should be `equivalent`. Write what your change is:\n\
                         #   {arguments: [--fast]}  {environment: {MODE: new}}  {binary: ./new}  {command: [./new, -x]}\n",
                    );
                }
                text.push_str("variants:\n");
                for (name, argument) in variants {
                    let value = variant(argument, &program.build);
                    text.push_str(&format!("  {name}: {value}\n"));
                }
            }
        }
    }

    fn write_workload(&self, text: &mut String) {
        text.push_str("\nworkload:\n  generators:\n");
        match self.kind {
            ProgramKind::Http => {
                text.push_str("    - requests:\n");
                let mut path = "/";
                if let ScaffoldInput::Address(url) = &self.input {
                    let (base, at) = url.split_at(path_of(url));
                    path = if at.is_empty() { "/" } else { at };
                    text.push_str(&format!("        url: {}\n", quoted(&format!("{base}/"))));
                    if url.starts_with("https:") {
                        let line = "        insecure: true";
                        commented(text, line, "the certificate is not checked");
                    }
                }
                text.push_str("        mix:\n");
                let line = format!("          - {{path: {}}}", quoted(path));
                commented(text, &line, "add the requests that your users send");
            }
            _ => {
                text.push_str(&format!("    - {}\n", self.transport()));
                let payload = self.payload.as_deref().or_else(|| self.kind.payload());
                if let Some(payload) = payload {
                    let line = format!("      payload: {}", quoted(payload));
                    commented(text, &line, "the format of events");
                }
            }
        }
        if let Some(rate) = self.rate() {
            let comment = match self.kind {
                ProgramKind::Http => "of all connections",
                _ => "more if the report says `light load`",
            };
            commented(text, &format!("      rate: {rate}"), comment);
        }
        if matches!(self.kind, ProgramKind::Http | ProgramKind::Otlp) {
            text.push_str("      connections: 4\n");
        }
        if let Some(output) = &self.output {
            text.push_str("  sinks:\n");
            let line = format!(
                "    - {{{}: {}}}",
                output.protocol.sink(),
                quoted(&output.place)
            );
            commented(text, &line, "receives what the program forwards");
        }
    }

    /// Returns the key of the generator and its value.
    fn transport(&self) -> String {
        match (&self.input, self.kind) {
            (ScaffoldInput::File(path), _) => {
                format!("file_gen: {{log: {}, file_max: 1 GiB}}", quoted(path))
            }
            (ScaffoldInput::Topic { broker, topic }, _) => format!(
                "kafka: {{address: {}, topic: {}, create_topic: true}}",
                quoted(broker),
                quoted(topic)
            ),
            (ScaffoldInput::Address(address), ProgramKind::Tcp) => {
                format!("tcp: {{address: {}}}", quoted(address))
            }
            (ScaffoldInput::Address(address), ProgramKind::Udp) => {
                format!("udp: {{address: {}}}", quoted(address))
            }
            (ScaffoldInput::Address(url), _) if url.ends_with("/Export") => {
                format!("grpc: {}", quoted(url))
            }
            (ScaffoldInput::Address(url), _) => format!(
                "http: {{url: {}, headers: {{content-type: application/x-protobuf}}}}",
                quoted(url)
            ),
            // Only requests go to the URLs of the target.
            (ScaffoldInput::Target, _) => String::new(),
        }
    }

    /// Returns the rate of the generator; `None` if a probe finds it.
    fn rate(&self) -> Option<&str> {
        let of_urls = matches!(self.target, ScaffoldTarget::Urls(_)).then_some("200/s");
        let rate = self.rate.as_deref().or_else(|| self.kind.rate());
        rate.or(of_urls)
    }

    fn write_course(&self, text: &mut String) {
        if self.rate().is_none() {
            text.push_str(
                "\n# A short run at full speed finds what the baseline can do; both then get 60 % of it or more.\n\
                 operating_point: {probe: {share: 60%, length: 2s}}\n",
            );
        }
        text.push_str("\nphases: {warmup: 2s, measure: 8s}\n");
    }

    fn write_goals(&self, text: &mut String) {
        text.push_str("\ngoals:\n");
        let is_probed = self.rate().is_none();
        let first = match &self.target {
            ScaffoldTarget::Urls(_) => "{metric: latency_p50, tolerance: 5%}",
            ScaffoldTarget::Program(_) if is_probed => "{metric: cpu_per_event, tolerance: 5%}",
            // A fixed rate may leave the program nearly idle.
            ScaffoldTarget::Program(_) => "{metric: cpu, tolerance: 5%}",
        };
        commented(
            text,
            &format!("  - {first}"),
            "the first goal decides the exit code",
        );
        let is_http = self.kind == ProgramKind::Http;
        let has_program = matches!(self.target, ScaffoldTarget::Program(_));
        let more = [
            ("latency_p99", is_http),
            ("error_share", is_http),
            ("ingress_throughput", self.kind == ProgramKind::Tcp),
            ("egress_throughput", self.output.is_some()),
            ("memory", has_program),
        ];
        for (goal, _) in more.into_iter().filter(|(_, is_wanted)| *is_wanted) {
            text.push_str(&format!("  - {goal}\n"));
        }
    }
}

/// Writes a line with a comment behind it.
fn commented(text: &mut String, line: &str, comment: &str) {
    let gap = COMMENT_COLUMN.saturating_sub(line.chars().count()).max(2);
    text.push_str(&format!("{line}{}# {comment}\n", " ".repeat(gap)));
}

/// Returns the place at which the path of a URL begins.
fn path_of(url: &str) -> usize {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url.len(), |at| host + at)
}

/// Returns `text` without characters that end a line or steer a terminal.
fn one_line(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(visible).collect()
}

/// Returns a scalar that YAML reads as this text, in block and in flow style.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let begins_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || "./".contains(c));
    let words = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let is_word = words.contains(&text.to_ascii_lowercase().as_str());
    // `.5`, `.inf` and `.nan` are numbers.
    let is_number = text.starts_with('.') && !text.starts_with("./") && !text.starts_with("../");
    if begins_plain && text.chars().all(is_plain) && !is_word && !is_number {
        return text.to_owned();
    }
    if text.chars().all(|c| is_plain(c) && c != '/') && text.starts_with('-') && text.len() > 1 {
        let is_flag = text
            .trim_start_matches('-')
            .starts_with(|c: char| c.is_ascii_alphabetic());
        let is_number = text.starts_with("-.");
        if is_flag && !is_number {
            return text.to_owned();
        }
    }
    // Every JSON text is a text of YAML.
    serde_json::Value::from(text).to_string()
}

fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

fn probe(ready: &ReadyProbe) -> String {
    match ready {
        ReadyProbe::Immediately => "immediately".to_owned(),
        ReadyProbe::Tcp { address } => format!("{{tcp: {}}}", quoted(address)),
        ReadyProbe::Http { url } => format!("{{http: {}}}", quoted(url)),
        ReadyProbe::LogLine { contains } => format!("{{log_line: {}}}", quoted(contains)),
        ReadyProbe::File { path } => format!("{{file: {}}}", quoted(path)),
        ReadyProbe::Delay { length } => format!("{{delay: {}}}", quoted(&length.to_string())),
    }
}

fn variant(argument: &VariantArgument, build: &ScaffoldBuild) -> String {
    match argument {
        VariantArgument::Same => "{}".to_owned(),
        VariantArgument::Git(revision) => {
            let repository = build.repository.as_ref();
            let repository = repository.map(|path| format!(", repository: {}", quoted(path)));
            format!(
                "{{git: {{revision: {}, build: {}, output: {}{}}}}}",
                quoted(revision),
                quoted(&build.command),
                quoted(&build.output),
                repository.unwrap_or_default()
            )
        }
        VariantArgument::Binary(path) => format!("{{binary: {}}}", quoted(&path.to_string_lossy())),
        VariantArgument::Command(words) => format!("{{command: {}}}", list(words)),
        VariantArgument::Arguments(words) => format!("{{arguments: {}}}", list(words)),
        VariantArgument::Environment(variables) => {
            let variables = variables.iter();
            let variables: Vec<String> = variables
                .map(|(name, value)| format!("{}: {}", quoted(name), quoted(value)))
                .collect();
            format!("{{environment: {{{}}}}}", variables.join(", "))
        }
        VariantArgument::Files(folder) => {
            format!("{{files: {}}}", quoted(&folder.to_string_lossy()))
        }
    }
}
