//! Tremor's programs, which are recognised and not run, and its codec.

use std::path::Path;

use stillwell_config::foreign::{ForeignFormat, UnreadableFile};

/// A file to write in place of a program.
const INSTEAD: &str = "\
write a bench.yaml with the keys of the connector's `config`, and the pipeline as a program:
  target: {command: [PROGRAM, ARGUMENT], ready: {tcp: \"127.0.0.1:9100\"}}
  in: tcp://127.0.0.1:9100
  out: tcp://127.0.0.1:9200
  source: in.json
  stop_after_secs: 10";

/// Programs of Tremor's.
#[derive(Clone, Copy, Debug)]
pub struct TremorPrograms;

impl ForeignFormat for TremorPrograms {
    fn name(&self) -> &'static str {
        "tremor"
    }

    fn line_codecs(&self) -> &'static [&'static str] {
        &["tremor"]
    }

    fn unreadable(&self, path: &Path, text: Option<&str>) -> Option<UnreadableFile> {
        is_program(path, text.unwrap_or_default()).then_some(UnreadableFile {
            what: "a program of Tremor's",
            help: INSTEAD,
        })
    }
}

fn is_program(path: &Path, text: &str) -> bool {
    let mut words = text.split_whitespace();
    let begins = (words.next(), words.next());
    path.to_string_lossy().ends_with(".troy") || begins == (Some("define"), Some("flow"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known() {
        assert!(is_program(Path::new("bench.troy"), ""));
        assert!(is_program(Path::new("bench"), "\ndefine flow main\nflow\n"));
        assert!(!is_program(Path::new("bench.yaml"), "source: in.json\n"));
    }
}
