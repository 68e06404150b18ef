//! What `stillwell service` takes, and `nighthawk_service`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

use super::ServeCertificate;

/// `stillwell service`.
#[derive(Args, Debug)]
pub(crate) struct ServiceArguments {
    /// Where it listens, port 0 for one that is free
    #[arg(short, long, value_name = "ADDR", default_value = "127.0.0.1:8443", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// What it does
    #[arg(long, value_enum, default_value_t = ServiceRole::TrafficGeneratorService)]
    pub(crate) service: ServiceRole,
    /// Hand these requests out, one a line: a URL, or a method and a URL
    #[arg(long, value_name = "FILE")]
    pub(crate) requests: Option<PathBuf>,
    /// Write where it listens to FILE, as ADDRESS:PORT
    #[arg(long, value_name = "FILE")]
    pub(crate) listener_address_file: Option<PathBuf>,
    /// Speak TLS with a certificate that is made now and signed by nobody else
    #[arg(
        long,
        value_enum,
        value_name = "CERTIFICATE",
        conflicts_with = "certificate"
    )]
    pub(crate) tls: Option<ServeCertificate>,
    /// Speak TLS with the certificate in FILE, in PEM, its own first
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// The certificate's key, in PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// Names and addresses in the certificate that is made; repeatable
    /// [default: localhost, and where it listens]
    #[arg(long, value_name = "NAME", requires = "tls")]
    pub(crate) tls_name: Vec<String>,
    /// Write the certificate that is made to FILE, so that clients can trust it
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(crate) tls_certificate_out: Option<PathBuf>,
    /// Let only those in whose certificate comes from an authority in FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca: Vec<PathBuf>,
    /// As a distributor, speak TLS with the services that make the load
    #[arg(long)]
    pub(crate) services_tls: bool,
    /// Take certificates of services that come from an authority in FILE, too;
    /// repeatable
    #[arg(long, value_name = "FILE", requires = "services_tls")]
    pub(crate) services_ca: Vec<PathBuf>,
    /// The certificate that is shown to services, in PEM, its own first
    #[arg(long, value_name = "FILE", requires_all = ["services_tls", "services_key"])]
    pub(crate) services_certificate: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE", requires = "services_certificate")]
    pub(crate) services_key: Option<PathBuf>,
}

/// What a service does.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ServiceRole {
    /// Makes loads, one at a time
    TrafficGeneratorService,
    /// Hands requests out, for --request-source
    #[value(alias = "request-source")]
    DummyRequestSource,
    /// Has other services make one load, and puts their results together
    Distributor,
}

/// What `nighthawk_service` takes: this program called by that name.
#[derive(Debug, Parser)]
#[command(name = "nighthawk_service", version)]
pub(crate) struct NighthawkServiceArguments {
    /// Where it listens, port 0 for one that is free; on loopback unless told
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8443")]
    pub(crate) listen: String,
    /// What it does
    #[arg(long, value_enum, default_value_t = ServiceRole::TrafficGeneratorService)]
    pub(crate) service: ServiceRole,
    /// Write where it listens to FILE, as ADDRESS:PORT
    #[arg(long, value_name = "FILE")]
    pub(crate) listener_address_file: Option<PathBuf>,
}

/// An address with its port; without one, 8443.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text
        .strip_prefix("localhost")
        .map_or_else(|| text.to_owned(), |rest| format!("127.0.0.1{rest}"));
    let bare = || text.parse().map(|ip| SocketAddr::new(ip, 8443)).ok();
    let address = text.parse().ok().or_else(bare);
    address.ok_or_else(|| format!("`{text}` is no ADDRESS:PORT, such as 127.0.0.1:8443"))
}
