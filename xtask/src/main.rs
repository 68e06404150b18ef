//! Checks and chores of this repository.
//!
//! `cargo xtask tidy` holds the house rules that no compiler knows: which crate
//! may depend on which, what must be absent from which folder, and that the
//! documents point at things that exist. `cargo xtask ci-skips LOG` fails when a
//! test run skipped something. `cargo xtask calibrate --full` (or `--quick`)
//! simulates experiments and prints the tables of docs/internals/calibration.md.
//! `cargo xtask harness TABLE RESULTS PAGE` puts what a run of several subjects found
//! into a page, between its marks.
//! `cargo xtask mutate CORPUS PROGRAM COUNT` makes mistakes in other people's
//! configurations, each of which the program must tell at its line.
//! `cargo xtask words` counts banned words and ambiguous type names by crate, and
//! `cargo xtask words CRATE` lists them.
//! `cargo xtask messages [CRATE…]` lists the texts of the program.
//! `cargo xtask reference` writes docs/reference.md.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore speaks to the person who runs it"
)]

mod calibrate;
mod ci_skips;
mod harness;
mod mutate;
mod tidy;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use calibrate::Effort;

const USAGE: &str = "usage: cargo xtask tidy | cargo xtask words [CRATE…] | \
                     cargo xtask messages [CRATE…] | cargo xtask reference | cargo xtask ci-skips LOGFILE | \
                     cargo xtask calibrate (--quick|--full) | \
                     cargo xtask harness TABLE RESULTS PAGE | \
                     cargo xtask mutate CORPUS PROGRAM COUNT";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["tidy"] => run_tidy(),
        ["calibrate", "--quick"] => run_calibrate(Effort::Quick),
        ["calibrate", "--full"] => run_calibrate(Effort::Full),
        ["mutate", corpus, program, count] => match count.parse() {
            Ok(count) => run_mutate(Path::new(corpus), Path::new(program), count),
            Err(_) => return misused(),
        },
        ["harness", table, results, page] => {
            harness::write(table, Path::new(results), Path::new(page))
        }
        ["reference"] => run_reference(),
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

fn run_calibrate(effort: Effort) -> anyhow::Result<()> {
    print!("{}", calibrate::tables(effort)?);
    Ok(())
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
    let own = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let root = Path::new(&own)
        .parent()
        .context("the xtask package lies at the root of the file system")?;
    Ok(root.to_path_buf())
}
