//! The proxy through which a load goes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use stillwell_plan::TunnelProtocol;

use super::Header;

/// Through whom targets are reached.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Tunnel")]
pub(crate) struct LoadTunnelArguments {
    /// Reach targets through the proxy at URL, which is asked by CONNECT: each
    /// connection has one of its own with it, over TLS where the URL is https://
    #[arg(long, value_name = "URL")]
    pub(crate) tunnel_uri: Option<String>,
    /// What is spoken with the proxy [default: http1]
    #[arg(long, value_enum, requires = "tunnel_uri")]
    pub(crate) tunnel_protocol: Option<TunnelProtocolName>,
    /// A header of each CONNECT, such as `proxy-authorization: Basic …`; repeatable
    #[arg(long, value_name = "HEADER", requires = "tunnel_uri")]
    pub(crate) tunnel_header: Vec<Header>,
    /// Take any certificate of the proxy
    #[arg(long, requires = "tunnel_uri", conflicts_with = "tunnel_ca")]
    pub(crate) tunnel_insecure: bool,
    /// Take a certificate of the proxy that comes from an authority in FILE, in PEM,
    /// too; repeatable
    #[arg(long, value_name = "FILE", requires = "tunnel_uri")]
    pub(crate) tunnel_ca: Vec<PathBuf>,
}

/// What is spoken with a proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum TunnelProtocolName {
    /// HTTP/1.1.
    #[value(alias = "h1")]
    Http1,
    /// HTTP/2.
    #[value(alias = "h2")]
    Http2,
    /// HTTP/3, with a proxy at https://.
    #[value(alias = "h3")]
    Http3,
}

impl From<TunnelProtocolName> for TunnelProtocol {
    fn from(name: TunnelProtocolName) -> Self {
        match name {
            TunnelProtocolName::Http1 => Self::Http1,
            TunnelProtocolName::Http2 => Self::Http2,
            TunnelProtocolName::Http3 => Self::Http3,
        }
    }
}
