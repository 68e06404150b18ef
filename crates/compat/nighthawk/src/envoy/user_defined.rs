//! Nighthawk's plugins that look at answers.

use stillwell_plan::load::AnswerHeadersPlan;
use stillwell_text::{Keys, Node, Reader, code};

use super::common::{check_type, named, required};

const LOG_HEADERS: &str = "nighthawk.log_response_headers_plugin";

/// Counts answers, and fails on request: Nighthawk's plugin for tests.
pub(crate) const FAKE: &str = "nighthawk.fake_user_defined_output";

/// A plugin that looks at answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OutputPlugin {
    /// Logs headers.
    LogHeaders(AnswerHeadersPlan),
    /// Counts answers.
    Fake(FakePlugin),
}

/// Options of the plugin that counts answers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FakePlugin {
    /// Number of heads of answers before the first failure on one.
    pub headers_until_failure: Option<u32>,
    /// Number of bodies before the first failure on one.
    pub data_until_failure: Option<u32>,
    /// True if the output of a worker fails.
    pub fails_per_worker: bool,
    /// True if the output of all workers fails.
    pub fails_global: bool,
}

/// Reads one of Nighthawk's plugins.
pub(super) fn read(reader: &Reader, node: &Node) -> Option<OutputPlugin> {
    let what = "user-defined output plugin";
    let (name, config) = named(reader, node, what, (&[LOG_HEADERS, FAKE], &[]))?;
    let config = required(reader, node, config)?;
    if name == FAKE {
        return read_fake(reader, config).map(OutputPlugin::Fake);
    }
    let keys = ["@type", "log_headers_with_name", "logging_mode"];
    let map = reader.map(config, &Keys::new("log of headers", &keys))?;
    check_type(reader, &map, &["LogResponseHeadersConfig"]);
    let modes = [
        ("LM_LOG_ALL_RESPONSES", false),
        ("LM_SKIP_200_LEVEL_RESPONSES", true),
        ("1", false),
        ("2", true),
    ];
    let mode = map.required("logging_mode");
    let names = map.read_or("log_headers_with_name", Vec::new(), |node| {
        read_names(reader, node)
    })?;
    Some(OutputPlugin::LogHeaders(AnswerHeadersPlan {
        names,
        passes_over_2xx: reader.word(mode?, "logging mode", &modes)?,
    }))
}

fn read_fake(reader: &Reader, node: &Node) -> Option<FakePlugin> {
    let keys = [
        "@type",
        "fail_headers",
        "header_failure_countdown",
        "fail_data",
        "data_failure_countdown",
        "fail_per_worker_output",
        "fail_global_output",
    ];
    let map = reader.map(node, &Keys::new("fake output", &keys))?;
    check_type(reader, &map, &["FakeUserDefinedOutputConfig"]);
    let is_set = |key| map.read_or(key, false, |node| reader.boolean(node));
    let countdown = |key| map.read_or(key, 0, |node| reader.whole(node, 0, u32::MAX));
    let (headers, header_count) = (is_set(keys[1])?, countdown(keys[2])?);
    let (data, data_count) = (is_set(keys[3])?, countdown(keys[4])?);
    Some(FakePlugin {
        headers_until_failure: headers.then_some(header_count),
        data_until_failure: data.then_some(data_count),
        fails_per_worker: is_set(keys[5])?,
        fails_global: is_set(keys[6])?,
    })
}

fn read_names(reader: &Reader, node: &Node) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for item in reader.list(node)? {
        let name = reader.text(item)?.to_ascii_lowercase();
        let message = match name.as_str() {
            "" => "the name of the header is empty".to_owned(),
            _ if names.contains(&name) => format!("`{name}` is named twice"),
            _ => {
                names.push(name);
                continue;
            }
        };
        reader.report(reader.error(code::BAD_VALUE, item.span, message));
        return None;
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envoy::EnvoyMessage;

    fn read(text: &str) -> Result<OutputPlugin, String> {
        let message = EnvoyMessage::parse("--user-defined-plugin-config", text);
        let read = message.and_then(|message| message.output_plugin());
        read.map_err(|diagnostics| diagnostics.to_string())
    }

    fn log(config: &str) -> Result<OutputPlugin, String> {
        let of = "type.googleapis.com/nighthawk.LogResponseHeadersConfig";
        read(&format!(
            r#"{{name:"{LOG_HEADERS}",typed_config:{{"@type":"{of}",{config}}}}}"#
        ))
    }

    #[test]
    fn a_log_of_headers_is_read() {
        for (config, names, passes_over_2xx) in [
            ("logging_mode:LM_LOG_ALL_RESPONSES", vec![], false),
            (
                r#"loggingMode:"LM_SKIP_200_LEVEL_RESPONSES",logHeadersWithName:["Date","x-a"]"#,
                vec!["date", "x-a"],
                true,
            ),
            ("logging_mode:2,log_headers_with_name:[]", vec![], true),
        ] {
            let names = names.into_iter().map(str::to_owned).collect();
            let plan = AnswerHeadersPlan {
                names,
                passes_over_2xx,
            };
            assert_eq!(log(config), Ok(OutputPlugin::LogHeaders(plan)), "{config}");
        }
    }

    #[test]
    fn a_plugin_for_tests_counts_and_fails_on_request() {
        let fake = |config: &str| {
            let of = "type.googleapis.com/nighthawk.FakeUserDefinedOutputConfig";
            read(&format!(
                r#"{{name:"{FAKE}",typed_config:{{"@type":"{of}"{config}}}}}"#
            ))
        };
        assert_eq!(fake(""), Ok(OutputPlugin::Fake(FakePlugin::default())));
        let expected = FakePlugin {
            headers_until_failure: Some(9),
            data_until_failure: Some(0),
            fails_per_worker: true,
            fails_global: false,
        };
        let config = ",fail_headers:true,header_failure_countdown:9,failData:true,fail_per_worker_output:true";
        assert_eq!(fake(config), Ok(OutputPlugin::Fake(expected)));
        assert!(fake(",fail:true").is_err());
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (config, expected) in [
            ("logging_mode:LM_UNKNOWN", "unknown logging mode"),
            ("logging_mode:0", "LM_LOG_ALL_RESPONSES"),
            ("log_headers_with_name:[a]", "needs `logging_mode`"),
            (
                r#"logging_mode:1,log_headers_with_name:[a,"A"]"#,
                "`a` is named twice",
            ),
            (
                r#"logging_mode:1,log_headers_with_name:[""]"#,
                "the name of the header is empty",
            ),
            ("logging_mod:1", "did you mean `logging_mode`?"),
        ] {
            let error = log(config).unwrap_err();
            assert!(error.contains(expected), "{expected}:\n{error}");
        }
        for (text, expected) in [
            (
                format!("{{name:{LOG_HEADERS}}}"),
                "`typed_config` is missing",
            ),
            ("{name:mine,typed_config:{}}".to_owned(), "`mine`"),
            ("{}".to_owned(), "needs `name`"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(expected), "{expected}:\n{error}");
        }
    }
}
