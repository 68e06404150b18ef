//! Counts and times by route.

use std::sync::Arc;

use stillwell_metric::{RouteRecorder, RouteShard};
use stillwell_plan::load::Routes;

use super::build::Request;

/// Records requests by their routes; nothing if there is only one. Recording finds the route by
/// two indices and does not allocate.
#[derive(Debug, Default)]
pub(super) struct RouteTally {
    recorders: Vec<RouteRecorder>,
    /// Index of the route of each encoded request of each endpoint.
    of_requests: Vec<Vec<usize>>,
}

impl RouteTally {
    /// A tally of `routes` for the encoded requests of each endpoint, and its shards in their order.
    pub(super) fn new<'e>(
        routes: &Routes,
        endpoints: impl IntoIterator<Item = &'e [Request]>,
    ) -> (Self, Vec<Arc<RouteShard>>) {
        if !routes.are_several() {
            return Default::default();
        }
        let of_requests = (0..).zip(endpoints).map(|(index, requests)| {
            let requests = requests.iter();
            let places = requests.map(|request| routes.index(index, request.described));
            places.collect()
        });
        Self::with(routes, of_requests.collect())
    }

    /// A tally of `routes` for the steps of a scenario, and its shards in their order.
    pub(super) fn of_steps(routes: &Routes, steps: usize) -> (Self, Vec<Arc<RouteShard>>) {
        if !routes.are_several() {
            return Default::default();
        }
        let places = (0..steps).map(|step| routes.index(0, step));
        Self::with(routes, vec![places.collect()])
    }

    fn with(routes: &Routes, of_requests: Vec<Vec<usize>>) -> (Self, Vec<Arc<RouteShard>>) {
        let pairs = routes.names().iter().map(|_| RouteShard::pair());
        let (shards, recorders) = pairs.unzip();
        let tally = Self {
            recorders,
            of_requests,
        };
        (tally, shards)
    }

    /// Returns the recorder of a request of an endpoint, if it has a route.
    pub(super) fn of(&mut self, endpoint: usize, request: usize) -> Option<&mut RouteRecorder> {
        let index = *self.of_requests.get(endpoint)?.get(request)?;
        self.recorders.get_mut(index)
    }

    /// Hands over the times that were requested.
    pub(super) fn hand_over(&mut self) {
        self.recorders.iter_mut().for_each(RouteRecorder::hand_over);
    }

    /// Hands over all times.
    pub(super) fn flush(&mut self) {
        self.recorders.iter_mut().for_each(RouteRecorder::flush);
    }
}
