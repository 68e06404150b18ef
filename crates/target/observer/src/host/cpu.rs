//! CPU time of the host, from `/proc/stat`: counted in ticks, usually of 10 ms,
//! on each CPU.

use crate::text;

/// Busy and stolen CPU time in nanoseconds, over all CPUs; the third is not used.
pub(crate) fn parse(text: &[u8]) -> Option<[u64; 3]> {
    let line = text::lines(text).find_map(|line| line.strip_prefix(b"cpu "))?;
    let mut fields = [0; 8];
    for (field, word) in fields.iter_mut().zip(text::words(line)) {
        *field = text::number(word)?;
    }
    // Guests are counted in user time already.
    let [
        user,
        nice,
        system,
        _idle,
        _iowait,
        interrupt,
        soft_interrupt,
        steal,
    ] = fields;
    let ticks = [user, nice, system, interrupt, soft_interrupt];
    let busy = ticks
        .iter()
        .fold(0_u64, |sum, part| sum.saturating_add(*part));
    let tick_nanos = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Some([
        text::scaled(busy, tick_nanos),
        text::scaled(steal, tick_nanos),
        0,
    ])
}

/// Host busy less ours less the subject's, since the first beat.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    first: Option<(u64, u64)>,
    largest: u64,
}

impl Foreign {
    /// The total so far, from totals of the host and of those that are not
    /// foreign. The host's ticks lag behind our nanoseconds by up to one on each
    /// CPU, so the difference may fall; the largest so far is what counts. That
    /// bounds the error once, where adding up what is above zero would grow.
    pub(crate) fn total(&mut self, busy: u64, known: u64) -> u64 {
        let (busy_first, known_first) = *self.first.get_or_insert((busy, known));
        let known = known.saturating_sub(known_first);
        let foreign = busy.saturating_sub(busy_first).saturating_sub(known);
        self.largest = self.largest.max(foreign);
        self.largest
    }
}
