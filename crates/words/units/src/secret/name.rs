//! Names that secrets have.

/// Place of a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Context {
    /// A user chose it: a header, a variable of the environment, a parameter of a URL.
    Chosen,
    /// Before an equals sign in text, where it may be a word with a number: `pass=12 fail=0`.
    Assignment,
    /// Before a colon in text, where it may be a word of a sentence.
    Sentence,
    /// An option of a command line.
    Option,
    /// A field of a document of ours.
    Field,
}

/// Words of names whose value is a secret.
const SECRET: [&str; 17] = [
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
    "secrets",
    "sig",
    "signature",
    "token",
    "auth",
    "apikey",
];

/// Words that are a secret even in a sentence.
const ALWAYS: [&str; 5] = [
    "authorization",
    "cookie",
    "passphrase",
    "passwd",
    "password",
];

/// Ends of longer words that are a secret: `PGPASSWORD`, `sshpass`.
const SECRET_ENDS: [&str; 6] = ["apikey", "pass", "passwd", "password", "secret", "token"];

/// Words, or ends of them, that are not of a secret although they end with `pass`.
const ORDINARY_PASSES: [&str; 6] = [
    "bypass",
    "compass",
    "overpass",
    "surpass",
    "trespass",
    "underpass",
];

/// Words before `key` that make it an ordinary name.
const ORDINARY_KEYS: [&str; 9] = [
    "cache",
    "group",
    "message",
    "object",
    "partition",
    "primary",
    "public",
    "routing",
    "sort",
];

/// Last words that show that the value is something about a secret.
const ABOUT: [&str; 14] = [
    "bytes", "count", "dir", "file", "files", "folder", "header", "length", "max", "method",
    "name", "path", "size", "type",
];

/// Returns true if the value of `name` is a secret.
pub(super) fn is_secret(name: &str, context: Context) -> bool {
    // `APIkey` has one word, and `DBPassword` two: a secret by one of the readings is masked.
    [Capitals::Together, Capitals::LastBegins]
        .into_iter()
        .any(|capitals| are_secret(&words(name, capitals), context))
}

/// Returns true if the value of a name of these words is a secret.
fn are_secret(words: &[String], context: Context) -> bool {
    let Some((last, before)) = words.split_last() else {
        return false;
    };
    if ABOUT.contains(&last.as_str()) {
        return false;
    }
    let is_of = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let is_key = last == "key" && !is_of(&ORDINARY_KEYS);
    let is_compound = words.iter().any(|word| is_compound(word));
    // Before other words it is an ordinary one, as in `pass_rate`. Alone it may be a number: `-pass 1`.
    let is_pass = last == "pass"
        && match context {
            Context::Chosen => true,
            Context::Assignment | Context::Option | Context::Field => !before.is_empty(),
            Context::Sentence => false,
        };
    let is_word = is_of(&SECRET) || is_pass;
    match context {
        Context::Chosen | Context::Assignment => is_word || is_compound || is_key,
        Context::Sentence => {
            is_of(&ALWAYS) || is_compound || !before.is_empty() && (is_word || is_key)
        }
        // Keys of options and of our documents are files.
        Context::Option | Context::Field => {
            is_word || is_compound || is_key && is_of(&["api", "access", "app"])
        }
    }
}

/// Returns true if `word` is longer than one that is a secret, and ends with it.
fn is_compound(word: &str) -> bool {
    let is_longer = |end: &&str| word.len() > end.len() && word.ends_with(*end);
    let is_ordinary = ORDINARY_PASSES.iter().any(|end| word.ends_with(end));
    SECRET_ENDS.iter().any(is_longer) && !is_ordinary
}

/// Reading of several capital letters in a row before a small letter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Capitals {
    /// All are of one word with the small letters: `APIkey` is `apikey`.
    Together,
    /// The last one begins a word: `DBPassword` is `db` and `password`. A single letter is not a word, so `OAuth` is.
    LastBegins,
}

/// Splits a name at capital letters and at everything that is not a letter or a digit. Capital letters in a row are one
/// word, as `capitals` says.
fn words(name: &str, capitals: Capitals) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        let is_behind_capitals = capitals == Capitals::LastBegins
            && words.last().is_some_and(|word| word.len() > 1)
            && characters.peek().is_some_and(char::is_ascii_lowercase);
        let begins = character.is_ascii_uppercase() && (was_small || is_behind_capitals);
        if (begins || !character.is_ascii_alphanumeric())
            && words.last().is_some_and(|word| !word.is_empty())
        {
            words.push(String::new());
        }
        if character.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(character.to_ascii_lowercase());
        }
        was_small = character.is_ascii_lowercase() || character.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}
