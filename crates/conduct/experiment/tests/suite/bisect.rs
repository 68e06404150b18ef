//! A search among the commits of a small repository.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use stillwell_capture::RunIdentity;
use stillwell_experiment::bisect::{
    Answer, BisectError, BisectProgress, BisectRecord, Bisected, Found, Outcome, run_bisect,
};
use stillwell_experiment::{Executor, ExecutorError, SuiteError};
use stillwell_plan::experiment::{BinarySource, GitSource};
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::{SuitePlan, TargetKind};
use stillwell_run::{Interrupt, Progress, RunRequest};
use stillwell_testkit::{git, program_or_skip};
use stillwell_units::{Nanos, Seed};
use stillwell_verdict::RunSummary;

use crate::mock::{Made, Mock, World, options, sequential, suite};

/// Commits after GOOD.
const COMMITS: usize = 16;
/// The first bad one.
const CULPRIT: usize = 11;

/// A program whose text is what it costs: `NUMBER COST`, or no program at all.
fn repository(folder: &Path, cost: impl Fn(usize) -> Option<f64>) -> PathBuf {
    let repository = folder.join("repository");
    fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    for number in 0..=COMMITS {
        let text = cost(number).map_or_else(String::new, |cost| format!("{number} {cost}"));
        fs::write(repository.join("program"), text).unwrap();
        fs::write(repository.join("number"), number.to_string()).unwrap();
        git(&repository, &["add", "."]);
        let message = format!("change {number}");
        git(&repository, &["commit", "--quiet", "-m", &message]);
        git(&repository, &["tag", &format!("c{number}")]);
    }
    repository
}

/// `c0` against `c16`; a program without text does not build.
fn plan(repository: &Path) -> SuitePlan {
    let mut plan_or_identity = sequential("relay", 20);
    for (variant, revision) in plan_or_identity.variants.iter_mut().zip(["c0", "c16"]) {
        variant.binary = BinarySource::Git(GitSource {
            repository: repository.to_path_buf(),
            revision: revision.to_owned(),
            build: "test -s program && chmod +x program".to_owned(),
            output: "program".into(),
        });
    }
    suite([plan_or_identity])
}

/// Runs cost what their program says, give or take.
struct Priced<E> {
    /// Cost of each variant of the present pair.
    costs: Rc<RefCell<BTreeMap<String, f64>>>,
    inner: E,
    runs: u32,
    /// Is interrupted in this run.
    interrupted_in: Option<u32>,
}

fn priced(noise: f64) -> Priced<impl Executor> {
    let costs: Rc<RefCell<BTreeMap<String, f64>>> = Rc::default();
    let known = Rc::clone(&costs);
    let world = World {
        seed: 3,
        noise,
        ..World::default()
    };
    let inner = Mock::new(
        move |plan_or_identity: &RunIdentity, _: &Interrupt| -> Made {
            let mut made = world.make(plan_or_identity);
            made.cpu_per_event *= known.borrow()[&plan_or_identity.variant];
            made
        },
    );
    Priced {
        costs,
        inner,
        runs: 0,
        interrupted_in: None,
    }
}

impl<E: Executor> Executor for Priced<E> {
    fn execute(
        &mut self,
        request: RunRequest,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<RunSummary, ExecutorError> {
        let program = match &request.plan.target.kind {
            TargetKind::Child(child) => child.program.as_path(),
            TargetKind::Container(_)
            | TargetKind::Pid(_)
            | TargetKind::Url(_)
            | TargetKind::None => Path::new(""),
        };
        let text = fs::read_to_string(program).unwrap();
        let cost = text.split(' ').nth(1).unwrap().parse().unwrap();
        let variant = request.identity.clone().unwrap().variant;
        self.costs.borrow_mut().insert(variant, cost);
        self.runs += 1;
        if self.interrupted_in == Some(self.runs) {
            interrupt.raise(2);
        }
        self.inner.execute(request, interrupt, progress)
    }

    fn execute_pair(
        &mut self,
        requests: [RunRequest; 2],
        _design: DesignPlan,
        _turns: &Seed,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(usize, Progress),
    ) -> [Result<RunSummary, ExecutorError>; 2] {
        let mut place = 0..;
        requests.map(|request| {
            let run = place.next().unwrap();
            self.execute(request, interrupt, &mut |event| progress(run, event))
        })
    }

    fn sum_up(&mut self, folder: &Path, warmup: Nanos) -> Result<RunSummary, ExecutorError> {
        self.inner.sum_up(folder, warmup)
    }
}

fn search(
    folder: &Path,
    plan: &SuitePlan,
    executor: &mut dyn Executor,
    resume: bool,
) -> Result<Bisected, BisectError> {
    let mut ignore = |_: BisectProgress<'_>| {};
    let options = options(folder, resume);
    run_bisect(plan, &options, executor, &Interrupt::new(), &mut ignore)
}

/// Cost of every commit: from the culprit on 8 % more.
const fn one_culprit(number: usize) -> Option<f64> {
    Some(if number < CULPRIT { 1.0 } else { 1.08 })
}

fn certain(good: usize, bad: usize) -> Outcome {
    Outcome::Found(Found {
        good,
        bad,
        confirmed: Answer::Bad,
    })
}

/// Each commit is compared with the one before it, so GOOD must be on the line that is searched.
#[test]
fn a_good_commit_beside_the_line_of_first_parents_is_refused() {
    let test = "a_good_commit_beside_the_line_of_first_parents_is_refused";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path(), one_culprit);
    git(&repository, &["checkout", "--quiet", "-b", "fix", "c14"]);
    fs::write(repository.join("fix"), "").unwrap();
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "-m", "fix"]);
    git(&repository, &["checkout", "--quiet", "-b", "line", "c16"]);
    git(
        &repository,
        &["merge", "--quiet", "--no-ff", "-m", "merge", "fix"],
    );
    let between = |good: &str| {
        let interrupt = Interrupt::new();
        stillwell_experiment::bisect::commits_between(&repository, good, "line", &interrupt)
    };
    let error = between("fix").unwrap_err().to_string();
    let parent = git(&repository, &["rev-parse", "c14"]);
    assert!(error.contains(&parent), "{error}");
    assert_eq!(between("c14").unwrap().unwrap().len(), 4);
}

#[test]
fn the_bad_one_of_16_commits_is_found() {
    let test = "the_bad_one_of_16_commits_is_found";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path(), one_culprit);
    let plan = plan(&repository);
    let mut executor = priced(0.01);
    let ended = search(folder.path(), &plan, &mut executor, false).unwrap();
    assert_eq!(ended.outcome, Some(certain(CULPRIT - 1, CULPRIT)));
    let record = ended.record.unwrap();
    assert_eq!(record.commits.len(), COMMITS + 1);
    assert_eq!(record.commits[CULPRIT].title, "change 11");
    // The ends, four halvings, and the confirmation.
    assert_eq!(record.steps.len(), 6);
    assert_eq!(
        record.steps[5].comparison,
        git(&repository, &["rev-parse", "c11"])
    );
    assert!((record.steps[1].tolerance - 0.04).abs() < 0.01);
    let results = folder.path().join("results");
    assert_eq!(BisectRecord::read(&results).unwrap(), record);
    for step in &record.steps {
        assert!(results.join(&step.results).join("suite.json").is_file());
    }

    // It is not begun twice, but gone on with as often as one likes.
    let mut again = priced(0.01);
    let error = search(folder.path(), &plan, &mut again, false).unwrap_err();
    assert!(matches!(
        error,
        BisectError::Suite(SuiteError::AlreadyThere { .. })
    ));
    let resumed = search(folder.path(), &plan, &mut again, true).unwrap();
    assert_eq!((resumed.outcome, again.runs), (ended.outcome, 0));
    let mut changed = plan.clone();
    changed.experiments[0].goals[0].direction = stillwell_plan::goal::Direction::HigherIsBetter;
    let error = search(folder.path(), &changed, &mut again, true).unwrap_err();
    assert!(matches!(
        error,
        BisectError::Suite(SuiteError::PlanChanged { .. })
    ));
}

#[test]
fn an_interrupted_search_goes_on_and_comes_to_the_same() {
    let test = "an_interrupted_search_goes_on_and_comes_to_the_same";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&repository(folder.path(), one_culprit));
    let mut whole = priced(0.01);
    let ended = search(folder.path(), &plan, &mut whole, false).unwrap();

    let results = folder.path().join("results");
    fs::remove_dir_all(&results).unwrap();
    let mut first = priced(0.01);
    first.interrupted_in = Some(whole.runs / 2);
    let cut = search(folder.path(), &plan, &mut first, false).unwrap();
    assert_eq!(cut.outcome, None);
    let steps = cut.record.unwrap().steps;
    assert!((1..6).contains(&steps.len()), "{steps:?}");
    let mut second = priced(0.01);
    let resumed = search(folder.path(), &plan, &mut second, true).unwrap();
    assert_eq!(resumed.outcome, ended.outcome);
    assert_eq!(resumed.record.unwrap().steps, ended.record.unwrap().steps);
    // At most the pair that was cut off is run again.
    assert!(first.runs + second.runs <= whole.runs + 2);
}

#[test]
fn commits_that_do_not_build_are_skipped_and_the_remaining_range_is_reported() {
    let test = "commits_that_do_not_build_are_passed_over_and_the_range_that_is_left_is_told";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    for (broken, outcome) in [
        // The middle: its neighbour is tried.
        (8..9, (CULPRIT - 1, CULPRIT)),
        // The commit before the culprit: either could be it.
        (10..11, (9, 11)),
        (9..13, (8, 13)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let cost = |number| one_culprit(number).filter(|_| !broken.contains(&number));
        let plan = plan(&repository(folder.path(), cost));
        let ended = search(folder.path(), &plan, &mut priced(0.01), false).unwrap();
        assert_eq!(
            ended.outcome,
            Some(certain(outcome.0, outcome.1)),
            "{broken:?}"
        );
        let steps = ended.record.unwrap().steps;
        let passed_over = steps.iter().filter(|step| step.answer == Answer::Unknown);
        let reasons: Vec<_> = passed_over.filter_map(|step| step.reason.clone()).collect();
        assert_eq!(reasons.len(), broken.len(), "{steps:?}");
        assert!(
            reasons
                .iter()
                .all(|reason| reason.contains("exit status: 1"))
        );
    }
}

/// Reports of two commands in one folder overwrite each other.
#[test]
fn a_search_does_not_begin_in_a_folder_with_results_of_any_command() {
    let test = "a_search_does_not_begin_in_a_folder_with_results_of_any_command";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&repository(folder.path(), one_culprit));
    let results = folder.path().join("results");
    fs::create_dir(&results).unwrap();
    for file in ["suite.json", "targets.json", "capacity.json", "bisect.json"] {
        fs::write(results.join(file), "{}").unwrap();
        let error = search(folder.path(), &plan, &mut priced(0.0), false).unwrap_err();
        assert!(
            matches!(error, BisectError::Suite(SuiteError::AlreadyThere { .. })),
            "{file}: {error}"
        );
        fs::remove_file(results.join(file)).unwrap();
    }
}

/// A file that is in no store of a filter any more ended the search.
#[test]
fn a_commit_that_cannot_be_checked_out_is_skipped_unless_it_is_good_or_bad() {
    let test = "a_commit_that_cannot_be_checked_out_is_skipped_unless_it_is_good_or_bad";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let searched = |broken: usize| {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path(), one_culprit);
        let attributes = repository.join(".git/info/attributes");
        fs::create_dir_all(attributes.parent().unwrap()).unwrap();
        fs::write(attributes, "number filter=stored\n").unwrap();
        let smudge = format!("grep -vx {broken}");
        git(&repository, &["config", "filter.stored.smudge", &smudge]);
        git(&repository, &["config", "filter.stored.required", "true"]);
        search(folder.path(), &plan(&repository), &mut priced(0.01), false)
    };
    let ended = searched(8).unwrap();
    assert_eq!(ended.outcome, Some(certain(CULPRIT - 1, CULPRIT)));
    let steps = ended.record.unwrap().steps;
    let skipped = steps.iter().filter(|step| step.answer == Answer::Unknown);
    let reasons: Vec<_> = skipped.filter_map(|step| step.reason.clone()).collect();
    assert_eq!(reasons.len(), 1, "{steps:?}");
    assert!(reasons[0].starts_with("check out revision"), "{reasons:?}");
    for end in [0, COMMITS] {
        let error = searched(end).unwrap_err();
        assert!(
            matches!(error, BisectError::Suite(SuiteError::Checkout { .. })),
            "{error}"
        );
    }
}

#[test]
fn equal_ends_differ_from_inconclusive_ends() {
    let test = "ends_that_are_alike_are_told_apart_from_those_of_which_nobody_can_tell";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    for (noise, outcome) in [(0.002, Outcome::NotWorse), (0.6, Outcome::Unclear)] {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(&repository(folder.path(), |_| Some(1.0)));
        let ended = search(folder.path(), &plan, &mut priced(noise), false).unwrap();
        assert_eq!(ended.outcome, Some(outcome));
        assert_eq!(ended.record.unwrap().steps.len(), 1);
    }
}

#[test]
fn what_is_no_line_of_revisions_is_refused() {
    let test = "what_is_no_line_of_revisions_is_refused";
    if program_or_skip(test, "git").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path(), one_culprit);
    let good = plan(&repository);
    let refused = |change: &dyn Fn(&mut SuitePlan)| {
        let mut plan = good.clone();
        change(&mut plan);
        let error = search(folder.path(), &plan, &mut priced(0.0), false).unwrap_err();
        assert!(!folder.path().join("results").exists());
        error.to_string()
    };
    let set = |plan: &mut SuitePlan, place: usize, revision: &str| {
        if let BinarySource::Git(source) = &mut plan.experiments[0].variants[place].binary {
            revision.clone_into(&mut source.revision);
        }
    };
    let message =
        refused(&|plan| plan.experiments[0].variants[1].arguments = vec!["-x".to_owned()]);
    assert!(message.contains("only in their revisions"), "{message}");
    let message = refused(&|plan| plan.experiments[0].variants[1].binary = BinarySource::AsPlanned);
    assert!(message.contains("built from revisions"), "{message}");
    let message = refused(&|plan| plan.experiments.push(plan.experiments[0].clone()));
    assert!(message.contains("one experiment"), "{message}");
    let message = refused(&|plan| set(plan, 1, "c0"));
    assert!(message.contains("the same commit"), "{message}");
    let message = refused(&|plan| {
        set(plan, 0, "c16");
        set(plan, 1, "c3");
    });
    assert!(message.contains("does not descend"), "{message}");
    let message = refused(&|plan| set(plan, 1, "no-such"));
    assert!(message.contains("no-such"), "{message}");
    // As in a shallow clone.
    git(&repository, &["checkout", "--quiet", "--orphan", "cut"]);
    git(&repository, &["commit", "--quiet", "-m", "cut"]);
    let message = refused(&|plan| set(plan, 1, "cut"));
    assert!(message.contains("--unshallow"), "{message}");
}
