//! Requests sent by `stillwell load` are requests seen by nginx.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use stillwell_testkit::{Process, program_or_skip};

use super::ends::{Certificate, LONG, Report, load, start_on_free_ports};

/// nginx on a port for each protocol.
struct Nginx {
    process: Process,
    certificate: Certificate,
    ports: [u16; PORTS.len()],
}

/// Options of `listen` after the port, and further settings.
const PORTS: [(&str, &str); 6] = [
    ("", ""),
    ("http2", ""),
    ("ssl", ""),
    ("ssl http2", ""),
    ("", "keepalive_requests 50;"),
    ("http2", "keepalive_requests 50;"),
];

fn configuration(certificate: &Certificate, ports: &[u16]) -> String {
    let folder = certificate.folder.path().display();
    let servers = PORTS.iter().zip(ports).map(|((listen, more), port)| {
        format!(
            "server {{ listen 127.0.0.1:{port} {listen}; {more}\n\
             location = /status {{ stub_status; access_log off; }}\n\
             location / {{ return 200 hello; }} }}\n"
        )
    });
    let servers: String = servers.collect();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let paths = paths.map(|name| format!("{name}_temp_path {folder}/{name};\n"));
    format!(
        "daemon off; worker_processes 1; pid {folder}/pid; error_log stderr;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ log_format seen '$server_protocol $request_method $uri $status';\n\
         access_log {folder}/access.log seen; {}\
         keepalive_requests 1000000; client_max_body_size 0;\n\
         ssl_certificate {folder}/certificate.pem; ssl_certificate_key {folder}/key.pem;\n\
         {servers} }}\n",
        paths.concat()
    )
}

impl Nginx {
    fn start(program: &Path) -> Self {
        let certificate = Certificate::new();
        let (process, ports) = start_on_free_ports(|ports| {
            let file = certificate.path("nginx.conf");
            std::fs::write(&file, configuration(&certificate, &ports)).unwrap();
            let mut command = Command::new(program);
            let errors = certificate.path("error.log");
            Process::start(command.arg("-e").arg(errors).arg("-c").arg(file))
        });
        Self {
            process,
            certificate,
            ports,
        }
    }

    fn load(&self, port: usize, path: &str, words: &str) -> Report {
        let (listen, _) = PORTS[port];
        let scheme = if listen.starts_with("ssl") {
            "https"
        } else {
            "http"
        };
        let url = format!("{scheme}://127.0.0.1:{}{path}", self.ports[port]);
        let trusted = self.certificate.trusted();
        let mut arguments = vec![url.as_str()];
        if scheme == "https" {
            arguments.push(&trusted);
        }
        if listen.ends_with("http2") {
            arguments.extend(["--protocol", "http2"]);
        }
        arguments.extend(words.split_whitespace());
        load(&arguments)
    }

    /// Requests that it says that it has had, this one included.
    fn requests(&self) -> u64 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports[0])).unwrap();
        let request = b"GET /status HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let mut numbers = text
            .lines()
            .skip_while(|line| !line.starts_with("server accepts"));
        let numbers = numbers.nth(1).unwrap().split_whitespace();
        numbers.last().unwrap().parse().unwrap()
    }

    /// Ends it once all is answered; gives the lines of its log.
    fn stop(self) -> Vec<String> {
        self.process.signal("QUIT");
        let log = self.certificate.path("access.log");
        assert_eq!(self.process.finish(LONG).code, 0);
        let text = std::fs::read_to_string(log).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

/// Port, path, load, and the beginning of its lines in the log.
const LOADS: [(usize, &str, &str, &str); 13] = [
    (0, "/open", "-n 1000 --rate 10k/s -c 4", "HTTP/1.1 GET"),
    (0, "/closed", "-n 1000 -c 4 --threads 2", "HTTP/1.1 GET"),
    (
        0,
        "/late",
        "-n 300 -c 3 --connect-late --max-requests-per-connection 7",
        "HTTP/1.1 GET",
    ),
    (
        1,
        "/h2-open",
        "-n 1000 --rate 10k/s -c 2 --streams 5",
        "HTTP/2.0 GET",
    ),
    (
        1,
        "/h2-body",
        "-n 300 -c 2 --streams 5 --body payload:ascii:100KiB",
        "HTTP/2.0 POST",
    ),
    (
        1,
        "/h2-parted",
        "-n 300 -c 3 --streams 4 --max-requests-per-connection 7",
        "HTTP/2.0 GET",
    ),
    (
        2,
        "/tls",
        "-n 500 --rate 5k/s -c 4 -X PUT --body hello",
        "HTTP/1.1 PUT",
    ),
    (
        2,
        "/tls-parted",
        "-n 100 -c 2 --max-requests-per-connection 10",
        "HTTP/1.1 GET",
    ),
    (
        3,
        "/tls-h2",
        "-n 1000 -c 2 --streams 10 --threads 2",
        "HTTP/2.0 GET",
    ),
    (
        3,
        "/tls-h2-head",
        "-n 200 --rate 2k/s -c 2 --streams 2 -X HEAD",
        "HTTP/2.0 HEAD",
    ),
    // Connections that a server redirects go there.
    (4, "/kept-50", "-n 1000 -c 4", "HTTP/1.1 GET"),
    (5, "/h2-kept-50", "-n 1000 -c 4 --streams 8", "HTTP/2.0 GET"),
    (
        5,
        "/h2-kept-50-open",
        "-n 1000 -c 2 --streams 8 --rate 20k/s",
        "HTTP/2.0 GET",
    ),
];

#[test]
fn nginx_sees_what_is_sent_over_every_protocol() {
    let test = "nginx_sees_what_is_sent_over_every_protocol";
    let Some(program) = program_or_skip(test, "nginx") else {
        return;
    };
    let nginx = Nginx::start(&program);
    let mut sum = 0;
    let mut expected = Vec::new();
    for (port, path, words, line) in LOADS {
        let report = nginx.load(port, path, words);
        let requests = words.split_whitespace().nth(1).unwrap().parse().unwrap();
        report.assert_all_well(requests);
        sum += requests;
        expected.push((format!("{line} {path} 200"), requests));
    }
    assert_eq!(nginx.requests(), sum + 1);
    let log = nginx.stop();
    for (line, requests) in expected {
        let seen = log.iter().filter(|entry| **entry == line).count();
        assert_eq!(seen as u64, requests, "{line}");
    }
    assert_eq!(log.len() as u64, sum);
}
