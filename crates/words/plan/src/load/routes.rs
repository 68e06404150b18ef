//! Routes: requests that belong together in reports.

use std::collections::BTreeMap;

use super::EndpointPlan;

/// Routes with rows of their own; the requests of further ones are counted together.
const ROUTES_MAX: usize = 32;
/// Name of all further routes.
const OTHERS: &str = "other requests";

/// The routes of some requests. A route is a method and a path without its query, and with
/// several endpoints also the authority, or the address where a header states an authority.
///
/// ```
/// # use stillwell_plan::load::{BodyPlan, EndpointPlan, RequestPlan, Routes};
/// # let request = |path: &str| RequestPlan {
/// #     method: "GET".to_owned(),
/// #     path: path.to_owned(),
/// #     authority: "a".to_owned(),
/// #     is_authority_stated: false,
/// #     headers: Vec::new(),
/// #     body: BodyPlan::None,
/// # };
/// let endpoint = EndpointPlan {
///     address: "a:80".to_owned(),
///     tls_host: None,
///     weight: 1,
///     requests: vec![request("/a?x=1"), request("/b"), request("/a?x=2")],
/// };
/// let routes = Routes::of(&[endpoint]);
/// assert_eq!(routes.names(), ["GET /a", "GET /b"]);
/// assert_eq!(routes.index(0, 2), 0);
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Routes {
    names: Vec<String>,
    of_requests: Vec<Vec<usize>>,
}

impl Routes {
    /// Returns the routes of the requests of `endpoints`.
    #[must_use]
    pub fn of(endpoints: &[EndpointPlan]) -> Self {
        let mut routes = Self::default();
        let mut indices = BTreeMap::new();
        let mut requests = endpoints.iter().flat_map(|endpoint| &endpoint.requests);
        let is_stated = requests.any(|request| request.is_authority_stated);
        for (number, endpoint) in (1..).zip(endpoints) {
            let requests = endpoint.requests.iter().map(|request| {
                let path = request.path.split(['?', '#']).next().unwrap_or_default();
                let method = &request.method;
                let key = match endpoints {
                    [_] => (number, format!("{method} {path}")),
                    // A stated authority may be that of several endpoints. Addresses of several
                    // may be the same once they are resolved: only the numbers always differ.
                    _ if is_stated => {
                        let origin = origin(endpoint, &endpoint.address);
                        (number, format!("{method} {origin}{path}"))
                    }
                    _ => {
                        let origin = origin(endpoint, &request.authority);
                        (0, format!("{method} {origin}{path}"))
                    }
                };
                routes.place(key, &mut indices)
            });
            let places = requests.collect();
            routes.of_requests.push(places);
        }
        routes
    }

    /// Returns the routes with these names, of the requests of one endpoint.
    #[must_use]
    pub fn of_names(names: impl IntoIterator<Item = String>) -> Self {
        let mut routes = Self::default();
        let mut indices = BTreeMap::new();
        let places = names
            .into_iter()
            .map(|name| routes.place((0, name), &mut indices));
        let places = places.collect();
        routes.of_requests.push(places);
        routes
    }

    /// Returns the index of the route of an endpoint with a name, which may be new. Endpoints are
    /// counted from 1; routes of 0 are those of all endpoints.
    fn place(
        &mut self,
        key: (usize, String),
        indices: &mut BTreeMap<(usize, String), usize>,
    ) -> usize {
        if let Some(index) = indices.get(&key) {
            return *index;
        }
        if self.names.len() < ROUTES_MAX {
            let (endpoint, name) = key.clone();
            // Captures identify a route by its name.
            let name = match self.names.contains(&name) {
                true => format!("{name} (target {endpoint})"),
                false => name,
            };
            indices.insert(key, self.names.len());
            self.names.push(name);
        } else if self.names.len() == ROUTES_MAX {
            self.names.push(OTHERS.to_owned());
        }
        self.names.len() - 1
    }

    /// Names of all routes, in the order of their first requests; at most 33.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns true if the routes differ: each of them has a row.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.names.len() > 1
    }

    /// Returns the index of the route of a request of an endpoint; 0 for none of the plan.
    #[must_use]
    pub fn index(&self, endpoint: usize, request: usize) -> usize {
        let of_endpoint = self.of_requests.get(endpoint);
        let index = of_endpoint.and_then(|requests| requests.get(request));
        index.copied().unwrap_or(0)
    }
}

/// Returns the URL of `endpoint` without a path, with `host` and without the default port.
fn origin(endpoint: &EndpointPlan, host: &str) -> String {
    let (scheme, port) = match endpoint.tls_host {
        Some(_) => ("https", ":443"),
        None => ("http", ":80"),
    };
    format!("{scheme}://{}", host.strip_suffix(port).unwrap_or(host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{BodyPlan, RequestPlan};

    fn endpoint(address: &str, paths: impl IntoIterator<Item = String>) -> EndpointPlan {
        let requests = paths.into_iter().map(|path| RequestPlan {
            method: "GET".to_owned(),
            path,
            authority: address.to_owned(),
            is_authority_stated: false,
            headers: Vec::new(),
            body: BodyPlan::None,
        });
        EndpointPlan {
            address: address.to_owned(),
            tls_host: None,
            weight: 1,
            requests: requests.collect(),
        }
    }

    #[test]
    fn routes_of_several_endpoints_name_them() {
        let paths = || ["/x".to_owned(), "/y".to_owned()];
        let routes = Routes::of(&[endpoint("a:1", paths()), endpoint("b:1", paths())]);
        let names = ["a:1/x", "a:1/y", "b:1/x", "b:1/y"].map(|name| format!("GET http://{name}"));
        assert_eq!(routes.names(), names);
        assert_eq!((routes.index(1, 0), routes.index(7, 7)), (2, 0));
    }

    #[test]
    fn a_stated_authority_merges_no_routes_of_several_endpoints() {
        let routes = [["a:1", "b:80"], ["c:1", "c:1"]].map(|addresses| {
            Routes::of(&addresses.map(|address| {
                let mut endpoint = endpoint(address, ["/x?1".to_owned(), "/x?2".to_owned()]);
                for request in &mut endpoint.requests {
                    request.authority = "host".to_owned();
                    request.is_authority_stated = true;
                }
                endpoint
            }))
        });
        let [names, resolved] = &routes;
        assert_eq!(names.names(), ["GET http://a:1/x", "GET http://b/x"]);
        let same = ["GET http://c:1/x", "GET http://c:1/x (target 2)"];
        assert_eq!(resolved.names(), same);
        assert_eq!(names.of_requests, [[0, 0], [1, 1]]);
        assert_eq!(resolved.of_requests, names.of_requests);
    }

    #[test]
    fn routes_beyond_the_limit_are_counted_together() {
        let routes = Routes::of(&[endpoint("a:1", (0..100).map(|path| format!("/{path}")))]);
        assert_eq!(routes.names().len(), ROUTES_MAX + 1);
        assert_eq!(routes.names()[ROUTES_MAX], OTHERS);
        let last = [31, 32, 99].map(|request| routes.index(0, request));
        assert_eq!(last, [31, 32, 32]);
    }
}
