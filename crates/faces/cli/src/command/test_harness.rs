//! Command lines of Vector's test harness of 2019, `bin/test` and `bin/compare`, as commands of
//! Stillwell. A link named `test-harness` takes them.

use std::path::Path;

use anyhow::{Context as _, bail};

/// The name of a link that takes these command lines.
pub(crate) const NAME: &str = "test-harness";

/// Its own help.
pub(crate) const USAGE: &str = "\
Runs a test of the folder `harness`, or compares its newest results

Usage: test-harness [test|compare] -t TEST [-c CONFIGURATION] [-s TARGET]

Options:
  -t, --test TEST                    Name of the test, such as tcp-to-tcp
  -c, --configuration CONFIGURATION  Configuration of the test, such as 2_cores
  -s, --subjects TARGET              Target to run; repeatable [default: all of the test]
  -h, --help                         Print help
";

/// Folder of results.
const RESULTS: &str = ".stillwell/results";

/// Endings of names of tests, which folders do not have.
const ENDINGS: [&str; 2] = ["_performance", "_correctness"];

/// Flags about machines and versions, which have no effect. These have a value.
const UNUSED: [&str; 5] = ["-v", "-u", "--version", "--user-id", "--vector-version"];

/// These have none.
const UNUSED_SWITCHES: [&str; 8] = [
    "-b",
    "-r",
    "-p",
    "--bootstrap-only",
    "--run-only",
    "--skip-terraform",
    "--percentages",
    "--repair",
];

/// Configurations that are tests of their own here.
const CONFIGURATIONS: [(&str, &str, &str); 2] = [
    ("file-to-tcp", "single_file", "file-to-tcp"),
    ("file-to-tcp", "multi_file", "files-to-tcp"),
];

/// Targets whose names have other marks here.
const TARGETS: [(&str, &str); 3] = [
    ("fluentbit", "fluent-bit"),
    ("splunk_heavy_forwarder", "splunk-heavy-forwarder"),
    ("splunk_universal_forwarder", "splunk-universal-forwarder"),
];

/// Tests that have a shorter name here.
const TESTS: [(&str, &str); 1] = [("docker-partial-events-merging", "partial-events-merging")];

/// Returns the command line of Stillwell that does the same, and remarks: flags without effect,
/// and too few CPUs. `folders` lists the results so far; this process may use `cpus`.
///
/// # Errors
/// Why there is none; the text is for the user.
pub(crate) fn translate(
    typed: &[String],
    folders: &[String],
    cpus: usize,
    exists: impl Fn(&Path) -> bool,
) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let (mut test, mut targets, mut remarks) = (None, Vec::new(), Vec::new());
    let mut configuration = None;
    let words = separated(typed);
    let mut words = words.iter();
    let mut compares = false;
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .with_context(|| format!("{word} needs a value"))
        };
        match word.as_str() {
            "test" => {}
            "compare" => compares = true,
            "-t" | "--test" => test = Some(value()?.as_str()),
            "-c" | "--configuration" => configuration = Some(value()?.as_str()),
            "-s" | "--subject" | "--subjects" => {
                add_targets(value()?, &mut targets, &mut remarks);
            }
            flag if UNUSED.contains(&flag) => {
                let value = value()?;
                remarks.push(format!("note: {flag} {value} has no effect"));
            }
            flag if UNUSED_SWITCHES.contains(&flag) => {
                remarks.push(format!("note: {flag} has no effect"));
            }
            other => bail!(
                "unknown word `{other}`: write test-harness [test|compare] -t TEST [-c CONFIGURATION] [-s TARGET]"
            ),
        }
    }
    let test = test.context("-t TEST is missing")?;
    let folder = folder_name(test, configuration);
    if compares {
        let suffix = format!("-{folder}");
        let mut results: Vec<&String> = folders
            .iter()
            .filter(|name| name.ends_with(&suffix))
            .collect();
        results.sort();
        let newest = results.last().with_context(|| {
            format!("there is no result of `{folder}` in {RESULTS}: run `{NAME} -t {test}` first")
        })?;
        let words = [
            "stillwell".to_owned(),
            "report".to_owned(),
            format!("{RESULTS}/{newest}"),
        ];
        return Ok((words.into(), remarks));
    }
    let places = [format!("harness/{folder}"), folder.clone(), test.to_owned()];
    // The name as it is typed has no configuration.
    let places = &places[..if configuration.is_some() { 2 } else { 3 }];
    let place = places.iter().find(|place| exists(Path::new(place)));
    let place = place.with_context(|| match configuration {
        None if exists(Path::new("harness")) => {
            format!("there is no test `{test}`: its folder would be harness/{folder}")
        }
        Some(name) => format!(
            "there is no folder harness/{folder} with configuration `{name}` of `{test}`"
        ),
        None => {
            format!("there is no folder harness/{folder}: run this in the folder that contains `harness`")
        }
    })?;
    remarks.extend(configuration.and_then(|name| fewer_cpus(name, cpus)));
    let mut words = vec!["stillwell".to_owned(), "run".to_owned(), place.clone()];
    if !targets.is_empty() {
        words.extend(["--targets".to_owned(), targets.join(",")]);
    }
    Ok((words, remarks))
}

/// Separates flags from values that are in the same word: `--test=NAME` and `-tNAME`.
fn separated(typed: &[String]) -> Vec<String> {
    let separate = |word: &String| {
        let short = ["-t", "-c", "-s"];
        let short = short
            .into_iter()
            .find(|flag| word.len() > 2 && word.starts_with(flag));
        match (word.split_once('='), short) {
            (Some((flag, value)), _) if flag.starts_with("--") => {
                vec![flag.to_owned(), value.to_owned()]
            }
            (_, Some(flag)) => vec![flag.to_owned(), word[2..].to_owned()],
            _ => vec![word.clone()],
        }
    };
    typed.iter().flat_map(separate).collect()
}

/// Adds targets that are separated by commas, each once. A version is none of a target here.
fn add_targets(typed: &str, targets: &mut Vec<String>, remarks: &mut Vec<String>) {
    for typed in typed.split(',') {
        let (name, version) = target_name(typed);
        if let Some(version) = version {
            remarks.push(format!("note: version {version} of {name} has no effect"));
        }
        if !targets.contains(&name) {
            targets.push(name);
        }
    }
}

/// The name of a target here, those of the harness as they are called here, and its version.
fn target_name(typed: &str) -> (String, Option<&str>) {
    let (name, version) = match typed.split_once('=') {
        Some((name, version)) => (name.trim(), Some(version.trim())),
        None => (typed.trim(), None),
    };
    let mut known = TARGETS.iter();
    let known = known.find(|(of_harness, _)| *of_harness == name);
    (
        known.map_or(name, |(_, name)| name).to_owned(),
        version.filter(|version| !version.is_empty()),
    )
}

/// Returns the names of results so far; none where there is no folder of them.
pub(crate) fn result_names() -> Vec<String> {
    let entries = std::fs::read_dir(RESULTS).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Returns the warning about configuration `N_cores`, if there are fewer than N CPUs.
fn fewer_cpus(configuration: &str, cpus: usize) -> Option<String> {
    let wanted: usize = configuration.strip_suffix("_cores")?.parse().ok()?;
    (wanted > cpus).then(|| {
        format!(
            "warning: `{configuration}` is for {wanted} CPUs, and this machine has {cpus}: each target may\n  \
             use all of them, together with generators and sinks; the report has a note"
        )
    })
}

/// The folder of a test: `disk_buffer_performance` is in `disk-buffer`, its configuration
/// `high_concurrency` in `disk-buffer-high-concurrency`.
fn folder_name(test: &str, configuration: Option<&str>) -> String {
    let mut names = ENDINGS.iter();
    let name = names.find_map(|ending| test.strip_suffix(ending));
    let folder = name.unwrap_or(test).replace('_', "-");
    let mut shorter = TESTS.iter();
    let shorter = shorter.find(|(of_harness, _)| *of_harness == folder);
    let folder = shorter.map_or(folder, |(_, name)| (*name).to_owned());
    let Some(configuration) = configuration.filter(|name| *name != "default") else {
        return folder;
    };
    let mut known = CONFIGURATIONS.iter();
    let known = known.find(|(test, name, _)| *test == folder && *name == configuration);
    match known {
        Some((_, _, folder)) => (*folder).to_owned(),
        None => format!("{folder}-{}", configuration.replace('_', "-")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str, folders: &[&str]) -> Result<String, String> {
        let typed: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let folders: Vec<String> = folders.iter().map(|name| (*name).to_owned()).collect();
        let known = [
            "disk-buffer",
            "files-to-tcp",
            "partial-events-merging",
            "tcp-to-tcp-16-cores",
            "tcp-to-tcp-high-concurrency",
        ];
        let known = known.map(|name| Path::new("harness").join(name));
        let exists =
            |path: &Path| path == Path::new("harness") || known.iter().any(|known| known == path);
        let translated = translate(&typed, &folders, 8, exists);
        let line =
            |(words, remarks): (Vec<String>, Vec<String>)| [words, remarks].concat().join(" ");
        translated.map(line).map_err(|error| error.to_string())
    }

    // compat: Vector's test harness | bin/test -c 16_cores | differs | with fewer CPUs it uses all, with a warning and a note
    #[test]
    fn a_configuration_for_more_cpus_runs_on_those_that_there_are() {
        let run = "stillwell run harness/tcp-to-tcp-16-cores";
        let warned = translated("-t tcp_to_tcp_performance -c 16_cores", &[]).unwrap();
        let warning = "warning: `16_cores` is for 16 CPUs, and this machine has 8: each";
        assert!(warned.starts_with(&format!("{run} {warning}")), "{warned}");
        assert_eq!(fewer_cpus("16_cores", 16), None);
        assert_eq!(fewer_cpus("high_concurrency", 1), None);
        let newest = translated(
            "compare -t tcp_to_tcp_performance -c 16_cores",
            &[
                "20200101T000000-tcp-to-tcp-16-cores",
                "20200102T000000-tcp-to-tcp",
            ],
        );
        let folder = ".stillwell/results/20200101T000000-tcp-to-tcp-16-cores";
        assert_eq!(newest.unwrap(), format!("stillwell report {folder}"));
    }

    // compat: Vector's test harness | bin/test -t, -s | works
    // compat: Vector's test harness | bin/compare -t | works
    // compat: Vector's test harness | bin/test -c, bin/compare -c | works
    // compat: Vector's test harness | -u, -v, -b, -r | differs | no effect: nothing runs on other machines
    #[test]
    fn command_lines_of_the_harness_run_its_folders_and_report_their_newest_result() {
        let results = [
            "20200102T000000-disk-buffer",
            "20200101T000000-disk-buffer",
            "20200103T000000-tcp",
        ];
        for (line, expected) in [
            (
                "-t disk_buffer_performance",
                "stillwell run harness/disk-buffer",
            ),
            (
                "test -t disk-buffer -s vector -s rsyslog -v 0.1",
                "stillwell run harness/disk-buffer --targets vector,rsyslog note: -v 0.1 has no effect",
            ),
            (
                "--test=docker_partial_events_merging_correctness --subjects vector=0.1.0,fluentbit",
                "stillwell run harness/partial-events-merging --targets vector,fluent-bit note: version 0.1.0 of vector has no effect",
            ),
            (
                "-t disk-buffer -s vector=0.1.0,vector",
                "stillwell run harness/disk-buffer --targets vector note: version 0.1.0 of vector has no effect",
            ),
            (
                "-tdisk-buffer -s splunk_heavy_forwarder,my_target",
                "stillwell run harness/disk-buffer --targets splunk-heavy-forwarder,my_target",
            ),
            (
                "-b -t disk_buffer_performance -c default",
                "stillwell run harness/disk-buffer note: -b has no effect",
            ),
            (
                "-t tcp_to_tcp_performance -c high_concurrency",
                "stillwell run harness/tcp-to-tcp-high-concurrency",
            ),
            (
                "-t file_to_tcp_performance -c multi_file",
                "stillwell run harness/files-to-tcp",
            ),
            (
                "compare -t disk_buffer_performance",
                "stillwell report .stillwell/results/20200102T000000-disk-buffer",
            ),
        ] {
            assert_eq!(
                translated(line, &results).as_deref(),
                Ok(expected),
                "{line}"
            );
        }
        for (line, expected) in [
            ("", "-t TEST is missing"),
            ("-t", "-t needs a value"),
            ("-t tcp_performance", "there is no test `tcp_performance`"),
            (
                "-t disk-buffer -c 16_cores",
                "configuration `16_cores` of `disk-buffer`",
            ),
            ("compare -t udp", "there is no result of `udp`"),
            ("-t a --what", "unknown word `--what`"),
        ] {
            let error = translated(line, &results).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
