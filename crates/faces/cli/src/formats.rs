//! The formats of other tools that commands read.

use stillwell_config::Loader;
use stillwell_config::files::Disk;
use stillwell_config::foreign::ForeignFormat;
use stillwell_lading::{LadingFiles, SmpCases};
use stillwell_others::TremorPrograms;

/// All of them; of several that recognise a file the first reads it.
const fn formats() -> &'static [&'static dyn ForeignFormat] {
    &[&LadingFiles, &SmpCases, &TremorPrograms]
}

/// Reads configurations from the disk, in every format.
pub(crate) const fn loader() -> Loader<'static> {
    Loader::new(&Disk, formats())
}
