//! The program's answer to a mistake.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::change::Mutation;

/// The exit code for mistakes in a configuration.
const CONFIGURATION: i32 = 2;

/// Checks that `program` finds nothing wrong with `case`.
pub(super) fn is_fine(program: &Path, case: &Path) -> anyhow::Result<()> {
    let (code, stderr) = check(program, case)?;
    ensure!(
        code == Some(0),
        "{} is refused as it is:\n{stderr}",
        case.display()
    );
    Ok(())
}

/// Checks that `program` reports the mistake at its line, and nothing at an unconcerned
/// line; else returns the reason.
pub(super) fn is_reported(
    program: &Path,
    case: &Path,
    file: &Path,
    mutation: &Mutation,
) -> anyhow::Result<Result<(), String>> {
    let (code, stderr) = check(program, case)?;
    if code != Some(CONFIGURATION) {
        return Ok(Err(format!(
            "exit {code:?}, not {CONFIGURATION}:\n{stderr}"
        )));
    }
    let name = file.strip_prefix(case)?.display().to_string();
    let places = error_places(&stderr, &name);
    if !places.contains(&Some(mutation.line)) {
        return Ok(Err(format!(
            "no error in line {}:\n{stderr}",
            mutation.line
        )));
    }
    let concerned = [Some(mutation.line), mutation.around];
    if places
        .iter()
        .any(|place| place.is_none() || !concerned.contains(place))
    {
        return Ok(Err(format!(
            "an error elsewhere than in {concerned:?}:\n{stderr}"
        )));
    }
    Ok(Ok(()))
}

fn check(program: &Path, case: &Path) -> anyhow::Result<(Option<i32>, String)> {
    let output = Command::new(program)
        .args(["check", "."])
        .current_dir(case)
        .env("NO_COLOR", "1")
        .output()
        .with_context(|| format!("run {}", program.display()))?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.code(), stderr))
}

/// The lines of all errors; none for one that is in another file or nowhere.
fn error_places(stderr: &str, file: &str) -> Vec<Option<usize>> {
    let lines: Vec<&str> = stderr.lines().collect();
    let heads = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with("error["));
    let place = |index: usize| {
        let place = lines.get(index + 1)?.trim_start().strip_prefix("--> ")?;
        let mut parts = place.strip_prefix(file)?.split(':').skip(1);
        parts.next()?.parse().ok()
    };
    heads.map(|(index, _)| place(index)).collect()
}

#[cfg(test)]
mod tests {
    use super::error_places;

    #[test]
    fn errors_are_known_by_their_lines() {
        let stderr = "error[W101]: unknown\n  --> a/b.yaml:38:7\n   |\n\nwarning[W401]: bits\n  --> \
                    a/b.yaml:4:1\n\nerror[W210]: no program\n |\n\nerror[W1]: x\n --> c.yaml:1:1\n";
        assert_eq!(error_places(stderr, "a/b.yaml"), [Some(38), None, None]);
    }
}
