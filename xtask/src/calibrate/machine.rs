//! `cargo xtask calibrate --machine`: how often verdicts are right on a real
//! machine, where the truth is known, kept in a ledger that later runs add to.
//!
//! The subject is the embedded relay, which works an exact number of rounds for
//! each event. Some of them more is a change whose size is known from reference
//! experiments, and from fresh pairs that no verdict of a search rests on.
//!
//! Experiments run one at a time, each in a process of its own, in an order that
//! keeps all kinds in step, so that a ledger is balanced wherever it stops.

mod conduct;
mod ledger;
mod load;
mod options;
mod schedule;
mod table;
mod trial;
mod truth;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use stillwell_scope::clock;
use stillwell_units::Nanos;

use self::conduct::Rig;
use self::ledger::Ledger;
use self::options::{Act, Options};
use self::trial::Trial;

/// Where the ledger of this repository lies.
const LEDGER: &str = "docs/calibration/machine.jsonl";

/// After so many experiments in a row that did not even run, something is wrong
/// that waiting does not mend.
const FAILURES_MAX: u32 = 3;

/// Does what `words` behind `calibrate` ask for; `None` where they ask for
/// something else. `root` is the repository's.
pub(crate) fn run(words: &[&str], root: &Path) -> Option<anyhow::Result<()>> {
    match words {
        ["--machine", words @ ..] => Some(machine(words, root)),
        ["--beside-load", share, "--", command @ ..] => Some(load::beside(share, command)),
        ["--load", share, seed] => Some(load::carry(share, seed)),
        _ => None,
    }
}

fn machine(words: &[&str], root: &Path) -> anyhow::Result<()> {
    let options = Options::parse(words)?;
    let path = options.ledger.clone().unwrap_or_else(|| root.join(LEDGER));
    match options.act {
        Act::Table => {
            print!("{}", table::markdown(&Ledger::read(&path)?)?);
            Ok(())
        }
        Act::Start if path.exists() => bail!(
            "{} is there: `--resume` adds to it, `--table` shows it",
            path.display()
        ),
        Act::Start | Act::Resume => fill(&options, &path, root),
    }
}

/// Runs what the ledger wants next until it wants no more.
fn fill(options: &Options, path: &Path, root: &Path) -> anyhow::Result<()> {
    let mut ledger = if path.exists() {
        Ledger::read(path)?
    } else {
        Ledger::create(path)?
    };
    let rig = Rig {
        stillwell: match &options.binary {
            Some(binary) => binary.clone(),
            None => conduct::build(root)?,
        },
        wrap: options.wrap.clone(),
    };
    let until = options
        .minutes
        .map(|minutes| clock::now() + Nanos::from_millis(60_000 * u64::from(minutes)));
    let mut failures = 0;
    while until.is_none_or(|until| clock::now() < until) {
        let Some(wanted) = schedule::next(ledger.entries()) else {
            println!("the ledger is full");
            break;
        };
        let trial = Trial::of(wanted, ledger.entries())?;
        match conduct::carry_out(&trial, &rig) {
            Ok(entry) => {
                println!("{}", table::line(&entry));
                ledger.add(entry)?;
                failures = 0;
            }
            Err(error) => {
                failures += 1;
                eprintln!("{} {}: {error:#}", trial.kind.name(), trial.number);
                if failures == FAILURES_MAX {
                    return Err(error).context("experiments do not run");
                }
            }
        }
    }
    Ok(())
}

/// `path` as it is found from wherever something is started.
fn absolute(path: &str) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("find {path}"))
}
