//! Logs of the target.

use std::io;

use stillwell_target::TargetLog;
use stillwell_units::ByteSize;

use crate::shell::Shell;

impl Shell {
    /// Keeps the target's logs below their largest size while it runs.
    pub(super) fn watch_logs(&mut self) -> io::Result<()> {
        let logs = self.stage.as_ref().and_then(|stage| stage.logs.clone());
        let place = self.place();
        logs.map_or(Ok(()), |logs| {
            TargetLog::watch(logs.to_vec(), &mut self.scope, place)
        })
    }

    /// Warns about each log that was cut.
    pub(super) fn finish_logs(&mut self) {
        let logs = self.stage.as_ref().and_then(|stage| stage.logs.clone());
        for log in logs.into_iter().flatten() {
            let name = log.path().file_name().unwrap_or_default();
            let name = name.to_string_lossy();
            match log.finish() {
                Ok(0) => {}
                Ok(dropped) => {
                    let dropped = ByteSize::new(dropped);
                    self.warn(format!(
                        "output of the target was dropped: {dropped} from the middle of {name}; writing it \
                         cost the target time; log less, or raise log_limit"
                    ));
                }
                Err(error) => self.warn(format!(
                    "{name} could not be shortened to log_limit: {error}"
                )),
            }
        }
    }
}
