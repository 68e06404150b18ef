//! Values of responses.

use regex::bytes::Regex;
use serde_json::Value;
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
        let mut json: Option<Value> = None;
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
                    let value = json.as_ref().and_then(|json| json.pointer(pointer));
                    let text = value.and_then(text_of);
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

/// Returns a JSON value as text: strings without quotes; nothing for `null`.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
