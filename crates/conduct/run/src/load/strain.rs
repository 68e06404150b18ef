//! The load of the generator relative to its limit.

use stillwell_metric::{Histogram, LoadStrain, LoadTime, TimeState};
use stillwell_units::Nanos;

use super::LoadSnapshot;

impl LoadSnapshot<'_> {
    /// Returns the load of the generator relative to its limit in the piece of time that has just
    /// ended.
    #[must_use]
    pub fn strain(&self) -> LoadStrain {
        let quantile = |times: Option<&Histogram<u64>>, share: f64| {
            Nanos::new(times.map_or(0, |times| times.value_at_quantile(share)))
        };
        let busy = self.accounts.iter().map(|account| {
            let whole: u64 = account.iter().map(|time| time.as_u64()).sum();
            account[TimeState::Running.index()].share_of(Nanos::new(whole))
        });
        LoadStrain {
            busy_share: busy.fold(0.0, f64::max),
            lateness_p99: quantile(self.times(LoadTime::GeneratorLateness), 0.99),
            lateness_count: self
                .times(LoadTime::GeneratorLateness)
                .map_or(0, Histogram::len),
            service_median: Nanos::new(self.second.service.unpack().value_at_quantile(0.5)),
        }
    }
}
