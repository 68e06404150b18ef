//! CPU time of the host, from `/proc/stat`: counted in ticks, usually of 10 ms,
//! on each CPU.

use crate::text;

/// Busy and stolen CPU time in nanoseconds, over all CPUs; the third is not used.
pub(crate) fn parse(text: &[u8]) -> Option<[u64; 3]> {
    parse_line(text::lines(text).find_map(|line| line.strip_prefix(b"cpu "))?)
}

/// The same, of the CPUs `cpus` together.
pub(crate) fn busy_of(text: &[u8], cpus: &[u16]) -> Option<[u64; 3]> {
    let mut total = [0; 3];
    for line in text::lines(text).filter_map(|line| line.strip_prefix(b"cpu")) {
        let is_one = line.first().is_some_and(u8::is_ascii_digit);
        let number = text::number(line).and_then(|number| u16::try_from(number).ok());
        if is_one && number.is_some_and(|number| cpus.contains(&number)) {
            let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
            for (total, part) in total.iter_mut().zip(parse_line(&line[digits..])?) {
                *total += part;
            }
        }
    }
    Some(total)
}

fn parse_line(line: &[u8]) -> Option<[u64; 3]> {
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

/// CPU time of other programs: busy time of the host minus Stillwell's and the target's, since the first beat.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    first: Option<(u64, u64)>,
    largest: u64,
}

impl Foreign {
    /// Returns the total so far, from the host's busy time and the attributed time. The host's ticks lag behind
    /// nanosecond clocks by up to one per CPU, so the difference may fall; the largest so far counts. That
    /// bounds the error, while a sum of positive differences would grow.
    pub(crate) fn total(&mut self, busy: u64, attributed: u64) -> u64 {
        let (busy_first, attributed_first) = *self.first.get_or_insert((busy, attributed));
        let attributed = attributed.saturating_sub(attributed_first);
        let foreign = busy.saturating_sub(busy_first).saturating_sub(attributed);
        self.largest = self.largest.max(foreign);
        self.largest
    }
}
