//! Routes: requests that belong together in reports.

use std::collections::BTreeMap;

use super::EndpointPlan;

/// Routes with rows of their own; the requests of further ones are counted together.
const ROUTES_MAX: usize = 32;
/// Name of all further routes.
const OTHERS: &str = "other requests";

/// The routes of some requests. A route is a method and a path without its query, and with
/// several endpoints also the address.
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
        for endpoint in endpoints {
            let requests = endpoint.requests.iter().map(|request| {
                let path = request.path.split(['?', '#']).next().unwrap_or_default();
                let name = match endpoints {
                    [_] => format!("{} {path}", request.method),
                    _ => {
                        let scheme = endpoint.tls_host.as_ref().map_or("http", |_| "https");
                        format!("{} {scheme}://{}{path}", request.method, request.authority)
                    }
                };
                routes.place(name, &mut indices)
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
            .map(|name| routes.place(name, &mut indices));
        let places = places.collect();
        routes.of_requests.push(places);
        routes
    }

    /// Returns the index of the route `name`, which may be new.
    fn place(&mut self, name: String, indices: &mut BTreeMap<String, usize>) -> usize {
        if let Some(index) = indices.get(&name) {
            return *index;
        }
        if self.names.len() < ROUTES_MAX {
            indices.insert(name.clone(), self.names.len());
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
    fn routes_beyond_the_limit_are_counted_together() {
        let routes = Routes::of(&[endpoint("a:1", (0..100).map(|path| format!("/{path}")))]);
        assert_eq!(routes.names().len(), ROUTES_MAX + 1);
        assert_eq!(routes.names()[ROUTES_MAX], OTHERS);
        let last = [31, 32, 99].map(|request| routes.index(0, request));
        assert_eq!(last, [31, 32, 32]);
    }
}
