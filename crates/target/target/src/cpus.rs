//! Division of CPUs between the target and Stillwell.

use std::fs;
use std::path::Path;

use stillwell_plan::placement::CpuChoice;
use stillwell_scope::permitted_cpus;

use crate::Note;

/// Assignment of CPUs; `None` for any.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Division {
    /// CPUs of the target.
    pub target: Option<Vec<u16>>,
    /// Those of generators, sinks and observers.
    pub ours: Option<Vec<u16>>,
    /// Requests that could not be fulfilled.
    pub notes: Vec<Note>,
}

/// The CPUs that this process may use: core by core, so a division in halves separates cores.
#[must_use]
pub fn online() -> Vec<u16> {
    let mut cpus = permitted_cpus();
    if cpus.is_empty() {
        cpus.push(0);
    }
    by_core(cpus, Path::new("/sys/devices/system/cpu"))
}

/// Sorts CPUs by the first CPU of their core, from the files in `folder`.
fn by_core(mut cpus: Vec<u16>, folder: &Path) -> Vec<u16> {
    cpus.sort_by_cached_key(|cpu| {
        let path = folder.join(format!("cpu{cpu}/topology/thread_siblings_list"));
        let siblings = fs::read_to_string(path).unwrap_or_default();
        let digits = siblings
            .split(|letter: char| !letter.is_ascii_digit())
            .next();
        let first = digits.and_then(|digits| digits.parse().ok());
        (first.unwrap_or(*cpu), *cpu)
    });
    cpus
}

/// Divides the CPUs in `online` as requested. Each side is in rising order.
///
/// Two [`CpuChoice::Auto`] halve them: the target gets the upper half, Stillwell the lower half with the odd
/// CPU. `Auto` beside another choice gets the remaining CPUs. A single CPU is shared. [`CpuChoice::Count`]
/// takes the highest CPUs for the target and the lowest for Stillwell.
#[must_use]
pub fn divide(online: &[u16], target: &CpuChoice, ours: &CpuChoice) -> Division {
    let mut notes = Vec::new();
    let chosen_target = choose(online, target, Side::TargetProcess, &mut notes);
    let chosen_self = choose(online, ours, Side::Ours, &mut notes);
    let half = online.len() / 2;
    let upper = || online[online.len() - half..].to_vec();
    let lower = || online[..online.len() - half].to_vec();
    let mut shared = || {
        notes.push(Note::new(
            "a CPU for the target alone",
            "there are too few CPUs: the target shares them with generators and sinks",
        ));
        Some(online.to_vec())
    };
    let mut remaining = |taken: Option<&Vec<u16>>, half: Vec<u16>| {
        let free: Vec<u16> = match taken {
            None => half,
            Some(taken) => online
                .iter()
                .copied()
                .filter(|cpu| !taken.contains(cpu))
                .collect(),
        };
        if free.is_empty() {
            shared()
        } else {
            Some(free)
        }
    };
    let is_auto = |choice: &CpuChoice| matches!(choice, CpuChoice::Auto);
    let (target, ours) = match (is_auto(target), is_auto(ours)) {
        (true, true) if half == 0 => (shared(), Some(online.to_vec())),
        (true, true) => (Some(upper()), Some(lower())),
        (true, false) => (remaining(chosen_self.as_ref(), upper()), chosen_self),
        (false, true) => {
            let ours = remaining(chosen_target.as_ref(), lower());
            (chosen_target, ours)
        }
        (false, false) => (chosen_target, chosen_self),
    };
    let rising = |cpus: Vec<u16>| {
        let mut cpus = cpus;
        cpus.sort_unstable();
        cpus
    };
    Division {
        target: target.map(rising),
        ours: ours.map(rising),
        notes,
    }
}

/// Divides the CPUs in `online` if the run starts no target: Stillwell uses all of them, unless
/// `ours` chooses, and a target that runs already stays where it is.
#[must_use]
pub fn divide_without_target(online: &[u16], ours: &CpuChoice) -> Division {
    let mut notes = Vec::new();
    let mut ours = match ours {
        CpuChoice::Auto => Some(online.to_vec()),
        ours => choose(online, ours, Side::Ours, &mut notes),
    };
    if let Some(cpus) = &mut ours {
        cpus.sort_unstable();
    }
    Division {
        target: None,
        ours,
        notes,
    }
}

/// CPUs of sinks and of generators that share no CPU: the lower half with the odd CPU, and the upper half.
/// None if there are too few.
#[must_use]
pub fn separate_ends(cpus: &[u16]) -> Option<(Vec<u16>, Vec<u16>)> {
    let half = cpus.len() / 2;
    (half > 0).then(|| {
        let (sinks, generators) = cpus.split_at(cpus.len() - half);
        (sinks.to_vec(), generators.to_vec())
    })
}

#[derive(Clone, Copy)]
enum Side {
    TargetProcess,
    Ours,
}

/// Returns the CPUs that `choice` names; `None` for [`CpuChoice::Any`], and for [`CpuChoice::Auto`], which
/// depends on the other side.
fn choose(
    online: &[u16],
    choice: &CpuChoice,
    side: Side,
    notes: &mut Vec<Note>,
) -> Option<Vec<u16>> {
    match choice {
        CpuChoice::Auto | CpuChoice::Any => None,
        CpuChoice::Count(count) => {
            let requested = usize::from(*count).max(1);
            let granted = requested.min(online.len());
            if granted < requested {
                let why = format!("this process may use {granted}");
                notes.push(Note::new(format!("{requested} CPUs"), why));
            }
            Some(match side {
                Side::TargetProcess => online[online.len() - granted..].to_vec(),
                Side::Ours => online[..granted].to_vec(),
            })
        }
        CpuChoice::List(list) => {
            let (granted, missing): (Vec<u16>, Vec<u16>) =
                list.iter().partition(|cpu| online.contains(cpu));
            if !missing.is_empty() {
                let why = "this process may not use them";
                notes.push(Note::new(format!("CPUs {missing:?}"), why));
            }
            (!granted.is_empty()).then_some(granted)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cpus_are_divided() {
        use CpuChoice::{Any, Auto, Count, List};
        type Row<'a> = (
            u16,
            CpuChoice,
            CpuChoice,
            Option<&'a [u16]>,
            Option<&'a [u16]>,
            usize,
        );
        let rows: [Row<'_>; 12] = [
            (1, Auto, Auto, Some(&[0]), Some(&[0]), 1),
            (2, Auto, Auto, Some(&[1]), Some(&[0]), 0),
            (3, Auto, Auto, Some(&[2]), Some(&[0, 1]), 0),
            (4, Auto, Auto, Some(&[2, 3]), Some(&[0, 1]), 0),
            (4, Count(1), Auto, Some(&[3]), Some(&[0, 1, 2]), 0),
            (4, Auto, Count(1), Some(&[1, 2, 3]), Some(&[0]), 0),
            (2, Count(8), Auto, Some(&[0, 1]), Some(&[0, 1]), 2),
            (2, Any, Any, None, None, 0),
            (2, Any, Auto, None, Some(&[0]), 0),
            (4, List(vec![0]), Auto, Some(&[0]), Some(&[1, 2, 3]), 0),
            (2, List(vec![7]), Count(1), None, Some(&[0]), 1),
            (2, Count(0), Any, Some(&[1]), None, 0),
        ];
        for (count, target, ours, expected_target, expected_ours, notes) in rows {
            let online: Vec<u16> = (0..count).collect();
            let division = divide(&online, &target, &ours);
            let case = format!("{count} {target:?} {ours:?}");
            assert_eq!(division.target.as_deref(), expected_target, "{case}");
            assert_eq!(division.ours.as_deref(), expected_ours, "{case}");
            assert_eq!(division.notes.len(), notes, "{case}");
        }
    }

    #[test]
    fn halves_share_no_core_of_two_threads() {
        let folder = tempfile::tempdir().unwrap();
        for cpu in 0..8_u16 {
            let topology = folder.path().join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            let siblings = format!("{},{}\n", cpu % 4, cpu % 4 + 4);
            fs::write(topology.join("thread_siblings_list"), siblings).unwrap();
        }
        let online = by_core((0..8).collect(), folder.path());
        assert_eq!(online, [0, 4, 1, 5, 2, 6, 3, 7]);
        let division = divide(&online, &CpuChoice::Auto, &CpuChoice::Auto);
        assert_eq!(division.ours.unwrap(), [0, 1, 4, 5]);
        assert_eq!(division.target.unwrap(), [2, 3, 6, 7]);
        let unknown = by_core(vec![0, 1, 2, 3], Path::new("/nowhere"));
        assert_eq!(unknown, [0, 1, 2, 3]);
    }

    proptest! {
        #[test]
        fn for_all_hosts_automatic_halves_never_overlap(count in 2_u16..300) {
            let online: Vec<u16> = (0..count).map(|cpu| cpu * 2).collect();
            let division = divide(&online, &CpuChoice::Auto, &CpuChoice::Auto);
            let (target, mut ours) = (division.target.unwrap(), division.ours.unwrap());
            prop_assert!(!target.is_empty() && ours.len() >= target.len());
            ours.extend(target);
            prop_assert_eq!(ours, online);
        }
    }

    #[test]
    fn without_a_target_all_cpus_are_ours_and_both_ends_are_apart() {
        let division = divide_without_target(&[2, 0, 1], &CpuChoice::Auto);
        assert_eq!(division.target, None);
        assert_eq!(division.ours.as_deref(), Some([0, 1, 2].as_slice()));
        assert_eq!(separate_ends(&[0, 1, 2]), Some((vec![0, 1], vec![2])));
        assert_eq!(separate_ends(&[0]), None);
        let division = divide_without_target(&[0, 1], &CpuChoice::List(vec![1]));
        assert_eq!(division.ours, Some(vec![1]));
    }
}
