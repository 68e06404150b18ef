//! Command lines of Tremor that have no command of their own here. A link named `tremor` takes
//! them.

use anyhow::{Context as _, bail};

/// The name of a link that takes these command lines.
pub(crate) const NAME: &str = "tremor";

/// Flags of `tremor server run` without a value.
const SWITCHES: [&str; 2] = ["-n", "--no-api"];

/// Returns the command line of Stillwell that does the same. All but `server run` are commands
/// already.
///
/// # Errors
/// Why there is none; the text is for the user.
pub(crate) fn translate(typed: &[String]) -> anyhow::Result<Vec<String>> {
    let first = typed.iter().take(2).map(String::as_str);
    if first.collect::<Vec<_>>() != ["server", "run"] {
        return Ok([&["stillwell".to_owned()], typed].concat());
    }
    let (mut files, mut has_connectors) = (Vec::new(), false);
    for word in typed.iter().skip(2) {
        match word.as_str() {
            "-d" | "--debug-connectors" => has_connectors = true,
            switch if SWITCHES.contains(&switch) => {}
            flag if flag.starts_with('-') => {
                bail!("unknown flag `{flag}`: write tremor server run --debug-connectors FILE.troy")
            }
            file => files.push(file),
        }
    }
    let file = files.first().context("tremor server run needs a FILE")?;
    if let Some(second) = files.get(1) {
        bail!("a bench is one file, not `{file}` and `{second}`");
    }
    if !has_connectors {
        bail!("unknown connector type bench in {file}: add --debug-connectors");
    }
    Ok(["stillwell", "bench", file].map(str::to_owned).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    // compat: Tremor | tremor server run --debug-connectors FILE.troy | works
    #[test]
    fn a_server_runs_one_program_if_debug_connectors_are_allowed() {
        let translated = |line: &str| {
            let typed: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let words = translate(&typed).map_err(|error| error.to_string())?;
            Ok::<_, String>(words.join(" "))
        };
        for (line, expected) in [
            (
                "server run --debug-connectors a.troy",
                "stillwell bench a.troy",
            ),
            ("server run -n -d a.troy", "stillwell bench a.troy"),
            ("test bench . -v", "stillwell test bench . -v"),
            ("--help", "stillwell --help"),
        ] {
            assert_eq!(translated(line), Ok(expected.to_owned()));
        }
        for (line, expected) in [
            (
                "server run config.troy",
                "unknown connector type bench in config.troy: add --debug-connectors",
            ),
            ("server run -d", "needs a FILE"),
            ("server run -d a.troy b.troy", "not `a.troy` and `b.troy`"),
            ("server run -d --api a.troy", "unknown flag `--api`"),
        ] {
            let refused = translated(line).unwrap_err();
            assert!(refused.contains(expected), "{line}: {refused}");
        }
    }
}
