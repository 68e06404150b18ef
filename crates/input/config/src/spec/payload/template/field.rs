//! The fields of templates.

use stillwell_plan::payload::{Alphabet, TemplatePart, TemplateValue, TimePattern, TimeText};
use stillwell_text::nearest;

use super::grammar::{Grammar, Mistake, Names, Word};

/// Every field, and how it is written.
pub(super) const FIELDS: &[(&str, &str)] = &[
    ("application", "{application}"),
    ("base64", "{base64 COUNT}"),
    ("choice", "{choice ONE OTHER …}"),
    ("digits", "{digits COUNT}"),
    (
        "float",
        "{float LOW..HIGH} or {float LOW..HIGH decimals COUNT}",
    ),
    ("hex", "{hex COUNT}"),
    ("host", "{host}"),
    ("int", "{int LOW..HIGH} or {int LOW..HIGH pad DIGITS}"),
    ("ipv4", "{ipv4}"),
    ("ipv6", "{ipv6}"),
    ("letters", "{letters COUNT}"),
    ("message", "{message}"),
    ("path", "{path}"),
    (
        "repeat",
        "{repeat LOW..HIGH NAME} or {repeat LOW..HIGH NAME SEPARATOR}",
    ),
    ("same", "{same NAME}"),
    ("seq", "{seq} or {seq FIRST}"),
    ("stamp", "{stamp}"),
    ("time", "{time}, {time FORM} or {time \"PATTERN\"}"),
    ("use", "{use NAME}"),
    ("user", "{user}"),
    ("uuid", "{uuid}"),
    ("weighted", "{weighted WEIGHT:ONE WEIGHT:OTHER …}"),
    ("word", "{word}"),
];

/// Most characters that one field draws.
const COUNT_MAX: u16 = 8192;

/// Decimals of a number, unless stated.
const DECIMALS: u8 = 3;

/// Returns the part of a field; `words` begins with its name.
pub(super) fn read(grammar: &mut Grammar<'_>, words: &[Word]) -> Result<TemplatePart, Mistake> {
    let Some((name, arguments)) = words.split_first() else {
        return Ok(TemplatePart::Text(String::new()));
    };
    let Some((_, usage)) = FIELDS.iter().find(|(known, _)| *known == name.text) else {
        let names = FIELDS.iter().map(|(known, _)| *known);
        let near = nearest(&name.text, names.clone());
        let near = near.map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
        let mut mistake = name.mistake(format!("unknown field `{}`{near}", name.text));
        let names: Vec<&str> = names.collect();
        mistake.help = Some(format!(
            "fields: {}; `{{{{` is a literal brace",
            names.join(", ")
        ));
        return Err(mistake);
    };
    let part = match name.text.as_str() {
        "choice" => choice(name, arguments),
        "weighted" => weighted(name, arguments),
        "int" => integer(name, arguments),
        "float" => float(name, arguments),
        "time" => time(name, arguments),
        "seq" => sequence(name, arguments),
        "use" | "same" => named(grammar, name, arguments),
        "repeat" => repeat(grammar, name, arguments),
        "base64" => random(Alphabet::Base64, name, arguments),
        "digits" => random(Alphabet::Digits, name, arguments),
        "hex" => random(Alphabet::Hexadecimal, name, arguments),
        "letters" => random(Alphabet::Letters, name, arguments),
        _ => value(name, arguments),
    };
    part.map_err(|mut mistake| {
        mistake.help = mistake.help.or_else(|| Some(format!("write {usage}")));
        mistake
    })
}

fn too_many(word: &Word) -> Mistake {
    word.mistake(format!("unexpected argument `{}`", word.text))
}

fn missing(name: &Word) -> Mistake {
    name.mistake(format!("`{}` is incomplete", name.text))
}

/// Parts without arguments.
fn value(name: &Word, arguments: &[Word]) -> Result<TemplatePart, Mistake> {
    if let Some(word) = arguments.first() {
        return Err(too_many(word));
    }
    Ok(TemplatePart::Value(match name.text.as_str() {
        "application" => TemplateValue::Application,
        "host" => TemplateValue::Host,
        "ipv4" => TemplateValue::Ipv4,
        "ipv6" => TemplateValue::Ipv6,
        "message" => TemplateValue::Message,
        "path" => TemplateValue::Path,
        "user" => TemplateValue::User,
        "uuid" => TemplateValue::Uuid,
        "word" => TemplateValue::Word,
        _ => return Ok(TemplatePart::Stamp),
    }))
}

fn choice(name: &Word, arguments: &[Word]) -> Result<TemplatePart, Mistake> {
    if arguments.is_empty() {
        return Err(missing(name));
    }
    let texts = arguments.iter();
    let parts = texts.map(|word| (1, TemplatePart::Text(word.text.clone())));
    Ok(TemplatePart::Choice(parts.collect()))
}

fn weighted(name: &Word, arguments: &[Word]) -> Result<TemplatePart, Mistake> {
    let mut parts = Vec::new();
    for word in arguments {
        let split = word.text.split_once(':');
        let split = split.and_then(|(weight, text)| Some((weight.parse().ok()?, text)));
        let (weight, text) = split
            .ok_or_else(|| word.mistake(format!("`{}` does not begin with a weight", word.text)))?;
        parts.push((weight, TemplatePart::Text(text.to_owned())));
    }
    if parts.iter().all(|(weight, _)| *weight == 0) {
        return Err(missing(name));
    }
    Ok(TemplatePart::Choice(parts))
}

/// `LOW..HIGH`, both included.
fn range<T: PartialOrd>(
    name: &Word,
    word: Option<&Word>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<(T, T), Mistake> {
    let word = word.ok_or_else(|| missing(name))?;
    let ends = word.text.split_once("..");
    let ends = ends.and_then(|(low, high)| Some((parse(low)?, parse(high)?)));
    let (low, high) =
        ends.ok_or_else(|| word.mistake(format!("`{}` is not a range", word.text)))?;
    if low > high {
        return Err(word.mistake(format!(
            "the start of the range `{}` is above its end",
            word.text
        )));
    }
    Ok((low, high))
}

/// `KEY COUNT` at the end of a field.
fn option(key: &str, words: &[Word], most: u8) -> Result<Option<u8>, Mistake> {
    let (given, count) = match words {
        [] => return Ok(None),
        [given, count] => (given, count),
        [given] => return Err(missing(given)),
        [_, _, more, ..] => return Err(too_many(more)),
    };
    if given.text != key {
        return Err(given.mistake(format!("expected `{key}`, found `{}`", given.text)));
    }
    let number = count
        .text
        .parse()
        .ok()
        .filter(|count| (1..=most).contains(count));
    let number = number.ok_or_else(|| count.mistake(format!("write a number from 1 to {most}")));
    number.map(Some)
}

fn integer(name: &Word, arguments: &[Word]) -> Result<TemplatePart, Mistake> {
    let (low, high) = range(name, arguments.first(), |text| text.parse().ok())?;
    let digits = option("pad", arguments.get(1..).unwrap_or_default(), 20)?;
    let digits = digits.unwrap_or(1);
    Ok(TemplatePart::Integer { low, high, digits })
}

fn float(name: &Word, arguments: &[Word]) -> Result<TemplatePart, Mistake> {
    let decimals = option("decimals", arguments.get(1..).unwrap_or_default(), 9)?;
    let decimals = decimals.unwrap_or(DECIMALS);
    let (low, high) = range(name, arguments.first(), |text| scaled(text, decimals))?;
    Ok(TemplatePart::Decimal {
        low,
        high,
        decimals,
    })
}

/// A number without its point, after that many decimals; further ones are cut.
fn scaled(text: &str, decimals: u8) -> Option<i64> {
    let (whole, behind) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(behind) || !is_number(whole.trim_start_matches('-')) {
        return None;
    }
    let behind = format!("{behind:0<width$}", width = usize::from(decimals));
    format!("{whole}{}", &behind[..usize::from(decimals)])
        .parse()
        .ok()
}

fn time(name: &Word, arguments: &[Word]) -> Result<TemplatePart, Mistake> {
    let form = match arguments {
        [] => return Ok(TemplatePart::Time(TimeText::Rfc3339)),
        [form] => form,
        [_, more, ..] => return Err(too_many(more)),
    };
    let text = match form.text.as_str() {
        "rfc3339" => TimeText::Rfc3339,
        "rfc3164" => TimeText::Rfc3164,
        "common_log" => TimeText::CommonLog,
        "epoch" => TimeText::Epoch { digits: 0 },
        "epoch_ms" => TimeText::Epoch { digits: 3 },
        "epoch_us" => TimeText::Epoch { digits: 6 },
        "epoch_ns" => TimeText::Epoch { digits: 9 },
        pattern => match TimePattern::parse(pattern) {
            Ok(pattern) => TimeText::Pattern(pattern),
            Err(error) => {
                let mut mistake = form.mistake(format!("`{}`: {error}", name.text));
                mistake.help = Some(
                    "rfc3339, rfc3164, common_log, epoch, epoch_ms, epoch_us, epoch_ns or a \
                     pattern such as \"%d/%m/%Y %H:%M:%S%.3f\""
                        .to_owned(),
                );
                return Err(mistake);
            }
        },
    };
    Ok(TemplatePart::Time(text))
}

fn sequence(_name: &Word, arguments: &[Word]) -> Result<TemplatePart, Mistake> {
    let first = match arguments {
        [] => 0,
        [word] => word
            .text
            .parse()
            .map_err(|_| word.mistake(format!("`{}` is not a number", word.text)))?,
        [_, more, ..] => return Err(too_many(more)),
    };
    Ok(TemplatePart::Counter { first })
}

fn random(alphabet: Alphabet, name: &Word, arguments: &[Word]) -> Result<TemplatePart, Mistake> {
    let word = arguments.first().ok_or_else(|| missing(name))?;
    if let Some(more) = arguments.get(1) {
        return Err(too_many(more));
    }
    let count = word.text.parse().ok();
    let count = count.filter(|count| (1..=COUNT_MAX).contains(count));
    let count =
        count.ok_or_else(|| word.mistake(format!("write a number from 1 to {COUNT_MAX}")))?;
    Ok(TemplatePart::Random { alphabet, count })
}

/// The definition that `word` names.
fn definition(grammar: &Grammar<'_>, word: &Word) -> Result<usize, Mistake> {
    let index = grammar.names.iter().position(|name| *name == word.text);
    index.ok_or_else(|| {
        let mut mistake = word.mistake(format!("`{}` is not defined", word.text));
        mistake.help = Some(match grammar.names {
            [] => "nothing is defined: add it below `define`".to_owned(),
            names => format!("defined: {}", names.join(", ")),
        });
        mistake
    })
}

fn named(
    grammar: &mut Grammar<'_>,
    name: &Word,
    arguments: &[Word],
) -> Result<TemplatePart, Mistake> {
    let word = arguments.first().ok_or_else(|| missing(name))?;
    if let Some(more) = arguments.get(1) {
        return Err(too_many(more));
    }
    let index = definition(grammar, word)?;
    if name.text == "use" {
        return Ok(TemplatePart::Use(index));
    }
    if grammar.place == Names::Definition {
        let mut mistake = name.mistake("`same` belongs in `lines`");
        mistake.help = Some(
            "`same` repeats a value of its event, and a definition is used in many events"
                .to_owned(),
        );
        return Err(mistake);
    }
    let held = grammar.held.iter().position(|held| *held == index);
    Ok(TemplatePart::Variable(held.unwrap_or_else(|| {
        grammar.held.push(index);
        grammar.held.len() - 1
    })))
}

fn repeat(grammar: &Grammar<'_>, name: &Word, arguments: &[Word]) -> Result<TemplatePart, Mistake> {
    let (low, high) = range(name, arguments.first(), |text| text.parse().ok())?;
    let word = arguments.get(1).ok_or_else(|| missing(name))?;
    let index = definition(grammar, word)?;
    if let Some(more) = arguments.get(3) {
        return Err(too_many(more));
    }
    let separator = arguments
        .get(2)
        .map_or_else(String::new, |word| word.text.clone());
    Ok(TemplatePart::Repeat {
        low,
        high,
        separator,
        part: Box::new(TemplatePart::Use(index)),
    })
}
