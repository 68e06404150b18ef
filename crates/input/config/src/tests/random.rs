//! Any text at all, and files with random damage.

use proptest::prelude::*;

use super::golden::EVERYTHING;
use super::{experiment, run_plan};
use crate::Diagnostics;

/// No panic happened; every error that has a place has it in the file.
fn check(diagnostics: &Diagnostics, length: usize) {
    for diagnostic in diagnostics {
        if let Some(place) = &diagnostic.place {
            assert!(place.span.start <= place.span.end && place.span.end <= length);
            assert!(place.start().line >= 1 && place.start().column >= 1);
        }
    }
    assert_eq!(diagnostics.render(false).is_empty(), diagnostics.is_empty());
}

fn try_both(text: &str) {
    match experiment(text) {
        Ok(loaded) => check(&loaded.warnings, text.len()),
        Err(diagnostics) => {
            assert!(diagnostics.has_errors());
            check(&diagnostics, text.len());
        }
    }
    match run_plan(text) {
        Ok(loaded) => check(&loaded.warnings, text.len()),
        Err(diagnostics) => check(&diagnostics, text.len()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        try_both(&text);
    }

    #[test]
    fn any_yaml_like_text_is_answered(
        text in "(target|variants|workload|goals|[a-z]{1,3}|[-:{}\\[\\],'\"&*!|>%#@\n\t é0-9]){0,60}",
    ) {
        try_both(&text);
    }

    #[test]
    fn damaged_files_are_answered(
        at in 0..3500_usize,
        length in 0..20_usize,
        text in "[-{}\\[\\]:,'\" \n\ta-z0-9é&*!|>#%/.]{0,10}",
    ) {
        let mut characters: Vec<char> = EVERYTHING.chars().collect();
        let start = at.min(characters.len());
        let end = (start + length).min(characters.len());
        characters.splice(start..end, text.chars());
        try_both(&characters.into_iter().collect::<String>());
    }
}
