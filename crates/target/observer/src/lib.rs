//! Samples of the resources that the target, Stillwell and the host use, one beat at a time.
//!
//! [`start`] runs a sampler on its own thread. At each beat it reads the target's process tree and cgroup, the
//! host, Stillwell's threads and the counters of each worker. It adds the results of scrapes since the last
//! beat, and delivers everything as one [`SampleBatch`]. [`SamplerHandle::mark`] requests a beat between the
//! regular ones.
//!
//! [`describe_host`] records the host's properties; [`warnings`] lists the settings that make measurements
//! worse.
//!
//! Anything may be missing or changed when it is read. Unreadable values are not sampled, and never an error.
//! CPU times come from nanosecond clocks where available; each file of this crate states the resolution of its
//! source.
//!
//! ```
//! let page = stillwell_observer::parse_page(b"seen{kind=\"a } b\"} 4\nbroken{\n", None, 100);
//! assert_eq!(page.series[0].labels.value("kind"), Some("a } b"));
//! assert_eq!(page.malformed, 1);
//! ```

mod busiest;
mod carry;
mod cgroup;
mod cpu_clock;
mod expvar;
mod facts;
mod host;
mod instructions;
mod kernel;
mod profile;
mod prometheus;
mod sampler;
mod scrape;
mod self_usage;
mod target_tree;
mod text;

pub use busiest::{BusyProcess, ProcessSnapshot};
pub use cgroup::CgroupFiles;
pub use facts::{CpuFacts, HostFacts, IdleState, describe_host, load_host_warnings, warnings};
pub use instructions::instruction_counting;
pub use prometheus::{Page, PageSeries, parse_page};
pub use sampler::{SampleBatch, SamplerHandle, Watched, start};
pub use target_tree::{TargetProbe, TargetReader};
