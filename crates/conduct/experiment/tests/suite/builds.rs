//! Executables: given, or built from revisions of a small repository.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use stillwell_capture::RunStage;
use stillwell_experiment::{SuiteError, SuiteProgress, SuiteRecord, run_suite};
use stillwell_plan::experiment::{BinarySource, GitSource};
use stillwell_plan::{StoppingPlan, SuitePlan, TargetKind};
use stillwell_run::Interrupt;
use stillwell_scope::{Place, Scope, Token};
use stillwell_testkit::{git, program_or_skip};
use stillwell_units::Nanos;

use crate::mock::{Mock, costlier_comparison, experiment, options, run, suite};

/// Writes an executable shell script.
pub(crate) fn script(folder: &Path, name: &str, body: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A repository of two commits, tagged `one` and `two`, whose builds note
/// themselves in the file `builds`; `None` without git.
fn repository(test: &str, folder: &Path) -> Option<PathBuf> {
    program_or_skip(test, "git")?;
    let repository = folder.join("repository");
    fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    for name in ["one", "two"] {
        fs::write(
            repository.join("program.sh"),
            format!("#!/bin/sh\necho {name}\n"),
        )
        .unwrap();
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "--quiet", "-m", name]);
        git(&repository, &["tag", name]);
    }
    Some(repository)
}

fn source(folder: &Path, revision: &str, build: &str) -> GitSource {
    GitSource {
        repository: folder.join("repository"),
        revision: revision.to_owned(),
        build: build.replace("BUILDS", &folder.join("builds").display().to_string()),
        output: "out/program".into(),
    }
}

const BUILD: &str = "echo $STILLWELL_REVISION >> BUILDS && mkdir out && cp program.sh out/program \
                     && chmod +x out/program";

/// Two experiments that compare the two revisions.
fn plan(folder: &Path, build: &str) -> SuitePlan {
    let experiments = ["one", "two"].map(|name| {
        let mut experiment_plan = experiment(name, 1);
        for (variant, revision) in experiment_plan.variants.iter_mut().zip(["one", "two"]) {
            variant.binary = BinarySource::Git(source(folder, revision, build));
        }
        experiment_plan
    });
    suite(experiments)
}

fn entries(folder: &Path) -> Vec<String> {
    let cache = folder.join("cache/builds");
    let listed = fs::read_dir(cache).unwrap();
    let names = listed.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.ends_with(".lock")).collect()
}

#[test]
fn every_revision_is_built_once() {
    let folder = tempfile::tempdir().unwrap();
    let Some(repository) = repository("every_revision_is_built_once", folder.path()) else {
        return;
    };
    let plan = plan(folder.path(), BUILD);
    let mut mock = Mock::new(costlier_comparison);
    run(&plan, &options(folder.path(), false), &mut mock).unwrap();
    let built = || fs::read_to_string(folder.path().join("builds")).unwrap();
    let commits = ["one", "two"].map(|tag| git(&repository, &["rev-parse", tag]));
    assert_eq!(built(), format!("{}\n{}\n", commits[0], commits[1]));

    let target_stdout = |index: usize| match &mock.requests[index].plan.target.kind {
        TargetKind::Child(child) => {
            let output = Command::new(&child.program).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        }
        TargetKind::Container(_) | TargetKind::Pid(_) | TargetKind::Url(_) | TargetKind::None => {
            panic!("not a child")
        }
    };
    for (index, (_, _, variant)) in mock.ran().iter().enumerate() {
        let expected = if variant == "baseline" {
            "one\n"
        } else {
            "two\n"
        };
        assert_eq!(target_stdout(index), expected);
    }
    let record = fs::read(folder.path().join("results/suite.json")).unwrap();
    let record: SuiteRecord = serde_json::from_slice(&record).unwrap();
    assert_eq!(
        record.binaries[1].revision.as_deref(),
        Some(commits[1].as_str())
    );
    assert!(record.binaries[1].sha256.is_some());

    // Another suite finds them built; the repository is left as it was.
    fs::remove_dir_all(folder.path().join("results")).unwrap();
    run(
        &plan,
        &options(folder.path(), false),
        &mut Mock::new(costlier_comparison),
    )
    .unwrap();
    assert_eq!(built().lines().count(), 2);
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&repository, &["status", "--porcelain"]), "");
}

/// Layout is noise between builds, so pairs have other builds.
#[test]
fn builds_have_their_own_seeds_and_are_used_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let test = "builds_have_their_own_seeds_and_are_used_in_turn";
    if repository(test, folder.path()).is_none() {
        return;
    }
    let seeded = "mkdir out && (cat program.sh && echo echo $STILLWELL_BUILD_SEED) > out/program \
                  && chmod +x out/program";
    let mut plan = plan(folder.path(), seeded);
    plan.experiments.truncate(1);
    plan.experiments[0].builds = 4;
    plan.experiments[0].stopping = StoppingPlan::Fixed { pairs: 3 };
    for is_confirmed in [true, false] {
        plan.experiments[0].confirm = is_confirmed;
        let mut mock = Mock::new(costlier_comparison);
        run(&plan, &options(folder.path(), false), &mut mock).unwrap();
        for request in &mock.requests {
            let identity = request.identity.as_ref().unwrap();
            let TargetKind::Child(child) = &request.plan.target.kind else {
                panic!("not a child");
            };
            let output = Command::new(&child.program).output().unwrap();
            let place = u32::from(identity.variant == "comparison");
            let revision = if place == 0 { "one" } else { "two" };
            let turn = identity.pair - 1;
            // Two of the four builds are for new pairs, if there are any.
            let build = match (is_confirmed, identity.stage) {
                (true, RunStage::Search) => turn % 2,
                (true, RunStage::Confirm) => 2 + turn % 2,
                (false, _) => turn % 4,
            };
            let seed = 1 + place + 2 * build;
            let expected = format!("{revision}\n{seed}\n");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        }
        assert_eq!(entries(folder.path()).len(), 8);
        fs::remove_dir_all(folder.path().join("results")).unwrap();
    }
}

#[test]
fn builds_that_do_not_use_their_seed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let test = "builds_that_do_not_use_their_seed_are_refused";
    if repository(test, folder.path()).is_none() {
        return;
    }
    let mut plan = plan(folder.path(), BUILD);
    plan.experiments[0].builds = 2;
    let error = run(
        &plan,
        &options(folder.path(), false),
        &mut Mock::new(costlier_comparison),
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("STILLWELL_BUILD_SEED"),
        "{error}"
    );

    let mut plan = suite([experiment("nothing", 1)]);
    plan.experiments[0].builds = 2;
    let error = run(
        &plan,
        &options(folder.path(), false),
        &mut Mock::new(costlier_comparison),
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no variant comes from a revision"),
        "{error}"
    );
}

#[test]
fn a_failed_build_leaves_only_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let Some(repository) = repository("a_failed_build_leaves_only_its_log", folder.path()) else {
        return;
    };
    for (build, reason) in [
        ("echo no such crate >&2; exit 7", "exit status: 7"),
        (
            "echo no such crate",
            "the build did not create the file out/program",
        ),
    ] {
        let plan = plan(folder.path(), build);
        let mut mock = Mock::new(costlier_comparison);
        let error = run(&plan, &options(folder.path(), false), &mut mock).unwrap_err();
        let SuiteError::Build {
            revision,
            reason: message,
            log_tail,
            log,
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((revision.as_str(), message.as_str()), ("one", reason));
        assert_eq!(log_tail, "no such crate");
        assert_eq!(fs::read_to_string(&log).unwrap(), "no such crate\n");
        assert!(mock.requests.is_empty());
        let left = entries(folder.path());
        assert!(
            left.iter().all(|name| name.ends_with(".failed.log")),
            "{left:?}"
        );
        assert!(!folder.path().join("results").exists());
    }
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn what_a_killed_builder_left_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_) = repository("what_a_killed_builder_left_is_not_used", folder.path()) else {
        return;
    };
    let plan = plan(folder.path(), BUILD);
    run(
        &plan,
        &options(folder.path(), false),
        &mut Mock::new(costlier_comparison),
    )
    .unwrap();
    let cache = folder.path().join("cache/builds");
    // As if the builder of each had been killed half way.
    for name in entries(folder.path()) {
        let half = cache.join(format!("{name}.tmp-1"));
        fs::rename(cache.join(&name), &half).unwrap();
        fs::create_dir(half.join("tree")).unwrap();
        fs::create_dir(cache.join(&name)).unwrap();
    }
    fs::remove_dir_all(folder.path().join("results")).unwrap();
    run(
        &plan,
        &options(folder.path(), false),
        &mut Mock::new(costlier_comparison),
    )
    .unwrap();
    let built = fs::read_to_string(folder.path().join("builds")).unwrap();
    assert_eq!(built.lines().count(), 4);
    let left = entries(folder.path());
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.iter().all(|name| !name.contains('.')), "{left:?}");
}

/// Makes a pipe in `folder`.
fn pipe_in(folder: &Path) -> PathBuf {
    let pipe = folder.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    pipe
}

/// Runs `plan`, and raises a signal once a program has written a line to `pipe`. The pipe then ends when all that the
/// program started is gone: an orphan would hold it open.
fn interrupted_at(pipe: PathBuf, plan: &SuitePlan, folder: &Path) {
    let interrupt = Interrupt::new();
    let mut mock = Mock::new(costlier_comparison);
    let mut scope = Scope::new(&Token::new());
    let raise = interrupt.clone();
    let listener = move |_: &Token| {
        let mut pipe = BufReader::new(File::open(&pipe)?);
        let mut output = String::new();
        pipe.read_line(&mut output)?;
        raise.raise(2);
        pipe.read_to_string(&mut output)?;
        Ok(())
    };
    scope
        .thread(Place::default(), "listener", listener)
        .unwrap();
    let mut ignore = |_: SuiteProgress<'_>| {};
    let options = options(folder, false);
    let outcome = run_suite(plan, &options, &mut mock, &interrupt, &mut ignore).unwrap();
    assert_eq!(outcome.interrupted, Some(2));
    let ends = scope.close(Nanos::from_secs(60));
    assert!(ends.iter().all(|end| end.result.is_ok()), "{ends:?}");
    assert!(mock.requests.is_empty() && entries(folder).is_empty());
}

#[test]
fn an_interrupt_ends_a_build() {
    let folder = tempfile::tempdir().unwrap();
    let Some(repository) = repository("an_interrupt_ends_a_build", folder.path()) else {
        return;
    };
    let pipe = pipe_in(folder.path());
    let build = format!(
        "exec 3> {}; echo begun >&3; tail -f /dev/null",
        pipe.display()
    );
    interrupted_at(pipe, &plan(folder.path(), &build), folder.path());
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 1);
}

/// Git was killed and left a locked worktree in the repository of the user.
#[test]
fn an_interrupt_ends_a_checkout_and_leaves_no_worktree() {
    let folder = tempfile::tempdir().unwrap();
    let test = "an_interrupt_ends_a_checkout_and_leaves_no_worktree";
    let Some(repository) = repository(test, folder.path()) else {
        return;
    };
    // The filter never ends, so the interrupt comes while git writes the files.
    let pipe = pipe_in(folder.path());
    let smudge = format!(
        "exec 3> {}; echo begun >&3; exec tail -f /dev/null",
        pipe.display()
    );
    git(&repository, &["config", "filter.slow.smudge", &smudge]);
    let attributes = repository.join(".git/info/attributes");
    fs::create_dir_all(attributes.parent().unwrap()).unwrap();
    fs::write(attributes, "* filter=slow\n").unwrap();
    interrupted_at(pipe, &plan(folder.path(), BUILD), folder.path());
    let left = git(&repository, &["worktree", "list", "--porcelain"]);
    assert_eq!(left.matches("worktree ").count(), 1, "{left}");
}

/// Its folder may be on a disk that is not mounted, or outside of this container.
#[test]
fn a_worktree_of_the_user_stays_when_its_folder_cannot_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let test = "a_worktree_of_the_user_stays_when_its_folder_cannot_be_seen";
    let Some(repository) = repository(test, folder.path()) else {
        return;
    };
    let tree = folder.path().join("worktree");
    let away = folder.path().join("away");
    let tree_text = tree.to_str().unwrap();
    let add = ["worktree", "add", "--quiet", "--detach", tree_text];
    git(&repository, &add);
    fs::rename(&tree, &away).unwrap();
    let plan = plan(folder.path(), BUILD);
    let mut mock = Mock::new(costlier_comparison);
    run(&plan, &options(folder.path(), false), &mut mock).unwrap();
    fs::rename(&away, &tree).unwrap();
    assert_eq!(git(&tree, &["status", "--porcelain"]), "");
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_locked_worktree_of_a_killed_builder_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let test = "a_locked_worktree_of_a_killed_builder_is_removed";
    let Some(repository) = repository(test, folder.path()) else {
        return;
    };
    let plan = plan(folder.path(), BUILD);
    let build = || {
        let mut mock = Mock::new(costlier_comparison);
        run(&plan, &options(folder.path(), false), &mut mock).unwrap();
        fs::remove_dir_all(folder.path().join("results")).unwrap();
    };
    build();
    let cache = folder.path().join("cache/builds");
    for (index, name) in entries(folder.path()).iter().enumerate() {
        fs::remove_dir_all(cache.join(name)).unwrap();
        let temporary = cache.join(format!("{name}.tmp-1"));
        let tree = temporary.join("tree");
        let tree = tree.to_str().unwrap();
        let add = ["worktree", "add", "--quiet", "--detach", "--lock", tree];
        git(&repository, &add);
        // The first folder is gone.
        if index == 0 {
            fs::remove_dir_all(temporary).unwrap();
        }
    }
    build();
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(entries(folder.path()).len(), 2);
}

#[test]
fn an_unknown_revision_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_) = repository("an_unknown_revision_is_refused", folder.path()) else {
        return;
    };
    for revision in ["no-such-tag", "--help"] {
        let mut experiment_plan = experiment("one", 1);
        experiment_plan.variants[0].binary =
            BinarySource::Git(source(folder.path(), revision, BUILD));
        let plan = suite([experiment_plan]);
        let error = run(
            &plan,
            &options(folder.path(), false),
            &mut Mock::new(costlier_comparison),
        )
        .unwrap_err();
        assert!(matches!(error, SuiteError::Revision { .. }), "{error}");
    }
}

#[test]
fn a_binary_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "no program").unwrap();
    for path in [
        folder.path().join("missing"),
        plain,
        folder.path().to_path_buf(),
    ] {
        let mut experiment_plan = experiment("one", 1);
        experiment_plan.variants[0].binary = BinarySource::Path(path);
        let plan = suite([experiment_plan]);
        let error = run(
            &plan,
            &options(folder.path(), false),
            &mut Mock::new(costlier_comparison),
        )
        .unwrap_err();
        assert!(matches!(error, SuiteError::Binary { .. }), "{error}");
    }
}
