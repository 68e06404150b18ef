//! Base URLs of scenarios.

use stillwell_units::Target;

/// Advice for a base URL with a query.
pub(crate) const QUERY_IN_STEPS: &str = "write the query in the `path` of the steps";

/// Returns the reason if `base` cannot be a base URL: paths of steps would become a part of its query.
pub(crate) fn query_problem(base: &Target) -> Option<String> {
    let (path, _) = base.path_and_query().split_once('?')?;
    let (scheme, authority) = (base.scheme().as_str(), base.authority());
    Some(format!(
        "the base URL of a scenario, `{scheme}://{authority}{path}`, has a query"
    ))
}
