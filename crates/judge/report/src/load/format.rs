//! Formats of a load's result without the words of another tool.

use stillwell_metric::empty_histogram;

use super::{BriefLoad, HistogramLog, LoadReport, LoadStatistic, hgrm, human, id, write_load_json};
use crate::Style;

/// Native format of a load's result.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum NativeLoadFormat {
    /// For readers.
    Human,
    /// The most important figures as JSON, for programs.
    Json,
    /// The same as CSV: a name and a value in each line.
    Csv,
    /// HdrHistogram's text of percentiles.
    Hgrm,
    /// HdrHistogram's log of intervals.
    Hlog,
    /// All that there is, for programs.
    Stillwell,
}

impl NativeLoadFormat {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Human,
        Self::Json,
        Self::Csv,
        Self::Hgrm,
        Self::Hlog,
        Self::Stillwell,
    ];

    /// Name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Hgrm => "hgrm",
            Self::Hlog => "hlog",
            Self::Stillwell => "stillwell",
        }
    }
}

/// No statistic of this name has a distribution.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{id}` has no distribution; these have one: {}", .known.join(", "))]
pub struct NoDistribution {
    /// Requested statistic.
    pub id: String,
    /// Statistics with a distribution.
    pub known: Vec<String>,
}

/// Returns a load in this format; `style` is for [`NativeLoadFormat::Human`]. A histogram's text
/// is of latency from the intended time, or of `statistic`.
///
/// # Errors
/// [`NoDistribution`] where that statistic has none.
pub fn render_load(
    report: &LoadReport,
    format: NativeLoadFormat,
    statistic: Option<&str>,
    style: Style,
) -> Result<String, NoDistribution> {
    Ok(match format {
        NativeLoadFormat::Human => human::human(report, style),
        NativeLoadFormat::Json => BriefLoad::of(report).to_json(),
        NativeLoadFormat::Csv => BriefLoad::of(report).to_csv(),
        NativeLoadFormat::Hgrm => percentiles(report, statistic)?,
        NativeLoadFormat::Hlog => HistogramLog::of(report).write(&report.version),
        NativeLoadFormat::Stillwell => write_load_json(report),
    })
}

/// Returns HdrHistogram's text. A load without an answer has no latency, and its table is empty: the format is not what
/// went wrong.
fn percentiles(report: &LoadReport, statistic: Option<&str>) -> Result<String, NoDistribution> {
    let default = [id::RESPONSE_TIME, id::REQUEST_TO_RESPONSE];
    let empty = LoadStatistic::of_times(id::RESPONSE_TIME, &empty_histogram());
    let all = report.global.statistics.iter();
    let mut by_id: Vec<_> = all.map(|statistic| (&*statistic.id, statistic)).collect();
    if statistic.is_none() && !by_id.iter().any(|(name, _)| default.contains(name)) {
        by_id.push((&*empty.id, &empty));
    }
    distribution(by_id.iter().copied(), statistic, &default, hgrm::of_load)
}

/// Returns the text of the requested statistic, or of the first of `default` that exists.
///
/// # Errors
/// [`NoDistribution`] where `text` returns nothing for it.
pub fn distribution<'a, T: 'a>(
    all: impl Iterator<Item = (&'a str, &'a T)> + Clone,
    requested: Option<&str>,
    default: &[&str],
    text: fn(&T) -> Option<String>,
) -> Result<String, NoDistribution> {
    let wanted = requested.map_or_else(|| default.to_vec(), |requested| vec![requested]);
    let find = |id: &&str| {
        let (_, statistic) = all.clone().find(|(name, _)| name == id)?;
        text(statistic)
    };
    wanted.iter().find_map(find).ok_or_else(|| {
        let known = all
            .clone()
            .filter(|(_, statistic)| text(statistic).is_some());
        NoDistribution {
            id: wanted
                .first()
                .map_or_else(String::new, |id| (*id).to_owned()),
            known: known.map(|(id, _)| id.to_owned()).collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn every_native_format() {
        for format in NativeLoadFormat::ALL {
            let report = match format {
                NativeLoadFormat::Human => fixture::report(),
                _ => fixture::brief(),
            };
            let text = render_load(&report, format, None, Style::default());
            insta::assert_snapshot!(format.name(), text.unwrap());
        }
    }

    #[test]
    fn a_load_without_an_answer_has_an_empty_table_of_percentiles() {
        let mut report = fixture::report();
        let statistics = &mut report.global.statistics;
        statistics.retain(|statistic| statistic.id == id::LATENESS);
        let format = NativeLoadFormat::Hgrm;
        let render = |statistic| render_load(&report, format, statistic, Style::default());
        let text = render(None).unwrap();
        let heading = "#[stillwell.response_time in milliseconds]\n";
        assert!(text.starts_with(heading), "{text}");
        assert!(text.contains("Total count    =            0]"), "{text}");
        assert!(render(Some(id::RESPONSE_TIME)).is_err());
    }

    #[test]
    fn a_distribution_that_is_not_there_is_named() {
        let report = fixture::report();
        let size = Some(id::RESPONSE_BODY_SIZE);
        let format = NativeLoadFormat::Hgrm;
        let error = render_load(&report, format, size, Style::default()).unwrap_err();
        insta::assert_snapshot!(error.to_string());
    }
}
