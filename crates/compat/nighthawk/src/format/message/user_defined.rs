//! Outputs of Nighthawk's user-defined plugins.

use serde_json::{Value, json};
use stillwell_metric::Outcome;
use stillwell_report::load::{GLOBAL, LoadResult};

use super::sort_counters;
use crate::envoy::{EnvoyMessage, FakePlugin, OutputPlugin};
use crate::request::values::PLUGIN_FAILURES;
use crate::{CommandLineOptions, Counter, UserDefinedOutput, WorkerResult};

const HEADERS_LOGGED: &str = "type.googleapis.com/nighthawk.LogResponseHeadersOutput";
const FAKE_OUTPUT: &str = "type.googleapis.com/nighthawk.FakeUserDefinedOutput";

/// Adds the output of each plugin in `options`, and its failures as counters, to the result
/// `to`, which is made of `from`.
pub(super) fn add(
    options: &CommandLineOptions,
    from: &LoadResult,
    workers: usize,
    to: &mut WorkerResult,
) {
    let answers = from.outcomes.iter();
    let answers = answers.filter(|counted| Outcome::ANSWERS.contains(&counted.outcome));
    let answers = answers.map(|counted| counted.count).sum::<u64>();
    for config in &options.user_defined_plugin_configs {
        let message = EnvoyMessage::parse("user_defined_plugin_configs", &config.to_string());
        let Ok(plugin) = message.and_then(|message| message.output_plugin()) else {
            continue;
        };
        let typed_output = match plugin {
            OutputPlugin::LogHeaders(_) => Ok(json!({ "@type": HEADERS_LOGGED })),
            OutputPlugin::Fake(fake) => {
                add_failures(&fake, answers, workers, to);
                fake_output(&fake, answers, &to.name)
            }
        };
        to.user_defined_outputs.push(UserDefinedOutput {
            plugin_name: config["name"].as_str().unwrap_or_default().to_owned(),
            error_message: typed_output.as_ref().err().cloned(),
            typed_output: typed_output.ok(),
        });
    }
}

fn fake_output(fake: &FakePlugin, answers: u64, name: &str) -> Result<Value, String> {
    let is_global = name == GLOBAL;
    let failure = if is_global && fake.fails_per_worker {
        "Cannot aggregate if any per_worker_outputs failed. See per worker outputs for errors."
    } else if fake.fails_per_worker {
        "Intentional FakeUserDefinedOutputPlugin failure on getting PerWorkerOutput"
    } else if is_global && fake.fails_global {
        "Intentional FakeUserDefinedOutputPlugin failure on getting GlobalOutput"
    } else {
        return Ok(json!({
            "@type": FAKE_OUTPUT,
            "data_called": answers,
            "headers_called": answers,
            "worker_name": name,
        }));
    };
    Err(failure.to_owned())
}

/// Each worker accepts its own first answers. Workers have about the same number.
fn add_failures(fake: &FakePlugin, answers: u64, workers: usize, to: &mut WorkerResult) {
    let shares = if to.name == GLOBAL { workers.max(1) } else { 1 };
    let accepted = [fake.headers_until_failure, fake.data_until_failure];
    for (name, accepted) in PLUGIN_FAILURES.into_iter().zip(accepted) {
        let Some(accepted) = accepted else {
            continue;
        };
        let accepted = u64::from(accepted).saturating_mul(shares as u64);
        let value = answers.saturating_sub(accepted);
        if value > 0 {
            let name = name.to_owned();
            to.counters.push(Counter { name, value });
        }
    }
    sort_counters(to);
}
