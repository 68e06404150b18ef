use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};

use crate::support::{collect, listener, options, run};

#[test]
fn files_are_read_as_they_grow_and_to_their_end_once_they_are_renamed() {
    let folder = tempfile::tempdir().unwrap();
    let (log, old) = (folder.path().join("a.log"), folder.path().join("a.log.0"));
    fs::write(&log, "one\ntw").unwrap();
    fs::write(folder.path().join("other.txt"), "no\n").unwrap();
    let collector = collect();
    let input = format!("tail://{}", folder.path().display());
    let relay = run(options(&input, &collector.endpoint));
    let mut file = OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(b"o\n").unwrap();
    fs::rename(&log, &old).unwrap();
    fs::write(&log, "three\n").unwrap();
    fs::write(folder.path().join("b.log"), "four\nlast").unwrap();
    let report = relay.end();
    // The renamed file is only read where it was found before.
    assert!(matches!(report.events_in, 3 | 5), "{}", report.events_in);
    let all = String::from_utf8(collector.all()).unwrap();
    for line in ["three\n", "four\n", "last\n"] {
        assert!(all.contains(line), "{all}");
    }
    assert!(!all.contains("no\n"), "{all}");
}

#[test]
fn what_was_written_after_a_truncation_was_never_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("a.log");
    fs::write(&log, "one\nand more\n").unwrap();
    let (listener, endpoint) = listener();
    let input = format!("tail://{}", folder.path().display());
    let relay = run(options(&input, &endpoint));
    let mut out = BufReader::new(listener.accept().unwrap().0);
    let mut line = String::new();
    for expected in ["one\n", "and more\n"] {
        out.read_line(&mut line).unwrap();
        assert_eq!(std::mem::take(&mut line), expected);
    }
    let mut file = OpenOptions::new().append(true).open(&log).unwrap();
    file.set_len(0).unwrap();
    file.write_all(b"two\n").unwrap();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "two\n");
    drop(out);
    assert_eq!(relay.end().events_in, 3);
}
