//! Commands written as one text.

/// `text` split into words as a shell would: blanks separate, quotes hold
/// together, a backslash takes away the meaning of what follows. Nothing is
/// expanded. An error says what is wrong with it.
///
/// # Errors
/// A quote that is not closed, or a backslash at the end.
pub fn split_command(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            quote @ ('\'' | '"') => {
                let word = word.get_or_insert_default();
                quoted(quote, &mut characters, word)?;
            }
            '\\' => {
                let escaped = characters.next().ok_or("it ends in a backslash")?;
                word.get_or_insert_default().push(escaped);
            }
            blank if blank.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Moves the text up to the closing `quote` into `word`.
fn quoted(
    quote: char,
    characters: &mut std::str::Chars<'_>,
    word: &mut String,
) -> Result<(), &'static str> {
    const OPEN: &str = "a quote is not closed";
    loop {
        match characters.next().ok_or(OPEN)? {
            character if character == quote => return Ok(()),
            '\\' if quote == '"' => match characters.next().ok_or(OPEN)? {
                escaped @ ('"' | '\\') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            character => word.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_split_as_in_a_shell() {
        for (text, words) in [
            ("", vec![]),
            ("  a  b\t c\n", vec!["a", "b", "c"]),
            (
                "a 'b c' \"d \\\" e\" f\\ g",
                vec!["a", "b c", "d \" e", "f g"],
            ),
            ("--x='' ''", vec!["--x=", ""]),
            ("\"a\\n\"", vec!["a\\n"]),
        ] {
            assert_eq!(split_command(text).unwrap(), words, "{text}");
        }
        for text in ["'a", "\"a", "a\\"] {
            assert!(split_command(text).is_err(), "{text}");
        }
    }
}
