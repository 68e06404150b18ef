use super::{SILENCED, UNFINISHED, UNFINISHED_MACROS, check, check_unsafe_entries};
use crate::tidy::files::SourceFile;

fn messages_of(path: &str, text: &str) -> Vec<String> {
    check(path, text).iter().map(ToString::to_string).collect()
}

fn passes(path: &str, text: &str) {
    assert_eq!(messages_of(path, text), [""; 0], "{path}: {text}");
}

fn fails(path: &str, text: &str, part: &str) {
    let messages = messages_of(path, text);
    assert_eq!(messages.len(), 1, "{path}: {text}: {messages:?}");
    assert!(messages[0].contains(part), "{messages:?}");
}

#[test]
fn files_and_lines_have_a_length() {
    passes("crates/make/wire/src/lib.rs", &"\n".repeat(800));
    fails(
        "crates/make/wire/src/lib.rs",
        &"\n".repeat(801),
        "lib.rs:801: 801 lines",
    );
    passes("crates/make/wire/src/lib.rs", &"é".repeat(140));
    fails(
        "crates/make/wire/src/lib.rs",
        &"x".repeat(141),
        "lib.rs:1: 141 columns",
    );
}

#[test]
fn modules_are_files_beside_their_folder() {
    fails("crates/make/wire/src/tcp/mod.rs", "", "`mod.rs`");
    passes("crates/make/wire/src/mod_rs.rs", "");
}

#[test]
fn lints_are_expected_not_silenced() {
    for attribute in SILENCED {
        fails(
            "crates/make/wire/src/lib.rs",
            &format!("{attribute}dead_code)]"),
            "expect",
        );
        passes(
            "crates/make/wire/src/lib.rs",
            &format!("// {attribute}dead_code)]"),
        );
    }
    passes(
        "crates/make/wire/src/lib.rs",
        "#[expect(dead_code, reason = \"why\")]",
    );
}

#[test]
fn nothing_is_left_unfinished() {
    for word in UNFINISHED {
        fails(
            "crates/make/wire/src/lib.rs",
            &format!("// {}: later", word.to_uppercase()),
            "comment",
        );
        passes(
            "crates/make/wire/src/lib.rs",
            &format!("let {word} = \"{word}\";"),
        );
    }
    for word in UNFINISHED_MACROS {
        fails(
            "crates/make/wire/src/lib.rs",
            &format!("{word}()"),
            "finish it",
        );
        passes(
            "crates/make/wire/src/lib.rs",
            &format!("let a = \"{word}()\";"),
        );
    }
}

#[test]
fn unsafe_is_in_listed_files_only() {
    fails(
        "crates/make/wire/src/lib.rs",
        "unsafe { a() }",
        "not on the table",
    );
    passes(
        "crates/make/wire/src/lib.rs",
        "#![forbid(unsafe_code)] // unsafe",
    );
}

#[test]
fn the_list_of_unsafe_files_is_not_stale() {
    let file = |path: &str, text: &str| SourceFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let sources = [file("a.rs", "unsafe { b() }"), file("b.rs", "// unsafe")];
    assert_eq!(check_unsafe_entries(&sources, &[("a.rs", "why")]), []);
    for path in ["b.rs", "gone.rs"] {
        assert_eq!(
            check_unsafe_entries(&sources, &[(path, "why")]).len(),
            1,
            "{path}"
        );
    }
}

#[test]
fn only_scope_spawns() {
    for code in [
        "std::thread::spawn(f);",
        "tokio::spawn(f);",
        "let mut set = JoinSet::new();",
        "thread::Builder::new()",
    ] {
        fails("crates/conduct/run/src/lib.rs", code, "only crate `scope`");
        passes("crates/make/scope/src/lib.rs", code);
        passes("crates/conduct/run/tests/it.rs", code);
        passes("crates/conduct/run/src/shell/tests.rs", code);
        passes(
            "crates/conduct/run/src/lib.rs",
            &format!("#[cfg(test)]\nmod tests {{\n{code}\n}}"),
        );
    }
    passes(
        "crates/target/target/src/child.rs",
        "std::process::Command::new(path).spawn()",
    );
}

#[test]
fn a_pure_crate_has_no_clock_and_no_file() {
    fails(
        "crates/make/pacer/src/lib.rs",
        "fn next(now: Instant) {}",
        "no clock",
    );
    fails(
        "crates/make/payload/src/lib.rs",
        "std::fs::read(path)",
        "no file",
    );
    passes(
        "crates/make/pacer/src/lib.rs",
        "fn next(now: Moment) {} // not an Instant",
    );
    passes("crates/make/scope/src/clock.rs", "Instant::now()");
    passes("crates/record/capture/src/lib.rs", "std::fs::read(path)");
    passes(
        "crates/make/pacer/src/lib.rs",
        "#[cfg(test)]\nmod tests { use std::time::Instant; }",
    );
}

#[test]
fn only_the_faces_print() {
    for code in ["println!(a)", "eprint!(a)"] {
        fails("crates/judge/report/src/lib.rs", code, "nothing is printed");
        for path in [
            "crates/faces/cli/src/main.rs",
            "xtask/src/main.rs",
            "benches/benches/tcp.rs",
            "crates/judge/report/examples/one.rs",
        ] {
            passes(path, code);
        }
    }
}

#[test]
fn what_was_typed_stays_in_config() {
    fails(
        "crates/conduct/run/src/lib.rs",
        "pub(crate) struct GoalSpec {",
        "`GoalSpec`",
    );
    passes(
        "crates/conduct/run/src/lib.rs",
        "pub(crate) struct Specimen { a: GoalSpec }",
    );
    passes(
        "crates/input/config/src/spec.rs",
        "pub(crate) struct GoalSpec {",
    );
    passes("crates/compat/lading/src/observe.rs", "enum Spec {");
}
