//! Rates of generators while they send, from their signs of life.

use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos, float_from_u64, human};

use crate::beats::SignOfLife;
use crate::job::beat_name;
use crate::store::JobStore;

/// Time between two looks.
const LOOK_EVERY: Nanos = Nanos::from_secs(5);

/// The latest rate of each generator.
#[derive(Debug)]
pub(crate) struct FleetRates {
    next: Moment,
    generators: Vec<GeneratorRate>,
}

#[derive(Clone, Debug, Default)]
struct GeneratorRate {
    /// Number of the sign of life that is read next.
    next: u32,
    /// Requests per second.
    latest: Option<f64>,
}

impl FleetRates {
    pub(crate) fn new(generators: u16) -> Self {
        Self {
            next: clock::now() + LOOK_EVERY,
            generators: vec![GeneratorRate::default(); generators.into()],
        }
    }

    /// Reads new signs of life of the generators that have no result yet, and returns a line for
    /// readers if there are some. A store that does not answer is read again later.
    pub(crate) fn look(&mut self, store: &JobStore, open: &[usize]) -> Option<String> {
        if clock::now() < self.next {
            return None;
        }
        self.next = clock::now() + LOOK_EVERY;
        let mut is_new = false;
        for task in open {
            let generator = self.generators.get_mut(*task)?;
            while let Some(beat) = read(store, *task, generator.next) {
                // The first two are of times in which the load had not begun.
                if generator.next > 1 {
                    let seconds = float_from_u64(beat.length.as_u64().max(1)) / 1e9;
                    generator.latest = Some(float_from_u64(beat.requests) / seconds);
                    is_new = true;
                }
                generator.next += 1;
            }
        }
        let rates = open.iter().filter_map(|task| self.generators[*task].latest);
        let rates: Vec<f64> = rates.collect();
        is_new.then(|| line(&rates))
    }
}

fn read(store: &JobStore, task: usize, number: u32) -> Option<SignOfLife> {
    let key = format!("{}/{}", store.job(), beat_name(task, number));
    let bytes = store.store().get(&key).ok()??;
    serde_json::from_slice(&bytes).ok()
}

fn line(rates: &[f64]) -> String {
    let sum: f64 = rates.iter().sum();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let count = u32::try_from(rates.len()).unwrap_or(u32::MAX);
    let senders = human::counted(count, "generator sends", "generators send");
    format!("{senders} {sum:.0} requests/s, {least:.0} to {most:.0} each")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{RetryBounds, Store};
    use stillwell_run::Interrupt;

    #[test]
    fn rates_are_those_of_the_last_signs_of_life() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), true).unwrap();
        let store = JobStore::new(store, "a", RetryBounds::default()).unwrap();
        let beat = |task, number, requests| {
            let beat = SignOfLife {
                requests,
                length: Nanos::from_secs(10),
                totals: None,
            };
            let name = beat_name(task, number);
            store.create_json(&Interrupt::new(), &name, &beat).unwrap();
        };
        let mut rates = FleetRates::new(3);
        let mut look = |open: &[usize]| {
            rates.next = clock::now();
            rates.look(&store, open)
        };
        beat(0, 0, 7);
        beat(0, 1, 7);
        assert_eq!(look(&[0, 1, 2]), None);
        beat(0, 2, 1000);
        beat(1, 0, 0);
        beat(1, 1, 10);
        beat(1, 2, 10);
        beat(1, 3, 3000);
        let line = look(&[0, 1, 2]).unwrap();
        assert_eq!(line, "2 generators send 400 requests/s, 100 to 300 each");
        assert_eq!(look(&[0, 1, 2]), None, "there is no newer one");
        beat(1, 4, 2000);
        let line = look(&[1]).unwrap();
        assert_eq!(line, "1 generator sends 200 requests/s, 200 to 200 each");
    }
}
