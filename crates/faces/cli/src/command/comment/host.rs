//! Hosts of repositories: which one, which pull request, which requests. Pure, besides the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use stillwell_config::files::read_text;
use stillwell_http::{Scheme, Target};

/// Comments of one page of a list.
const PER_PAGE: usize = 100;

/// A host of repositories.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HostKind {
    Github,
    Gitlab,
}

/// Environment of the process.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings {
    variables: BTreeMap<String, String>,
    /// Content of the file of the event that started the job.
    event: Option<String>,
}

/// The comments of a pull request, and the access to them.
#[derive(Clone)]
pub(super) struct CommentThread {
    pub(super) kind: HostKind,
    pub(super) target: Target,
    /// Path of the list of comments.
    pub(super) list: String,
    /// Path of one comment, without its number.
    one_comment: String,
    token: String,
    name: String,
}

/// A comment.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub(super) struct RemoteComment {
    pub(super) id: u64,
    #[serde(default)]
    pub(super) body: Option<String>,
}

impl Surroundings {
    /// Reads the environment, and the file of the event.
    pub(super) fn of_process() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
            (!value.is_empty()).then_some((name, value))
        });
        let variables: BTreeMap<String, String> = variables.collect();
        let event = variables.get("GITHUB_EVENT_PATH");
        let event = event.and_then(|path| read_text(Path::new(path)).ok());
        Self { variables, event }
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Returns the host of the job.
    pub(super) fn host(&self) -> Option<HostKind> {
        if self.variable("GITHUB_ACTIONS") == Some("true") {
            Some(HostKind::Github)
        } else if self.variable("GITLAB_CI") == Some("true") {
            Some(HostKind::Gitlab)
        } else {
            None
        }
    }

    /// Returns a link to the job.
    pub(super) fn job_link(&self, kind: Option<HostKind>) -> Option<(String, String)> {
        let url = match kind? {
            HostKind::Github => {
                let server = self.variable("GITHUB_SERVER_URL")?;
                let repository = self.variable("GITHUB_REPOSITORY")?;
                let run = self.variable("GITHUB_RUN_ID")?;
                format!("{server}/{repository}/actions/runs/{run}")
            }
            HostKind::Gitlab => self.variable("CI_JOB_URL")?.to_owned(),
        };
        Some(("job".to_owned(), url))
    }

    /// Returns the thread of the pull request, or the reason why there is none.
    pub(super) fn thread(
        &self,
        kind: HostKind,
        number: Option<u64>,
    ) -> Result<CommentThread, String> {
        let required = |name: &str| {
            self.variable(name)
                .ok_or_else(|| format!("{name} is not set"))
        };
        let number = number.or_else(|| self.pull_request(kind));
        let number = number.ok_or(
            "this job does not belong to a pull request; --pull-request NUMBER selects one",
        )?;
        let (base, list, one_comment, token, name) = match kind {
            HostKind::Github => {
                let base = self.variable("GITHUB_API_URL");
                let repository = path_part(required("GITHUB_REPOSITORY")?)?;
                (
                    base.unwrap_or("https://api.github.com"),
                    format!("/repos/{repository}/issues/{number}/comments"),
                    format!("/repos/{repository}/issues/comments"),
                    self.variable("GITHUB_TOKEN"),
                    format!("pull request {number}"),
                )
            }
            HostKind::Gitlab => {
                let project = path_part(required("CI_PROJECT_ID")?)?;
                let notes = format!("/projects/{project}/merge_requests/{number}/notes");
                (
                    required("CI_API_V4_URL")?,
                    notes.clone(),
                    notes,
                    self.variable("STILLWELL_GITLAB_TOKEN"),
                    format!("merge request {number}"),
                )
            }
        };
        let no_token = match kind {
            HostKind::Github => {
                "GITHUB_TOKEN is not set; to comment, set it to `${{ github.token }}` in `env` of the step"
            }
            HostKind::Gitlab => {
                "STILLWELL_GITLAB_TOKEN is not set; to comment, set it to a project access token with the scope \
                 `api`"
            }
        };
        let token = token.ok_or(no_token)?;
        let target = Target::from_url(base).map_err(|error| format!("{base}: {error}"))?;
        if target.scheme() != Scheme::Https && !is_loopback(target.host()) {
            return Err(format!(
                "{base} is not https, and a token is sent over TLS only"
            ));
        }
        let prefix = target.path_and_query();
        let prefix = prefix.split_once('?').map_or(prefix, |(path, _)| path);
        let prefix = prefix.trim_end_matches('/').to_owned();
        Ok(CommentThread {
            kind,
            list: format!("{prefix}{list}"),
            one_comment: format!("{prefix}{one_comment}"),
            target,
            token: token.to_owned(),
            name,
        })
    }

    /// Returns the number of the pull request of the job.
    fn pull_request(&self, kind: HostKind) -> Option<u64> {
        if kind == HostKind::Gitlab {
            return self.variable("CI_MERGE_REQUEST_IID")?.parse().ok();
        }
        let event: Option<Value> = self
            .event
            .as_ref()
            .and_then(|text| serde_json::from_str(text).ok());
        let number = event.and_then(|event| event["pull_request"]["number"].as_u64());
        number.or_else(|| {
            let name = self.variable("GITHUB_REF")?.strip_prefix("refs/pull/")?;
            name.split('/').next()?.parse().ok()
        })
    }
}

impl CommentThread {
    /// Returns the path of a page of the list; pages count from 1.
    pub(super) fn page(&self, page: usize) -> String {
        let list = &self.list;
        format!("{list}?per_page={PER_PAGE}&page={page}")
    }

    /// Returns the method and the path that replace the text of a comment.
    pub(super) fn update(&self, comment: &RemoteComment) -> (&'static str, String) {
        let method = match self.kind {
            HostKind::Github => "PATCH",
            HostKind::Gitlab => "PUT",
        };
        (method, format!("{}/{}", self.one_comment, comment.id))
    }

    /// Returns the headers of every request.
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("user-agent", "stillwell".to_owned()),
            ("accept", "application/json".to_owned()),
            ("content-type", "application/json".to_owned()),
            ("connection", "close".to_owned()),
        ];
        headers.push(match self.kind {
            HostKind::Github => ("authorization", format!("Bearer {}", self.token)),
            HostKind::Gitlab => ("private-token", self.token.clone()),
        });
        headers
    }

    /// Returns the body of a request that creates or replaces a comment.
    pub(super) fn body(text: &str) -> String {
        serde_json::json!({ "body": text }).to_string()
    }
}

/// Returns true if `page` has as many comments as a page can have: another one may follow.
pub(super) const fn is_full(page: &[RemoteComment]) -> bool {
    page.len() >= PER_PAGE
}

/// Returns the comment that begins with `marker`.
pub(super) fn with_marker<'p>(
    page: &'p [RemoteComment],
    marker: &str,
) -> Option<&'p RemoteComment> {
    page.iter().find(|comment| {
        let body = comment.body.as_deref().unwrap_or_default();
        body.lines()
            .next()
            .is_some_and(|line| line.trim_end() == marker)
    })
}

impl fmt::Display for CommentThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

// Without the token.
impl fmt::Debug for CommentThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommentThread")
            .field("kind", &self.kind)
            .field("list", &self.list)
            .finish_non_exhaustive()
    }
}

/// Returns a name that may be a part of a path.
fn path_part(text: &str) -> Result<&str, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let has_parent = text.split('/').any(|part| part.is_empty() || part == "..");
    if text.chars().all(is_plain) && !has_parent {
        Ok(text)
    } else {
        Err(format!("`{text}` is not the name of a repository"))
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Returns the thread of a pull request at the host with this URL.
#[cfg(test)]
pub(super) fn thread_at(url: &str) -> CommentThread {
    let variables = [
        ("GITHUB_API_URL", url),
        ("GITHUB_REPOSITORY", "owner/name"),
        ("GITHUB_TOKEN", "secret"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let surroundings = Surroundings {
        variables: variables.into(),
        event: None,
    };
    let thread = surroundings.thread(HostKind::Github, Some(1));
    thread.expect("the URL is on loopback")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(variables: &[(&str, &str)], event: Option<&str>) -> Surroundings {
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Surroundings {
            variables: variables.collect(),
            event: event.map(str::to_owned),
        }
    }

    const GITHUB: [(&str, &str); 3] = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_REPOSITORY", "owner/name"),
        ("GITHUB_TOKEN", "secret"),
    ];

    #[test]
    fn the_pull_request_is_that_of_the_event_or_of_the_ref() {
        let event = r#"{"pull_request": {"number": 7}}"#;
        let of_event = surroundings(&GITHUB, Some(event));
        assert_eq!(of_event.host(), Some(HostKind::Github));
        let thread = of_event.thread(HostKind::Github, None).unwrap();
        assert_eq!(
            thread.page(2),
            "/repos/owner/name/issues/7/comments?per_page=100&page=2"
        );
        let mut variables = GITHUB.to_vec();
        variables.push(("GITHUB_REF", "refs/pull/12/merge"));
        variables.push(("GITHUB_API_URL", "https://example.com/api/v3/"));
        let thread = surroundings(&variables, None).thread(HostKind::Github, None);
        assert_eq!(
            thread.unwrap().list,
            "/api/v3/repos/owner/name/issues/12/comments"
        );
        let pushed = surroundings(&GITHUB, Some(r#"{"ref": "refs/heads/main"}"#));
        assert!(pushed.thread(HostKind::Github, None).is_err());
        assert!(pushed.thread(HostKind::Github, Some(3)).is_ok());
    }

    #[test]
    fn a_merge_request_has_notes() {
        let variables = [
            ("GITLAB_CI", "true"),
            ("CI_API_V4_URL", "https://gitlab.example.com/api/v4"),
            ("CI_PROJECT_ID", "42"),
            ("CI_MERGE_REQUEST_IID", "5"),
            ("STILLWELL_GITLAB_TOKEN", "secret"),
        ];
        let all = surroundings(&variables, None);
        assert_eq!(all.host(), Some(HostKind::Gitlab));
        let thread = all.thread(HostKind::Gitlab, None).unwrap();
        let comment = RemoteComment { id: 9, body: None };
        let path = "/api/v4/projects/42/merge_requests/5/notes/9".to_owned();
        assert_eq!(thread.update(&comment), ("PUT", path));
        assert!(!format!("{thread:?} {thread}").contains("secret"));
        let error = surroundings(&variables[..4], None).thread(HostKind::Gitlab, None);
        let error = error.unwrap_err();
        assert!(
            error.starts_with("STILLWELL_GITLAB_TOKEN is not set; to comment"),
            "{error}"
        );
    }

    #[test]
    fn a_token_is_sent_over_tls_or_on_this_host() {
        for (url, is_accepted) in [
            ("https://example.com", true),
            ("http://127.0.0.1:8080", true),
            ("http://[::1]:8080", true),
            ("http://example.com", false),
            ("http://127.0.0.1.example.com", false),
        ] {
            let mut variables = GITHUB.to_vec();
            variables.push(("GITHUB_API_URL", url));
            let thread = surroundings(&variables, None).thread(HostKind::Github, Some(1));
            assert_eq!(thread.is_ok(), is_accepted, "{url}");
        }
    }

    #[test]
    fn a_repository_is_a_name_and_no_other_path() {
        for name in ["../x", "a/../../b", "a b", "a?b", "a//b", ""] {
            assert!(path_part(name).is_err(), "{name}");
        }
        assert_eq!(path_part("owner/na-me_1.x"), Ok("owner/na-me_1.x"));
    }

    #[test]
    fn a_comment_is_found_by_its_whole_first_line() {
        let comment = |id, body: &str| RemoteComment {
            id,
            body: Some(body.to_owned()),
        };
        let page = [
            comment(1, "quotes <!-- m --> only"),
            comment(2, "<!-- m suite=x -->\ntext"),
            comment(3, "<!-- m -->\r\ntext"),
            RemoteComment { id: 4, body: None },
        ];
        let with = |marker: &str| with_marker(&page, marker).map(|comment| comment.id);
        assert_eq!(with("<!-- m -->"), Some(3));
        assert_eq!(with("<!-- m suite=x -->"), Some(2));
        assert_eq!(with("<!-- other -->"), None);
    }
}
