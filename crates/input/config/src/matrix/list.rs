//! `exclude` and `include`: cells that are named one by one.

use stillwell_text::{Entry, Key, Node, Reader, Span, code, nearest};

use super::{Axis, Cell, Setting, check_name, read_value};

/// One item of a list: some parameters and a value for each.
pub(super) struct Item {
    keys: Vec<Key>,
    settings: Vec<Setting>,
    span: Span,
}

/// The items of a list of cells.
pub(super) fn read(reader: &Reader, node: &Node) -> Option<Vec<Item>> {
    let items = reader.list(node)?.iter();
    let items: Vec<Option<Item>> = items.map(|item| read_item(reader, item)).collect();
    items.into_iter().collect()
}

fn read_item(reader: &Reader, node: &Node) -> Option<Item> {
    let Some(entries) = node.entries() else {
        reader.wrong_shape(node, "a map of parameters and one value each");
        return None;
    };
    if entries.is_empty() {
        let error = reader.error(code::MATRIX, node.span, "a combination without parameters");
        reader.report(error.label("name at least one"));
        return None;
    }
    let settings: Vec<Option<Setting>> = entries
        .iter()
        .map(|entry| {
            let text = read_value(reader, &entry.value)?;
            Some(Setting {
                parameter: entry.key.text.clone(),
                text: text.to_owned(),
                span: entry.value.span,
            })
        })
        .collect();
    Some(Item {
        keys: entries.iter().map(|entry| entry.key.clone()).collect(),
        settings: settings.into_iter().collect::<Option<_>>()?,
        span: node.span,
    })
}

/// The parameters: those with lists; without any, those of the first cell that
/// is included.
pub(super) fn parameters(
    reader: &Reader,
    matrix: &Entry,
    axes: &[Axis],
    included: &[Item],
) -> Option<Vec<Key>> {
    if !axes.is_empty() {
        return Some(axes.iter().map(|axis| axis.key.clone()).collect());
    }
    let Some(first) = included.first() else {
        let message = "a matrix without parameters";
        let error = reader.error(code::MATRIX, matrix.key.span, message);
        reader.report(error.label("e.g. `matrix: {size: [8 MiB, 64 MiB]}`"));
        return None;
    };
    for key in &first.keys {
        check_name(reader, key)?;
    }
    Some(first.keys.clone())
}

/// Takes away what is excluded; every item must take away something.
pub(super) fn exclude(
    reader: &Reader,
    axes: &[Axis],
    cells: &mut Vec<Cell>,
    excluded: &[Item],
) -> Option<()> {
    let names: Vec<&str> = axes.iter().map(|axis| axis.key.text.as_str()).collect();
    let mut is_right = true;
    for item in excluded {
        if !check_parameters(reader, &names, item) {
            is_right = false;
            continue;
        }
        for setting in &item.settings {
            is_right &= check_value(reader, axes, setting);
        }
    }
    cells.retain(|cell| !excluded.iter().any(|item| cell.has(&item.settings)));
    is_right.then_some(())
}

/// Adds what is included; every item must give all parameters.
pub(super) fn include(
    reader: &Reader,
    parameters: &[Key],
    cells: &mut Vec<Cell>,
    included: Vec<Item>,
) -> Option<()> {
    let names: Vec<&str> = parameters.iter().map(|key| key.text.as_str()).collect();
    let mut is_right = true;
    for item in included {
        let missing = names
            .iter()
            .find(|name| !item.keys.iter().any(|key| key.text == **name));
        if !check_parameters(reader, &names, &item) {
            is_right = false;
        } else if let Some(missing) = missing {
            let message = format!("this combination has no `{missing}`");
            let error = reader.error(code::MATRIX_PARAMETER, item.span, message);
            reader.report(error.label("a combination has a value for every parameter"));
            is_right = false;
        } else if cells.iter().any(|cell| cell.has(&item.settings)) {
            let message = "this combination is listed twice";
            let error = reader.error(code::SAME_NAME, item.span, message);
            reader.report(error.label("it would run twice"));
            is_right = false;
        } else {
            let mut settings = item.settings;
            settings
                .sort_by_key(|setting| names.iter().position(|name| *name == setting.parameter));
            cells.push(Cell { settings });
        }
    }
    is_right.then_some(())
}

fn check_parameters(reader: &Reader, names: &[&str], item: &Item) -> bool {
    let mut is_right = true;
    for key in &item.keys {
        if !names.contains(&key.text.as_str()) {
            report_unknown(reader, key.span, &key.text, names);
            is_right = false;
        }
    }
    is_right
}

fn check_value(reader: &Reader, axes: &[Axis], setting: &Setting) -> bool {
    let mut axes = axes.iter();
    let Some(axis) = axes.find(|axis| axis.key.text == setting.parameter) else {
        return true;
    };
    let texts = axis.values.iter().map(|(text, _)| text.as_str());
    if texts.clone().any(|text| text == setting.text) {
        return true;
    }
    let message = format!("`{}` has no value `{}`", setting.parameter, setting.text);
    let mut error = reader.error(code::MATRIX_PARAMETER, setting.span, message);
    if let Some(near) = nearest(&setting.text, texts.clone()) {
        error = error.label(format!("did you mean `{near}`?"));
    }
    let texts: Vec<&str> = texts.collect();
    reader.report(error.help(format!("it is one of: {}", texts.join(", "))));
    false
}

/// Says that there is no parameter `name`.
pub(super) fn report_unknown(reader: &Reader, span: Span, name: &str, names: &[&str]) {
    let message = format!("the matrix has no parameter `{name}`");
    let mut error = reader.error(code::MATRIX_PARAMETER, span, message);
    if let Some(near) = nearest(name, names.iter().copied()) {
        error = error.label(format!("did you mean `{near}`?"));
    }
    reader.report(error.help(format!("its parameters are: {}", names.join(", "))));
}
