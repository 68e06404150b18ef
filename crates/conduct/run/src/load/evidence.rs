//! The evidence by which a load is judged, from what its workers counted.

use stillwell_metric::{
    Histogram, LoadEvidence, LoadShard, LoadSourceEvidence, LoadStrain, LoadTime, Outcome,
    TimeState, Trouble, add_histogram, empty_histogram,
};
use stillwell_plan::LoadPlan;
use stillwell_units::{Nanos, float_from_u64};

use super::{LoadFound, LoadSnapshot};

impl LoadFound {
    /// The evidence by which the result of `plan` is judged.
    #[must_use]
    pub fn evidence(&self, plan: &LoadPlan) -> LoadEvidence {
        let shards = || self.workers.iter().map(|worker| &*worker.shard);
        let sum = |count: fn(&LoadShard) -> u64| shards().map(count).sum::<u64>();
        let answers = |ended: fn(&LoadShard, Outcome) -> u64| -> u64 {
            let of_shard = |shard| -> u64 {
                Outcome::ANSWERS
                    .map(|class| ended(shard, class))
                    .iter()
                    .sum()
            };
            shards().map(of_shard).sum()
        };
        LoadEvidence {
            measured: self.measured,
            has_warmup: plan.warmup > Nanos::ZERO,
            strain: LoadStrain {
                busy_share: self.largest_share(|shard| shard.spent(TimeState::Running)),
                lateness_p99: self.lateness_p99(),
                service_median: self.service_median(),
            },
            cpu_wait_share: self.largest_share(|shard| shard.run_delay.measured()),
            steal_share: self.host.map(|host| {
                share_of(host.steal.as_u64(), self.measured) / f64::from(host.cpus.max(1))
            }),
            due: sum(LoadShard::due),
            asked: sum(|shard| shard.asked.measured()),
            begun: sum(|shard| shard.begun.total()),
            sent: sum(|shard| shard.sent.total()),
            answers: answers(LoadShard::ended),
            answers_with_warmup: answers(LoadShard::ended_ever),
            malformed: sum(|shard| shard.ended(Outcome::Malformed)),
            answer_trouble: shards().find_map(|shard| shard.answer_trouble.get().cloned()),
            first_trouble: shards().find_map(first_trouble),
            source: self.source(),
            export_failures: self.telemetry.troubles(),
            headers_dropped: sum(|shard| shard.headers_dropped.measured()),
        }
    }

    /// The largest share of its time that a worker spent on `part`.
    fn largest_share(&self, part: fn(&LoadShard) -> u64) -> f64 {
        let shares = self.workers.iter().map(|worker| {
            let spent = TimeState::ALL.map(|state| worker.shard.spent(state));
            share_of(part(&worker.shard), Nanos::new(spent.iter().sum()))
        });
        shares.fold(0.0, f64::max)
    }

    fn lateness_p99(&self) -> Nanos {
        let mut all = empty_histogram();
        for worker in &self.workers {
            add_histogram(&mut all, worker.times(LoadTime::OwnLateness));
        }
        Nanos::new(all.value_at_quantile(0.99))
    }

    fn service_median(&self) -> Nanos {
        let mut all = empty_histogram();
        for worker in &self.workers {
            add_histogram(&mut all, &worker.times_of_answers(LoadTime::Service));
        }
        Nanos::new(all.value_at_quantile(0.5))
    }

    fn source(&self) -> LoadSourceEvidence {
        let sources = || self.workers.iter().map(|worker| &worker.shard.source);
        let shares = self.workers.iter().map(|worker| {
            let waited = worker.shard.source.waited.measured();
            share_of(waited, worker.measured)
        });
        LoadSourceEvidence {
            requests: sources().map(|source| source.requests.total()).sum(),
            waits: sources().map(|source| source.waits.measured()).sum(),
            waits_with_warmup: sources().map(|source| source.waits.total()).sum(),
            wait_share: shares.fold(0.0, f64::max),
            trouble: sources().find_map(|source| source.trouble.get().cloned()),
        }
    }
}

impl LoadSnapshot<'_> {
    /// How close the generator came to its limit in the piece of time that has just
    /// ended.
    #[must_use]
    pub fn strain(&self) -> LoadStrain {
        let quantile = |times: Option<&Histogram<u64>>, share: f64| {
            Nanos::new(times.map_or(0, |times| times.value_at_quantile(share)))
        };
        let busy = self.accounts.iter().map(|account| {
            let whole: u64 = account.iter().map(|time| time.as_u64()).sum();
            share_of(
                account[TimeState::Running.index()].as_u64(),
                Nanos::new(whole),
            )
        });
        LoadStrain {
            busy_share: busy.fold(0.0, f64::max),
            lateness_p99: quantile(self.times(LoadTime::OwnLateness), 0.99),
            service_median: Nanos::new(self.second.service.unpack().value_at_quantile(0.5)),
        }
    }
}

fn first_trouble(shard: &LoadShard) -> Option<Trouble> {
    let of_source = shard.source.trouble.get().cloned();
    let trouble = of_source.map(Trouble::plain);
    let trouble = trouble.or_else(|| shard.connect_trouble.get().cloned());
    trouble.or_else(|| shard.answer_trouble.get().cloned())
}

fn share_of(part: u64, whole: Nanos) -> f64 {
    float_from_u64(part) / float_from_u64(whole.as_u64().max(1))
}
