use stillwell_generator::{PrepareError, prepare};
use stillwell_plan::generator::Concurrency;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{PayloadFormat, TransportPlan};
use stillwell_units::ByteSize;

use crate::plan;

fn unix_datagram() -> TransportPlan {
    TransportPlan::UnixDatagram {
        path: "/nowhere".into(),
    }
}

fn http(url: &str, headers: &[(&str, &str)]) -> TransportPlan {
    TransportPlan::Http {
        url: url.to_owned(),
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        exchange: Box::default(),
    }
}

#[test]
fn blocks_that_the_transport_cannot_carry_are_refused() {
    let mut plan = plan(unix_datagram());
    plan.payload.blocks = BlockShape::Events {
        count: u32::MAX,
        maximum: ByteSize::kib(256),
    };
    let error = prepare(&plan, None).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("generator `one` has a block of ")
            && text.ends_with(
                " bytes, and unix_datagram carries at most 131072: lower the largest block"
            ),
        "{text}"
    );
    plan.payload.blocks = BlockShape::UpTo {
        maximum: ByteSize::kib(128),
    };
    prepare(&plan, None).unwrap();
}

#[test]
fn what_cannot_be_built_names_the_generator() {
    let mut lines = plan(unix_datagram());
    lines.payload.format = PayloadFormat::Lines {
        path: "/nowhere".into(),
    };
    let error = prepare(&lines, None).unwrap_err();
    assert!(matches!(error, PrepareError::Payload { .. }));
    assert_eq!(error.to_string(), "build the payload of generator `one`");
    assert_eq!(
        prepare(&lines, Some(b"a\nb\n".as_slice()))
            .unwrap()
            .shards()
            .len(),
        1
    );
    let error = prepare(&plan(http("ftp://a/", &[])), None).unwrap_err();
    assert_eq!(error.to_string(), "read the target of generator `one`");
    let error = prepare(&plan(http("http://a/", &[("a b", "c")])), None).unwrap_err();
    let head = "write the request head of generator `one`";
    assert_eq!(error.to_string(), head);
}

#[test]
fn every_worker_has_its_own_labels() {
    let mut plan = plan(unix_datagram());
    plan.concurrency = Concurrency::try_new(3, 2).unwrap();
    let prepared = prepare(&plan, None).unwrap();
    let mut samples = Vec::new();
    for shard in prepared.shards() {
        stillwell_metric::Shard::sample(&*shard, &mut samples);
    }
    for worker in ["0", "1"] {
        let labelled = samples.iter().any(|sample| {
            let label = |key| sample.labels.value(key);
            label("worker") == Some(worker)
                && label("component") == Some("generator")
                && label("component_name") == Some("unix_datagram")
                && label("id") == Some("one")
        });
        assert!(labelled, "{worker}");
    }
}
