//! Names of cells.

use super::Cell;

/// Longer names are numbered instead: folders hold files with names of their
/// own behind this one.
const NAME_BYTES_MAX: usize = 120;

/// A name for each of `cells` of the experiment called `base`, safe for folders
/// and unique: `base_size-8MiB_contexts-100`.
pub(crate) fn names_of(base: &str, cells: &[Cell]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let mut name = name_of(base, cell);
        if name.len() > NAME_BYTES_MAX {
            name = format!("{base}_cell-{:04}", index + 1);
        }
        let plain = name.clone();
        let mut count = 1;
        while names.contains(&name) {
            count += 1;
            name = format!("{plain}_{count}");
        }
        names.push(name);
    }
    names
}

fn name_of(base: &str, cell: &Cell) -> String {
    let parts = cell.settings.iter().map(|setting| {
        let value = plain(&setting.text);
        format!("_{}-{value}", setting.parameter)
    });
    base.to_owned() + &parts.collect::<String>()
}

/// `text` without blanks, and with `-` for what a folder or a shell would take
/// for something else.
fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+');
    let blanks_gone = text.chars().filter(|c| !c.is_whitespace());
    let plain: String = blanks_gone
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect();
    match plain.trim_matches('-') {
        "" => "empty".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stillwell_text::Span;

    use super::super::Setting;
    use super::*;

    fn cell(settings: &[(&str, &str)]) -> Cell {
        let settings = settings.iter().map(|(parameter, text)| Setting {
            parameter: (*parameter).to_owned(),
            text: (*text).to_owned(),
            span: Span::default(),
        });
        Cell {
            settings: settings.collect(),
        }
    }

    #[test]
    fn names_read_like_those_that_people_give() {
        for (settings, name) in [
            (
                &[("size", "8 MiB"), ("contexts", "100")][..],
                "one_size-8MiB_contexts-100",
            ),
            (&[("rate", "10 MiB/s")], "one_rate-10MiB-s"),
            (&[("flag", "--fast")], "one_flag-fast"),
            (&[("flag", "")], "one_flag-empty"),
            (&[("path", "../x/")], "one_path-..-x"),
            (&[], "one"),
        ] {
            assert_eq!(names_of("one", &[cell(settings)]), [name]);
        }
        let twins = [cell(&[("a", "1/s")]), cell(&[("a", "1-s")])];
        assert_eq!(names_of("one", &twins), ["one_a-1-s", "one_a-1-s_2"]);
        let long = "x".repeat(200);
        assert_eq!(names_of("one", &[cell(&[("a", &long)])]), ["one_cell-0001"]);
    }

    proptest! {
        #[test]
        fn names_are_unique_and_safe(
            texts in proptest::collection::vec(("\\PC{0,12}", "[a-c/ -]{0,3}"), 1..30),
        ) {
            let cells: Vec<Cell> = texts
                .iter()
                .map(|(left, right)| cell(&[("a", left), ("b", right)]))
                .collect();
            let names = names_of("base", &cells);
            for (index, name) in names.iter().enumerate() {
                prop_assert!(!names[index + 1..].contains(name));
                prop_assert!(name.starts_with("base_") && name.len() <= NAME_BYTES_MAX + 4);
                prop_assert!(name.is_ascii() && !name.contains(['/', ' ', '\0', '*']));
            }
        }
    }
}
