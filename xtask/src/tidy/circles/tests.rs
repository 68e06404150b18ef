use super::{SourceFile, check_with, circles};

fn sources(files: &[(&str, &str)]) -> Vec<SourceFile> {
    let files = files.iter().map(|(path, text)| SourceFile {
        path: format!("crates/make/load/src/{path}"),
        text: (*text).to_owned(),
    });
    files.collect()
}

fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let sources = sources(files);
    let sources: Vec<&SourceFile> = sources.iter().collect();
    circles("crates/make/load", &sources)
}

#[test]
fn files_that_import_each_other_are_a_circle() {
    for (name, files, expected) in [
        (
            "by a path from the root, in groups and over lines",
            &[
                ("lib.rs", "mod a;\nmod b;\nmod c;"),
                (
                    "a.rs",
                    "use crate::{\n    b::B,\n    c::{self, D as E},\n};",
                ),
                ("b.rs", "use crate::c::C;"),
                ("c.rs", "use super::a;"),
            ][..],
            vec![vec!["a.rs", "b.rs", "c.rs"]],
        ),
        (
            "in code",
            &[
                ("a.rs", "fn f() { crate::b::g(); }"),
                ("b.rs", "fn g(it: &super::a::A) {}"),
            ],
            vec![vec!["a.rs", "b.rs"]],
        ),
        (
            "a parent and its child",
            &[("a.rs", "mod b;\nuse b::B;"), ("a/b.rs", "use super::A;")],
            vec![vec!["a.rs", "a/b.rs"]],
        ),
        (
            "an item that the root passes on counts for its file",
            &[
                ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;"),
                ("a.rs", "use crate::B;"),
                ("b.rs", "use std::fmt;"),
            ],
            vec![],
        ),
        (
            "a module that is only declared is not imported",
            &[("a.rs", "mod b;"), ("a/b.rs", "use super::A;")],
            vec![],
        ),
        (
            "tests and comments do not count",
            &[
                ("a.rs", "use crate::b::B;"),
                (
                    "b.rs",
                    "// use crate::a::A;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}",
                ),
                ("b/tests.rs", "use crate::a::A;"),
            ],
            vec![],
        ),
    ] {
        assert_eq!(circles_of(files), expected, "{name}");
    }
}

#[test]
fn a_path_in_code_is_an_import() {
    for (name, files, expected) in [
        (
            "from a parent to its child",
            &[
                ("a.rs", "mod b;\nfn f() { b::g(); }"),
                ("a/b.rs", "use super::A;"),
            ][..],
            vec![vec!["a.rs", "a/b.rs"]],
        ),
        (
            "through the name that a `use` gives to a module",
            &[
                ("a.rs", "use crate::b as c;\nfn f() { c::g(); }"),
                ("b.rs", "mod d;\npub use self::d::g;"),
                ("b/d.rs", "use crate::a::A;"),
            ],
            vec![vec!["a.rs", "b/d.rs"]],
        ),
        (
            "not to a type of the file, a crate or an associated item",
            &[
                (
                    "a.rs",
                    "mod b;\nuse std::fmt;\nfn f() { fmt::g(); A::h(); <A as C>::b(); }",
                ),
                ("a/b.rs", "use super::A;"),
            ],
            vec![],
        ),
    ] {
        assert_eq!(circles_of(files), expected, "{name}");
    }
}

#[test]
fn a_large_circle_is_a_problem_unless_the_table_has_it() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let text = |index: usize| format!("use crate::{}::X;", names[(index + 1) % names.len()]);
    let texts: Vec<(String, String)> = (0..names.len())
        .map(|index| (format!("{}.rs", names[index]), text(index)))
        .collect();
    let files: Vec<(&str, &str)> = texts
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let sources = sources(&files);
    let problems = check_with(&sources, &[]);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].path, "crates/make/load/src/a.rs");
    assert!(
        problems[0].message.starts_with("6 files"),
        "{}",
        problems[0]
    );
    assert_eq!(check_with(&sources, &[("load", 6)]), []);
    assert_eq!(check_with(&sources, &[("load", 5)]).len(), 1);
    assert_eq!(check_with(&sources, &[("wire", 9)]).len(), 2);
}

#[test]
fn the_table_has_the_exact_number_of_files_in_circles() {
    let sources = sources(&[("a.rs", "use crate::b::X;"), ("b.rs", "use crate::a::X;")]);
    assert_eq!(check_with(&sources, &[]), []);
    let problems = check_with(&sources, &[("load", 7)]);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].path, "xtask/src/tidy/table.rs");
    assert!(
        problems[0].message.contains("7 files") && problems[0].message.contains("0 are left"),
        "{}",
        problems[0]
    );
}
