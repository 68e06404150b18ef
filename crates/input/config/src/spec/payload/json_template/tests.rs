use stillwell_plan::payload::Between;

use super::*;

fn read(text: &str) -> Result<TemplatePlan, String> {
    let (plan, diagnostics) = read_template(&Source::new("template.yaml", text));
    match plan {
        Some(plan) if !diagnostics.has_errors() => Ok(plan),
        _ => Err(diagnostics.to_string()),
    }
}

const EVERYTHING: &str = r#"
definitions:
  level: !weighted
    - {weight: 3, value: !const info}
    - {weight: 1, value: !choose [warn, "1", 1, 2.50, null, true, [a, {b: 0x10}]]}
generator: !with
  bind:
    id: !range {min: -5, max: 99}
    who: !format {template: "a\"{}", args: [!reference level]}
  in: !object
    message: !format {template: "id {} of {}", args: [!var id, !var who]}
    at: !timestamp
    many: !array {length: {min: 0, max: 2}, element: !var id}
    three: !array {length: 3, element: !const {}}
    some: !array {length: [1, 4], element: !const ""}
    all: !concat [!const [1], !const [2]]
"#;

#[test]
fn every_generator_is_read() {
    insta::assert_snapshot!(format!("{:?}", read(EVERYTHING).unwrap()).replace(", (", ",\n("));
    let plan = read("generator: !const {a: 012, b: 'x', c: ~, d: 1e3}").unwrap();
    assert_eq!(plan.lengths(), Ok(Between::new(40, 40)));
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, place, message) in [
        ("generator: !cosnt 1", "1:", "`!const`"),
        // At the tag, and not at the content below it.
        (
            "generator: !objet # what\n  a: !const 1",
            "1:12",
            "`!object`",
        ),
        ("generator: !objet &a\n\n  a: !const 1", "1:12", "`!object`"),
        ("generator: 1", "1:", "a generator such as"),
        (
            "definitions: {a: !reference b}\ngenerator: !const 1",
            "1:",
            "unknown definition `b`",
        ),
        (
            "definitions:\n  a: !reference a\ngenerator: !const 1",
            "2:",
            "refers to itself",
        ),
        ("generator: !var x", "1:", "unknown variable `x`"),
        (
            "generator: !with {bind: {x: !const 1, y: !var x}, in: !var y}",
            "1:",
            "unknown variable `x`",
        ),
        (
            "generator: !range {min: 2, max: 1}",
            "1:",
            "2 is more than 1",
        ),
        ("generator: !choose []", "1:", "the list is empty"),
        (
            "generator: !weighted [{weight: 0, value: !const 1}]",
            "1:",
            "every weight is 0",
        ),
        (
            "generator: !format {template: '{} {}', args: []}",
            "1:",
            "2 places",
        ),
        ("generator: !object [1]", "1:", "a map of names"),
        (
            "generator: !array {length: 9999999, element: !const 1}",
            "1:",
            "an event could have",
        ),
        ("generaor: !const 1", "1:", "did you mean `generator`"),
    ] {
        let diagnostics = read(text).unwrap_err();
        assert!(diagnostics.contains(message), "{text}\n{diagnostics}");
        assert!(
            diagnostics.contains(&format!("template.yaml:{place}")),
            "{text}\n{diagnostics}"
        );
    }
}
