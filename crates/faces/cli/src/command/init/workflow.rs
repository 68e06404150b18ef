//! Workflows that compare a pull request with its base.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{answers, write};
use crate::arguments::{CiHost, InitArguments};
use crate::command::output;
use crate::exit::{CommandError, Exit};

/// Values that a workflow needs.
#[derive(Clone, Copy, Debug)]
struct WorkflowPlan<'a> {
    suite: &'a str,
    build: &'a str,
    build_output: &'a str,
    version: &'a str,
    repository: &'a str,
}

/// Writes the workflow of a host.
pub(super) fn run(host: CiHost, arguments: &InitArguments) -> Result<Exit, CommandError> {
    let suite = arguments
        .folder
        .as_deref()
        .unwrap_or_else(|| Path::new("."));
    if !suite.exists() {
        let error = anyhow::anyhow!("{} does not exist", suite.display());
        return Err(CommandError::new(Exit::Usage, error)
            .hint("write an experiment first: stillwell init --command COMMAND"));
    }
    let (root, suite) = place(suite)?;
    let [build, build_output] = answers::build(arguments)?;
    let suite = suite.to_string_lossy();
    let plan = WorkflowPlan {
        suite: &suite,
        build: &build,
        build_output: &build_output,
        version: env!("CARGO_PKG_VERSION"),
        repository: env!("CARGO_PKG_REPOSITORY"),
    };
    let (path, text, next) = match host {
        CiHost::Github => (
            ".github/workflows/stillwell.yml",
            github(plan),
            "commit it; the first pull request shows the comment",
        ),
        CiHost::Gitlab => (
            ".gitlab/stillwell.yml",
            gitlab(plan),
            "add `include: [{local: .gitlab/stillwell.yml}]` to .gitlab-ci.yml, and a project access token \
             with the scope `api` as the masked variable STILLWELL_GITLAB_TOKEN",
        ),
    };
    let file = root.join(path);
    write(&file, &text, arguments.force)?;
    let shown = output::show_path(&file);
    output::print(&format!("wrote {shown}\nnext: {next}\n"))?;
    Ok(Exit::Held)
}

/// Returns the root of the repository, where hosts look for workflows and start jobs, and `suite` as seen from there.
/// Without a repository, the root is the working directory.
fn place(suite: &Path) -> Result<(PathBuf, PathBuf), CommandError> {
    let real = |path: &Path| {
        path.canonicalize()
            .with_context(|| format!("read {}", path.display()))
            .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
    };
    let (here, target) = (real(Path::new("."))?, real(suite)?);
    // It is a file in worktrees and submodules.
    let mut folders = here.ancestors();
    let repository = folders.find(|folder| folder.join(".git").exists());
    let root = repository.unwrap_or(&here);
    let seen = match target.strip_prefix(root) {
        Ok(below) if below.as_os_str().is_empty() => Path::new("."),
        Ok(below) => below,
        Err(_) if repository.is_none() => suite,
        Err(_) => {
            let (suite, root) = (suite.display(), root.display());
            let error = anyhow::anyhow!("{suite} is outside of the repository {root}");
            return Err(CommandError::new(Exit::Usage, error)
                .hint("a job has only the files of its repository"));
        }
    };
    Ok((root.to_path_buf(), seen.to_path_buf()))
}

/// Returns a text of YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn github(plan: WorkflowPlan<'_>) -> String {
    let action = plan.repository.trim_start_matches("https://github.com/");
    format!(
        r#"# Compares each pull request with its base under load, and comments the verdict.
name: stillwell
on:
  pull_request:
permissions:
  contents: read
  pull-requests: write # for the comment; without it the job summary has the report
concurrency:
  group: stillwell-${{{{ github.ref }}}}
  cancel-in-progress: true
jobs:
  compare:
    runs-on: ubuntu-24.04
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0 # the base is built, too
      # Install here what your build needs.
      - uses: {action}@v{version}
        with:
          suite: {suite}
          baseline: git:HEAD^1 # HEAD merges the pull request into its base
          comparison: git:HEAD
          build: {build}
          build-output: {build_output}
"#,
        version = plan.version,
        suite = quoted(plan.suite),
        build = quoted(plan.build),
        build_output = quoted(plan.build_output),
    )
}

fn gitlab(plan: WorkflowPlan<'_>) -> String {
    let WorkflowPlan {
        version,
        repository,
        ..
    } = plan;
    // Words of a shell, within a text of YAML.
    let run = format!(
        "stillwell run {} --baseline \"git:${{CI_MERGE_REQUEST_TARGET_BRANCH_SHA:-$CI_MERGE_REQUEST_DIFF_BASE_SHA}}\" \
         --comparison git:HEAD --build {} --build-output {} --repo . --results stillwell-results --quiet \
         -o stillwell.html || code=$?",
        output::quoted(plan.suite),
        output::quoted(plan.build),
        output::quoted(plan.build_output),
    );
    format!(
        r#"# Compares each merge request with its base under load, and comments the verdict.
stillwell:
  image: debian:stable # an image that has what your build needs, git and curl
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  variables:
    GIT_DEPTH: "0" # the base is built, too
  timeout: 1h
  script:
    - release={repository}/releases/download/v{version}
    - curl -fsSL --retry 3 --remote-name-all "$release/stillwell" "$release/SHA256SUMS"
    - grep ' \*\?stillwell$' SHA256SUMS | sha256sum --check
    - install -D stillwell "$HOME/.local/bin/stillwell" && export PATH="$HOME/.local/bin:$PATH"
    - if [ -e stillwell-results ]; then echo "stillwell-results exists; name each suite (--results, --suite)"; exit 2; fi
    - code=0
    # HEAD is the merge request, in merged results pipelines merged into its target branch.
    - {run}
    # The exit code is that of the verdict.
    - stillwell comment stillwell-results --to gitlab --junit stillwell.xml --decision stillwell.json || code=$?
    - exit $code
  artifacts:
    when: always
    paths: [stillwell.html, stillwell.json]
    reports:
      junit: stillwell.xml
"#,
        run = quoted(&run),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: WorkflowPlan<'_> = WorkflowPlan {
        suite: "experiments",
        build: "go build -o \"server\" .",
        build_output: "server",
        version: "1.2.3",
        repository: "https://github.com/stillwell-rs/stillwell",
    };

    #[test]
    fn a_workflow_of_github() {
        insta::assert_snapshot!(github(PLAN));
    }

    #[test]
    fn a_pipeline_of_gitlab() {
        insta::assert_snapshot!(gitlab(PLAN));
    }
}
