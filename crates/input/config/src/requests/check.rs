//! Flags that would have no effect beside others, and those that contradict each
//! other, as far as the flags themselves do not say it.

use stillwell_plan::RateShape;
use stillwell_plan::load::{LoadPace, LoadPlanParts};
use stillwell_plan::rate::Ramp;

use super::error::LoadSpecError;
use super::{Concurrency, LoadSpec, TlsSpec};

/// A load in which a flag does nothing is another one than was meant.
pub(super) fn check(
    spec: &LoadSpec,
    permitted_cpus: &[u16],
    plan: &LoadPlanParts,
) -> Result<(), LoadSpecError> {
    let rules = [
        pace(spec).as_slice(),
        &telemetry(spec),
        &tls(&spec.tls, uses_tls(plan)),
    ]
    .concat();
    if let Some(Rule(_, message)) = rules.iter().find(|rule| rule.0) {
        return Err(LoadSpecError::text(*message));
    }
    cpus(spec, permitted_cpus)?;
    length(spec, plan)
}

/// A rule: true if it is broken, and its message.
#[derive(Clone, Copy, Debug)]
struct Rule(bool, &'static str);

fn pace(spec: &LoadSpec) -> [Rule; 8] {
    let (shape, connecting) = (&spec.shape, &spec.connecting);
    let is_closed = spec.rate.is_max();
    let rule = |is_given: bool, message| Rule(is_closed && is_given, message);
    [
        rule(
            shape.burst_size.is_some(),
            "--burst-size has no effect without --rate N/s: \
             leave it out, or give a rate",
        ),
        rule(
            shape.jitter_uniform.is_some(),
            "--jitter-uniform has no effect without --rate N/s: \
             leave it out, or give a rate",
        ),
        rule(
            shape.poisson,
            "--poisson has no effect without --rate N/s: \
             leave it out, or give a rate",
        ),
        rule(
            shape.zipf.is_some(),
            "--zipf has no effect without --rate N/s: \
             leave it out, or give a rate",
        ),
        rule(
            spec.closed_loop,
            "--closed-loop delays a rate until responses arrive; without --rate N/s the loop is closed already: \
             leave it out",
        ),
        rule(
            connecting.idle.is_some(),
            "--idle-strategy has no effect without --rate N/s: \
             leave it out, or give a rate",
        ),
        rule(
            connecting.reuse.is_some(),
            "--connection-reuse has no effect without --rate N/s: \
             leave it out, or give a rate",
        ),
        Rule(
            spec.request.list.is_some() && spec.urls.is_empty(),
            "--request-source needs a URL to send requests to",
        ),
    ]
}

fn telemetry(spec: &LoadSpec) -> [Rule; 3] {
    let (stats, trace) = (&spec.stats, &spec.trace);
    [
        Rule(
            stats.flush_every.is_some() && stats.sinks.is_empty(),
            "--stats-flush-interval has no effect without --stats-sink: the page of \
             --stats-listen always shows current values",
        ),
        Rule(
            !stats.labels.is_empty() && stats.sinks.is_empty() && stats.page.is_none(),
            "--stats-label has no effect without --stats-sink or --stats-listen; --label is for \
             results",
        ),
        Rule(
            trace.sample.is_some() && trace.sink.is_none() && trace.headers.is_none(),
            "--trace-sample has no effect without --trace or --trace-headers",
        ),
    ]
}

fn uses_tls(plan: &LoadPlanParts) -> bool {
    let mut endpoints = plan.endpoints.iter();
    endpoints.any(|endpoint| endpoint.tls_host.is_some())
}

/// Returns the message about the first flag of TLS that has no effect, if there is one.
pub(crate) fn tls_flag_without_effect(spec: &TlsSpec, uses_tls: bool) -> Option<&'static str> {
    let rules = tls(spec, uses_tls);
    rules.iter().find(|rule| rule.0).map(|rule| rule.1)
}

fn tls(tls: &TlsSpec, uses_tls: bool) -> [Rule; 6] {
    let rule = |is_given: bool, message| Rule(is_given && !uses_tls, message);
    [
        rule(
            tls.insecure,
            "--insecure has no effect where no target is https: write https://, or leave it out",
        ),
        rule(
            !tls.ca.is_empty(),
            "--ca has no effect where no target is https: write https://, or leave it out",
        ),
        rule(
            tls.certificate.is_some(),
            "--certificate has no effect where no target is https: write https://, or leave it out",
        ),
        rule(
            tls.sni.is_some(),
            "--sni has no effect where no target is https: write https://, or leave it out",
        ),
        rule(
            tls.no_resumption,
            "--no-session-resumption has no effect where no target is https: write https://, or \
             leave it out",
        ),
        rule(
            !tls.cipher_suites.is_empty(),
            "--cipher-suite has no effect where no target is https: write https://, or leave it out",
        ),
    ]
}

/// Every CPU that is named is for a thread, and may be used.
fn cpus(spec: &LoadSpec, permitted: &[u16]) -> Result<(), LoadSpecError> {
    let named = spec.cpus.len();
    if let Concurrency::Workers(threads) = spec.concurrency
        && named > usize::from(threads)
    {
        return Err(LoadSpecError::text(format!(
            "--cpus names {named} CPUs for {threads} {}: give --threads {named}, or fewer CPUs",
            if threads == 1 { "thread" } else { "threads" }
        )));
    }
    let is_missing = |cpu: &&u16| !permitted.is_empty() && !permitted.contains(cpu);
    if let Some(cpu) = spec.cpus.iter().find(is_missing) {
        let list: Vec<String> = permitted.iter().map(u16::to_string).collect();
        return Err(LoadSpecError::text(format!(
            "--cpus names CPU {cpu}, which this process may not use: name some of {}",
            list.join(",")
        )));
    }
    Ok(())
}

/// All of a rate's course is within the load, where that has a length of its own.
fn length(spec: &LoadSpec, plan: &LoadPlanParts) -> Result<(), LoadSpecError> {
    let (Some(duration), LoadPace::Open { curve, .. }) = (spec.duration, &plan.pace) else {
        return Ok(());
    };
    match curve {
        RateShape::Ramp(Ramp { over, .. }) if *over > duration => {
            return Err(LoadSpecError::text(format!(
                "--rate changes for {over}, but --duration is {duration}: use a longer --duration, \
                 or a shorter ramp"
            )));
        }
        RateShape::Max | RateShape::Constant { .. } | RateShape::Ramp(_) => {}
        RateShape::Steps { steps } => {
            let before = steps.iter().rev().skip(1);
            let before = before.fold(stillwell_units::Nanos::ZERO, |all, step| all + step.length);
            if before >= duration {
                return Err(LoadSpecError::text(format!(
                    "the last step of --rate begins after {before}, but --duration is {duration}: \
                     use a longer --duration, or shorter steps"
                )));
            }
        }
    }
    Ok(())
}
