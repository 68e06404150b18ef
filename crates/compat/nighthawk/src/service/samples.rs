//! Results that can be merged without loss.
//!
//! Nighthawk's statistics have quantiles, and quantiles of parts do not give those of the
//! whole. A client may therefore request histograms as well, in `user_defined_outputs` of the
//! result `global`. Results with histograms are merged like those of several workers.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::{ExecutionResponse, Status};
use crate::{Counter, Output, UserDefinedOutput, WorkerResult};
use serde_json::{Value, json};
use stillwell_report::load::{GLOBAL, LOAD_SCHEMA, LoadResult};

use crate::format::{nighthawk_result, sort_counters};

/// Name of histograms in `user_defined_outputs`.
pub const SAMPLES: &str = "stillwell.samples";

const SAMPLES_TYPE: &str = "type.googleapis.com/stillwell.service.v1.Samples";

/// Adds the histograms of `global` to `output`.
pub fn attach_samples(output: &mut Output, global: &LoadResult) {
    let Ok(text) = serde_json::to_string(global) else {
        return;
    };
    let samples = UserDefinedOutput {
        plugin_name: SAMPLES.to_owned(),
        typed_output: Some(json!({
            "@type": SAMPLES_TYPE,
            "schema": LOAD_SCHEMA,
            "result": text,
        })),
        error_message: None,
    };
    let mut results = output.results.iter_mut();
    if let Some(result) = results.find(|result| result.name == GLOBAL) {
        result.user_defined_outputs.push(samples);
    }
}

/// Removes them again, for clients that did not request them.
pub(crate) fn strip_samples(output: &mut Output) {
    for result in &mut output.results {
        let outputs = &mut result.user_defined_outputs;
        outputs.retain(|output| output.plugin_name != SAMPLES);
    }
}

/// All that a result was made of, where it came with it and is understood.
fn samples_of(result: &WorkerResult) -> Option<LoadResult> {
    let mut outputs = result.user_defined_outputs.iter();
    let samples = outputs.find(|output| output.plugin_name == SAMPLES)?;
    let samples = samples.typed_output.as_ref()?;
    let text = |key: &str| samples.get(key).and_then(Value::as_str);
    let result = text("result").filter(|_| text("schema") == Some(LOAD_SCHEMA))?;
    serde_json::from_str(result).ok()
}

/// Merges the responses of several services.
///
/// Each `global` is renamed to `service_N`. The new `global` has the sums of counters and
/// histograms: its quantiles are those of all samples. If a response has no histograms, there
/// is no new `global`, and all results are returned unchanged. If a response has no result,
/// there is no `global` at all: it would be incomplete. Failures become one, with the code of
/// the first.
#[must_use]
pub fn merge_responses(responses: &[ExecutionResponse]) -> ExecutionResponse {
    let details = responses.iter();
    let details = details.filter_map(|response| response.error_detail.as_ref());
    let failed = details
        .filter(|detail| detail.code != 0)
        .cloned()
        .reduce(|first, next| Status {
            message: format!("{}; {}", first.message, next.message),
            ..first
        });
    let id = responses
        .iter()
        .map(|response| response.execution_id.clone());
    ExecutionResponse {
        output: merge(responses),
        error_detail: failed,
        execution_id: id.max().unwrap_or_default(),
    }
}

fn merge(responses: &[ExecutionResponse]) -> Option<Output> {
    let outputs = || {
        responses
            .iter()
            .filter_map(|response| response.output.as_ref())
    };
    let first = outputs().next()?;
    let parts: Vec<Option<LoadResult>> = outputs()
        .map(|output| samples_of(output.global()?))
        .collect();
    let parts: Option<Vec<LoadResult>> = parts.into_iter().collect();
    let mut merged = Output {
        options: first.options.clone(),
        results: Vec::new(),
        timestamp: outputs().filter_map(|output| output.timestamp).max(),
        version: first.version.clone(),
    };
    let is_whole = responses.iter().all(|response| response.output.is_some());
    let services = responses.iter().enumerate();
    let services = services.filter_map(|(number, response)| {
        let global = response.output.as_ref()?.global()?;
        Some(WorkerResult {
            name: format!("service_{number}"),
            ..global.clone()
        })
    });
    if !is_whole {
        merged.results.extend(services);
    } else if let Some(parts) = parts {
        merged.results.extend(services);
        let whole = LoadResult::merged(GLOBAL, &parts);
        let mut sum = nighthawk_result(&whole);
        add_other_counters(&mut sum, outputs().filter_map(Output::global));
        merged.results.push(sum);
        strip_samples(&mut merged);
        attach_samples(&mut merged, &whole);
    } else {
        let all = outputs().flat_map(|output| output.results.clone());
        merged.results.extend(all);
    }
    Some(merged)
}

/// Adds the counters that are not part of the samples: those of the processes, which are the same for every load.
fn add_other_counters<'r>(sum: &mut WorkerResult, parts: impl Iterator<Item = &'r WorkerResult>) {
    let known: BTreeSet<String> = sum
        .counters
        .iter()
        .map(|counter| counter.name.clone())
        .collect();
    let mut of_processes: BTreeMap<&str, u64> = BTreeMap::new();
    for counter in parts.flat_map(|part| &part.counters) {
        if !known.contains(&counter.name) {
            *of_processes.entry(&counter.name).or_default() += counter.value;
        }
    }
    let of_processes = of_processes.into_iter().map(|(name, value)| Counter {
        name: name.to_owned(),
        value,
    });
    sum.counters.extend(of_processes);
    sort_counters(sum);
}

#[cfg(test)]
mod tests {
    use crate::wire::{decode_response, encode_response};
    use proptest::prelude::*;
    use stillwell_metric::empty_histogram;
    use stillwell_report::load::{LoadStatistic, id};

    use super::*;

    fn result(times: &[u64]) -> LoadResult {
        let mut histogram = empty_histogram();
        for time in times {
            histogram.saturating_record(*time);
        }
        let mut result = LoadResult::named(GLOBAL);
        result.count("benchmark.http_2xx", times.len() as u64);
        let statistic = LoadStatistic::of_times(id::REQUEST_TO_RESPONSE, &histogram);
        result.add_statistic(statistic);
        result
    }

    /// As it arrives over the wire.
    fn response(times: &[u64]) -> ExecutionResponse {
        let result = result(times);
        let mut output = Output {
            results: vec![nighthawk_result(&result)],
            ..Output::default()
        };
        attach_samples(&mut output, &result);
        let response = ExecutionResponse {
            output: Some(output),
            ..ExecutionResponse::default()
        };
        decode_response(&encode_response(&response).unwrap()).unwrap()
    }

    #[test]
    fn counters_of_processes_are_summed_as_well() {
        let parts = [response(&[1, 2]), response(&[3])].map(|mut part| {
            let output = part.output.as_mut().unwrap();
            let global = output
                .results
                .iter_mut()
                .find(|result| result.name == GLOBAL);
            global.unwrap().counters.push(Counter {
                name: "runtime.load_success".to_owned(),
                value: 1,
            });
            part
        });
        let merged = merge_responses(&parts).output.unwrap();
        let counters = &merged.global().unwrap().counters;
        let counters: Vec<_> = counters
            .iter()
            .map(|counter| (counter.name.as_str(), counter.value))
            .collect();
        assert_eq!(
            counters,
            [("benchmark.http_2xx", 3), ("runtime.load_success", 2)]
        );
    }

    proptest! {
        // Each case packs and adds up dozens of histograms.
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn for_all_splits_quantiles_are_those_of_all_samples(
            parts in prop::collection::vec(
                prop::collection::vec(1_u64..10_000_000_000, 0..50), 1..5),
        ) {
            let responses: Vec<_> = parts.iter().map(|times| response(times)).collect();
            let merged = merge_responses(&responses).output.unwrap();
            let whole = nighthawk_result(&result(&parts.concat()));
            let global = merged.global().unwrap();
            prop_assert_eq!(&global.statistics, &whole.statistics);
            prop_assert_eq!(&global.counters, &whole.counters);
            prop_assert_eq!(merged.results.len(), parts.len() + 1);
            // A merged result can be merged again.
            let again = merge_responses(&[ExecutionResponse {
                output: Some(merged.clone()),
                ..ExecutionResponse::default()
            }]);
            let again = again.output.unwrap();
            prop_assert_eq!(&again.global().unwrap().statistics, &whole.statistics);
        }
    }

    #[test]
    fn where_a_service_failed_there_is_no_whole() {
        let failed = |message: &str| ExecutionResponse {
            error_detail: Some(Status {
                code: 14,
                message: message.to_owned(),
            }),
            ..ExecutionResponse::default()
        };
        let merged = merge_responses(&[failed("a"), response(&[3]), failed("b")]);
        let detail = merged.error_detail.unwrap();
        assert_eq!((detail.code, detail.message.as_str()), (14, "a; b"));
        let output = merged.output.unwrap();
        let names: Vec<_> = output
            .results
            .iter()
            .map(|result| result.name.as_str())
            .collect();
        assert_eq!(names, ["service_1"]);
        assert_eq!(merge_responses(&[failed("a")]).output, None);
    }

    #[test]
    fn without_histograms_results_are_side_by_side() {
        let mut bare = response(&[1, 2]);
        strip_samples(bare.output.as_mut().unwrap());
        let merged = merge_responses(&[response(&[3]), bare]).output.unwrap();
        let names: Vec<_> = merged
            .results
            .iter()
            .map(|result| result.name.as_str())
            .collect();
        assert_eq!(names, [GLOBAL, GLOBAL]);
    }
}
