use proptest::prelude::*;

use super::*;

fn count(content_type: Option<&str>, content_encoding: Option<&str>, parts: &[&[u8]]) -> u64 {
    let mut events = BodyEvents::new(content_type, content_encoding);
    for part in parts {
        events.take(part);
    }
    events.finish()
}

#[test]
fn bodies_hold_as_many_events_as_readers_count() {
    let json = Some("application/json");
    for (content_type, body, events) in [
        (None, "", 0),
        (None, "a", 1),
        (None, "a\nb\n", 2),
        (None, "a\nb", 2),
        (None, "\n\n", 2),
        (None, "[1,2,3]", 1),
        (Some("text/plain"), "[1,2,3]", 1),
        // Without a type, an array of objects is JSON, and text in brackets is text.
        (None, "[{\"a\":1},{\"a\":2}]", 2),
        (Some(""), "\n[ \n{},{}]", 2),
        (Some("text/plain"), "[{},{}]", 1),
        (None, "[a] b\n[c] d\n", 2),
        (None, "[\n\n", 2),
        (None, "[", 1),
        (json, "[1,2,3]", 3),
        (Some("Application/JSON; charset=utf-8"), "[1,2]", 2),
        (Some("application/jsonlines"), "[1,2]\n", 1),
        (json, " \n[ ]", 0),
        (json, "[]\n", 0),
        (json, "[[1,2],[3],{\"a\":[4,5]}]\n\n", 3),
        (json, r#"["a,b","]","\"],[","\\",""]"#, 5),
        (json, "[1]\n[2,3]", 1),
        (json, "{\"a\":[1,2]}\n{\"b\":1}\n", 2),
        (json, "\n\n", 2),
        (json, "null", 1),
        (json, "[1,2", 2),
    ] {
        let whole = count(content_type, None, &[body.as_bytes()]);
        assert_eq!(whole, events, "{content_type:?} {body}");
        let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
        assert_eq!(count(content_type, None, &bytes), events, "{body} by bytes");
    }
}

#[test]
fn encoded_bodies_are_not_looked_into() {
    assert_eq!(count(None, Some("gzip"), &[b"a\nb\n"]), 0);
    assert_eq!(count(None, Some("Identity"), &[b"a\nb\n"]), 2);
}

/// Any JSON value, as text.
fn json() -> impl Strategy<Value = String> {
    let text = r#"([a-z,:\[\]{} ]|\\"|\\\\){0,6}"#;
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i32>().prop_map(|number| number.to_string()),
        text.prop_map(|text| format!("\"{text}\"")),
    ];
    leaf.prop_recursive(3, 20, 4, move |inner| {
        let array = prop::collection::vec(inner.clone(), 0..4)
            .prop_map(|values| format!("[{}]", values.join(" , ")));
        let object = prop::collection::vec((text, inner), 0..4).prop_map(|members| {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("\"{name}\":{value}"))
                .collect();
            format!("{{{}}}", members.join(","))
        });
        prop_oneof![array, object]
    })
}

proptest! {
    #[test]
    fn for_all_json_arrays_the_elements_are_counted_however_they_are_cut(
        values in prop::collection::vec(json(), 0..8),
        separator in prop::sample::select(vec![",", ", ", "\n,"]),
        part_bytes in 1..40_usize,
    ) {
        let body = format!("[{}]\n", values.join(separator));
        let parts: Vec<&[u8]> = body.as_bytes().chunks(part_bytes).collect();
        prop_assert_eq!(count(Some("application/json"), None, &parts), values.len() as u64);
    }

    #[test]
    fn for_all_bytes_lines_are_counted_however_they_are_cut(
        body in prop::collection::vec(prop::sample::select(b"a\n".to_vec()), 0..60),
        part_bytes in 1..20_usize,
    ) {
        let parts: Vec<&[u8]> = body.chunks(part_bytes).collect();
        let expected = body.split_inclusive(|byte| *byte == b'\n').count() as u64;
        prop_assert_eq!(count(None, None, &parts), expected);
    }
}

/// Bytes in which those with a meaning are frequent, and elements long.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        8 => Just(b'a'),
        1 => prop::sample::select(br#"[]{},"\ "#.to_vec()),
    ];
    prop::collection::vec(byte, 0..1_000)
}

proptest! {
    /// Blocks are taken at once and single bytes are not: both count alike, for all bytes.
    #[test]
    fn for_all_bytes_blocks_have_as_many_elements_as_their_bytes(noise in noise(), cut in 1_usize..200) {
        let body = [b"[".as_slice(), &noise].concat();
        let parts = |length| body.chunks(length).collect::<Vec<_>>();
        let json = Some("application/json");
        let slowly = count(json, None, &parts(1));
        prop_assert_eq!(count(json, None, &parts(body.len())), slowly);
        prop_assert_eq!(count(json, None, &parts(cut)), slowly);
    }
}
