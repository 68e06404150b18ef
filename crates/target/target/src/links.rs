//! A separate network for a target, and links to it.
//!
//! ```text
//! generators                subject                 sinks
//!  10.64.1.1 ──── input ──── 10.64.1.2
//!                            10.64.2.1 ─── output ─── 10.64.2.2
//! ```
//!
//! A link is a pair of virtual Ethernet devices. A link with delays is a pair of tunnel devices whose packets
//! this process forwards, because not every kernel can delay. An nftables rule at the receiving end drops
//! packets; a token bucket at the sending end limits the rate.
//!
//! All three networks are unnamed namespaces: they are removed when their last holder ends.

mod carry;
mod device;
mod tools;

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use stillwell_plan::link::{
    INPUT_OURS, INPUT_TARGET, LinkChange, LinkPlan, NetworkPlan, OUTPUT_SINKS, OUTPUT_TARGET,
};
use stillwell_scope::{NetworkNamespace, Place, Scope};
use stillwell_units::human::counted;

use crate::namespace::{NetworkError, new_network};
use carry::Carrier;
use device::{End, in_network};
use tools::Tools;

/// The links of one run. Clones are the same links.
#[derive(Clone, Debug)]
pub struct Links {
    inner: Arc<LinksInner>,
}

#[derive(Debug)]
struct LinksInner {
    tools: Tools,
    target: NetworkNamespace,
    sinks: NetworkNamespace,
    /// Input and output.
    links: [Link; 2],
    now: Mutex<[LinkPlan; 2]>,
}

#[derive(Debug)]
struct Link {
    name: &'static str,
    ends: [End; 2],
    /// The end that goes down when the link is cut: the receiving end of its load. Senders get no response.
    receiver: usize,
    /// Carries its packets, if it is ever delayed.
    carrier: Option<Carrier>,
}

/// An error while creating or changing links.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// A program is missing.
    #[error(
        "cannot find the program `{program}`, which is needed for {purpose}: install it (Debian: \
         apt-get install {package})"
    )]
    Program {
        /// Its name.
        program: &'static str,
        /// Purpose of the program.
        purpose: &'static str,
        /// Debian's package.
        package: &'static str,
    },
    /// The target cannot get its own network.
    #[error("cannot give the target a separate network, which usually requires root")]
    Network(#[source] NetworkError),
    /// A program that makes or changes links was not content.
    #[error("cannot change links with `{program}`, which usually requires root: {output}")]
    Command {
        /// Its name.
        program: String,
        /// Its error output.
        output: String,
    },
    /// There are no tunnel devices.
    #[error(
        "cannot make a tunnel device (/dev/net/tun) for a link with a delay, which usually requires root"
    )]
    Tunnel {
        /// The operating system's error.
        source: io::Error,
    },
    /// No thread could be started, or it ended without a result.
    #[error("work in the network of a link")]
    Thread {
        /// The operating system's error.
        source: io::Error,
    },
}

impl Links {
    /// Creates networks for target and sinks, linked with `ours`, the generators' network.
    ///
    /// # Errors
    /// [`LinkError`]; nothing remains.
    pub fn lay(plan: &NetworkPlan, ours: &NetworkNamespace) -> Result<Self, LinkError> {
        let tools = Tools::find(&plan.input.ever.or(&plan.output.ever))?;
        let target = new_network().map_err(LinkError::Network)?;
        let sinks = new_network().map_err(LinkError::Network)?;
        let end = |network: &NetworkNamespace, device: &'static str, address: [u8; 4]| End {
            network: network.clone(),
            device,
            address: Ipv4Addr::from(address),
        };
        let input = Link::make(
            "input",
            [
                end(ours, "swi0", INPUT_OURS),
                end(&target, "swi1", INPUT_TARGET),
            ],
            &plan.input,
            &tools,
        )?;
        let output = Link::make(
            "output",
            [
                end(&target, "swo0", OUTPUT_TARGET),
                end(&sinks, "swo1", OUTPUT_SINKS),
            ],
            &plan.output,
            &tools,
        )?;
        let links = [input, output];
        let calm = |plan: &LinkPlan| LinkPlan {
            ever: plan.ever,
            ..LinkPlan::default()
        };
        for (link, plan) in links.iter().zip([&plan.input, &plan.output]) {
            link.become_like(&calm(plan), plan, &tools)?;
        }
        Ok(Self {
            inner: Arc::new(LinksInner {
                tools,
                target,
                sinks,
                links,
                now: Mutex::new([plan.input, plan.output]),
            }),
        })
    }

    /// The target's network.
    #[must_use]
    pub fn target(&self) -> &NetworkNamespace {
        &self.inner.target
    }

    /// The sinks' network.
    #[must_use]
    pub fn sinks(&self) -> &NetworkNamespace {
        &self.inner.sinks
    }

    /// Starts forwarding on delayed links, in workers of `scope`.
    ///
    /// # Errors
    /// The operating system's error if no thread can be started.
    pub fn start(&self, scope: &mut Scope, place: &Place) -> io::Result<()> {
        for link in &self.inner.links {
            if let Some(carrier) = &link.carrier {
                carrier.start(link.name, scope, place)?;
            }
        }
        Ok(())
    }

    /// Changes both links; takes some hundredths of a second.
    ///
    /// # Errors
    /// [`LinkError`]; a link may be partly changed.
    pub fn change(&self, input: &LinkChange, output: &LinkChange) -> Result<(), LinkError> {
        // One change at a time: steps arrive on several threads.
        let mut now = self
            .inner
            .now
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for ((link, now), change) in self
            .inner
            .links
            .iter()
            .zip(now.iter_mut())
            .zip([input, output])
        {
            let next = now.changed(change);
            link.become_like(now, &next, &self.inner.tools)?;
            *now = next;
        }
        Ok(())
    }

    /// Returns a sentence for each link with packet loss: the packets that were dropped on purpose.
    #[must_use]
    pub fn losses(&self) -> Vec<String> {
        let now = self
            .inner
            .now
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let links = self.inner.links.iter().zip(now.iter());
        links
            .flat_map(|(link, plan)| link.losses(plan, &self.inner.tools))
            .collect()
    }
}

impl Link {
    fn make(
        name: &'static str,
        ends: [End; 2],
        plan: &LinkPlan,
        tools: &Tools,
    ) -> Result<Self, LinkError> {
        let carrier = if plan.ever.delay {
            let [first, second] = &ends;
            Some(Carrier::new(first.tunnel()?, second.tunnel()?))
        } else {
            let [first, second] = &ends;
            let (near, far, path) = (first.device, second.device, second.network.path());
            let pair = format!("link add name {near} type veth peer name {far} netns {path}\n");
            first.run(tools.ip(), &["-batch", "-"], pair)?;
            None
        };
        for end in &ends {
            end.raise(tools, plan)?;
        }
        Ok(Self {
            name,
            ends,
            receiver: 1,
            carrier,
        })
    }

    /// Changes the link from `now` to `next`.
    fn become_like(&self, now: &LinkPlan, next: &LinkPlan, tools: &Tools) -> Result<(), LinkError> {
        for end in &self.ends {
            if now.loss_per_million != next.loss_per_million {
                end.lose(tools, next.loss_per_million)?;
            }
            if now.bits_per_second != next.bits_per_second {
                end.limit(tools, next.bits_per_second)?;
            }
        }
        if let (Some(carrier), true) = (&self.carrier, now.delay != next.delay) {
            carrier.delay(next.delay);
        }
        if now.is_cut != next.is_cut {
            self.ends[self.receiver].cut(tools, next.is_cut)?;
        }
        Ok(())
    }

    fn losses(&self, plan: &LinkPlan, tools: &Tools) -> Vec<String> {
        let mut sentences = Vec::new();
        if plan.ever.loss {
            let [back, forth] = self.ends.each_ref().map(|end| end.lost(tools));
            if let (Ok(back), Ok(forth)) = (back, forth) {
                let name = self.name;
                sentences.push(format!(
                    "link {name} lost {} in the direction of the load and {back} in the other direction",
                    counted(forth, "packet", "packets")
                ));
            }
        }
        let overflowed = self.carrier.as_ref().map_or(0, Carrier::overflowed);
        if overflowed > 0 {
            let name = self.name;
            sentences.push(format!(
                "link {name} lost {} because its queue was full",
                counted(overflowed, "packet", "packets")
            ));
        }
        sentences
    }
}

impl End {
    /// A tunnel device here, by its descriptor.
    fn tunnel(&self) -> Result<std::os::fd::OwnedFd, LinkError> {
        let name = std::ffi::CString::new(self.device).unwrap_or_default();
        in_network(&self.network, move || {
            crate::kernel::open_tun(&name).map_err(|source| LinkError::Tunnel { source })
        })
    }

    /// Runs a program here, with `input` to read.
    fn run(&self, program: &Path, arguments: &[&str], input: String) -> Result<String, LinkError> {
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect();
        let program = program.to_path_buf();
        in_network(&self.network, move || {
            tools::run(&program, &arguments, input.as_bytes())
        })
    }
}
