//! Commands that this server started: one runs, a few wait, the last ones are remembered.

mod course;
mod runner;
mod transcript;

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use stillwell_scope::clock;
use stillwell_units::Moment;
use tokio::sync::{Notify, mpsc};

pub(crate) use course::{Course, CourseInterval, CoursePoint, IntervalPoint};
pub(crate) use runner::run_jobs;
pub(crate) use transcript::Transcript;

use stillwell_experiment::library::PlaceBelow;

/// Maximum number of commands that wait.
pub(crate) const QUEUE_MAX: usize = 8;
/// Maximum number of commands that are remembered.
const JOBS_MAX: usize = 50;
/// Maximum number of browsers that watch one command.
const WATCHERS_MAX: usize = 16;
/// Maximum number of events that wait for one browser.
const EVENTS_MAX: usize = 4;

/// All commands.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    board: Mutex<Board>,
    /// Wakes the runner: there is a new command, or one is to be stopped.
    wake: Notify,
}

#[derive(Debug, Default)]
struct Board {
    jobs: Vec<Job>,
    started: u64,
}

/// A command.
#[derive(Debug)]
struct Job {
    view: JobView,
    is_stopping: bool,
    watchers: Vec<mpsc::Sender<Bytes>>,
}

/// The state of a command, for pages.
#[derive(Clone, Debug)]
pub(crate) struct JobView {
    pub(crate) id: u64,
    /// Words after the name of the program.
    pub(crate) words: Vec<String>,
    /// Folder of its results.
    pub(crate) results: PlaceBelow,
    /// True if it has ended and files are in that folder.
    pub(crate) has_results: bool,
    pub(crate) state: JobState,
    /// Figures over time.
    pub(crate) course: Course,
    /// Messages.
    pub(crate) progress: Transcript,
    /// Output: the answer.
    pub(crate) answer: Transcript,
}

/// State of a command: waiting, running or ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum JobState {
    Queued,
    Running {
        since: Moment,
        is_stopping: bool,
    },
    Ended {
        /// Duration in nanoseconds.
        took: stillwell_units::Nanos,
        end: JobEnd,
    },
}

/// End of a command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum JobEnd {
    /// With this exit code.
    Exited(i32),
    /// Killed by this signal.
    Killed(i32),
    /// It did not start.
    NotStarted(String),
    /// Removed from the queue.
    Withdrawn,
}

impl JobState {
    pub(crate) const fn has_ended(&self) -> bool {
        matches!(self, Self::Ended { .. })
    }
}

/// The queue is full.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{QUEUE_MAX} commands are already waiting; stop one, or wait until one ends")]
pub(crate) struct QueueFull;

impl Jobs {
    /// Adds a command, and returns its number.
    pub(crate) fn submit(&self, words: Vec<String>, results: PlaceBelow) -> Result<u64, QueueFull> {
        let mut board = self.board();
        let waiting = board.jobs.iter();
        let waiting = waiting.filter(|job| job.view.state == JobState::Queued);
        if waiting.count() >= QUEUE_MAX {
            return Err(QueueFull);
        }
        if board.jobs.len() >= JOBS_MAX {
            let oldest = board.jobs.iter().position(|job| job.view.state.has_ended());
            oldest.map(|index| board.jobs.remove(index));
        }
        board.started += 1;
        let id = board.started;
        board.jobs.push(Job {
            view: JobView {
                id,
                words,
                results,
                has_results: false,
                state: JobState::Queued,
                course: Course::default(),
                progress: Transcript::default(),
                answer: Transcript::default(),
            },
            is_stopping: false,
            watchers: Vec::new(),
        });
        drop(board);
        self.wake.notify_one();
        Ok(id)
    }

    /// Requests the end of a command, or removes it from the queue. Returns false if there is no such command.
    pub(crate) fn stop(&self, id: u64) -> bool {
        let mut board = self.board();
        let Some(job) = board.job(id) else {
            return false;
        };
        match &mut job.view.state {
            JobState::Queued => {
                job.view.state = JobState::Ended {
                    took: stillwell_units::Nanos::ZERO,
                    end: JobEnd::Withdrawn,
                };
            }
            JobState::Running { is_stopping, .. } => {
                *is_stopping = true;
                job.is_stopping = true;
            }
            JobState::Ended { .. } => {}
        }
        job.send_to_watchers();
        drop(board);
        self.wake.notify_one();
        true
    }

    /// Returns the state of a command.
    pub(crate) fn view(&self, id: u64) -> Option<JobView> {
        self.board().job(id).map(|job| job.view.clone())
    }

    /// Returns all commands, newest first.
    pub(crate) fn views(&self) -> Vec<JobView> {
        let board = self.board();
        board
            .jobs
            .iter()
            .rev()
            .map(|job| job.view.clone())
            .collect()
    }

    /// Returns the number of commands that run or wait.
    pub(crate) fn unfinished(&self) -> usize {
        let board = self.board();
        let all = board.jobs.iter();
        all.filter(|job| !job.view.state.has_ended()).count()
    }

    /// Returns true if the results of a command are in this folder, or will be.
    pub(crate) fn has_results_at(&self, place: &PlaceBelow) -> bool {
        let board = self.board();
        board.jobs.iter().any(|job| job.view.results == *place)
    }

    /// Returns the events of a command: its state now and after each change. `None` if it is unknown. Of too many
    /// browsers, the first loses its events, and its page requests them again.
    pub(crate) fn watch(&self, id: u64) -> Option<mpsc::Receiver<Bytes>> {
        let mut board = self.board();
        let job = board.job(id)?;
        job.watchers.retain(|watcher| !watcher.is_closed());
        if job.watchers.len() >= WATCHERS_MAX {
            job.watchers.remove(0);
        }
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        job.watchers.push(sender);
        job.send_to_watchers();
        Some(receiver)
    }

    /// Ends all streams of events.
    fn forget_watchers(&self) {
        let mut board = self.board();
        board.jobs.iter_mut().for_each(|job| job.watchers.clear());
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next command from the queue.
    fn begin_next(&self) -> Option<(u64, Vec<String>)> {
        let mut board = self.board();
        let mut queued = board.jobs.iter_mut();
        let job = queued.find(|job| job.view.state == JobState::Queued)?;
        job.view.state = JobState::Running {
            since: clock::now(),
            is_stopping: false,
        };
        Some((job.view.id, job.view.words.clone()))
    }

    /// Changes the state of a command; its watchers get the new one.
    fn change(&self, id: u64, change: impl FnOnce(&mut JobView)) {
        let mut board = self.board();
        if let Some(job) = board.job(id) {
            change(&mut job.view);
            job.send_to_watchers();
        }
    }

    fn is_stopping(&self, id: u64) -> bool {
        self.board().job(id).is_some_and(|job| job.is_stopping)
    }
}

impl Board {
    fn job(&mut self, id: u64) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.view.id == id)
    }
}

impl Job {
    /// Sends the state to every watcher that keeps up; the next event has everything again. The last event closes the
    /// stream.
    fn send_to_watchers(&mut self) {
        if self.watchers.is_empty() {
            return;
        }
        let event = crate::pages::job_event(&self.view, clock::now());
        self.watchers.retain(|watcher| {
            let sent = watcher.try_send(event.clone());
            !matches!(sent, Err(mpsc::error::TrySendError::Closed(_)))
        });
        if self.view.state.has_ended() {
            self.watchers.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submit(jobs: &Jobs) -> Result<u64, QueueFull> {
        jobs.submit(vec!["load".to_owned()], PlaceBelow::parse("0/a").unwrap())
    }

    #[test]
    fn the_queue_has_a_bound_and_a_command_can_leave_it() {
        let jobs = Jobs::default();
        for id in 1..=QUEUE_MAX as u64 {
            assert_eq!(submit(&jobs), Ok(id));
        }
        assert_eq!(submit(&jobs), Err(QueueFull));
        assert!(jobs.stop(3));
        assert!(!jobs.stop(99));
        assert_eq!(submit(&jobs), Ok(9));
        assert_eq!(jobs.begin_next().map(|(id, _)| id), Some(1));
        assert!(jobs.stop(1));
        assert!(jobs.is_stopping(1));
        assert_eq!(jobs.unfinished(), 8);
        let ended = jobs.view(3).unwrap().state;
        assert!(matches!(
            ended,
            JobState::Ended {
                end: JobEnd::Withdrawn,
                ..
            }
        ));
        let has_results = ["0/a", "0/a/b"].map(|text| {
            let place = PlaceBelow::parse(text).unwrap();
            jobs.has_results_at(&place)
        });
        assert_eq!(has_results, [true, false]);
    }

    #[test]
    fn commands_that_ended_are_forgotten_before_those_that_did_not() {
        let jobs = Jobs::default();
        let first = submit(&jobs).unwrap();
        for _ in 0..2 * JOBS_MAX {
            let id = submit(&jobs).unwrap();
            jobs.stop(id);
        }
        assert_eq!(jobs.views().len(), JOBS_MAX);
        assert!(jobs.view(first).is_some());
    }

    #[test]
    fn watchers_get_each_change_and_the_end_closes_the_stream() {
        let jobs = Jobs::default();
        let id = submit(&jobs).unwrap();
        let mut events = jobs.watch(id).unwrap();
        let first = events.try_recv().unwrap();
        assert!(first.starts_with(b"event: job\ndata: "), "{first:?}");
        jobs.stop(id);
        assert!(
            events
                .try_recv()
                .unwrap()
                .starts_with(b"event: end\ndata: ")
        );
        assert!(matches!(
            events.try_recv(),
            Err(mpsc::error::TryRecvError::Disconnected)
        ));
        assert!(jobs.watch(99).is_none());
        // One more than the maximum: the first has no more events, and its page requests them again.
        let watching: Vec<_> = (0..=WATCHERS_MAX).map_while(|_| jobs.watch(id)).collect();
        assert_eq!(watching.len(), WATCHERS_MAX + 1);
    }
}
