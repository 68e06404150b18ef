//! `HAProxy` between `stillwell load` and `stillwell serve`: all three count the same,
//! for all versions before and behind it.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use stillwell_testkit::{Process, program_or_skip, wait_until};

use super::ends::{Certificate, LONG, Serving, load, start_on_free_ports};

/// Its front doors, and what is behind each: `listen`, then `server`.
const DOORS: [(&str, &str); 4] = [
    ("", "{plain}"),
    ("proto h2", "{plain} proto h2"),
    (
        "ssl crt {folder}/both.pem alpn h2,http/1.1",
        "{tls} ssl verify none alpn h2",
    ),
    (
        "ssl crt {folder}/both.pem alpn h2,http/1.1",
        "{tls} ssl verify none alpn http/1.1",
    ),
];

/// A probe opens a connection and closes it; with `http-ignore-probes` that is no
/// request, even if it is noticed late.
fn configuration(folder: &Path, plain: &str, tls: &str, ports: &[u16]) -> String {
    let fill = |text: &str| {
        text.replace("{folder}", &folder.display().to_string())
            .replace("{plain}", plain)
            .replace("{tls}", tls)
    };
    let mut text = fill(
        "global\n  stats socket {folder}/stats level admin\n\
         defaults\n  mode http\n  option http-ignore-probes\n  timeout connect 10s\n  timeout client 30s\n  timeout server 30s\n",
    );
    for (index, ((listen, server), port)) in DOORS.iter().zip(ports).enumerate() {
        text.push_str(&fill(&format!(
            "frontend front{index}\n  bind 127.0.0.1:{port} {listen}\n  default_backend back{index}\n\
             backend back{index}\n  server one {server}\n"
        )));
    }
    text
}

/// Number of requests of the part `name` of `kind`, in its statistics.
fn requests(folder: &Path, name: &str, kind: &str) -> u64 {
    let mut opened = None;
    // It listens on its ports a moment before it does here.
    wait_until(LONG, || {
        opened = UnixStream::connect(folder.join("stats")).ok();
        opened.is_some()
    });
    let mut socket = opened.unwrap();
    socket.write_all(b"show stat\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let mut lines = text.lines();
    let heads: Vec<&str> = lines
        .next()
        .unwrap()
        .trim_start_matches("# ")
        .split(',')
        .collect();
    let place = heads.iter().position(|head| *head == "req_tot").unwrap();
    let mut rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let row = rows.find(|row| row[..2] == [name, kind]).unwrap();
    row[place].parse().unwrap()
}

#[test]
fn haproxy_sees_what_is_sent_and_hands_it_on() {
    let Some(program) = program_or_skip("haproxy_sees_what_is_sent_and_hands_it_on", "haproxy")
    else {
        return;
    };
    let certificate = Certificate::new();
    let folder = certificate.folder.path();
    let (plain, tls) = (Serving::start(&[]), Serving::start(&["--tls=self-signed"]));
    let (process, ports): (Process, [u16; DOORS.len()]) = start_on_free_ports(|ports| {
        let file = folder.join("haproxy.cfg");
        let text = configuration(folder, &plain.address, &tls.address, &ports);
        std::fs::write(&file, text).unwrap();
        Process::start(Command::new(&program).arg("-db").arg("-f").arg(file))
    });
    let trusted = certificate.trusted();
    let mut sums = [0; 2];
    for (port, words, request_count) in [
        (0, "http -c 4 --rate 5k/s", 1000),
        (0, "http -c 4 --body payload:json:2KiB", 500),
        (1, "http -p http2 -c 2 --streams 10", 1000),
        (
            1,
            "http -p http2 -c 2 --streams 10 --rate 5k/s --body payload:ascii:90KiB",
            200,
        ),
        (2, "https -p http2 -c 2 --streams 5 --rate 2k/s", 500),
        (2, "https -c 4", 500),
        (3, "https -p http2 -c 2 --streams 5", 500),
    ] {
        let before = requests(folder, &format!("front{port}"), "FRONTEND");
        let mut words = words.split_whitespace();
        let url = format!("{}://127.0.0.1:{}/", words.next().unwrap(), ports[port]);
        let count = request_count.to_string();
        let mut arguments = vec![url.as_str(), "-n", &count];
        if url.starts_with("https") {
            arguments.push(&trusted);
        }
        arguments.extend(words);
        load(&arguments).assert_all_well(request_count);
        let after = requests(folder, &format!("front{port}"), "FRONTEND");
        assert_eq!(after - before, request_count, "{arguments:?}");
        sums[usize::from(port >= 2)] += request_count;
    }
    for (server, sum) in [(plain, sums[0]), (tls, sums[1])] {
        let counts = server.stop();
        assert_eq!(
            (&counts["requests"], &counts["malformed"]),
            (&sum.into(), &0.into())
        );
    }
    process.signal("TERM");
    // It says by which signal it ended.
    assert!(matches!(process.finish(LONG).code, 0 | 143));
}
