//! `variants`.

use stillwell_plan::VariantPlan;
use stillwell_plan::experiment::{BinarySource, GitSource};
use stillwell_text::{Key, MapReader, Node, Reader, Span, code};

use super::ReadContext;
use super::target::{COMMAND, MOUNT, read_environment, read_mounts};
use crate::element::{Element, Shape, TEXT_MAP, TEXTS, optional, required};
use crate::files::EntryKind;

const GIT: Element = Element::new(
    "git source",
    "A revision and how it becomes an executable.",
    &[
        optional(
            "repository",
            Shape::Text,
            "Folder of the repository; that of this file by default.",
        ),
        required(
            "revision",
            Shape::Like("main"),
            "A revision, as for git rev-parse.",
        ),
        required(
            "build",
            Shape::Like("cargo build --release"),
            "A shell command.",
        ),
        required(
            "output",
            Shape::Like("target/release/x"),
            "Path of the executable that the build creates.",
        ),
    ],
);

pub(super) const VARIANT: Element = Element::new(
    "variant",
    "One build or configuration of the target; `{}` changes nothing.",
    &[
        optional(
            "arguments",
            TEXTS,
            "Arguments added after those of the command.",
        ),
        optional("environment", TEXT_MAP, "Variables added to the target's."),
        optional("files", Shape::Text, "The folder that replaces `{files}`."),
        optional(
            "binary",
            Shape::Text,
            "An executable in place of the target's.",
        ),
        optional("command", COMMAND, "A command in place of the target's."),
        optional(
            "url",
            Shape::Like("http://127.0.0.1:8081/"),
            "A URL in place of the target's.",
        ),
        optional(
            "git",
            Shape::Element(&GIT),
            "An executable built from a revision.",
        ),
        optional(
            "mounts",
            Shape::List(&Shape::Element(&MOUNT)),
            "Folders that are visible to this variant only.",
        ),
    ],
);

/// The variants, the baseline first.
pub(super) fn read_variants(context: &ReadContext<'_>, node: &Node) -> Vec<VariantPlan> {
    let reader = context.reader;
    let Some(entries) = node.entries() else {
        reader.wrong_shape(node, "a map of names and variants");
        return Vec::new();
    };
    let mut variants: Vec<VariantPlan> = entries
        .iter()
        .filter_map(|entry| read_variant(context, &entry.key, &entry.value))
        .collect();
    if let [only] = entries {
        let message = "`variants` needs at least two";
        let error = reader.error(code::VARIANTS, only.key.span, message);
        let missing = if only.key.text == "baseline" {
            "comparison"
        } else {
            "baseline"
        };
        reader.report(error.label(format!("add a second one, such as `{missing}: {{}}`")));
    }
    if entries.is_empty() {
        reader.report(reader.error(code::VARIANTS, node.span, "no variants to compare"));
    }
    // A stable sort: all others keep their order.
    variants.sort_by_key(|variant| variant.name != "baseline");
    variants
}

fn read_variant(context: &ReadContext<'_>, key: &Key, node: &Node) -> Option<VariantPlan> {
    let reader = context.reader;
    check_name(reader, key, "variant");
    let mut variant = VariantPlan::unchanged(key.text.clone());
    if matches!(node.value, stillwell_text::Value::Null) {
        return Some(variant);
    }
    let map = reader.map(node, &VARIANT.keys())?;
    if let Some(node) = map.take("arguments") {
        variant.arguments = reader.texts(node);
    }
    variant.environment = read_environment(context, map.take("environment"));
    variant.files = map
        .take("files")
        .and_then(|node| context.existing(node, EntryKind::Folder));
    variant.command = map.take("command").and_then(|node| context.program(node));
    variant.url = map.take("url").and_then(|node| context.any_url(node));
    if let Some(span) = map.key_span("url")
        && context.target_url.is_none()
    {
        let message = "the target is a program, and has no URL that a variant could replace";
        let error = reader.error(code::ONE_OF_KEYS, span, message);
        reader
            .report(error.label("write `url` in `target` instead of `command`, or leave this out"));
    }
    variant.mounts = read_mounts(context, &map);
    variant.binary = read_binary(context, &map);
    let of_program = [
        "arguments",
        "environment",
        "command",
        "mounts",
        "binary",
        "git",
    ];
    let stated = of_program.into_iter();
    let span = stated
        .filter(|key| map.take(key).is_some())
        .find_map(|key| map.key_span(key));
    if let Some(span) = span.filter(|_| context.target_url.is_some()) {
        let message = "the target is a URL, and no program that a variant could change";
        let error = reader.error(code::ONE_OF_KEYS, span, message);
        reader.report(error.label("write `url`, or `command` instead of `url` in `target`"));
    }
    Some(variant)
}

/// Names become folders and labels.
pub(super) fn check_name(reader: &Reader, key: &Key, what: &str) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let starts_plain = key.text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !starts_plain || !key.text.chars().all(is_plain) || key.text.len() > 64 {
        let message = format!("`{}` cannot be the name of a {what}", key.text);
        let error = reader.error(code::BAD_VALUE, key.span, message);
        reader.report(error.label("up to 64 letters, digits, `-`, `_` and `.`"));
    }
}

fn read_binary(context: &ReadContext<'_>, map: &MapReader<'_, '_>) -> BinarySource {
    let binary = map.take("binary").and_then(|node| context.path(node));
    let git = map.take("git").and_then(|node| read_git(context, node));
    if let (Some(first), Some(second)) = (map.key_span("binary"), map.key_span("git")) {
        report_both(context.reader, first, second);
    }
    match (binary, git) {
        (_, Some(git)) => BinarySource::Git(git),
        (Some(path), None) => BinarySource::Path(path),
        (None, None) => BinarySource::AsPlanned,
    }
}

fn report_both(reader: &Reader, first: Span, second: Span) {
    let message = "a variant has one executable: `binary` or `git`";
    reader.report(
        reader
            .error(code::ONE_OF_KEYS, second, message)
            .label("remove one of them")
            .context(reader.place(first), "the other"),
    );
}

fn read_git(context: &ReadContext<'_>, node: &Node) -> Option<GitSource> {
    let map = context.reader.map(node, &GIT.keys())?;
    let repository = map.read_or("repository", context.folder.to_path_buf(), |node| {
        context.existing(node, EntryKind::Folder)
    });
    let revision = map.required("revision").and_then(|node| {
        let text = context.filled(node)?;
        if text.starts_with('-') {
            let message = format!("`{text}` is not a revision");
            let error = context.reader.error(code::BAD_VALUE, node.span, message);
            context
                .reader
                .report(error.label("a revision does not begin with a dash"));
            return None;
        }
        Some(text)
    });
    let build = map.required("build").and_then(|node| context.filled(node));
    let output = map.required("output").and_then(|node| context.filled(node));
    Some(GitSource {
        repository: repository?,
        revision: revision?.to_owned(),
        build: build?.to_owned(),
        output: output?.into(),
    })
}

/// Returns a sentence about unusual differences between `variants` and the first of them, if any.
pub(crate) fn check_variants(variants: &[VariantPlan]) -> Option<String> {
    let [baseline, comparisons @ ..] = variants else {
        return None;
    };
    let is_pair = comparisons.len() == 1;
    comparisons.iter().find_map(|right| {
        let name = &right.name;
        let compared = if is_pair {
            "the variants".to_owned()
        } else {
            format!("`{}` and `{name}`", baseline.name)
        };
        match (
            executables_differ(baseline, right),
            settings_differ(baseline, right),
        ) {
            (true, true) => Some(format!(
                "{compared} differ in executable and in settings: a change may come from either"
            )),
            (false, false) => Some(format!(
                "{compared} do not differ: this compares the target with itself"
            )),
            _ => None,
        }
    })
}

fn executables_differ(left: &VariantPlan, right: &VariantPlan) -> bool {
    (&left.binary, &left.command, &left.url) != (&right.binary, &right.command, &right.url)
}

fn settings_differ(left: &VariantPlan, right: &VariantPlan) -> bool {
    left.arguments != right.arguments
        || left.environment != right.environment
        || left.files != right.files
        || left.mounts != right.mounts
}
