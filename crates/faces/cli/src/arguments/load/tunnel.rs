//! Arguments of tunnels through a proxy.

use std::path::PathBuf;

use clap::Args;

use super::{Header, ProtocolName};

/// Proxy options.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Tunnel")]
pub(crate) struct LoadTunnelArguments {
    /// Connect to targets through the proxy at URL with CONNECT. Each connection opens
    /// its own tunnel; https:// connects to the proxy over TLS
    #[arg(long, value_name = "URL")]
    pub(crate) tunnel_uri: Option<String>,
    /// Protocol of the connection to the proxy [default: http1]
    #[arg(long, value_enum, value_name = "PROTOCOL", requires = "tunnel_uri")]
    pub(crate) tunnel_protocol: Option<ProtocolName>,
    /// Header of each CONNECT request, such as `proxy-authorization: Basic …`; repeatable
    #[arg(long, value_name = "HEADER", requires = "tunnel_uri")]
    pub(crate) tunnel_header: Vec<Header>,
    /// Accept any certificate of the proxy, without verification
    #[arg(long, requires = "tunnel_uri", conflicts_with = "tunnel_ca")]
    pub(crate) tunnel_insecure: bool,
    /// PEM file of additional trusted certificate authorities for the proxy, or `system`:
    /// those of this host; repeatable
    #[arg(long, value_name = "FILE", requires = "tunnel_uri")]
    pub(crate) tunnel_ca: Vec<PathBuf>,
}
