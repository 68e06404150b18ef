//! Jobs of clusters.

use maud::{Markup, html};

use super::{Chrome, Section, page};
use crate::program::{ClusterJobView, Refusal};

/// Jobs of a store, by the store's place.
type StoreJobs = (String, Result<Vec<ClusterJobView>, Refusal>);

/// Returns the page of the jobs in all stores. It is updated by its script, or reloads itself.
pub(crate) fn cluster(stores: &[StoreJobs], chrome: Chrome<'_>) -> String {
    let body = html! {
        div data-refresh[!stores.is_empty()] {
            h1 { "Cluster" }
            @if stores.is_empty() {
                p { "No cluster store was found. Give its folder: " code { "stillwell ui --store DIR" } }
            }
            @for (place, jobs) in stores {
                h2 { "Store " code { (place) } }
                @match jobs {
                    Err(refusal) => p class="remark failure" { (refusal.message) },
                    Ok(jobs) if jobs.is_empty() => p { "No jobs yet." },
                    Ok(jobs) => @for job in jobs { (one_job(job)) },
                }
            }
        }
    };
    page(
        Section::Cluster,
        "Cluster",
        chrome,
        !stores.is_empty(),
        &body,
    )
}

fn one_job(job: &ClusterJobView) -> Markup {
    html! {
        h3 { (job.name) }
        @if !job.engine.is_empty() { p class="dim" { (job.engine) } }
        @if let Some(why) = &job.ended_early { p class="remark warning" { "Ended early: " (why) } }
        table class="list" {
            thead { tr { th scope="col" { "Task" } th scope="col" { "State" } } }
            tbody {
                @for (name, state) in &job.tasks { tr { td { (name) } td { (state) } } }
            }
        }
    }
}
