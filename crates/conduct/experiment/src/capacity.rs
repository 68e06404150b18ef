//! Searches for capacity: makes probes one after the other until there is an answer.
//!
//! [`highest_rate`] searches the highest rate at which bounds hold, [`knee`] the load with the most
//! throughput for its latency. The caller defines a probe of a rate or a number of connections:
//! [`RunProbes`] makes runs of an experiment's baseline, [`probe_load`] loads. `verdict` judges each of them.

mod load;
mod run;
mod run_search;
mod search;

pub use load::{
    LoadProbe, LoadProbeError, load_at_connections, load_at_rate, measure_bounds, probe_length,
    probe_load,
};
pub use run::{RunProbeError, RunProbes};
pub use run_search::{
    ERRORS_BOUND, RunSearchError, check_connections, check_measurable, default_bounds, search_range,
};
pub use search::{CapacitySearched, KNEE_LOADS_MIN, SearchWatcher, highest_rate, knee, knee_loads};
