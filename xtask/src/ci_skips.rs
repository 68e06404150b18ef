//! Finds the tests that skipped themselves.
//!
//! A test that lacks a program prints `SKIPPED: <test>: <program> is not
//! installed` and passes. That is right on a laptop and wrong in CI.

const MARK: &str = "SKIPPED:";

/// The distinct notes of skipped tests in a test log, each from its mark on, in the order of the log.
pub(crate) fn skipped_tests(log: &str) -> Vec<&str> {
    let mut skipped = Vec::new();
    for line in log.lines() {
        let Some(start) = line.find(MARK) else {
            continue;
        };
        let note = line[start..].trim_end();
        if !skipped.contains(&note) {
            skipped.push(note);
        }
    }
    skipped
}

#[cfg(test)]
mod tests {
    use super::skipped_tests;

    #[test]
    fn a_log_without_the_mark_has_no_skips() {
        let log = "test a ... ok\ntest result: ok. 1 passed; 0 failed; 1 ignored\nskipped: no\n";
        assert!(skipped_tests(log).is_empty());
    }

    #[test]
    fn every_skip_is_listed_once() {
        let log = "test relay ... SKIPPED: relay: nginx is not installed\n\
                   SKIPPED: syslog: rsyslogd is not installed\r\n\
                   SKIPPED: relay: nginx is not installed\n";
        assert_eq!(
            skipped_tests(log),
            [
                "SKIPPED: relay: nginx is not installed",
                "SKIPPED: syslog: rsyslogd is not installed"
            ]
        );
    }
}
