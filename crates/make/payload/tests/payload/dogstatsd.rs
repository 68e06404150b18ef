use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use stillwell_payload::{BlockSet, BuildError, Seeds, SlotUse};
use stillwell_plan::payload::{Between, BlockShape, DogstatsdKinds, DogstatsdPlan};
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_units::{ByteSize, Seed};

use crate::{build, events, golden, plan, up_to};

/// A message as the published grammar has it.
#[derive(Debug)]
pub(crate) enum Message<'t> {
    Metric(Metric<'t>),
    Event { tags: Vec<&'t str> },
    ServiceCheck { name: &'t str },
}

#[derive(Debug)]
pub(crate) struct Metric<'t> {
    name: &'t str,
    values: Vec<&'t str>,
    kind: &'t str,
    rate: Option<f64>,
    tags: Vec<&'t str>,
    origins: Vec<&'t str>,
    time: Option<u64>,
}

impl Metric<'_> {
    /// The parts that make it another context for a reader that sorts tags.
    fn context(&self) -> String {
        let tags: BTreeSet<&str> = self.tags.iter().copied().collect();
        format!("{} {} {tags:?} {:?}", self.name, self.kind, self.origins)
    }
}

/// Reads one line, without its line feed.
pub(crate) fn read(line: &str) -> Result<Message<'_>, String> {
    let wrong = |what: &str| format!("{what} in {line:?}");
    if let Some(rest) = line.strip_prefix("_e{") {
        let (lengths, rest) = rest.split_once("}:").ok_or_else(|| wrong("no lengths"))?;
        let (title, text) = lengths.split_once(',').ok_or_else(|| wrong("one length"))?;
        let (title, text): (usize, usize) = (title.parse().unwrap(), text.parse().unwrap());
        let is_split = rest.as_bytes().get(title) == Some(&b'|');
        if title == 0 || text == 0 || !is_split || rest.len() < title + 1 + text {
            return Err(wrong("lengths"));
        }
        let rest = &rest[title + 1 + text..];
        let fields = fields(rest).ok_or_else(|| wrong("fields"))?;
        let mut tag_list = Vec::new();
        for field in fields {
            match field.split_at(1) {
                ("d", time) if time[1..].parse::<u64>().is_ok() => {}
                ("h", _) => {}
                ("p", priority) if [":normal", ":low"].contains(&priority) => {}
                ("t", kind) if [":error", ":warning", ":info", ":success"].contains(&kind) => {}
                ("#", list) => tag_list = tags(list)?,
                _ => return Err(wrong(field)),
            }
        }
        return Ok(Message::Event { tags: tag_list });
    }
    if let Some(rest) = line.strip_prefix("_sc|") {
        let (name, rest) = rest.split_once('|').ok_or_else(|| wrong("no status"))?;
        let status: u8 = rest[..1].parse().map_err(|_| wrong("status"))?;
        if name.is_empty() || status > 3 {
            return Err(wrong("name or status"));
        }
        let fields = fields(&rest[1..]).ok_or_else(|| wrong("fields"))?;
        let last = fields.len().saturating_sub(1);
        for (index, field) in fields.into_iter().enumerate() {
            match field.split_at(1) {
                ("d", time) if time[1..].parse::<u64>().is_ok() => {}
                ("h", _) => {}
                ("#", list) => drop(tags(list)?),
                ("m", _) if index == last => {}
                _ => return Err(wrong(field)),
            }
        }
        return Ok(Message::ServiceCheck { name });
    }
    metric(line).map(Message::Metric)
}

fn metric(line: &str) -> Result<Metric<'_>, String> {
    let wrong = |what: &str| format!("{what} in {line:?}");
    let (name, rest) = line.split_once(':').ok_or_else(|| wrong("no value"))?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_name) {
        return Err(wrong("name"));
    }
    let mut parts = rest.split('|');
    let values: Vec<&str> = parts.next().unwrap_or_default().split(':').collect();
    if values.iter().any(|value| value.parse::<f64>().is_err()) {
        return Err(wrong("value"));
    }
    let kind = parts.next().ok_or_else(|| wrong("no type"))?;
    if !["c", "g", "ms", "d", "s", "h"].contains(&kind) || (kind == "s" && values.len() > 1) {
        return Err(wrong("type"));
    }
    let mut metric = Metric {
        name,
        values,
        kind,
        rate: None,
        tags: Vec::new(),
        origins: Vec::new(),
        time: None,
    };
    // Each field at most once, in this order.
    let mut stage = 0;
    for part in parts {
        let now = match part.as_bytes() {
            [b'@', ..] => {
                metric.rate = part[1..].parse().ok();
                let is_rate = metric.rate.is_some_and(|rate| rate > 0.0 && rate <= 1.0);
                if !is_rate || ["g", "s"].contains(&kind) {
                    return Err(wrong("rate"));
                }
                1
            }
            [b'#', ..] => {
                metric.tags = tags(&part[1..])?;
                2
            }
            [b'c', b':', ..] => 3,
            [b'e', b':', ..] => 4,
            [b'c', b'a', b'r', b'd', b':', ..] => 5,
            [b'T', ..] if ["c", "g"].contains(&kind) => {
                metric.time = part[1..].parse().ok();
                6
            }
            _ => return Err(wrong(part)),
        };
        if now <= stage {
            return Err(wrong("order"));
        }
        if (3..=5).contains(&now) {
            metric.origins.push(part);
        }
        stage = now;
    }
    Ok(metric)
}

fn fields(rest: &str) -> Option<Vec<&str>> {
    if rest.is_empty() {
        return Some(Vec::new());
    }
    let fields: Vec<&str> = rest.strip_prefix('|')?.split('|').collect();
    fields
        .iter()
        .all(|field| !field.is_empty())
        .then_some(fields)
}

fn tags(list: &str) -> Result<Vec<&str>, String> {
    let tags: Vec<&str> = list.split(',').collect();
    let is_tag = |tag: &str| {
        let starts = tag.starts_with(|c: char| c.is_ascii_alphabetic());
        starts && !tag.ends_with(':') && !tag.contains(['|', '#', '@', '\n'])
    };
    match tags.iter().copied().all(is_tag) {
        true => Ok(tags),
        false => Err(format!("tags {list:?}")),
    }
}

fn small() -> DogstatsdPlan {
    DogstatsdPlan {
        contexts: Between::only(200),
        name_length: Between::new(3, 12),
        tag_length: Between::new(3, 12),
        tags_per_message: Between::new(0, 6),
        ..DogstatsdPlan::default()
    }
}

fn of(options: DogstatsdPlan, maximum: u64, cache: u64) -> PayloadPlan {
    plan(
        PayloadFormat::Dogstatsd(Box::new(options)),
        up_to(maximum),
        cache,
    )
}

/// The messages of a set, read.
fn messages(set: &BlockSet) -> Vec<Message<'_>> {
    let texts = events(set).into_iter().map(|event| {
        let text = std::str::from_utf8(event).unwrap();
        text.strip_suffix('\n').expect("a line")
    });
    texts.map(|text| read(text).unwrap()).collect()
}

fn metrics(set: &BlockSet) -> Vec<Metric<'_>> {
    let metrics = messages(set)
        .into_iter()
        .filter_map(|message| match message {
            Message::Metric(metric) => Some(metric),
            Message::Event { .. } | Message::ServiceCheck { .. } => None,
        });
    metrics.collect()
}

fn between(low: u16, width: std::ops::Range<u16>) -> impl Strategy<Value = Between<u16>> {
    (low..low + 30, width).prop_map(|(low, width)| Between::new(low, low + width))
}

fn any_options() -> impl Strategy<Value = DogstatsdPlan> {
    let lengths = (between(1, 0..60), between(1, 0..40), 0_u8..5, 0_u8..9);
    let lists = (0_usize..4, 0_usize..4, 0_usize..4);
    (1_u32..400, lengths, lists, 0.1_f64..=1.0, any::<[i64; 2]>()).prop_map(
        |(contexts, (name_length, tag_length, low, more), lists, unique_tag_ratio, range)| {
            let list = |kind: &str, count: usize| -> Vec<String> {
                (0..count)
                    .map(|number| format!("{kind}{number}-{{{{a-c}}}}"))
                    .collect()
            };
            let names = (0..lists.0)
                .map(|number| format!("name{number}.{{{{0-3}}}}"))
                .collect();
            let mut options = DogstatsdPlan {
                contexts: Between::only(contexts),
                name_length,
                tag_length,
                tags_per_message: Between::new(low, low + more),
                unique_tag_ratio,
                metric_names: names,
                tag_names: list("key", lists.1),
                tag_values: list("value", lists.2),
                ..DogstatsdPlan::default()
            };
            options.value.range = Between::new(range[0].min(range[1]), range[0].max(range[1]));
            options.timestamp.probability = 0.3;
            let most = options.context_room().unwrap().contexts();
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            options.contexts = Between::only(contexts.min(most));
            options
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For all options that can be satisfied: every message is valid, and as many distinct
    /// contexts as requested are sent, each before any is sent again.
    // compat: lading, payloads | dogstatsd | differs | contexts are as many as requested
    #[test]
    fn contexts_are_as_many_as_requested(
        options in any_options(),
        seed: u64,
        maximum in 2000_u64..70_000,
    ) {
        let wanted = usize::try_from(options.contexts.high).unwrap();
        let set = build(&of(options, maximum, 3 << 20), seed, SlotUse::None);
        let metrics = metrics(&set);
        prop_assert!(metrics.len() > 2 * wanted, "{} metrics", metrics.len());
        for pass in metrics.chunks(wanted).take(3) {
            let contexts: BTreeSet<String> = pass.iter().map(Metric::context).collect();
            prop_assert_eq!(contexts.len(), pass.len());
        }
        let all: BTreeSet<String> = metrics.iter().map(Metric::context).collect();
        prop_assert_eq!(all.len(), wanted);
    }

    /// For all workers of a generator: they send the same contexts, in another
    /// order.
    #[test]
    fn workers_share_contexts(seed: u64) {
        let plan = of(small(), 8192, 400_000);
        let common = Seed::from_number(seed);
        let sets = [0, 1].map(|index| {
            let seeds = Seeds { worker: common.derive("worker", index), ..common.into() };
            BlockSet::build(&plan, plan.cache, seeds, None).unwrap()
        });
        let [first, two] = sets.each_ref().map(|set| {
            metrics(set).iter().map(Metric::context).collect::<BTreeSet<_>>()
        });
        prop_assert_eq!(first.len(), 200);
        prop_assert_eq!(first, two);
        prop_assert_ne!(sets[0].block(0).bytes, sets[1].block(0).bytes);
    }
}

#[test]
fn the_requested_shares_are_sent() {
    let mut options = small();
    options.value.range = Between::new(-5, 5);
    options.value.float_probability = 0.25;
    options.sampling_range = Between::new(0.25, 0.5);
    options.timestamp.range = Between::new(1000, 2000);
    options.timestamp.probability = 0.5;
    options.cardinality = vec!["low".to_owned(), "high".to_owned()];
    let set = build(&of(options, 65_536, 4 << 20), 5, SlotUse::None);
    let mut kinds = BTreeMap::<&str, u32>::new();
    let (mut many, mut rated, mut timed, mut decimal, mut values) = (0, 0, 0, 0, 0_u32);
    let messages = messages(&set);
    let mut counts = [0_u32; 3];
    for message in &messages {
        let Message::Metric(metric) = message else {
            counts[if matches!(message, Message::Event { .. }) {
                1
            } else {
                2
            }] += 1;
            continue;
        };
        counts[0] += 1;
        *kinds.entry(metric.kind).or_default() += 1;
        many += u32::from(metric.values.len() > 1);
        if let Some(rate) = metric.rate {
            assert!((0.25..=0.5).contains(&rate));
            rated += 1;
        }
        if let Some(time) = metric.time {
            assert!((1000..=2000).contains(&time));
            timed += 1;
        }
        for value in &metric.values {
            assert!((-5.0..=5.0).contains(&value.parse::<f64>().unwrap()));
            decimal += u32::from(value.contains('.'));
            values += 1;
        }
        assert!((3..=12).contains(&metric.name.len()) && metric.tags.len() <= 6);
        assert!(metric.tags.iter().all(|tag| (3..=12).contains(&tag.len())));
        assert!(metric.values.len() == 1 || (2..=32).contains(&metric.values.len()));
    }
    let share = |part: u32, whole: u32| f64::from(part) / f64::from(whole);
    let near = |share: f64, wanted: f64| (share - wanted).abs() < 0.02;
    let all = u32::try_from(messages.len()).unwrap();
    assert!(near(share(counts[0], all), 0.8) && near(share(counts[1], all), 0.1));
    assert!(near(share(many, counts[0]), 0.08));
    // The largest value and the least have no decimals, and sets never have.
    assert!(share(decimal, values) > 0.18 && share(decimal, values) < 0.25);
    let rateable = counts[0] - kinds["g"] - kinds.get("s").copied().unwrap_or(0);
    assert!(near(share(rated, rateable), 0.5));
    assert!(near(share(timed, kinds["g"] + kinds["c"]), 0.5));
    // The types of 200 contexts, each five deviations wide at most.
    assert!((share(kinds["c"], counts[0]) - 0.34).abs() < 0.17);
}

/// A reader of plain StatsD with tags knows no containers.
#[test]
fn one_empty_container_is_none() {
    let has_origin = |container_ids| {
        let options = DogstatsdPlan {
            container_ids,
            ..small()
        };
        let set = build(&of(options, 4096, 256 * 1024), 5, SlotUse::None);
        metrics(&set)
            .iter()
            .any(|metric| !metric.origins.is_empty())
    };
    assert!(has_origin(Vec::new()));
    assert!(!has_origin(vec![String::new()]));
}

#[test]
fn tags_are_used_again_as_often_as_requested() {
    for (ratio, low, high) in [(0.1, 0.09, 0.11), (0.5, 0.42, 0.51), (1.0, 0.99, 1.01)] {
        let options = DogstatsdPlan {
            contexts: Between::only(2000),
            tag_length: Between::new(20, 40),
            tags_per_message: Between::new(10, 20),
            unique_tag_ratio: ratio,
            kind_weights: DogstatsdKinds {
                metric: 1,
                event: 0,
                service_check: 0,
            },
            ..DogstatsdPlan::default()
        };
        let set = build(&of(options, 65_536, 4 << 20), 5, SlotUse::None);
        let metrics = metrics(&set);
        let all = metrics[..2000].iter().flat_map(|metric| &metric.tags);
        let distinct: BTreeSet<&&str> = all.clone().collect();
        let ratio_sent = f64::from(u32::try_from(distinct.len()).unwrap())
            / f64::from(u32::try_from(all.count()).unwrap());
        assert!((low..high).contains(&ratio_sent), "{ratio} {ratio_sent}");
    }
}

#[test]
fn events_and_service_checks_have_tags_and_names() {
    let options = DogstatsdPlan {
        service_check_names: Between::only(7),
        ..small()
    };
    let set = build(&of(options, 65_536, 1 << 20), 5, SlotUse::None);
    let messages = messages(&set);
    let names: BTreeSet<&str> = messages
        .iter()
        .filter_map(|message| match message {
            Message::ServiceCheck { name } => Some(*name),
            Message::Metric(_) | Message::Event { .. } => None,
        })
        .collect();
    assert_eq!(names.len(), 7);
    let is_tagged = |message: &Message<'_>| match message {
        Message::Event { tags } => !tags.is_empty(),
        Message::Metric(_) | Message::ServiceCheck { .. } => false,
    };
    assert!(messages.iter().any(is_tagged));
}

// compat: lading, payloads | dogstatsd: length_prefix_framed | works
#[test]
fn a_length_is_before_each_block() {
    let options = DogstatsdPlan {
        length_prefix_framed: true,
        ..small()
    };
    let mut plan = of(options, 8192, 200_000);
    plan.blocks = BlockShape::Events {
        count: 5,
        maximum: ByteSize::kib(8),
    };
    let set = build(&plan, 3, SlotUse::None);
    for index in 0..set.len() {
        let block = set.block(index);
        let (head, lines) = block.bytes.split_first_chunk::<4>().unwrap();
        assert_eq!(
            usize::try_from(u32::from_le_bytes(*head)).unwrap(),
            lines.len()
        );
        let lines = std::str::from_utf8(lines).unwrap();
        assert_eq!(lines.lines().filter(|line| read(line).is_ok()).count(), 5);
    }
}

#[test]
fn messages_fit_where_they_must() {
    let seed = Seed::from_number(1);
    for options in [small(), DogstatsdPlan::default()] {
        let build_up_to = |maximum| {
            let plan = of(options.clone(), maximum, 300_000);
            BlockSet::build(&plan, plan.cache, seed, None)
        };
        let Err(BuildError::MaximumTooSmall { smallest, .. }) = build_up_to(1) else {
            panic!("one byte is too small");
        };
        assert!(smallest.bytes() < 512, "{smallest:?}");
        let set = build_up_to(smallest.bytes()).unwrap();
        assert!(set.largest_block() <= smallest.as_usize());
        assert!(!messages(&set).is_empty());
        assert!(build_up_to(smallest.bytes() - 1).is_err());
    }
}

#[test]
fn metrics_cannot_carry_stamps() {
    let plan = of(small(), 8192, 10_000);
    let seed = Seed::from_number(1);
    let error = BlockSet::build_with(&plan, plan.cache, seed, None, SlotUse::Every).unwrap_err();
    assert!(error.to_string().contains("dogstatsd"));
}

#[test]
fn fingerprints_are_those_in_the_tree() {
    let plan = of(DogstatsdPlan::default(), 65_536, 1 << 20);
    let set = build(&plan, 42, SlotUse::None);
    golden::compare("dogstatsd", &set);
    // What lading's own has over TCP.
    assert!(set.fingerprint().entropy() > 6.0227);
}

#[test]
fn the_reader_refuses_what_is_wrong() {
    for good in [
        "a.b:1:2.5|c|@0.5|#a:b,c|c:x|T12",
        "_sc|a|3|d:1|h:b|#t|m:c",
        "_e{1,2}:a|bc|p:low",
    ] {
        assert!(read(good).is_ok(), "{good}");
    }
    for bad in [
        "a.b|c",
        "a:|c",
        "a:1|x",
        "a:1:2|s",
        "a:1|c|@2",
        "a:1|g|@0.5",
        "a:1|c|#",
        "a:1|h|T12",
        "a:1|c|#t|@0.5",
        "_sc|a|4",
        "_e{2,2}:a|bc",
        "_e{1,9}:a|bc",
        "_sc|a|0|m:x|h:y",
        "1a:1|c",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}
