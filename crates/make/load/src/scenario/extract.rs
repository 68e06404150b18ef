//! Values of responses.

use std::collections::BTreeMap;

use regex::bytes::Regex;
use serde_json::value::RawValue;
use stillwell_plan::scenario::{ScenarioStepPlan, TakeFrom};

use super::result::ScenarioError;

/// A step with its regular expressions.
#[derive(Debug)]
pub(super) struct PreparedStep {
    pub(super) plan: ScenarioStepPlan,
    /// Number among the steps of all flows.
    pub(super) number: usize,
    pub(super) needs_body: bool,
    /// For each value that the step takes.
    extractors: Vec<Extractor>,
}

#[derive(Debug)]
enum Extractor {
    Json(String),
    /// A name in lower case.
    Header(String),
    Regex(Regex),
}

impl PreparedStep {
    pub(super) fn new(plan: &ScenarioStepPlan, number: usize) -> Result<Self, ScenarioError> {
        let mut extractors = Vec::new();
        for take in &plan.takes {
            extractors.push(match &take.from {
                TakeFrom::Json(pointer) => Extractor::Json(pointer.clone()),
                TakeFrom::Header(name) => Extractor::Header(name.to_ascii_lowercase()),
                TakeFrom::Regex(pattern) => {
                    Extractor::Regex(Regex::new(pattern).map_err(|source| {
                        ScenarioError::Regex {
                            step: plan.name.clone(),
                            source,
                        }
                    })?)
                }
            });
        }
        Ok(Self {
            needs_body: plan.needs_body(),
            plan: plan.clone(),
            number,
            extractors,
        })
    }

    /// Returns true if a value is taken from the header `name`.
    pub(super) fn takes_header(&self, name: &str) -> bool {
        let mut extractors = self.extractors.iter();
        extractors.any(
            |entry| matches!(entry, Extractor::Header(header) if header.eq_ignore_ascii_case(name)),
        )
    }

    /// Takes all values from a response and gives each with its variable.
    ///
    /// # Errors
    /// A description of the value that is not in the response.
    pub(super) fn take(
        &self,
        headers: &[(String, String)],
        body: &[u8],
        mut set: impl FnMut(usize, String),
    ) -> Result<(), String> {
        let mut json: Option<&RawValue> = None;
        for (take, extractor) in self.plan.takes.iter().zip(&self.extractors) {
            let value = match extractor {
                Extractor::Header(name) => {
                    let header = headers.iter().find(|(header, _)| header == name);
                    let value = header.map(|(_, value)| value.clone());
                    value.ok_or_else(|| format!("the response has no header {name}"))?
                }
                Extractor::Json(pointer) => {
                    if json.is_none() {
                        let parsed = serde_json::from_slice(body);
                        json =
                            Some(parsed.map_err(|error| format!("the body is not JSON: {error}"))?);
                    }
                    let text = json.and_then(|json| text_at(json, pointer));
                    text.ok_or_else(|| format!("the body has no value at {pointer}"))?
                }
                Extractor::Regex(regex) => {
                    let captures = regex.captures(body);
                    let group = captures.and_then(|groups| groups.get(1).or_else(|| groups.get(0)));
                    let text = group.map(|text| String::from_utf8_lossy(text.as_bytes()).into());
                    text.ok_or_else(|| format!("nothing in the body matches {regex}"))?
                }
            };
            set(take.variable, value);
        }
        Ok(())
    }
}

/// Returns the value at a JSON pointer (RFC 6901) as text: a string without quotes, anything else as
/// it was written; nothing for `null`.
fn text_at(json: &RawValue, pointer: &str) -> Option<String> {
    let mut tokens = pointer.split('/').skip(1);
    let value = tokens.try_fold(json, |json, token| {
        child(json, &token.replace("~1", "/").replace("~0", "~"))
    });
    let text = value?.get();
    match text.as_bytes().first()? {
        b'n' => None,
        b'"' => serde_json::from_str(text).ok(),
        _ => Some(text.to_owned()),
    }
}

/// Returns the value of an entry of a map or of an item of a list.
fn child<'a>(json: &'a RawValue, token: &str) -> Option<&'a RawValue> {
    let text = json.get();
    match text.as_bytes().first()? {
        b'{' => {
            let entries: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            entries.get(token).copied()
        }
        b'[' => {
            // An index has no sign and no zeros before it.
            let index: usize = token.parse().ok()?;
            if index.to_string() != token {
                return None;
            }
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            items.get(index).copied()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_json_are_taken_as_they_were_written() {
        let body = br#" {"id": 123456789012345678901234567890, "price": 10.50, "big": 1e999, "": "e",
            "a/b": {"~": [true, {"s" :  "\u00e4\"\n"}]}, "k\u0065y": {"x" : 1}, "twice": 1, "twice": 2,
            "none": null} "#;
        let json: &RawValue = serde_json::from_slice(body).unwrap();
        for (pointer, expected) in [
            ("/id", Some("123456789012345678901234567890")),
            ("/price", Some("10.50")),
            ("/big", Some("1e999")),
            ("/", Some("e")),
            ("/a~1b/~0/0", Some("true")),
            ("/a~1b/~0/1/s", Some("ä\"\n")),
            ("/key", Some(r#"{"x" : 1}"#)),
            ("/twice", Some("2")),
            ("/none", None),
            ("/missing", None),
            ("/price/0", None),
            ("/a~1b/~0/2", None),
            ("/a~1b/~0/01", None),
            ("/a~1b/~0/+1", None),
            ("/a~1b/~0/-", None),
            ("", std::str::from_utf8(body).ok().map(str::trim)),
        ] {
            assert_eq!(text_at(json, pointer).as_deref(), expected, "{pointer}");
        }
        for body in [&b"\"\xff\""[..], b"{} {}", b"{\"a\": }", b""] {
            assert!(serde_json::from_slice::<&RawValue>(body).is_err());
        }
    }
}
