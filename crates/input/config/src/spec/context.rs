//! The contract of elements. Imports no element.

use std::path::{Path, PathBuf};

use stillwell_plan::tls::RootSource;
use stillwell_text::{
    Node, Reader, Value, check_address, check_any_url, check_url, code, split_command,
};

use crate::files::{EntryKind, Files, resolve};

/// `sun_path` holds 108 bytes, one of them the end.
const SOCKET_PATH_MAX: usize = 107;

/// Context of reading an element.
pub(crate) struct ReadContext<'d> {
    pub(crate) reader: &'d Reader,
    pub(crate) files: &'d dyn Files,
    /// The folder of the file; relative paths count from it.
    pub(crate) folder: &'d Path,
    /// The URL of the target, if it has one.
    pub(crate) target_url: Option<&'d str>,
}

impl ReadContext<'_> {
    /// A path, made absolute.
    pub(super) fn path(&self, node: &Node) -> Option<PathBuf> {
        let text = self.filled(node)?;
        Some(resolve(self.folder, text))
    }

    /// A path that may lie in a folder of the run: `{state}/in.log`.
    pub(super) fn placed(&self, node: &Node) -> Option<PathBuf> {
        let text = self.filled(node)?;
        let is_known = ["{state}", "{experiment}"].iter().any(|place| {
            text.strip_prefix(place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if text.starts_with('{') && !is_known {
            let message = format!("`{text}` begins with an unknown placeholder");
            let error = self.reader.error(code::BAD_VALUE, node.span, message);
            let label = "`{state}/NAME` lies in the folder of each run, `{experiment}/NAME` beside this file";
            self.reader.report(error.label(label));
        }
        Some(resolve(self.folder, text))
    }

    /// A path to something that must be there already.
    pub(crate) fn existing(&self, node: &Node, wanted: EntryKind) -> Option<PathBuf> {
        let path = self.path(node)?;
        self.existing_path(node, path, wanted)
    }

    /// `system`, or a path to a file of certificates that must be there already.
    pub(super) fn roots(&self, node: &Node) -> Option<RootSource> {
        match RootSource::from(PathBuf::from(self.filled(node)?)) {
            RootSource::System => Some(RootSource::System),
            RootSource::File(_) => self.existing(node, EntryKind::File).map(RootSource::File),
        }
    }

    /// The absolute `path`, which `node` names, to something that must be there already.
    pub(super) fn existing_path(
        &self,
        node: &Node,
        path: PathBuf,
        wanted: EntryKind,
    ) -> Option<PathBuf> {
        if path.to_string_lossy().contains('{') {
            return Some(path);
        }
        let kind = self.files.kind(&path);
        if kind == Some(wanted) {
            return Some(path);
        }
        let what = match wanted {
            EntryKind::File | EntryKind::Special => "file",
            EntryKind::Folder => "folder",
        };
        let message = format!("there is no {what} {}", path.display());
        let error = self.reader.error(code::UNREADABLE, node.span, message);
        self.reader.report(match kind {
            Some(EntryKind::Folder) => error.label("this is a folder"),
            Some(EntryKind::File) => error.label("this is a file"),
            Some(EntryKind::Special) => error.label("this is a pipe, a socket or a device"),
            None => error.label("paths are relative to the folder of this file"),
        });
        None
    }

    /// A text that is not empty.
    pub(super) fn filled<'n>(&self, node: &'n Node) -> Option<&'n str> {
        let text = self.reader.text(node)?;
        if text.trim().is_empty() {
            let error = self
                .reader
                .error(code::BAD_VALUE, node.span, "an empty text");
            self.reader.report(error.label("a value is required here"));
            return None;
        }
        Some(text)
    }

    /// The path of a Unix socket, which the kernel limits in length.
    pub(super) fn socket(&self, node: &Node) -> Option<PathBuf> {
        let path = self.path(node)?;
        let length = path.as_os_str().len();
        if length > SOCKET_PATH_MAX {
            let message = format!("a socket path of {length} bytes is too long");
            let error = self.reader.error(code::OUT_OF_RANGE, node.span, message);
            let limit = format!("at most {SOCKET_PATH_MAX} bytes, the folder included");
            self.reader.report(error.label(limit));
        }
        Some(path)
    }

    /// `host:port` to connect to.
    pub(super) fn address(&self, node: &Node) -> Option<String> {
        let address = self.bind_address(node)?;
        if address.ends_with(":0") {
            let message = "nothing listens at port 0";
            let error = self.reader.error(code::OUT_OF_RANGE, node.span, message);
            self.reader.report(error.label("a port from 1 to 65535"));
        }
        Some(address)
    }

    /// `host:port` to send from; port 0 is any.
    pub(super) fn bind_address(&self, node: &Node) -> Option<String> {
        let text = self.reader.text(node)?;
        match check_address(text) {
            Ok(_) => Some(text.to_owned()),
            Err(reason) => {
                let message = format!("`{text}` is not an address");
                let error = self.reader.error(code::BAD_VALUE, node.span, message);
                self.reader.report(error.label(reason));
                None
            }
        }
    }

    /// `http://host:port/path`.
    pub(super) fn url(&self, node: &Node) -> Option<String> {
        self.checked_url(node, check_url)
    }

    /// The same, or `https://…`.
    pub(super) fn any_url(&self, node: &Node) -> Option<String> {
        self.checked_url(node, check_any_url)
    }

    fn checked_url(
        &self,
        node: &Node,
        check: fn(&str) -> Result<String, &'static str>,
    ) -> Option<String> {
        let text = self.reader.text(node)?;
        match check(text) {
            Ok(_) => Some(text.to_owned()),
            Err(reason) => {
                let message = format!("`{text}` is not an address to connect to");
                let error = self.reader.error(code::BAD_VALUE, node.span, message);
                self.reader.report(error.label(reason));
                None
            }
        }
    }

    /// A command as a list of words, or as one text split like a shell's.
    pub(super) fn command(&self, node: &Node) -> Option<Vec<String>> {
        let words = match &node.value {
            Value::List(_) => Ok(self.reader.texts(node)),
            _ => split_command(self.reader.text(node)?),
        };
        match words {
            Ok(words) if words.first().is_some_and(|program| !program.is_empty()) => Some(words),
            Ok(_) => {
                let message = "a command needs a program";
                let error = self.reader.error(code::BAD_VALUE, node.span, message);
                self.reader
                    .report(error.label("write `[program, argument, …]`"));
                None
            }
            Err(reason) => {
                let message = "this is not a command";
                let error = self.reader.error(code::BAD_VALUE, node.span, message);
                self.reader.report(error.label(reason));
                None
            }
        }
    }

    /// A command whose program, if it is a relative path, counts from the
    /// folder of the file.
    pub(super) fn program(&self, node: &Node) -> Option<Vec<String>> {
        let mut words = self.command(node)?;
        if let Some(program) = words.first_mut()
            && program.contains('/')
        {
            *program = resolve(self.folder, program).to_string_lossy().into_owned();
        }
        Some(words)
    }

    /// A program without arguments: a name, or a path from the file's folder on.
    pub(super) fn one_program(&self, node: &Node) -> Option<PathBuf> {
        let program = self.filled(node)?;
        Some(match program.contains('/') {
            true => resolve(self.folder, program),
            false => program.into(),
        })
    }
}
