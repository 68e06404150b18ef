//! Logs in a file system of their own, and programs that read them.
#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "a helper that cannot go on fails its test, and says what it skips"
)]

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stillwell_fuse::{Mount, MountError, MountOwner};
use stillwell_metric::LogFsShard;
use stillwell_plan::generator::FileLayout;
use stillwell_plan::{GeneratorPlan, RatePlan, TransportPlan};
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{ByteRate, ByteSize, Nanos};
use stillwell_worker::{PrepareError, Prepared, ShowError};

use crate::{lines, plan, prepare, wait_until};

/// The process that mounts.
const OWNER: MountOwner<'static> = MountOwner {
    process: "test",
    is_gone: |_| false,
};

struct Logs {
    scope: Scope,
    stop: Token,
    mount: Mount,
    prepared: Option<Prepared>,
    shard: Arc<LogFsShard>,
    load: Arc<stillwell_metric::GeneratorShard>,
    at: PathBuf,
    _folder: tempfile::TempDir,
}

fn plan_at(at: &Path, rotations: u8, rate: u64) -> GeneratorPlan {
    let mut plan = plan(TransportPlan::Files {
        layout: FileLayout::Mounted {
            at: at.to_owned(),
            depth_max: 2,
            rotations,
        },
        bytes_max: ByteSize::kib(64),
    });
    plan.concurrency = plan.concurrency.with_connections(2);
    plan.rate = RatePlan::bytes(ByteRate::try_new(rate).unwrap());
    plan
}

impl Logs {
    /// Shows logs; `None` where this host forbids it.
    fn show(test: &str, rotations: u8, rate: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("logs");
        let mut prepared = prepare(&plan_at(&at, rotations, rate), None).unwrap();
        let shard = prepared.file_system().unwrap();
        let load = prepared.shards().remove(0);
        let mut scope = Scope::new(&Token::new());
        let (mount, notes) = match prepared.show(&mut scope, &Place::default(), OWNER) {
            Ok(shown) => shown.unwrap(),
            Err(ShowError::Mount { source, .. })
                if matches!(
                    source,
                    MountError::Device { .. } | MountError::Forbidden { .. }
                ) =>
            {
                println!("SKIPPED: {test}: {source}");
                return None;
            }
            Err(error) => panic!("{error:?}"),
        };
        assert_eq!(notes, []);
        Some(Self {
            scope,
            stop: Token::new(),
            mount,
            prepared: Some(prepared),
            shard,
            load,
            at,
            _folder: folder,
        })
    }

    fn begin(&mut self) {
        let prepared = self.prepared.take().unwrap();
        let place = Place::default();
        prepared
            .start(&mut self.scope, &place, false, clock::now(), &self.stop)
            .unwrap();
    }

    /// Every file that has a name now.
    fn files(&self) -> Vec<PathBuf> {
        let mut actual = Vec::new();
        let mut folders = vec![self.at.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    actual.push(entry.path());
                }
            }
        }
        actual
    }

    /// Stops the load, and waits until that has been seen.
    fn stop(&self) {
        self.stop.cancel();
        // Twice the same: nothing grows any more.
        let (seen, equal) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        wait_until(|| {
            drop(fs::metadata(&self.at));
            let bytes = self.load.bytes.total();
            equal.set(if seen.replace(bytes) == bytes {
                equal.get() + 1
            } else {
                0
            });
            equal.get() > 40
        });
    }

    /// Ends it; gives bytes written, read, missed and unread.
    fn end(self) -> [u64; 4] {
        assert_eq!(self.mount.end(), None);
        for end in self.scope.close(Nanos::from_secs(10)) {
            end.result.unwrap();
        }
        assert!(!self.at.exists());
        [
            &self.load.bytes,
            &self.shard.read,
            &self.shard.missed,
            &self.shard.unread,
        ]
        .map(|cell| cell.total())
    }
}

#[test]
fn a_reader_that_reads_all_misses_nothing() {
    let Some(mut logs) = Logs::show("reads all", 200, 2 << 20) else {
        return;
    };
    // They are there before anything is written, for readers that look for them.
    let empty = logs.files();
    assert_eq!(empty.len(), 2);
    assert!(empty.iter().all(|path| fs::read(path).unwrap().is_empty()));
    logs.begin();
    wait_until(|| logs.shard.rotated.total() > 4);
    logs.stop();
    let files = logs.files();
    assert!(files.len() > 6, "{files:?}");
    let mut cat = Command::new("cat");
    let output = cat.args(&files).output().unwrap();
    assert!(output.status.success());
    let all = output.stdout;
    assert_eq!(lines(&all), logs.load.events.total());
    for path in &files {
        let metadata = fs::metadata(path).unwrap();
        let content = fs::read(path).unwrap();
        assert_eq!(metadata.len(), content.len() as u64);
        assert!(content.is_empty() || content.ends_with(b"\n"));
    }
    let [written, read, missed, unread] = logs.end();
    assert_eq!(written, all.len() as u64);
    // Once by `cat`, once by us.
    assert_eq!(read, 2 * written);
    assert_eq!((missed, unread), (0, 0));
}

#[test]
fn bytes_that_are_removed_unread_are_missed() {
    let Some(mut logs) = Logs::show("missed", 0, 4 << 20) else {
        return;
    };
    // Held open, the first part of a log outlives its name.
    let first = logs.files().remove(0);
    let mut held = File::open(&first).unwrap();
    logs.begin();
    wait_until(|| logs.shard.deleted.total() > 6);
    logs.stop();
    let mut bytes = Vec::new();
    held.read_to_end(&mut bytes).unwrap();
    assert!(bytes.len() >= 64 << 10 && bytes.ends_with(b"\n"));
    assert_eq!(held.metadata().unwrap().len(), bytes.len() as u64);
    drop(held);
    let shard = Arc::clone(&logs.shard);
    wait_until(|| {
        shard
            .requests
            .iter()
            .any(|requests| requests.releases.total() > 0)
    });
    let [written, read, missed, unread] = logs.end();
    assert_eq!(read, bytes.len() as u64);
    assert!(missed >= 5 * (64 << 10), "{missed}");
    assert_eq!(written, read + missed + unread);
}

#[test]
fn tail_follows_a_log_through_its_rotations() {
    let Some(mut logs) = Logs::show("tail", 3, 1 << 20) else {
        return;
    };
    let log = logs.files().remove(0);
    let mut tail = Command::new("tail");
    tail.args(["-s", "0.01", "-c", "+1", "-F"]).arg(&log);
    let tail = tail.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut tail = tail.spawn().unwrap();
    let shard = Arc::clone(&logs.shard);
    // It has the file open before that has anything in it.
    wait_until(|| {
        shard
            .requests
            .iter()
            .any(|requests| requests.opens.total() > 0)
    });
    logs.begin();
    let mut output = tail.stdout.take().unwrap();
    let passed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&passed);
    let reading = logs.beside(move || {
        let mut room = vec![0; 65_536];
        loop {
            match output.read(&mut room).unwrap() {
                0 => return,
                bytes => count.fetch_add(bytes, Ordering::Relaxed),
            };
        }
    });
    // It goes on with the file that comes after the first. What was rotated away while it had no
    // CPU never comes: the load goes on until it has enough.
    wait_until(|| logs.shard.rotated.total() > 6 && passed.load(Ordering::Relaxed) > 128 << 10);
    logs.stop();
    tail.kill().unwrap();
    tail.wait().unwrap();
    reading.recv().unwrap();
    let [written, read, missed, unread] = logs.end();
    assert!(read >= passed.load(Ordering::Relaxed) as u64);
    assert!(missed + unread < written);
}

#[test]
fn logs_are_read_only() {
    let Some(logs) = Logs::show("writes", 1, 1000) else {
        return;
    };
    let file = logs.files().remove(0);
    let read_only = ErrorKind::ReadOnlyFilesystem;
    assert_eq!(File::create(&file).unwrap_err().kind(), read_only);
    assert_eq!(fs::remove_file(&file).unwrap_err().kind(), read_only);
    assert_eq!(
        fs::create_dir(logs.at.join("new")).unwrap_err().kind(),
        read_only
    );
    let error = File::open(logs.at.join("none.log")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(logs.end(), [0; 4]);
}

#[test]
fn logs_without_a_rate_were_endless_at_once() {
    let mut plan = plan_at(Path::new("/nowhere"), 1, 1);
    plan.rate = RatePlan::MAX;
    let error = prepare(&plan, None).unwrap_err();
    assert!(matches!(error, PrepareError::Unpaced { .. }), "{error}");
}

#[test]
fn a_place_that_is_not_free_is_refused_with_its_entries() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kept"), "").unwrap();
    let mut prepared = prepare(&plan_at(folder.path(), 1, 1000), None).unwrap();
    let mut scope = Scope::new(&Token::new());
    let shown = prepared.show(&mut scope, &Place::default(), OWNER);
    let error = shown.unwrap_err();
    let text = stillwell_scope::explain(&error);
    for words in ["generator `one`", "`folder` instead of `mount`", "`kept`"] {
        assert!(text.contains(words), "{text}");
    }
}

impl Logs {
    /// Runs `body` on a thread of its own.
    fn beside<T: Send + 'static>(
        &mut self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> std::sync::mpsc::Receiver<T> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let run = move |_: &Token| {
            sender
                .send(body())
                .map_err(|_| "nobody waits for it".into())
        };
        self.scope.thread(Place::default(), "beside", run).unwrap();
        receiver
    }
}
