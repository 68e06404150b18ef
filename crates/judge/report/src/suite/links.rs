//! Variables in the links of an experiment: `{{ experiment }}`, `{{ job_id }}` and so on.

use stillwell_plan::experiment::ReportLink;
use stillwell_verdict::ExperimentVerdict;

use crate::SuiteReport;

/// Returns the links of an experiment with their variables replaced. A link that names a variant
/// becomes one link for each variant. A variable without a value stays.
pub(crate) fn filled(experiment: &ExperimentVerdict, report: &SuiteReport) -> Vec<ReportLink> {
    let links = experiment.report_links.iter();
    let links = links.flat_map(|link| of_variants(link, &experiment.variants));
    let values = values(experiment, report);
    let fill = |text: &str| {
        let values = values.iter();
        values.fold(text.to_owned(), |text, (name, value)| {
            replaced(&text, name, value)
        })
    };
    let links = links.map(|link| ReportLink {
        text: fill(&link.text),
        link: fill(&link.link),
    });
    links.collect()
}

fn of_variants(link: &ReportLink, variants: &[String]) -> Vec<ReportLink> {
    let named = |variant: &str| {
        let of = replaced(&link.link, "variant", variant);
        replaced(&of, "replicate_type", variant)
    };
    if named("") == link.link {
        return vec![link.clone()];
    }
    let links = variants.iter().map(|variant| ReportLink {
        text: format!("{} ({variant})", link.text),
        link: named(variant),
    });
    links.collect()
}

/// Names of variables and their values. Times are of the first run's start and the last run's
/// end, in milliseconds since 1970: of the experiment in filters, else of all experiments.
fn values(experiment: &ExperimentVerdict, report: &SuiteReport) -> Vec<(&'static str, String)> {
    let folder = report.results_folder.trim_end_matches('/');
    let job = folder.rsplit('/').next().unwrap_or(folder);
    let mut values = vec![
        ("experiment", experiment.name.clone()),
        ("job_id", job.to_owned()),
    ];
    let times = || report.runs.iter().filter_map(|runs| runs.wall_millis);
    let start = times().map(|(start, _)| start).min();
    let end = times().map(|(_, end)| end).max();
    let mut runs = report.runs.iter();
    let runs = runs.find(|runs| runs.experiment == experiment.name);
    let filter = runs.and_then(|runs| runs.wall_millis);
    let times = [
        ("start_time_ms", start),
        ("end_time_ms", end),
        ("filter_start", filter.map(|(start, _)| start)),
        ("filter_end", filter.map(|(_, end)| end)),
    ];
    let times = times.into_iter();
    values.extend(times.filter_map(|(name, time)| Some((name, time?.to_string()))));
    values
}

fn replaced(text: &str, name: &str, value: &str) -> String {
    let spaced = text.replace(&format!("{{{{ {name} }}}}"), value);
    spaced.replace(&format!("{{{{{name}}}}}"), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExperimentRuns;
    use crate::fixture::{regressed, report};

    // compat: SMP and soaks | report_links and their variables | differs | job_id is the name of the results folder
    #[test]
    fn links_have_their_variables_filled_in_and_one_for_each_variant() {
        let mut experiment = regressed();
        let link = |text: &str, link: &str| ReportLink {
            text: text.to_owned(),
            link: link.to_owned(),
        };
        experiment.report_links = vec![
            link(
                "all",
                "https://x.example/{{ job_id }}?{{start_time_ms}}-{{ end_time_ms }}&{{ other }}",
            ),
            link(
                "logs",
                "https://x.example/{{ experiment }}/{{ variant }}?{{ filter_start }}-{{ filter_end }}",
            ),
        ];
        let mut report = report(vec![experiment]);
        report.results_folder = ".stillwell/results/a-job/".to_owned();

        let runs = |experiment: &str, start, end| ExperimentRuns {
            experiment: experiment.to_owned(),
            wall_millis: Some((start, end)),
            ..ExperimentRuns::default()
        };
        report.runs = vec![
            runs("quickstart", 1_700_000_000_000, 1_700_000_060_000),
            runs("another", 1_699_999_999_000, 1_700_000_001_000),
        ];
        let links = filled(&report.experiments[0], &report);
        let links: Vec<String> = links
            .iter()
            .map(|link| format!("{} {}", link.text, link.link))
            .collect();
        assert_eq!(
            links,
            [
                "all https://x.example/a-job?1699999999000-1700000060000&{{ other }}",
                "logs (baseline) https://x.example/quickstart/baseline?1700000000000-1700000060000",
                "logs (comparison) https://x.example/quickstart/comparison?1700000000000-1700000060000",
            ]
        );
        report.runs.clear();
        let links = filled(&report.experiments[0], &report);
        assert!(links[0].link.contains("{{start_time_ms}}"), "{links:?}");
    }
}
