//! Tremor's programs that deploy the connector `bench`, and Tremor's codec.
//!
//! A program is read as the tree of a bench file. All places in the tree are in the program.

mod deployment;
mod program;
mod token;

use std::path::Path;

use stillwell_config::foreign::{ForeignFile, ForeignFormat};
use stillwell_text::{Diagnostic, Diagnostics, Node, Place, Span, code};

/// Help for a part of the language that is not run.
const SUPPORTED: &str = "supported: `define connector NAME from bench with … end`, \
     `define pipeline NAME pipeline select event from in into out; end`, `create`, `connect … to …` and `deploy flow`";

/// Programs of Tremor's.
#[derive(Clone, Copy, Debug)]
pub struct TremorPrograms;

impl ForeignFormat for TremorPrograms {
    fn name(&self) -> &'static str {
        "tremor"
    }

    fn line_codecs(&self) -> &'static [&'static str] {
        &["tremor"]
    }

    fn is_bench(&self, path: &Path, text: Option<&str>) -> bool {
        is_program(path, text.unwrap_or_default())
    }

    fn read_bench(&self, file: &ForeignFile<'_>, diagnostics: &mut Diagnostics) -> Option<Node> {
        let mistake = |mistake: Mistake| {
            let place = Place::new(file.source, mistake.span);
            let error = Diagnostic::error(mistake.code, mistake.message).at(place);
            error.help(mistake.help)
        };
        let tokens = token::split(file.source.text());
        let deployed = tokens
            .and_then(|tokens| program::parse(&tokens))
            .and_then(|program| deployment::bench_of(&program));
        match deployed {
            Ok(tree) => {
                let message = "events pass through `stillwell relay` instead of Tremor's pipeline";
                diagnostics.push(Diagnostic::note(code::NOT_BUILT, message));
                Some(tree)
            }
            Err(error) => {
                diagnostics.push(mistake(error));
                None
            }
        }
    }
}

/// A part of a program that cannot be run.
#[derive(Debug)]
struct Mistake {
    /// The code of its diagnostic.
    code: &'static str,
    /// Its place.
    span: Span,
    /// The message.
    message: String,
    /// Advice.
    help: String,
}

impl Mistake {
    /// A part of the language that is not run.
    fn unsupported(span: Span, what: &str) -> Self {
        Self {
            code: code::NOT_BUILT,
            span,
            message: format!("{what} is not supported"),
            help: SUPPORTED.to_owned(),
        }
    }

    /// A text that is no program.
    fn syntax(span: Span, message: String) -> Self {
        Self {
            code: code::SYNTAX,
            span,
            message,
            help: SUPPORTED.to_owned(),
        }
    }
}

fn is_program(path: &Path, text: &str) -> bool {
    let mut words = text.split_whitespace();
    let begins = (words.next(), words.next());
    path.extension().is_some_and(|ending| ending == "troy")
        || begins == (Some("define"), Some("flow"))
}

#[cfg(test)]
mod tests;
