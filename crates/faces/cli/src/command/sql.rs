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
    let name = folder.to_string_lossy();
    let is_store = name.starts_with("s3://");
    if !is_store && !folder.is_dir() {
        let error = anyhow::anyhow!("{} is not a folder", folder.display());
        return Err(CommandError::new(Exit::Usage, error)
            .hint("give the folder of results, such as .stillwell, or s3://BUCKET/PREFIX"));
    }
    let query = arguments.query.as_deref().unwrap_or(OVERVIEW);
    let access = is_store.then(|| store(|name| std::env::var(name).ok()));
    let script = format!("{}{}\n{query}", access.unwrap_or_default(), view(&name));
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

/// Returns the statements by which `duckdb` reads from an S3-compatible store. The keys stay in the environment, where
/// `duckdb` finds them.
fn store(variable: impl Fn(&str) -> Option<String>) -> String {
    let first = |names: &[&str]| {
        let values = names.iter().filter_map(|name| variable(name));
        let mut values = values.filter(|value| !value.is_empty());
        values.next().map(|value| value.replace('\'', "''"))
    };
    let mut text = "INSTALL httpfs; LOAD httpfs;\n".to_owned();
    if let Some(roots) = first(&["AWS_CA_BUNDLE"]) {
        text.push_str(&format!("SET ca_cert_file = '{roots}';\n"));
    }
    let region = first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
    let region = region.unwrap_or_else(|| "us-east-1".to_owned());
    text.push_str(&format!(
        "CREATE SECRET (TYPE s3, REGION '{region}', KEY_ID getenv('AWS_ACCESS_KEY_ID'), \
         SECRET getenv('AWS_SECRET_ACCESS_KEY'), SESSION_TOKEN coalesce(getenv('AWS_SESSION_TOKEN'), '')"
    ));
    if let Some(endpoint) = first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]) {
        let is_plain = endpoint.starts_with("http://");
        let (_, host) = endpoint.split_once("://").unwrap_or(("", &endpoint));
        let host = host.trim_end_matches('/');
        let has_tls = !is_plain;
        text.push_str(&format!(
            ", ENDPOINT '{host}', URL_STYLE 'path', USE_SSL {has_tls}"
        ));
    }
    text.push_str(");\n");
    text
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
    fn a_store_is_read_with_the_keys_of_the_environment() {
        let of = |set: &[(&str, &str)]| {
            let set: Vec<(String, String)> = set
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            store(move |name| {
                let entry = set.iter().find(|(known, _)| known == name);
                entry.map(|(_, value)| value.clone())
            })
        };
        let endpoint = of(&[
            ("AWS_ENDPOINT_URL", "https://store.example:9000/"),
            ("AWS_CA_BUNDLE", "/it's/root.pem"),
            ("AWS_SECRET_ACCESS_KEY", "hidden"),
        ]);
        for part in [
            "ENDPOINT 'store.example:9000', URL_STYLE 'path', USE_SSL true",
            "SET ca_cert_file = '/it''s/root.pem';",
            "REGION 'us-east-1'",
        ] {
            assert!(endpoint.contains(part), "{endpoint}");
        }
        assert!(!endpoint.contains("hidden"), "{endpoint}");
        let plain = of(&[("AWS_ENDPOINT_URL_S3", "http://a"), ("AWS_REGION", "eu-1")]);
        assert!(
            plain.contains("ENDPOINT 'a', URL_STYLE 'path', USE_SSL false"),
            "{plain}"
        );
        assert!(plain.contains("REGION 'eu-1'"), "{plain}");
        assert!(!of(&[]).contains("ENDPOINT"));
    }

    #[test]
    fn a_folder_is_text_in_the_pattern() {
        let sql = view("it's/a*b[c]/");
        assert!(
            sql.contains("read_parquet('it''s/a[*]b[[]c]/**/series.parquet'"),
            "{sql}"
        );
    }
}
