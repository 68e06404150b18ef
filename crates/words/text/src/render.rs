//! Diagnostics as a compiler would show them.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str};

use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Place, Source, Span};

/// Lines shown above the one that is meant, so that it is found by eye too.
const LINES_ABOVE: usize = 2;

pub(crate) fn render(diagnostics: &[Diagnostic], color: bool) -> String {
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for (index, diagnostic) in diagnostics.iter().enumerate() {
        if index > 0 {
            text.push_str("\n\n");
        }
        text.push_str(&renderer.render(&[group(diagnostic)]));
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

/// The lines of `source`, the file of `primary`, that `diagnostic` speaks of.
fn snippet<'a>(
    source: &'a Source,
    diagnostic: &'a Diagnostic,
    primary: &Place,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let range = |span: Span| {
        let span = source.clamp(span);
        span.start..span.end
    };
    let above = source.line_above(primary.span.start, LINES_ABOVE);
    let mut snippet = Snippet::source(source.text())
        .path(source.path().to_string_lossy())
        .annotation(
            AnnotationKind::Primary
                .span(range(primary.span))
                .label(diagnostic.label.as_deref().map(normalize_untrusted_str)),
        );
    if above < primary.span.start {
        snippet = snippet.annotation(AnnotationKind::Visible.span(above..primary.span.start));
    }
    for (place, label) in &diagnostic.context {
        if place.file() == primary.file() {
            snippet = snippet.annotation(
                AnnotationKind::Context
                    .span(range(place.span))
                    .label(normalize_untrusted_str(label)),
            );
        }
    }
    snippet
}
