//! Explanations of the codes and words that reports and JSON have.
//!
//! A test compares each table with its enum.

/// Codes of [`RunWarning`](crate::RunWarning): a run with one of them does not count.
pub const RUN_WARNINGS: &[(&str, &str)] = &[
    (
        "target_delayed",
        "Other programs had the target's CPU for more than 10 % of the time in which the target \
         needed one (`target_run_delay`). Throughput, latency, loss and duplicates are \
         unreliable; CPU time and memory remain valid. Stop other programs, or give target and \
         generators different CPUs.",
    ),
    (
        "worker_delayed",
        "Other programs had the CPU of a generator's or sink's thread for more than 5 % of the \
         measured time (`worker_run_delay`). Throughput, latency, loss and duplicates are \
         unreliable; CPU time and memory remain valid. Stop other programs.",
    ),
    (
        "cpu_steal",
        "The hypervisor took more than 5 % of the host's CPU time. Throughput and latency are \
         unreliable, above 10 % CPU time as well; memory remains valid. Use another machine or \
         another time of day.",
    ),
    (
        "generator_late",
        "For more than 5 % of the time, a generator worker had something to send, was not blocked \
         and did not run, and 1 % of the sends were more than 10 ms late. Throughput, \
         latency, loss and duplicates are unreliable. Free a CPU for it, use more `workers`, or \
         lower the rate.",
    ),
    (
        "generator_limit",
        "At full speed the generator was busy for more than 90 % of the time and blocked for less than 5 %: \
         it was the limit, not the target. CPU and memory of the target remain valid. Use more \
         `workers` and `connections`, larger blocks, or a fixed rate.",
    ),
    (
        "sink_saturated",
        "A sink worker ran, or waited for a CPU, for more than 90 % of the time: the sink was \
         the limit. Give it more `workers`, or lower the rate.",
    ),
    (
        "rate_not_reached",
        "A generator sent less than 99 % of the requested rate, and the target did not cause it. \
         The message names the cause: no CPU, workers that were always busy, or connections that \
         failed.",
    ),
    (
        "target_died",
        "The target ended during the run. The message shows its exit status and its last line \
         of output; target.stdout.log and target.stderr.log in the folder of the run have all of it. \
         To end it on purpose, use a step of the timeline.",
    ),
    (
        "target_restarted",
        "Only in results of older versions. The CPU time of the target decreased, so another process replaced \
         it. Start the program itself, not a supervisor that restarts it.",
    ),
    (
        "target_stopped",
        "A signal stopped all processes of the target, or its cgroup was frozen, while it was \
         measured. Let it run, and repeat the run.",
    ),
    (
        "out_of_memory",
        "The kernel killed processes of the target because memory ran out. Raise `target: {memory: \
         …}`, or treat it as the result.",
    ),
    (
        "not_completed",
        "The run did not go through all phases. The message says which one did not end, and why: a \
         port that is taken, a target that was never ready, a deadline, or a full disk.",
    ),
    (
        "part_failed",
        "A generator, a sink, an observer or a step of the timeline failed. The message shows its \
         error.",
    ),
    (
        "samples_missing",
        "No sample was taken for more than 2.5 sample periods: the machine was too busy, or \
         suspended. Repeat the run.",
    ),
    (
        "clock_stepped",
        "The wall clock and the monotonic clock differ by more than 100 ms over the measured \
         phase, because time synchronisation stepped the clock. Wait until it is stable.",
    ),
    (
        "clocks_uncertain",
        "Clocks of several machines were compared with an error of more than 100 ms, or drifted \
         by as much, so latencies between machines are unknown. Use a store that answers faster, \
         or synchronise the clocks.",
    ),
    (
        "environment_differs",
        "The host was not the same for both runs of a pair, for example another CPU count or \
         memory limit. Do not change limits while an experiment runs.",
    ),
    (
        "bodies_unread",
        "A sink received request bodies that it could not decode, so their events are not \
         counted. Make the target send bodies without content coding, or with gzip, deflate, zstd or \
         Snappy.",
    ),
    (
        "datagrams_dropped",
        "The kernel dropped datagrams because a sink was too slow. Loss and duplicates are \
         unknown, and, if it dropped some in the measured phase, event latency and output \
         throughput. Give the sink more `workers`, or lower the rate.",
    ),
];

/// Codes of [`RunNote`](crate::RunNote): the run counts.
pub const RUN_NOTES: &[(&str, &str)] = &[
    (
        "light_load",
        "The target used less than 25 % of a core. At so low a load, going to sleep and waking up is usually most \
         of the CPU time, which can hide a change. A measured change is valid for this rate. Raise the rate.",
    ),
    (
        "no_success",
        "No request succeeded: every response had a status of 400 or above. Check the path, the method \
         and the server's log.",
    ),
    (
        "target_saturated",
        "The target did not accept the requested rate. Lower the rate, unless this is what you \
         test.",
    ),
    (
        "receiver_saturated",
        "There is no target, and the receiver did not accept the requested rate. Lower the rate.",
    ),
    (
        "late_wakeups",
        "A generator often sent late, each time by little, because the kernel resumed its thread late. If \
         latency matters, free a CPU; otherwise do nothing.",
    ),
    (
        "coarse_blocks",
        "One block is more than 10 % of what a run sends. Use a smaller `block`, or a longer \
         `measure`.",
    ),
    (
        "sends_failed",
        "More than 0.1 % of the sends failed. Look at the outcome and the target's log.",
    ),
    (
        "scrape_never_answered",
        "The target's metrics page did not answer. Check the URL in `observe`.",
    ),
    (
        "foreign_cpu",
        "Other programs used more than 10 % of the host's CPU time; the three that used most are \
         named. Stop them if intervals are too wide.",
    ),
    (
        "relaxed",
        "`validity: off`: the numbers count although they exceed a limit.",
    ),
    (
        "strict",
        "`validity: strict` halved the limits of steal, delay and lateness.",
    ),
    (
        "pressure",
        "Programs of the host waited for CPU, memory or storage for more than 20 % of the time (the kernel \
         calls this pressure, in `/proc/pressure`). Free that resource.",
    ),
    (
        "throttled",
        "The target reached its CPU quota. Raise `cpu.max` of its cgroup, or accept it.",
    ),
    (
        "packets_dropped",
        "The network interfaces of the run dropped packets. Lower the rate.",
    ),
    (
        "host_cpus_unknown",
        "The number of CPUs is not in the capture, so steal and foreign CPU were not checked.",
    ),
    (
        "not_steady",
        "A rate rose or fell by more than 5 % during the measured phase. Use a longer `warmup` \
         or `measure`.",
    ),
    (
        "latency_grew",
        "The median latency rose by more than 20 % during the measured phase, as if a queue \
         filled. Use a lower rate.",
    ),
    (
        "warmup_too_short",
        "The run was still warming up when it was measured. Use a longer `warmup`, or `warmup: \
         auto`.",
    ),
    (
        "instructions_not_counted",
        "The target's instructions could not be counted; the message says why. A goal that needs them is skipped if \
         this machine cannot count any, and the next goal is the primary one. Everything else is measured as usual.",
    ),
    (
        "user_instructions",
        "Instructions of the target in user mode were counted, and those in the kernel were not. Set the sysctl \
         kernel.perf_event_paranoid to 1 or less, or give Stillwell CAP_PERFMON, to count both.",
    ),
    (
        "counter_shared",
        "The CPU's counter of instructions ran for less than 99 % of the target's CPU time, because other profilers \
         used it or the target also ran on CPUs of another kind. `instructions_per_event` has no number for this \
         run. End those profilers, or give the target CPUs of one kind.",
    ),
    (
        "points_skipped",
        "A sink did not record some metric points: too many series, no type, or no finite number. \
         The message says which. Send fewer series, or series with a type.",
    ),
    (
        "series_left_out",
        "There were more series than a summary keeps (2,000). Observe fewer series.",
    ),
    (
        "not_isolated",
        "A network namespace or cgroup was unavailable. Run as root, or allow user namespaces.",
    ),
    ("message", "Free text from a part of the run."),
];

/// Codes of [`LoadWarning`](crate::LoadWarning).
pub const LOAD_WARNINGS: &[(&str, &str)] = &[
    (
        "generator_saturated",
        "Unreliable, in a load with a rate. A worker ran for more than 90 % of the time. Responses \
         may have waited for the generator, so latency may be too high. Use more workers \
         (`--threads`) or a lower rate.",
    ),
    (
        "generator_limit",
        "Warning, in a load without a rate. A worker was busy more than 90 % of the time, so the \
         target may be faster than the result says. Use more workers (`--threads`) and more \
         connections.",
    ),
    (
        "generator_late",
        "Unreliable. 1 % of the requests left more than 1 ms, and more than a tenth of the \
         median latency, after they were due although a connection was free. Latency from the \
         intended time includes this. Free a CPU for the generator, or lower the rate.",
    ),
    (
        "sends_bunched",
        "Warning, in a load with a rate. 1 % of the requests left more than 200 µs after they \
         were due, so gaps between requests were shorter than in the schedule. A rate limiter \
         with a small burst refuses such requests. Free a CPU for the generator, or lower the \
         rate.",
    ),
    (
        "cpu_starvation",
        "Unreliable. A worker waited for a CPU for more than 5 % of the time. Stop other \
         programs, or give generator and target different CPUs (`--cpus`).",
    ),
    (
        "cpu_steal",
        "Warning. The hypervisor gave more than 2 % of the host's CPU time to other virtual \
         machines. Repeat the load at another time, or on a dedicated machine.",
    ),
    (
        "rate_not_reached",
        "Warning. Less than 99 % of the requested rate was sent. If the generator was too slow, \
         the message says so and the exit code is 4. Otherwise connections waited for the target: \
         use more connections (`--connections`) or a lower rate.",
    ),
    (
        "source_slow",
        "Unreliable. A worker waited for the request source more than 1 % of the time, and \
         latency from the intended time includes that. Use a faster source or a lower rate.",
    ),
    (
        "source_failed",
        "Warning. The request source ended its stream with an error. Requests that arrived \
         before were sent.",
    ),
    (
        "all_warmup",
        "Unreliable. The load ended before its warm-up was over. Use a shorter `--warmup` or \
         more requests.",
    ),
    (
        "no_request",
        "Unreliable. No request was due, or none could be started. Increase the duration or the \
         rate.",
    ),
    (
        "no_answer",
        "Unreliable. No request was answered; the message shows the first error. Check address, \
         port, protocol (`--protocol`), TLS and the target's log.",
    ),
    (
        "malformed",
        "Warning. Some responses were not valid HTTP; the message shows the first error. A server \
         that speaks another version of HTTP than `--protocol` is the usual cause.",
    ),
    (
        "generator_missing",
        "Unreliable. A generator of a load on several machines delivered no result, so the sum is too low. \
         Look at `stillwell cluster logs`, and repeat the load.",
    ),
    (
        "clock_drift",
        "Unreliable. The clock of a generator ran faster or slower than that of the controller, by more than \
         1,000 ppm (0.1 %), so its latencies and its rate are wrong by as much. Let its machine \
         follow a time server, and repeat the load.",
    ),
    (
        "export_failed",
        "Warning. A metrics or trace receiver did not get everything. The measurement itself is \
         complete.",
    ),
];

/// Words of [`Verdict`](crate::Verdict).
pub const VERDICTS: &[(&str, &str)] = &[
    (
        "invalid",
        "Too few valid pairs: the runs were disturbed, or failed. The numbers are shown, marked \
         `unreliable`, and have no verdict. The warnings name the causes.",
    ),
    (
        "regressed",
        "The change is for the worse: the whole interval is on that side, and the estimate \
         reaches the tolerance. It is reported after new pairs have confirmed it. The primary \
         goal makes the exit code 1.",
    ),
    (
        "improved",
        "The change is for the better: the whole interval is on that side, and the estimate \
         reaches the tolerance.",
    ),
    (
        "equivalent",
        "The whole interval lies within the tolerance on both sides: any change is smaller than \
         what matters.",
    ),
    (
        "different",
        "There is a change, but it is neither certainly within the tolerance nor probably beyond \
         it.",
    ),
    (
        "inconclusive",
        "The interval is too wide for a verdict. The report names the change that it could \
         detect, and the pairs that the tolerance needs. Run more pairs, longer runs, or use a \
         quieter machine.",
    ),
];

/// Words of [`Gate`](crate::Gate): what an experiment means for the exit code.
pub const GATES: &[(&str, &str)] = &[
    ("held", "Nothing blocks the change."),
    ("regressed", "The primary goal regressed: exit code 1."),
    (
        "check_failed",
        "A run broke a bound of `checks`, or did not measure it: exit code 1.",
    ),
    ("invalid", "The runs are unreliable: exit code 4."),
    (
        "inconclusive",
        "The runs are not decisive: exit code 0, or 4 with `--gate strict`.",
    ),
];

/// Words of [`StopReason`](crate::StopReason): why no more pairs were run.
pub const STOP_REASONS: &[(&str, &str)] = &[
    ("certain", "The verdict on the primary goal was certain."),
    ("last_look", "All pairs that were planned were used."),
    ("confirmed", "New pairs confirmed the change."),
    (
        "not_confirmed",
        "New pairs did not confirm the change that the first pairs showed.",
    ),
    (
        "unfit",
        "Too many pairs were discarded: the machine is too busy, or the target fails.",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::RunNote;

    /// Returns the texts behind `=> "` in `source`, from `begin` to the next function.
    fn names_in<'s>(source: &'s str, begin: &str) -> BTreeSet<&'s str> {
        let body = source.split_once(begin).unwrap().1;
        let body = body.split("\n    }\n").next().unwrap();
        let lines = body.lines().filter_map(|line| {
            let text = line.split_once("=> \"")?.1;
            Some(text.split_once('"')?.0)
        });
        lines.collect()
    }

    fn codes<'t>(table: &'t [(&'static str, &'static str)]) -> BTreeSet<&'t str> {
        table.iter().map(|(code, _)| *code).collect()
    }

    #[test]
    fn every_code_and_word_is_explained_once() {
        let cases = [
            (
                RUN_WARNINGS,
                include_str!("run_warning.rs"),
                "fn code(&self)",
            ),
            (
                LOAD_WARNINGS,
                include_str!("load/warning.rs"),
                "fn code(&self)",
            ),
            (VERDICTS, include_str!("rule.rs"), "const fn name"),
            (GATES, include_str!("gate.rs"), "const fn name"),
            (STOP_REASONS, include_str!("standing.rs"), "const fn name"),
        ];
        for (table, source, function) in cases {
            let names = names_in(source, function);
            assert!(names.len() > 4, "{names:?}");
            assert_eq!(codes(table), names);
            assert_eq!(codes(table).len(), table.len());
        }
    }

    #[test]
    fn every_note_is_explained_once() {
        // The error lists all of them.
        let error = serde_json::from_str::<RunNote>("\"unknown\"").unwrap_err();
        let error = error.to_string();
        let (_, names) = error.split_once("expected one of").unwrap();
        let names: BTreeSet<&str> = names.split('`').skip(1).step_by(2).collect();
        assert_eq!(codes(RUN_NOTES), names);
        assert_eq!(codes(RUN_NOTES).len(), RUN_NOTES.len());
    }
}
