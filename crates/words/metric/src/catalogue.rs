//! Every metric of our own, in the order in which data travels: name, unit, kind, meaning.
//!
//! Names follow lading where lading has one. Series scraped from the target
//! are named by [`crate::SeriesName::scraped`].

macro_rules! catalogue {
    ($($constant:ident = $name:literal, $unit:ident, $kind:ident, $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $constant: Metric = Metric {
                name: $name,
                unit: Unit::$unit,
                kind: Kind::$kind,
                meaning: $meaning,
            };
        )*

        /// All of them, in this order.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

pub mod load;

/// One kind of thing that is recorded.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Metric {
    /// The name in captures, files and reports.
    pub name: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Behaviour of the values.
    pub kind: Kind,
    /// One sentence for readers.
    pub meaning: &'static str,
}

/// Unit of a metric.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things: events, requests, processes.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// A share of one.
    Ratio,
    /// Unit of a series that the target exposes.
    Unknown,
}

impl Unit {
    /// The unit in captures and reports.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            Self::Count => "1",
            Self::Nanoseconds => "ns",
            Self::Ratio => "ratio",
            Self::Unknown => "",
        }
    }
}

/// Behaviour of a metric's values.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// A total since the part started; it never falls.
    Counter,
    /// A value of the moment.
    Gauge,
    /// The values of one interval.
    Histogram,
}

impl Kind {
    /// The word in captures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }

    /// The kind with this word in captures.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = [Self::Counter, Self::Gauge, Self::Histogram].into_iter();
        all.find(|kind| kind.name() == name)
    }
}

catalogue! {
    // Generators, labelled component=generator, component_name, id, worker.
    BYTES_WRITTEN = "bytes_written", Bytes, Counter, "Payload bytes that generators handed to the kernel.";
    EVENTS_WRITTEN = "events_written", Count, Counter, "Whole events that generators handed to the kernel.";
    BLOCKS_WRITTEN = "blocks_written", Count, Counter, "Whole blocks that generators handed to the kernel.";
    UNITS_WRITTEN = "data_points_transmitted", Count, Counter, "Log records, metrics and spans in whole blocks, if an event holds several.";
    REQUESTED_UNITS = "requested_units", Count, Counter, "Units that the schedule requested from a generator; absent at full speed.";
    SENT_UNITS = "sent_units", Count, Counter, "Units of the schedule that a generator sent.";
    REQUESTS_SENT = "requests_sent", Count, Counter, "Requests, datagrams or writes begun.";
    OUTCOMES = "outcomes", Count, Counter, "How requests, datagrams and connections ended, labelled outcome.";
    CONNECTIONS_OPENED = "connections_opened", Count, Counter, "Connections that a generator opened.";
    LATENESS = "lateness", Nanoseconds, Histogram, "Sent time minus intended time of each send.";
    RESPONSE_TIME = "response_time", Nanoseconds, Histogram, "End of the response minus the intended time of its request.";
    SERVICE_TIME = "service_time", Nanoseconds, Histogram, "End of the response minus the sent time of its request.";
    STATUSES = "statuses", Count, Counter, "Responses by HTTP status code, labelled status.";
    ROUTE_OUTCOMES = "route_outcomes", Count, Counter, "How the requests of a route ended, labelled route and outcome.";
    ROUTE_STATUSES = "route_statuses", Count, Counter, "Responses of a route by HTTP status code, labelled route and status.";
    ROUTE_RESPONSE_TIME = "route_response_time", Nanoseconds, Histogram, "Response time of the requests of a route, labelled route.";
    ROUTE_SERVICE_TIME = "route_service_time", Nanoseconds, Histogram, "Service time of the requests of a route, labelled route.";
    ROUTE_FIRST_BYTE_TIME = "route_first_byte_time", Nanoseconds, Histogram, "First byte time of the requests of a route, labelled route.";
    BLOCKS_AGAIN = "blocks_again", Count, Counter, "Blocks that a generator sent again because no new block was ready.";
    EVENTS_ACKNOWLEDGED = "events_acknowledged", Count, Counter, "Events that the receiver acknowledged.";
    EVENTS_REFUSED = "events_refused", Count, Counter, "Events that the receiver refused permanently.";
    REQUESTS_AGAIN = "requests_again", Count, Counter, "Requests that were resent.";
    ACKS_RECEIVED = "ack_ids_acked", Count, Counter, "Requests that the receiver acknowledged.";
    ACKS_LOST = "ack_ids_dropped", Count, Counter, "Requests that the receiver accepted and did not acknowledge in time.";
    ACKS_PENDING = "ack_ids_pending", Count, Gauge, "Requests that the receiver accepted and that are neither acknowledged nor lost yet.";
    ACK_QUESTIONS_OK = "ack_status_request_ok", Count, Counter, "Polls for acknowledgements that were answered.";
    ACK_QUESTIONS_LATE = "ack_request_timeout", Count, Counter, "Polls for acknowledgements that were not answered within 30 s.";
    RESPONSE_BYTES = "response_bytes", Bytes, Counter, "Bytes of the messages that answered gRPC calls.";
    REQUESTS_MAX = "maximum_requests", Count, Gauge, "Maximum number of requests in flight of a Splunk HEC generator.";
    ACK_QUESTIONS_FAILED = "ack_status_request_failure", Count, Counter, "Polls for acknowledgements that failed.";
    ACTIVE_TIME = "active_time", Nanoseconds, Counter, "Time in which the load was sent to this run; absent unless variants take turns.";
    // Load, besides those above, as exported to stats sinks during the load.
    REQUESTS_SCHEDULED = "requests_scheduled", Count, Counter, "Requests that were due by the schedule; absent without a schedule.";
    WARMUP_OUTCOMES = "warmup_outcomes", Count, Counter, "How requests of the warm-up ended, labelled outcome.";
    CONNECT_FAILURES = "connect_failures", Count, Counter, "Attempts to connect that failed.";
    CONNECTIONS_ENDED = "connections_ended", Count, Counter, "Connections that the peer ended between two requests.";
    CONNECTIONS_USED_UP = "connections_used_up", Count, Counter, "Connections that reached their maximum number of requests.";
    HANDSHAKES_RESUMED = "handshakes_resumed", Count, Counter, "Handshakes that resumed an earlier session.";
    WIRE_SENT = "wire_sent_bytes", Bytes, Counter, "Bytes written to connections, heads included.";
    WIRE_RECEIVED = "wire_received_bytes", Bytes, Counter, "Bytes read from connections, heads included.";
    FIRST_BYTE_TIME = "first_byte_time", Nanoseconds, Histogram, "First byte of the response minus the sent time of its request.";
    GENERATOR_LATENESS = "generator_lateness", Nanoseconds, Histogram, "Sent time minus intended time where a connection was free.";
    FAILED_TIME = "failed_time", Nanoseconds, Histogram, "End of a request without a response minus its intended time, labelled outcome.";
    CONNECT_TIME = "connect_time", Nanoseconds, Histogram, "Time to open a connection.";
    HANDSHAKE_TIME = "handshake_time", Nanoseconds, Histogram, "Duration of the TLS handshake.";
    SPANS_SAMPLED = "spans_sampled", Count, Counter, "Requests that were sampled for a span.";
    SPANS_DROPPED = "spans_dropped", Count, Counter, "Spans that were dropped because the exporter's queue was full.";
    // Workers of both kinds.
    WORKER_IDLE = "worker_idle", Nanoseconds, Counter, "Time in which a worker waited for its schedule.";
    WORKER_BLOCKED = "worker_blocked", Nanoseconds, Counter, "Time in which a worker waited for its peer.";
    WORKER_RUNNING = "worker_running", Nanoseconds, Counter, "Time in which a worker was running.";
    WORKER_LATE = "worker_late", Nanoseconds, Counter, "Time in which a worker had something to send and did not run.";
    WORKER_CPU = "worker_cpu", Nanoseconds, Counter, "CPU time of a thread of Stillwell.";
    WORKER_RUN_DELAY = "worker_run_delay", Nanoseconds, Counter, "Time in which a thread of Stillwell was runnable and had no CPU.";
    // The target, where steps of the timeline restart it.
    TARGET_RESTARTS = "target_restarts", Count, Counter, "Restarts by a step of the timeline after which the target was ready again.";
    TARGET_RECOVERY = "target_recovery", Nanoseconds, Gauge, "Longest time from the step that ended the target to its readiness.";
    TARGET_REDELIVERY = "target_redelivery", Nanoseconds, Gauge, "Longest time from the step that ended the target to output at a sink.";
    // Sinks, labelled component=sink, component_name, id, worker.
    BYTES_RECEIVED = "bytes_received", Bytes, Counter, "Payload bytes that sinks received, as they came over the wire.";
    TOTAL_BYTES_RECEIVED = "total_bytes_received", Bytes, Counter, "Payload bytes that all sinks received.";
    EVENTS_RECEIVED = "events_received", Count, Counter, "Events that sinks received.";
    DECODED_BYTES_RECEIVED = "decoded_bytes_received", Bytes, Counter, "Payload bytes that sinks received, after decompression.";
    MESSAGES_RECEIVED = "messages_received", Count, Counter, "Datagrams or requests that sinks received.";
    CONNECTIONS_ACCEPTED = "connections_accepted", Count, Counter, "Connections that sinks accepted.";
    CONNECTIONS_MAX = "connections_max", Count, Gauge, "Maximum number of connections that a sink serves at once; more connections wait.";
    CONNECTIONS_OPEN = "connections_open", Count, Gauge, "Connections of sinks that are open.";
    SINK_ERRORS = "sink_errors", Count, Counter, "Connections that a sink closed because of invalid input.";
    EVENTS_SERVED = "events_served", Count, Counter, "Events in the responses of sinks: messages handed out, samples scraped.";
    DATAGRAMS_DROPPED = "datagrams_dropped", Count, Counter, "Datagrams that the kernel dropped because a sink's receive buffer was full.";
    BODIES_MALFORMED = "bodies_malformed", Count, Counter, "Requests to sinks with a malformed body.";
    BODIES_PARSED = "bodies_parsed", Count, Counter, "Requests to sinks whose metric series were parsed.";
    CALLS_RECEIVED = "calls_received", Count, Counter, "gRPC calls to sinks.";
    REQUESTS_REFUSED = "requests_refused", Count, Counter, "Requests that sinks refused on purpose, by a step of the timeline.";
    POINTS_SKIPPED = "points_skipped", Count, Counter, "Points of series that a sink skipped, labelled reason.";
    // Stamped events, labelled component=ledger, id of their generator.
    STAMPED_SENT = "stamped_events_sent", Count, Counter, "Stamped events that generators began to hand to the kernel.";
    STAMPED_RECEIVED = "stamped_events_received", Count, Counter, "Stamped events that arrived at least once.";
    EVENTS_MISSING = "events_missing", Count, Gauge, "Stamped events sent that have not arrived: on their way, or lost.";
    EVENTS_INCOMPLETE = "events_incomplete", Count, Gauge, "Stamped events that arrived in fewer copies than declared.";
    EVENTS_DUPLICATED = "events_duplicated", Count, Counter, "Arrivals of stamped events beyond the declared copies.";
    EVENTS_REORDERED = "events_reordered", Count, Counter, "Stamped events that arrived after one that was sent later.";
    EVENTS_LATE = "events_late", Count, Counter, "Stamped events that arrived later than declared.";
    EVENTS_DAMAGED = "events_damaged", Count, Counter, "Arrivals of stamped events with other bytes than were sent.";
    EVENTS_UNVERIFIABLE = "events_unverifiable", Count, Counter, "Arrivals of stamped events not checked: split, or in another form.";
    STAMPS_BROKEN = "stamps_broken", Count, Counter, "Stamps that were cut off or changed.";
    STAMPS_FOREIGN = "stamps_foreign", Count, Counter, "Stamps of other runs, or of no generator of this one.";
    EVENT_LATENCY = "event_latency", Nanoseconds, Histogram, "First arrival of a stamped event minus the intended time or its prefix.";
    PREFIXES_READ = "prefixes_read", Count, Counter, "Valid time prefixes of received events, with the labels of the sink.";
    PREFIXES_IMPLAUSIBLE = "prefixes_implausible", Count, Counter, "Time prefixes of received events that are implausible or cut off.";
    EVENT_TRANSIT = "event_transit", Nanoseconds, Histogram, "First arrival of a stamped event minus its sent time.";
    // File systems of ours: growing logs, labelled as their generator and, from fs_read to fs_release, group_id; disks,
    // labelled component=disk, id.
    BYTES_READ = "bytes_read", Bytes, Counter, "Bytes that programs read from growing logs; repeated reads count again.";
    MISSED_BYTES = "missed_bytes", Bytes, Counter, "Bytes of growing logs that were deleted unread.";
    UNREAD_BYTES = "unread_bytes", Bytes, Gauge, "Bytes of growing logs that exist and are not read yet.";
    LOGS_ROTATED = "log_file_rotated", Count, Counter, "Growing logs that were rotated because they were full.";
    LOGS_DELETED = "log_file_deleted", Count, Counter, "Growing logs that were deleted because there were enough older ones.";
    LOG_LISTINGS = "fs_readdir", Count, Counter, "Listings of the folders of growing logs.";
    LOG_READS = "fs_read", Count, Counter, "Reads of the files of a growing log.";
    LOG_OPENS = "fs_open", Count, Counter, "Opens of the files of a growing log.";
    LOG_LOOKUPS = "fs_lookup", Count, Counter, "Names of the files of a growing log that were looked up and found.";
    LOG_ATTRIBUTES = "fs_getattr", Count, Counter, "Reads of the attributes of the files of a growing log.";
    LOG_RELEASES = "fs_release", Count, Counter, "Files of a growing log that were closed.";
    DISK_BYTES_WRITTEN = "disk_bytes_written", Bytes, Counter, "Bytes that programs wrote to a simulated disk.";
    DISK_BYTES_SYNCED = "disk_bytes_synced", Bytes, Counter, "Bytes written before a completed fsync.";
    DISK_FSYNCS = "disk_fsyncs", Count, Counter, "Answered fsyncs on a simulated disk.";
    DISK_WRITES_REFUSED = "disk_writes_refused", Count, Counter, "Writes refused because a simulated disk was full.";
    DISK_BYTES_USED = "disk_bytes_used", Bytes, Gauge, "Bytes of all files on a simulated disk.";
    // The target: totals over its process tree.
    TARGET_CPU = "target_cpu", Nanoseconds, Counter, "CPU time of the target's process tree.";
    TARGET_CPU_USER = "target_cpu_user", Nanoseconds, Counter, "CPU time of the target's process tree in user mode.";
    TARGET_CPU_SYSTEM = "target_cpu_system", Nanoseconds, Counter, "CPU time of the target's process tree in the kernel.";
    TARGET_INSTRUCTIONS = "target_instructions", Count, Counter, "CPU instructions of the target, scaled where its counter was shared.";
    TARGET_COUNTER_ENABLED = "target_counter_enabled", Nanoseconds, Counter, "CPU time of the target while its counters were enabled.";
    TARGET_COUNTER_RUNNING = "target_counter_running", Nanoseconds, Counter, "CPU time of the target while instructions were counted.";
    TARGET_COUNTER_STATE = "target_counter_state", Count, Gauge, "1, labelled modes, if instructions are counted; else 0, labelled reason.";
    TARGET_RSS = "total_rss_bytes", Bytes, Gauge, "Resident memory, summed over the target's process tree.";
    TARGET_PSS = "total_pss_bytes", Bytes, Gauge, "Proportional share of memory, summed over the target's process tree.";
    TARGET_RSS_PEAK = "target_rss_peak", Bytes, Gauge, "Peak resident memory (VmHWM), summed over the target's process tree.";
    TARGET_PROCESSES = "processes_found", Count, Gauge, "Processes in the target's process tree.";
    TARGET_THREADS = "target_threads", Count, Gauge, "Threads in the target's process tree.";
    TARGET_FDS = "target_fds", Count, Gauge, "Open file descriptors in the target's process tree.";
    TARGET_SWITCHES_VOLUNTARY = "target_context_switches_voluntary", Count, Counter, "Context switches of the target because it waited.";
    TARGET_SWITCHES_FORCED = "target_context_switches_forced", Count, Counter, "Context switches of the target that the scheduler forced.";
    TARGET_FAULTS_MINOR = "target_page_faults_minor", Count, Counter, "Page faults of the target that needed no disk.";
    TARGET_FAULTS_MAJOR = "target_page_faults_major", Count, Counter, "Page faults of the target that needed a disk.";
    TARGET_READ_BYTES = "target_disk_read_bytes", Bytes, Counter, "Bytes that the target read from storage.";
    TARGET_WRITE_BYTES = "target_disk_write_bytes", Bytes, Counter, "Bytes that the target sent to storage.";
    TARGET_OOM_KILLS = "target_oom_kills", Count, Counter, "Processes of the target's cgroup that the kernel killed for memory.";
    TARGET_STOPPED = "target_stopped", Count, Gauge, "1 while every process of the target is stopped by a signal, or its cgroup is frozen.";
    TARGET_RUN_DELAY = "target_run_delay", Nanoseconds, Counter, "Time in which threads of the target were runnable and had no CPU.";
    TARGET_CPUS_FOREIGN = "target_cpus_foreign", Nanoseconds, Counter, "CPU time of other programs on the CPUs that only the target uses.";
    CGROUP_PRESSURE_CPU = "cgroup_pressure_cpu", Nanoseconds, Counter, "Time in which a task of the target's cgroup waited for a CPU.";
    CGROUP_MEMORY = "cgroup_memory_bytes", Bytes, Gauge, "Memory charged to the target's cgroup.";
    CGROUP_MEMORY_PEAK = "cgroup_memory_peak_bytes", Bytes, Gauge, "Largest memory charged to the target's cgroup.";
    CGROUP_THROTTLED = "cgroup_throttled", Nanoseconds, Counter, "Time in which the target's cgroup was held back by its CPU quota.";
    // Two runs at once.
    PARTNER_CPU = "partner_cpu", Nanoseconds, Counter, "CPU time of the other target, measured in a parallel run.";
    // The host.
    HOST_CPU_BUSY = "host_cpu_busy", Nanoseconds, Counter, "CPU time that the host spent on anything, over all CPUs.";
    HOST_CPU_STEAL = "host_cpu_steal", Nanoseconds, Counter, "CPU time that the hypervisor gave to others, over all CPUs.";
    HOST_CPU_FOREIGN = "host_cpu_foreign", Nanoseconds, Counter, "Host CPU time minus that of Stillwell and of all measured targets.";
    PROCESS_CPU = "process_cpu", Nanoseconds, Counter, "CPU time of Stillwell's process.";
    PROCESS_RSS = "process_rss_bytes", Bytes, Gauge, "Memory of Stillwell's process.";
    HOST_LOAD = "host_load1", Count, Gauge, "Load average over one minute.";
    HOST_MEMORY_AVAILABLE = "host_memory_available_bytes", Bytes, Gauge, "Memory that is available on the host.";
    HOST_PRESSURE_CPU = "host_pressure_cpu", Nanoseconds, Counter, "Time in which some task of the host waited for a CPU.";
    HOST_PRESSURE_MEMORY = "host_pressure_memory", Nanoseconds, Counter, "Time in which some task of the host waited for memory.";
    HOST_PRESSURE_IO = "host_pressure_io", Nanoseconds, Counter, "Time in which some task of the host waited for storage.";
    HOST_NET_RECEIVE_BYTES = "host_net_receive_bytes", Bytes, Counter, "Bytes that the run's network interfaces received.";
    HOST_NET_SEND_BYTES = "host_net_send_bytes", Bytes, Counter, "Bytes that the run's network interfaces sent.";
    HOST_NET_DROPS = "host_net_drops", Count, Counter, "Packets that the run's network interfaces dropped, UDP receive errors included.";
    HOST_TCP_ESTABLISHED = "host_tcp_established", Count, Gauge, "TCP connections of the run's network that are open, both ends counted.";
    HOST_TCP_OPENED = "host_tcp_opened", Count, Counter, "TCP connections that the run's network opened, both ends counted.";
    HOST_TCP_TIME_WAIT = "host_tcp_time_wait", Count, Gauge, "TCP connections of the run's network in the state TIME_WAIT.";
    HOST_DISK_READ_BYTES = "host_disk_read_bytes", Bytes, Counter, "Bytes that the host's disks read.";
    HOST_DISK_WRITE_BYTES = "host_disk_write_bytes", Bytes, Counter, "Bytes that the host's disks wrote.";
    HOST_DISK_FLUSHES = "host_disk_flushes", Count, Counter, "Flushes of the host's disks: one or more for each sync of a file.";
    // The sampler itself.
    SAMPLER_DELAY = "sampler_delay", Nanoseconds, Gauge, "Delay of this sample after its scheduled time.";
    SCRAPE_OK = "scrape_ok", Count, Counter, "Scrapes of the target's metrics that succeeded, labelled url.";
    SCRAPE_FAILED = "scrape_failed", Count, Counter, "Scrapes of the target's metrics that failed, labelled url.";
    SCRAPE_MALFORMED = "scrape_malformed", Count, Counter, "Lines of the target's metrics that could not be parsed, labelled url.";
    SCRAPE_SURPLUS = "scrape_surplus", Count, Counter, "Series of the target's metrics beyond the maximum of one page, labelled url.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_plain() {
        for (index, metric) in ALL.iter().enumerate() {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(metric.name.chars().all(plain), "{}", metric.name);
            assert!(metric.meaning.ends_with('.'), "{}", metric.name);
            let again = ALL[index + 1..]
                .iter()
                .any(|previous| previous.name == metric.name);
            assert!(!again, "{} stands twice", metric.name);
        }
    }

    #[test]
    fn kinds_read_back() {
        for kind in [Kind::Counter, Kind::Gauge, Kind::Histogram] {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
    }
}
