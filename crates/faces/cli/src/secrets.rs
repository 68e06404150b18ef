//! Handling of secrets in this process: masked, unless `--keep-secrets` is typed.

use std::sync::OnceLock;

use stillwell_units::Secrets;

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
    let words = COMMAND.get_or_init(|| {
        let words = std::env::args_os();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    });
    handling().words(words)
}

/// Returns `texts` without secrets.
pub(crate) fn texts(texts: &[String]) -> Vec<String> {
    let texts = texts.iter();
    texts.map(|text| handling().text(text)).collect()
}
