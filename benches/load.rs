//! Requests at full speed: `stillwell load` beside wrk and h2load, against nginx
//! with one worker that answers at once, as requests for each second of the
//! client's CPU time. All latencies of ours are recorded meanwhile.
//!
//! The three are programs of Debian: `nginx-light`, `wrk`, `nghttp2-client`. What
//! is not there is left out, with a word.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use stillwell_benches::{Figure, RECEIVER_CPU, SENDER_CPU, Side, compare, on, ours};
use stillwell_plan::{
    BodyPlan, ClientTlsPlan, ConnectingPlan, EndpointPlan, IdleStrategy, LoadPace, LoadPlan,
    LoadProtocol, RequestPlan, Reuse, TlsSuites, UntilPlan, Verification,
};
use stillwell_run::{AddressFamily, Interrupt, conduct_load};
use stillwell_testkit::{find_program, free_port};
use stillwell_units::{Nanos, Seed};

const ROUNDS: usize = 11;
const LENGTH: Nanos = Nanos::from_secs(2);

/// One way to put the question.
struct Way {
    protocol: LoadProtocol,
    connections: u32,
    streams: u32,
}

const WAYS: [Way; 2] = [
    Way {
        protocol: LoadProtocol::Http1,
        connections: 50,
        streams: 1,
    },
    Way {
        protocol: LoadProtocol::Http2,
        connections: 10,
        streams: 10,
    },
];

fn main() -> anyhow::Result<()> {
    if find_program("nginx").is_none() {
        println!("left out: there is no nginx");
        return Ok(());
    }
    for way in WAYS {
        let server = Nginx::start(way.protocol)?;
        let peer = match way.protocol {
            LoadProtocol::Http1 => "wrk",
            LoadProtocol::Http2 => "h2load",
        };
        println!(
            "{}: {} connections with {} requests at once",
            way.protocol.name(),
            way.connections,
            way.streams
        );
        let mut sides = vec![Side {
            name: "stillwell load",
            turn: Box::new(|| own_turn(&way, server.port)),
        }];
        if find_program(peer).is_some() {
            sides.push(Side {
                name: peer,
                turn: Box::new(|| peer_turn(&way, server.port)),
            });
        } else {
            println!("left out: there is no {peer}");
        }
        compare(
            ROUNDS,
            "requests per client CPU second",
            Figure::operations_per_send_second,
            &mut sides,
        )?;
    }
    Ok(())
}

fn own_turn(way: &Way, port: u16) -> anyhow::Result<Figure> {
    let before = stillwell_scope::clock::process_cpu();
    let place = [on(SENDER_CPU)];
    let interrupt = Interrupt::new();
    let plan = plan(way, port);
    let found = conduct_load(plan, AddressFamily::Any, &place, &interrupt, &mut |_| {})?;
    let cpu = stillwell_scope::clock::process_cpu().saturating_sub(before);
    let good = stillwell_metric::Outcome::Ok;
    let answered = found.workers.iter().map(|worker| worker.shard.ended(good));
    Ok(Figure {
        operations: answered.sum(),
        send_cpu: cpu,
        ..Figure::default()
    })
}

fn plan(way: &Way, port: u16) -> LoadPlan {
    let address = format!("127.0.0.1:{port}");
    LoadPlan {
        endpoints: vec![EndpointPlan {
            address: address.clone(),
            tls_host: None,
            weight: 1,
            requests: vec![RequestPlan {
                method: "GET".to_owned(),
                path: "/".to_owned(),
                authority: address,
                headers: Vec::new(),
                body: BodyPlan::None,
            }],
        }],
        pace: LoadPace::Closed,
        connecting: ConnectingPlan {
            connections: way.connections,
            protocol: way.protocol,
            streams: way.streams,
            prefetch: true,
            reuse: Reuse::Mru,
            requests_max: None,
            timeout: Nanos::from_secs(5),
        },
        tls: ClientTlsPlan {
            verification: Verification::None,
            identity: None,
            alpn: Vec::new(),
            server_name: None,
            resumption: true,
            suites: TlsSuites::default(),
        },
        workers: 1,
        until: UntilPlan {
            duration: Some(LENGTH),
            ..UntilPlan::default()
        },
        warmup: Nanos::ZERO,
        timeout: Nanos::from_secs(30),
        grace: Nanos::from_secs(5),
        idle: IdleStrategy::Spin,
        seed: Seed::from_number(1),
    }
}

fn peer_turn(way: &Way, port: u16) -> anyhow::Result<Figure> {
    let before = children_cpu()?;
    let url = format!("http://127.0.0.1:{port}/");
    let seconds = LENGTH.as_u64() / 1_000_000_000;
    let mut command = Command::new("taskset");
    command.args(["-c", &SENDER_CPU.to_string()]);
    match way.protocol {
        LoadProtocol::Http1 => {
            let connections = way.connections.to_string();
            let seconds = format!("-d{seconds}");
            command.args(["wrk", "-t1", "-c", &connections, &seconds, &url]);
        }
        LoadProtocol::Http2 => {
            let (connections, streams) = (way.connections.to_string(), way.streams.to_string());
            let seconds = seconds.to_string();
            command.args(["h2load", "-t1", "-c", &connections, "-m", &streams]);
            command.args(["-D", &seconds, &url]);
        }
    }
    let output = command.output().context("start the peer")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let operations = match way.protocol {
        LoadProtocol::Http1 => number_before(&text, " requests in "),
        LoadProtocol::Http2 => number_before(&text, " succeeded, "),
    };
    Ok(Figure {
        operations: operations.with_context(|| format!("read what the peer said: {text}"))?,
        send_cpu: children_cpu()?.saturating_sub(before),
        ..Figure::default()
    })
}

fn number_before(text: &str, word: &str) -> Option<u64> {
    let (before, _) = text.split_once(word)?;
    before.split_whitespace().last()?.parse().ok()
}

/// CPU time of children that have ended, in steps of 10 ms.
fn children_cpu() -> anyhow::Result<Nanos> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The second field may hold anything, and ends with the last parenthesis.
    let (_, fields) = text.rsplit_once(')').context("read our own times")?;
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: Vec<u64> = ticks.map(str::parse).collect::<Result<_, _>>()?;
    Ok(Nanos::from_millis(10 * ticks.iter().sum::<u64>()))
}

/// nginx with one worker on the receiver's CPU.
struct Nginx {
    process: Child,
    port: u16,
    folder: std::path::PathBuf,
}

impl Nginx {
    fn start(protocol: LoadProtocol) -> anyhow::Result<Self> {
        let port = free_port();
        let folder = std::env::temp_dir().join(format!("stillwell-bench-{port}"));
        std::fs::create_dir_all(&folder)?;
        let place = folder.display();
        let version = match protocol {
            LoadProtocol::Http1 => "",
            LoadProtocol::Http2 => "http2",
        };
        let affinity = format!("{:b}", 1_u32 << RECEIVER_CPU);
        let text = format!(
            "worker_processes 1; worker_cpu_affinity {affinity}; daemon off;\n\
             pid {place}/pid; error_log {place}/error.log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; keepalive_requests 1000000000;\n\
             client_body_temp_path {place}; proxy_temp_path {place};\n\
             fastcgi_temp_path {place}; uwsgi_temp_path {place}; scgi_temp_path {place};\n\
             server {{ listen 127.0.0.1:{port} {version};\n\
             location / {{ return 200 0123456789; }} }} }}\n"
        );
        let config = folder.join("nginx.conf");
        std::fs::write(&config, text)?;
        let process = start(&config)?;
        let server = Self {
            process,
            port,
            folder,
        };
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            ours::pause(Duration::from_millis(10));
        }
        Ok(server)
    }
}

fn start(config: &Path) -> anyhow::Result<Child> {
    let mut command = Command::new("nginx");
    command.arg("-c").arg(config).stderr(Stdio::null());
    command.spawn().context("start nginx")
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its worker ends with it when it is asked to; the folder is of no use then.
        let ask = Command::new("kill")
            .arg(self.process.id().to_string())
            .status();
        if ask.is_ok() {
            drop(self.process.wait());
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}
