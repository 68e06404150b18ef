//! The objects of one job, with attempts until the store answers.

use serde::Serialize;
use serde::de::DeserializeOwned;
use stillwell_run::Interrupt;
use stillwell_scope::clock;
use stillwell_units::Nanos;

use super::{Created, Store, StoreError};
use crate::pause::pause;

/// Maximum length of the name of a job, in characters.
pub(super) const JOB_NAME_MAX: usize = 40;

/// Bounds on attempts to reach a store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RetryBounds {
    /// Time between two attempts.
    pub every: Nanos,
    /// Time after which the store counts as gone.
    pub at_most: Nanos,
}

impl Default for RetryBounds {
    fn default() -> Self {
        Self {
            every: Nanos::from_millis(500),
            at_most: Nanos::from_secs(60),
        }
    }
}

/// The objects of one job.
#[derive(Clone, Debug)]
pub struct JobStore {
    store: Store,
    job: String,
    bounds: RetryBounds,
}

impl JobStore {
    /// The objects of `job` in `store`.
    ///
    /// # Errors
    /// [`StoreError::JobName`] for a name with other characters than letters, digits, dots
    /// and dashes, with a dot at the beginning, or with more than 40 characters.
    pub fn new(store: Store, job: &str, bounds: RetryBounds) -> Result<Self, StoreError> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let is_name = !job.is_empty() && !job.starts_with('.') && job.len() <= JOB_NAME_MAX;
        if !is_name || !job.chars().all(is_valid) {
            return Err(StoreError::JobName(job.to_owned()));
        }
        Ok(Self {
            store,
            job: job.to_owned(),
            bounds,
        })
    }

    /// The objects of another job in the same store.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn beside(&self, job: &str) -> Result<Self, StoreError> {
        Self::new(self.store.clone(), job, self.bounds)
    }

    /// The objects of this job whose names begin with `folder`.
    pub(crate) fn within(&self, folder: &str) -> Self {
        Self {
            job: self.key(folder),
            ..self.clone()
        }
    }

    /// Returns the name of the job.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Returns the store.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Makes the object `name` of the job; an attempt whose answer was lost counts.
    ///
    /// # Errors
    /// [`StoreError`] if the store did not answer in time, or `interrupt` was raised while
    /// it did not.
    pub fn create(
        &self,
        interrupt: &Interrupt,
        name: &str,
        bytes: &[u8],
    ) -> Result<Created, StoreError> {
        let (key, store) = (self.key(name), self.store.ending_with(interrupt));
        let mut attempts = 0;
        let created = self.retry(interrupt, || {
            attempts += 1;
            store.create(&key, bytes)
        })?;
        if created == Created::Before
            && attempts > 1
            && self.get(interrupt, name)?.as_deref() == Some(bytes)
        {
            return Ok(Created::Now);
        }
        Ok(created)
    }

    /// The same for a value as JSON.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_json(
        &self,
        interrupt: &Interrupt,
        name: &str,
        value: &impl Serialize,
    ) -> Result<Created, StoreError> {
        let bytes = serde_json::to_vec(value).map_err(|source| StoreError::Content {
            key: self.key(name),
            source,
        })?;
        self.create(interrupt, name, &bytes)
    }

    /// Returns the object `name` of the job, if there is one.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn get(&self, interrupt: &Interrupt, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let (key, store) = (self.key(name), self.store.ending_with(interrupt));
        self.retry(interrupt, || store.get(&key))
    }

    /// The same for a value as JSON.
    ///
    /// # Errors
    /// As [`Self::create`], and [`StoreError::Content`].
    pub fn get_json<T: DeserializeOwned>(
        &self,
        interrupt: &Interrupt,
        name: &str,
    ) -> Result<Option<T>, StoreError> {
        let Some(bytes) = self.get(interrupt, name)? else {
            return Ok(None);
        };
        let value = serde_json::from_slice(&bytes).map_err(|source| StoreError::Content {
            key: self.key(name),
            source,
        })?;
        Ok(Some(value))
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.job)
    }

    fn retry<T>(
        &self,
        interrupt: &Interrupt,
        mut attempt: impl FnMut() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let until = clock::now() + self.bounds.at_most;
        loop {
            match attempt() {
                Err(_) if clock::now() < until && interrupt.signal().is_none() => {
                    pause(interrupt, self.bounds.every);
                }
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::STALL_MAX;

    #[test]
    fn a_store_that_does_not_come_back_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), false).unwrap();
        let bounds = RetryBounds {
            every: Nanos::from_millis(1),
            at_most: Nanos::from_millis(20),
        };
        let store = JobStore::new(store, "job", bounds).unwrap();
        let result = store.get(&Interrupt::new(), "x");
        assert!(matches!(result, Err(StoreError::Missing(_))), "{result:?}");
    }

    #[test]
    fn a_request_that_stalls_is_repeated() {
        let bounds = RetryBounds::default();
        let attempt = STALL_MAX + bounds.every;
        assert!(attempt + attempt + attempt < bounds.at_most);
    }

    #[test]
    fn names_of_jobs_do_not_leave_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), true).unwrap();
        for name in ["", ".", "..", "a/b", "../a", "a b", ".a"] {
            let job = JobStore::new(store.clone(), name, RetryBounds::default());
            assert!(matches!(job, Err(StoreError::JobName(_))), "{name}");
        }
        let named = |length| {
            let name = "a".repeat(length);
            JobStore::new(store.clone(), &name, RetryBounds::default())
        };
        assert!(named(40).is_ok());
        let refused = named(41).unwrap_err().to_string();
        assert!(refused.contains("at most 40 letters"), "{refused}");
        let job = JobStore::new(store, "load-1.a", RetryBounds::default()).unwrap();
        let quiet = Interrupt::new();
        assert_eq!(job.create(&quiet, "x", b"1").unwrap(), Created::Now);
        assert_eq!(job.create(&quiet, "x", b"1").unwrap(), Created::Before);
        assert!(folder.path().join("load-1.a/x").is_file());
        assert!(matches!(
            job.get_json::<Vec<u8>>(&quiet, "x"),
            Err(StoreError::Content { .. })
        ));
    }
}
