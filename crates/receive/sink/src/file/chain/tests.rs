use std::io::Write as _;

use proptest::prelude::*;

use super::*;

/// A folder with `out.log`, and the numbered ones that it became.
struct Log {
    folder: tempfile::TempDir,
    rotations: u32,
}

impl Log {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            rotations: 0,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("out.log")
    }

    fn write(&self, text: &str) {
        let mut options = fs::OpenOptions::new();
        let file = options.append(true).create(true).open(self.path());
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn rotate(&mut self) {
        if !self.path().exists() {
            return;
        }
        let name = |number: u32| self.folder.path().join(format!("out.log.{number}"));
        for number in (1..=self.rotations).rev() {
            fs::rename(name(number), name(number + 1)).unwrap();
        }
        fs::rename(self.path(), name(1)).unwrap();
        self.rotations += 1;
    }
}

/// Reads all that is there, `room` bytes at a time.
fn drain(chain: &mut Chain, room: usize) -> String {
    let (mut text, mut buffer) = (Vec::new(), vec![0; room]);
    loop {
        chain.look().unwrap();
        match chain.read(&mut buffer).unwrap() {
            Took::Bytes(bytes) => text.extend_from_slice(&buffer[..bytes]),
            Took::End => {}
            Took::Nothing => return String::from_utf8(text).unwrap(),
        }
    }
}

#[test]
fn two_rotations_during_a_backlog_lose_no_file() {
    let mut log = Log::new();
    log.write("before ");
    let mut chain = Chain::of(&log.path());
    log.write("first ");
    chain.look().unwrap();
    let mut buffer = [0; 2];
    assert_eq!(chain.read(&mut buffer).unwrap(), Took::Bytes(2));
    log.rotate();
    log.write("middle ");
    log.rotate();
    log.write("last");
    assert_eq!(drain(&mut chain, 3), "rst middle last");
    assert_eq!(chain.unread().unwrap(), 0);
}

#[test]
fn what_was_there_before_is_forgotten_after_the_first_open() {
    let log = Log::new();
    log.write("before");
    let mut chain = Chain::of(&log.path());
    assert_eq!(drain(&mut chain, 8), "");
    // A file that has got the same inode again, as may be, is a new one.
    fs::remove_file(log.path()).unwrap();
    log.write("another, longer one");
    assert_eq!(drain(&mut chain, 8), "another, longer one");
    fs::remove_file(log.path()).unwrap();
    log.write("third");
    assert_eq!(drain(&mut chain, 8), "third");
}

#[test]
fn a_file_is_not_left_before_its_writer_has_moved_on() {
    let mut log = Log::new();
    let mut chain = Chain::of(&log.path());
    log.write("a");
    assert_eq!(drain(&mut chain, 8), "a");
    let mut writer = fs::OpenOptions::new()
        .append(true)
        .open(log.path())
        .unwrap();
    log.rotate();
    log.write("");
    assert_eq!(drain(&mut chain, 8), "");
    writer.write_all(b"b").unwrap();
    assert_eq!(drain(&mut chain, 8), "b");
    log.write("c");
    assert_eq!(drain(&mut chain, 8), "c");
}

#[test]
fn files_beyond_those_that_are_held_are_found_by_their_names() {
    let mut log = Log::new();
    let mut chain = Chain::of(&log.path());
    let all: Vec<String> = (0..3 * OPEN_MAX)
        .map(|number| format!("{number} "))
        .collect();
    for text in &all {
        log.write(text);
        log.rotate();
    }
    assert_eq!(drain(&mut chain, 100), all.concat());
}

#[derive(Clone, Debug)]
enum Step {
    Write(String),
    Rotate,
    /// Reads so many times, a few bytes each.
    Read(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => "[a-z]{1,9}".prop_map(Step::Write),
        2 => Just(Step::Rotate),
        3 => (0_usize..6).prop_map(Step::Read),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn for_all_rotations_every_byte_comes_once_and_in_order(
        before in prop::option::of("[a-z]{0,5}"),
        steps in steps(),
    ) {
        let mut log = Log::new();
        if let Some(text) = before {
            log.write(&text);
        }
        let mut chain = Chain::of(&log.path());
        let (mut written, mut read) = (String::new(), String::new());
        let mut buffer = [0; 4];
        for step in steps {
            match step {
                Step::Write(text) => {
                    log.write(&text);
                    written.push_str(&text);
                }
                Step::Rotate => log.rotate(),
                Step::Read(times) => for _ in 0..times {
                    chain.look().unwrap();
                    if let Took::Bytes(bytes) = chain.read(&mut buffer).unwrap() {
                        read.push_str(str::from_utf8(&buffer[..bytes]).unwrap());
                    }
                },
            }
        }
        read.push_str(&drain(&mut chain, 5));
        prop_assert_eq!(read, written);
    }
}
