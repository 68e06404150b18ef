//! The server that clients are measured against: nginx with one worker on the
//! receiver's CPU, which answers at once with ten bytes.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use stillwell_testkit::{find_program, free_port, wait_until};
use stillwell_units::Nanos;

use crate::{Question, RECEIVER_CPU};

/// Maximum time until it listens.
const START_MAX: Duration = Duration::from_secs(10);

/// A running nginx, which ends with this.
#[derive(Debug)]
pub struct Nginx {
    process: Child,
    worker: u32,
    port: u16,
    folder: PathBuf,
}

impl Nginx {
    /// Returns true if nginx is installed.
    #[must_use]
    pub fn is_there() -> bool {
        find_program("nginx").is_some()
    }

    /// Starts a server with the protocol of `question`.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start(question: &Question) -> anyhow::Result<Self> {
        let port = free_port();
        let folder = std::env::temp_dir().join(format!("stillwell-bench-{port}"));
        std::fs::create_dir_all(&folder)?;
        if question.has_tls {
            write_identity(&folder)?;
        }
        let file = folder.join("nginx.conf");
        std::fs::write(&file, configuration(question, port, &folder))?;
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&file).stderr(Stdio::null());
        let process = command.spawn().context("start nginx")?;
        let mut server = Self {
            process,
            worker: 0,
            port,
            folder,
        };
        let listens = wait_until(START_MAX, || {
            server.worker = server.find_worker().unwrap_or(0);
            server.worker > 0 && TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        anyhow::ensure!(listens, "nginx does not listen on port {port}");
        Ok(server)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// CPU time of its worker so far.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub fn cpu(&self) -> anyhow::Result<Nanos> {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.worker))?;
        let first = text.split_whitespace().next();
        let first = first.context("read the scheduler's figures of nginx")?;
        Ok(Nanos::new(first.parse()?))
    }

    fn find_worker(&self) -> Option<u32> {
        let main = self.process.id();
        let children = format!("/proc/{main}/task/{main}/children");
        let text = std::fs::read_to_string(children).ok()?;
        text.split_whitespace().next()?.parse().ok()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its worker ends with it on this signal, so its folder is no longer in use.
        let kill = Command::new("kill")
            .arg(self.process.id().to_string())
            .status();
        if kill.is_ok() {
            drop(self.process.wait());
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

fn configuration(question: &Question, port: u16, folder: &Path) -> String {
    let place = folder.display();
    let version = if question.is_http2 { "http2" } else { "" };
    let tls = if question.has_tls { "ssl" } else { "" };
    let identity = if question.has_tls {
        format!("ssl_certificate {place}/certificate.pem; ssl_certificate_key {place}/key.pem;")
    } else {
        String::new()
    };
    let affinity = format!("{:b}", 1_u32 << RECEIVER_CPU);
    format!(
        "worker_processes 1; worker_cpu_affinity {affinity}; daemon off;\n\
         pid {place}/pid; error_log {place}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; keepalive_requests 1000000000;\n\
         client_body_temp_path {place}; proxy_temp_path {place};\n\
         fastcgi_temp_path {place}; uwsgi_temp_path {place}; scgi_temp_path {place};\n\
         server {{ listen 127.0.0.1:{port} {tls} {version}; {identity}\n\
         location / {{ return 200 0123456789; }} }} }}\n"
    )
}

fn write_identity(folder: &Path) -> anyhow::Result<()> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
    std::fs::write(folder.join("certificate.pem"), made.cert.pem())?;
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem())?;
    Ok(())
}
