//! Values of a command line that change a file's or replace them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use stillwell_plan::target::ContainerTarget;
use stillwell_text::split_command;
use stillwell_units::{Nanos, Seed};

/// Values of a command line for one observed run.
#[derive(Clone, Debug, Default)]
pub struct RunOverrides {
    /// Target of the measurement.
    pub target: TargetOverride,
    /// Length of load that is not measured.
    pub warmup: Option<Nanos>,
    /// Length of load that is measured.
    pub measure: Option<Nanos>,
    /// From which everything random follows.
    pub seed: Option<Seed>,
    /// The rate of the only generator: `10 MiB/s`, `5k/s` or `max`.
    pub rate: Option<String>,
}

/// Target of the measurement, instead of the file's.
#[derive(Clone, Debug, Default)]
pub enum TargetOverride {
    /// The target that the file names; some formats never name one.
    #[default]
    FromFile,
    /// This program.
    Path(ProgramOverride),
    /// This process, which runs already.
    Pid(u32),
    /// This container: one that runs already, or one that is made from an image.
    Container(ContainerTarget),
    /// Nothing.
    None,
}

impl TargetOverride {
    /// Returns true if something is between generators and sinks.
    #[must_use]
    pub const fn is_something(&self) -> bool {
        matches!(self, Self::Path(_) | Self::Pid(_) | Self::Container(_))
    }
}

/// A program given on the command line.
#[derive(Clone, Debug, Default)]
pub struct ProgramOverride {
    /// The executable; a bare name is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment.
    pub environment: BTreeMap<String, String>,
    /// `true`: it inherits the environment of this process.
    pub inherit: bool,
}

/// Values of a command line for experiments.
#[derive(Clone, Debug, Default)]
pub struct SuiteOverrides {
    /// Names, or patterns with `*`, of the experiments to run; all if none.
    pub only: Vec<String>,
    /// When an experiment has seen enough.
    pub stopping: Option<StoppingOverride>,
    /// Order in which the variants of a pair run.
    pub design: Option<DesignOverride>,
    /// Time of runs up to which lost pairs are replaced.
    pub max_time: Option<Nanos>,
    /// Builds of each variant that comes from a revision.
    pub builds: Option<u32>,
    /// A first verdict in about two minutes: short runs, few pairs.
    pub quick: bool,
    /// `true`: a detected change is confirmed on new pairs.
    pub confirm: Option<bool>,
    /// Measure from the first event on, without a warm-up.
    pub include_startup: bool,
    /// Length of load that is not measured.
    pub warmup: Option<Nanos>,
    /// Length of load that is measured.
    pub measure: Option<Nanos>,
    /// From which everything random follows.
    pub seed: Option<Seed>,
    /// The first variant.
    pub baseline: Option<VariantArgument>,
    /// The second variant.
    pub comparison: Option<VariantArgument>,
    /// The repository of `git:` variants.
    pub repository: Option<PathBuf>,
    /// The build command of `git:` variants.
    pub build: Option<String>,
    /// The executable that the build leaves.
    pub build_output: Option<PathBuf>,
    /// The program that is measured, in place of what the files name.
    pub target_command: Option<CommandArgument>,
    /// The primary goal: `METRIC[:TOLERANCE]`, or
    /// `series:NAME['ID']:REDUCTION[:lower|:higher][:TOLERANCE]`; what is left out
    /// is as in the file.
    pub goal: Option<String>,
    /// `max`, `probe`, or the rate of the only generator.
    pub rate: Option<String>,
}

/// Values of a command line for experiments with several targets.
#[derive(Clone, Debug, Default)]
pub struct TargetsOverrides {
    /// Names, or patterns with `*`, of the experiments to run; all if none.
    pub only: Vec<String>,
    /// Names of the targets to run, in the order of reports; all if empty.
    pub targets: Vec<String>,
    /// Runs of each target.
    pub runs: Option<u32>,
    /// Length of load that is not measured.
    pub warmup: Option<Nanos>,
    /// Length of load that is measured.
    pub measure: Option<Nanos>,
    /// From which everything random follows.
    pub seed: Option<Seed>,
    /// `max`, or the rate of the only generator.
    pub rate: Option<String>,
}

/// When an experiment has seen enough, as typed on a command line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoppingOverride {
    /// One check, after this number of pairs.
    FixedPairs(u32),
    /// Planned looks, the last after so many pairs.
    MaxPairs(u32),
    /// Looks after every pair, without an end to speak of.
    NoMax,
}

/// Order in which the variants of a pair run, as typed on a command line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DesignOverride {
    /// Both at once, on different CPUs.
    Duet,
    /// One after the other.
    Paired,
    /// Both alive, the load switched between them; turns are as in the file.
    Sliced,
}

/// A variant, as typed on a command line.
///
/// `git:`, `bin:` and `cmd:` say where the executable comes from and leave the
/// variant's arguments, environment and files as the file has them. `args:`,
/// `env:` and `files:` say these in place of the file, and leave the executable.
/// `same` takes everything away that the file says about the variant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum VariantArgument {
    /// `args:WORDS`: arguments behind the command's.
    Arguments(Vec<String>),
    /// `bin:PATH`: this executable.
    Binary(PathBuf),
    /// `cmd:WORDS`: a whole command.
    Command(Vec<String>),
    /// `env:K=V,K=V`: environment variables.
    Environment(BTreeMap<String, String>),
    /// `files:DIR`: a set of files.
    Files(PathBuf),
    /// `git:REV`: built from a revision.
    Git(String),
    /// `same`: equal to the target.
    Same,
}

impl fmt::Display for VariantArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(words) => write!(f, "args:{}", words.join(" ")),
            Self::Binary(path) => write!(f, "bin:{}", path.display()),
            Self::Command(words) => write!(f, "cmd:{}", words.join(" ")),
            Self::Environment(variables) => {
                let pairs: Vec<String> = variables
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                write!(f, "env:{}", pairs.join(","))
            }
            Self::Files(path) => write!(f, "files:{}", path.display()),
            Self::Git(revision) => write!(f, "git:{revision}"),
            Self::Same => f.write_str("same"),
        }
    }
}

/// A program and its arguments, as typed on a command line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CommandArgument {
    /// The executable; a bare name is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl FromStr for CommandArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = split_command(text)?.into_iter();
        let program = words
            .next()
            .ok_or("write a program, and its arguments after it")?;
        Ok(Self {
            program: program.into(),
            arguments: words.collect(),
        })
    }
}

/// Error of a variant's text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VariantArgumentError {
    text: String,
    reason: &'static str,
}

impl fmt::Display for VariantArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a variant: {}; write `git:REV`, `bin:PATH`, `cmd:WORDS`, `args:WORDS`, \
             `env:K=V,K=V`, `files:DIR` or `same`",
            self.text, self.reason
        )
    }
}

impl std::error::Error for VariantArgumentError {}

impl FromStr for VariantArgument {
    type Err = VariantArgumentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_variant(text).map_err(|reason| VariantArgumentError {
            text: text.to_owned(),
            reason,
        })
    }
}

fn parse_variant(text: &str) -> Result<VariantArgument, &'static str> {
    if text == "same" {
        return Ok(VariantArgument::Same);
    }
    // The soak rig took revisions alone.
    if is_revision(text) {
        return Ok(VariantArgument::Git(text.to_owned()));
    }
    let (kind, rest) = text.split_once(':').ok_or("its kind is missing")?;
    if rest.trim().is_empty() {
        return Err("nothing follows the colon");
    }
    Ok(match kind {
        "git" if rest.starts_with('-') => return Err("a revision does not begin with a dash"),
        "git" => VariantArgument::Git(rest.to_owned()),
        "bin" => VariantArgument::Binary(rest.into()),
        "cmd" => VariantArgument::Command(split_command(rest)?),
        "args" => VariantArgument::Arguments(split_command(rest)?),
        "env" => VariantArgument::Environment(parse_environment(rest)?),
        "files" => VariantArgument::Files(rest.into()),
        _ => return Err("its kind is unknown"),
    })
}

/// Returns true for a commit of git, or the first digits of one.
fn is_revision(text: &str) -> bool {
    (7..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn parse_environment(text: &str) -> Result<BTreeMap<String, String>, &'static str> {
    text.split(',')
        .map(|pair| match pair.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            _ => Err("a variable is written `NAME=VALUE`"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_read_as_typed() {
        use VariantArgument as V;
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        for (text, variant) in [
            ("same", V::Same),
            ("git:v1.0~2", V::Git("v1.0~2".to_owned())),
            ("2c9212e", V::Git("2c9212e".to_owned())),
            ("bin:./a b", V::Binary("./a b".into())),
            ("cmd:a 'b c'", V::Command(words(&["a", "b c"]))),
            ("args:--x 1", V::Arguments(words(&["--x", "1"]))),
            (
                "env:A=1,B=x=y",
                V::Environment(
                    [("A", "1"), ("B", "x=y")]
                        .map(|(k, v)| (k.to_owned(), v.to_owned()))
                        .into(),
                ),
            ),
            ("files:conf", V::Files("conf".into())),
        ] {
            assert_eq!(text.parse(), Ok(variant), "{text}");
        }
        for text in [
            "",
            "main",
            "2c9212",
            "git:",
            "tag:x",
            "env:A",
            "cmd:'a",
            "git:--upload-pack=x",
        ] {
            let error = text.parse::<VariantArgument>().unwrap_err().to_string();
            assert!(error.contains("git:REV"), "{error}");
        }
    }
}
