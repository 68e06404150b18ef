//! Files that users get from other programs: recordings of browsers, kubeconfigs, tables, and scenarios with templates.

use std::io;
use std::path::{Path, PathBuf};

use stillwell_config::files::{EntryKind, Files};
use stillwell_config::requests::{TlsSpec, har as read_har};
use stillwell_config::scenario::{ScenarioFlags, load_scenario};
use stillwell_others::harness::{dstat as read_dstat, dstat_table, tables as read_tables};
use stillwell_others::results::{parse_columns, parse_inline, read_result};
use stillwell_plan::load::LoadProtocol;
use stillwell_units::{Nanos, Seed};

use crate::kubeconfig::Kubeconfig;

/// A recording has requests with a URL of HTTP, or says what is wrong.
pub fn har(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    match read_har(text) {
        Ok((requests, _)) => {
            assert!(!requests.is_empty());
            for request in requests {
                let scheme = request.url.split("://").next().unwrap_or_default();
                assert!(scheme.to_ascii_lowercase().starts_with("http"), "{}", request.url);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A kubeconfig names a cluster or says what is wrong.
pub fn kubeconfig(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let path = PathBuf::from("config");
    let read = Kubeconfig::read(&[(path, text)]);
    let shown = match read.and_then(|config| config.access(None)) {
        Ok(access) => format!("{access:?}"),
        Err(error) => error.to_string(),
    };
    assert!(!shown.is_empty());
}

/// Tables of documents have a head and rows of its length; columns and results are numbers.
pub fn tables(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for table in read_tables(&text) {
        assert!(table.head.len() > 1 && !table.rows.is_empty());
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()));
    }
    if let Err(error) = parse_columns(&text) {
        assert!(!error.to_string().is_empty());
    }
    drop(parse_inline(&text));
    drop(read_result(&text));
}

/// A file of dstat becomes one row of a table, or says what is wrong.
pub fn dstat(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match read_dstat(&text) {
        Ok(run) => drop(dstat_table("test", &[("a".to_owned(), run)])),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// One file, which every path names.
#[derive(Debug)]
struct OneFile<'b>(&'b [u8]);

impl Files for OneFile<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        let bytes = self.read_bytes(path, u64::MAX)?;
        String::from_utf8(bytes).map_err(io::Error::other)
    }

    fn read_bytes(&self, _path: &Path, _limit: u64) -> io::Result<Vec<u8>> {
        Ok(self.0.to_vec())
    }

    fn kind(&self, _path: &Path) -> Option<EntryKind> {
        Some(EntryKind::File)
    }

    fn list(&self, _folder: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }
}

/// A scenario, whose requests have templates, is a plan or says what is wrong.
pub fn scenario(bytes: &[u8]) {
    let flags = ScenarioFlags {
        url: Some("http://127.0.0.1:9/".to_owned()),
        warmup: Nanos::ZERO,
        duration: None,
        threads: 1,
        protocol: LoadProtocol::Http2,
        timeout: Nanos::SECOND,
        connect_timeout: Nanos::SECOND,
        tls: TlsSpec::default(),
        seed: Seed::from_bytes([9; 32]),
    };
    if let Err(errors) = load_scenario(&OneFile(bytes), Path::new("scenario.yaml"), flags) {
        assert!(errors.has_errors(), "refused without a reason");
        assert!(!errors.to_string().is_empty());
    }
}
