//! Checks and chores of this repository.
//!
//! `cargo xtask tidy` holds the house rules that no compiler knows: which crate may
//! depend on which, what must be absent from which folder, and that the documents point
//! at things that exist. `cargo xtask ci-skips LOG` fails when a test run skipped
//! something. `cargo xtask calibrate --full` (or `--quick`) simulates experiments and
//! prints the tables of docs/internals/calibration.md. `cargo xtask harness TABLE RESULTS
//! PAGE` puts the result of a run of several targets into a page, between its marks.
//! `cargo xtask mutate CORPUS PROGRAM COUNT` makes mistakes in other people's
//! configurations; the program must report each at its line. `cargo xtask words`
//! counts banned words and ambiguous type names by crate, and `cargo xtask words CRATE`
//! lists them. `cargo xtask messages [CRATE…]` lists the texts of the program. `cargo
//! xtask reference` writes docs/reference.md, `cargo xtask compatibility` the tables of
//! docs/compatibility.md. `cargo xtask evidence LEDGER PROGRAM TIMES MINUTES`
//! runs the quickstart beside other programs, and continues the ledger; with the ledger alone
//! it prints the tables.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "commands of xtask print to a terminal"
)]

mod calibrate;
mod ci_skips;
mod evidence;
mod harness;
mod mutate;
mod tidy;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};

use calibrate::{Effort, TablesPart};

const USAGE: &str = "usage: cargo xtask tidy | cargo xtask words [CRATE…] | \
                     cargo xtask messages [CRATE…] | cargo xtask reference | \
                     cargo xtask compatibility | cargo xtask ci-skips LOGFILE | \
                     cargo xtask calibrate (--quick|--full [search|procedure|histories|covariates]) | \
                     cargo xtask evidence LEDGER [PROGRAM TIMES MINUTES] | \
                     cargo xtask harness TABLE RESULTS PAGE | \
                     cargo xtask mutate CORPUS PROGRAM COUNT";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["tidy"] => run_tidy(),
        ["calibrate", "--quick"] => run_calibrate(Effort::Quick, &TablesPart::ALL),
        ["calibrate", "--full"] => run_calibrate(Effort::Full, &TablesPart::ALL),
        ["calibrate", "--full", part] => match TablesPart::named(part) {
            Some(part) => run_calibrate(Effort::Full, &[part]),
            None => return misused(),
        },
        ["evidence", ledger] => evidence::print_table(Path::new(ledger)),
        ["evidence", ledger, program, times, minutes] => match (times.parse(), minutes.parse()) {
            (Ok(times), Ok(minutes)) => {
                run_evidence(Path::new(ledger), Path::new(program), times, minutes)
            }
            _ => return misused(),
        },
        ["mutate", corpus, program, count] => match count.parse() {
            Ok(count) => run_mutate(Path::new(corpus), Path::new(program), count),
            Err(_) => return misused(),
        },
        ["harness", table, results, page] => {
            harness::write(table, Path::new(results), Path::new(page))
        }
        ["reference"] => run_reference(),
        ["compatibility"] => run_compatibility(),
        ["messages", units @ ..] => run_messages(units),
        ["words", units @ ..] => run_words(units),
        ["ci-skips", log] => run_ci_skips(Path::new(log)),
        _ => return misused(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_tidy() -> anyhow::Result<()> {
    let report = tidy::check(&repository_root()?)?;
    for problem in &report.problems {
        println!("{problem}");
    }
    if !report.problems.is_empty() {
        bail!("tidy: {} problems", report.problems.len());
    }
    println!(
        "tidy: {} files, {} crates, no problems",
        report.files, report.crates
    );
    Ok(())
}

fn run_words(units: &[&str]) -> anyhow::Result<()> {
    let findings = tidy::find_words(&repository_root()?)?;
    print!("{}", words::render(&findings, units)?);
    Ok(())
}

fn run_messages(units: &[&str]) -> anyhow::Result<()> {
    for message in tidy::find_messages(&repository_root()?, units)? {
        println!("{message}");
    }
    Ok(())
}

/// Writes the page by the test that compares it.
fn run_reference() -> anyhow::Result<()> {
    let status = std::process::Command::new("cargo")
        .args([
            "test",
            "--quiet",
            "--package",
            "stillwell-config",
            "reference",
        ])
        .env("STILLWELL_WRITE_REFERENCE", "1")
        .status()
        .context("run cargo test")?;
    if !status.success() {
        bail!("cargo test failed: {status}");
    }
    Ok(())
}

fn run_compatibility() -> anyhow::Result<()> {
    let root = repository_root()?;
    let page = tidy::compatibility_page(&root)?;
    let path = root.join("docs/compatibility.md");
    std::fs::write(&path, page).with_context(|| format!("write {}", path.display()))
}

fn run_calibrate(effort: Effort, parts: &[TablesPart]) -> anyhow::Result<()> {
    print!("{}", calibrate::tables(effort, parts)?);
    Ok(())
}

fn run_evidence(ledger: &Path, program: &Path, times: usize, minutes: u32) -> anyhow::Result<()> {
    // Trials run in the root of the repository.
    let program = std::path::absolute(program)?;
    let at_most = Duration::from_secs(u64::from(minutes) * 60);
    let trial_count = evidence::TrialCount { times, at_most };
    evidence::collect(&repository_root()?, &program, ledger, trial_count)
}

fn run_mutate(corpus: &Path, program: &Path, count: usize) -> anyhow::Result<()> {
    // Each check runs in the folder of its case.
    let program = std::path::absolute(program)?;
    print!("{}", mutate::run(corpus, &program, count)?);
    Ok(())
}

fn misused() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn run_ci_skips(log: &Path) -> anyhow::Result<()> {
    // Test programs may print bytes that are not UTF-8.
    let bytes = std::fs::read(log).with_context(|| format!("read {}", log.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let skipped = ci_skips::skipped_tests(&text);
    for line in &skipped {
        println!("{line}");
    }
    if !skipped.is_empty() {
        bail!("{} tests were skipped", skipped.len());
    }
    println!("no test was skipped");
    Ok(())
}

/// The folder that holds this package's folder.
fn repository_root() -> anyhow::Result<PathBuf> {
    let manifest_dir =
        std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let root = Path::new(&manifest_dir)
        .parent()
        .context("the xtask package lies at the root of the file system")?;
    Ok(root.to_path_buf())
}
