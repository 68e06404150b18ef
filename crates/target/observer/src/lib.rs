//! Samples of what the subject, our workers and the host use, one beat at a
//! time.
//!
//! [`start`] runs a sampler on a thread of its own. Each beat it reads the
//! subject's process tree and cgroup, the host, our own threads and every
//! worker's shard, adds what was scraped from the subject's own metrics pages
//! since the last beat, and delivers all of it as one [`Beaten`].
//! [`SamplerHandle::mark`] asks for a beat between the regular ones.
//!
//! [`describe_host`] takes down what a reader of results must know of the host,
//! and [`warnings`] says what of it makes measurements worse.
//!
//! Everything read here may be missing or changed by the time it is read. What
//! cannot be read is not sampled; nothing here fails because of it. CPU times
//! come from nanosecond clocks wherever there is one; each file of this crate
//! says what its source's resolution is.
//!
//! ```
//! let page = stillwell_observer::parse_page(b"seen{kind=\"a } b\"} 4\nbroken{\n", 100);
//! assert_eq!(page.series[0].labels.value("kind"), Some("a } b"));
//! assert_eq!(page.malformed, 1);
//! ```

mod carry;
mod cgroup;
mod cpu_clock;
mod expvar;
mod facts;
mod host;
mod kernel;
mod own;
mod profile;
mod prometheus;
mod sampler;
mod scrape;
mod subject;
mod text;

pub use cgroup::CgroupFiles;
pub use facts::{CpuFacts, HostFacts, IdleState, describe_host, warnings};
pub use prometheus::{Page, PageSeries, parse_page};
pub use sampler::{Beaten, SamplerHandle, Watched, start};
pub use subject::{SubjectProbe, SubjectReader};
