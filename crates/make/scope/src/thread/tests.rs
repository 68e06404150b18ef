use super::*;

fn names(ends: &[PartEnd]) -> Vec<&str> {
    let mut names: Vec<&str> = ends.iter().map(|end| end.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn every_part_is_accounted_for() {
    let mut scope = Scope::new(&Token::new());
    scope.thread(Place::default(), "fine", |_| Ok(())).unwrap();
    scope
        .thread(Place::default(), "fails", |_| Err("port taken".into()))
        .unwrap();
    scope
        .thread(Place::default(), "panics", |_| panic!("at line one"))
        .unwrap();
    let ends = scope.close(Nanos::from_secs(10));
    assert_eq!(names(&ends), ["fails", "fine", "panics"]);
    let reason = |name: &str| {
        let end = ends.iter().find(|end| end.name == name).unwrap();
        end.result.as_ref().err().map(ToString::to_string)
    };
    assert_eq!(reason("fine"), None);
    assert_eq!(reason("fails").as_deref(), Some("port taken"));
    assert_eq!(reason("panics").as_deref(), Some("panicked: at line one"));
}

#[test]
fn workers_end_by_their_token() {
    let mut scope = Scope::new(&Token::new());
    for name in ["one", "two"] {
        scope
            .worker(Place::default(), name, |token| async move {
                token.cancelled().await;
                Ok(())
            })
            .unwrap();
    }
    let ends = scope.close(Nanos::from_secs(10));
    assert_eq!(names(&ends), ["one", "two"]);
    assert!(ends.iter().all(|end| end.result.is_ok()));
}

/// A caller that waited for the first thread waited for the second as well.
#[test]
fn a_name_that_is_used_again_before_its_end_is_known_is_that_of_two_threads() {
    let mut scope = Scope::new(&Token::new());
    scope.thread(Place::default(), "one", |_| Ok(())).unwrap();
    while !scope.running[&0].1.is_finished() {
        std::thread::yield_now();
    }
    scope
        .worker(Place::default(), "one", |token| async move {
            token.cancelled().await;
            Ok(())
        })
        .unwrap();
    assert_eq!(names(&scope.ends()), ["one"]);
    assert_eq!(scope.running.len(), 1);
    let ends = scope.close(Nanos::from_secs(10));
    assert_eq!(names(&ends), ["one"]);
    assert!(ends[0].result.is_ok());
}

#[test]
fn a_part_that_does_not_end_is_named_and_left_behind() {
    let (release, wait) = sync_channel::<()>(0);
    let mut scope = Scope::new(&Token::new());
    scope
        .thread(Place::default(), "deaf", move |_| Ok(wait.recv()?))
        .unwrap();
    let ends = scope.close(Nanos::from_millis(1));
    assert!(matches!(
        ends.as_slice(),
        [PartEnd {
            result: Err(PartFailure::Overdue { .. }),
            ..
        }]
    ));
    drop(release);
}

#[test]
fn a_cpu_that_does_not_exist_is_a_failure_of_the_part() {
    let mut scope = Scope::new(&Token::new());
    let place = Place {
        cpus: Some(vec![1000]),
        network: None,
    };
    scope.thread(place, "nowhere", |_| Ok(())).unwrap();
    let ends = scope.close(Nanos::from_secs(10));
    let failure = ends[0].result.as_ref().unwrap_err();
    assert_eq!(failure.to_string(), "pin a thread to CPUs [1000]");
}

#[test]
fn a_worker_carries_tasks_of_its_own() {
    let mut scope = Scope::new(&Token::new());
    let (sender, receiver) = sync_channel(8);
    scope
        .worker(Place::default(), "tasks", |_| async move {
            let mut tasks = crate::Tasks::new(2);
            for number in 0..2 {
                let sender = sender.clone();
                tasks.spawn(async move { sender.send(number).unwrap() });
            }
            assert!(!tasks.has_room());
            tasks.all_ended().await;
            Ok(())
        })
        .unwrap();
    assert!(scope.close(Nanos::from_secs(10))[0].result.is_ok());
    let mut numbers: Vec<i32> = receiver.try_iter().collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1]);
}
