//! Strict readers, written from the specifications and not from the writers.

use serde_json::Value;

/// A syslog message by RFC 5424, section 6.
pub(crate) struct Syslog<'t> {
    pub(crate) priority: &'t str,
    pub(crate) timestamp: &'t str,
    pub(crate) hostname: &'t str,
    pub(crate) application: &'t str,
    pub(crate) structured: &'t str,
    pub(crate) message: &'t str,
}

/// Reads one message and the line feed that ends it.
pub(crate) fn syslog5424(line: &str) -> Result<Syslog<'_>, String> {
    let text = line.strip_suffix('\n').ok_or("no line feed")?;
    let text = text.strip_prefix('<').ok_or("no priority")?;
    let (priority, text) = text.split_once('>').ok_or("priority has no end")?;
    number(priority, 0, 191)?;
    let (version, text) = token(text)?;
    if version != "1" {
        return Err(format!("version {version}"));
    }
    let (timestamp, text) = token(text)?;
    rfc3339(timestamp)?;
    let (hostname, text) = printable(text, 255)?;
    let (application, text) = printable(text, 48)?;
    let (process, text) = printable(text, 128)?;
    number(process, 1, 1 << 22)?;
    let (message_id, text) = printable(text, 32)?;
    let digits = message_id.strip_prefix("ID").ok_or("message id")?;
    if digits.len() != 3 {
        return Err(format!("message id {message_id}"));
    }
    let structured_len = structured_data(text)?;
    let (structured, text) = text.split_at(structured_len);
    let message = text.strip_prefix(' ').ok_or("no message")?;
    text_line(message)?;
    Ok(Syslog {
        priority,
        timestamp,
        hostname,
        application,
        structured,
        message,
    })
}

/// The length of `-` or of one or more `[id name="value" ...]`.
fn structured_data(text: &str) -> Result<usize, String> {
    if text.starts_with('-') {
        return Ok(1);
    }
    let mut rest = text;
    while let Some(element) = rest.strip_prefix('[') {
        let id_end = element.find([' ', ']']).ok_or("element has no end")?;
        structured_name(&element[..id_end])?;
        rest = &element[id_end..];
        while let Some(parameter) = rest.strip_prefix(' ') {
            let (name, value) = parameter.split_once("=\"").ok_or("no value")?;
            structured_name(name)?;
            let (value, after) = value.split_once('"').ok_or("value has no end")?;
            if value.contains(['\\', ']']) {
                return Err(format!("unescaped value {value}"));
            }
            rest = after;
        }
        rest = rest.strip_prefix(']').ok_or("element is not closed")?;
    }
    match text.len() - rest.len() {
        0 => Err("no structured data".to_owned()),
        len => Ok(len),
    }
}

fn structured_name(name: &str) -> Result<(), String> {
    let is_valid = (1..=32).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"'));
    is_valid
        .then_some(())
        .ok_or_else(|| format!("name {name:?}"))
}

/// A line of an Apache common log: `%h %l %u %t "%r" %>s %b`.
pub(crate) struct Apache<'t> {
    pub(crate) target: &'t str,
}

pub(crate) fn apache_common(line: &str) -> Result<Apache<'_>, String> {
    let text = line.strip_suffix('\n').ok_or("no line feed")?;
    let (host, text) = token(text)?;
    host.parse::<std::net::Ipv4Addr>()
        .map_err(|_| format!("host {host}"))?;
    let (identity, text) = token(text)?;
    if identity != "-" {
        return Err(format!("identity {identity}"));
    }
    let (_user, text) = printable(text, 32)?;
    let text = text.strip_prefix('[').ok_or("no time")?;
    let (time, text) = text.split_once("] \"").ok_or("time has no end")?;
    common_log_time(time)?;
    let (request, text) = text.split_once("\" ").ok_or("request has no end")?;
    let (method, request) = token(request)?;
    if !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(format!("method {method}"));
    }
    let (target, protocol) = printable(request, 8192)?;
    if !target.starts_with('/') || target.contains('"') {
        return Err(format!("target {target}"));
    }
    if !["HTTP/1.0", "HTTP/1.1", "HTTP/2.0"].contains(&protocol) {
        return Err(format!("protocol {protocol}"));
    }
    let (status, size) = token(text)?;
    number(status, 100, 599)?;
    number(size, 0, u64::MAX)?;
    Ok(Apache { target })
}

/// `10/Oct/2000:13:55:36 +0000`
fn common_log_time(time: &str) -> Result<(), String> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let wrong = || format!("time {time}");
    let parts: Vec<&str> = time.split(['/', ':', ' ']).collect();
    let [day, month, year, hour, minute, second, zone] = parts[..] else {
        return Err(wrong());
    };
    number_of(day, 2, 1, 31)?;
    number_of(year, 4, 2021, 2034)?;
    number_of(hour, 2, 0, 23)?;
    number_of(minute, 2, 0, 59)?;
    number_of(second, 2, 0, 59)?;
    let is_month = month.len() == 3 && MONTHS.find(month).is_some_and(|at| at % 3 == 0);
    (is_month && zone == "+0000")
        .then_some(())
        .ok_or_else(wrong)
}

/// `2003-10-11T22:14:15.003Z`
fn rfc3339(time: &str) -> Result<(), String> {
    let wrong = || format!("time {time}");
    let shape: String = time
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    if shape != "0000-00-00T00:00:00.000Z" {
        return Err(wrong());
    }
    number_of(&time[0..4], 4, 2021, 2034)?;
    let month = number_of(&time[5..7], 2, 1, 12)?;
    let days = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    number_of(
        &time[8..10],
        2,
        1,
        days[usize::try_from(month - 1).unwrap()],
    )?;
    number_of(&time[11..13], 2, 0, 23)?;
    number_of(&time[14..16], 2, 0, 59)?;
    number_of(&time[17..19], 2, 0, 59)?;
    Ok(())
}

/// One object of `{id, name, seed, byte_parade}` on a line of its own.
pub(crate) fn json(line: &str) -> Result<(), String> {
    let text = line.strip_suffix('\n').ok_or("no line feed")?;
    text_line(text)?;
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let object = value.as_object().ok_or("no object")?;
    let name = value["name"].as_str().ok_or("name")?;
    value["id"].as_u64().ok_or("id")?;
    value["seed"].as_u64().ok_or("seed")?;
    let parade = value["byte_parade"].as_array().ok_or("byte_parade")?;
    let are_bytes = parade
        .iter()
        .all(|entry| entry.as_u64().is_some_and(|byte| byte < 256));
    let is_valid = object.len() == 4 && !name.is_empty() && !parade.is_empty() && are_bytes;
    is_valid
        .then_some(())
        .ok_or_else(|| format!("object {text}"))
}

/// A body for Datadog's log intake; gives the number of its logs.
pub(crate) fn datadog_log(body: &[u8]) -> Result<usize, String> {
    const TEXTS: [&str; 6] = [
        "message", "status", "hostname", "service", "ddsource", "ddtags",
    ];
    let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let logs = value.as_array().ok_or("no array")?;
    for log in logs {
        let object = log.as_object().ok_or("no object")?;
        for field in TEXTS {
            let text = log[field].as_str().ok_or(field)?;
            if text.is_empty() {
                return Err(format!("empty {field}"));
            }
        }
        let time = log["timestamp"].as_u64().ok_or("timestamp")?;
        let tags = log["ddtags"].as_str().ok_or("ddtags")?;
        let are_tags = tags.split(',').all(|tag| tag.contains(':'));
        let is_time = (1_609_459_200_000..2_000_000_000_000).contains(&time);
        if object.len() != 7 || !are_tags || !is_time {
            return Err(format!("log {log}"));
        }
    }
    Ok(logs.len())
}

/// The text called `field` in the JSON object `text`.
pub(crate) fn json_string(text: &str, field: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap();
    value[field].as_str().unwrap().to_owned()
}

/// The text before the next space, and the text after it.
fn token(text: &str) -> Result<(&str, &str), String> {
    let parts = text.split_once(' ').ok_or("text ends early")?;
    Ok(parts)
}

/// A token of 1 to `most` visible characters.
fn printable(text: &str, most: usize) -> Result<(&str, &str), String> {
    let (token, rest) = token(text)?;
    let is_valid =
        (1..=most).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    is_valid
        .then_some((token, rest))
        .ok_or_else(|| format!("token {token:?}"))
}

/// One line of visible text, not empty.
fn text_line(text: &str) -> Result<(), String> {
    let is_valid = !text.is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    is_valid
        .then_some(())
        .ok_or_else(|| format!("text {text:?}"))
}

fn number_of(text: &str, digits: usize, least: u64, most: u64) -> Result<u64, String> {
    if text.len() != digits || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("number {text}"));
    }
    let value = text.parse().map_err(|_| format!("number {text}"))?;
    (least..=most)
        .contains(&value)
        .then_some(value)
        .ok_or_else(|| format!("number {text}"))
}

/// A number without leading zeros.
fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("leading zero in {text}"));
    }
    number_of(text, text.len(), least, most)
}

/// A reader that takes anything would prove nothing.
#[test]
fn readers_refuse_what_is_wrong() {
    const GOOD: &str =
        "<34>1 2024-02-03T04:05:06.789Z host app 12 ID123 [a@1 b=\"c\"][d@1 e=\"f\"] text\n";
    assert!(syslog5424(GOOD).is_ok());
    for (from, to) in [
        ("<34>", "<192>"),
        ("<34>", "<034>"),
        (">1 ", ">2 "),
        ("02-03", "13-03"),
        ("06.789Z", "06.789"),
        ("host app", "host  app"),
        ("ID123", "ID12"),
        ("[a@1", "[a=1"),
        ("\"c\"]", "\"c]\"]"),
        ("\"f\"]", "\"f\""),
        ("text", ""),
        ("\n", ""),
        ("text", "te\nxt"),
    ] {
        let bad = GOOD.replacen(from, to, 1);
        assert!(syslog5424(&bad).is_err(), "{bad}");
    }
    const LINE: &str = "1.2.3.4 - ann [03/Feb/2024:04:05:06 +0000] \"GET /a HTTP/1.1\" 200 17\n";
    assert!(apache_common(LINE).is_ok());
    for (from, to) in [
        ("1.2.3.4", "1.2.3.256"),
        ("Feb", "ebM"),
        ("04:05", "24:05"),
        ("GET", "get"),
        ("/a", "a"),
        ("1.1\"", "1.1"),
        ("200", "99"),
        ("17", "017"),
    ] {
        let bad = LINE.replacen(from, to, 1);
        assert!(apache_common(&bad).is_err(), "{bad}");
    }
    assert!(json("{\"id\":1,\"name\":\"a\",\"seed\":1,\"byte_parade\":[256]}\n").is_err());
    assert!(datadog_log(b"[{\"message\":\"a\"}]").is_err());
}
