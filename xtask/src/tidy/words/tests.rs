use super::super::files::SourceFile;
use super::find;
use super::names::{bindings, defined_type, parts};
use super::scripts::script_bindings;

/// The findings of one file of crate `http`, as `line kind word`.
fn findings_of(text: &str) -> Vec<String> {
    found_in("crates/make/http/src/a.rs", text)
}

fn found_in(path: &str, text: &str) -> Vec<String> {
    let source = SourceFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let findings = find([&source]).into_iter();
    let shown = findings.map(|finding| {
        format!(
            "{} {} {}",
            finding.line,
            finding.kind.heading(),
            finding.word
        )
    });
    shown.collect()
}

#[test]
fn identifiers_are_split_at_underscores_and_capitals() {
    let cases: [(&str, &[&str]); 5] = [
        ("asked_rate", &["asked", "rate"]),
        ("AskedRate", &["asked", "rate"]),
        ("ASKED_RATE", &["asked", "rate"]),
        ("http2Lane", &["http", "lane"]),
        ("label", &["label"]),
    ];
    for (identifier, expected) in cases {
        assert_eq!(parts(identifier), expected, "{identifier}");
    }
}

#[test]
fn definitions_of_types_are_recognised() {
    let cases = [
        ("pub struct State {", Some(("State", true))),
        ("pub(crate) enum State {", Some(("State", true))),
        (
            "pub(in crate::a) trait State: Send {",
            Some(("State", true)),
        ),
        ("    struct State;", Some(("State", false))),
        ("type State = u8;", Some(("State", false))),
        ("    type State = u8;", None),
        ("let state = State;", None),
        ("impl Clone for State {", None),
    ];
    for (code, expected) in cases {
        assert_eq!(defined_type(code), expected, "{code}");
    }
}

#[test]
fn bindings_are_the_names_that_a_line_defines() {
    let cases: [(&str, &[&str]); 14] = [
        ("let own = 1;", &["own"]),
        ("let (own, mut one) = two;", &["own", "one"]),
        ("if let Some(own) = value(one) {", &["own"]),
        (".map(|own| own.name)", &["own"]),
        (".fold(0, |(own, one), other| 0)", &["own", "one", "other"]),
        ("for own in one {", &["own"]),
        ("fn own(one: u8) -> u8 {", &["own", "one"]),
        ("    own: u8,", &["own"]),
        ("Some(own) if one => other,", &["own"]),
        ("mod own;", &["own"]),
        ("other => 1,", &[]),
        ("fn eq(&self, other: &Self) -> bool {", &["eq"]),
        ("own::one(other.it)", &[]),
        ("a || own || one", &[]),
    ];
    for (code, expected) in cases {
        assert_eq!(bindings(code), expected, "{code}");
    }
}

#[test]
fn words_are_found_where_they_are_banned() {
    let cases: [(&str, &[&str]); 12] = [
        ("fn tell_all() {}", &["1 name tell_all"]),
        ("fn label() { intelligent() }", &[]),
        ("let own = a.own;", &["1 name own"]),
        ("call(own)", &[]),
        ("/// What it is.\nfn a() {}", &["1 comment what …"]),
        (
            "/// A number.\n/// What follows it is free.\nfn a() {}",
            &[],
        ),
        ("// What is free here.", &[]),
        ("// A reader is told so. Long ago.", &["1 comment told"]),
        ("// It waits so\n// long as it can.", &["1 comment so long"]),
        ("// `whoever` and\n// ```\n// whoever\n// ```\n", &[]),
        ("call(\"{told} stands: {\");", &["1 text stands"]),
        (
            "call(\"a doubled\\nlab\");",
            &["1 text doubled", "1 text lab"],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(findings_of(text), expected, "{text}");
    }
}

#[test]
fn tests_are_counted_apart_and_their_texts_are_free() {
    let text = "#[cfg(test)]\nmod tests {\n    fn told() { a(\"told\") }\n    // told\n}\n";
    assert_eq!(findings_of(text), ["3 test told", "4 test told"]);
    let path = "crates/make/http/tests/a.rs";
    assert_eq!(found_in(path, "fn told() { a(\"told\") }"), ["1 test told"]);
}

#[test]
fn documents_are_checked_outside_code() {
    let text = "The reader is told.\n```\ntold\n```\n`told` [a](told.md) docs/told.md\n";
    assert_eq!(found_in("docs/a.md", text), ["1 document told"]);
    assert_eq!(found_in("crates/a/tests/a.md", "told"), [""; 0]);
}

#[test]
fn a_type_name_is_defined_once_in_its_crate() {
    let source = |path: &str, text: &str| SourceFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let sources = [
        source(
            "crates/make/http/src/a.rs",
            "pub struct State;\nenum Part {}\n",
        ),
        source("crates/make/http/src/b.rs", "struct Part;\nstruct State;\n"),
        source("crates/make/http/src/tests.rs", "pub struct State;\n"),
        source("crates/make/wire/src/a.rs", "pub struct State;\n"),
    ];
    let findings = find(&sources).into_iter();
    let shown: Vec<String> = findings
        .map(|finding| {
            format!(
                "{}:{} {} {}",
                finding.path, finding.line, finding.word, finding.instead
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "crates/make/http/src/a.rs:1 State also defined at crates/make/http/src/b.rs:2",
            "crates/make/http/src/a.rs:2 Part also defined at crates/make/http/src/b.rs:1",
            "crates/make/http/src/b.rs:1 Part also defined at crates/make/http/src/a.rs:2",
            "crates/make/http/src/b.rs:2 State also defined at crates/make/http/src/a.rs:1",
        ]
    );
}

#[test]
fn a_word_is_permitted_where_an_exception_names_it() {
    let path = "crates/make/broker/src/nats.rs";
    assert_eq!(found_in(path, "// subjects are told"), ["1 comment told"]);
}

#[test]
fn comments_of_scripts_and_manifests_are_prose() {
    let text = "#!/usr/bin/env bash\n# It was told.\necho told # told\n";
    assert_eq!(found_in(".ci/a", text), ["2 comment told"]);
    assert_eq!(
        found_in("crates/a/Cargo.toml", "# told\n"),
        ["1 comment told"]
    );
    assert_eq!(found_in("docs/a.txt", "# told\n"), [""; 0]);
}

#[test]
fn bindings_of_scripts_are_the_names_that_a_line_defines() {
    let cases: [(&str, &[&str]); 22] = [
        ("own=1 one= run \"$other\"", &["one", "own"]),
        ("    local own one=$(run) other", &["one", "other", "own"]),
        ("export own=$1", &["own"]),
        ("[ -z \"$own\" ] || run own=1", &[]),
        ("for own in $(seq 3); do", &["own"]),
        ("while read -r own one; do", &["one", "own"]),
        ("own() {", &["own"]),
        ("# own=1", &[]),
        ("run # own=1", &[]),
        ("run -addext own=1", &[]),
        ("own, self.one = 1, other", &["one", "own"]),
        ("if own == 1:", &[]),
        ("call(own=1, one=other)", &[]),
        ("[own.a for own, (one, it) in other]", &["it", "one", "own"]),
        ("def own(self, *one, it=2):", &["it", "one", "own", "self"]),
        ("key = lambda own, one: 1", &["key", "one", "own"]),
        ("with open(it) as own:", &["own"]),
        ("if (own := it):", &["own"]),
        ("print(f\"own = {one}\")", &[]),
        ("own[one] = it", &[]),
        ("class Own:", &["Own"]),
        ("a sentence for one and it", &[]),
    ];
    for (line, expected) in cases {
        assert_eq!(script_bindings(line), expected, "{line}");
    }
}

#[test]
fn names_of_scripts_are_checked() {
    let text = "#!/usr/bin/env bash\ntold=1\npython3 - <<'END'\ntext = \"\"\"\nown = 1\n\"\"\"\none = told\nEND\n";
    assert_eq!(found_in(".ci/a", text), ["2 name told", "7 name one"]);
    assert_eq!(found_in("docs/a.py", "told = 1\n"), ["1 name told"]);
    assert_eq!(found_in("docs/a.yaml", "a: told = 1\n"), [""; 0]);
    assert_eq!(found_in(".ci/brokers.py", "def count(subject):\n"), [""; 0]);
}
