//! A search that was saved as JSON.

use serde_json::Value;
use stillwell_plan::capacity::CapacityFigure;
use stillwell_plan::{Validity, WorkUnit};
use stillwell_stats::capacity::usl::{Usl, UslPoint};
use stillwell_stats::capacity::{CapacityFound, Observed, Purpose, SearchEnd, Votes};
use stillwell_stats::{Estimate, Level};
use stillwell_units::Nanos;
use stillwell_verdict::capacity::{CapacityAnswer, CapacityProbe, KneeFound};

use super::{CAPACITY_SCHEMA, CapacityReport, observed_code, purpose_code};

/// Reason why a text is no saved search.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CapacityJsonError {
    /// No JSON.
    #[error("it is not JSON: {0}")]
    Json(String),
    /// Another schema, or none.
    #[error("its schema is not {CAPACITY_SCHEMA}")]
    Schema,
    /// A value is missing or has another type.
    #[error("the value of `{0}` is missing or wrong")]
    Value(&'static str),
}

type Read<T> = Result<T, CapacityJsonError>;

/// Returns the search of [`capacity_json`](super::capacity_json)'s text. A law has no covariance there.
///
/// # Errors
/// [`CapacityJsonError`] if the text is something else.
pub fn read_capacity_json(text: &str) -> Read<CapacityReport> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| CapacityJsonError::Json(error.to_string()))?;
    if value["schema"] != CAPACITY_SCHEMA {
        return Err(CapacityJsonError::Schema);
    }
    let bounds = array(&value, "bounds")?.iter().map(|bound| {
        let bound = bound.as_str().and_then(|bound| bound.parse().ok());
        bound.ok_or(CapacityJsonError::Value("bounds"))
    });
    let bounds: Vec<_> = bounds.collect::<Read<_>>()?;
    let columns = CapacityProbe::COLUMNS.to_vec();
    let figures: Vec<CapacityFigure> = columns
        .into_iter()
        .chain(
            bounds
                .iter()
                .map(|bound: &stillwell_plan::capacity::CapacityBound| bound.figure),
        )
        .collect();
    let probes = array(&value, "probes")?.iter();
    let probes = probes.map(|entry| probe(entry, &figures));
    let level = Level::try_new(float(&value, "level")?);
    Ok(CapacityReport {
        target: text_of(&value, "target")?,
        unit: unit(&value)?,
        probes: probes.collect::<Read<_>>()?,
        bounds,
        answer: answer(&value)?,
        within: float(&value, "within")?,
        validity: validity(&value)?,
        level: level.map_err(|_| CapacityJsonError::Value("level"))?,
        command: text_of(&value, "command")?,
        version: text_of(&value, "version")?,
        elapsed: Nanos::new(whole(&value, "elapsed_ns")?),
    })
}

fn answer(value: &Value) -> Read<Option<CapacityAnswer>> {
    let (bracket, knee) = (&value["found"], &value["knee"]);
    Ok(if !bracket.is_null() {
        Some(CapacityAnswer::Bounds(bounds(bracket)?))
    } else if let Some(reason) = knee["reason"].as_str() {
        Some(CapacityAnswer::Knee(Err(reason.to_owned())))
    } else if !knee.is_null() {
        Some(CapacityAnswer::Knee(Ok(knee_of(knee)?)))
    } else {
        None
    })
}

fn bounds(bracket: &Value) -> Read<CapacityFound> {
    let code = text_of(bracket, "end")?;
    let end = SearchEnd::ALL.into_iter().find(|end| end.code() == code);
    Ok(CapacityFound {
        end: end.ok_or(CapacityJsonError::Value("end"))?,
        capacity: optional(&bracket["capacity"], estimate)?,
        held: optional(&bracket["held"], votes)?,
        failed: optional(&bracket["failed"], votes)?,
        probes: small(bracket, "probes")?,
        unclear: small(bracket, "unclear")?,
    })
}

fn knee_of(knee: &Value) -> Read<KneeFound> {
    let parameters = [
        float(knee, "lambda")?,
        float(knee, "sigma")?,
        float(knee, "kappa")?,
    ];
    let point = |point: &Value| {
        Ok(UslPoint {
            concurrency: estimate(&point["connections"])?,
            throughput: estimate(&point["throughput"])?,
        })
    };
    let left_out = usize::try_from(whole(knee, "left_out")?);
    Ok(KneeFound {
        law: Usl::recorded(parameters, float(knee, "residual")?),
        knee: optional(&knee["knee"], point)?,
        peak: optional(&knee["peak"], point)?,
        connections_max: small(knee, "connections_max")?,
        left_out: left_out.map_err(|_| CapacityJsonError::Value("left_out"))?,
    })
}

fn probe(entry: &Value, figures: &[CapacityFigure]) -> Read<CapacityProbe> {
    let observed = [Observed::Held, Observed::Failed, Observed::Unclear];
    let mut observed = observed.into_iter();
    let observed = observed.find(|observed| entry["observed"] == observed_code(*observed));
    let purposes = [
        Purpose::Grow,
        Purpose::Narrow,
        Purpose::Below,
        Purpose::Above,
    ];
    let mut purposes = purposes.into_iter();
    let figures = figures.iter().map(|figure| {
        let unit = if figure.is_time() { "_ns" } else { "" };
        let value = entry["figures"][format!("{figure}{unit}")].as_f64();
        let name = figure.to_string();
        let mut never = entry["never"].as_array().into_iter().flatten();
        let is_never = value.is_none() && never.any(|figure| figure == name.as_str());
        (*figure, value.or_else(|| is_never.then_some(f64::INFINITY)))
    });
    Ok(CapacityProbe {
        purpose: purposes.find(|purpose| entry["purpose"] == purpose_code(*purpose)),
        rate: entry["rate"].as_f64(),
        connections: optional(&entry["connections"], |_| small(entry, "connections"))?,
        reached: float(entry, "reached")?,
        observed: observed.ok_or(CapacityJsonError::Value("observed"))?,
        why: entry["why"].as_str().map(str::to_owned),
        figures: figures.collect(),
    })
}

fn unit(value: &Value) -> Read<WorkUnit> {
    let mut units = WorkUnit::ALL.into_iter();
    let known = units.find(|unit| value["unit"] == unit.plural());
    known.ok_or(CapacityJsonError::Value("unit"))
}

fn validity(value: &Value) -> Read<Validity> {
    let mut words = Validity::WORDS.into_iter();
    let known = words.find(|(word, _)| value["validity"] == *word);
    known
        .map(|(_, validity)| validity)
        .ok_or(CapacityJsonError::Value("validity"))
}

fn votes(value: &Value) -> Read<Votes> {
    Ok(Votes {
        rate: float(value, "rate")?,
        held: small(value, "held")?,
        failed: small(value, "failed")?,
    })
}

/// Ends that are not finite were written as `null`.
fn estimate(value: &Value) -> Read<Estimate> {
    Ok(Estimate {
        value: float(value, "value")?,
        lower: value["lower"].as_f64().unwrap_or(f64::NEG_INFINITY),
        upper: value["upper"].as_f64().unwrap_or(f64::INFINITY),
    })
}

fn optional<T>(value: &Value, read: impl Fn(&Value) -> Read<T>) -> Read<Option<T>> {
    (!value.is_null()).then(|| read(value)).transpose()
}

fn array<'v>(value: &'v Value, key: &'static str) -> Read<&'v Vec<Value>> {
    value[key].as_array().ok_or(CapacityJsonError::Value(key))
}

fn text_of(value: &Value, key: &'static str) -> Read<String> {
    let text = value[key].as_str();
    text.map(str::to_owned).ok_or(CapacityJsonError::Value(key))
}

fn float(value: &Value, key: &'static str) -> Read<f64> {
    value[key].as_f64().ok_or(CapacityJsonError::Value(key))
}

fn whole(value: &Value, key: &'static str) -> Read<u64> {
    value[key].as_u64().ok_or(CapacityJsonError::Value(key))
}

fn small(value: &Value, key: &'static str) -> Read<u32> {
    u32::try_from(whole(value, key)?).map_err(|_| CapacityJsonError::Value(key))
}
