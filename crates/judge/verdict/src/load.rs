//! Validity of a load: was the target measured, or the generator?

mod warning;

use stillwell_metric::{GeneratorEvidence, LoadEvidence, LoadSourceEvidence, LoadStrain, Trouble};
use stillwell_plan::load::LoadPacing;
use stillwell_plan::{LoadPlan, Validity};
use stillwell_units::float_from_u64;
use stillwell_units::human::counted;

pub use warning::LoadWarning;

use crate::limits::{
    LOAD_BUNCHED_P99, LOAD_BUNCHED_REQUESTS_MIN, LOAD_BUSY_SHARE, LOAD_CLOCK_DRIFT_PPM,
    LOAD_CPU_WAIT_SHARE, LOAD_LATENESS_OF_LATENCY, LOAD_LATENESS_P99, LOAD_RATE_ACHIEVED_SHARE,
    LOAD_SHARES_FROM, LOAD_SOURCE_WAIT_SHARE, LOAD_STEAL_SHARE,
};

/// The rules by which the result of a load is judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LoadRules {
    /// The times from which latencies count.
    pub pacing: LoadPacing,
    /// Strictness of the limits.
    pub validity: Validity,
}

impl LoadRules {
    /// Returns those of `plan`.
    #[must_use]
    pub fn of(plan: &LoadPlan) -> Self {
        Self {
            pacing: LoadPacing::of(plan),
            validity: plan.validity,
        }
    }

    /// Returns true if `warning` makes the result unreliable.
    #[must_use]
    pub fn is_unreliable_by(self, warning: &LoadWarning) -> bool {
        warning.invalidates() && !(self.validity.is_off() && warning.is_of_limit())
    }
}

/// Reasons why the generator may be what was measured, for any stretch of a load.
#[must_use]
pub fn strain_warnings(rules: LoadRules, strain: &LoadStrain) -> Vec<LoadWarning> {
    let LoadRules { pacing, validity } = rules;
    let factor = validity.limit_factor();
    let mut warnings = Vec::new();
    let share = strain.busy_share;
    if share > LOAD_BUSY_SHARE {
        warnings.push(match pacing {
            LoadPacing::Closed => LoadWarning::GeneratorLimit { share },
            LoadPacing::Deferred | LoadPacing::Open => LoadWarning::GeneratorSaturated { share },
        });
    }
    let p99 = strain.lateness_p99;
    let [late, median] = [p99, strain.service_median].map(|time| float_from_u64(time.as_u64()));
    let [limit, limit_bunched] =
        [LOAD_LATENESS_P99, LOAD_BUNCHED_P99].map(|limit| factor * float_from_u64(limit.as_u64()));
    let distorts = late > factor * LOAD_LATENESS_OF_LATENCY * median;
    let is_many = strain.lateness_count >= LOAD_BUNCHED_REQUESTS_MIN;
    if pacing == LoadPacing::Open && late > limit && distorts {
        warnings.push(LoadWarning::GeneratorLate { p99 });
    } else if pacing == LoadPacing::Open && late > limit_bunched && is_many {
        warnings.push(LoadWarning::SendsBunched { p99 });
    }
    warnings
}

/// Reasons why the result of a load is unreliable, worst first.
#[must_use]
pub fn load_warnings(rules: LoadRules, evidence: &LoadEvidence) -> Vec<LoadWarning> {
    let factor = rules.validity.limit_factor();
    let has_shares = evidence.measured >= LOAD_SHARES_FROM;
    let of_long = |share: f64| if has_shares { share } else { 0.0 };
    let mut warnings: Vec<LoadWarning> = without_answers(evidence).into_iter().collect();
    warnings.extend(missing(&evidence.generators));
    warnings.extend(malformed(evidence));
    let strain = LoadStrain {
        busy_share: of_long(evidence.strain.busy_share),
        ..evidence.strain
    };
    warnings.extend(strain_warnings(rules, &strain));
    let share = of_long(evidence.cpu_wait_share);
    if share > factor * LOAD_CPU_WAIT_SHARE {
        warnings.push(LoadWarning::CpuStarvation { share });
    }
    let share = of_long(evidence.steal_share.unwrap_or(0.0));
    if share > factor * LOAD_STEAL_SHARE {
        warnings.push(LoadWarning::CpuSteal { share });
    }
    let of_source = source(&evidence.source);
    let is_source = !of_source.is_empty();
    warnings.extend(of_source);
    let pacing = rules.pacing;
    if !is_source && of_due(pacing, evidence, evidence.begun) < LOAD_RATE_ACHIEVED_SHARE {
        let share = of_due(pacing, evidence, evidence.sent);
        let is_generator_slow = warnings.iter().any(|warning| match warning {
            LoadWarning::GeneratorSaturated { .. } | LoadWarning::GeneratorLate { .. } => true,
            // A worker that waits 10 % of its time for a CPU does not lose most of its requests by that.
            LoadWarning::CpuStarvation { share: waited } => *waited >= (1.0 - share) / 2.0,
            _ => false,
        });
        warnings.push(LoadWarning::RateNotReached {
            share,
            is_generator_slow,
        });
    }
    let exports = evidence.export_failures.iter().cloned();
    let failures = exports.chain(headers_dropped(evidence));
    warnings.extend(failures.map(|what| LoadWarning::ExportFailed { what }));
    let of_one = of_generators(rules, &evidence.generators, &warnings);
    warnings.extend(of_one);
    warnings
}

/// Generators without a result.
fn missing(generators: &[GeneratorEvidence]) -> impl Iterator<Item = LoadWarning> {
    generators.iter().filter_map(|generator| {
        let why = generator.evidence.as_ref().err()?.clone();
        let index = generator.index;
        Some(LoadWarning::GeneratorMissing { index, why })
    })
}

/// Warnings about single generators, each judged as if it were alone, that are not among
/// the `known` ones of all of them together.
fn of_generators(
    rules: LoadRules,
    generators: &[GeneratorEvidence],
    known: &[LoadWarning],
) -> Vec<LoadWarning> {
    let mut warnings: Vec<LoadWarning> = drifting(generators).into_iter().collect();
    for generator in generators {
        let Ok(evidence) = &generator.evidence else {
            continue;
        };
        for warning in load_warnings(rules, evidence) {
            let is_known = |listed: &LoadWarning| listed.code() == warning.code();
            if known.iter().any(is_known) || warnings.iter().any(is_known) {
                continue;
            }
            warnings.push(LoadWarning::OfGenerator {
                index: generator.index,
                node: generator.node.clone(),
                warning: Box::new(warning),
            });
        }
    }
    warnings
}

/// The generator whose clock certainly drifted most, if it is too much.
fn drifting(generators: &[GeneratorEvidence]) -> Option<LoadWarning> {
    let drifts = generators.iter();
    let drifts = drifts.filter_map(|generator| Some((generator, generator.drift?)));
    let (generator, drift) = drifts.max_by_key(|(_, drift)| drift.at_least())?;
    (drift.at_least() > LOAD_CLOCK_DRIFT_PPM).then(|| LoadWarning::OfGenerator {
        index: generator.index,
        node: generator.node.clone(),
        warning: Box::new(LoadWarning::ClockDrift { drift }),
    })
}

/// Reason why there is nothing to report, if so.
fn without_answers(evidence: &LoadEvidence) -> Option<LoadWarning> {
    if evidence.answers > 0 {
        return None;
    }
    let is_warmup = evidence.has_warmup && evidence.begun == 0;
    if is_warmup && evidence.answers_with_warmup > 0 {
        return Some(LoadWarning::AllWarmup);
    }
    let source = &evidence.source;
    let why = evidence.first_trouble.clone().or_else(|| {
        let is_silent = source.requests == 0 && source.waits_with_warmup > 0;
        is_silent.then(|| Trouble::plain("the request source supplied none".to_owned()))
    });
    Some(if evidence.begun == 0 {
        let requested = evidence.requested;
        LoadWarning::NoRequest { requested, why }
    } else {
        LoadWarning::NoAnswer { why }
    })
}

fn malformed(evidence: &LoadEvidence) -> Option<LoadWarning> {
    let count = evidence.malformed;
    let why = evidence.answer_trouble.clone()?;
    (count > 0).then_some(LoadWarning::Malformed { count, why })
}

/// Reasons that lie with the source of requests, where others hand them out.
fn source(evidence: &LoadSourceEvidence) -> Vec<LoadWarning> {
    let mut warnings = Vec::new();
    let requests = evidence.requests;
    // Without any there is no load, and that is why.
    if let Some(why) = evidence.trouble.clone().filter(|_| requests > 0) {
        warnings.push(LoadWarning::SourceFailed { requests, why });
    }
    let share = evidence.wait_share.min(1.0);
    if share > LOAD_SOURCE_WAIT_SHARE {
        let waits = evidence.waits;
        warnings.push(LoadWarning::SourceSlow { waits, share });
    }
    warnings
}

/// Headers of answers that were dropped instead of reported.
fn headers_dropped(evidence: &LoadEvidence) -> Option<String> {
    let dropped = evidence.headers_dropped;
    (dropped > 0).then(|| {
        let dropped = counted(dropped, "response header was", "response headers were");
        format!("{dropped} not reported, because headers arrived faster than they can be written")
    })
}

/// A count as a share of what was due; all without a schedule. What waits for
/// answers has no moments of its own, and the curve says how many there were.
fn of_due(pacing: LoadPacing, evidence: &LoadEvidence, count: u64) -> f64 {
    let due = match pacing {
        LoadPacing::Closed => 0,
        LoadPacing::Deferred => evidence.requested,
        LoadPacing::Open => evidence.due,
    };
    if due == 0 {
        return 1.0;
    }
    float_from_u64(count) / float_from_u64(due)
}

#[cfg(test)]
mod tests;
