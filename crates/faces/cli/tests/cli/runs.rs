//! `stillwell runs` and `stillwell sql`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use stillwell_testkit::{Finished, LONG, Process};

use crate::suite::Suite;

const STILLWELL: &str = env!("CARGO_BIN_EXE_stillwell");

fn stillwell(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> Finished {
    let mut command = Command::new(STILLWELL);
    command.args(words).current_dir(folder).env_clear();
    command.stdin(std::process::Stdio::null());
    command.envs(variables.iter().copied());
    Process::start(&mut command).finish(LONG)
}

/// A folder with the shape of a result.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("results/a");
    fs::create_dir_all(result.join("case/pair-001")).unwrap();
    let suite = r#"{"command": ["stillwell", "run", "x"], "schema": "stillwell/suite/v1", "started_wall_millis": 1795269933000}"#;
    fs::write(result.join("suite.json"), suite).unwrap();
    fs::write(result.join("report.md"), "### ✅ no regression · x\n").unwrap();
    fs::write(result.join("case/pair-001/a b&c.txt"), "text").unwrap();
    std::os::unix::fs::symlink(&result, folder.path().join("link")).unwrap();
    folder
}

#[test]
fn results_are_listed_and_removed_only_on_request() {
    let folder = folder();
    let run = |words: &[&str]| stillwell(folder.path(), words, &[]);
    let listed = run(&["runs", "list"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    for part in [
        "2026-11-21 14:05",
        "experiments",
        "results/a",
        "no regression",
    ] {
        assert!(listed.stdout.contains(part), "{part}: {}", listed.stdout);
    }
    assert!(!listed.stdout.contains("link"), "{}", listed.stdout);
    let shown = run(&["runs", "show", "results/a"]);
    assert!(
        shown.stdout.contains("case/pair-001/a b&c.txt"),
        "{}",
        shown.stdout
    );

    for (words, code) in [
        (["runs", "rm", "results/a"].as_slice(), 2),
        (&["runs", "rm", "--yes", "link"], 3),
        // A slash would lead through the link.
        (&["runs", "rm", "--yes", "link/"], 3),
        (&["runs", "rm", "--yes", "link/."], 3),
        (&["runs", "rm", "--yes", "results"], 3),
        (&["runs", "rm", "--yes", "results/a", "missing"], 3),
    ] {
        let ended = run(words);
        assert_eq!(ended.code, code, "{words:?}: {}", ended.stderr);
        assert!(
            folder.path().join("results/a/suite.json").exists(),
            "{words:?}"
        );
    }
    let removed = run(&["runs", "rm", "--yes", "results/a"]);
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    assert!(!folder.path().join("results/a").exists());
}

#[test]
fn a_folder_of_another_program_is_not_removed() {
    let folder = folder();
    let (endpoint, objects) = store();
    let keys = keys(&endpoint);
    let run = |words: &[&str]| stillwell(folder.path(), words, &keys);
    for name in ["manifest.json", "suite.json"] {
        let place = folder.path().join("app").join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let (key, content) = (format!("/b/app/{name}"), br#"{"name": "app"}"#);
        fs::write(&place, content).unwrap();
        let object = (key.clone(), content.to_vec());
        objects.lock().unwrap().extend([object]);
        for result in ["app", "s3://b/app"] {
            let ended = run(&["runs", "rm", "--yes", result]);
            assert_eq!(ended.code, 3, "{result}: {}", ended.stderr);
            let reason = format!("{result} is not a result of Stillwell");
            assert!(ended.stderr.contains(&reason), "{}", ended.stderr);
        }
        assert!(place.exists(), "{name}");
        assert!(objects.lock().unwrap().contains_key(&key), "{key}");
        let listed = run(&["runs", "list"]);
        assert!(!listed.stdout.contains("app"), "{}", listed.stdout);
    }
}

#[test]
fn the_json_schema_of_results_is_not_removed() {
    let folder = folder();
    let run = |words: &[&str]| stillwell(folder.path(), words, &[]);
    let schema = run(&["schema", "load"]).stdout;
    let file = folder.path().join("schema.json");
    fs::write(&file, schema).unwrap();
    let ended = run(&["runs", "rm", "--yes", "schema.json"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(file.exists());
    let listed = run(&["runs", "list"]);
    assert!(!listed.stdout.contains("schema.json"), "{}", listed.stdout);
}

#[test]
fn texts_of_a_result_do_not_steer_the_terminal() {
    let folder = folder();
    let result = folder.path().join("results/a");
    let suite =
        r#"{"command": ["stillwell", "\u001b]0;title\u0007"], "schema": "stillwell/suite/v1"}"#;
    fs::write(result.join("suite.json"), suite).unwrap();
    let report = "### ✅ no \u{1b}[2Jregression · x\n";
    fs::write(result.join("report.md"), report).unwrap();
    let shown = stillwell(folder.path(), &["runs", "show", "results/a"], &[]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("]0;title"), "{}", shown.stdout);
    let steers = |character: char| character.is_control() && character != '\n';
    assert!(!shown.stdout.contains(steers), "{:?}", shown.stdout);
}

/// Objects by path, as a store has them.
type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Answers requests as a store does, two objects on each page of a list.
fn answer(mut stream: TcpStream, objects: &Objects) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let header = |name: &str| {
        let lines = head.iter().filter_map(|line| line.split_once(": "));
        let mut lines = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        lines.next().map(|(_, value)| value.to_owned())
    };
    let length = header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let is_signed =
        header("authorization").is_some_and(|text| text.starts_with("AWS4-HMAC-SHA256 "));
    let mut words = head[0].split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut objects = objects.lock().unwrap();
    let (status, body) = match method {
        _ if !is_signed => (403, Vec::new()),
        "PUT" => {
            objects.insert(path.to_owned(), body);
            (200, Vec::new())
        }
        "DELETE" => (
            204,
            objects.remove(path).map_or_else(Vec::new, |_| Vec::new()),
        ),
        _ if query.contains("list-type=2") => (200, page(&objects, query).into_bytes()),
        _ => match objects.get(path) {
            Some(object) => (200, object.clone()),
            None => (404, b"<Code>NoSuchKey</Code>".to_vec()),
        },
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // A client that has what it needs may be gone.
    stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&body))
        .ok();
}

/// A page of the list: keys of bucket `b` as XML.
fn page(objects: &BTreeMap<String, Vec<u8>>, query: &str) -> String {
    let value = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut pairs = pairs.filter(|(known, _)| *known == name);
        pairs
            .next()
            .map_or("", |(_, value)| value)
            .replace("%2F", "/")
    };
    let start: usize = value("continuation-token").parse().unwrap_or(0);
    let keys = objects.iter().filter_map(|(path, object)| {
        let key = path
            .strip_prefix("/b/")?
            .replace("%20", " ")
            .replace("%26", "&");
        key.starts_with(&value("prefix"))
            .then_some((key, object.len()))
    });
    let keys: Vec<_> = keys.collect();
    let shown = keys.iter().skip(start).take(2);
    let contents = shown.map(|(key, size)| {
        let key = key.replace('&', "&amp;");
        format!("<Contents><Key>{key}</Key><Size>{size}</Size></Contents>")
    });
    let contents: String = contents.collect();
    let next = start + 2;
    let is_truncated = keys.len() > next;
    format!(
        "<ListBucketResult><IsTruncated>{is_truncated}</IsTruncated>{contents}\
         <NextContinuationToken>{next}</NextContinuationToken></ListBucketResult>"
    )
}

/// Starts a store, which ends with the process of the test; returns its address and its objects.
fn store() -> (String, Objects) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let objects = Objects::default();
    let served = Arc::clone(&objects);
    #[expect(clippy::disallowed_methods, reason = "a peer of a test has no scope")]
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, &served);
        }
    });
    (endpoint, objects)
}

fn keys(endpoint: &str) -> [(&str, &str); 3] {
    [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ]
}

#[test]
fn results_go_to_a_store_and_come_back_equal() {
    let folder = folder();
    let (endpoint, objects) = store();
    let keys = keys(&endpoint);
    let run = |words: &[&str]| {
        let ended = stillwell(folder.path(), words, &keys);
        assert_eq!(ended.code, 0, "{words:?}: {}", ended.stderr);
        ended.stdout
    };
    run(&["runs", "push", "results/a", "--to", "s3://b/nightly"]);
    assert_eq!(objects.lock().unwrap().len(), 3);
    let listed = run(&["runs", "list", "s3://b/nightly"]);
    assert!(
        listed.contains("s3://b/nightly/a") && listed.contains('3'),
        "{listed}"
    );
    run(&["runs", "pull", "s3://b/nightly/a", "back"]);
    for file in ["suite.json", "report.md", "case/pair-001/a b&c.txt"] {
        let [sent, received] =
            ["results/a", "back/a"].map(|at| fs::read(folder.path().join(at).join(file)).unwrap());
        assert_eq!(sent, received, "{file}");
    }
    // No existing file is overwritten, and no name leads out of the folder.
    let again = stillwell(
        folder.path(),
        &["runs", "pull", "s3://b/nightly/a", "back"],
        &keys,
    );
    assert_eq!(again.code, 3, "{}", again.stderr);
    objects
        .lock()
        .unwrap()
        .insert("/b/evil/../../x".to_owned(), Vec::new());
    let traversal = stillwell(
        folder.path(),
        &["runs", "pull", "s3://b/evil", "back"],
        &keys,
    );
    assert_eq!(traversal.code, 3, "{}", traversal.stderr);
    assert!(!folder.path().join("back/evil").exists());
    run(&["runs", "rm", "--yes", "s3://b/nightly/a"]);
    assert_eq!(objects.lock().unwrap().len(), 1);
}

#[test]
fn a_result_that_is_one_file_goes_to_a_store_comes_back_and_is_removed() {
    const TEXT: &str = r#"{"schema": "stillwell/load/v1"}"#;
    let folder = folder();
    fs::write(folder.path().join("load.json"), TEXT).unwrap();
    let (endpoint, objects) = store();
    let keys = keys(&endpoint);
    let run = |words: &[&str], code: i32| {
        let ended = stillwell(folder.path(), words, &keys);
        assert_eq!(ended.code, code, "{words:?}: {}", ended.stderr);
        ended.stdout
    };
    run(&["runs", "push", "load.json", "--to", "s3://b/p"], 0);
    for name in ["load.json.old", "photo.jpg"] {
        let key = format!("/b/p/{name}");
        objects.lock().unwrap().insert(key, b"other".to_vec());
    }
    let shown = run(&["runs", "show", "s3://b/p/load.json"], 0);
    assert!(shown.contains(" B\n"), "{shown}");
    run(&["runs", "pull", "s3://b/p/load.json", "back"], 0);
    let back = fs::read_to_string(folder.path().join("back/load.json"));
    assert_eq!(back.unwrap(), TEXT);
    run(&["runs", "pull", "s3://b/p/load", "back"], 3);
    run(&["runs", "rm", "--yes", "s3://b/p/photo.jpg"], 3);
    run(&["runs", "rm", "--yes", "s3://b/p/load.json"], 0);
    let left: Vec<String> = objects.lock().unwrap().keys().cloned().collect();
    assert_eq!(left, ["/b/p/load.json.old", "/b/p/photo.jpg"]);
}

#[test]
fn the_table_of_variants_is_uploaded_although_a_report_cannot_be_written() {
    let suite = Suite::new();
    suite.write();
    std::os::unix::fs::symlink("/dev/full", suite.path("full.md")).unwrap();
    let (endpoint, objects) = store();
    let mut command = suite.stillwell(&["run", "experiment", "--results", "s3://b/tables"]);
    command.args(["-o", "full.md"]).envs(keys(&endpoint));
    let ended = Process::start(&mut command).finish(4 * LONG);
    // On a busy machine equal variants may differ.
    assert!(matches!(ended.code, 1 | 4), "{}", ended.stderr);
    let full = "No space left on device";
    assert!(ended.stderr.contains(full), "{}", ended.stderr);
    let objects = objects.lock().unwrap();
    let (key, table) = objects.first_key_value().unwrap();
    assert!(
        key.starts_with("/b/tables/") && key.ends_with(".parquet"),
        "{key}"
    );
    let results = fs::read_dir(suite.path(".stillwell/results")).unwrap();
    let results = results.flatten().next().unwrap().path();
    assert_eq!(*table, fs::read(results.join("results.parquet")).unwrap());
    let message = format!("results: s3:/{key}");
    assert!(ended.stderr.contains(&message), "{}", ended.stderr);
}

#[test]
fn a_query_is_printed_or_given_to_duckdb() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("it's")).unwrap();
    let printed = stillwell(folder.path(), &["sql", "it's", "--query", "SELECT 1"], &[]);
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    // The shell gives the program one argument.
    let script = format!(
        "duckdb() {{ printf '%s|' \"$#\" \"$2\"; }}; {}",
        printed.stdout
    );
    let shell = Command::new("/bin/sh")
        .args(["-c", &script])
        .output()
        .unwrap();
    let words = String::from_utf8(shell.stdout).unwrap();
    assert!(words.starts_with("2|CREATE VIEW series"), "{words}");
    assert!(
        words.contains("'it''s/**/series.parquet'") && words.ends_with("SELECT 1|"),
        "{words}"
    );

    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let missing = stillwell(
        folder.path(),
        &["sql", "--execute", "."],
        &[("PATH", bin.to_str().unwrap())],
    );
    assert_eq!(missing.code, 3, "{}", missing.stderr);
    assert!(missing.stderr.contains("install it"), "{}", missing.stderr);
    assert_eq!(stillwell(folder.path(), &["sql", "nowhere"], &[]).code, 2);
}
