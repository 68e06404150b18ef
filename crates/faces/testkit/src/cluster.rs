//! The API of a Kubernetes cluster, as far as objects are made, looked at and deleted:
//! exchanges as its documentation has them, for no cluster runs where tests do.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many times an object that was deleted is still found on its way out.
const LINGERS: u32 = 2;

/// A question to the API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Asked {
    /// Method and path, as `POST /api/v1/nodes`.
    pub what: String,
    /// The value of `Authorization`, or nothing.
    pub authorization: String,
    /// The body, or nothing.
    pub body: String,
}

/// What a cluster keeps, and what it was asked. Clones are the same cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By path.
    objects: BTreeMap<String, Kept>,
    asked: Vec<Asked>,
    /// Questions that begin so are answered so, for so many times.
    scripted: Vec<(String, u16, String, u32)>,
    made: u32,
}

#[derive(Debug)]
struct Kept {
    uid: String,
    body: String,
    /// So many more times it is found, if it is on its way out.
    going: Option<u32>,
}

impl Cluster {
    /// A URL on loopback, and what answers there for as long as the process lives: to be
    /// run on a thread of its own.
    ///
    /// # Panics
    /// If no port can be had.
    pub fn listen(&self) -> (String, impl FnOnce() + Send + use<>) {
        let listener = TcpListener::bind("127.0.0.1:0");
        let listener = listener.unwrap_or_else(|error| panic!("listen on loopback: {error}"));
        let address = listener.local_addr();
        let address = address.unwrap_or_else(|error| panic!("where it listens: {error}"));
        let cluster = self.clone();
        let serve = move || {
            while let Ok((peer, _)) = listener.accept() {
                // A peer that goes away is its own affair.
                cluster.converse(peer).unwrap_or_default();
            }
        };
        (format!("http://{address}"), serve)
    }

    fn converse(&self, mut peer: TcpStream) -> io::Result<()> {
        let (mut read, mut room) = (Vec::new(), [0; 4096]);
        loop {
            let length = peer.read(&mut room)?;
            if length == 0 {
                return Ok(());
            }
            read.extend_from_slice(&room[..length]);
            if let Some(answer) = self.answer(&read) {
                return peer.write_all(answer.as_bytes());
            }
        }
    }

    /// What is said to `question`; nothing before all of it has come.
    #[must_use]
    pub fn answer(&self, question: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(question);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let header = |wanted: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            let found = lines.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value)
        };
        let length = header("content-length").and_then(|length| length.parse().ok());
        if body.len() < length.unwrap_or(0) {
            return None;
        }
        let line = head.lines().next().unwrap_or_default();
        let asked = Asked {
            what: line.trim_end_matches(" HTTP/1.1").to_owned(),
            authorization: header("authorization").unwrap_or_default().to_owned(),
            body: body.to_owned(),
        };
        let mut state = self.state();
        let (status, said) = state.answer(&asked);
        state.asked.push(asked);
        let length = said.len();
        Some(format!(
            "HTTP/1.1 {status} Any\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Audit-Id: 1\r\n\r\n{said}"
        ))
    }

    /// The next `times` questions that begin with `what` are answered with `status` and
    /// the API's own `message`.
    pub fn script(&self, what: &str, status: u16, message: &str, times: u32) {
        let scripted = (what.to_owned(), status, message.to_owned(), times);
        self.state().scripted.push(scripted);
    }

    /// Somebody else makes `path`, whose body is `body`.
    pub fn put(&self, path: &str, body: &str) {
        self.state().put(path, body);
    }

    /// Where objects stand that nobody has deleted.
    #[must_use]
    pub fn standing(&self) -> Vec<String> {
        let state = self.state();
        let stand = state
            .objects
            .iter()
            .filter(|(_, kept)| kept.going.is_none());
        stand.map(|(path, _)| path.clone()).collect()
    }

    /// All that was asked.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// How many questions begin with `what`.
    #[must_use]
    pub fn count(&self, what: &str) -> usize {
        let state = self.state();
        state
            .asked
            .iter()
            .filter(|asked| asked.what.starts_with(what))
            .count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn answer(&mut self, asked: &Asked) -> (u16, String) {
        let scripted = self.scripted.iter_mut();
        let mut scripted =
            scripted.filter(|(what, _, _, left)| *left > 0 && asked.what.starts_with(what));
        if let Some((_, status, message, left)) = scripted.next() {
            *left -= 1;
            return (*status, failure(*status, message));
        }
        let (method, path) = asked.what.split_once(' ').unwrap_or_default();
        match method {
            "POST" => self.make(path, &asked.body),
            "GET" => match self.objects.get(path) {
                Some(kept) => (200, kept.body.clone()),
                None => (404, failure(404, &format!("{path} not found"))),
            },
            "DELETE" => self.delete(path, &asked.body),
            _ => (405, failure(405, "the server does not allow this method")),
        }
    }

    fn make(&mut self, collection: &str, body: &str) -> (u16, String) {
        let Some(name) = after(body, "\"metadata\":").and_then(|rest| after(rest, "\"name\":\""))
        else {
            return (422, failure(422, "metadata.name: Required value"));
        };
        let name = name.split('"').next().unwrap_or_default();
        let path = format!("{collection}/{name}");
        if let Some(kept) = self.objects.get_mut(&path) {
            let kind = collection.rsplit('/').next().unwrap_or_default();
            let exists = format!("{kind} \"{name}\" already exists");
            match &mut kept.going {
                None => return (409, failure(409, &exists)),
                Some(0) => {}
                Some(left) => {
                    *left -= 1;
                    let going = format!("object is being deleted: {exists}");
                    return (409, failure(409, &going));
                }
            }
        }
        (201, self.put(&path, body))
    }

    fn put(&mut self, path: &str, body: &str) -> String {
        self.made += 1;
        let uid = format!("uid-{}", self.made);
        let body = body.replacen(
            "\"metadata\":{",
            &format!("\"metadata\":{{\"uid\":\"{uid}\","),
            1,
        );
        let kept = Kept {
            uid,
            body: body.clone(),
            going: None,
        };
        self.objects.insert(path.to_owned(), kept);
        body
    }

    fn delete(&mut self, path: &str, body: &str) -> (u16, String) {
        let Some(kept) = self.objects.get_mut(path) else {
            return (404, failure(404, &format!("{path} not found")));
        };
        let wanted = after(body, "\"uid\":\"").and_then(|rest| rest.split('"').next());
        if wanted.is_some_and(|wanted| wanted != kept.uid) {
            return (
                409,
                failure(409, "Precondition failed: UID in precondition"),
            );
        }
        kept.going.get_or_insert(LINGERS);
        (200, kept.body.clone())
    }
}

fn after<'t>(text: &'t str, part: &str) -> Option<&'t str> {
    text.split_once(part).map(|(_, rest)| rest)
}

/// A `Status`, as the API words what it does not do.
fn failure(status: u16, message: &str) -> String {
    let message = message.replace('\\', "\\\\").replace('"', "\\\"");
    format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\
         \"message\":\"{message}\",\"reason\":\"Any\",\"code\":{status}}}"
    )
}
