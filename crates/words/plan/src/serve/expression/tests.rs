use proptest::prelude::*;

use super::*;

fn value(text: &str) -> String {
    let expression: Expression = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let inputs = ExpressionInputs {
        active_requests: 12.0,
        seconds: 2.5,
    };
    match expression.evaluate(&inputs, &mut || 0.25) {
        ExpressionValue::Number(number) => format!("{number}"),
        ExpressionValue::Truth(truth) => format!("{truth}"),
        ExpressionValue::Text(text) => format!("'{text}'"),
    }
}

#[test]
fn formulas_give_their_values() {
    for (text, expected) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 2 - 3", "5"),
        ("2 ** 3 ** 2", "512"),
        ("-2 ** 2", "-4"),
        ("2 ** -1", "0.5"),
        ("7 % 4 / 2", "1.5"),
        ("1e3 + 2.5E-1 + .5", "1000.75"),
        ("active_requests * t", "30"),
        ("t % 2 < 1", "true"),
        ("rand() < 0.25", "false"),
        ("rand() <= 0.25 && !false", "true"),
        ("1 == 2 || 1 != 2", "true"),
        ("active_requests > 10 ? 503 : false", "503"),
        ("active_requests > 20 ? 503 : false", "false"),
        (
            "active_requests > 20 ? 503 : t > 2 ? 'close' : \"reset\"",
            "'close'",
        ),
        ("sin(pi / 2)", "1"),
        ("floor(abs(-2.5)) + min(1, 2) + max(1, 2)", "5"),
        ("sqrt(16) + exp(0) + ln(1)", "5"),
        ("floor(1000 * exponential(1))", "287"),
        ("abs(normal(10, 2) - 10) < 0.001", "true"),
        ("1 / 0", "inf"),
        ("true", "true"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

/// Position and length of each marker, and a part of the message.
#[test]
fn what_is_no_formula_is_marked() {
    for (text, at, length, message) in [
        ("", 0, 0, "before the end"),
        ("1 +", 3, 0, "before the end"),
        ("1 + * 2", 4, 1, "expected"),
        ("rand() < ", 9, 0, "before the end"),
        (
            "active > 1",
            0,
            6,
            "unknown name `active`: the names are active_requests, t",
        ),
        ("rand(1)", 0, 7, "rand() takes 0 values, not 1"),
        ("min(1)", 0, 6, "min() takes 2 values, not 1"),
        ("sin 1", 4, 1, "`(`"),
        ("(1", 2, 0, "`)`"),
        ("1 2", 2, 1, "an operator or the end"),
        ("1 + true", 4, 4, "expected a number, found a condition"),
        ("(t > 1) + 1", 1, 5, "expected a number"),
        ("1 ? 2 : 3", 0, 1, "expected a condition, found a number"),
        ("true ? 1", 8, 0, "`:`"),
        ("(true ? 1 : 'a') + 1", 1, 14, "differs in type"),
        ("'a", 0, 2, "has no closing"),
        ("1 = 1", 2, 1, "unexpected `=`"),
        ("1.2.3", 0, 5, "`1.2.3` is not a number"),
        ("ü", 0, 2, "unexpected `ü`"),
    ] {
        let error = text.parse::<Expression>().unwrap_err();
        assert_eq!((error.at, error.length), (at, length), "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
}

#[test]
fn an_error_shows_the_line_and_a_mark() {
    let error = "5 + activ".parse::<Expression>().unwrap_err().to_string();
    assert!(error.ends_with("\n  5 + activ\n      ^^^^^"), "{error}");
}

#[test]
fn nothing_is_nested_without_end() {
    for text in [
        "(".repeat(2000),
        "-".repeat(2000),
        "!".repeat(2000),
        format!("1{}", " ** 1".repeat(500)),
        format!("1{}", "+1".repeat(2000)),
        format!("{}1", "true?1:".repeat(500)),
    ] {
        assert!(text.parse::<Expression>().is_err());
    }
}

proptest! {
    /// For all texts: reading ends, and what was read gives a value of its kind
    /// and is written as it was typed.
    #[test]
    fn reading_and_evaluating_never_fail(
        text in "(active_requests|t|pi|rand\\(\\)|sin\\(|[0-9.]{1,3}|[-+*/%<>=!&|?:() ]|'a'|true){0,12}",
    ) {
        let Ok(expression) = text.parse::<Expression>() else { return Ok(()) };
        let inputs = ExpressionInputs { active_requests: 3.0, seconds: 1.0 };
        let value = expression.evaluate(&inputs, &mut || 0.5);
        let fits = match value {
            ExpressionValue::Number(_) => ExpressionKind::Number,
            ExpressionValue::Truth(_) => ExpressionKind::Truth,
            ExpressionValue::Text(_) => ExpressionKind::Text,
        };
        prop_assert!([fits, ExpressionKind::Mixed].contains(&expression.kind()));
        prop_assert_eq!(expression.to_string(), text);
    }
}
