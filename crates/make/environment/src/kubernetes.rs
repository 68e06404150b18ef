//! Objects that a Kubernetes cluster is asked to make, keeps for a while and deletes, over
//! and over.
//!
//! Each object has its name and one task: it is made, lives, is deleted by the uid that the
//! API gave it, and made anew once the API has let go of it. Nothing is deleted that
//! was not made here: of what may have been made without an answer the label is looked at
//! before. An object that stands is known to the worker, which says at its end what it
//! had to leave behind.
//!
//! What can only be mended by a person (a right that is lacking, a name that is
//! taken, a cluster that was never reached) ends the generator with the API's own words; what
//! passes is counted and tried again.

mod access;
mod api;
mod object;

use std::cell::Cell;
use std::rc::Rc;

use stillwell_metric::Outcome;
use stillwell_plan::KubernetesPlan;
use stillwell_scope::{Tasks, clock};
use stillwell_units::{Moment, Nanos};
use stillwell_worker::{Backoff, Opener, Wait, Worker};
use tokio::sync::Semaphore;
use tokio::time::sleep;

pub use access::ClusterError;
use api::{Answer, Api, NoAnswer};
use object::Object;

/// How long objects may take to be deleted after a stop. Less than a run closes in, so that
/// what is left can be told.
const GRACE: Nanos = Nanos::from_secs(8);

/// Questions at once: more would be a load on the API and not on the cluster.
const QUESTIONS_MAX: usize = 8;

/// Where objects belong if nobody says.
const NAMESPACE: &str = "default";

/// What a generator of objects is to be, to be taken to its worker.
#[derive(Clone, Debug)]
pub(crate) struct ObjectsToBe {
    api: Api,
    objects: Vec<Object>,
    lifetime: Option<Nanos>,
}

impl ObjectsToBe {
    /// Finds out how the cluster is reached, and opens nothing.
    pub(crate) fn new(plan: &KubernetesPlan, id: &str) -> Result<Self, ClusterError> {
        let access = access::find(plan)?;
        let namespace = plan.namespace.as_deref().or(access.namespace.as_deref());
        let namespace = namespace.unwrap_or(NAMESPACE);
        let objects = (0..plan.count).map(|index| Object::new(plan, id, namespace, index));
        Ok(Self {
            api: Api::new(&access)?,
            objects: objects.collect(),
            lifetime: plan.lifetime,
        })
    }
}

impl Opener for ObjectsToBe {
    fn grace(&self) -> Nanos {
        GRACE
    }

    /// What is not deleted by then stays in the cluster.
    fn grace_at_the_end(&self) -> Nanos {
        GRACE
    }

    /// Objects at a time.
    fn tasks_of(&self, _connections: u16) -> usize {
        self.objects.len()
    }

    /// Starts the tasks of all objects.
    fn open(&self, worker: &Rc<Worker>, _connections: u16, tasks: &mut Tasks) {
        let cluster = Rc::new(Cluster {
            api: self.api.clone().for_worker(),
            lifetime: self.lifetime,
            places: Semaphore::new(QUESTIONS_MAX),
            has_answered: Cell::new(false),
        });
        for object in &self.objects {
            let churn = Churn {
                worker: Rc::clone(worker),
                cluster: Rc::clone(&cluster),
                object: object.clone(),
                standing: Standing::No,
            };
            tasks.spawn(churn.run());
        }
    }
}

/// What the objects of a generator have in common.
#[derive(Debug)]
struct Cluster {
    api: Api,
    lifetime: Option<Nanos>,
    places: Semaphore,
    /// Whether it ever has: until then it may not be there at all.
    has_answered: Cell<bool>,
}

/// Whether an object of ours stands.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Standing {
    No,
    /// It was asked for, and nobody knows.
    Perhaps,
    /// With this uid.
    Yes(String),
}

/// Why something was not done.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Refusal {
    outcome: Outcome,
    why: String,
    /// Whether only a person can mend it.
    is_final: bool,
}

/// One object, over and over.
#[derive(Debug)]
struct Churn {
    worker: Rc<Worker>,
    cluster: Rc<Cluster>,
    object: Object,
    standing: Standing,
}

impl Churn {
    async fn run(mut self) {
        let mut backoff = Backoff::new();
        while !self.worker.is_ending() {
            match self.make().await {
                Ok(()) => {
                    backoff.reset();
                    self.live().await;
                    self.delete().await;
                }
                Err(refusal) if refusal.is_final => self.worker.fail(refusal.why),
                // What may stand is found or made again by the next attempt.
                Err(_) => {
                    self.worker.pause(&mut backoff).await;
                }
            }
        }
        self.delete().await;
    }

    /// Has it made, and counts what came of that.
    async fn make(&mut self) -> Result<(), Refusal> {
        self.worker.begin_paced();
        let made = self.create().await;
        let outcome = match &made {
            Ok(_) => Outcome::Ok,
            Err(refusal) => refusal.outcome,
        };
        self.worker.shard.count(outcome);
        let begun = made?;
        self.worker.end_paced();
        let now = clock::now();
        let mut state = self.worker.state.borrow_mut();
        state.record_answer(begun, begun, now);
        Ok(())
    }

    /// When the question that led to it was asked. An earlier object of the name that is on
    /// its way out is waited for.
    async fn create(&mut self) -> Result<Moment, Refusal> {
        let mut backoff = Backoff::new();
        loop {
            let begun = clock::now();
            let (path, body) = (self.object.collection.clone(), self.object.body.clone());
            // Waited for also at the end of the worker: what was made could not be
            // deleted without its uid.
            let answer = match self.ask("POST", &path, &body).await {
                Ok(answer) => answer,
                Err(none) => {
                    if none.was_asked {
                        self.stands(Standing::Perhaps);
                    }
                    return Err(self.unanswered("create", &none));
                }
            };
            if answer.is_done() {
                let Some(uid) = Object::uid_of(&answer.body) else {
                    return Err(self.refused(
                        "create",
                        &answer,
                        "which is not what a cluster says",
                    ));
                };
                self.stands(Standing::Yes(uid));
                return Ok(begun);
            }
            if answer.is_being_deleted() {
                self.worker
                    .pause(&mut backoff)
                    .await
                    .ok_or_else(Refusal::at_the_end)?;
                continue;
            }
            if answer.status == 409 && self.standing == Standing::Perhaps && self.look().await? {
                return Ok(begun);
            }
            if answer.status >= 500 {
                // It may have been made before that went wrong.
                self.stands(Standing::Perhaps);
            }
            return Err(self.refused("create", &answer, &answer.message()));
        }
    }

    /// Whether what may stand does; it is known then.
    async fn look(&mut self) -> Result<bool, Refusal> {
        let path = self.object.path.clone();
        let answer = self.ask("GET", &path, b"").await;
        let answer = answer.map_err(|none| self.unanswered("look at", &none))?;
        match (answer.status, Object::uid_of(&answer.body)) {
            (200, Some(uid)) if self.object.is_own(&answer.body) => {
                self.stands(Standing::Yes(uid));
                Ok(true)
            }
            // None, or one of others.
            (200 | 404, _) => {
                self.stands(Standing::No);
                Ok(false)
            }
            _ => Err(self.refused("look at", &answer, &answer.message())),
        }
    }

    async fn live(&self) {
        let lives = async {
            match self.cluster.lifetime {
                Some(lifetime) => sleep(lifetime.as_duration()).await,
                None => std::future::pending().await,
            }
        };
        let lives = self.worker.unless_ending(lives);
        self.worker.wait(Wait::Other, lives).await;
    }

    /// Deletes what stands, however often it takes; at the end of the worker until that
    /// cuts it.
    async fn delete(&mut self) {
        let mut backoff = Backoff::new();
        while self.standing != Standing::No {
            let Err(refusal) = self.try_delete().await else {
                return;
            };
            self.worker
                .left(&self.object.shown, &self.object.remedy, &refusal.why);
            if refusal.is_final {
                self.worker.fail(refusal.why);
                return;
            }
            let pause = sleep(backoff.pause().as_duration());
            self.worker.wait(Wait::Other, pause).await;
        }
    }

    async fn try_delete(&mut self) -> Result<(), Refusal> {
        if self.standing == Standing::Perhaps && !self.look().await? {
            return Ok(());
        }
        let Standing::Yes(uid) = &self.standing else {
            return Ok(());
        };
        let (path, body) = (self.object.path.clone(), Object::deletion(uid));
        let answer = self.ask("DELETE", &path, &body).await;
        let answer = answer.map_err(|none| self.unanswered("delete", &none))?;
        // Of 404 it is gone, of 409 another one stands there that is not ours.
        if answer.is_done() || matches!(answer.status, 404 | 409) {
            self.stands(Standing::No);
            return Ok(());
        }
        Err(self.refused("delete", &answer, &answer.message()))
    }

    async fn ask(&self, method: &str, path: &str, body: &[u8]) -> Result<Answer, NoAnswer> {
        let asked = async {
            // Never closed, so there is always a place in the end.
            let _place = self.cluster.places.acquire().await.ok();
            self.cluster.api.ask(method, path, body).await
        };
        let answer = self.worker.wait(Wait::Other, asked).await;
        if answer.is_ok() {
            self.cluster.has_answered.set(true);
        }
        answer
    }

    fn stands(&mut self, standing: Standing) {
        match &standing {
            Standing::No => self.worker.not_left(&self.object.shown),
            Standing::Perhaps => {
                let why = "no answer said whether it was made";
                self.worker
                    .left(&self.object.shown, &self.object.remedy, why);
            }
            Standing::Yes(_) => {
                let why = "there was no time to delete it";
                self.worker
                    .left(&self.object.shown, &self.object.remedy, why);
            }
        }
        self.standing = standing;
    }

    /// The API was asked to do `what`, and did something else.
    fn refused(&self, what: &str, answer: &Answer, message: &str) -> Refusal {
        let (shown, status, advice) = (&self.object.shown, answer.status, answer.advice());
        let outcome = match answer.outcome() {
            Outcome::Ok => Outcome::Malformed,
            outcome => outcome,
        };
        Refusal {
            outcome,
            why: format!("{what} {shown}: the cluster answers {status}, {message}{advice}"),
            is_final: !answer.is_passing(),
        }
    }

    /// The API did not answer. One that never has is not there.
    fn unanswered(&self, what: &str, none: &NoAnswer) -> Refusal {
        let (shown, api, why) = (&self.object.shown, self.cluster.api.shown(), &none.why);
        Refusal {
            outcome: none.outcome,
            why: format!(
                "{what} {shown}: the cluster at {api} does not answer, {why} (`kubectl cluster-info` \
                 says where it should be)"
            ),
            is_final: !self.cluster.has_answered.get(),
        }
    }
}

impl Refusal {
    /// The worker ended before there was room for it.
    const fn at_the_end() -> Self {
        Self {
            outcome: Outcome::Unfinished,
            why: String::new(),
            is_final: false,
        }
    }
}
