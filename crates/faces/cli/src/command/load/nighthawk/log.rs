//! Lines on standard error as Nighthawk writes them.

use stillwell_nighthawk::request::LogLevel;
use stillwell_scope::clock;
use stillwell_units::Nanos;

use crate::paint::Paint;

/// Writes messages of its level and above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    least: LogLevel,
}

impl Log {
    pub(super) const fn new(least: LogLevel) -> Self {
        Self { least }
    }

    pub(super) fn trace(self, text: &str) {
        self.print_message(LogLevel::Trace, 'T', text);
    }

    pub(super) fn info(self, text: &str) {
        self.print_message(LogLevel::Info, 'I', text);
    }

    pub(super) fn warn(self, text: &str) {
        self.print_message(LogLevel::Warn, 'W', text);
    }

    pub(super) fn error(self, text: &str) {
        self.print_message(LogLevel::Error, 'E', text);
    }

    fn print_message(self, level: LogLevel, letter: char, text: &str) {
        if level >= self.least {
            let (time, process) = (time_of_day(clock::wall()), std::process::id());
            Paint::print_message(&format!("[{time}][{process}][{letter}] {text}"));
        }
    }
}

/// The time of day in UTC, to the microsecond.
fn time_of_day(since_epoch: Nanos) -> String {
    let micros = since_epoch.as_u64() / 1000;
    let seconds = micros / 1_000_000;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!(
        "{hour:02}:{minute:02}:{second:02}.{:06}",
        micros % 1_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_day() {
        let at = Nanos::new(1_603_315_692_690_578_123);
        assert_eq!(time_of_day(at), "21:28:12.690578");
    }
}
