//! Messages as JSON and YAML: names as in their definition, 64-bit numbers as
//! text, lists and plain fields also where they are empty.

mod options;

use super::time::{duration_text, timestamp_text};
use super::{
    Counter, Output, Percentile, Quantity, Statistic, Tree, UserDefinedOutput, WorkerResult,
};
pub(super) use options::options;

/// `output` as JSON, ending with a line feed.
#[must_use]
pub fn write_json(output: &Output) -> String {
    self::output(output).to_json()
}

/// `output` as YAML, ending with a line feed.
#[must_use]
pub fn write_yaml(output: &Output) -> String {
    self::output(output).to_yaml()
}

/// A map under construction.
#[derive(Default)]
struct Message(Vec<(String, Tree)>);

impl Message {
    fn put(mut self, name: &str, value: Tree) -> Self {
        self.0.push((name.to_owned(), value));
        self
    }

    fn put_some(self, name: &str, value: Option<Tree>) -> Self {
        match value {
            Some(value) => self.put(name, value),
            None => self,
        }
    }

    fn put_list<T>(self, name: &str, items: &[T], tree: fn(&T) -> Tree) -> Self {
        self.put(name, Tree::List(items.iter().map(tree).collect()))
    }

    fn done(self) -> Tree {
        Tree::Map(self.0)
    }
}

pub(super) fn output(output: &Output) -> Tree {
    Message::default()
        .put("options", options(&output.options))
        .put_list("results", &output.results, result)
        .put_some(
            "timestamp",
            output.timestamp.map(|t| Tree::Text(timestamp_text(t))),
        )
        .put_some("version", output.version.as_ref().map(Tree::from))
        .done()
}

fn result(result: &WorkerResult) -> Tree {
    Message::default()
        .put("name", Tree::text(&*result.name))
        .put_list("statistics", &result.statistics, statistic)
        .put_list("counters", &result.counters, counter)
        .put_list(
            "user_defined_outputs",
            &result.user_defined_outputs,
            user_defined,
        )
        .put_some(
            "execution_duration",
            result
                .execution_duration
                .map(|time| Tree::Text(duration_text(time))),
        )
        .put_some(
            "execution_start",
            result
                .execution_start
                .map(|time| Tree::Text(timestamp_text(time))),
        )
        .done()
}

fn statistic(statistic: &Statistic) -> Tree {
    let message = Message::default()
        .put("count", Tree::long(statistic.count))
        .put("id", Tree::text(&*statistic.id))
        .put_list("percentiles", &statistic.percentiles, percentile);
    let message = quantity(message, "mean", "raw_mean", statistic.mean, Tree::Number);
    let message = quantity(
        message,
        "pstdev",
        "raw_pstdev",
        statistic.pstdev,
        Tree::Number,
    );
    let message = quantity(message, "min", "raw_min", statistic.min, whole);
    quantity(message, "max", "raw_max", statistic.max, whole).done()
}

fn percentile(percentile: &Percentile) -> Tree {
    let message = Message::default()
        .put("percentile", Tree::Number(percentile.percentile))
        .put("count", Tree::long(percentile.count));
    quantity(
        message,
        "duration",
        "raw_value",
        percentile.value,
        Tree::Number,
    )
    .done()
}

fn quantity(
    message: Message,
    time: &str,
    raw: &str,
    value: Option<Quantity>,
    number: fn(f64) -> Tree,
) -> Message {
    match value {
        None => message,
        Some(Quantity::Time(length)) => message.put(time, Tree::Text(duration_text(length))),
        Some(Quantity::Raw(value)) => message.put(raw, number(value)),
    }
}

/// The smallest and the largest sample are whole numbers of 64 bits.
fn whole(value: f64) -> Tree {
    Tree::long(stillwell_units::floor_to_u64(value))
}

fn counter(counter: &Counter) -> Tree {
    Message::default()
        .put("name", Tree::text(&*counter.name))
        .put("value", Tree::long(counter.value))
        .done()
}

fn user_defined(output: &UserDefinedOutput) -> Tree {
    Message::default()
        .put("plugin_name", Tree::text(&*output.plugin_name))
        .put_some("typed_output", output.typed_output.as_ref().map(Tree::from))
        .put_some(
            "error_message",
            output.error_message.as_deref().map(Tree::text),
        )
        .done()
}
