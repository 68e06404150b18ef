//! `stillwell lint`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::suite::{Suite, assert_code, assert_holds};

const OLD: &str = "\
# Through a wall.
blackhole:
  http:
    binding_addr: \"127.0.0.1:8080\" # loopback
generator: []
";

const TODAY: &str = "\
# Through a wall.
blackhole:
  - http:
      binding_addr: \"127.0.0.1:8080\" # loopback
generator: []
";

#[test]
fn old_spellings_are_reported_with_their_places_and_rewritten_in_place() {
    let suite = Suite::new();
    let file = suite.file("cases/one/lading/lading.yaml", OLD);
    suite.file("cases/one/notes.yaml", "a: b\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let output = suite.call(&["lint", "cases"]);
    assert_code(&output, 1);
    assert_holds(
        &output.stderr,
        &[
            "W405",
            "`blackhole` is a map",
            "cases/one/lading/lading.yaml:2:1",
        ],
    );
    assert_holds(
        &output.stdout,
        &["1 file, 1 outdated spelling; `--fix` rewrites 1"],
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), OLD);
    let fixed = suite.call(&["lint", "--fix", "cases"]);
    assert_code(&fixed, 0);
    assert_holds(
        &fixed.stdout,
        &["1 rewritten", "1 outdated spelling rewritten"],
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), TODAY);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let folder = fs::read_dir(file.parent().unwrap()).unwrap();
    assert_eq!(folder.count(), 1);
    let again = suite.call(&["lint", "--fix", "cases"]);
    assert_code(&again, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), TODAY);
}

#[test]
fn what_has_no_counterpart_is_left_and_fails() {
    let suite = Suite::new();
    let text = "generator:\n  - tcp: {throttle: {predictive: {}}}\n";
    let file = suite.file("lading.yaml", text);
    let output = suite.call(&["lint", "--fix", "lading.yaml"]);
    assert_code(&output, 1);
    assert_holds(&output.stderr, &["`predictive` was removed"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    let none = suite.call(&["lint", "nowhere"]);
    assert_code(&none, 2);
    assert_holds(&none.stderr, &["no such file or folder: nowhere"]);
}
