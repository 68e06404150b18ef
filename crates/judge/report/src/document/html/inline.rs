//! Runs of text as elements of a page.

use maud::{Markup, html};

use crate::document::{Inline, Role, Sign, Text, escape};

/// Returns one line of text.
pub(super) fn line(text: &Text) -> Markup {
    html! { @for part in &text.0 { (self::part(part)) } }
}

fn part(part: &Inline) -> Markup {
    match part {
        Inline::Run(role, text) => run(*role, &clean(text)),
        Inline::Answer(sign, word) => html! {
            span class={ "answer " (sign.class()) } {
                span class="sign" aria-hidden="true" { (symbol(*sign)) } " " (clean(word))
            }
        },
        Inline::Link(text, target) if is_web(target) => html! {
            a href=(escape::terminal(target)) rel="noreferrer noopener" { (clean(text)) }
        },
        Inline::Link(text, _) => html! { (clean(text)) },
        Inline::Sparkline(values) => html! { span class="bars" { (values.bars()) } },
    }
}

fn run(role: Role, text: &str) -> Markup {
    let class = match role {
        Role::Plain => return html! { (text) },
        Role::Code => return html! { code { (text) } },
        Role::Strong => return html! { strong { (text) } },
        Role::Number => "number",
        Role::Good => "good",
        Role::Bad => "bad",
        Role::Warning => "doubtful",
        Role::Invalid => "bad",
        Role::Dim => "dim",
    };
    html! { span class=(class) { (text) } }
}

/// Returns true for targets that a browser opens without running anything.
fn is_web(target: &str) -> bool {
    ["https://", "http://"]
        .iter()
        .any(|scheme| target.starts_with(scheme))
}

/// Returns text without control characters; the template escapes the rest.
pub(super) fn clean(text: &str) -> String {
    escape::terminal(text)
}

/// Returns the text alone.
pub(in crate::document) fn plain(text: &Text) -> String {
    let parts = text.0.iter().map(|part| match part {
        Inline::Run(_, text) | Inline::Answer(_, text) | Inline::Link(text, _) => clean(text),
        Inline::Sparkline(_) => String::new(),
    });
    parts.collect()
}

impl Sign {
    /// Returns the class by which a style sheet colours the answer.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Same => "same",
            Self::Different => "different",
            Self::Unclear => "unclear",
            Self::Invalid => "invalid",
        }
    }
}

/// Returns a symbol that repeats the word behind it.
const fn symbol(sign: Sign) -> &'static str {
    match sign {
        Sign::Worse => "▲",
        Sign::Better => "▼",
        Sign::Same => "✓",
        Sign::Different => "≠",
        Sign::Unclear => "?",
        Sign::Invalid => "!",
    }
}
