//! Decisions of a listener about requests.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use stillwell_plan::serve::{
    Admission, ExpressionInputs, Fault, LimitAnswer, ServeListenerPlan, TokenBucket,
};
use stillwell_units::{Moment, Nanos, Seed, float_from_u64};
use stillwell_wire::tls::ServerTls;

use crate::answers::{Answers, CommonHead, CommonHttp3, SpecificAnswer};
use crate::counts::ServeShard;
use crate::date::Date;
use crate::request::{RequestedResponse, defines_response};
use crate::request_log::{LoggedRequest, LoggedResult, RequestLogSender};

/// State that the workers of one listener share.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) plan: ServeListenerPlan,
    pub(crate) answers: Answers,
    pub(crate) tls: Option<ServerTls>,
    bucket: Option<TokenBucket>,
    /// When the bucket is full.
    full: AtomicU64,
    /// Requests that came whole and whose answers are not due.
    active: AtomicU64,
    /// When the last request came; 0 before the first.
    last_arrival: AtomicU64,
    started: Moment,
    /// Set before workers start, where requests are logged.
    pub(crate) log: OnceLock<RequestLogSender>,
}

/// State that the connections of one worker share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) site: Arc<Site>,
    pub(crate) shard: Arc<ServeShard>,
    pub(crate) date: RefCell<Date>,
    pub(crate) common_head: RefCell<CommonHead>,
    pub(crate) common_http3: RefCell<CommonHttp3>,
    random: RefCell<Xoshiro256PlusPlus>,
    /// True if all requests without wishes get the same answer at once.
    is_plain: bool,
}

/// The response to a request, and its time.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) due: Moment,
    pub(crate) reply: Reply,
}

/// A response or a fault.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The usual answer.
    Common,
    /// An answer of its own.
    Specific(Box<SpecificAnswer>),
    /// Something goes wrong.
    Fault(Fault),
}

impl Site {
    pub(crate) fn new(
        plan: ServeListenerPlan,
        answers: Answers,
        tls: Option<ServerTls>,
        started: Moment,
    ) -> Self {
        let limit = plan.faults.rate_limit.as_ref();
        Self {
            bucket: limit.map(|l| TokenBucket::new(l.rate.events_per_second(), l.burst)),
            plan,
            answers,
            tls,
            full: AtomicU64::new(0),
            active: AtomicU64::new(0),
            last_arrival: AtomicU64::new(0),
            started,
            log: OnceLock::new(),
        }
    }

    /// A request's answer is due, or never will be.
    pub(crate) fn end_one(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// Applies the rate limit: the time of the response, or a fault.
    fn admit(&self, now: Moment) -> Result<Moment, Fault> {
        let (Some(bucket), Some(limit)) = (self.bucket, &self.plan.faults.rate_limit) else {
            return Ok(now);
        };
        let mut seen = self.full.load(Ordering::Relaxed);
        loop {
            let (full, due) = match bucket.admit(Moment::new(seen), now) {
                Admission::Now(full) => (full, now),
                Admission::Later { at, full } => match limit.answer {
                    LimitAnswer::Queue => (full, at),
                    LimitAnswer::Status(status) => return Err(Fault::Status(status)),
                    LimitAnswer::Close => return Err(Fault::Close),
                },
            };
            let (relaxed, full) = (Ordering::Relaxed, full.as_u64());
            match self
                .full
                .compare_exchange_weak(seen, full, relaxed, relaxed)
            {
                Ok(_) => return Ok(due),
                Err(current) => seen = current,
            }
        }
    }
}

impl Service {
    pub(crate) fn new(site: Arc<Site>, shard: Arc<ServeShard>, seed: &Seed) -> Self {
        let faults = &site.plan.faults;
        let options = &site.plan.answer.options;
        let is_plain = faults.delay.is_none()
            && faults.error.is_none()
            && faults.rate_limit.is_none()
            && options.delay.is_none()
            && options.delta_header.is_none()
            && options.echo_request_headers != Some(true);
        Self {
            site,
            shard,
            date: RefCell::default(),
            common_head: RefCell::default(),
            common_http3: RefCell::default(),
            random: RefCell::new(Xoshiro256PlusPlus::from_seed(*seed.bytes())),
            is_plain,
        }
    }

    /// Reads the options in the headers of a request, pseudo-headers included.
    pub(crate) fn requested<'h, I>(
        &self,
        version: &'static str,
        headers: impl Fn() -> I,
    ) -> Option<Box<RequestedResponse>>
    where
        I: Iterator<Item = (&'h [u8], &'h [u8])>,
    {
        let plan = &self.site.plan.answer;
        let is_echoed = plan.options.echo_request_headers == Some(true);
        let is_logged = self.site.log.get().is_some();
        let defines_response = is_echoed
            || is_logged
            || headers().any(|(name, value)| defines_response(&plan.headers, name, value));
        defines_response.then(|| {
            let headers: Vec<_> = headers().collect();
            let mut requested = RequestedResponse::of(&plan.headers, &headers, is_echoed);
            requested.logged = is_logged.then(|| LoggedRequest::of(version, &headers));
            Box::new(requested)
        })
    }

    /// Decides about a request that is complete `now`. It is active until
    /// [`Site::end_one`].
    pub(crate) fn decide(
        &self,
        now: Moment,
        requested: Option<Box<RequestedResponse>>,
    ) -> Decision {
        let before = self.site.last_arrival.swap(now.as_u64(), Ordering::Relaxed);
        let active = self.site.active.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_plain && requested.is_none() {
            return Decision {
                due: now,
                reply: Reply::Common,
            };
        }
        let delta = (before > 0).then(|| now.since(Moment::new(before)));
        let mut requested =
            requested.map_or_else(RequestedResponse::default, |requested| *requested);
        let logged = requested.logged.take();
        let decision = self.decide_in_full(now, active, delta, requested);
        if let (Some(log), Some(request)) = (self.site.log.get(), logged) {
            let delay = decision.due.since(now);
            log.send(request, self.logged_result(&decision.reply), delay);
        }
        decision
    }

    fn logged_result(&self, reply: &Reply) -> LoggedResult {
        match reply {
            Reply::Common => LoggedResult::Status(self.site.answers.common().status),
            Reply::Specific(answer) => LoggedResult::Status(answer.status),
            Reply::Fault(Fault::Status(status)) => LoggedResult::Status(*status),
            Reply::Fault(fault) => LoggedResult::Fault(fault.name()),
        }
    }

    fn decide_in_full(
        &self,
        now: Moment,
        active: u64,
        delta: Option<Nanos>,
        requested: RequestedResponse,
    ) -> Decision {
        let plan = &self.site.plan;
        let (faults, filters) = (&plan.faults, plan.answer.filters);
        let begin = match self.site.admit(now) {
            Ok(begin) => begin,
            Err(fault) => {
                return Decision {
                    due: now,
                    reply: Reply::Fault(fault),
                };
            }
        };
        let inputs = ExpressionInputs {
            active_requests: float_from_u64(active),
            seconds: now.since(self.site.started).as_secs_f64(),
        };
        let mut generator = self.random.borrow_mut();
        // The upper 53 bits: as many as a float keeps.
        let mut random = || float_from_u64(generator.next_u64() >> 11) / float_from_u64(1 << 53);
        let fault = faults.error.as_ref();
        let fault = fault.and_then(|error| error.evaluate(&inputs, &mut random));
        let added = faults.delay.as_ref();
        let added = added.map_or(Nanos::ZERO, |delay| delay.evaluate(&inputs, &mut random));
        if let (Some(message), Some(filter)) = (&requested.misunderstood, filters.first_name()) {
            return Decision {
                due: begin,
                reply: Reply::Specific(Box::new(SpecificAnswer::misunderstood(filter, message))),
            };
        }
        if requested.is_tunnel {
            return Decision {
                due: begin,
                reply: Reply::Specific(Box::new(SpecificAnswer::of_status(403))),
            };
        }
        let merged = requested
            .options
            .map(|over| plan.answer.options.merged(*over));
        let options = merged.as_ref().unwrap_or(&plan.answer.options);
        let mut due = begin + added;
        if filters.dynamic_delay {
            let delay = options.delay.map_or(Nanos::ZERO, |delay| delay.at(active));
            due = due + delay;
        }
        if filters.dynamic_delay || filters.header_delay {
            due = due + requested.delay;
        }
        let delta = delta.filter(|_| filters.time_tracking);
        let delta = delta.zip(options.delta_header.as_deref());
        let is_common =
            merged.is_none() && requested.echo.is_none() && delta.is_none() && !requested.is_call;
        let reply = match fault {
            Some(fault) => Reply::Fault(fault),
            None if is_common => Reply::Common,
            None => {
                let echo = requested.echo.as_deref();
                let mut answer = SpecificAnswer::new(options, filters, echo, delta);
                if requested.is_call {
                    answer.make_call_answer();
                }
                Reply::Specific(Box::new(answer))
            }
        };
        Decision { due, reply }
    }
}

#[cfg(test)]
impl Service {
    /// A service with these faults and default responses.
    pub(crate) fn with_faults(faults: stillwell_plan::serve::FaultsPlan) -> Self {
        use std::net::{Ipv4Addr, SocketAddr};

        use stillwell_plan::serve::{
            AnswerPlan, FilterSet, ResponseOptions, ServeHeaders, ServeProtocols,
        };

        let plan = ServeListenerPlan {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: None,
            protocols: ServeProtocols::Auto,
            answer: AnswerPlan {
                filters: FilterSet::ALL,
                options: ResponseOptions::default(),
                headers: ServeHeaders::default(),
            },
            faults,
            connections_max: 1,
            chains: Vec::new(),
        };
        let answers = Answers::new(&plan.answer).unwrap();
        let site = Site::new(plan, answers, None, stillwell_scope::clock::now());
        let shard = Arc::new(ServeShard::new());
        Self::new(Arc::new(site), shard, &Seed::from_number(1))
    }
}
