//! Arguments of `stillwell ui`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

const NOTES: &str = "\
The printed address has a token, which is new at each start. Without it, requests are
refused. Commands run in the first DIR, and their results stay there.

Exit codes:
  0  ended by SIGINT or SIGTERM
  2  usage, or the address can be reached from other hosts
  3  could not run: port taken, or a folder that cannot be opened";

/// `stillwell ui`.
#[derive(Args, Debug)]
#[command(after_help = NOTES)]
pub(crate) struct UiArguments {
    /// Folders with results and experiments [default: the current folder]
    #[arg(value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// Address to listen on: HOST:PORT, or PORT on this host; port 0 is any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = listen)]
    pub(crate) listen: SocketAddr,
    /// Permit an address that other hosts can reach. Traffic is not encrypted: anyone who
    /// reads the token on the network can run commands on this host
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Store of a cluster: the folder that its controller and tasks share. The page Cluster
    /// shows its jobs; repeatable [default: the stores in DIR]
    #[arg(long = "store", value_name = "DIR")]
    pub(crate) stores: Vec<PathBuf>,
    /// Open the page in a browser
    #[arg(long)]
    pub(crate) open: bool,
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    if let Ok(port) = text.parse::<u16>() {
        return Ok(([127, 0, 0, 1], port).into());
    }
    let local = text.strip_prefix("localhost:");
    let local = local.map(|port| format!("127.0.0.1:{port}"));
    local
        .as_deref()
        .unwrap_or(text)
        .parse()
        .map_err(|_| "give a port, or an address such as 127.0.0.1:8000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_port_or_has_one() {
        for (text, expected) in [
            ("8000", Some("127.0.0.1:8000")),
            ("0", Some("127.0.0.1:0")),
            ("localhost:80", Some("127.0.0.1:80")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("127.0.0.1", None),
            ("example:80", None),
            ("70000", None),
        ] {
            let address = listen(text).ok().map(|address| address.to_string());
            assert_eq!(address.as_deref(), expected, "{text}");
        }
    }
}
