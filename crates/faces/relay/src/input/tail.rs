//! The files of a folder that end in `.log`, read as they grow. A file that is
//! renamed is read to its end; one that is replaced is another file, and one that was
//! emptied is read from its beginning.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use stillwell_scope::clock;
use stillwell_units::Nanos;
use tokio::time::sleep;

use crate::core::Core;
use crate::counters::add;
use crate::split::Splitter;

/// Between two looks at the folder.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Maximum time that the input still reads written files after the stop.
const DRAIN_MAX: Nanos = Nanos::SECOND;

const BUFFER_BYTES: usize = 256 << 10;

/// One file under way.
#[derive(Debug)]
struct Tail {
    file: File,
    splitter: Splitter,
    /// Bytes already read.
    read: u64,
    /// True if the present scan of the folder has its name.
    is_named: bool,
}

/// Reads the files of `folder` until the relay is to end, and then what has been
/// written already.
pub(super) async fn follow(core: &Rc<Core>, folder: &Path) -> io::Result<()> {
    let mut tails: HashMap<(u64, u64), Tail> = HashMap::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut end = None;
    loop {
        find(folder, &mut tails)?;
        let mut has_read = false;
        for tail in tails.values_mut() {
            has_read |= read_on(core, tail, &mut buffer).await?;
        }
        forget(core, &mut tails, has_read).await;
        if core.token.is_cancelled() {
            let end = *end.get_or_insert_with(|| clock::now() + DRAIN_MAX);
            if !has_read || clock::now() > end {
                break;
            }
        }
        if !has_read {
            tokio::select! {
                () = core.token.cancelled() => {}
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }
    for tail in tails.into_values() {
        finish(core, tail).await;
    }
    Ok(())
}

/// Opens files that were not there before. A folder that is not there has none.
fn find(folder: &Path, tails: &mut HashMap<(u64, u64), Tail>) -> io::Result<()> {
    for tail in tails.values_mut() {
        tail.is_named = false;
    }
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "log") || !path.is_file() {
            continue;
        }
        // It may have been renamed between the two looks.
        let Ok(file) = File::open(&path) else {
            continue;
        };
        let metadata = file.metadata()?;
        let tail = tails
            .entry((metadata.dev(), metadata.ino()))
            .or_insert_with(|| Tail {
                file,
                splitter: Splitter::default(),
                read: 0,
                is_named: true,
            });
        tail.is_named = true;
    }
    Ok(())
}

/// Reads what a file has grown by, at most one buffer; gives whether that was
/// anything.
async fn read_on(core: &Core, tail: &mut Tail, buffer: &mut [u8]) -> io::Result<bool> {
    if tail.file.metadata()?.len() < tail.read {
        tail.file.seek(SeekFrom::Start(0))?;
        tail.read = 0;
        // What was begun before has no end any more.
        tail.splitter = Splitter::default();
    }
    let length = tail.file.read(buffer)?;
    if length == 0 {
        return Ok(false);
    }
    tail.read += length as u64;
    add(&core.counters.bytes_in, length as u64);
    let lines = tail.splitter.take(&buffer[..length]);
    core.take_in(lines.bytes, None).await;
    core.drop_events(lines.dropped);
    Ok(true)
}

/// Lets go of files that have another name now, once nothing was left to read.
async fn forget(core: &Core, tails: &mut HashMap<(u64, u64), Tail>, has_read: bool) {
    if has_read {
        return;
    }
    let gone: Vec<_> = tails
        .iter()
        .filter(|(_, tail)| !tail.is_named)
        .map(|(key, _)| *key)
        .collect();
    for key in gone {
        if let Some(tail) = tails.remove(&key) {
            finish(core, tail).await;
        }
    }
}

/// A last line without an end is an event as well.
async fn finish(core: &Core, mut tail: Tail) {
    if let Some(last) = tail.splitter.finish() {
        core.take_in(last, None).await;
    }
}
