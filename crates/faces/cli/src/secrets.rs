//! Handling of secrets in this process: masked, unless `--keep-secrets` is typed.

use std::sync::OnceLock;

use stillwell_units::{MASK, Secrets};

static HANDLING: OnceLock<Secrets> = OnceLock::new();

/// Sets the handling; the first call counts.
pub(crate) fn set(is_kept: bool) {
    let handling = if is_kept {
        Secrets::Kept
    } else {
        Secrets::Masked
    };
    HANDLING.get_or_init(|| handling);
}

/// Returns the handling.
pub(crate) fn handling() -> Secrets {
    HANDLING.get().copied().unwrap_or_default()
}

static COMMAND: OnceLock<Vec<String>> = OnceLock::new();

/// Sets the command line of Stillwell that the one of another tool was translated to; the first
/// call counts.
pub(crate) fn set_command(words: &[String]) {
    COMMAND.get_or_init(|| words.to_vec());
}

/// Returns the words of this process's command line, for results and messages.
pub(crate) fn command_words() -> Vec<String> {
    handling().words(typed_words())
}

/// Returns true if [`command_words`] has [`MASK`] in place of a secret that was typed.
pub(crate) fn are_masked() -> bool {
    command_words() != typed_words()
}

/// Returns true if [`MASK`] was typed in place of a secret.
pub(crate) fn is_mask_typed() -> bool {
    has_mask(typed_words())
}

fn typed_words() -> &'static [String] {
    COMMAND.get_or_init(|| {
        let words = std::env::args_os();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    })
}

/// Returns true if one of `words` has [`MASK`] where a secret would be masked.
fn has_mask(words: &[String]) -> bool {
    let secrets = words.iter().map(|word| word.replace(MASK, "S3cret"));
    let masked = Secrets::Masked.words(&secrets.collect::<Vec<_>>());
    let mut pairs = words.iter().zip(masked);
    pairs.any(|(word, masked)| word.contains(MASK) && *word == masked)
}

/// Returns `texts` without secrets.
pub(crate) fn texts(texts: &[String]) -> Vec<String> {
    let texts = texts.iter();
    texts.map(|text| handling().text(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_counts_only_in_the_place_of_a_secret() {
        let has_mask = |line: &str| {
            let words: Vec<String> = line.split('|').map(str::to_owned).collect();
            has_mask(&words)
        };
        for line in [
            "run|--baseline|cmd:app -H \"Authorization: ***\"",
            "run|--baseline|cmd:app Authorization Bearer ***",
            "run|--variable|API_KEY=***",
            "run|--password|***",
            "ab|http://***@host/",
            "ab|http://host/?token=***&page=1",
        ] {
            assert!(has_mask(line), "{line}");
        }
        for line in [
            "run|--only|***",
            "run|--only|a***b|--password|abc",
            "run|suite",
        ] {
            assert!(!has_mask(line), "{line}");
        }
    }
}
