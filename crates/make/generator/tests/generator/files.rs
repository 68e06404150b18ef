use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use stillwell_metric::{Outcome, Shard, Value, catalogue, decode_histogram};
use stillwell_plan::generator::{FileLayout, MessageLength};
use stillwell_plan::{PayloadPlan, TransportPlan};
use stillwell_units::ByteSize;

use crate::{Fixture, LONG, blocks, is_walk, lines, plan, wait_until};

/// All files below `folder`, with their contents.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    files.sort_unstable();
    files
}

#[test]
fn numbered_files_hold_every_block_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("%NNN%.log").display().to_string();
    let layout = FileLayout::Numbered {
        template,
        delete: false,
    };
    let bytes_max = ByteSize::kib(64);
    let plan = plan(TransportPlan::Files { layout, bytes_max });
    let fixture = Fixture::start(&plan);
    wait_until(|| fixture.total(|shard| &shard.bytes) > 1 << 20);
    let shards = fixture.finish();
    let files = contents(folder.path());
    assert!(files.len() > 10);
    let all: Vec<u8> = files.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    assert_eq!(all.len() as u64, shards[0].bytes.total());
    assert_eq!(lines(&all), shards[0].events.total());
    assert!(is_walk(&blocks(&plan, 0), 0, &all));
    let outcomes = shards[0].outcomes[Outcome::Ok.index()].total();
    assert_eq!(outcomes, shards[0].blocks.total());
    for (name, bytes) in &files[..files.len() - 1] {
        assert!(bytes.len() > 64 << 10 && bytes.len() <= 68 << 10, "{name}");
        assert_eq!(bytes.last(), Some(&b'\n'), "{name}");
    }
}

// compat: lading, generators | file_gen | works
#[test]
fn each_log_has_its_own_parts_and_keeps_as_many_as_it_should() {
    let folder = tempfile::tempdir().unwrap();
    let layout = FileLayout::Rotated {
        root: folder.path().join("logs"),
        depth_max: 0,
        rotations: 2,
    };
    let bytes_max = ByteSize::kib(16);
    let mut plan = plan(TransportPlan::Files { layout, bytes_max });
    plan.concurrency = plan.concurrency.with_connections(3);
    let fixture = Fixture::start(&plan);
    wait_until(|| fixture.total(|shard| &shard.bytes) > 1 << 20);
    fixture.finish();
    let files = contents(folder.path());
    let logs = files
        .iter()
        .filter(|(name, _)| name.ends_with(".log"))
        .count();
    assert!(
        logs <= 3 && files.len() >= 6 && files.len() <= 9,
        "{}",
        files.len()
    );
    let older = files.iter().filter(|(name, _)| !name.ends_with(".log"));
    assert!(older.clone().all(|(_, bytes)| bytes.len() > 16 << 10));
}

// compat: lading, generators | passthru_file | works
#[test]
fn a_pipe_gets_every_block_once_a_reader_opens_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let plan = plan(TransportPlan::PassthruFile { path: path.clone() });
    let mut fixture = Fixture::start(&plan);
    wait_until(|| fixture.outcomes(Outcome::ConnectRefused) > 0);
    let read = fixture.beside("reader", move |stop| {
        let (mut pipe, mut bytes) = (fs::File::open(&path)?, Vec::new());
        let mut room = vec![0; 65_536];
        loop {
            match pipe.read(&mut room)? {
                0 => return Ok(bytes),
                length => bytes.extend_from_slice(&room[..length]),
            }
            if bytes.len() > 1 << 20 {
                stop.cancel();
            }
        }
    });
    let bytes = read.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    assert_eq!(shards[0].bytes.total(), bytes.len() as u64);
    assert!(is_walk(&blocks(&plan, 0), 0, &bytes));
}

#[test]
fn the_end_of_a_file_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    fs::write(&path, "before\n").unwrap();
    let plan = plan(TransportPlan::PassthruFile { path: path.clone() });
    let fixture = Fixture::start(&plan);
    wait_until(|| fixture.total(|shard| &shard.bytes) > 100_000);
    let shards = fixture.finish();
    let bytes = fs::read(&path).unwrap();
    let grown = bytes.strip_prefix(b"before\n").unwrap();
    assert_eq!(shards[0].bytes.total(), grown.len() as u64);
    assert!(is_walk(&blocks(&plan, 0), 0, grown));
}

// compat: lading, generators | tcp_rr | works
#[test]
fn round_trips_are_counted_and_timed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut plan = plan(TransportPlan::TcpRr {
        address: listener.local_addr().unwrap().to_string(),
        request_bytes: MessageLength::try_new(100).unwrap(),
        response_bytes: MessageLength::try_new(70_000).unwrap(),
    });
    plan.payload = PayloadPlan::PACE;
    let mut fixture = Fixture::start(&plan);
    let server = fixture.beside("server", move |stop| {
        use std::io::Write as _;
        let (mut peer, _) = listener.accept()?;
        let mut request = [0; 100];
        let mut requests = 0_u64;
        // The client leaves between two requests.
        while peer.read_exact(&mut request).is_ok() {
            peer.write_all(&vec![1; 70_000])?;
            requests += 1;
            if requests == 50 {
                stop.cancel();
            }
        }
        Ok(requests)
    });
    let requests = server.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    assert!(requests >= 50);
    assert_eq!(shards[0].bytes.total(), requests * 100);
    assert_eq!(shards[0].events.total(), requests);
    assert_eq!(shards[0].outcomes[Outcome::Ok.index()].total(), requests);
    let mut samples = Vec::new();
    shards[0].sample(&mut samples);
    let sample = samples
        .iter()
        .find(|sample| sample.name == catalogue::SERVICE_TIME.into());
    let Some(Value::Histogram(bytes)) = sample.map(|sample| &sample.value) else {
        panic!("no service time");
    };
    assert_eq!(decode_histogram(bytes).unwrap().len(), requests);
}
