use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

fn place(text: &str) -> PlaceBelow {
    PlaceBelow::parse(text).unwrap()
}

#[test]
fn addresses_that_leave_their_root_are_refused() {
    for text in [
        "", "/", "x/a", "-1/a", "0/", "0//a", "0/..", "0/a/../b", "0/.", "0/a/.", "0/a\0b",
        "0/a\\b", "+0/a/", "0001/a",
    ] {
        assert!(PlaceBelow::parse(text).is_err(), "{text:?}");
    }
    let long = format!("0/{}", "a".repeat(256));
    assert!(PlaceBelow::parse(&long).is_err());
    let deep = format!("0{}", "/a".repeat(33));
    assert!(PlaceBelow::parse(&deep).is_err());
    assert_eq!(place("0").names, [""; 0]);
    assert_eq!(place("1/a b/ü.yaml").link(), "1/a%20b/%C3%BC.yaml");
}

proptest! {
    #[test]
    fn for_all_texts_an_accepted_address_is_below_its_root(text in "[0-9a-c./\\\\\\x00 %]{0,40}") {
        if let Ok(place) = PlaceBelow::parse(&text) {
            let path: PathBuf = place.names.iter().collect();
            let all_normal = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            prop_assert!(all_normal);
            prop_assert_eq!(PlaceBelow::parse(&place.address()).unwrap(), place);
        }
    }
}

#[test]
fn links_are_neither_read_nor_written() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.yaml"), "secret").unwrap();
    let inside = tempfile::tempdir().unwrap();
    symlink(outside.path(), inside.path().join("folder")).unwrap();
    symlink(
        outside.path().join("secret.yaml"),
        inside.path().join("file.yaml"),
    )
    .unwrap();
    let roots = ResultRoots::new(vec![inside.path().to_path_buf()]);
    for text in ["0/folder/secret.yaml", "0/file.yaml"] {
        let place = place(text);
        assert!(
            matches!(roots.path(&place), Err(PlaceError::Link(_))),
            "{text}"
        );
        assert!(
            matches!(roots.read_text(&place, 100), Err(PlaceError::Link(_))),
            "{text}"
        );
        assert!(roots.replace_text(&place, "new").is_err(), "{text}");
    }
    let kept = fs::read_to_string(outside.path().join("secret.yaml")).unwrap();
    assert_eq!(kept, "secret");
    assert!(roots.path(&place("1/file.yaml")).is_err());
}

#[test]
fn a_file_is_replaced_and_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let inside = tempfile::tempdir().unwrap();
    let path = inside.path().join("a.yaml");
    fs::write(&path, "old").unwrap();
    let roots = ResultRoots::new(vec![inside.path().to_path_buf()]);
    let place = place("0/a.yaml");
    // The usual umask removes permissions of new files, such as writing by a group.
    for mode in [0o640, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        roots.replace_text(&place, "new").unwrap();
        let kept = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(kept, mode, "{kept:o} {mode:o}");
    }
    assert_eq!(roots.read_text(&place, 3).unwrap(), "new");
    assert!(matches!(
        roots.read_text(&place, 2),
        Err(PlaceError::Large { .. })
    ));
    // Nothing is made that was not there, and folders and pipes are no text.
    assert!(
        roots
            .replace_text(&PlaceBelow::parse("0/b.yaml").unwrap(), "new")
            .is_err()
    );
    assert!(
        roots
            .read_text(&PlaceBelow::parse("0").unwrap(), 9)
            .is_err()
    );
    assert_eq!(fs::read_dir(inside.path()).unwrap().count(), 1);
}
