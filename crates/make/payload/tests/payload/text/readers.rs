//! Strict readers, written from the specifications and not from the writers.
//! Each gives the text of every event in which its stamp would travel.

use serde_json::Value;
use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{BulkAction, CefHeader, GelfEnd, HecEncoding};

type Texts = Vec<String>;

/// Reads a block.
pub(super) fn read(format: &PayloadFormat, block: &[u8]) -> Result<Texts, String> {
    let text = std::str::from_utf8(block).map_err(|error| error.to_string())?;
    match format {
        PayloadFormat::Syslog3164 => lines(text, syslog3164),
        PayloadFormat::SplunkHec {
            encoding: HecEncoding::Json,
        } => lines(text, hec_json),
        PayloadFormat::SplunkHec { .. } => lines(text, hec_text),
        PayloadFormat::Loki(_) => loki(text),
        PayloadFormat::Elasticsearch(plan) => bulk(text, plan.action, &plan.index),
        PayloadFormat::Influx(_) => lines(text, influx),
        PayloadFormat::Gelf { end } => gelf(text, *end),
        PayloadFormat::Cef { header } => lines(text, |line| cef(line, *header)),
        PayloadFormat::TemplatedJson(_) => lines(text, |line| {
            let value = json(line)?;
            Ok(value["message"].as_str().ok_or("message")?.to_owned())
        }),
        _ => lines(text, |line| Ok(line.to_owned())),
    }
}

fn lines(text: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<Texts, String> {
    let text = text.strip_suffix('\n').ok_or("no line feed at the end")?;
    text.split('\n').map(read).collect()
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn text_of(value: &Value, field: &str) -> Result<String, String> {
    let text = value[field].as_str().ok_or(field)?;
    if text.is_empty() {
        return Err(format!("empty {field}"));
    }
    Ok(text.to_owned())
}

/// `<PRI>Mmm dd hh:mm:ss HOST`, and what follows the blank after it.
fn header3164(line: &str) -> Result<&str, String> {
    let wrong = || format!("header of {line}");
    let (priority, rest) = line
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'))
        .ok_or_else(wrong)?;
    let is_priority = priority.parse::<u8>().is_ok_and(|value| value < 192)
        && (priority == "0" || !priority.starts_with('0'));
    let (time, rest) = rest.split_at_checked(15).ok_or_else(wrong)?;
    let shape: String = time
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let is_time = months.contains(&&time[..3])
        && (shape[3..] == *" 00 00:00:00" || shape[3..] == *"  0 00:00:00")
        && !time[4..].starts_with('0');
    let (host, rest) = rest
        .strip_prefix(' ')
        .and_then(|rest| rest.split_once(' '))
        .ok_or_else(wrong)?;
    let is_host = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_priority && is_time && is_host {
        Ok(rest)
    } else {
        Err(wrong())
    }
}

fn syslog3164(line: &str) -> Result<String, String> {
    let rest = header3164(line)?;
    let (tag, content) = rest.split_once(": ").ok_or("no tag")?;
    let (name, process) = tag.split_once('[').ok_or("no process")?;
    let is_tag = (1..=32).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && process
            .strip_suffix(']')
            .is_some_and(|number| number.parse::<u32>().is_ok());
    if !is_tag || content.is_empty() || line.len() > 1024 || !is_visible(line) {
        return Err(format!("message {line}"));
    }
    Ok(content.to_owned())
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn attributes(value: &Value) -> Result<(), String> {
    let object = value.as_object().ok_or("attrs")?;
    let names = [
        "systemid",
        "stage",
        "type",
        "c2cService",
        "c2cPartition",
        "c2cStage",
        "c2cContainerType",
        "aws_account",
    ];
    if object.len() != names.len() {
        return Err(format!("{} attributes", object.len()));
    }
    names
        .iter()
        .try_for_each(|name| text_of(value, name).map(drop))
}

fn hec_json(line: &str) -> Result<String, String> {
    let value = json(line)?;
    let event = &value["event"];
    attributes(&event["attrs"])?;
    for time in [&event["timestamp"], &value["time"]] {
        let is_time = time
            .as_f64()
            .is_some_and(|time| (1.6e9..2.0e9).contains(&time));
        is_time.then_some(()).ok_or("time")?;
    }
    text_of(&value, "host")?;
    text_of(&value, "index")?;
    if value.as_object().is_none_or(|object| object.len() != 4) {
        return Err("more fields".to_owned());
    }
    text_of(event, "message")
}

fn hec_text(line: &str) -> Result<String, String> {
    let (time, rest) = line.split_once(' ').ok_or("no time")?;
    time.parse::<f64>().map_err(|error| error.to_string())?;
    let start = rest.find(" {").ok_or("no attributes")?;
    attributes(&json(&rest[start + 1..])?)?;
    Ok(rest[..start].to_owned())
}

fn loki(text: &str) -> Result<Texts, String> {
    let value = json(text)?;
    let streams = value["streams"].as_array().ok_or("streams")?;
    let mut texts = Vec::new();
    for stream in streams {
        let labels = stream["stream"].as_object().ok_or("labels")?;
        let are_labels = !labels.is_empty() && labels.values().all(Value::is_string);
        let values = stream["values"]
            .as_array()
            .filter(|values| !values.is_empty());
        for entry in values.filter(|_| are_labels).ok_or("values")? {
            let [time, line] = entry.as_array().ok_or("entry")?.as_slice() else {
                return Err("entry".to_owned());
            };
            let time = time.as_str().ok_or("time")?;
            let is_time = time.len() == 19 && time.parse::<u64>().is_ok();
            let line = line.as_str().filter(|line| is_time && !line.is_empty());
            texts.push(line.ok_or("line")?.to_owned());
        }
    }
    Ok(texts)
}

fn bulk(text: &str, action: BulkAction, index: &str) -> Result<Texts, String> {
    let all: Texts = lines(text, |line| Ok(line.to_owned()))?;
    let pairs = all.chunks(2).map(|pair| {
        let [head, record] = pair else {
            return Err("an action without a record".to_owned());
        };
        let (name, has_identity) = match action {
            BulkAction::Create => ("create", false),
            BulkAction::Index => ("index", true),
        };
        let head = json(head)?;
        let meta = &head[name];
        let is_head = head.as_object().is_some_and(|object| object.len() == 1)
            && meta["_index"] == *index
            && meta["_id"].is_string() == has_identity;
        let record = json(record)?;
        let is_record = record["@timestamp"]
            .as_str()
            .is_some_and(|time| time.len() == 24)
            && record["log"]["level"].is_string()
            && record["host"]["name"].is_string()
            && record["process"]["pid"].is_u64()
            && record["event"]["duration"].is_u64();
        if !is_head || !is_record {
            return Err(format!("{head} {record}"));
        }
        text_of(&record, "message")
    });
    pairs.collect()
}

/// Without escapes, which no value of ours needs.
fn influx(line: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        !name.is_empty() && name.bytes().all(is_allowed)
    };
    let wrong = || format!("point {line}");
    let (series, rest) = line.split_once(' ').ok_or_else(wrong)?;
    let (fields, time) = rest.rsplit_once(' ').ok_or_else(wrong)?;
    let mut tags = series.split(',');
    let is_measurement = tags.next().is_some_and(is_name);
    let tags: Option<Vec<(&str, &str)>> = tags.map(|tag| tag.split_once('=')).collect();
    let tags = tags.ok_or_else(wrong)?;
    let are_sorted = tags.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let are_tags = tags
        .iter()
        .all(|(key, value)| is_name(key) && is_name(value));
    let is_time = time.len() == 19 && time.parse::<i64>().is_ok();
    let are_fields = fields.split(',').all(|field| {
        let Some((key, value)) = field.split_once('=') else {
            return false;
        };
        let is_text = value.starts_with('"') && value.ends_with('"') && value.len() > 1;
        let is_number = match value.strip_suffix('i') {
            Some(whole) => whole.parse::<i64>().is_ok(),
            None => value.parse::<f64>().is_ok(),
        };
        is_name(key) && (is_text || is_number)
    });
    if is_measurement && are_sorted && are_tags && is_time && are_fields {
        Ok(fields.to_owned())
    } else {
        Err(wrong())
    }
}

fn gelf(text: &str, end: GelfEnd) -> Result<Texts, String> {
    let messages = match end {
        GelfEnd::Null => text
            .strip_suffix('\0')
            .ok_or("no end")?
            .split('\0')
            .collect(),
        GelfEnd::Newline => text
            .strip_suffix('\n')
            .ok_or("no end")?
            .split('\n')
            .collect(),
        GelfEnd::Nothing => vec![text],
    };
    let read = messages.into_iter().map(|message| {
        let value = json(message)?;
        let fields = value.as_object().ok_or("no object")?;
        let known = [
            "version",
            "host",
            "short_message",
            "full_message",
            "timestamp",
            "level",
        ];
        let are_fields = fields.iter().all(|(name, value)| {
            known.contains(&name.as_str())
                || (name.starts_with('_')
                    && name != "_id"
                    && (value.is_string() || value.is_number()))
        });
        let is_message = value["version"] == "1.1"
            && value["level"].as_u64().is_some_and(|level| level < 8)
            && value["timestamp"].as_f64().is_some();
        if !are_fields || !is_message {
            return Err(format!("message {message}"));
        }
        text_of(&value, "host")?;
        text_of(&value, "short_message")
    });
    read.collect()
}

fn cef(line: &str, header: CefHeader) -> Result<String, String> {
    let wrong = || format!("record {line}");
    let record = match header {
        CefHeader::Syslog => header3164(line)?,
        CefHeader::Nothing => line,
    };
    let parts: Vec<&str> = record.splitn(8, '|').collect();
    let [
        version,
        vendor,
        product,
        _,
        signature,
        name,
        severity,
        extension,
    ] = parts[..]
    else {
        return Err(wrong());
    };
    let is_header = version == "CEF:0"
        && [vendor, product, signature, name]
            .iter()
            .all(|part| !part.is_empty())
        && severity.parse::<u8>().is_ok_and(|severity| severity <= 10);
    // A key is the word before an unescaped equals sign.
    let pieces: Vec<&str> = extension.split('=').collect();
    let keys = pieces[..pieces.len() - 1]
        .iter()
        .map(|piece| piece.rsplit(' ').next());
    let keys: Option<Vec<&str>> = keys.collect();
    let known = [
        "rt", "src", "spt", "dst", "dpt", "proto", "act", "suser", "in", "request", "msg",
    ];
    let message = pieces.last().filter(|message| !message.is_empty());
    if !is_header || keys.is_none_or(|keys| keys != known) || extension.contains('\\') {
        return Err(wrong());
    }
    message
        .map(|message| (*message).to_owned())
        .ok_or_else(wrong)
}

/// A reader that takes anything would prove nothing.
#[test]
fn readers_refuse_what_is_wrong() {
    let syslog = "<34>Oct  1 22:14:15 host app[12]: text\n";
    let format = PayloadFormat::Syslog3164;
    assert_eq!(
        read(&format, syslog.as_bytes()),
        Ok(vec!["text".to_owned()])
    );
    for (from, to) in [
        ("<34>", "<192>"),
        ("<34>", "<034>"),
        ("Oct", "Okt"),
        ("  1 ", " 01 "),
        ("host", "host.example"),
        ("[12]", ""),
        (": text", ":"),
        ("\n", ""),
    ] {
        let bad = syslog.replacen(from, to, 1);
        assert!(read(&format, bad.as_bytes()).is_err(), "{bad}");
    }
    let point = "cpu,a=b,c=d idle=1.5,n=3i 1612325106789000000";
    assert!(influx(point).is_ok());
    for (from, to) in [
        ("a=b,c=d", "c=d,a=b"),
        ("a=b", "a=b c"),
        ("3i", "3.5i"),
        ("1.5", "x"),
        ("1612325106789000000", "now"),
        ("cpu", ""),
    ] {
        let bad = point.replacen(from, to, 1);
        assert!(influx(&bad).is_err(), "{bad}");
    }
    let record = "CEF:0|a|b|1|2|name|3|rt=1 src=1 spt=1 dst=1 dpt=1 proto=T act=a suser=u in=1 request=/ msg=m";
    assert!(cef(record, CefHeader::Nothing).is_ok());
    assert!(cef(record, CefHeader::Syslog).is_err());
    for (from, to) in [
        ("|3|", "|11|"),
        ("msg=m", "msg=m k=v"),
        ("CEF:0", "CEF"),
        ("|b|", "||"),
    ] {
        let bad = record.replacen(from, to, 1);
        assert!(cef(&bad, CefHeader::Nothing).is_err(), "{bad}");
    }
    assert!(gelf("{\"version\":\"1.1\"}\0", GelfEnd::Null).is_err());
    assert!(loki("{\"streams\":[{\"stream\":{},\"values\":[]}]}").is_err());
    assert!(bulk("{\"create\":{\"_index\":\"a\"}}\n", BulkAction::Create, "a").is_err());
}
