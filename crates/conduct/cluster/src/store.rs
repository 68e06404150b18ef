//! The store: a folder or a bucket in which objects are made once and never changed.

mod folder;
mod retry;

use std::path::Path;

use stillwell_experiment::{ObjectStore, ObjectStoreError};
use stillwell_run::Interrupt;
use stillwell_units::Nanos;

use folder::FolderStore;
pub use retry::{JobStore, RetryBounds};

/// Maximum number of jobs of a list.
const JOBS_MAX: usize = 200;

/// Longest time without progress of a request to a bucket: several attempts fit into [`RetryBounds`].
const STALL_MAX: Nanos = Nanos::from_secs(10);

/// Maximum size of an object.
pub(crate) const OBJECT_MAX: u64 = 256 << 20;

/// A folder that all nodes share, or a bucket.
#[derive(Clone, Debug)]
pub struct Store(Place);

#[derive(Clone, Debug)]
enum Place {
    Folder(FolderStore),
    Objects(Box<ObjectStore>),
}

/// The first or a later attempt to make an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Created {
    /// It was made.
    Now,
    /// There was one already; it is unchanged.
    Before,
}

/// A store that does not work.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder is not there, or is no store.
    #[error(
        "the store {0} does not exist: its folder or its marker file `.stillwell-store` is missing"
    )]
    Missing(String),
    /// The kernel's answer.
    #[error("{action} {place}")]
    Folder {
        /// The attempt.
        action: &'static str,
        /// The file.
        place: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The bucket's answer.
    #[error(transparent)]
    Objects(#[from] ObjectStoreError),
    /// An object that is no JSON of its kind.
    #[error("read {key} in the store")]
    Content {
        /// Its name.
        key: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// The name of a job that is none.
    #[error(
        "`{0}` is not a job name: write at most {max} letters, digits, dots and dashes, without a dot \
         at the beginning",
        max = retry::JOB_NAME_MAX
    )]
    JobName(String),
    /// A name that is taken.
    #[error("the store has another {0} already: choose another name for the job")]
    Taken(String),
}

impl Store {
    /// Opens the store at `place`: a folder, or `s3://BUCKET/PREFIX` with keys from the
    /// environment. A folder is made if `is_made`.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be used.
    pub fn open(place: &Path, is_made: bool) -> Result<Self, StoreError> {
        if let Some(objects) = ObjectStore::from_env(place)? {
            let objects = objects.with_stall_limit(STALL_MAX);
            return Ok(Self(Place::Objects(Box::new(objects))));
        }
        let folder = FolderStore::new(place);
        if is_made {
            folder.make()?;
        }
        Ok(Self(Place::Folder(folder)))
    }

    /// Returns its folder, if it is one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match &self.0 {
            Place::Folder(folder) => Some(folder.path()),
            Place::Objects(_) => None,
        }
    }

    /// Returns true if `folder` is a store.
    #[must_use]
    pub fn is_at(folder: &Path) -> bool {
        FolderStore::new(folder).is_marked()
    }

    /// Returns the names of the newest jobs in a folder, newest first; a bucket has no list.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn jobs(&self) -> std::io::Result<Vec<String>> {
        let Some(folder) = self.folder() else {
            return Ok(Vec::new());
        };
        let mut jobs = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let facts = entry.metadata()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if facts.is_dir() && !name.starts_with('.') {
                jobs.push((facts.modified()?, name));
            }
        }
        jobs.sort();
        let newest = jobs.into_iter().rev().take(JOBS_MAX);
        Ok(newest.map(|(_, name)| name).collect())
    }

    /// The same store; its requests to a bucket end soon after `interrupt` is raised.
    pub(crate) fn ending_with(&self, interrupt: &Interrupt) -> Self {
        Self(match &self.0 {
            Place::Folder(folder) => Place::Folder(folder.clone()),
            Place::Objects(objects) => Place::Objects(Box::new(objects.ending_with(interrupt))),
        })
    }

    /// Makes the object `key`, unless there is one.
    ///
    /// # Errors
    /// [`StoreError`] if the store did not answer.
    pub fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        let is_new = match &self.0 {
            Place::Folder(folder) => folder.create(key, bytes)?,
            Place::Objects(objects) => objects.create(key, bytes)?,
        };
        Ok(if is_new {
            Created::Now
        } else {
            Created::Before
        })
    }

    /// Returns the object `key`, if there is one.
    ///
    /// # Errors
    /// [`StoreError`] if the store did not answer.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match &self.0 {
            Place::Folder(folder) => folder.get(key),
            Place::Objects(objects) => Ok(objects.get(key)?),
        }
    }
}
