use stillwell_units::{Moment, Nanos};

use super::*;
use crate::fields::Fields;
use crate::jobs::{Course, JobEnd, JobState, JobView, Transcript};
use crate::orders::{FieldError, OrderKind};
use crate::program::{CheckedFile, ClusterJobView, FileFinding, Refusal};
use stillwell_experiment::library::{Headline, PlaceBelow, ResultEntry, ResultKind, ResultListing};

const CHROME: Chrome<'_> = Chrome {
    unfinished: 1,
    folder: "/srv/shop",
    has_cluster: false,
};

/// Returns the content of a page with an element on each line.
fn content(page: &str) -> String {
    let start = page.find("<main").unwrap();
    let end = page.find("</main>").unwrap();
    page[start..end].replace("><", ">\n<")
}

fn place(text: &str) -> PlaceBelow {
    PlaceBelow::parse(text).unwrap()
}

fn entry(path: &str, kind: ResultKind) -> ResultEntry {
    ResultEntry {
        place: place(path),
        kind,
        command: String::new(),
        headline: None,
        started_millis: 1_795_269_933_000,
    }
}

fn view(state: JobState) -> JobView {
    let mut progress = Transcript::default();
    progress.add(b"  1 s  500/s  <b>\n", |_| {});
    JobView {
        id: 7,
        words: ["load", "--header=a: b", "--", "http://a/"]
            .map(str::to_owned)
            .to_vec(),
        results: place("0/.stillwell/loads/a b"),
        has_results: state.has_ended(),
        state,
        course: Course::default(),
        progress,
        answer: Transcript::default(),
    }
}

#[test]
fn results_are_a_list_from_which_two_are_chosen() {
    let suite = ResultEntry {
        command: "stillwell run <suite>".to_owned(),
        headline: Some(Headline {
            class: "worse",
            sign: "▲",
            text: "1 regression".to_owned(),
        }),
        ..entry("0/.stillwell/results/a&b", ResultKind::Suite)
    };
    let listing = ResultListing {
        results: vec![suite, entry("1/x", ResultKind::Capacity)],
        is_cut: true,
        ..ResultListing::default()
    };
    insta::assert_snapshot!(content(&results(&listing, CHROME)));
    let empty = results(&ResultListing::default(), CHROME);
    assert!(empty.contains("no results in this folder"), "{empty}");
}

#[test]
fn a_refused_form_keeps_its_fields_and_shows_the_reason_at_one() {
    let fields = Fields::parse(b"url=http://a/&rate=%22quickly%22&method=POST");
    let error = FieldError {
        field: "rate",
        message: "no rate".to_owned(),
    };
    let listing = ResultListing {
        files: vec![place("0/a/experiment.yaml"), place("1/b.yaml")],
        ..ResultListing::default()
    };
    let cut = ResultListing {
        are_files_cut: true,
        ..listing.clone()
    };
    let view = StartView {
        filled: Some((OrderKind::Load, &fields)),
        error: Some(&error),
        listing: &listing,
        jobs: &[view(JobState::Queued)],
        now: Moment::default(),
    };
    insta::assert_snapshot!(content(&start(&view, CHROME)));
    let view = StartView {
        listing: &cut,
        ..view
    };
    for page in [start(&view, CHROME), files(&cut, CHROME)] {
        let remarks = page.matches("more entries than are shown").count();
        assert_eq!(remarks, 1, "{page}");
    }
}

#[test]
fn a_history_of_a_list_that_is_cut_has_a_remark() {
    for is_cut in [false, true] {
        let around = only("", is_cut).into_string();
        let page = history("", is_cut, &Refusal::default(), CHROME);
        for text in [around, page] {
            let has_remark = text.contains("more entries than are shown");
            assert_eq!(has_remark, is_cut, "{text}");
        }
    }
}

#[test]
fn a_greeting_opens_the_page_without_the_token() {
    let page = greeting("/edit/0/<a>");
    let refresh = "http-equiv=\"refresh\" content=\"0;url=/edit/0/&lt;a&gt;\"";
    assert!(page.contains(refresh), "{page}");
    assert!(page.contains("href=\"/edit/0/&lt;a&gt;\""), "{page}");
}

#[test]
fn a_running_command_reloads_itself_without_scripts_and_an_ended_one_does_not() {
    let since = Moment::default();
    let now = since + Nanos::from_secs(65);
    let running = view(JobState::Running {
        since,
        is_stopping: false,
    });
    let page = job(&running, now, CHROME);
    assert!(
        page.contains("<noscript><meta http-equiv=\"refresh\""),
        "{page}"
    );
    insta::assert_snapshot!(content(&page));
    for (code, has_report) in [
        (0, true),
        (1, true),
        (2, false),
        (3, false),
        (4, true),
        (143, true),
    ] {
        let ended = view(JobState::Ended {
            took: Nanos::from_secs(3),
            end: JobEnd::Exited(code),
        });
        let page = job(&ended, now, CHROME);
        assert_eq!(
            page.contains("href=\"/report/0/.stillwell/loads/a%20b\""),
            has_report,
            "{code}"
        );
        assert!(
            !page.contains("http-equiv=\"refresh\"") && !page.contains("data-events"),
            "{page}"
        );
    }
    let without_results = JobView {
        has_results: false,
        ..view(JobState::Ended {
            took: Nanos::from_secs(3),
            end: JobEnd::Exited(143),
        })
    };
    assert!(!job(&without_results, now, CHROME).contains("/report/"));
}

#[test]
fn a_command_with_figures_has_charts_and_a_new_experiment_has_an_editor() {
    let mut view = view(JobState::Ended {
        took: Nanos::from_secs(3),
        end: JobEnd::Exited(0),
    });
    for second in 1..4 {
        let line = format!(r#"{{"seconds":{second},"series":"<b>","rate":500,"p99_ns":2e6}}"#);
        view.course.add(line.as_bytes());
    }
    for (second, unit) in [
        (1, "share"),
        (2, "share"),
        (1, "requests per second"),
        (2, "requests per second"),
    ] {
        let line = format!(
            r#"{{"seconds":{second},"interval":"<i> {unit}","unit":"{unit}","text":"+1 % <i>","value":0.01,"lower":-0.02,"upper":0.04}}"#
        );
        view.course.add(line.as_bytes());
    }
    let page = job(&view, Moment::default(), CHROME);
    assert_eq!(page.matches("<svg").count(), 4, "{page}");
    assert!(
        page.contains("so far: +1 %") && !page.contains("<i>"),
        "{page}"
    );
    assert!(
        page.contains("role=\"img\"") && !page.contains("<b>"),
        "{page}"
    );
    view.words[0] = "init".to_owned();
    view.results = place("0/shop");
    let page = job(&view, Moment::default(), CHROME);
    assert!(
        page.contains("href=\"/edit/0/shop/experiment.yaml\""),
        "{page}"
    );
    assert!(!page.contains("/report/"), "{page}");
}

#[test]
fn jobs_of_a_store_have_their_tasks_and_only_then_a_link() {
    let chrome = Chrome {
        has_cluster: true,
        ..CHROME
    };
    let job = ClusterJobView {
        name: "load-1".to_owned(),
        engine: "slurm 41".to_owned(),
        tasks: vec![("generator 0".to_owned(), "failed: <no node>".to_owned())],
        ended_early: Some("generator 0 was lost".to_owned()),
    };
    let stores = [
        ("store".to_owned(), Ok(vec![job])),
        ("none".to_owned(), Err(Refusal::new("gone"))),
    ];
    let page = cluster(&stores, chrome);
    assert!(
        page.contains("href=\"/cluster\" aria-current=\"page\""),
        "{page}"
    );
    insta::assert_snapshot!(content(&page));
    assert!(!message("a", &Refusal::default(), CHROME).contains("/cluster"));
}

#[test]
fn findings_have_their_line_and_its_text() {
    let checked = CheckedFile {
        findings: vec![
            FileFinding {
                is_error: true,
                line: Some(2),
                column: Some(1),
                code: "W101".to_owned(),
                message: "unknown field `baselin`".to_owned(),
                help: vec!["did you mean `baseline`?".to_owned()],
            },
            FileFinding {
                is_error: false,
                line: None,
                column: None,
                code: "W900".to_owned(),
                message: "elsewhere".to_owned(),
                help: Vec::new(),
            },
        ],
        summary: None,
    };
    let view = EditView {
        place: &place("0/a/experiment.yaml"),
        text: "name: a\nbaselin: <1>\n",
        version: "00ff",
        outcome: Some(("Saved.", false)),
        checked: Some(&checked),
    };
    let page = content(&edit(&view, CHROME));
    let (page, keys) = page.split_once("<aside").unwrap();
    assert!(keys.contains("<h2>Keys"), "{keys}");
    insta::assert_snapshot!(page);
}

#[test]
fn a_text_that_was_not_saved_is_marked() {
    for (outcome, is_unsaved) in [
        (None, false),
        (Some(("Saved.", false)), false),
        (Some(("Not saved.", true)), true),
    ] {
        let view = EditView {
            place: &place("0/a.yaml"),
            text: "name: a\n",
            version: "00ff",
            outcome,
            checked: None,
        };
        let page = edit(&view, CHROME);
        assert_eq!(page.contains(" data-unsaved>"), is_unsaved, "{page}");
    }
    // The script reads the mark.
    assert!(include_str!("../assets/ui.js").contains("\"unsaved\" in text.dataset"));
}

#[test]
fn every_page_has_its_navigation_and_no_inline_code() {
    let refusal = Refusal {
        message: "<none>".to_owned(),
        hint: Some("hint".to_owned()),
    };
    let listing = ResultListing::default();
    let pages = [
        results(&listing, CHROME),
        files(&listing, CHROME),
        compare(&listing, CompareChoice::default(), Some(&refusal), CHROME),
        history("a", false, &refusal, CHROME),
        message("Not Found", &refusal, CHROME),
        stored(&place("0/a.html"), CHROME),
        cluster(&[], CHROME),
    ];
    for page in pages {
        assert!(
            page.contains("aria-label=\"Pages\"") && page.contains("1 running or waiting"),
            "{page}"
        );
        assert!(
            !page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick"),
            "{page}"
        );
        assert!(!page.contains("<none>"), "{page}");
        assert_eq!(page.matches("<script").count(), 1, "{page}");
    }
}
