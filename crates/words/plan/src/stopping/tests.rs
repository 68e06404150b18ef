use proptest::prelude::*;

use super::*;

#[test]
fn looks_are_those_of_the_rule() {
    let sequential = |max_pairs| StoppingPlan::Sequential { max_pairs }.looks();
    assert_eq!(sequential(20), [4, 6, 8, 10, 12, 14, 16, 18, 20]);
    assert_eq!(sequential(7), [4, 6, 7]);
    assert_eq!(sequential(4), [4]);
    assert_eq!(StoppingPlan::Fixed { pairs: 10 }.looks(), [10]);
    assert_eq!(StoppingPlan::Open { max_pairs: 6 }.looks(), [4, 5, 6]);
    assert_eq!(StoppingPlan::default().max_pairs(), 20);
}

fn any_stopping() -> impl Strategy<Value = StoppingPlan> {
    prop_oneof![
        (PAIRS_MIN..300).prop_map(|max_pairs| StoppingPlan::Sequential { max_pairs }),
        (PAIRS_MIN..300).prop_map(|max_pairs| StoppingPlan::Open { max_pairs }),
        (1..300_u32).prop_map(|pairs| StoppingPlan::Fixed { pairs }),
    ]
}

proptest! {
    #[test]
    fn looks_rise_from_the_fewest_pairs_to_the_most(stopping in any_stopping()) {
        let looks = stopping.looks();
        prop_assert!(looks.windows(2).all(|two| two[0] < two[1]));
        prop_assert_eq!(looks.last(), Some(&stopping.max_pairs()));
        let first = looks.first().copied();
        prop_assert_eq!(first, Some(stopping.first_look()));
        match stopping {
            StoppingPlan::Fixed { pairs } => prop_assert_eq!(first, Some(pairs)),
            _ => prop_assert_eq!(first, Some(PAIRS_MIN)),
        }
    }

    #[test]
    fn plans_read_back_from_captures(stopping in any_stopping()) {
        let text = serde_json::to_string(&stopping).unwrap();
        prop_assert_eq!(serde_json::from_str::<StoppingPlan>(&text).unwrap(), stopping);
    }
}

#[test]
fn designs_and_warm_ups_read_back_from_captures() {
    for design in [DesignPlan::Paired, DesignPlan::Duet, DesignPlan::SLICED] {
        let text = serde_json::to_string(&design).unwrap();
        assert!(text.contains(design.name()), "{text}");
        assert_eq!(serde_json::from_str::<DesignPlan>(&text).unwrap(), design);
    }
    for (warmup, text) in [
        (WarmupPlan::Stated, "\"stated\""),
        (WarmupPlan::Measured, "\"measured\""),
    ] {
        assert_eq!(serde_json::to_string(&warmup).unwrap(), text);
        assert_eq!(serde_json::from_str::<WarmupPlan>(text).unwrap(), warmup);
    }
}

#[test]
fn turns_have_room_for_chance() {
    assert!(DesignPlan::TURN_MIN_DEFAULT < DesignPlan::TURN_MAX_DEFAULT);
}
