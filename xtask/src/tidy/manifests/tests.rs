use super::{CRATES, Dependency, Metadata, Package, check_lints, check_profiles};

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn package(name: &str, dependencies: Vec<Dependency>) -> Package {
    Package {
        id: name.to_owned(),
        name: name.to_owned(),
        manifest_path: format!("/repository/crates/{name}/Cargo.toml"),
        dependencies,
    }
}

fn published(name: &str) -> Dependency {
    Dependency {
        name: name.to_owned(),
        source: Some(REGISTRY.to_owned()),
        kind: None,
        path: None,
    }
}

fn member(name: &str) -> Dependency {
    Dependency {
        name: name.to_owned(),
        source: None,
        kind: None,
        path: Some(format!("/repository/crates/{name}")),
    }
}

fn for_tests(dependency: Dependency) -> Dependency {
    Dependency {
        kind: Some("dev".to_owned()),
        ..dependency
    }
}

/// The workspace of the table, in which one package has these dependencies.
fn workspace(name: &str, mut dependencies: Vec<Dependency>) -> Metadata {
    let names = CRATES.iter().map(|entry| match entry.name {
        "cli" => "stillwell".to_owned(),
        "xtask" => "xtask".to_owned(),
        name => format!("stillwell-{name}"),
    });
    let packages: Vec<Package> = names
        .map(|package_name| {
            let is_dependant = package_name == name;
            package(
                &package_name,
                if is_dependant {
                    std::mem::take(&mut dependencies)
                } else {
                    Vec::new()
                },
            )
        })
        .collect();
    Metadata {
        workspace_members: packages.iter().map(|package| package.id.clone()).collect(),
        packages,
        workspace_root: "/repository".to_owned(),
    }
}

fn messages(metadata: &Metadata) -> Vec<String> {
    let problems = metadata.check("[workspace]\nmembers = [\n]\n");
    problems
        .into_iter()
        .map(|problem| problem.message)
        .collect()
}

#[test]
fn the_permitted_directions_pass() {
    let dependencies = vec![
        member("stillwell-units"),
        member("stillwell-scope"),
        published("tokio"),
    ];
    assert_eq!(
        messages(&workspace("stillwell-wire", dependencies)),
        [""; 0]
    );
    let anything = vec![
        member("stillwell-run"),
        member("stillwell-relay"),
        published("clap"),
    ];
    assert_eq!(messages(&workspace("stillwell", anything)), [""; 0]);
}

#[test]
fn a_direction_outside_the_table_is_a_problem() {
    let problems = messages(&workspace(
        "stillwell-sink",
        vec![member("stillwell-generator")],
    ));
    assert_eq!(problems, ["crate `sink` must not depend on `generator`"]);
}

#[test]
fn tests_may_use_more_but_not_everything() {
    let helpers = vec![
        for_tests(member("stillwell-testkit")),
        for_tests(member("stillwell-payload")),
        for_tests(published("tokio")),
    ];
    assert_eq!(messages(&workspace("stillwell-http", helpers)), [""; 0]);
    let problems = messages(&workspace(
        "stillwell-http",
        vec![for_tests(member("stillwell-run"))],
    ));
    assert_eq!(problems, ["tests of crate `http` must not depend on `run`"]);
}

#[test]
fn a_pure_crate_does_no_input_and_output() {
    let problems = messages(&workspace("stillwell-payload", vec![published("rustix")]));
    assert_eq!(
        problems,
        ["pure crate `payload` must not depend on `rustix`"]
    );
}

#[test]
fn some_external_crates_have_owners() {
    let problems = messages(&workspace(
        "stillwell-report",
        vec![published("granit-parser")],
    ));
    assert_eq!(
        problems,
        ["crate `report` must not depend on `granit-parser`: only text may"]
    );
}

#[test]
fn a_dependency_comes_from_the_registry_or_the_workspace() {
    let git = Dependency {
        source: Some("git+https://example.com/fork".to_owned()),
        ..published("bytes")
    };
    let outside = Dependency {
        path: Some("/elsewhere/bytes".to_owned()),
        ..member("bytes")
    };
    let problems = messages(&workspace("stillwell-wire", vec![git, outside]));
    assert_eq!(
        problems,
        [
            "`bytes` comes from git+https://example.com/fork, not from the public registry",
            "`bytes` lies outside the workspace",
        ]
    );
}

#[test]
fn an_unknown_package_is_a_problem() {
    let mut metadata = workspace("stillwell", Vec::new());
    metadata
        .packages
        .push(package("stillwell-misc", Vec::new()));
    assert_eq!(
        messages(&metadata),
        ["package `stillwell-misc` is not in the table of crates"]
    );
}

#[test]
fn members_are_in_the_order_of_the_table() {
    let metadata = workspace("stillwell", Vec::new());
    let manifest =
        "[workspace]\nmembers = [\n  # words\n  \"crates/metric\",\n  \"crates/units\",\n]\n";
    let problems = metadata.check(manifest);
    let [problem] = problems.as_slice() else {
        panic!("one problem, not {problems:?}");
    };
    assert_eq!(
        problem.to_string(),
        "Cargo.toml:2: member `metric` is before `units`: the order is that of the data"
    );
}

#[test]
fn a_member_that_is_gone_is_a_problem() {
    let mut metadata = workspace("stillwell", Vec::new());
    metadata
        .workspace_members
        .retain(|id| id != "stillwell-pacer");
    assert_eq!(
        messages(&metadata),
        ["`pacer` is in the table of crates but not a member"]
    );
}

#[test]
fn a_declared_dependency_that_no_crate_uses_is_a_problem() {
    let dependencies = vec![published("tokio"), for_tests(published("insta"))];
    let metadata = workspace("stillwell", dependencies);
    let manifest = "[workspace.dependencies]\ntokio = \"1\"\n# tests = only\ninsta = \"1\"\n\
        procfs = { version = \"1\" }\n\n[workspace.lints.rust]\nunused = \"warn\"\n";
    let problems = metadata.check_use(manifest);
    let [problem] = problems.as_slice() else {
        panic!("one problem, not {problems:?}");
    };
    assert_eq!(
        problem.to_string(),
        "Cargo.toml:5: no crate uses the dependency `procfs`: remove it"
    );
}

#[test]
fn lints_are_inherited() {
    assert_eq!(
        check_lints("Cargo.toml", "[package]\n[lints]\nworkspace = true\n"),
        None
    );
    let lacking = [
        "[package]\n",
        "[lints]\n[dependencies]\nworkspace = true\n",
        "[lints]\nworkspace = false\n",
    ];
    for manifest in lacking {
        assert!(
            check_lints("Cargo.toml", manifest).is_some(),
            "{manifest:?}"
        );
    }
}

#[test]
fn hot_crates_are_optimised_in_the_quick_build() {
    let hot = "[profile.release.package.stillwell-load]\ncodegen-units = 1\n";
    let cold = "[profile.quick-build.package.stillwell-report]\nopt-level = 0\n";
    let both = "[profile.quick-build.package.stillwell-load]\nopt-level = 0\n";
    assert!(check_profiles(&format!("{hot}{cold}")).is_empty());
    let problems = check_profiles(&format!("{hot}{cold}{both}"));
    let [problem] = problems.as_slice() else {
        panic!("one crate is in both: {problems:?}");
    };
    assert_eq!(problem.line, 5);
    assert!(problem.message.contains("stillwell-load"), "{problem:?}");
}
