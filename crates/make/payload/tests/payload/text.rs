//! The text formats with options.

#[path = "text/cut.rs"]
mod cut;
#[path = "text/readers.rs"]
mod readers;
#[path = "text/replay.rs"]
mod replay;
#[path = "text/template.rs"]
mod template;

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use proptest::prelude::*;
use stillwell_payload::{BlockSet, BuildError, SLOT_WIDTH, SlotUse};
use stillwell_plan::payload::{
    BlockShape, BulkAction, CefHeader, ElasticsearchPlan, GelfEnd, HecEncoding, InfluxPlan,
    LokiPlan,
};
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_units::{ByteSize, Seed};

use crate::golden::compare;
use crate::{SEEDED, build, events, plan, up_to};

/// Every format, in each of its kinds, and what its fingerprint is called.
fn kinds() -> Vec<(&'static str, PayloadFormat)> {
    let elasticsearch = |action, index: &str| {
        let index = index.to_owned();
        PayloadFormat::Elasticsearch(ElasticsearchPlan { index, action })
    };
    let gelf = |end| PayloadFormat::Gelf { end };
    let cef = |header| PayloadFormat::Cef { header };
    let hec = |encoding| PayloadFormat::SplunkHec { encoding };
    let loki = |streams| PayloadFormat::Loki(LokiPlan { streams });
    let influx = |series| PayloadFormat::Influx(InfluxPlan { series });
    vec![
        ("syslog3164", PayloadFormat::Syslog3164),
        ("splunk_hec-json", hec(HecEncoding::Json)),
        ("splunk_hec-text", hec(HecEncoding::Text)),
        ("loki", loki(100)),
        ("loki-one", loki(1)),
        (
            "elasticsearch-create",
            elasticsearch(BulkAction::Create, "logs-generic-default"),
        ),
        ("elasticsearch-index", elasticsearch(BulkAction::Index, "a")),
        ("influx", influx(1000)),
        ("influx-one", influx(1)),
        ("gelf-zero", gelf(GelfEnd::Null)),
        ("gelf-newline", gelf(GelfEnd::Newline)),
        ("gelf-nothing", gelf(GelfEnd::Nothing)),
        ("cef-syslog", cef(CefHeader::Syslog)),
        ("cef-nothing", cef(CefHeader::Nothing)),
        ("template", PayloadFormat::Template(template::lines())),
        (
            "templated_json",
            PayloadFormat::TemplatedJson(template::objects()),
        ),
    ]
}

/// The smallest block that `format` takes.
fn smallest(format: &PayloadFormat, slots: SlotUse) -> u64 {
    let plan = plan(format.clone(), up_to(1), 1);
    let refused = BlockSet::build_with(&plan, plan.cache, Seed::from_number(1), None, slots);
    let Err(BuildError::MaximumTooSmall { smallest, .. }) = refused else {
        return 1;
    };
    smallest.bytes()
}

/// Any plan of any format, slots, and a seed; most blocks hold few events.
fn any_case() -> impl Strategy<Value = (PayloadPlan, SlotUse, u64)> {
    let slots = prop_oneof![Just(SlotUse::None), Just(SlotUse::Every)];
    let shape = (
        prop_oneof![0_u64..200, 200_u64..20_000],
        prop::option::of(1_u32..40),
    );
    (0..kinds().len(), slots, shape, 0_u64..200_000, any::<u64>()).prop_map(
        |(kind, slots, (beyond, count), cache, seed)| {
            let (_, format) = kinds().swap_remove(kind);
            let maximum = ByteSize::new(smallest(&format, slots) + beyond);
            let blocks = match count {
                None => BlockShape::UpTo { maximum },
                Some(count) => BlockShape::Events { count, maximum },
            };
            (plan(format, blocks, cache), slots, seed)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// For all formats, plans and seeds: no block exceeds its maximum, and every
    /// event is valid to a reader that knows nothing of the writer, which finds
    /// what was written into the slots in its text.
    #[test]
    fn blocks_are_valid((plan, slots, seed) in any_case()) {
        let set = build_or_skip(&plan, seed, slots)?;
        for index in 0..set.len() {
            let block = set.block(index);
            prop_assert!(block.bytes.len() <= plan.blocks.maximum().as_usize());
            let mut bytes = block.bytes.to_vec();
            let stamps = block.slots().enumerate().map(|(number, slot)| {
                let stamp = format!("{number:0SLOT_WIDTH$}");
                bytes[slot.offset..slot.offset + SLOT_WIDTH].copy_from_slice(stamp.as_bytes());
                stamp
            });
            let stamps: Vec<String> = stamps.collect();
            let read = readers::read(&plan.format, &bytes);
            let texts = read.unwrap_or_else(|error| {
                panic!("{error}\n{}", String::from_utf8_lossy(&bytes))
            });
            prop_assert_eq!(texts.len() as u64, block.counts().events);
            match slots {
                SlotUse::None | SlotUse::Before(_) => prop_assert!(stamps.is_empty()),
                SlotUse::Every => {
                    prop_assert_eq!(stamps.len(), texts.len());
                    for (stamp, text) in stamps.iter().zip(&texts) {
                        prop_assert!(text.contains(stamp), "{} {}", stamp, text);
                    }
                }
            }
        }
    }

    /// For all formats: the same seed gives the same bytes, another one others,
    /// and a larger cache more of the same.
    #[test]
    fn bytes_follow_from_the_seed((plan, slots, seed) in any_case()) {
        let set = build_or_skip(&plan, seed, slots)?;
        let again = build_or_skip(&plan, seed, slots)?;
        prop_assert_eq!(set.bytes(), again.bytes());
        let changed = build_or_skip(&plan, seed.wrapping_add(1), slots)?;
        prop_assert_ne!(set.bytes(), changed.bytes());
        let mut larger = plan;
        larger.cache = ByteSize::new(larger.cache.bytes() * 2 + 100_000);
        let larger = build_or_skip(&larger, seed, slots)?;
        if set.len() > 1 {
            prop_assert!(larger.bytes().starts_with(set.bytes()));
        }
    }
}

/// A template may have no event that is short enough, by chance.
fn build_or_skip(plan: &PayloadPlan, seed: u64, slots: SlotUse) -> Result<BlockSet, TestCaseError> {
    let seed = Seed::from_number(seed);
    match BlockSet::build_with(plan, plan.cache, seed, None, slots) {
        Ok(set) => Ok(set),
        Err(BuildError::NothingFits { .. }) => {
            Err(TestCaseError::reject("no event is short enough"))
        }
        Err(error) => Err(TestCaseError::fail(error.to_string())),
    }
}

#[test]
fn fingerprints_are_those_in_the_tree() {
    for (name, format) in kinds() {
        let plan = plan(format, up_to(64 << 10), 1 << 20);
        compare(name, &build(&plan, 42, SlotUse::None));
        compare(&format!("{name}-slots"), &build(&plan, 42, SlotUse::Every));
    }
}

/// A point replaced another of its series that had the same time.
#[test]
fn no_two_points_of_a_series_have_the_same_time() {
    let format = PayloadFormat::Influx(InfluxPlan { series: 1 });
    let set = build(&plan(format, up_to(64 << 10), 1 << 20), 1, SlotUse::None);
    let text = std::str::from_utf8(set.bytes()).unwrap();
    let times: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.rsplit_once(' ')?.1))
        .collect();
    let different: HashSet<&&str> = times.iter().collect();
    assert!(times.len() > 1000);
    assert_eq!(different.len(), times.len());
}

/// As many sets of labels and series as requested, the same for all workers.
#[test]
fn streams_and_series_are_those_requested() {
    for streams in [1, 7, 300] {
        let format = PayloadFormat::Loki(LokiPlan { streams });
        let set = build(&plan(format, up_to(64 << 10), 16 << 20), 1, SlotUse::None);
        let text = std::str::from_utf8(set.bytes()).unwrap();
        let labels: HashSet<&str> = text
            .split(r#"{"stream":"#)
            .skip(1)
            .map(|rest| rest.split('}').next().unwrap())
            .collect();
        assert_eq!(labels.len() as u64, u64::from(streams));
    }
    for series in [1, 7, 3000] {
        let format = PayloadFormat::Influx(InfluxPlan { series });
        let plan = plan(format, up_to(64 << 10), 16 << 20);
        let of = |set: &BlockSet| -> HashSet<String> {
            let text = std::str::from_utf8(set.bytes()).unwrap();
            text.lines()
                .map(|line| line.split(' ').next().unwrap().to_owned())
                .collect()
        };
        let workers = [1, 2].map(|number| {
            let seeds = stillwell_payload::Seeds {
                worker: Seed::from_number(number),
                ..Seed::from_number(9).into()
            };
            of(&BlockSet::build(&plan, plan.cache, seeds, None).unwrap())
        });
        assert_eq!(workers[0].len() as u64, u64::from(series));
        assert_eq!(workers[0], workers[1]);
    }
}

/// Over 2 GiB of each format fewer than one event in a thousand was there before.
#[test]
#[ignore = "builds 2 GiB of each format, which takes minutes: run it in release"]
fn events_hardly_ever_repeat() {
    let further = SEEDED.map(|format| (format.name(), format));
    for (name, format) in kinds().into_iter().chain(further) {
        let plan = plan(format, up_to(64 << 10), 2 << 30);
        let set = build(&plan, 7, SlotUse::None);
        let hasher = RandomState::new();
        let mut seen = HashSet::with_capacity(1 << 24);
        let events = events(&set);
        let repeated = events
            .iter()
            .filter(|event| !seen.insert(hasher.hash_one(event)));
        let (repeated, all) = (repeated.count(), events.len());
        println!("{name}: {repeated} of {all} repeat one before");
        assert!(repeated * 1000 < all, "{name}: {repeated} of {all}");
    }
}
