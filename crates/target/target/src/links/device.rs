//! One end of a link.

use std::io;
use std::net::Ipv4Addr;
use std::sync::mpsc::sync_channel;

use stillwell_plan::link::LinkPlan;
use stillwell_scope::{NetworkNamespace, Place, Scope, Token};
use stillwell_units::Nanos;

use super::LinkError;
use super::tools::Tools;

/// Time limit for the end of a thread that has returned its result.
const END_MAX: Nanos = Nanos::from_secs(5);

/// Length of a tunnel device's queue; the kernel drops more.
const TUNNEL_QUEUE: u32 = 10_000;

/// Fraction of a second whose bytes a rate passes at once. There is a minimum: a token bucket smaller than a
/// packet passes nothing.
const BURST_SECONDS: u64 = 100;
const BURST_BYTES_MIN: u64 = 16 << 10;

/// Number of packets that a loss is a share of.
const MILLION: u32 = 1_000_000;

/// A device and its network.
#[derive(Debug)]
pub(super) struct End {
    pub(super) network: NetworkNamespace,
    pub(super) device: &'static str,
    pub(super) address: Ipv4Addr,
}

impl End {
    /// Gives the device its address and brings it up, ready for what ever happens to
    /// its link.
    pub(super) fn raise(&self, tools: &Tools, plan: &LinkPlan) -> Result<(), LinkError> {
        let Self {
            device, address, ..
        } = self;
        let mut lines = format!("address add {address}/30 dev {device}\n");
        if plan.ever.delay {
            lines.push_str(&format!(
                "link set dev {device} txqueuelen {TUNNEL_QUEUE}\n"
            ));
        }
        if plan.ever.loss {
            // Otherwise the kernel merges TCP packets, and one lost packet is many.
            lines.push_str(&format!("link set dev {device} gso_max_segs 1\n"));
        }
        lines.push_str(&format!("link set dev {device} up\n"));
        self.run(tools.ip(), &["-batch", "-"], lines)?;
        if let (true, Some(nft)) = (plan.ever.loss, tools.nft()) {
            let rules = format!(
                "add table inet stillwell\nadd counter inet stillwell {device}\n\
                 add chain inet stillwell {device} {{ type filter hook input priority -300; }}\n"
            );
            self.run(nft, &["-f", "-"], rules)?;
        }
        Ok(())
    }

    /// Drops `per_million` of each million received packets from now on.
    pub(super) fn lose(&self, tools: &Tools, per_million: u32) -> Result<(), LinkError> {
        let Some(nft) = tools.nft() else {
            return Ok(());
        };
        let rules = loss_rules(self.device, per_million);
        self.run(nft, &["-f", "-"], rules).map(drop)
    }

    /// Number of packets that were dropped here.
    pub(super) fn lost(&self, tools: &Tools) -> Result<u64, LinkError> {
        let Some(nft) = tools.nft() else {
            return Ok(0);
        };
        let arguments = ["list", "counter", "inet", "stillwell", self.device];
        let output = self.run(nft, &arguments, String::new())?;
        let mut words = output.split_ascii_whitespace();
        words.find(|word| *word == "packets");
        let count = words.next().and_then(|count| count.parse().ok());
        Ok(count.unwrap_or(0))
    }

    /// Limits the sending rate from now on; 0 for no limit.
    pub(super) fn limit(&self, tools: &Tools, bits_per_second: u64) -> Result<(), LinkError> {
        let Some(tc) = tools.tc() else {
            return Ok(());
        };
        let device = self.device;
        if bits_per_second == 0 {
            let arguments = ["qdisc", "delete", "dev", device, "root"];
            // There may be none.
            drop(self.run(tc, &arguments, String::new()));
            return Ok(());
        }
        let burst = (bits_per_second / 8 / BURST_SECONDS).max(BURST_BYTES_MIN);
        let (rate, burst) = (format!("{bits_per_second}bit"), burst.to_string());
        let arguments = [
            "qdisc", "replace", "dev", device, "root", "tbf", "rate", &rate, "burst", &burst,
            "latency", "50ms",
        ];
        self.run(tc, &arguments, String::new()).map(drop)
    }

    /// Takes the device down or brings it up.
    pub(super) fn cut(&self, tools: &Tools, is_cut: bool) -> Result<(), LinkError> {
        let state = if is_cut { "down" } else { "up" };
        let arguments = ["link", "set", "dev", self.device, state];
        self.run(tools.ip(), &arguments, String::new()).map(drop)
    }
}

/// Returns the input of `nft` after which `device` drops `per_million` of each million received packets.
fn loss_rules(device: &str, per_million: u32) -> String {
    let flush = format!("flush chain inet stillwell {device}\n");
    let share = match per_million {
        0 => return flush,
        1..MILLION => format!("numgen random mod {MILLION} < {per_million} "),
        // `nft` refuses a comparison that is always true.
        MILLION.. => String::new(),
    };
    format!(
        "{flush}add rule inet stillwell {device} iifname \"{device}\" {share}\
         counter name \"{device}\" drop\n"
    )
}

/// Does `work` on a thread in `network`, and waits for that.
pub(super) fn in_network<T: Send + 'static>(
    network: &NetworkNamespace,
    work: impl FnOnce() -> Result<T, LinkError> + Send + 'static,
) -> Result<T, LinkError> {
    let (sender, receiver) = sync_channel(1);
    let mut scope = Scope::new(&Token::new());
    let place = Place {
        cpus: None,
        network: Some(network.clone()),
    };
    let started = scope.thread(place, "link", move |_| {
        // The receiver waits for it.
        drop(sender.send(work()));
        Ok(())
    });
    started.map_err(|source| LinkError::Thread { source })?;
    let result = receiver.recv().map_err(|_| LinkError::Thread {
        source: io::Error::other("the thread ended without a result"),
    });
    drop(scope.close(END_MAX));
    result?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_number_chooses_packets_only_where_some_are_lost_and_some_are_not() {
        let drop_rule = |share: &str| {
            format!("add rule inet stillwell a iifname \"a\" {share}counter name \"a\" drop\n")
        };
        let table = [
            (0, String::new()),
            (1, drop_rule("numgen random mod 1000000 < 1 ")),
            (999_999, drop_rule("numgen random mod 1000000 < 999999 ")),
            (1_000_000, drop_rule("")),
        ];
        for (per_million, rule) in table {
            let expected = format!("flush chain inet stillwell a\n{rule}");
            assert_eq!(loss_rules("a", per_million), expected, "{per_million}");
        }
    }
}
