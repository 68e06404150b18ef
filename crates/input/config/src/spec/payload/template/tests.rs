use proptest::prelude::*;
use stillwell_text::Source;

use super::*;

fn read_text(text: &str) -> Result<TemplatePlan, String> {
    let reader = Reader::new(Source::new("template.yaml", text));
    let plan = reader.parse().and_then(|root| read_here(&reader, &root));
    let diagnostics = reader.finish();
    match plan {
        Some(plan) if !diagnostics.has_errors() => Ok(plan),
        _ => Err(diagnostics.to_string()),
    }
}

const EVERYTHING: &str = r#"
define:
  tag: ["a", {weight: 3, text: "{word}={int 1..9}"}]
  request: "{hex 8}"
lines:
  - weight: 9
    text: '{time} {time rfc3164} {time epoch_ns} {time "%d/%b/%Y %T%.3f"} {same request}'
  - text: '{{a {"b":{int -5..1000 pad 4},"c":{float -1.5..2 decimals 2}}} {same request}'
  - '{choice GET "PO ST"} {weighted 3:a 1:"b c"} {seq} {seq 7} {repeat 0..3 tag ", "}{stamp}'
  - '{word}{user}{host}{application}{path}{message}{uuid}{ipv4}{ipv6}'
  - '{digits 3}{letters 4}{base64 5}{use tag}'
end: ";"
"#;

#[test]
fn every_field_is_read() {
    let plan = format!("{:?}", read_text(EVERYTHING).unwrap());
    insta::assert_snapshot!(plan.replace(", (", ",\n("));
}

/// Examples of the documentation are accepted.
#[test]
fn the_example_of_the_documentation_is_read() {
    let page = include_str!("../../../../../../../docs/formats/template.md");
    let (_, block) = page.split_once("```yaml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let plan = crate::tests::run_plan(block).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    assert!(plan.plan.generators[0].payload.format.template().is_some());
    for (name, _) in field::FIELDS {
        assert!(page.contains(&format!("`{{{name}")), "{name} is not told");
    }
}

#[test]
fn braces_are_literal_where_no_field_begins() {
    let plan = read_text(r#"'{"a":{},"b":{{c},{1}}'"#).unwrap();
    let TemplatePart::Sequence(parts) = &plan.root else {
        panic!("{plan:?}");
    };
    let text = TemplatePart::Text(r#"{"a":{},"b":{c},{1}}"#.to_owned());
    assert_eq!(parts[0], TemplatePart::Sequence(vec![text]));
}

#[test]
fn mistakes_are_named_with_their_place() {
    let mut messages = String::new();
    for text in [
        "'a {wrod} b'",
        "'a {word} {word 3}'",
        "'{int 5}'",
        "'{int 5..1}'",
        "'{int 1..5 pda 3}'",
        "'{float 0..x}'",
        "'{weighted a:3}'",
        "'{choice}'",
        "'{time %Q}'",
        "'{hex 0}'",
        "'{use thing}'",
        "define: {a: '{same a}'}\nlines: b",
        "define:\n  a: '{use b}'\n  b: '{use a}'\nlines: '{use a}'",
        "'{word'",
        "'{choice \"a}'",
        "lines: []",
        "lines: [{weight: 0, text: a}]",
        "define: {a: '{letters 8000}'}\nlines: '{repeat 0..1000 a}'",
    ] {
        messages.push_str(&read_text(text).unwrap_err());
        messages.push('\n');
    }
    insta::assert_snapshot!(messages);
}

proptest! {
    /// For all texts: they are read or refused, and what is read can be made.
    #[test]
    fn any_text_is_read_or_refused(text in "[{}a-z0-9 .:\"'é]{0,40}") {
        let mut grammar = Grammar::new(&["a", "b"], Names::Line);
        match grammar.parse(&text) {
            Ok(_) => {}
            Err(mistake) => prop_assert!(text.get(mistake.start..mistake.end).is_some()),
        }
    }
}
