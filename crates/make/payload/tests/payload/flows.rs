use std::collections::BTreeSet;

use prost::Message;
use stillwell_payload::{BlockSet, BuildError, Part, Seeds, SlotUse};
use stillwell_plan::payload::{Between, NetflowPlan, NetflowVersion, RemoteWritePlan};
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_units::{ByteSize, Seed};

use crate::{build, golden, plan, up_to};

/// `prometheus.WriteRequest`, as far as it is written.
#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

fn remote_write(options: RemoteWritePlan, maximum: u64) -> PayloadPlan {
    plan(PayloadFormat::RemoteWrite(options), up_to(maximum), 1 << 20)
}

/// The requests of a set, in the order in which they are sent.
fn requests(set: &BlockSet) -> Vec<WriteRequest> {
    let blocks = (0..set.len()).map(|index| set.block(index));
    blocks
        .map(|block| {
            assert_eq!(block.counts().events, 1);
            let plain = snap::raw::Decoder::new().decompress_vec(block.bytes);
            let request = WriteRequest::decode(&plain.unwrap()[..]).unwrap();
            assert_eq!(request.timeseries.len() as u64, block.counts().units);
            request
        })
        .collect()
}

/// The series of a set's samples, with their times in milliseconds.
pub(crate) fn samples(set: &BlockSet) -> Vec<(String, u64)> {
    let series = requests(set)
        .into_iter()
        .flat_map(|request| request.timeseries);
    let timed = series.map(|series| {
        let time = u64::try_from(series.samples[0].timestamp).unwrap();
        (format!("{:?}", series.labels), time)
    });
    timed.collect()
}

#[test]
fn remote_write_sends_each_series_before_any_again() {
    let options = RemoteWritePlan {
        series: Between::only(3000),
        labels_per_series: Between::new(0, 5),
        samples_per_request: Between::new(100, 900),
        ..RemoteWritePlan::default()
    };
    for maximum in [16_384, 1 << 20] {
        let set = build(&remote_write(options, maximum), 3, SlotUse::None);
        assert!(set.largest_block() <= usize::try_from(maximum).unwrap());
        let mut times = Vec::new();
        for series in requests(&set)
            .into_iter()
            .flat_map(|request| request.timeseries)
        {
            let names = series.labels.iter().map(|label| label.name.as_str());
            let names: Vec<&str> = names.collect();
            assert!(names.is_sorted_by(|a, b| a < b) && names[0] == "__name__");
            assert!(series.labels.iter().all(|label| !label.value.is_empty()));
            let mut name = series.labels[0].value.chars();
            assert!(name.all(|c| c.is_ascii_alphanumeric() || c == '_'));
            assert_eq!(series.samples.len(), 1);
            times.push((format!("{:?}", series.labels), series.samples[0].timestamp));
        }
        let mut last = 0;
        for pass in times.chunks(3000) {
            let series: BTreeSet<&String> = pass.iter().map(|(series, _)| series).collect();
            assert_eq!(series.len(), pass.len());
            // What is scraped together has one time.
            let times: BTreeSet<i64> = pass.iter().map(|(_, time)| *time).collect();
            assert!(times.len() == 1 && *times.iter().min().unwrap() > last);
            last = pass[0].1;
        }
    }
}

fn netflow(version: NetflowVersion, maximum: u64) -> PayloadPlan {
    let options = NetflowPlan {
        version,
        flows_per_packet: Between::new(5, 30),
        exporter: 7,
        template_every: 4,
    };
    plan(PayloadFormat::Netflow(options), up_to(maximum), 300_000)
}

/// Reads numbers in network order.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn take(&mut self, count: usize) -> u64 {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}

fn packets(set: &BlockSet) -> impl Iterator<Item = (u64, &[u8])> {
    (0..set.len()).map(|index| {
        let block = set.block(index);
        assert_eq!(block.counts().events, 1);
        (block.counts().units, block.bytes)
    })
}

#[test]
fn version_5_packets_have_their_published_shape() {
    let set = build(&netflow(NetflowVersion::V5, 1472), 3, SlotUse::None);
    let mut sequence = 0;
    for (units, packet) in packets(&set) {
        let mut bytes = Bytes(packet);
        assert_eq!((bytes.take(2), bytes.take(2)), (5, units));
        assert_eq!(packet.len() as u64, 24 + 48 * units);
        let uptime = bytes.take(4);
        assert!(bytes.take(4) > 1_600_000_000 && bytes.take(4) < 1_000_000_000);
        assert_eq!(bytes.take(4), sequence);
        assert_eq!(bytes.take(2), 7);
        bytes.take(2);
        sequence += units;
        for _ in 0..units {
            assert_eq!(bytes.take(1), 10);
            bytes.take(15);
            let (packets, octets) = (bytes.take(4), bytes.take(4));
            assert!(packets > 0 && octets >= 64 * packets && octets <= 1500 * packets);
            let (first, last) = (bytes.take(4), bytes.take(4));
            assert!(first <= last && last <= uptime);
            bytes.take(6);
            assert!([1, 6, 17, 47].contains(&bytes.take(1)));
            bytes.take(9);
        }
    }
}

/// One record, of elements in the order of the template; `now` is the time of its packet in
/// the same milliseconds as its own, rounded up.
fn check_record(rest: &mut Bytes<'_>, is_ipfix: bool, now: u64) {
    let (octets, packets) = (rest.take(4), rest.take(4));
    assert!(packets > 0 && octets >= 64 * packets && octets <= 1500 * packets);
    assert!([1, 6, 17, 47].contains(&rest.take(1)));
    rest.take(4);
    assert_eq!(rest.take(4) >> 24, 10);
    rest.take(4);
    assert_eq!(rest.take(4) >> 16, 192 << 8 | 168);
    rest.take(2);
    assert_eq!(rest.take(4) >> 16, 172 << 8 | 16);
    rest.take(4);
    assert_eq!((rest.take(1), rest.take(1)), (16, 24));
    let width = if is_ipfix { 8 } else { 4 };
    let (last, first) = (rest.take(width), rest.take(width));
    assert!(first <= last && last <= now, "{first} {last} {now}");
    assert!(now - first < 70_000, "{first} {now}");
}

#[test]
fn templates_describe_the_records_behind_them() {
    for (version, header, template_set) in
        [(NetflowVersion::V9, 20, 0), (NetflowVersion::Ipfix, 16, 2)]
    {
        let set = build(&netflow(version, 1472), 3, SlotUse::None);
        let (mut record, mut templates, mut sequence) = (0, 0, 0);
        for (number, (units, packet)) in (0_u64..).zip(packets(&set)) {
            let mut bytes = Bytes(packet);
            let (version, second) = (bytes.take(2), bytes.take(2));
            let has_template = number % 4 == 0;
            let now;
            if header == 20 {
                assert_eq!((version, second), (9, units + u64::from(has_template)));
                now = bytes.take(4);
                bytes.take(4);
                assert_eq!(bytes.take(4), number);
            } else {
                assert_eq!((version, second), (10, packet.len() as u64));
                now = bytes.take(4) * 1000 + 999;
                assert_eq!(bytes.take(4), sequence);
            }
            assert_eq!(bytes.take(4), 7);
            sequence += units;
            while !bytes.0.is_empty() {
                let (set, length) = (bytes.take(2), bytes.take(2));
                assert_eq!(length % 4, 0);
                let mut rest = Bytes(&bytes.0[..usize::try_from(length).unwrap() - 4]);
                bytes.0 = &bytes.0[rest.0.len()..];
                if set == template_set {
                    assert_eq!(rest.take(2), 256);
                    let fields = rest.take(2);
                    record = (0..fields).map(|_| (rest.take(2), rest.take(2)).1).sum();
                    templates += 1;
                    assert!(has_template && rest.0.is_empty());
                } else {
                    assert_eq!(set, 256);
                    assert_eq!((length - 4) / record, units);
                    for _ in 0..units {
                        check_record(&mut rest, header == 16, now);
                    }
                    assert!(rest.0.len() < 4 && rest.0.iter().all(|byte| *byte == 0));
                }
            }
        }
        assert_eq!(templates, (set.len() as u64).div_ceil(4));
    }
}

/// RFC 3954, 5.1, and RFC 7011, 3.1: numbers of one exporter increase without a gap.
#[test]
fn an_exporter_continues_in_the_next_set() {
    for (version, time_at, number_at) in [
        (NetflowVersion::V5, 8, 16),
        (NetflowVersion::V9, 8, 12),
        (NetflowVersion::Ipfix, 4, 8),
    ] {
        let plan = netflow(version, 1472);
        let mut seeds = Seeds::from(Seed::from_number(3));
        let (mut number, mut times, mut starts) = (0, Vec::new(), BTreeSet::new());
        for pass in 0..4 {
            let set = BlockSet::build(&plan, plan.cache, seeds, None).unwrap();
            for (units, packet) in packets(&set) {
                assert_eq!(Bytes(&packet[number_at..]).take(4), number, "{version:?}");
                number += match version {
                    NetflowVersion::V9 => 1,
                    NetflowVersion::V5 | NetflowVersion::Ipfix => units,
                };
                let seconds = Bytes(&packet[time_at..]).take(4);
                times.push(seconds);
                if version != NetflowVersion::Ipfix {
                    let uptime = Bytes(&packet[4..]).take(4);
                    starts.insert(seconds - uptime / 1000);
                }
            }
            seeds.worker = seeds.worker.derive("pass", pass);
            seeds.exporter = set.exporter();
        }
        assert!(times.is_sorted(), "{version:?}");
        assert!(times[times.len() - 1] - times[0] < 60, "{version:?}");
        // Whole seconds of both are rounded down.
        assert!(starts.len() <= 2, "{version:?}: {starts:?}");
    }
}

/// Two exporters of one number would both count from 0.
#[test]
fn each_worker_is_an_exporter_of_its_own() {
    for (version, exporter_at, width) in [
        // Type and number of the engine.
        (NetflowVersion::V5, 20, 2),
        (NetflowVersion::V9, 16, 4),
        (NetflowVersion::Ipfix, 12, 4),
    ] {
        let plan = netflow(version, 1472);
        for index in [0, 1, 300] {
            let seeds = Seeds {
                part: Part { index, of: 301 },
                ..Seed::from_number(3).into()
            };
            let set = BlockSet::build(&plan, plan.cache, seeds, None).unwrap();
            for (_, packet) in packets(&set) {
                let exporter = Bytes(&packet[exporter_at..]).take(width);
                assert_eq!(exporter, 7 + u64::from(index), "{version:?}");
            }
        }
    }
}

#[test]
fn what_is_too_small_is_refused() {
    for format in [
        PayloadFormat::Netflow(NetflowPlan::default()),
        PayloadFormat::RemoteWrite(RemoteWritePlan::default()),
    ] {
        let plan = plan(format.clone(), up_to(20), 1000);
        let error = BlockSet::build(&plan, plan.cache, Seed::from_number(1), None).unwrap_err();
        let BuildError::MaximumTooSmall { smallest, .. } = error else {
            panic!("{error}");
        };
        let mut least = plan.clone();
        least.blocks = up_to(smallest.bytes());
        least.cache = ByteSize::kib(100);
        assert!(build(&least, 1, SlotUse::None).largest_block() <= smallest.as_usize());
    }
}

#[test]
fn fingerprints_are_those_in_the_tree() {
    let options = RemoteWritePlan::default();
    let set = build(&remote_write(options, 1 << 18), 42, SlotUse::None);
    golden::compare("remote_write", &set);
    for (name, version) in [
        ("netflow-5", NetflowVersion::V5),
        ("netflow-9", NetflowVersion::V9),
        ("netflow-ipfix", NetflowVersion::Ipfix),
    ] {
        golden::compare(name, &build(&netflow(version, 1472), 42, SlotUse::None));
    }
}
