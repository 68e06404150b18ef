use super::*;
use crate::Severity;

fn tree(text: &str) -> Node {
    let (node, errors) = parse(&Source::new("a.yaml", text)).unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    node
}

#[test]
fn everything_has_its_place() {
    let text = "é:\n  b: [1, 'two']\n";
    let root = tree(text);
    let slice = |span: Span| &text[span.start..span.end];
    let inner = root.entry("é").unwrap();
    assert_eq!(slice(inner.span), "é");
    let Value::List(list) = &inner.entry("b").unwrap().value else {
        panic!("a list");
    };
    assert_eq!(slice(list[0].span), "1");
    assert_eq!(slice(list[1].span), "'two'");
    assert!(matches!(&list[1].value, Value::Scalar { text, quoted: true } if text == "two"));
}

#[test]
fn aliases_are_copies() {
    let root = tree("a: &x {n: 1}\nb: *x\n");
    assert!(root.entry("b").unwrap().entry("n").is_some());
}

#[test]
fn nothing_is_null() {
    assert!(matches!(tree("").value, Value::Null));
    assert!(matches!(tree("# only words\n").value, Value::Null));
    assert!(matches!(
        tree("a:\n").entry("a").unwrap().value,
        Value::Null
    ));
}

#[test]
fn a_key_that_occurs_twice_is_an_error() {
    let (_, errors) = parse(&Source::new("a.yaml", "a: 1\nb: 2\na: 3\n")).unwrap();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].place.as_ref().unwrap().start().line, 3);
}

#[test]
fn the_last_of_repeated_keys_counts_where_they_are_accepted() {
    let source = Source::new("a.yaml", "a: 1\nb: 2\na: {c: 3}\na: {c: 4}\n");
    let (root, warnings) = parse_repeated(&source).unwrap();
    let severities: Vec<_> = warnings.iter().map(|warning| warning.severity).collect();
    assert_eq!(severities, [Severity::Warning, Severity::Warning]);
    assert_eq!(root.entries().unwrap().len(), 2);
    let c = root.entry("a").unwrap().entry("c").unwrap();
    assert!(matches!(&c.value, Value::Scalar { text, .. } if text == "4"));
}

#[test]
fn what_is_not_yaml_has_a_place() {
    for text in [
        "a: [1,\n",
        "a: b: c\n",
        "a: 1\n---\nb: 2\n",
        "*x\n",
        "a: \"\\q\"",
    ] {
        let error = parse(&Source::new("a.yaml", text)).unwrap_err();
        let place = error.place.unwrap();
        assert!(place.span.end <= text.len(), "{text:?}");
    }
}

#[test]
fn aliases_of_aliases_do_not_fill_the_memory() {
    let mut text = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let error = parse(&Source::new("a.yaml", text)).unwrap_err();
    assert!(error.message.contains("aliases included"));
}

#[test]
fn aliases_of_long_texts_do_not_fill_the_memory() {
    let long = "x".repeat(400_000);
    for text in [
        format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 10_000].join(",")),
        // A tag is a text, too.
        format!("a: &a !{long} x\nb: [{}]\n", vec!["*a"; 10_000].join(",")),
        // Each anchor keeps the values inside.
        (0..200).fold(long, |inner, level| format!("[&a{level} {inner}]")),
    ] {
        let error = parse_tagged(&Source::new("a.yaml", text)).unwrap_err();
        assert_eq!(
            error.message,
            "more than 64 MiB of values, aliases included"
        );
    }
}

#[test]
fn an_indent_with_a_tab_is_named_where_it_is() {
    let text = "target:\n\tcommand: [a]\nphases:\n  measure: 3s\n";
    let error = parse(&Source::new("a.yaml", text)).unwrap_err();
    assert_eq!(error.message, "a tab indents this line");
    assert_eq!(error.place.unwrap().span.start, 8);
    // Within a value a tab is text.
    assert!(parse(&Source::new("a.yaml", "a: \"b\tc\"\n")).is_ok());
}

#[test]
fn a_tab_is_named_only_where_it_is_the_error() {
    for (text, tab) in [
        ("a: b\n\tc: d\n", Some(5)),
        ("a: b # c\n\td: e\n", Some(9)),
        ("a: 'b'\n\tc: d\n", Some(7)),
        ("a: |\n\tb\n", Some(5)),
        // Tabs in a block scalar and before a comment are permitted.
        ("a: |\n  b\n  \tc\nd: e: f\n", None),
        ("a: b: c\n\t# d\n", None),
        ("\t# a\nb: c: d\n", None),
    ] {
        let error = parse(&Source::new("a.yaml", text)).unwrap_err();
        let is_tab = error.message == "a tab indents this line";
        assert_eq!(is_tab, tab.is_some(), "{text:?}: {}", error.message);
        if let Some(tab) = tab {
            assert_eq!(error.place.unwrap().span.start, tab, "{text:?}");
        }
    }
}
