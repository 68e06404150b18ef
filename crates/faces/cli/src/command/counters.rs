//! Goals that need a counter of instructions, on a machine without one.

use stillwell_metric::{CountingObstacle, CountingState};
use stillwell_observer::instruction_counting;
use stillwell_plan::{ExperimentPlan, RunPlan, SuitePlan};

use crate::paint::Paint;

/// Returns a sentence for each goal of instructions that this machine cannot measure, or only in part.
pub(crate) fn of_suite(plan: &SuitePlan) -> Vec<String> {
    let mut experiments = plan.experiments.iter();
    if !experiments.any(|experiment| experiment.run_plan.observer.instructions) {
        return Vec::new();
    }
    let state = instruction_counting();
    let experiments = plan.experiments.iter();
    experiments
        .flat_map(|experiment| of_experiment(experiment, &state))
        .collect()
}

/// Prints a warning for each of them.
pub(crate) fn warn(plan: &SuitePlan) {
    for line in of_suite(plan) {
        Paint::print_message(&format!("warning: {line}"));
    }
}

/// Returns a sentence if this machine does not count the instructions that a run is to record, or not all.
pub(crate) fn of_run(plan: &RunPlan) -> Option<String> {
    if !plan.observer.instructions {
        return None;
    }
    match instruction_counting() {
        CountingState::All => None,
        CountingState::User { paranoid } => Some(in_part(paranoid)),
        CountingState::None(obstacle) => Some(with_remedy(
            format!("instructions are not counted: {obstacle}"),
            &obstacle,
        )),
    }
}

fn of_experiment(plan: &ExperimentPlan, state: &CountingState) -> Vec<String> {
    let mut counterless = plan.goals.iter();
    let decides = counterless.find(|goal| !goal.metric.needs_instructions());
    let goals = plan.goals.iter().enumerate();
    let goals = goals.filter(|(_, goal)| goal.metric.needs_instructions());
    goals
        .filter_map(|(place, goal)| {
            let (experiment, metric) = (&plan.name, &goal.metric);
            let obstacle = match state {
                CountingState::All => return None,
                CountingState::User { paranoid } => {
                    return Some(format!("{experiment}: {metric}: {}", in_part(*paranoid)));
                }
                CountingState::None(obstacle) => obstacle,
            };
            let line = match decides {
                None => format!("{experiment}: {metric} cannot be measured: {obstacle}"),
                Some(decides) if place == 0 => format!(
                    "{experiment}: {metric} is skipped: {obstacle}; {} decides instead",
                    decides.metric
                ),
                Some(_) => format!("{experiment}: {metric} is skipped: {obstacle}"),
            };
            Some(with_remedy(line, obstacle))
        })
        .collect()
}

fn with_remedy(mut line: String, obstacle: &CountingObstacle) -> String {
    if let Some(remedy) = obstacle.remedy() {
        line.push_str("; ");
        line.push_str(remedy);
    }
    line
}

fn in_part(paranoid: Option<i64>) -> String {
    let level = paranoid.map_or_else(String::new, |level| {
        format!(": perf_event_paranoid is {level}; 1 permits those in the kernel too")
    });
    format!("only instructions in user mode are counted{level}")
}

#[cfg(test)]
mod tests {
    use stillwell_plan::{GoalMetric, GoalPlan};

    use super::*;

    fn plan(goals: &[GoalMetric]) -> ExperimentPlan {
        let goals = goals.iter().cloned().map(GoalPlan::new).collect();
        stillwell_verdict::synthetic::plan("e", goals)
    }

    #[test]
    fn a_goal_without_a_counter_is_named_with_its_remedy() {
        use GoalMetric::{CpuPerEvent, InstructionsPerEvent};
        let not_permitted = CountingState::None(CountingObstacle::NotPermitted { paranoid: 3 });
        let user = CountingState::User { paranoid: Some(2) };
        for (goals, state, expected) in [
            (
                vec![InstructionsPerEvent, CpuPerEvent],
                &not_permitted,
                "e: instructions_per_event is skipped: not permitted: perf_event_paranoid is 3; cpu_per_event \
                 decides instead; set it to 2 or less, or give CAP_PERFMON",
            ),
            (
                vec![CpuPerEvent, InstructionsPerEvent],
                &not_permitted,
                "e: instructions_per_event is skipped: not permitted: perf_event_paranoid is 3; set it to 2 or \
                 less, or give CAP_PERFMON",
            ),
            (
                vec![InstructionsPerEvent],
                &not_permitted,
                "e: instructions_per_event cannot be measured: not permitted: perf_event_paranoid is 3; set it \
                 to 2 or less, or give CAP_PERFMON",
            ),
            (
                vec![InstructionsPerEvent, CpuPerEvent],
                &user,
                "e: instructions_per_event: only instructions in user mode are counted: perf_event_paranoid is 2; 1 \
                 permits those in the kernel too",
            ),
        ] {
            assert_eq!(of_experiment(&plan(&goals), state), [expected]);
        }
        let all = of_experiment(&plan(&[InstructionsPerEvent]), &CountingState::All);
        assert!(all.is_empty());
        assert!(of_experiment(&plan(&[CpuPerEvent]), &not_permitted).is_empty());
    }
}
