//! HTTP requests that a generator sends.

use serde::{Deserialize, Serialize};
use stillwell_units::{Scheme, Target};

use crate::load::{
    BodyPlan, ClientPlan, EndpointPlan, GrpcMessages, GrpcPlan, LoadPlanError, Routes, Spacing,
    check_requests,
};

/// HTTP requests to one address.
///
/// Every plan keeps those rules of [`LoadPlanError`] that are about requests and connections:
/// [`RequestsPlan::try_new`] checks them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "RequestsPlanParts")]
pub struct RequestsPlan {
    url: String,
    endpoint: EndpointPlan,
    client: ClientPlan,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_to_target: bool,
    #[serde(skip_serializing_if = "is_even")]
    spacing: Spacing,
    /// The routes before the URL of a variant replaced the paths, so both variants have the same.
    #[serde(skip)]
    routes: Routes,
}

fn is_even(spacing: &Spacing) -> bool {
    *spacing == Spacing::Even
}

#[derive(Deserialize)]
struct RequestsPlanParts {
    url: String,
    endpoint: EndpointPlan,
    client: ClientPlan,
    #[serde(default)]
    is_to_target: bool,
    #[serde(default)]
    spacing: Spacing,
}

impl RequestsPlan {
    /// Makes the plan of the requests of `endpoint`, which `url` names, over connections of
    /// `client`. The generator's connections replace those of the client.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn try_new(
        url: String,
        endpoint: EndpointPlan,
        client: ClientPlan,
    ) -> Result<Self, LoadPlanError> {
        check_requests(std::slice::from_ref(&endpoint), &client, 1)?;
        Ok(Self {
            url,
            routes: Routes::of(std::slice::from_ref(&endpoint)),
            endpoint,
            client,
            is_to_target: false,
            spacing: Spacing::Even,
        })
    }

    /// The same requests with this spacing on their rate.
    #[must_use]
    pub fn spaced(self, spacing: Spacing) -> Self {
        Self { spacing, ..self }
    }

    /// Spacing of single requests on the rate.
    #[must_use]
    pub const fn spacing(&self) -> Spacing {
        self.spacing
    }

    /// Returns the call that the server describes when the run starts, if there is one.
    #[must_use]
    pub fn undescribed_call(&self) -> Option<&GrpcPlan> {
        let bodies = self.endpoint.requests.iter().map(|request| &request.body);
        bodies
            .filter_map(|body| match body {
                BodyPlan::Grpc(call) => Some(call),
                _ => None,
            })
            .find(|call| matches!(call.messages, GrpcMessages::Typed(_)))
    }

    /// The same requests with `call` for the one that was not described.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn described(mut self, call: &GrpcPlan) -> Result<Self, LoadPlanError> {
        for request in &mut self.endpoint.requests {
            if let BodyPlan::Grpc(undescribed) = &mut request.body {
                undescribed.clone_from(call);
            }
        }
        check_requests(std::slice::from_ref(&self.endpoint), &self.client, 1)?;
        Ok(self)
    }

    /// Routes of the requests, which have the same names for each variant.
    #[must_use]
    pub const fn routes(&self) -> &Routes {
        &self.routes
    }

    /// The same requests, which go to the URL of the target: it may change with the variant.
    #[must_use]
    pub fn to_target(self) -> Self {
        Self {
            is_to_target: true,
            ..self
        }
    }

    /// Returns true if the URL is that of the target.
    #[must_use]
    pub const fn is_to_target(&self) -> bool {
        self.is_to_target
    }

    /// Sends requests to the host of `url`, if they go to the target.
    pub(crate) fn redirect(&mut self, url: &str) {
        if self.is_to_target {
            self.send_to(url);
        }
    }

    /// Sends requests to the host of `url`. Requests with the path of the present URL get that of
    /// `url`. Those with its authority get the new one, unless a header stated it. HTTP/3 needs an
    /// https URL.
    pub(crate) fn send_to(&mut self, url: &str) {
        let (Ok(from), Ok(to)) = (Target::from_url(&self.url), Target::from_url(url)) else {
            return;
        };
        let is_secure = to.scheme() == Scheme::Https;
        self.endpoint.address = to.dial_address();
        self.endpoint.tls_host = is_secure.then(|| to.host().to_owned());
        for request in &mut self.endpoint.requests {
            if !request.is_authority_stated && request.authority == from.authority() {
                request.authority = to.authority();
            }
            if request.path == from.path_and_query() {
                to.path_and_query().clone_into(&mut request.path);
            }
        }
        url.clone_into(&mut self.url);
    }

    /// `http://host:port/`, or `https://…`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address and its requests, at least one.
    #[must_use]
    pub const fn endpoint(&self) -> &EndpointPlan {
        &self.endpoint
    }

    /// Protocol and limits of the connections.
    #[must_use]
    pub const fn client(&self) -> &ClientPlan {
        &self.client
    }
}

impl TryFrom<RequestsPlanParts> for RequestsPlan {
    type Error = LoadPlanError;

    fn try_from(parts: RequestsPlanParts) -> Result<Self, LoadPlanError> {
        let plan = Self::try_new(parts.url, parts.endpoint, parts.client)?;
        let plan = plan.spaced(parts.spacing);
        Ok(match parts.is_to_target {
            true => plan.to_target(),
            false => plan,
        })
    }
}
