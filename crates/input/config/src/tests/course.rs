//! When an experiment has seen enough, and how its runs go.

use stillwell_plan::stopping::{DesignPlan, WarmupPlan};
use stillwell_plan::{ExperimentPlan, StoppingPlan};
use stillwell_units::Nanos;

use super::golden::LEAST;
use super::mistakes::codes;
use super::{experiment, experiment_with};
use crate::rules::check_designs;
use crate::{DesignOverride, StoppingOverride, SuiteOverrides, VariantArgument};

fn plan(text: &str) -> ExperimentPlan {
    with(text, &SuiteOverrides::default())
}

fn with(text: &str, overrides: &SuiteOverrides) -> ExperimentPlan {
    let loaded = experiment_with(&format!("{LEAST}{text}\n"), overrides);
    let loaded = loaded.unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    loaded.plan.experiments.into_iter().next().unwrap()
}

#[test]
fn the_default_is_up_to_twenty_pairs_with_confirmation() {
    let plan = plan("");
    assert_eq!(plan.stopping, StoppingPlan::Sequential { max_pairs: 20 });
    assert_eq!(plan.design, DesignPlan::Paired);
    assert_eq!(plan.warmup, WarmupPlan::Stated);
    assert!(plan.confirm);
    assert_eq!(plan.family, None);
}

#[test]
fn designs_read_as_typed() {
    let sliced = |turn_min, turn_max| DesignPlan::Sliced {
        turn_min: Nanos::from_millis(turn_min),
        turn_max: Nanos::from_millis(turn_max),
    };
    for (text, design) in [
        ("paired", DesignPlan::Paired),
        ("duet", DesignPlan::Duet),
        ("sliced", sliced(20, 60)),
        ("{sliced: }", sliced(20, 60)),
        ("{sliced: {}}", sliced(20, 60)),
        ("{sliced: {turn_max: 2s}}", sliced(20, 2_000)),
        (
            "{sliced: {turn_min: 300ms, turn_max: 300ms}}",
            sliced(300, 300),
        ),
    ] {
        assert_eq!(plan(&format!("design: {text}")).design, design, "{text}");
    }
}

#[test]
fn warm_ups_read_as_typed() {
    let second = Nanos::SECOND;
    for (text, warmup, length) in [
        ("phases: {warmup: 1s}", WarmupPlan::Stated, second),
        (
            "phases: {warmup: auto}",
            WarmupPlan::Measured,
            Nanos::from_secs(5),
        ),
        (
            "phases: {warmup: {at_least: 1s}}",
            WarmupPlan::Measured,
            second,
        ),
        (
            "phases: {warmup: {at_least: 0s}}",
            WarmupPlan::Measured,
            Nanos::ZERO,
        ),
        ("include_startup: true", WarmupPlan::Stated, Nanos::ZERO),
        (
            "include_startup: false",
            WarmupPlan::Stated,
            Nanos::from_secs(5),
        ),
    ] {
        let loaded = experiment(&format!("{LEAST}{text}\n")).unwrap();
        assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
        let plan = &loaded.plan.experiments[0];
        assert_eq!(
            (plan.warmup, plan.run_plan.phases.warmup),
            (warmup, length),
            "{text}"
        );
    }
    assert_eq!(
        codes(&format!("{LEAST}phases: {{warmup: 0s}}\n")),
        [(stillwell_text::code::NOTHING_MEASURED, 5)]
    );
}

#[test]
fn mistakes_in_the_course_are_shown_all_at_once() {
    snapshot!(&format!(
        "{LEAST}pairs: {{max: 3, fixed: 4}}
design: duett
confirm: perhaps
include_startup: true
phases: {{warmup: {{at_lest: 2s}}, measure: 1s}}
"
    ));
    snapshot!(&format!(
        "{LEAST}pairs: {{max: 2000}}
design: {{sliced: {{turn_max: 15ms}}}}
phases: {{warmup: soon, measure: 1s}}
"
    ));
    snapshot!(&format!(
        "{LEAST}pairs: []
design: sliced
phases: {{measure: 300ms}}
"
    ));
}

#[test]
fn the_command_line_overrides_the_stopping_rule() {
    let stopping = |text, typed| {
        let overrides = SuiteOverrides {
            stopping: Some(typed),
            ..SuiteOverrides::default()
        };
        with(text, &overrides).stopping
    };
    use StoppingOverride::{FixedPairs, MaxPairs, NoMax};
    assert_eq!(
        stopping("pairs: 8", MaxPairs(30)),
        StoppingPlan::Sequential { max_pairs: 30 }
    );
    assert_eq!(
        stopping("", FixedPairs(3)),
        StoppingPlan::Fixed { pairs: 3 }
    );
    assert_eq!(stopping("", NoMax), StoppingPlan::Open { max_pairs: 200 });
    assert_eq!(
        stopping("pairs: {open: 50}", NoMax),
        StoppingPlan::Open { max_pairs: 50 }
    );
}

#[test]
fn the_command_line_overrides_how_runs_go() {
    let plan = with(
        "design: {sliced: {turn_max: 300ms}}\nphases: {warmup: auto}",
        &SuiteOverrides {
            design: Some(DesignOverride::Sliced),
            confirm: Some(false),
            warmup: Some(Nanos::SECOND),
            ..SuiteOverrides::default()
        },
    );
    assert!(!plan.confirm);
    assert_eq!(plan.warmup, WarmupPlan::Stated);
    assert!(
        matches!(plan.design, DesignPlan::Sliced { turn_max, .. } if turn_max == Nanos::from_millis(300))
    );
    let plan = with(
        "design: sliced\nphases: {warmup: {at_least: 9s}}",
        &SuiteOverrides {
            design: Some(DesignOverride::Duet),
            include_startup: true,
            ..SuiteOverrides::default()
        },
    );
    assert_eq!(plan.design, DesignPlan::Duet);
    assert_eq!(
        (plan.warmup, plan.run_plan.phases.warmup),
        (WarmupPlan::Stated, Nanos::ZERO)
    );
}

#[test]
fn flags_that_cannot_be_are_errors() {
    let none = SuiteOverrides::default;
    for (overrides, message) in [
        (
            SuiteOverrides {
                stopping: Some(StoppingOverride::MaxPairs(3)),
                ..none()
            },
            "a verdict needs 4 pairs",
        ),
        (
            SuiteOverrides {
                stopping: Some(StoppingOverride::MaxPairs(0)),
                ..none()
            },
            "nothing would be compared",
        ),
        (
            SuiteOverrides {
                stopping: Some(StoppingOverride::FixedPairs(20_000)),
                ..none()
            },
            "at most 10000",
        ),
        (
            SuiteOverrides {
                include_startup: true,
                warmup: Some(Nanos::SECOND),
                ..none()
            },
            "`--warmup` exclude each other",
        ),
        (
            SuiteOverrides {
                design: Some(DesignOverride::Sliced),
                measure: Some(Nanos::from_millis(300)),
                ..none()
            },
            "too long for a measured phase of 300ms",
        ),
    ] {
        let diagnostics = experiment_with(LEAST, &overrides).unwrap_err().to_string();
        assert!(diagnostics.contains(message), "{diagnostics}");
    }
}

#[test]
fn more_than_two_variants_are_compared_with_the_first() {
    let text = LEAST.replace(
        "comparison: {arguments: [--slow]}",
        "a: {arguments: [--slow]}, b: {}, c: {binary: ./x, arguments: [y]}",
    );
    let loaded = experiment(&text).unwrap();
    assert_eq!(loaded.plan.experiments[0].variants.len(), 4);
    let warnings = loaded.warnings.to_string();
    assert!(
        warnings.contains("`baseline` and `b` do not differ"),
        "{warnings}"
    );
}

/// A shorter run must not leave out a step of its timeline silently.
#[test]
fn steps_that_do_not_come_any_more_are_errors() {
    let text = format!("{LEAST}phases: {{measure: 10s}}\ntimeline: [{{at: 5s, note: here}}]\n");
    assert!(experiment_with(&text, &SuiteOverrides::default()).is_ok());
    for overrides in [
        SuiteOverrides {
            quick: true,
            ..SuiteOverrides::default()
        },
        SuiteOverrides {
            measure: Some(Nanos::from_secs(2)),
            ..SuiteOverrides::default()
        },
    ] {
        let error = experiment_with(&text, &overrides).unwrap_err().to_string();
        assert!(error.contains("a step of its timeline"), "{error}");
    }
}

/// Of a service that runs already, a variant can only have another address.
#[test]
fn variants_of_a_url_have_no_program() {
    let with = |variant: &str| {
        let text = format!(
            "target: {{url: 'http://127.0.0.1:1/'}}\nworkload: {{generators: [{{requests: {{}}, rate: 10/s}}]}}\n\
             variants: {{baseline: {{}}, comparison: {{{variant}}}}}\ngoals: [latency_p50]\n"
        );
        experiment(&text)
            .map(drop)
            .map_err(|diagnostics| diagnostics.to_string())
    };
    assert_eq!(with("url: 'http://127.0.0.1:2/'"), Ok(()));
    let error = with("environment: {A: b}").unwrap_err();
    assert!(error.contains("the target is a URL"), "{error}");
}

#[test]
fn only_two_variants_can_share_the_machine() {
    let three = LEAST.replace(
        "comparison: {arguments: [--slow]}",
        "a: {arguments: [--slow]}, b: {arguments: [--fast]}",
    );
    let problem = |text: &str, design: &str| {
        let loaded = experiment(&format!("{text}design: {design}\n")).unwrap();
        check_designs(&loaded.plan).to_string()
    };
    for design in ["paired", "duet", "sliced"] {
        assert_eq!(problem(LEAST, design), "", "{design}");
    }
    assert_eq!(problem(&three, "paired"), "");
    for design in ["duet", "sliced"] {
        let problem = problem(&three, design);
        let message = format!("`design: {design}` needs two variants, and `one` has 3");
        assert!(problem.contains(&message), "{problem}");
    }
}

#[test]
fn several_builds_need_a_revision() {
    let git = |revision: &str| Some(VariantArgument::Git(revision.to_owned()));
    let with_builds = SuiteOverrides {
        builds: Some(2),
        ..SuiteOverrides::default()
    };
    let with_revisions = SuiteOverrides {
        baseline: git("v1"),
        comparison: git("v2"),
        build: Some("make".to_owned()),
        build_output: Some("out/x".into()),
        ..with_builds.clone()
    };
    let in_file = format!("{LEAST}builds: 2\n");
    for (text, overrides, is_right) in [
        (LEAST, &with_builds, false),
        (&in_file, &SuiteOverrides::default(), false),
        (LEAST, &with_revisions, true),
        (&in_file, &with_revisions, true),
    ] {
        let error = experiment_with(text, overrides).map_err(|errors| errors.to_string());
        let message = "no variant comes from a revision: use `git:` variants, or remove `builds`";
        match error {
            Ok(_) => assert!(is_right, "{text}"),
            Err(error) => assert!(!is_right && error.contains(message), "{error}"),
        }
    }
}

#[test]
fn a_target_is_ready_before_the_deadline() {
    let ready = "target: {ready: {delay: 2s}, ";
    let deadline = "phases: {ready: 2s}\n";
    for (target, generator, phases, is_right) in [
        (ready, "tcp", "", true),
        (ready, "tcp", "phases: {ready: 3s}\n", true),
        (ready, "tcp", deadline, false),
        ("target: {ready: {delay: 30s}, ", "tcp", "", false),
        ("target: {", "tcp", "phases: {ready: 1s}\n", true),
        // No probe shows that a target of datagrams is ready.
        ("target: {", "udp", "phases: {ready: 1s}\n", false),
    ] {
        let text = LEAST.replace("target: {", target);
        let text = text.replace(
            "tcp: 127.0.0.1:9100",
            &format!("{generator}: 127.0.0.1:9100"),
        );
        let codes = codes(&format!("{text}{phases}"));
        let expected: &[(&str, usize)] = match is_right {
            true => &[],
            false => &[(stillwell_text::code::OUT_OF_RANGE, 1)],
        };
        assert_eq!(codes, expected, "{target} {generator} {phases}");
    }
}
