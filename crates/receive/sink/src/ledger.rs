//! The account of stamped events that all sinks of a run keep together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stillwell_metric::{
    Cell, Intervals, Labels, Metric, Recorder, Sample, Shard, Value, catalogue, encode_histogram,
};
use stillwell_plan::StampPlan;
use stillwell_plan::sink::LinesPlan;
use stillwell_plan::stamp::StampForm;
use stillwell_scope::clock;
use stillwell_stamp::{
    ArrivalKind, BEHIND_MAX, Expected, ExpectedStream, Ledger, LedgerError, LedgerReadError,
    Losses, RunMark, STAMP_WIDTH, StampMatch, StampSearch, StampVisitor, StreamFigures, StreamId,
    match_header,
};
use stillwell_units::{ByteSize, Moment, as_usize, count};

use crate::fitting::Fitting;

/// Ranges of missing events that are kept for a person to look at, for each stream.
const RANGES_KEPT: usize = 64;

/// Maximum number of matches in a request that wait for its end.
const HELD_MAX: usize = 65_536;

/// A generator whose events are stamped.
#[derive(Clone, Debug)]
pub struct StampedGenerator {
    /// The generator.
    pub id: String,
    /// Expected stamps of its events.
    pub plan: StampPlan,
    /// Number of stamped events that each of its streams has begun. Its streams have
    /// the numbers behind those of the generators before it.
    pub sent: Arc<[Cell]>,
}

/// The account of stamped events that all sinks of a run keep together.
///
/// Each worker locks it for as long as it enters what one read or request held: with one
/// worker no thread ever waits, and with several the order of arrival is that in which their
/// reads and requests are entered.
#[derive(Debug)]
pub struct SharedLedger {
    generators: Vec<Stamped>,
    run_labels: Labels,
    state: Mutex<LedgerState>,
}

#[derive(Debug)]
struct Stamped {
    generator: StampedGenerator,
    first: u32,
    labels: Labels,
    latency: Intervals,
    transit: Intervals,
}

#[derive(Debug)]
struct LedgerState {
    ledger: Ledger,
    /// One for each stream: whose it is.
    owners: Vec<usize>,
    /// One for each generator.
    times: Vec<Times>,
    /// Lead of the clock of each stream's generator over this one, in nanoseconds; empty if all
    /// have this clock.
    leads: Vec<i64>,
}

/// Latencies of events, from the intended time and from the sent time.
#[derive(Debug)]
struct Times {
    latency: Recorder,
    transit: Recorder,
}

/// The delivery account of one stream.
#[derive(Clone, Debug)]
pub struct StreamAccount {
    /// The stream.
    pub stream: StreamId,
    /// Its figures.
    pub figures: StreamFigures,
    /// Missing events.
    pub losses: Losses,
}

impl SharedLedger {
    /// An empty account of what `generators` send in `run`, in `memory`.
    ///
    /// # Errors
    /// If there is none of them, or if streams, copies or memory are out of bounds.
    pub fn new(
        run: RunMark,
        generators: Vec<StampedGenerator>,
        memory: ByteSize,
    ) -> Result<Self, LedgerError> {
        let (mut streams, mut owners) = (Vec::new(), Vec::new());
        let (mut times, mut stamped) = (Vec::new(), Vec::new());
        for (owner, generator) in generators.into_iter().enumerate() {
            let first = count(streams.len());
            let expected = ExpectedStream {
                copies: generator.plan.copies,
                late_after: generator.plan.late_after,
            };
            streams.extend(generator.sent.iter().map(|_| expected));
            owners.resize(streams.len(), owner);
            let (latency, latency_intervals) = Recorder::pair();
            let (transit, transit_intervals) = Recorder::pair();
            times.push(Times { latency, transit });
            stamped.push(Stamped {
                labels: labels().with("id", generator.id.as_str()),
                generator,
                first,
                latency: latency_intervals,
                transit: transit_intervals,
            });
        }
        let expected = Expected {
            run,
            streams,
            memory,
        };
        Ok(Self {
            generators: stamped,
            run_labels: labels(),
            state: Mutex::new(LedgerState {
                ledger: Ledger::new(expected)?,
                owners,
                times,
                leads: Vec::new(),
            }),
        })
    }

    /// The accounts of the streams of each generator, in the order in which they were given:
    /// every stream with the events begun until now.
    #[must_use]
    pub fn accounts(&self) -> Vec<Vec<StreamAccount>> {
        let state = self.lock();
        let of_generator = |stamped: &Stamped| {
            let accounts = stamped.streams().filter_map(|(stream, sent)| {
                let sent = Some(sent.total());
                Some(StreamAccount {
                    stream,
                    figures: state.ledger.figures(stream, sent)?,
                    losses: state.ledger.losses(stream, sent, RANGES_KEPT)?,
                })
            });
            accounts.collect()
        };
        self.generators.iter().map(of_generator).collect()
    }

    /// Sets the lead of the clock of each stream's generator over the clock of this process, in
    /// nanoseconds, by the number of the stream.
    pub fn set_leads(&self, leads: Vec<i64>) {
        self.lock().leads = leads;
    }

    /// Sets the number of events that each stream has begun, where other processes send them.
    pub fn set_sent(&self, counts: &[u64]) {
        // Under the lock, so only one thread writes.
        let _state = self.lock();
        let cells = self
            .generators
            .iter()
            .flat_map(|stamped| stamped.generator.sent.iter());
        for (cell, count) in cells.zip(counts) {
            cell.set(*count);
        }
    }

    /// Returns the number of events that each stream has begun.
    #[must_use]
    pub fn sent(&self) -> Vec<u64> {
        let cells = self
            .generators
            .iter()
            .flat_map(|stamped| stamped.generator.sent.iter());
        cells.map(Cell::total).collect()
    }

    /// Returns all arrivals so far in a form for files; see [`SharedLedger::absorb`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.lock().ledger.to_bytes()
    }

    /// Adds the arrivals that another process wrote with [`SharedLedger::to_bytes`]. Loss and
    /// duplicates are then as exact as if it had been one.
    ///
    /// # Errors
    /// If `bytes` are no ledger of these streams, or are damaged.
    pub fn absorb(&self, bytes: &[u8]) -> Result<(), LedgerReadError> {
        let ledger = &mut self.lock().ledger;
        let mut read = Ledger::from_bytes(bytes, ledger.expected().clone())?;
        Ok(ledger.absorb(&mut read)?)
    }

    /// Beginnings of stamps that were none, stamps of others, and the memory that
    /// the account takes.
    #[must_use]
    pub fn unattributed(&self) -> (u64, u64, ByteSize) {
        let ledger = &self.lock().ledger;
        (ledger.broken(), ledger.foreign(), ledger.memory())
    }

    /// Stamped events that were begun and have not arrived; the least where that is
    /// not certain.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.sum_of(|figures| figures.lost.least)
    }

    /// Stamped events that were begun and of which copies have not arrived; the most where that is
    /// not certain.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.sum_of(|figures| figures.lost.most.saturating_add(figures.incomplete.most))
    }

    fn sum_of(&self, figure: impl Fn(&StreamFigures) -> u64) -> u64 {
        let state = self.lock();
        let streams = self.generators.iter().flat_map(Stamped::streams);
        let counts = streams.filter_map(|(stream, sent)| {
            let figures = state.ledger.figures(stream, Some(sent.total()))?;
            Some(figure(&figures))
        });
        counts.sum()
    }

    /// Returns true where stamps are in headers.
    fn is_in_headers(&self) -> bool {
        let mut plans = self.generators.iter().map(|known| known.generator.plan);
        plans.any(|plan| plan.form == StampForm::Header)
    }

    fn lock(&self) -> MutexGuard<'_, LedgerState> {
        // Entering never panics half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn labels() -> Labels {
    Labels::none().with("component", "ledger")
}

impl Stamped {
    /// Its streams, each with the count of what was begun.
    fn streams(&self) -> impl Iterator<Item = (StreamId, &Cell)> {
        let numbers = self.first..;
        let streams = numbers.zip(self.generator.sent.iter());
        streams.filter_map(|(number, sent)| Some((StreamId::new(number)?, sent)))
    }

    fn sample(&self, state: &LedgerState, samples: &mut Vec<Sample>) {
        let mut sums = Sums::default();
        for (stream, sent) in self.streams() {
            if let Some(figures) = state.ledger.figures(stream, Some(sent.total())) {
                sums.add(&figures);
            }
        }
        let mut counts = vec![
            (catalogue::STAMPED_SENT, sums.sent),
            (catalogue::STAMPED_RECEIVED, sums.received),
            (catalogue::EVENTS_MISSING, sums.missing),
            (catalogue::EVENTS_DUPLICATED, sums.duplicated),
            (catalogue::EVENTS_REORDERED, sums.reordered),
            (catalogue::EVENTS_DAMAGED, sums.damaged),
            (catalogue::EVENTS_UNVERIFIABLE, sums.unverifiable),
        ];
        let plan = &self.generator.plan;
        counts.extend(plan.late_after.map(|_| (catalogue::EVENTS_LATE, sums.late)));
        if plan.copies > 1 {
            counts.push((catalogue::EVENTS_INCOMPLETE, sums.incomplete));
        }
        let counts = counts.into_iter();
        samples.extend(counts.map(|(metric, count)| Sample::int(metric, &self.labels, count)));
    }
}

/// The figures of a generator's streams together; the least of what is not certain.
#[derive(Debug, Default)]
struct Sums {
    sent: u64,
    received: u64,
    missing: u64,
    incomplete: u64,
    duplicated: u64,
    reordered: u64,
    late: u64,
    damaged: u64,
    unverifiable: u64,
}

impl Sums {
    fn add(&mut self, figures: &StreamFigures) {
        self.sent += figures.sent;
        self.received += figures.received.least;
        self.missing += figures.lost.least;
        self.incomplete += figures.incomplete.least;
        self.duplicated += figures.duplicated.least;
        self.reordered += figures.reordered;
        self.late += figures.late;
        self.damaged += figures.damaged;
        self.unverifiable += figures.unverifiable;
    }
}

impl Shard for SharedLedger {
    fn sample(&self, samples: &mut Vec<Sample>) {
        {
            let mut state = self.lock();
            for stamped in &self.generators {
                stamped.sample(&state, samples);
            }
            for (metric, count) in [
                (catalogue::STAMPS_BROKEN, state.ledger.broken()),
                (catalogue::STAMPS_FOREIGN, state.ledger.foreign()),
            ] {
                samples.push(Sample::int(metric, &self.run_labels, count));
            }
            for times in &mut state.times {
                times.latency.flush();
                times.transit.flush();
            }
        }
        for stamped in &self.generators {
            let mut take = |metric: Metric, intervals: &Intervals| {
                if let Some(histogram) = intervals.take().filter(|h| !h.is_empty()) {
                    let value = Value::Histogram(encode_histogram(&histogram));
                    samples.push(Sample::new(metric, &stamped.labels, value));
                }
            };
            take(catalogue::EVENT_LATENCY, &stamped.latency);
            take(catalogue::EVENT_TRANSIT, &stamped.transit);
        }
    }
}

/// Enters the matches of a search in a read that arrived at `now`.
struct Entering<'a> {
    state: &'a mut LedgerState,
    now: Moment,
}

impl StampVisitor for Entering<'_> {
    #[inline(always)]
    fn visit(&mut self, matched: StampMatch) {
        self.state.enter(&matched, self.now);
    }
}

/// Keeps the matches of a search in a read that arrived at `now`.
struct Holding<'a> {
    matches: &'a mut Vec<(StampMatch, Moment)>,
    now: Moment,
}

impl StampVisitor for Holding<'_> {
    #[inline(always)]
    fn visit(&mut self, matched: StampMatch) {
        self.matches.push((matched, self.now));
    }
}

impl LedgerState {
    const fn entering(&mut self, now: Moment) -> Entering<'_> {
        Entering { state: self, now }
    }

    #[inline(always)]
    fn enter(&mut self, matched: &StampMatch, now: Moment) {
        let now = match matched {
            StampMatch::Stamp { stamp, .. } if !self.leads.is_empty() => {
                let stream = as_usize(stamp.stream.number());
                let lead = self.leads.get(stream).copied().unwrap_or(0);
                Moment::new(now.as_u64().saturating_add_signed(lead))
            }
            _ => now,
        };
        let Some(arrival) = self.ledger.take_in(matched, now) else {
            return;
        };
        if !matches!(
            arrival.kind,
            ArrivalKind::First | ArrivalKind::Reordered { .. }
        ) {
            return;
        }
        let stream = as_usize(arrival.stream.number());
        if let Some(times) = self
            .owners
            .get(stream)
            .and_then(|owner| self.times.get_mut(*owner))
        {
            times.latency.record(arrival.latency);
            times.transit.record(arrival.transit);
        }
    }
}

/// Looks for stamps in what one connection brings, where they are configured. Open stamps
/// are entered in their present state when it is dropped, except those of a request that
/// is not whole.
#[derive(Debug)]
pub(crate) struct Stamps {
    looking: Option<Looking>,
}

#[derive(Debug)]
struct Looking {
    search: StampSearch,
    ledger: Arc<SharedLedger>,
    /// Present where only stamps in lines of a given form count.
    fitting: Option<Fitting>,
    /// Data of the request under way, where stamps are in headers.
    headed: Option<Headed>,
    /// Present where the connection brings requests, which count once they are whole.
    held: Option<Held>,
}

/// The matches in the request under way, each with the moment of its read. An endless body must
/// not fill the memory: after the read that exceeds [`HELD_MAX`], all matches are entered at
/// once up to the end of the request, and stay entered if it breaks off.
#[derive(Debug, Default)]
struct Held {
    /// Its memory is used again by the next request.
    matches: Vec<(StampMatch, Moment)>,
    /// True where there were too many.
    is_exceeded: bool,
}

impl Held {
    const fn holding(&mut self, now: Moment) -> Holding<'_> {
        let matches = &mut self.matches;
        Holding { matches, now }
    }

    fn enter(&mut self, state: &mut LedgerState) {
        for (matched, now) in &self.matches {
            state.enter(matched, *now);
        }
        self.matches.clear();
    }
}

/// The stamp header of a request, and the beginning of its body, which the header covers.
#[derive(Debug, Default)]
struct Headed {
    /// Empty where there is no such header.
    token: Vec<u8>,
    behind: Vec<u8>,
}

impl Headed {
    fn begin(&mut self, token: Option<&[u8]>) {
        self.token.clear();
        self.behind.clear();
        let token = token.unwrap_or_default();
        // What is longer is no stamp either way.
        self.token
            .extend_from_slice(&token[..token.len().min(STAMP_WIDTH + 1)]);
    }

    fn take(&mut self, bytes: &[u8]) {
        if !self.token.is_empty() {
            let room = BEHIND_MAX - self.behind.len();
            self.behind
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }
}

impl Stamps {
    pub(crate) fn new(ledger: Option<&Arc<SharedLedger>>, lines: Option<&Arc<LinesPlan>>) -> Self {
        Self {
            looking: ledger.map(|ledger| Looking {
                search: StampSearch::new(),
                ledger: Arc::clone(ledger),
                fitting: lines.map(|lines| Fitting::new(Arc::clone(lines))),
                headed: ledger.is_in_headers().then(Headed::default),
                held: None,
            }),
        }
    }

    /// The same, of a connection with requests: what is found in one is entered when
    /// [`Self::end_request`] is called, and never if the connection ends before. Endless
    /// requests are an exception: see [`Held`].
    pub(crate) fn of_requests(mut self) -> Self {
        if let Some(looking) = &mut self.looking {
            looking.held = Some(Held::default());
        }
        self
    }

    /// Returns true if stamps are looked for in headers.
    pub(crate) fn looks_in_headers(&self) -> bool {
        let looking = self.looking.as_ref();
        looking.is_some_and(|looking| looking.headed.is_some())
    }

    /// A request begins that has this in its header for stamps, if it has that; its
    /// body follows. What the header says is entered once it is whole.
    pub(crate) fn begin_request(&mut self, header: Option<&[u8]>) {
        let looking = self.looking.as_mut();
        if let Some(headed) = looking.and_then(|looking| looking.headed.as_mut()) {
            headed.begin(header);
        }
    }

    /// The request that began last is whole.
    pub(crate) fn end_request(&mut self) {
        let looking = self.looking.as_ref();
        if let Some(headed) = looking.and_then(|looking| looking.headed.as_ref()) {
            self.header(&headed.token, &headed.behind);
        }
        self.end();
    }

    /// Enters the stamp header of a whole request, if it has one and stamps are in headers; its body
    /// begins with `behind`.
    pub(crate) fn header(&self, token: &[u8], behind: &[u8]) {
        if let Some(looking) = &self.looking
            && looking.headed.is_some()
            && !token.is_empty()
        {
            let matched = match_header(token, behind);
            looking.ledger.lock().enter(&matched, clock::now());
        }
    }

    /// Takes the next read.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let Some(looking) = &mut self.looking else {
            return;
        };
        if let Some(headed) = &mut looking.headed {
            headed.take(bytes);
        }
        let now = clock::now();
        let search = &mut looking.search;
        if let Some(held) = looking.held.as_mut().filter(|held| !held.is_exceeded) {
            match &mut looking.fitting {
                None => search.feed(bytes, held.holding(now)),
                Some(fitting) => fitting.take(bytes, |line| {
                    search.whole(line, held.holding(now));
                }),
            }
            if held.matches.len() > HELD_MAX {
                held.is_exceeded = true;
                held.enter(&mut looking.ledger.lock());
            }
            return;
        }
        let mut state = looking.ledger.lock();
        match &mut looking.fitting {
            None => search.feed(bytes, state.entering(now)),
            Some(fitting) => fitting.take(bytes, |line| {
                search.whole(line, state.entering(now));
            }),
        }
    }

    /// Takes a message that is all there; what the search keeps stays as it is.
    pub(crate) fn whole(&self, bytes: &[u8]) {
        let Some(looking) = &self.looking else {
            return;
        };
        let now = clock::now();
        let mut state = looking.ledger.lock();
        let mut enter = |bytes: &[u8]| {
            looking.search.whole(bytes, state.entering(now));
        };
        match &looking.fitting {
            None => enter(bytes),
            Some(fitting) => fitting.whole(bytes, enter),
        }
    }

    /// Nothing of what was begun comes any more, such as at the end of a body.
    pub(crate) fn end(&mut self) {
        let Some(looking) = &mut self.looking else {
            return;
        };
        if let Some(headed) = &mut looking.headed {
            headed.begin(None);
        }
        let now = clock::now();
        let mut state = looking.ledger.lock();
        if let Some(held) = &mut looking.held {
            held.enter(&mut state);
            held.is_exceeded = false;
        }
        let search = &mut looking.search;
        match &mut looking.fitting {
            None => search.end(state.entering(now)),
            Some(fitting) => fitting.finish(|line| {
                search.whole(line, state.entering(now));
            }),
        }
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        let looking = self.looking.as_ref();
        let held = looking.and_then(|looking| looking.held.as_ref());
        if held.is_none_or(|held| held.is_exceeded) {
            self.end();
        }
    }
}
