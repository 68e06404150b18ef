//! The evidence by which the result of a load is judged, from its capture.

use stillwell_metric::{
    LoadCounts, LoadEvidence, LoadSourceEvidence, LoadStrain, LoadTime, Outcome, SourceCount,
    TimeState, Trouble, add_histogram, empty_histogram,
};
use stillwell_units::Nanos;

use super::{FleetRecord, LoadCapture};

impl LoadCapture {
    /// Returns the evidence by which the result of the load is judged.
    #[must_use]
    pub fn evidence(&self) -> LoadEvidence {
        let manifest = &self.manifest;
        let answers = |ended: fn(&LoadCounts, Outcome) -> u64| -> u64 {
            let classes = Outcome::ANSWERS.into_iter();
            classes
                .map(|class| self.sum(|counts| ended(counts, class)))
                .sum()
        };
        LoadEvidence {
            measured: manifest.measured,
            has_warmup: manifest.plan.warmup > Nanos::ZERO,
            strain: LoadStrain {
                busy_share: self.largest_share(|counts| counts.spent(TimeState::Running)),
                lateness_p99: self.lateness_p99(),
                lateness_count: self.lateness_count(),
                service_median: self.service_median(),
            },
            cpu_wait_share: self.largest_share(|counts| counts.run_delay.measured),
            steal_share: manifest
                .host
                .map(|host| host.steal.share_of(manifest.measured) / f64::from(host.cpus.max(1))),
            due: self.sum(LoadCounts::due),
            requested: self.sum(|counts| counts.requested.measured),
            begun: self.sum(|counts| counts.begun),
            sent: self.sum(|counts| counts.sent),
            answers: answers(LoadCounts::ended),
            answers_with_warmup: answers(LoadCounts::ended_ever),
            malformed: self.sum(|counts| counts.ended(Outcome::Malformed)),
            answer_trouble: self
                .counts()
                .find_map(|counts| counts.answer_trouble.clone()),
            first_trouble: self.counts().find_map(first_trouble),
            source: self.source_evidence(),
            export_failures: manifest.telemetry.troubles(),
            headers_dropped: self.sum(|counts| counts.headers_dropped.measured),
            generators: manifest
                .fleet
                .as_ref()
                .map(FleetRecord::evidence)
                .unwrap_or_default(),
        }
    }

    /// Returns the largest share of its time that a worker spent on `part`.
    fn largest_share(&self, part: fn(&LoadCounts) -> u64) -> f64 {
        let shares = self.counts().map(|counts| {
            let whole = counts.spent.iter().sum();
            Nanos::new(part(counts)).share_of(Nanos::new(whole))
        });
        shares.fold(0.0, f64::max)
    }

    fn lateness_p99(&self) -> Nanos {
        let mut all = empty_histogram();
        for worker in self.workers() {
            add_histogram(&mut all, worker.times(LoadTime::GeneratorLateness));
        }
        Nanos::new(all.value_at_quantile(0.99))
    }

    fn lateness_count(&self) -> u64 {
        let workers = self.workers();
        workers
            .map(|worker| worker.times(LoadTime::GeneratorLateness).len())
            .sum()
    }

    fn service_median(&self) -> Nanos {
        let mut all = empty_histogram();
        for worker in self.workers() {
            add_histogram(&mut all, &worker.times_of_answers(LoadTime::Service));
        }
        Nanos::new(all.value_at_quantile(0.5))
    }

    fn source_evidence(&self) -> LoadSourceEvidence {
        let shares = self.manifest.workers.iter().map(|worker| {
            let waited = Nanos::new(worker.counts.source.waited.measured);
            waited.share_of(worker.measured)
        });
        LoadSourceEvidence {
            requests: self.sum(|counts| counts.source.value(SourceCount::Requests)),
            waits: self.sum(|counts| counts.source.waits.measured),
            waits_with_warmup: self.sum(|counts| counts.source.waits.total),
            wait_share: shares.fold(0.0, f64::max),
            trouble: self
                .counts()
                .find_map(|counts| counts.source.trouble.clone()),
        }
    }
}

fn first_trouble(counts: &LoadCounts) -> Option<Trouble> {
    let of_source = counts.source.trouble.clone().map(Trouble::plain);
    let trouble = of_source.or_else(|| counts.connect_trouble.clone());
    trouble.or_else(|| counts.answer_trouble.clone())
}

#[cfg(test)]
mod tests {
    use stillwell_metric::PhasedCount;

    use super::*;
    use crate::load::HostCpu;
    use crate::load::folder::tests::capture;

    #[test]
    fn evidence_is_of_all_workers_and_of_the_busiest() {
        let mut capture = capture();
        let [first, second] = &mut *capture.manifest.workers else {
            panic!("two workers");
        };
        first.counts.spent[TimeState::Running.index()] = 30;
        first.counts.spent[TimeState::Blocked.index()] = 70;
        second.counts.spent[TimeState::Running.index()] = 90;
        second.counts.spent[TimeState::Blocked.index()] = 10;
        for (worker, number) in [(&mut *first, 1), (second, 2)] {
            worker.counts.outcomes = [0; Outcome::ALL.len()];
            worker.counts.outcomes[Outcome::Ok.index()] = number;
            worker.counts.outcomes[Outcome::ConnectRefused.index()] = 5;
            worker.counts.warmup_outcomes[Outcome::Status5xx.index()] = 4;
            worker.counts.source.waited = PhasedCount {
                total: 9,
                measured: number * worker.measured.as_u64() / 4,
            };
        }
        first.counts.source.trouble = Some("no source".to_owned());
        capture.manifest.host = Some(HostCpu {
            busy: Nanos::SECOND,
            steal: Nanos::SECOND,
            cpus: 2,
        });
        let evidence = capture.evidence();
        assert_eq!((evidence.due, evidence.begun), (21, 21));
        assert_eq!((evidence.answers, evidence.answers_with_warmup), (3, 11));
        assert!((evidence.strain.busy_share - 0.9).abs() < 1e-9);
        assert!((evidence.source.wait_share - 0.5).abs() < 1e-9);
        assert!((evidence.steal_share.unwrap() - 0.2).abs() < 1e-9);
        assert!(evidence.strain.service_median > Nanos::ZERO);
        assert_eq!(
            evidence.first_trouble,
            Some(Trouble::plain("no source".to_owned()))
        );
        assert_eq!(
            evidence.answer_trouble,
            Some(Trouble::plain("why".to_owned()))
        );
    }
}
