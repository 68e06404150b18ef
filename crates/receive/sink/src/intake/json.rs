//! Counts of elements of JSON, without a tree of it.

use memchr::memchr2;

/// Returns the number of consecutive objects in `bytes`, with or without space
/// between them; `None` where something else does, or one does not end.
pub(super) fn count_objects(bytes: &[u8]) -> Option<u64> {
    let (mut objects, mut depth, mut at) = (0, 0_u32, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                if depth == 0 && *byte == b'[' {
                    return None;
                }
                depth = depth.checked_add(1)?;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                objects += u64::from(depth == 0);
            }
            b'"' if depth > 0 => at = end_of_string(bytes, at)?,
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ if depth > 0 => {}
            _ => return None,
        }
    }
    (depth == 0).then_some(objects)
}

/// The place behind the string whose first character is `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let end = at + memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[end] == b'"' {
            return Some(end + 1);
        }
        // An escaped character is no end.
        at = end + 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn objects_are_counted_however_they_are_set_apart() {
        for (text, objects) in [
            ("", Some(0)),
            (" \n", Some(0)),
            (r#"{"a":1}"#, Some(1)),
            (r#"{"a":1}{"b":[{}]}"#, Some(2)),
            ("{\"a\":\"}{\\\"\"}\n {}\r\n{}", Some(3)),
            ("{", None),
            ("}", None),
            ("[{}]", None),
            ("word", None),
            (r#"{"a":"}"#, None),
        ] {
            assert_eq!(count_objects(text.as_bytes()), objects, "{text}");
        }
    }

    fn values() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(|number| number.to_string()),
            "[a-z{}\\[\\]\"\\\\ \n]{0,8}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| format!("[{}]", items.join(","))),
                inner.prop_map(|value| format!("{{\"k\": {value}}}")),
            ]
        })
    }

    proptest! {
        #[test]
        fn for_all_objects_their_number_is_found(
            bodies in prop::collection::vec((values(), "[ \n]{0,2}"), 0..6),
        ) {
            let objects = bodies.iter().map(|(value, space)| format!("{{\"event\":{value}}}{space}"));
            let text: String = objects.collect();
            prop_assert_eq!(count_objects(text.as_bytes()), Some(bodies.len() as u64));
        }

        #[test]
        fn for_all_bytes_counting_ends(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            count_objects(&bytes);
        }
    }
}
