//! Formats of results on standard output.

use stillwell_nighthawk::format::{LoadFormat, render_as};
use stillwell_report::Style;
use stillwell_report::load::{LoadReport, NoDistribution, render_load};

/// Returns `report` in `format`. A histogram's text is of latency from the intended time, or of
/// `statistic`.
pub(crate) fn render(
    report: &LoadReport,
    format: LoadFormat,
    statistic: Option<&str>,
    style: Style,
) -> Result<String, NoDistribution> {
    match format {
        LoadFormat::Native(format) => render_load(report, format, statistic, style),
        LoadFormat::Nighthawk(format) => Ok(render_as(report, format)),
    }
}
