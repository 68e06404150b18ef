//! Objects that a Kubernetes cluster creates, keeps for a while and deletes, repeatedly.
//!
//! Each object has a name and a task. The task creates it, keeps it, deletes it by its uid, and creates it
//! again after the deletion. Only objects of this generator are deleted: if a request got no response, the
//! label is checked first. At its end the worker reports the objects that it could not delete.
//!
//! Errors that only a person can fix end the generator with the API's message: a missing permission, a name in
//! use, a cluster that was never reached. Temporary errors are counted and retried.

mod access;
mod api;
mod login;
mod object;

use std::cell::Cell;
use std::rc::Rc;

use stillwell_metric::Outcome;
use stillwell_plan::generator::KubernetesPlan;
use stillwell_scope::{Tasks, clock};
use stillwell_units::{Moment, Nanos};
use stillwell_worker::{Backoff, Opener, Wait, Worker};
use tokio::sync::Semaphore;
use tokio::time::sleep;

pub use access::ClusterError;
pub(crate) use login::ClusterLogin;
pub use login::ClusterLoginError;

use api::{Api, ApiResponse, RequestFailed};
use object::Object;

/// Time limit for deletions after a stop. It is shorter than the closing phase, so leftovers can be
/// reported.
const GRACE: Nanos = Nanos::from_secs(8);

/// Questions at once: more would be a load on the API and not on the cluster.
const QUESTIONS_MAX: usize = 8;

/// Default namespace of objects.
const NAMESPACE: &str = "default";

/// Settings of an object generator, for its worker.
#[derive(Clone, Debug)]
pub(crate) struct ObjectsSetup {
    api: Api,
    objects: Vec<Object>,
    lifetime: Option<Nanos>,
}

impl ObjectsSetup {
    /// Finds the cluster; opens nothing.
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

impl Opener for ObjectsSetup {
    fn grace(&self) -> Nanos {
        GRACE
    }

    /// Objects that are not deleted by then remain in the cluster.
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
            has_responded: Cell::new(false),
        });
        for object in &self.objects {
            let churn = Churn {
                worker: Rc::clone(worker),
                cluster: Rc::clone(&cluster),
                object: object.clone(),
                object_state: ObjectState::No,
            };
            tasks.spawn(churn.run());
        }
    }
}

/// State that the objects of a generator share.
#[derive(Debug)]
struct Cluster {
    api: Api,
    lifetime: Option<Nanos>,
    places: Semaphore,
    /// The API has answered at least once; before that it may not exist.
    has_responded: Cell<bool>,
}

/// State of an object in the cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
enum ObjectState {
    No,
    /// A request to create it got no response.
    Perhaps,
    /// With this uid.
    Yes(String),
}

/// An operation that the API refused.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Refusal {
    outcome: Outcome,
    why: String,
    /// Only a person can fix the cause.
    is_final: bool,
}

/// One object, over and over.
#[derive(Debug)]
struct Churn {
    worker: Rc<Worker>,
    cluster: Rc<Cluster>,
    object: Object,
    object_state: ObjectState,
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
                // The next attempt finds or creates the object.
                Err(_) => {
                    self.worker.pause(&mut backoff).await;
                }
            }
        }
        self.delete().await;
    }

    /// Creates the object and counts the outcome.
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

    /// Creates the object. Returns the time of the successful request. Waits for an earlier object of the name
    /// that is being deleted.
    async fn create(&mut self) -> Result<Moment, Refusal> {
        let mut backoff = Backoff::new();
        loop {
            let begun = clock::now();
            let (path, body) = (self.object.collection.clone(), self.object.body.clone());
            // Waited for also at the end of the worker: a created object could not be
            // deleted without its uid.
            let response = match self.send_request("POST", &path, &body).await {
                Ok(response) => response,
                Err(failure) => {
                    if failure.may_have_arrived {
                        self.set_state(ObjectState::Perhaps);
                    }
                    return Err(self.unanswered("create", &failure));
                }
            };
            if response.is_done() {
                let Some(uid) = Object::uid_of(&response.body) else {
                    return Err(self.refused(
                        "create",
                        &response,
                        "which is not a Kubernetes response",
                    ));
                };
                self.set_state(ObjectState::Yes(uid));
                return Ok(begun);
            }
            if response.is_being_deleted() {
                self.worker
                    .pause(&mut backoff)
                    .await
                    .ok_or_else(Refusal::at_the_end)?;
                continue;
            }
            if response.status == 409
                && self.object_state == ObjectState::Perhaps
                && self.look().await?
            {
                return Ok(begun);
            }
            if response.status >= 500 {
                // The object may have been created before the failure.
                self.set_state(ObjectState::Perhaps);
            }
            return Err(self.refused("create", &response, &response.message()));
        }
    }

    /// Resolves an unknown state. Returns true if the object exists.
    async fn look(&mut self) -> Result<bool, Refusal> {
        let path = self.object.path.clone();
        let response = self.send_request("GET", &path, b"").await;
        let response = response.map_err(|failure| self.unanswered("look at", &failure))?;
        match (response.status, Object::uid_of(&response.body)) {
            (200, Some(uid)) if self.object.is_from_generator(&response.body) => {
                self.set_state(ObjectState::Yes(uid));
                Ok(true)
            }
            // No object, or an object of another owner.
            (200 | 404, _) => {
                self.set_state(ObjectState::No);
                Ok(false)
            }
            _ => Err(self.refused("look at", &response, &response.message())),
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

    /// Deletes the object with any number of attempts; at the end of the worker within its grace period.
    async fn delete(&mut self) {
        let mut backoff = Backoff::new();
        while self.object_state != ObjectState::No {
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
        if self.object_state == ObjectState::Perhaps && !self.look().await? {
            return Ok(());
        }
        let ObjectState::Yes(uid) = &self.object_state else {
            return Ok(());
        };
        let (path, body) = (self.object.path.clone(), Object::deletion(uid));
        let response = self.send_request("DELETE", &path, &body).await;
        let response = response.map_err(|failure| self.unanswered("delete", &failure))?;
        // 404: it is deleted; 409: another owner's object has the name.
        if response.is_done() || matches!(response.status, 404 | 409) {
            self.set_state(ObjectState::No);
            return Ok(());
        }
        Err(self.refused("delete", &response, &response.message()))
    }

    async fn send_request(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<ApiResponse, RequestFailed> {
        let request = async {
            // The semaphore is never closed.
            let _place = self.cluster.places.acquire().await.ok();
            self.cluster.api.send_request(method, path, body).await
        };
        let response = self.worker.wait(Wait::Other, request).await;
        if response.is_ok() {
            self.cluster.has_responded.set(true);
        }
        response
    }

    fn set_state(&mut self, object_state: ObjectState) {
        match &object_state {
            ObjectState::No => self.worker.not_left(&self.object.shown),
            ObjectState::Perhaps => {
                let why = "no response confirmed its creation";
                self.worker
                    .left(&self.object.shown, &self.object.remedy, why);
            }
            ObjectState::Yes(_) => {
                let why = "there was no time to delete it";
                self.worker
                    .left(&self.object.shown, &self.object.remedy, why);
            }
        }
        self.object_state = object_state;
    }

    /// Returns the error for a response that reports a failure.
    fn refused(&self, action: &str, response: &ApiResponse, message: &str) -> Refusal {
        let (shown, status, advice) = (&self.object.shown, response.status, response.advice());
        let outcome = match response.outcome() {
            Outcome::Ok => Outcome::Malformed,
            outcome => outcome,
        };
        Refusal {
            outcome,
            why: format!("{action} {shown}: the cluster answers {status}, {message}{advice}"),
            is_final: !response.is_temporary(),
        }
    }

    /// Returns the error for a missing response. An API that never answered is unreachable.
    fn unanswered(&self, action: &str, failure: &RequestFailed) -> Refusal {
        let (shown, api, why) = (&self.object.shown, self.cluster.api.shown(), &failure.why);
        Refusal {
            outcome: failure.outcome,
            why: format!(
                "{action} {shown}: the cluster at {api} does not respond, {why} (`kubectl cluster-info` \
                 shows its address)"
            ),
            is_final: !self.cluster.has_responded.get(),
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
