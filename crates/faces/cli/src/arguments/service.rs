//! Arguments of `stillwell service` and `nighthawk_service`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

use super::ServeCertificate;

/// `stillwell service`.
#[derive(Args, Debug)]
pub(crate) struct ServiceArguments {
    /// Address to listen on; port 0 chooses a free port
    #[arg(short, long, value_name = "ADDR", default_value = "127.0.0.1:8443", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Role of the service
    #[arg(long, value_enum, default_value_t = ServiceRole::TrafficGeneratorService)]
    pub(crate) service: ServiceRole,
    /// File of requests to serve, one per line: URL, or METHOD URL
    #[arg(long, value_name = "FILE")]
    pub(crate) requests: Option<PathBuf>,
    /// Write the listening address to FILE, as ADDRESS:PORT
    #[arg(long, value_name = "FILE")]
    pub(crate) listener_address_file: Option<PathBuf>,
    /// Serve TLS with a new self-signed certificate
    #[arg(
        long,
        value_enum,
        value_name = "CERTIFICATE",
        conflicts_with = "certificate"
    )]
    pub(crate) tls: Option<ServeCertificate>,
    /// Serve TLS with the certificate chain in FILE, in PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// PEM file of the private key
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// Name or address in the self-signed certificate; repeatable [default: localhost,
    /// and the listening address]
    #[arg(long, value_name = "NAME", requires = "tls")]
    pub(crate) tls_name: Vec<String>,
    /// Write the self-signed certificate to FILE
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(crate) tls_certificate_out: Option<PathBuf>,
    /// Require client certificates of an authority in FILE, in PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca: Vec<PathBuf>,
    /// With --service distributor: connect to load services over TLS
    #[arg(long)]
    pub(crate) services_tls: bool,
    /// PEM file of additional trusted certificate authorities for load services;
    /// repeatable
    #[arg(long, value_name = "FILE", requires = "services_tls")]
    pub(crate) services_ca: Vec<PathBuf>,
    /// PEM file of the client certificate chain for load services
    #[arg(long, value_name = "FILE", requires_all = ["services_tls", "services_key"])]
    pub(crate) services_certificate: Option<PathBuf>,
    /// PEM file of its private key
    #[arg(long, value_name = "FILE", requires = "services_certificate")]
    pub(crate) services_key: Option<PathBuf>,
}

/// Roles of a service.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ServiceRole {
    /// Run loads, one at a time
    TrafficGeneratorService,
    /// Serve requests, for --request-source
    #[value(alias = "request-source")]
    DummyRequestSource,
    /// Run one load on several services, and merge their results
    Distributor,
}

/// Arguments of `nighthawk_service`: this program called by that name.
#[derive(Debug, Parser)]
#[command(name = "nighthawk_service", version)]
pub(crate) struct NighthawkServiceArguments {
    /// Address to listen on; port 0 chooses a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8443")]
    pub(crate) listen: String,
    /// Role of the service
    #[arg(long, value_enum, default_value_t = ServiceRole::TrafficGeneratorService)]
    pub(crate) service: ServiceRole,
    /// Write the listening address to FILE, as ADDRESS:PORT
    #[arg(long, value_name = "FILE")]
    pub(crate) listener_address_file: Option<PathBuf>,
}

/// Parses an address; the default port is 8443.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text
        .strip_prefix("localhost")
        .map_or_else(|| text.to_owned(), |rest| format!("127.0.0.1{rest}"));
    let bare = || text.parse().map(|ip| SocketAddr::new(ip, 8443)).ok();
    let address = text.parse().ok().or_else(bare);
    address.ok_or_else(|| format!("`{text}` is no ADDRESS:PORT, such as 127.0.0.1:8443"))
}
