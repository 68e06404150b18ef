//! The file in a repository that says how its revisions are built.

use std::path::{Path, PathBuf};

use stillwell_text::{Diagnostics, Keys, Reader, Source};

use crate::files::{Files, absolute};
use crate::overrides::{SuiteOverrides, VariantArgument};

/// Its name.
const NAME: &str = "stillwell.yaml";

/// The build of a repository.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct RepositoryBuild {
    /// Shell command that builds a revision in its worktree.
    pub(super) build: String,
    /// The executable that it makes, relative to the worktree.
    pub(super) output: PathBuf,
}

/// Returns the build that the file of the repository names, if there is such a file and the command line names
/// revisions, but not both parts of their build.
pub(super) fn read(
    files: &dyn Files,
    overrides: &SuiteOverrides,
    diagnostics: &mut Diagnostics,
) -> Option<RepositoryBuild> {
    if overrides.build.is_some() && overrides.build_output.is_some() {
        return None;
    }
    let variants = [&overrides.baseline, &overrides.comparison];
    let mut variants = variants.into_iter().flatten();
    if !variants.any(|variant| matches!(variant, VariantArgument::Git(_))) {
        return None;
    }
    let folder = overrides.repository.as_deref();
    let path = absolute(folder.unwrap_or_else(|| Path::new("."))).join(NAME);
    let text = files.read(&path).ok()?;
    let reader = Reader::new(Source::new(path, text));
    let root = reader.parse();
    let build = root.as_ref().and_then(|root| {
        let map = reader.map(root, &Keys::new("repository", &["build", "output"]))?;
        let build = reader.text(map.required("build")?)?.to_owned();
        let output = reader.text(map.required("output")?)?.into();
        Some(RepositoryBuild { build, output })
    });
    diagnostics.append(reader.finish());
    build
}
