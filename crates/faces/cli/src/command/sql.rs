//! `stillwell sql`.

use std::path::Path;
use std::process::Command;

use crate::arguments::SqlArguments;
use crate::command::{output, places};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// The program that runs queries.
const DUCKDB: &str = "duckdb";

/// The query without `--query`.
const OVERVIEW: &str = "SELECT run, count(DISTINCT metric_name) AS metrics, count(*) AS rows, min(time) AS began, \
     max(time) - min(time) AS length FROM series GROUP BY run ORDER BY began;";

pub(crate) fn run(arguments: &SqlArguments) -> Result<Exit, CommandError> {
    let folder = arguments.folder.as_deref();
    let folder = folder.unwrap_or_else(|| Path::new(places::HOME));
    if !folder.is_dir() {
        let error = anyhow::anyhow!("{} is not a folder", folder.display());
        return Err(CommandError::new(Exit::Usage, error)
            .hint("give the folder of results, such as .stillwell"));
    }
    let query = arguments.query.as_deref().unwrap_or(OVERVIEW);
    let script = format!("{}\n{query}", view(&folder.to_string_lossy()));
    if !arguments.execute {
        let line = format!("{DUCKDB} -c {}\n", output::quoted(&script));
        Paint::data(&line).map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
        return Ok(Exit::Held);
    }
    let status = Command::new(DUCKDB).args(["-c", &script]).status();
    let status = status.map_err(|error| {
        let error = anyhow::Error::new(error).context("start duckdb");
        CommandError::new(Exit::CouldNotRun, error)
            .hint("install it (https://duckdb.org), or leave out --execute to print the command")
    })?;
    match status.success() {
        true => Ok(Exit::Held),
        false => Ok(Exit::Failed),
    }
}

/// Returns the statement that makes the view.
fn view(folder: &str) -> String {
    let mut pattern = String::new();
    for character in folder.trim_end_matches('/').chars() {
        match character {
            '\'' => pattern.push_str("''"),
            // Characters of patterns are themselves within brackets.
            '*' | '?' | '[' => pattern.push_str(&format!("[{character}]")),
            other => pattern.push(other),
        }
    }
    format!(
        "CREATE VIEW series AS SELECT parse_dirpath(filename) AS run, * EXCLUDE (filename)\n\
         FROM read_parquet('{pattern}/**/series.parquet', filename = true, union_by_name = true);"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_text_in_the_pattern() {
        let sql = view("it's/a*b[c]/");
        assert!(
            sql.contains("read_parquet('it''s/a[*]b[[]c]/**/series.parquet'"),
            "{sql}"
        );
    }
}
