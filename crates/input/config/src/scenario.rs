//! Scenario files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_plan::RateShape;
use stillwell_plan::load::LoadProtocol;
use stillwell_plan::scenario::{
    FlowPlan, ScenarioLoadPlan, ScenarioPlan, ScenarioStepPlan, TakeFrom, TakePlan, TextPart,
    TextTemplate, UsersPlan, VariablePlan,
};
use stillwell_plan::tls::ClientTlsPlan;
use stillwell_text::{Diagnostic, Diagnostics, MapReader, Node, Reader, Value, code, nearest};
use stillwell_units::{Nanos, Seed, Target};

use crate::files::{Files, absolute, read_source, resolve};
use crate::loaded::{Loaded, NATIVE};
use crate::rate::parse_request_rate;
use crate::requests::{TlsSpec, suggested_path, tls_flag_without_effect};

pub(crate) mod base;
mod keys;
mod rows;

use base::{QUERY_IN_STEPS, query_problem};
use keys::{CHECK, FLOW, SCENARIO, STEP, TAKE};
pub(crate) use keys::{SCENARIO_FIELDS, SCENARIO_FILE};

const USERS_DEFAULT: u32 = 10;
const USERS_MAX: u32 = 1_000_000;
const USERS_AT_A_TIME_DEFAULT: u32 = 10_000;
const DURATION_DEFAULT: Nanos = Nanos::from_secs(10);
const NO_URL: &str = "a scenario needs `url`, or a URL on the command line";

/// Settings of a scenario that are not in its file.
#[derive(Clone, Debug)]
pub struct ScenarioFlags {
    /// Base URL; overrides the file.
    pub url: Option<String>,
    /// Time before the measured time.
    pub warmup: Nanos,
    /// Length of the measured time; overrides the file.
    pub duration: Option<Nanos>,
    /// Threads of the generator.
    pub threads: u16,
    /// Protocol of the connections: HTTP/1.1 or HTTP/2.
    pub protocol: LoadProtocol,
    /// Timeout of a request.
    pub timeout: Nanos,
    /// Timeout of connecting.
    pub connect_timeout: Nanos,
    /// Settings of TLS.
    pub tls: TlsSpec,
    /// Seed of all random choices.
    pub seed: Seed,
}

/// Reads the scenario of the file at `path`.
///
/// # Errors
/// Every mistake in the file, with its place, and the first flag of TLS that has no effect.
pub fn load_scenario(
    files: &dyn Files,
    path: &Path,
    flags: ScenarioFlags,
) -> Result<Loaded<ScenarioLoadPlan>, Diagnostics> {
    let (plan, diagnostics) = read_file(files, path, |context, map| {
        let connection = ConnectionSettings {
            url: flags.url.clone(),
            is_to_target: false,
            protocol: flags.protocol,
            timeout: flags.timeout,
            connect_timeout: flags.connect_timeout,
            tls: crate::requests::tls_plan(&flags.tls),
        };
        let duration = map.read_or("duration", DURATION_DEFAULT, |node| {
            context.above_zero(node)
        });
        let (scenario, users) = context.read(map, connection)?;
        if let Some(message) = tls_flag_without_effect(&flags.tls, scenario.tls_host.is_some()) {
            let error = Diagnostic::error(code::NO_EFFECT, message);
            context.reader.report(error);
        }
        let users_max = match users {
            UsersPlan::Closed(users) => users,
            UsersPlan::Arriving { at_a_time_max, .. } => at_a_time_max,
        };
        Some(ScenarioLoadPlan {
            scenario,
            users,
            warmup: flags.warmup,
            duration: flags.duration.or(duration)?,
            has_grace: false,
            // A thread without users would be idle, and refuse its share of arrivals.
            threads: flags
                .threads
                .min(u16::try_from(users_max).unwrap_or(u16::MAX)),
            seed: flags.seed,
        })
    });
    Loaded::checked(plan, NATIVE, diagnostics)
}

/// Reads the scenario of the file at `path` for a generator, which has a duration of its own.
pub(crate) fn read_scenario_file(
    files: &dyn Files,
    path: &Path,
    connection: ConnectionSettings,
) -> (Option<(ScenarioPlan, UsersPlan)>, Diagnostics) {
    read_file(files, path, |context, map| {
        map.take("duration");
        context.read(map, connection)
    })
}

/// Reads the scenario at a map of an experiment.
pub(crate) fn read_inline(
    reader: &Reader,
    (files, folder): (&dyn Files, &Path),
    map: &MapReader<'_, '_>,
    connection: ConnectionSettings,
) -> Option<(ScenarioPlan, UsersPlan)> {
    let context = ScenarioContext {
        reader,
        files,
        folder: folder.to_path_buf(),
    };
    context.read(map, connection)
}

fn read_file<T>(
    files: &dyn Files,
    path: &Path,
    read: impl FnOnce(&ScenarioContext<'_>, &MapReader<'_, '_>) -> Option<T>,
) -> (Option<T>, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let path = absolute(path);
    let source = match read_source(files, &path) {
        Ok(source) => source,
        Err(error) => {
            diagnostics.push(*error);
            return (None, diagnostics);
        }
    };
    let reader = Reader::new(Arc::clone(&source));
    let plan = reader.parse().and_then(|root| {
        let map = reader.map(&root, &SCENARIO_FILE.keys())?;
        let node = map.required("scenario")?;
        let context = ScenarioContext {
            reader: &reader,
            files,
            folder: path.parent().unwrap_or(&path).to_path_buf(),
        };
        read(&context, &reader.map(node, &SCENARIO.keys())?)
    });
    diagnostics.append(reader.finish());
    (plan, diagnostics)
}

/// Settings of connections that are not in a scenario.
pub(crate) struct ConnectionSettings {
    /// Base URL; overrides that of the scenario.
    pub(crate) url: Option<String>,
    /// True if the base URL is that of the target of a run.
    pub(crate) is_to_target: bool,
    pub(crate) protocol: LoadProtocol,
    pub(crate) timeout: Nanos,
    pub(crate) connect_timeout: Nanos,
    pub(crate) tls: ClientTlsPlan,
}

struct ScenarioContext<'a> {
    reader: &'a Reader,
    files: &'a dyn Files,
    folder: PathBuf,
}

/// Names of variables.
struct VariableNames {
    variables: Vec<VariablePlan>,
}

/// Columns and rows of data.
type Data = (Vec<String>, Vec<Vec<String>>);

impl ScenarioContext<'_> {
    fn read(
        &self,
        map: &MapReader<'_, '_>,
        connection: ConnectionSettings,
    ) -> Option<(ScenarioPlan, UsersPlan)> {
        let reader = self.reader;
        let target = self.target(map, connection.url.as_deref());
        let users = self.users(map);
        let variables = map.take("variables");
        let variables = variables.map_or_else(Vec::new, |node| reader.text_map(node));
        let (columns, rows) = map.read_or("data", Data::default(), |node| self.data(node))?;
        let headers = map.take("headers");
        let headers = headers.map_or_else(Vec::new, |node| reader.headers(node));
        let (kind, steps) = map.one_of(&["steps", "flows"])?;
        let mut names = VariableNames {
            variables: Vec::new(),
        };
        for (name, value) in variables {
            names.add(&name, value);
        }
        let columns: Vec<usize> = columns
            .iter()
            .map(|name| names.add(name, String::new()))
            .collect();
        let flows = match kind {
            "steps" => {
                self.add_taken(steps, &mut names);
                let steps = self.steps(steps, &names, &headers)?;
                let name = String::new();
                vec![FlowPlan {
                    name,
                    weight: 1,
                    steps,
                }]
            }
            _ => self.flows(steps, &mut names, &headers)?,
        };
        let (url, target) = target?;
        let mut plan = ScenarioPlan {
            url: String::new(),
            address: String::new(),
            authority: String::new(),
            base: String::new(),
            tls_host: None,
            tls: connection.tls,
            is_to_target: connection.is_to_target,
            protocol: connection.protocol,
            timeout: connection.timeout,
            connect_timeout: connection.connect_timeout,
            variables: names.variables,
            rows,
            columns,
            flows,
        };
        plan.send_to(&url, &target);
        Some((plan, users?))
    }

    fn bad(&self, node: &Node, message: impl Into<String>) -> Diagnostic {
        self.reader.error(code::BAD_VALUE, node.span, message)
    }

    fn target(&self, map: &MapReader<'_, '_>, typed: Option<&str>) -> Option<(String, Target)> {
        let (url, span) = match (typed, map.take("url")) {
            (Some(url), _) => (url, map.span()),
            (None, Some(node)) => (self.reader.text(node)?, node.span),
            (None, None) => {
                let error = self.reader.error(code::MISSING_KEY, map.span(), NO_URL);
                self.reader.report(error.label("`url` is missing"));
                return None;
            }
        };
        let target = match Target::from_url(url) {
            Ok(target) => target,
            Err(error) => {
                let message = format!("`{url}`: {error}");
                self.reader
                    .report(self.reader.error(code::BAD_VALUE, span, message));
                return None;
            }
        };
        if let Some(message) = query_problem(&target) {
            let error = self.reader.error(code::BAD_VALUE, span, message);
            self.reader.report(error.label(QUERY_IN_STEPS));
            return None;
        }
        Some((url.to_owned(), target))
    }

    fn users(&self, map: &MapReader<'_, '_>) -> Option<UsersPlan> {
        let reader = self.reader;
        let count =
            |key, default| map.read_or(key, default, |node| reader.whole(node, 1, USERS_MAX));
        let users = count("users", USERS_DEFAULT);
        let at_a_time_max = count("users_max", USERS_AT_A_TIME_DEFAULT);
        let Some(node) = map.take("arrivals") else {
            if let Some(span) = map.key_span("users_max") {
                let message = "`users_max` has no effect without `arrivals`";
                let error = reader.error(code::BAD_VALUE, span, message);
                let label = "leave it out: `users` is the number of users without `arrivals`";
                reader.report(error.label(label));
            }
            return Some(UsersPlan::Closed(users?));
        };
        if let Some(span) = map.key_span("users") {
            let message = "`users` (closed loop) and `arrivals` (open loop) exclude each other";
            let error = reader.error(code::ONE_OF_KEYS, span, message);
            reader.report(error.label("leave out `users` or `arrivals`"));
        }
        match parse_request_rate(reader.text(node)?) {
            Ok(RateShape::Constant { per_second }) => Some(UsersPlan::Arriving {
                per_second,
                at_a_time_max: at_a_time_max?,
            }),
            Ok(_) => {
                let error = self.bad(node, "arrivals have one constant rate");
                reader.report(error.label("write a rate such as 50/s"));
                None
            }
            Err(message) => {
                reader.report(self.bad(node, message));
                None
            }
        }
    }

    fn above_zero(&self, node: &Node) -> Option<Nanos> {
        let length: Nanos = self.reader.parsed(node)?;
        if length == Nanos::ZERO {
            let error = self.bad(node, "a length of zero");
            self.reader.report(error.label("write a length above zero"));
            return None;
        }
        Some(length)
    }

    fn data(&self, node: &Node) -> Option<Data> {
        let path = resolve(&self.folder, self.reader.text(node)?);
        let read = self.files.read(&path).map_err(|error| error.to_string());
        let rows = read
            .and_then(|text| rows::rows(&text))
            .and_then(|mut rows| {
                if rows.len() < 2 {
                    return Err("there is no row below the header".to_owned());
                }
                let names = rows.remove(0);
                Ok((names, rows))
            });
        match rows {
            Ok(data) => Some(data),
            Err(message) => {
                let message = format!("cannot read {}: {message}", path.display());
                let error = self.reader.error(code::UNREADABLE, node.span, message);
                self.reader.report(error);
                None
            }
        }
    }

    fn flows(
        &self,
        node: &Node,
        names: &mut VariableNames,
        headers: &[(String, String)],
    ) -> Option<Vec<FlowPlan>> {
        let reader = self.reader;
        let nodes = self.items(node)?;
        for node in nodes {
            if let Some(steps) = node.entry("steps") {
                self.add_taken(steps, names);
            }
        }
        let mut flows = Vec::new();
        for node in nodes {
            let map = reader.map(node, &FLOW.keys())?;
            let name = map.required("name").and_then(|node| reader.text(node));
            let weight = map.read_or("weight", 1, |node| reader.whole(node, 1, 1_000_000));
            let steps = map.required("steps");
            let steps = steps.and_then(|node| self.steps(node, names, headers));
            flows.push(FlowPlan {
                name: name?.to_owned(),
                weight: weight?,
                steps: steps?,
            });
        }
        Some(flows)
    }

    fn items<'n>(&self, node: &'n Node) -> Option<&'n [Node]> {
        let items = self.reader.list(node)?;
        if items.is_empty() {
            let error = self.bad(node, "an empty list");
            self.reader.report(error.label("write at least one"));
            return None;
        }
        Some(items)
    }

    /// Adds the variables that `steps` take. Their shape is checked later.
    fn add_taken(&self, steps: &Node, names: &mut VariableNames) {
        let Value::List(steps) = &steps.value else {
            return;
        };
        let takes = steps.iter().filter_map(|step| step.entry("take"));
        for entry in takes.filter_map(Node::entries).flatten() {
            names.add_if_new(&entry.key.text);
        }
    }

    fn steps(
        &self,
        node: &Node,
        names: &VariableNames,
        headers: &[(String, String)],
    ) -> Option<Vec<ScenarioStepPlan>> {
        let mut steps: Vec<ScenarioStepPlan> = Vec::new();
        for node in self.items(node)? {
            let step = self.step(node, names, headers)?;
            if steps.iter().any(|known| known.name == step.name) {
                let message = format!("two steps are named `{}`", step.name);
                let error = self.reader.error(code::SAME_NAME, node.span, message);
                self.reader.report(error);
            }
            steps.push(step);
        }
        Some(steps)
    }

    fn step(
        &self,
        node: &Node,
        names: &VariableNames,
        common: &[(String, String)],
    ) -> Option<ScenarioStepPlan> {
        let reader = self.reader;
        let map = reader.map(node, &STEP.keys())?;
        let name = map.required("name").and_then(|node| reader.text(node));
        let path = map.required("path").and_then(|node| self.path(node, names));
        let body_node = map.take("body");
        let body = match body_node {
            Some(node) => self.template(node, reader.text(node)?, names),
            None => Some(TextTemplate::default()),
        };
        let method = match map.take("method") {
            Some(node) => self.method(node),
            None if body_node.is_some() => Some("POST".to_owned()),
            None => Some("GET".to_owned()),
        };
        let headers_node = map.take("headers");
        let step_headers = headers_node.map_or_else(Vec::new, |node| reader.headers(node));
        let is_overridden = |name: &str| {
            let mut names = step_headers.iter();
            names.any(|(header, _)| header.eq_ignore_ascii_case(name))
        };
        let inherited = common.iter().filter(|(name, _)| !is_overridden(name));
        let mut headers = Vec::new();
        for (name, value) in inherited.chain(&step_headers) {
            let value = self.template(headers_node.unwrap_or(node), value, names)?;
            headers.push((name.clone(), value));
        }
        let takes = map.read_or("take", Vec::new(), |node| self.takes(node, names));
        let (status, contains) =
            map.read_or("check", (None, Vec::new()), |node| self.check(node, names))?;
        let think = map.read_or("think", (Nanos::ZERO, Nanos::ZERO), |node| self.think(node));
        Some(ScenarioStepPlan {
            name: name?.to_owned(),
            method: method?,
            path: path?,
            headers,
            body: body?,
            takes: takes?,
            status,
            contains,
            think: think?,
        })
    }

    fn method(&self, node: &Node) -> Option<String> {
        let text = self.reader.text(node)?;
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Some(text.to_owned());
        }
        let error = self.bad(node, format!("`{text}` is not a method"));
        self.reader
            .report(error.label("write a method such as GET"));
        None
    }

    fn path(&self, node: &Node, names: &VariableNames) -> Option<TextTemplate> {
        let text = self.reader.text(node)?;
        if !text.starts_with('/') && !text.starts_with("{{") {
            let error = self.bad(node, format!("`{text}` is not a path"));
            let label = format!("write `{}`", suggested_path(text));
            self.reader.report(error.label(label));
            return None;
        }
        self.template(node, text, names)
    }

    /// Reads a text with `{{name}}` for variables.
    fn template(&self, node: &Node, text: &str, names: &VariableNames) -> Option<TextTemplate> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, behind)) = after.split_once("}}") else {
                break;
            };
            if !before.is_empty() {
                parts.push(TextPart::Text(before.to_owned()));
            }
            parts.push(TextPart::Variable(self.variable(
                node,
                name.trim(),
                names,
            )?));
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(TextPart::Text(rest.to_owned()));
        }
        Some(TextTemplate(parts))
    }

    fn variable(&self, node: &Node, name: &str, names: &VariableNames) -> Option<usize> {
        let index = names.index(name);
        if index.is_none() {
            let mut error = self.bad(node, format!("there is no variable `{name}`"));
            let known = names
                .variables
                .iter()
                .map(|variable| variable.name.as_str());
            if let Some(near) = nearest(name, known) {
                error = error.label(format!("did you mean `{near}`?"));
            }
            let help = "variables come from `variables`, from columns of `data` and from `take`";
            self.reader.report(error.help(help));
        }
        index
    }

    fn takes(&self, node: &Node, names: &VariableNames) -> Option<Vec<TakePlan>> {
        let Some(entries) = node.entries() else {
            self.reader.wrong_shape(node, "a map of variables");
            return None;
        };
        let mut takes = Vec::new();
        for entry in entries {
            let map = self.reader.map(&entry.value, &TAKE.keys())?;
            let (kind, node) = map.one_of(&["json", "header", "regex"])?;
            let text = self.reader.text(node)?.to_owned();
            let from = match kind {
                "json" if text.is_empty() || text.starts_with('/') => TakeFrom::Json(text),
                "json" => {
                    let error = self.bad(node, format!("`{text}` is not a JSON pointer"));
                    self.reader.report(error.label(format!("write `/{text}`")));
                    return None;
                }
                "header" => TakeFrom::Header(text),
                _ => {
                    if let Err(error) = regex::bytes::Regex::new(&text) {
                        self.reader.report(self.bad(node, error.to_string()));
                        return None;
                    }
                    TakeFrom::Regex(text)
                }
            };
            let variable = names.index(&entry.key.text)?;
            takes.push(TakePlan { variable, from });
        }
        Some(takes)
    }

    fn check(
        &self,
        node: &Node,
        names: &VariableNames,
    ) -> Option<(Option<u16>, Vec<TextTemplate>)> {
        let map = self.reader.map(node, &CHECK.keys())?;
        let status = map.read("status", |node| self.reader.whole(node, 200, 599))?;
        let texts = match map.take("contains") {
            Some(node) if matches!(node.value, Value::List(_)) => self.reader.texts(node),
            Some(node) => vec![self.reader.text(node)?.to_owned()],
            None => Vec::new(),
        };
        let contains = texts.iter().map(|text| self.template(node, text, names));
        Some((status, contains.collect::<Option<_>>()?))
    }

    fn think(&self, node: &Node) -> Option<(Nanos, Nanos)> {
        let text = self.reader.text(node)?;
        let (shortest, longest) = text.split_once("..").unwrap_or((text, text));
        let time = |text: &str| match text.trim().parse::<Nanos>() {
            Ok(time) => Some(time),
            Err(error) => {
                self.reader
                    .report(self.reader.parse_error(node.span, &error));
                None
            }
        };
        let (shortest, longest) = (time(shortest)?, time(longest)?);
        if longest < shortest {
            let error = self.bad(node, "the end of this range is below its start");
            self.reader
                .report(error.label("write the shorter time first, such as 1s..5s"));
            return None;
        }
        Some((shortest, longest))
    }
}

impl VariableNames {
    fn index(&self, name: &str) -> Option<usize> {
        let mut variables = self.variables.iter();
        variables.position(|variable| variable.name == name)
    }

    /// Adds a variable, or replaces its first value. Returns its index.
    fn add(&mut self, name: &str, value: String) -> usize {
        let index = self.add_if_new(name);
        self.variables[index].value = value;
        index
    }

    fn add_if_new(&mut self, name: &str) -> usize {
        if let Some(index) = self.index(name) {
            return index;
        }
        self.variables.push(VariablePlan {
            name: name.to_owned(),
            value: String::new(),
        });
        self.variables.len() - 1
    }
}

#[cfg(test)]
mod tests;
