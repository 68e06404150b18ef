//! Configuration files: their list, and changes to one.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use sha2::{Digest as _, Sha256};

use super::{Sent, Server, Shared, misplaced};
use crate::answer::{self, Answer};
use crate::fields::Fields;
use crate::pages::{self, EditView};
use crate::program::CheckedFile;
use crate::work_queue::WorkKind;
use stillwell_experiment::library::{PlaceBelow, PlaceError};

/// Maximum size of a file that is edited.
const TEXT_MAX: u64 = 256 * 1024;

/// The list of files.
pub(super) async fn files(State(shared): Server) -> Result<Answer, Answer> {
    let listing = shared.listing().await?;
    Ok(answer::page(
        StatusCode::OK,
        pages::files(&listing, shared.chrome()),
    ))
}

/// A file in the editor, with its findings.
pub(super) async fn open(
    State(shared): Server,
    Path(place): Path<String>,
) -> Result<Answer, Answer> {
    let read = move |shared: &Shared| {
        let place = configuration(&place)?;
        let text = shared.roots.read_text(&place, TEXT_MAX)?;
        let checked = shared.program.check(&shared.roots.path(&place)?);
        Ok((place, text, checked))
    };
    let read = shared.work(WorkKind::Read, read).await?;
    let (place, text, checked) = read.map_err(|error| misplaced(&shared, &error))?;
    let view = EditView {
        place: &place,
        text: &text,
        version: &version(&text),
        outcome: None,
        checked: Some(&checked),
    };
    Ok(answer::page(
        StatusCode::OK,
        pages::edit(&view, shared.chrome()),
    ))
}

/// The end of an attempt to save.
enum Saved {
    Done {
        checked: CheckedFile,
        version: String,
    },
    /// The file has another text than the one that was edited.
    Changed {
        version: String,
    },
    TooLarge,
}

/// Saves a text, and checks it.
pub(super) async fn save(
    State(shared): Server,
    Path(place): Path<String>,
    sent: Sent,
) -> Result<Answer, Answer> {
    let fields = Fields::parse(&sent);
    // Browsers send lines with CR LF, and drop the first newline of a text.
    let text = fields.text("text").replace("\r\n", "\n");
    let edited = text.clone();
    let base = fields.line("version").to_owned();
    let write = move |shared: &Shared| {
        let place = configuration(&place)?;
        let stored = shared.roots.read_text(&place, TEXT_MAX)?;
        let edited = with_line_ends_of(&stored, &edited);
        if edited.len() as u64 > TEXT_MAX {
            return Ok((place, Saved::TooLarge));
        }
        let now = version(&stored);
        if now != base {
            return Ok((place, Saved::Changed { version: now }));
        }
        shared.roots.replace_text(&place, &edited)?;
        let checked = shared.program.check(&shared.roots.path(&place)?);
        let version = version(&edited);
        Ok((place, Saved::Done { checked, version }))
    };
    let saved = shared.work(WorkKind::Write, write).await?;
    let (place, saved) = saved.map_err(|error: PlaceError| misplaced(&shared, &error))?;
    let (status, outcome, base) = match &saved {
        Saved::Done { version, .. } => (StatusCode::OK, "Saved.", version.clone()),
        Saved::Changed { version } => (
            StatusCode::CONFLICT,
            "Not saved: the file on the disk has changed since it was opened. Save again to replace it with this text.",
            version.clone(),
        ),
        Saved::TooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "Not saved: the text is larger than 256 KiB.",
            fields.line("version").to_owned(),
        ),
    };
    let view = EditView {
        place: &place,
        text: &text,
        version: &base,
        outcome: Some((outcome, status != StatusCode::OK)),
        checked: match &saved {
            Saved::Done { checked, .. } => Some(checked),
            _ => None,
        },
    };
    Ok(answer::page(status, pages::edit(&view, shared.chrome())))
}

/// Reads the address of a configuration file.
fn configuration(text: &str) -> Result<PlaceBelow, PlaceError> {
    let place = PlaceBelow::parse(text)?;
    let is_configuration = |name: &String| name.ends_with(".yaml") || name.ends_with(".yml");
    match place.names.last().is_some_and(is_configuration) {
        true => Ok(place),
        false => Err(PlaceError::Shape(text.to_owned())),
    }
}

/// Returns `text`, whose lines end with LF, with the line ends of `stored`: with CR LF if all its lines have that.
fn with_line_ends_of(stored: &str, text: &str) -> String {
    let lines = stored.matches('\n').count();
    match lines > 0 && stored.matches("\r\n").count() == lines {
        true => text.replace('\n', "\r\n"),
        false => text.to_owned(),
    }
}

/// Returns a name of a text that other texts do not have.
fn version(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_text_has_the_line_ends_of_the_file() {
        for (stored, saved) in [
            ("a\r\nb\r\n", "c\r\nd\r\n"),
            ("a\r\nb", "c\r\nd\r\n"),
            ("a\nb\n", "c\nd\n"),
            ("a\r\nb\n", "c\nd\n"),
            ("a", "c\nd\n"),
            ("", "c\nd\n"),
        ] {
            assert_eq!(with_line_ends_of(stored, "c\nd\n"), saved, "{stored:?}");
        }
    }
}
