//! Time that the hypervisor takes.

use super::*;

#[test]
fn steal_spoils_goals_that_wait_then_cpu_time_and_never_memory_or_instructions() {
    // Of two CPUs, so 0.2 s each second are 10 %.
    for (per_second, spoils_cpu_time) in [(0.18e9, false), (0.22e9, true)] {
        let stolen = TestRun::healthy().with(catalogue::HOST_CPU_STEAL, Labels::none(), per_second);
        let warning = only_warning(&stolen);
        assert!(
            matches!(warning, RunWarning::CpuSteal { share, .. } if (share - per_second / 2e9).abs() < 1e-9)
        );
        assert!(warning.spoils(&GoalMetric::EgressThroughput));
        assert_eq!(warning.spoils(&GoalMetric::CpuPerEvent), spoils_cpu_time);
        for untouched in [GoalMetric::Memory, GoalMetric::InstructionsPerEvent] {
            assert!(!warning.spoils(&untouched));
        }
    }
}
