//! Nighthawk's plugins that look at answers.

use stillwell_plan::load::AnswerHeadersPlan;
use stillwell_text::{Keys, Node, Reader, code};

use super::common::{check_type, named, required};

const LOG_HEADERS: &str = "nighthawk.log_response_headers_plugin";

/// Is in Nighthawk's test client alone.
const FAKE: &str = "nighthawk.fake_user_defined_output";

/// Reads the plugin that logs headers: the only one that Nighthawk's client has.
pub(super) fn read(reader: &Reader, node: &Node) -> Option<AnswerHeadersPlan> {
    let what = "user-defined output plugin";
    if let Some(name) = node.entry("name")
        && reader.text(name)? == FAKE
    {
        let help = "Nighthawk has it only for its tests, and its client refuses it too";
        reader.not_built(name.span, what, FAKE, Some(help));
        return None;
    }
    let (_, config) = named(reader, node, what, &[LOG_HEADERS])?;
    let config = required(reader, node, config)?;
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
    let names = match map.take("log_headers_with_name") {
        Some(node) => read_names(reader, node)?,
        None => Vec::new(),
    };
    Some(AnswerHeadersPlan {
        names,
        passes_over_2xx: reader.word(mode?, "logging mode", &modes)?,
    })
}

fn read_names(reader: &Reader, node: &Node) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for item in reader.list(node)? {
        let name = reader.text(item)?.to_ascii_lowercase();
        let message = match name.as_str() {
            "" => "a header has a name".to_owned(),
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

    fn read(text: &str) -> Result<AnswerHeadersPlan, String> {
        let message = EnvoyMessage::parse("--user-defined-plugin-config", text);
        let read = message.and_then(|message| message.answer_headers());
        read.map_err(|diagnostics| diagnostics.to_string())
    }

    fn log(config: &str) -> Result<AnswerHeadersPlan, String> {
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
            assert_eq!(log(config), Ok(plan), "{config}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (config, says) in [
            ("logging_mode:LM_UNKNOWN", "unknown logging mode"),
            ("logging_mode:0", "LM_LOG_ALL_RESPONSES"),
            ("log_headers_with_name:[a]", "needs `logging_mode`"),
            (
                r#"logging_mode:1,log_headers_with_name:[a,"A"]"#,
                "`a` is named twice",
            ),
            (
                r#"logging_mode:1,log_headers_with_name:[""]"#,
                "a header has a name",
            ),
            ("logging_mod:1", "did you mean `logging_mode`?"),
        ] {
            let error = log(config).unwrap_err();
            assert!(error.contains(says), "{says}:\n{error}");
        }
        for (text, says) in [
            (
                format!("{{name:{FAKE},typed_config:{{}}}}"),
                "only for its tests",
            ),
            (
                format!("{{name:{LOG_HEADERS}}}"),
                "`typed_config` is missing",
            ),
            ("{name:mine,typed_config:{}}".to_owned(), "`mine`"),
            ("{}".to_owned(), "needs `name`"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(says), "{says}:\n{error}");
        }
    }
}
