//! Arguments of `stillwell service` and `nighthawk_service`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use stillwell_nighthawk::service::TargetPattern;
use stillwell_units::Nanos;

use super::ServeCertificate;
use super::count::within;

/// `stillwell service`.
#[derive(Args, Debug)]
pub(crate) struct ServiceArguments {
    /// Address to listen on; port 0 chooses a free port
    #[arg(short, long, value_name = "ADDR", default_value = "127.0.0.1:8443", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Role of the service
    #[arg(long, value_enum, default_value_t = ServiceRole::TrafficGeneratorService)]
    pub(crate) service: ServiceRole,
    /// File of requests to serve, one per line: URL, METHOD URL, or METHOD URL BODY
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
    /// PEM file of additional trusted certificate authorities for load services, or
    /// `system`: those of this host; repeatable
    #[arg(long, value_name = "FILE", requires = "services_tls")]
    pub(crate) services_ca: Vec<PathBuf>,
    /// PEM file of the client certificate chain for load services
    #[arg(long, value_name = "FILE", requires_all = ["services_tls", "services_key"])]
    pub(crate) services_certificate: Option<PathBuf>,
    /// PEM file of its private key
    #[arg(long, value_name = "FILE", requires = "services_certificate")]
    pub(crate) services_key: Option<PathBuf>,
    /// File of the token for calls to load services
    #[arg(long, value_name = "FILE")]
    pub(crate) services_token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) access: AccessArguments,
}

/// Rights of callers.
#[derive(Args, Debug)]
pub(crate) struct AccessArguments {
    /// Require the token in FILE, as `authorization: Bearer TOKEN` [default: the
    /// environment variable STILLWELL_SERVICE_TOKEN, if set]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Serve callers from other hosts without a token or client certificates
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Allow load to `HOST[:PORT]`; repeatable. HOST is a name, *.DOMAIN, an address, a
    /// network or *; not for a request source [default: any target for callers on this
    /// host, none for others]
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow_target: Vec<TargetPattern>,
    /// Let requests name files below DIR; only for the load service [default: no files]
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_files: Option<PathBuf>,
    /// Refuse loads of more than RATE requests per second; only for the load service
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) max_rate: Option<f64>,
    /// Refuse loads that last longer than TIME, the wait for the scheduled start included, or have no
    /// duration; only for the load service
    #[arg(long, value_name = "TIME")]
    pub(crate) max_duration: Option<Nanos>,
    /// Refuse loads with more than N connections; only for the load service
    #[arg(long, value_name = "N", value_parser = within::<u32>(1..))]
    pub(crate) max_connections: Option<u32>,
}

/// Parses a rate above zero, in requests per second.
fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number"))?;
    if rate.is_finite() && rate > 0.0 {
        return Ok(rate);
    }
    Err("it must be above zero".to_owned())
}

/// Roles of a service.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ServiceRole {
    /// Run loads, one at a time
    TrafficGeneratorService,
    /// Serve requests, for --request-source; also named request-source
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
    #[command(flatten)]
    pub(crate) access: AccessArguments,
}

/// Parses an address; the default port is 8443.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text
        .strip_prefix("localhost")
        .map_or_else(|| text.to_owned(), |rest| format!("127.0.0.1{rest}"));
    let bare = || text.parse().map(|ip| SocketAddr::new(ip, 8443)).ok();
    let address = text.parse().ok().or_else(bare);
    address.ok_or_else(|| format!("`{text}` is not an address with a port, such as 127.0.0.1:8443"))
}
