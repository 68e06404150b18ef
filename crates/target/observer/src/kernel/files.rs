//! Kernel files about memory and control groups.

use std::collections::BTreeMap;

use crate::text;

/// Sizes of mappings that are recorded.
const MAPPED_FIELDS: [&str; 14] = [
    "Size",
    "Rss",
    "Pss",
    "Shared_Clean",
    "Shared_Dirty",
    "Private_Clean",
    "Private_Dirty",
    "Referenced",
    "Anonymous",
    "LazyFree",
    "AnonHugePages",
    "ShmemPmdMapped",
    "FilePmdMapped",
    "Locked",
];

/// The same fields of a whole process, which has no `Size`.
pub(super) const ROLLUP_FIELDS: &[&str] = MAPPED_FIELDS.split_at(1).1;

/// Largest number of paths with their own series; further mappings are summed.
const PATHNAMES_MAX: usize = 256;

/// Label of mappings without a path.
const ANONYMOUS: &str = "[anonymous]";
const OTHERS: &str = "[others]";

/// Splits a line such as `VmPeak:     12 kB` into name and value.
pub(super) fn field(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = std::str::from_utf8(&line[..colon]).ok()?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_plain = !name.is_empty() && name.bytes().all(is_name);
    is_plain.then(|| (name, &line[colon + 1..]))
}

/// The size behind `key`, in bytes.
pub(super) fn kilobytes(text: &[u8], key: &[u8]) -> Option<u64> {
    Some(text::scaled(text::value(text, key)?, 1024))
}

/// Sizes of mappings, in bytes, summed by what is mapped.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Mappings {
    pub(super) by_pathname: BTreeMap<String, BTreeMap<&'static str, u64>>,
}

impl Mappings {
    pub(super) fn read(text: &[u8]) -> Self {
        let mut all = Self::default();
        let mut pathname = None;
        for line in text::lines(text) {
            if let Some(path) = pathname_of(line) {
                let has_room = all.by_pathname.len() < PATHNAMES_MAX;
                let is_listed = has_room || all.by_pathname.contains_key(&path);
                pathname = Some(if is_listed { path } else { OTHERS.to_owned() });
            } else if let (Some(pathname), Some((name, rest))) = (&pathname, field(line))
                && let Some(field) = MAPPED_FIELDS.iter().find(|field| **field == name)
                && let Some(kilobytes) = text::number(rest)
            {
                let sizes = all.by_pathname.entry(pathname.clone()).or_default();
                let size = sizes.entry(field).or_default();
                *size = size.saturating_add(text::scaled(kilobytes, 1024));
            }
        }
        all
    }
}

/// Returns the mapped path from a mapping's first line: `START-END MODE OFFSET DEVICE INODE PATH`.
fn pathname_of(line: &[u8]) -> Option<String> {
    let mut words = line.splitn(2, |byte| *byte == b' ');
    let range = words.next()?;
    let is_range = range.contains(&b'-')
        && range
            .iter()
            .all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    if !is_range {
        return None;
    }
    // The path may contain blanks: it is everything behind the fifth word.
    let mut rest = line.trim_ascii();
    for _ in 0..5 {
        let end = rest
            .iter()
            .position(|byte| *byte == b' ')
            .unwrap_or(rest.len());
        rest = rest[end..].trim_ascii_start();
    }
    if rest.is_empty() {
        return Some(ANONYMOUS.to_owned());
    }
    Some(String::from_utf8_lossy(rest).into_owned())
}

/// One number of a control group's file.
#[derive(Debug, PartialEq)]
pub(super) struct GroupNumber<'t> {
    /// Keys that lead to the number within the file.
    pub(super) keys: Vec<&'t str>,
    /// The device of the number, if it has one.
    pub(super) device: Option<&'t str>,
    pub(super) value: f64,
}

/// Returns all numbers of a file: alone, behind a key, or as `KEY=NUMBER` behind a key or a device. Other
/// values, such as `max`, are skipped.
pub(super) fn cgroup_numbers(text: &[u8]) -> Vec<GroupNumber<'_>> {
    let Ok(text) = std::str::from_utf8(text) else {
        return Vec::new();
    };
    let mut numbers = Vec::new();
    let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [value] => numbers.extend(number(value).map(|value| GroupNumber {
                keys: Vec::new(),
                device: None,
                value,
            })),
            [key, pairs @ ..] if pairs.iter().all(|pair| pair.contains('=')) => {
                let (first, device) = if key.contains(':') {
                    (None, Some(*key))
                } else {
                    (Some(*key), None)
                };
                let pairs = pairs.iter().filter_map(|pair| pair.split_once('='));
                numbers.extend(pairs.filter_map(|(name, value)| {
                    Some(GroupNumber {
                        keys: first.into_iter().chain([name]).collect(),
                        device,
                        value: number(value)?,
                    })
                }));
            }
            [key, value] if number(key).is_none() => {
                numbers.extend(number(value).map(|value| GroupNumber {
                    keys: vec![key],
                    device: None,
                    value,
                }));
            }
            _ => {}
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMAPS: &[u8] = b"\
55d0-55d4 r--p 00000000 fe:00 1234                       /usr/bin/a program
Size:                 16 kB
Rss:                   8 kB
Private_Dirty:         4 kB
VmFlags: rd mr mw me
55d4-55d8 r-xp 00004000 fe:00 1234                       /usr/bin/a program
Size:                 16 kB
Rss:                   8 kB
7f00-7f10 rw-p 00000000 00:00 0
Size:                 64 kB
LazyFree:              0 kB
7ffc-7ffd rw-p 00000000 00:00 0                          [stack]
Size:                132 kB
";

    #[test]
    fn mappings_are_summed_by_what_is_mapped() {
        let read = Mappings::read(SMAPS).by_pathname;
        let size = |path: &str, field: &str| read[path][field];
        assert_eq!(read.len(), 3);
        assert_eq!(size("/usr/bin/a program", "Size"), 32 << 10);
        assert_eq!(size("/usr/bin/a program", "Private_Dirty"), 4 << 10);
        assert_eq!(size(ANONYMOUS, "Size"), 64 << 10);
        assert_eq!(size("[stack]", "Size"), 132 << 10);
    }

    #[test]
    fn paths_above_the_limit_are_summed() {
        let single =
            |number: usize| format!("{number:x}-f r--p 0 0:0 1 /lib/{number}\nSize: 4 kB\n");
        let text: String = (0..PATHNAMES_MAX + 9).map(single).collect();
        let read = Mappings::read(text.as_bytes()).by_pathname;
        assert_eq!(read.len(), PATHNAMES_MAX + 1);
        assert_eq!(read[OTHERS]["Size"], 9 * 4096);
    }

    #[test]
    fn every_shape_of_a_groups_file_is_read() {
        let numbers_of = |text: &str| {
            let numbers = cgroup_numbers(text.as_bytes()).into_iter();
            numbers
                .map(|single| {
                    format!(
                        "{}@{}={}",
                        single.keys.join("."),
                        single.device.unwrap_or(""),
                        single.value
                    )
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(numbers_of("4096\n"), ["@=4096"]);
        assert_eq!(numbers_of("max\n"), [""; 0]);
        assert_eq!(numbers_of("max 100000\n"), ["max@=100000"]);
        assert_eq!(numbers_of("200000 100000\n"), [""; 0]);
        assert_eq!(numbers_of("anon 1\nfile 2\n"), ["anon@=1", "file@=2"]);
        assert_eq!(
            numbers_of("some avg10=0.50 total=7\nfull avg10=0.00 total=0\n"),
            [
                "some.avg10@=0.5",
                "some.total@=7",
                "full.avg10@=0",
                "full.total@=0"
            ]
        );
        assert_eq!(
            numbers_of("254:0 rbytes=1 wbytes=2\n"),
            ["rbytes@254:0=1", "wbytes@254:0=2"]
        );
        assert_eq!(numbers_of("cpuset cpu io\n"), [""; 0]);
    }

    proptest! {
        #[test]
        fn for_all_bytes_nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Mappings::read(&bytes);
            cgroup_numbers(&bytes);
            field(&bytes);
        }
    }
}
