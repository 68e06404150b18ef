//! Runs commands one after the other, each as a child process.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use stillwell_experiment::library::{PlaceBelow, ResultRoots};
use stillwell_scope::{Token, clock};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::{interval, sleep, timeout};

use super::{JobEnd, JobState, Jobs, course};

/// Time between two events of a running command.
const TICK: Duration = Duration::from_millis(500);
/// Time in which a command ends in order after it was stopped.
const STOP_MAX: Duration = Duration::from_secs(20);
/// The same when the server ends. A load ends within `INTERRUPTED_MAX` (crate `run`, 7 s) after a signal, and writes its results then.
const END_MAX: Duration = Duration::from_secs(8);
/// Time in which the last output arrives after the end of a command.
const REST_MAX: Duration = Duration::from_millis(300);

/// Runs commands of `jobs` in the first of `roots` until the token is cancelled; then it ends the one that runs.
pub(crate) async fn run_jobs(jobs: &Jobs, program: &Path, roots: &ResultRoots, token: &Token) {
    let folder = roots.folders().first();
    let folder = folder.map_or_else(|| Path::new(""), PathBuf::as_path);
    while !token.is_cancelled() {
        match jobs.begin_next() {
            Some((id, words)) => {
                let began = clock::now();
                let end = run(jobs, id, command(program, folder, &words), token).await;
                let view = jobs.view(id);
                let has_results = view.is_some_and(|view| has_files(roots, &view.results));
                jobs.change(id, |view| {
                    view.has_results = has_results;
                    view.progress.finish();
                    view.answer.finish();
                    view.state = JobState::Ended {
                        took: clock::now().since(began),
                        end,
                    };
                });
            }
            None => tokio::select! {
                () = jobs.wake.notified() => {}
                () = token.cancelled() => {}
            },
        }
    }
    jobs.forget_watchers();
}

/// Returns true if `place` is a folder with files.
fn has_files(roots: &ResultRoots, place: &PlaceBelow) -> bool {
    let path = roots.path(place).ok();
    let entries = path.and_then(|path| std::fs::read_dir(path).ok());
    entries.is_some_and(|mut entries| entries.next().is_some())
}

fn command(program: &Path, folder: &Path, words: &[String]) -> Command {
    let mut command = Command::new(program);
    let (name, value) = course::VARIABLE;
    command.args(words).current_dir(folder);
    command.env("NO_COLOR", "1").env(name, value);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C in the terminal of the server is for the server, which ends its commands itself.
    command.process_group(0).kill_on_drop(true);
    command
}

async fn run(jobs: &Jobs, id: u64, mut command: Command, token: &Token) -> JobEnd {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return JobEnd::NotStarted(error.to_string()),
    };
    let progress = child.stderr.take();
    let answer = child.stdout.take();
    let add = |is_answer: bool| {
        move |bytes: &[u8]| {
            if let Some(job) = jobs.board().job(id) {
                match is_answer {
                    true => job.view.answer.add(bytes, |_| {}),
                    false => {
                        let view = &mut job.view;
                        view.progress.add(bytes, |line| view.course.add(line));
                    }
                }
            }
        }
    };
    let output = async {
        tokio::join!(copy(progress, add(false)), copy(answer, add(true)));
    };
    tokio::pin!(output);
    let mut tick = interval(TICK);
    let mut has_output = true;
    let ended = loop {
        tokio::select! {
            status = child.wait() => break status,
            () = &mut output, if has_output => has_output = false,
            _ = tick.tick() => jobs.change(id, |_| {}),
            () = stopped(jobs, id, token) => {
                let ending = end(jobs, id, &mut child, token);
                tokio::pin!(ending);
                // A command that ends still writes, and would wait for room in its pipes.
                break loop {
                    tokio::select! {
                        status = &mut ending => break status,
                        () = &mut output, if has_output => has_output = false,
                    }
                };
            }
        }
    };
    if has_output {
        // Programs that the command left behind may hold its output open.
        timeout(REST_MAX, output).await.ok();
    }
    end_of(ended)
}

/// Waits until the command is to be stopped.
async fn stopped(jobs: &Jobs, id: u64, token: &Token) {
    while !jobs.is_stopping(id) {
        tokio::select! {
            () = jobs.wake.notified() => {}
            () = token.cancelled() => return,
        }
    }
}

/// Ends a command in order, and kills it if that takes too long. What it leaves then is ended by its guardian.
async fn end(jobs: &Jobs, id: u64, child: &mut Child, token: &Token) -> io::Result<ExitStatus> {
    let process = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(process) = process.and_then(Pid::from_raw) {
        kill_process(process, Signal::TERM).ok();
    }
    let overdue = end_deadline(token);
    tokio::pin!(overdue);
    let mut tick = interval(TICK);
    loop {
        tokio::select! {
            status = child.wait() => return status,
            _ = tick.tick() => jobs.change(id, |_| {}),
            () = &mut overdue => {
                child.start_kill()?;
                return child.wait().await;
            }
        }
    }
}

/// Waits as long as a command that was stopped may take to end.
async fn end_deadline(token: &Token) {
    tokio::select! {
        () = sleep(STOP_MAX) => {}
        () = async { token.cancelled().await; sleep(END_MAX).await } => {}
    }
}

fn end_of(ended: io::Result<ExitStatus>) -> JobEnd {
    use std::os::unix::process::ExitStatusExt as _;
    match ended {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => JobEnd::Exited(code),
            (None, signal) => JobEnd::Killed(signal.unwrap_or(0)),
        },
        Err(error) => JobEnd::NotStarted(error.to_string()),
    }
}

/// Passes all bytes of `source` on.
async fn copy(source: Option<impl AsyncRead + Unpin>, mut add: impl FnMut(&[u8])) {
    let Some(mut source) = source else {
        return;
    };
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(length @ 1..) = source.read(&mut buffer).await {
        add(&buffer[..length]);
    }
}

#[cfg(test)]
mod tests {
    use stillwell_scope::{Place, Scope};
    use stillwell_units::Nanos;

    use super::*;
    use crate::server::WebServer;

    /// Runs shell scripts in place of the program until all have ended. Calls `on_change` after each
    /// change of one.
    fn conduct(
        scripts: &[&str],
        on_change: impl Fn(&Jobs) + Send + 'static,
    ) -> Vec<super::super::JobView> {
        conduct_into("0/none", scripts, on_change)
    }

    /// The same with the folder of results at `place` below the one of this crate.
    fn conduct_into(
        place: &str,
        scripts: &[&str],
        on_change: impl Fn(&Jobs) + Send + 'static,
    ) -> Vec<super::super::JobView> {
        let jobs = std::sync::Arc::new(Jobs::default());
        let submit = |script: &&str| {
            let words = vec!["-c".to_owned(), (*script).to_owned()];
            let place = PlaceBelow::parse(place).unwrap();
            jobs.submit(words, place).unwrap()
        };
        let submitted: Vec<u64> = scripts.iter().map(submit).collect();
        let mut scope = Scope::new(&Token::new());
        let shared = std::sync::Arc::clone(&jobs);
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let roots = ResultRoots::new(vec![env!("CARGO_MANIFEST_DIR").into()]);
        scope
            .worker(Place::default(), "jobs", move |token| async move {
                let done = async {
                    for id in submitted {
                        let mut events = shared.watch(id).unwrap();
                        while !shared.view(id).is_none_or(|view| view.state.has_ended()) {
                            events.recv().await;
                            on_change(&shared);
                        }
                    }
                };
                tokio::select! {
                    () = run_jobs(&shared, Path::new("/bin/sh"), &roots, &token) => {}
                    () = done => {}
                }
                sender.send(()).ok();
                Ok(())
            })
            .unwrap();
        receiver.recv_timeout(Duration::from_secs(60)).unwrap();
        scope.close(Nanos::from_secs(5));
        jobs.views()
    }

    #[test]
    fn commands_run_in_order_and_keep_their_output_apart() {
        let views = conduct(
            &[
                "echo answer; echo progress >&2; exit 3",
                "echo \"$1$NO_COLOR\"",
                "kill -9 $$",
            ],
            |_| {},
        );
        let first = &views[2];
        assert_eq!(first.answer.text(), "answer\n");
        assert_eq!(first.progress.text(), "progress\n");
        assert!(matches!(
            first.state,
            JobState::Ended {
                end: JobEnd::Exited(3),
                ..
            }
        ));
        assert_eq!(views[1].answer.text(), "1\n");
        assert!(matches!(
            views[0].state,
            JobState::Ended {
                end: JobEnd::Killed(9),
                ..
            }
        ));
    }

    #[test]
    fn a_command_has_results_if_files_are_in_its_folder() {
        for (place, has_results) in [("0/src", true), ("0/none", false)] {
            let views = conduct_into(place, &["exit 4"], |_| {});
            assert_eq!(views[0].has_results, has_results, "{place}");
        }
    }

    #[test]
    fn lines_with_figures_are_no_messages() {
        let script = "echo start >&2
            echo \"progress: {\\\"seconds\\\": 1, \\\"series\\\": \\\"$STILLWELL_PROGRESS\\\", \\\"rate\\\": 5}\" >&2";
        let views = conduct(&[script], |_| {});
        assert_eq!(views[0].progress.text(), "start\n");
        let [(series, points)] = views[0].course.seconds.as_slice() else {
            panic!("{:?}", views[0].course);
        };
        assert_eq!((series.as_str(), points.len()), ("json", 1));
    }

    #[test]
    fn a_command_that_is_stopped_ends_in_order() {
        let script =
            "trap 'kill $!; echo ended; exit 143' TERM; tail -f /dev/null & echo started; wait";
        let views = conduct(&[script], |jobs| {
            // The shell has set its trap by then.
            if jobs.views()[0].answer.text().contains("started") {
                jobs.stop(1);
            }
        });
        assert!(matches!(
            views[0].state,
            JobState::Ended {
                end: JobEnd::Exited(143),
                ..
            }
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_end_of_the_server_a_load_has_time_to_save_its_results() {
        let token = Token::new();
        token.cancel();
        // Maximum time of a load after a signal, as in crate `run`.
        let load = Duration::from_secs(7);
        let server = WebServer::CLOSE_MAX.as_duration() - REST_MAX;
        for (limit, has_ended) in [(load, false), (server, true)] {
            let ended = timeout(limit, end_deadline(&token)).await;
            assert_eq!(ended.is_ok(), has_ended, "{limit:?}");
        }
    }

    #[test]
    fn a_program_that_holds_the_output_open_does_not_hold_the_command() {
        // It ends with this test.
        let views = conduct(&["tail -f /dev/null --pid=$PPID & echo done"], |_| {});
        assert_eq!(views[0].answer.text(), "done\n");
    }

    #[test]
    fn a_program_that_is_missing_is_an_end() {
        let command = command(
            &PathBuf::from("/nonexistent/stillwell"),
            Path::new("/"),
            &[],
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let end = runtime.block_on(run(&Jobs::default(), 1, command, &Token::new()));
        assert!(matches!(end, JobEnd::NotStarted(_)));
    }
}
