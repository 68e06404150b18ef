//! Metrics of loads: in captures of `stillwell load` alone, which no check names.

use super::{Kind, Metric, Unit};
use crate::load::LoadTime;
use crate::routes::RouteTime;

catalogue! {
    INTERVAL = "load_interval", Nanoseconds, Gauge, "Length of the interval that ends at this sample.";
    SCHEDULED = "load_requests_scheduled", Count, Gauge, "Requests that were due by the schedule in the interval.";
    BEGUN = "load_requests_begun", Count, Gauge, "Requests that began in the interval.";
    SENT = "load_requests_sent", Count, Gauge, "Requests that were given to a connection in the interval.";
    ENDED = "load_requests_ended", Count, Gauge, "Requests that ended in the interval, labelled outcome.";
    BYTES_RECEIVED = "load_bytes_received", Bytes, Gauge, "Bytes that were read from connections in the interval.";
    BYTES_SENT = "load_bytes_sent", Bytes, Gauge, "Bytes that were written to connections in the interval.";
    RESPONSE_TIME = "load_response_time", Nanoseconds, Histogram, "End of the response minus the intended time, labelled outcome.";
    SERVICE_TIME = "load_service_time", Nanoseconds, Histogram, "End of the response minus the sent time, labelled outcome.";
    LATENESS = "load_lateness", Nanoseconds, Histogram, "Sent time minus intended time of each request.";
    GENERATOR_LATENESS = "load_generator_lateness", Nanoseconds, Histogram, "Sent time minus intended time where a connection was free.";
    FIRST_BYTE = "load_first_byte_time", Nanoseconds, Histogram, "First byte of the response minus the sent time.";
    FIRST_MESSAGE = "load_first_message_time", Nanoseconds, Histogram, "First message of a gRPC response minus the sent time.";
    CONNECT = "load_connect_time", Nanoseconds, Histogram, "Time to open a connection.";
    HANDSHAKE = "load_handshake_time", Nanoseconds, Histogram, "Duration of the TLS handshake.";
    BLOCKED = "load_blocked_time", Nanoseconds, Histogram, "Time that a due request waited for a connection or the request source.";
    ORIGIN = "load_origin_time", Nanoseconds, Histogram, "Server time that a response reports in a header.";
    ROUTE_RESPONSE_TIME = "load_route_response_time", Nanoseconds, Histogram, "End of response minus intended time, labelled route.";
    ROUTE_SERVICE_TIME = "load_route_service_time", Nanoseconds, Histogram, "End of response minus sent time, labelled route.";
    ROUTE_FIRST_BYTE = "load_route_first_byte_time", Nanoseconds, Histogram, "First byte of response minus sent time, labelled route.";
    FAILED = "load_failed_time", Nanoseconds, Histogram, "End of a request without a response minus its intended time, labelled outcome.";
}

/// Returns the metric of `time`, and the value of its label `outcome` where it has one.
#[must_use]
pub const fn of_time(time: LoadTime) -> (Metric, Option<&'static str>) {
    match time {
        LoadTime::Service(class) => (SERVICE_TIME, Some(class.name())),
        LoadTime::Response(class) => (RESPONSE_TIME, Some(class.name())),
        LoadTime::FirstByte => (FIRST_BYTE, None),
        LoadTime::Lateness => (LATENESS, None),
        LoadTime::GeneratorLateness => (GENERATOR_LATENESS, None),
        LoadTime::Connect => (CONNECT, None),
        LoadTime::Handshake => (HANDSHAKE, None),
        LoadTime::Failed(end) => (FAILED, Some(end.name())),
        LoadTime::Blocked => (BLOCKED, None),
        LoadTime::Origin => (ORIGIN, None),
        LoadTime::FirstMessage => (FIRST_MESSAGE, None),
    }
}

/// Returns the metric of `time` of the requests of a route.
#[must_use]
pub const fn of_route(time: RouteTime) -> Metric {
    match time {
        RouteTime::Response => ROUTE_RESPONSE_TIME,
        RouteTime::Service => ROUTE_SERVICE_TIME,
        RouteTime::FirstByte => ROUTE_FIRST_BYTE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_series_of_its_own() {
        let series = |time| {
            let (metric, outcome) = of_time(time);
            (metric.name, outcome)
        };
        let all: std::collections::BTreeSet<_> = LoadTime::all().map(series).collect();
        assert_eq!(all.len(), LoadTime::COUNT);
        assert!(ALL.iter().all(|metric| metric.name.starts_with("load_")));
    }
}
