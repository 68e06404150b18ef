//! Rows of a CSV file (RFC 4180).

/// Reads rows: fields with commas between them, in quotes if they contain commas, quotes or
/// ends of lines. Empty lines are skipped.
///
/// # Errors
/// A quote that never ends, or the number of the first row with another number of fields
/// than the first.
pub(super) fn rows(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row: Vec<String> = Vec::new();
    let mut field = String::new();
    let mut is_quoted = false;
    let mut was_quoted = false;
    let mut characters = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .chars()
        .peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            _ if is_quoted => field.push(character),
            '"' if field.is_empty() && !was_quoted => (is_quoted, was_quoted) = (true, true),
            ',' => {
                row.push(std::mem::take(&mut field));
                was_quoted = false;
            }
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' => {
                let is_empty = row.is_empty() && field.is_empty() && !was_quoted;
                row.push(std::mem::take(&mut field));
                was_quoted = false;
                let ended = std::mem::take(&mut row);
                if !is_empty {
                    rows.push(ended);
                }
            }
            _ => field.push(character),
        }
    }
    if is_quoted {
        return Err("a quoted field is not closed".to_owned());
    }
    if !row.is_empty() || !field.is_empty() || was_quoted {
        row.push(field);
        rows.push(row);
    }
    let columns = rows.first().map_or(0, Vec::len);
    match rows.iter().position(|row| row.len() != columns) {
        None => Ok(rows),
        Some(index) => Err(format!(
            "row {} has {} fields and the first has {columns}",
            index + 1,
            rows[index].len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_have_quotes_commas_and_ends_of_lines() {
        let read = rows("a,b\r\n1,\"x, \"\"y\"\"\nz\"\n\n2,\n").unwrap();
        assert_eq!(
            read,
            [vec!["a", "b"], vec!["1", "x, \"y\"\nz"], vec!["2", ""]]
        );
        assert_eq!(rows("a\n\"").unwrap_err(), "a quoted field is not closed");
        assert_eq!(
            rows("a,b\n1\n").unwrap_err(),
            "row 2 has 1 fields and the first has 2"
        );
    }
}
