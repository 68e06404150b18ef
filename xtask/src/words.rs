//! The output of `cargo xtask words`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::bail;

use crate::tidy::{Finding, Kind};

/// A table of the counts by crate; with names of crates, each place of these.
///
/// # Errors
/// When a crate has no finding, because its name may be misspelled.
pub(crate) fn render(findings: &[Finding], units: &[&str]) -> anyhow::Result<String> {
    let known: BTreeSet<&str> = findings
        .iter()
        .map(|finding| finding.unit.as_str())
        .collect();
    if let Some(unit) = units.iter().find(|unit| !known.contains(*unit)) {
        let known: Vec<&str> = known.into_iter().collect();
        bail!(
            "`{unit}` has no banned word; these have: {}",
            known.join(", ")
        );
    }
    let mut text = String::new();
    for finding in findings
        .iter()
        .filter(|finding| units.contains(&finding.unit.as_str()))
    {
        let Finding {
            path,
            line,
            kind,
            word,
            instead,
            ..
        } = finding;
        writeln!(
            text,
            "{path}:{line}: {}: {word} → {instead}",
            kind.heading()
        )?;
    }
    let shown = known
        .into_iter()
        .filter(|unit| units.is_empty() || units.contains(unit));
    write!(text, "{:12}", "crate")?;
    for kind in Kind::ALL {
        write!(text, " {:>12}", kind.heading())?;
    }
    writeln!(text)?;
    for unit in shown {
        write!(text, "{unit:12}")?;
        for kind in Kind::ALL {
            let matching = |finding: &&Finding| finding.unit == unit && finding.kind == kind;
            write!(text, " {:>12}", findings.iter().filter(matching).count())?;
        }
        writeln!(text)?;
    }
    Ok(text)
}
