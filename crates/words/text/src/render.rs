//! Diagnostics as a compiler would show them.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str};

use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Place, Source, Span};

/// Lines shown above the annotated line, as orientation.
const LINES_ABOVE: usize = 2;

/// Maximum number of diagnostics that are printed.
const SHOWN_MAX: usize = 100;

pub(crate) fn render(diagnostics: &[Diagnostic], color: bool) -> String {
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for (index, diagnostic) in diagnostics.iter().take(SHOWN_MAX).enumerate() {
        if index > 0 {
            text.push_str("\n\n");
        }
        text.push_str(&renderer.render(&[group(diagnostic)]));
    }
    if let hidden @ 1.. = diagnostics.len().saturating_sub(SHOWN_MAX) {
        let count =
            format!("\n\n… and {hidden} more; correct the first {SHOWN_MAX}, then check again");
        text.push_str(&count);
    }
    text
}

fn group(diagnostic: &Diagnostic) -> Group<'_> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level
        .primary_title(normalize_untrusted_str(&diagnostic.message))
        .id(diagnostic.code);
    let mut group = Group::with_title(title);
    if let Some(place) = &diagnostic.place {
        group = group.element(snippet(&place.source, diagnostic, place));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
    }
    group
}

/// The annotated lines of `source`, the file of `primary`. Only these lines reach the renderer, which reads
/// all of the text that it is given: many diagnostics in a long file would take quadratic time.
fn snippet<'a>(
    source: &'a Source,
    diagnostic: &'a Diagnostic,
    primary: &Place,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let in_this_file = |(place, _): &&(Place, String)| place.file() == primary.file();
    let contexts: Vec<&(Place, String)> = diagnostic.context.iter().filter(in_this_file).collect();
    let spans = || {
        contexts
            .iter()
            .map(|(place, _)| place.span)
            .chain([primary.span])
    };
    let first = spans().map(|span| span.start).min().unwrap_or_default();
    let last = spans()
        .map(|span| source.clamp(span).end)
        .max()
        .unwrap_or_default();
    let above = source.line_above(primary.span.start, LINES_ABOVE);
    let window = source.lines(first.min(above), last);
    let range = |span: Span| {
        let span = source.clamp(span);
        span.start - window.start..span.end - window.start
    };
    let mut snippet = Snippet::source(&source.text()[window.start..window.end])
        .line_start(source.position(window.start).line)
        .path(source.path().to_string_lossy())
        .annotation(
            AnnotationKind::Primary
                .span(range(primary.span))
                .label(diagnostic.label.as_deref().map(normalize_untrusted_str)),
        );
    if above < primary.span.start {
        let lines_above = above - window.start..primary.span.start - window.start;
        snippet = snippet.annotation(AnnotationKind::Visible.span(lines_above));
    }
    for (place, label) in contexts {
        snippet = snippet.annotation(
            AnnotationKind::Context
                .span(range(place.span))
                .label(normalize_untrusted_str(label)),
        );
    }
    snippet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;

    fn reader(text: &str) -> Reader {
        Reader::new(Source::new("a.yaml", text))
    }

    #[test]
    fn a_diagnostic_far_down_shows_its_own_lines_and_their_numbers() {
        let text: String = (1..=500)
            .map(|line| format!("key{line}: value\n"))
            .collect();
        let at = text.find("key400").unwrap_or_default();
        let before = text.find("key397").unwrap_or_default();
        let span = |start| Span {
            start,
            end: start + 6,
        };
        let reader = reader(&text);
        let place = reader.place(span(before));
        reader.report(
            reader
                .error("W001", span(at), "wrong")
                .context(place, "because of this"),
        );
        let shown = reader.finish().render(false);
        let expected = "error[W001]: wrong
   --> a.yaml:400:1
    |
397 | key397: value
    | ------ because of this
398 | key398: value
399 | key399: value
400 | key400: value
    | ^^^^^^";
        assert_eq!(shown, expected);
    }

    #[test]
    fn only_the_first_hundred_diagnostics_are_printed() {
        let all: Vec<Diagnostic> = (0..SHOWN_MAX + 7)
            .map(|number| Diagnostic::error("W001", format!("wrong {number}")))
            .collect();
        let shown = render(&all, false);
        assert_eq!(shown.matches("error[W001]").count(), SHOWN_MAX);
        assert!(shown.ends_with("… and 7 more; correct the first 100, then check again"));
    }
}
