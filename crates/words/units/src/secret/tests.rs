use proptest::prelude::*;
use serde_json::json;

use super::*;

const NAMES: [&str; 17] = [
    "Authorization",
    "Proxy-Authorization",
    "Cookie",
    "Set-Cookie",
    "X-Api-Key",
    "DD-API-KEY",
    "x-auth-token",
    "X-Amz-Signature",
    "API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "DB_PASSWORD",
    "clientSecret",
    "access_token",
    "GITHUB_TOKEN",
    "PGPASSWORD",
    "SSHPASS",
    "DBPassword",
];

#[test]
fn a_name_is_of_a_secret_by_its_words_and_their_ends() {
    for name in [
        "PGPASSWORD",
        "DB_PASS",
        "SMTP_PASS",
        "SSHPASS",
        "pass",
        "keyPass",
        "storepass",
        "DBPassword",
        "MYSQL_PWD",
        "ldappasswd",
        "AUTHToken",
        "XToken",
        "OAuthToken",
        "csrftoken",
        "MYAPIKEY",
        "APIKey",
        "APIkey",
        "X-APIkey",
        "SECRETs",
        "CREDENTIALs",
        "PASSphrase",
        "clientsecret",
    ] {
        assert_eq!(Secrets::Masked.value(name, "v"), MASK, "{name}");
    }
    for name in [
        "BYPASS",
        "cacheBypass",
        "compass",
        "encompass",
        "trespass",
        "pass_rate",
        "PASS_MAX_DAYS",
        "passenger",
        "PGPASSFILE",
        "DB_PASS_FILE",
        "tokenizer",
        "secretary",
        "OAuth",
        "PUBLICKey",
    ] {
        assert_eq!(Secrets::Masked.value(name, "v"), "v", "{name}");
    }
}

#[test]
fn texts_lose_their_secrets_and_nothing_else() {
    for (text, expected) in [
        ("http://u:p@h:1/x?a=1", "http://***@h:1/x?a=1"),
        (
            "http://u@h/ and https://v:w@i",
            "http://***@h/ and https://***@i",
        ),
        ("http://h/?token=a&x=b#c", "http://h/?token=***&x=b#c"),
        ("http://h/?x=b&api_key=a", "http://h/?x=b&api_key=***"),
        ("/path?key=1&page=2", "/path?key=***&page=2"),
        ("-H 'Cookie: a=b; c=d' x", "-H 'Cookie: ***' x"),
        (
            "Authorization: Bearer a b\nHost: c",
            "Authorization: ***\nHost: c",
        ),
        (
            "{\"x-api-key\": \"a\\\"b\", \"n\":1}",
            "{\"x-api-key\": \"***\", \"n\":1}",
        ),
        ("API_KEY=\"a b\" c", "API_KEY=\"***\" c"),
        ("--token-file=/run/t", "--token-file=/run/t"),
        (
            "`Authorization Bearer aB3c`, x",
            "`Authorization Bearer ***`, x",
        ),
        ("basic authentication", "basic authentication"),
        ("unexpected token: `x`", "unexpected token: `x`"),
        ("/etc/passwd: line 1", "/etc/passwd: line 1"),
        ("key: partition, a=b", "key: partition, a=b"),
        ("routing_key=a", "routing_key=a"),
        ("PASSWORD=", "PASSWORD="),
        ("PGPASSWORD=a b", "PGPASSWORD=*** b"),
        ("SSHPASS: a b", "SSHPASS: ***"),
        ("first pass: 3 rows", "first pass: 3 rows"),
        ("bypass: 3 rows", "bypass: 3 rows"),
        ("X-APIkey: a", "X-APIkey: ***"),
        ("127.0.0.1:80 14:02:01 é=ü", "127.0.0.1:80 14:02:01 é=ü"),
    ] {
        assert_eq!(Secrets::Masked.text(text), expected);
    }
}

#[test]
fn a_port_behind_a_host_is_shown_and_the_value_of_a_header_is_not() {
    for (text, expected) in [
        ("user-auth:8080/login", "user-auth:8080/login"),
        ("token-service.local:80", "token-service.local:80"),
        ("user-auth:8080?a=1 b", "user-auth:8080?a=1 b"),
        (
            "user-auth:8080/?token=abc&b=c",
            "user-auth:8080/?token=***&b=c",
        ),
        ("X-Auth-Token: 12345", "X-Auth-Token: ***"),
        ("X-Auth-Token:12345", "X-Auth-Token:***"),
        ("x-auth-token: 12345", "x-auth-token: ***"),
        ("x-auth-token:12345", "x-auth-token:***"),
        ("x-auth-token:abc", "x-auth-token:***"),
        ("x-auth-token:123456", "x-auth-token:***"),
        ("x-auth-token:12345a", "x-auth-token:***"),
        ("user-auth:8080@h", "user-auth:***"),
        ("password:12345", "password:***"),
        ("db_password:12345", "db_password:***"),
        ("db-password:12345", "db-password:***"),
        ("proxy-authorization:12345", "proxy-authorization:***"),
        ("session-cookie:12345", "session-cookie:***"),
        ("x-auth-jwt:12345", "x-auth-jwt:***"),
        ("db-pwd:12345", "db-pwd:***"),
        ("--password:12345", "--password:***"),
        ("'x-auth-token':12345", "'x-auth-token':***"),
    ] {
        assert_eq!(Secrets::Masked.text(text), expected);
    }
}

#[test]
fn words_behind_secret_options_are_hidden() {
    let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    for (line, expected) in [
        ("p --password a --rate 5", "p --password *** --rate 5"),
        ("p --key FILE --token-file F", "p --key FILE --token-file F"),
        ("p --api-key a -b c", "p --api-key *** -b c"),
        ("p --password --quiet", "p --password --quiet"),
    ] {
        assert_eq!(Secrets::Masked.words(&words(line)), words(expected));
    }
}

/// Plans of `ffmpeg -pass 1` and `-pass 2` had one fingerprint.
#[test]
fn pass_alone_is_a_secret_only_as_a_name_that_a_user_chose() {
    for (text, expected) in [
        ("first-pass: read 3 rows", "first-pass: read 3 rows"),
        ("pass: 3 rows", "pass: 3 rows"),
        ("pass=12 fail=0", "pass=12 fail=0"),
        ("-pass=1", "-pass=1"),
        ("DB_PASS=a b", "DB_PASS=*** b"),
        ("--db-pass=a b", "--db-pass=*** b"),
        ("http://h/?pass=a&b=c", "http://h/?pass=***&b=c"),
        ("http://h/?b=c&pass=a", "http://h/?b=c&pass=***"),
    ] {
        assert_eq!(Secrets::Masked.text(text), expected);
    }
    let document = json!({
        "pass": "1", "db_pass": "s", "pair": ["-pass", "1"], "header": ["pass", "s"],
        "arguments": ["-i", "in", "-pass", "1", "--db-pass", "s"], "env": {"pass": "s"},
    });
    let expected = json!({
        "pass": "1", "db_pass": "***", "pair": ["-pass", "1"], "header": ["pass", "***"],
        "arguments": ["-i", "in", "-pass", "1", "--db-pass", "***"], "env": {"pass": "***"},
    });
    assert_eq!(Secrets::Masked.json(document), expected);
}

/// Errors in a file with a key were replaced by the mask, all of them.
#[test]
fn a_private_key_is_hidden_and_what_is_beside_it_is_not() {
    let first = "-----BEGIN PRIVATE KEY-----";
    let last = "-----END PRIVATE KEY-----";
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC";
    for (text, expected) in [
        (
            format!(
                "error: a\n2 | k: |\n3 |   {first}\n4 |   {line}\n5 |   {last}\n6 | a: 2\nerror: b\n"
            ),
            "error: a\n2 | k: |\n***\n6 | a: 2\nerror: b\n".to_owned(),
        ),
        (format!("a\n{first}\n{line}\nb"), "a\n***".to_owned()),
        (
            format!("error: a\n4 |  {line}\n5 |  aQ==\n6 |  {last}\n7 | b: 2"),
            "error: a\n***\n7 | b: 2".to_owned(),
        ),
        (
            format!("{first}\n{line}\n{last} {first}\n{line}\n{last}\nb"),
            "***\nb".to_owned(),
        ),
        (format!("{first}\\n{line}\\n{last}"), "***".to_owned()),
    ] {
        assert_eq!(Secrets::Masked.text(&text), expected, "{text}");
    }
}

#[test]
fn documents_keep_their_shape() {
    let document = json!({
        "plan": {"environment": {"inherit": false, "variables": {"API_KEY": "s", "PORT": "1"}}},
        "headers": [["Authorization", "s"], ["Accept", "a"]],
        "options": [{"header": {"key": "X-Token", "value": "s"}}, {"name": "a", "value": "b"}],
        "routing_key": "r", "key": "none", "password": "s", "arguments": ["--secret", "s"], "token": 1,
        "pem": "-----BEGIN PRIVATE KEY-----\ns\n",
    });
    let expected = json!({
        "plan": {"environment": {"inherit": false, "variables": {"API_KEY": "***", "PORT": "1"}}},
        "headers": [["Authorization", "***"], ["Accept", "a"]],
        "options": [{"header": {"key": "X-Token", "value": "***"}}, {"name": "a", "value": "b"}],
        "routing_key": "r", "key": "none", "password": "***", "arguments": ["--secret", "***"], "token": 1,
        "pem": "***",
    });
    assert_eq!(Secrets::Masked.json(document.clone()), expected);
    assert_eq!(Secrets::Kept.json(document.clone()), document);
}

/// Texts that assign `secret` to `name`, each as programs write them.
fn assignments(name: &str, secret: &str) -> Vec<String> {
    vec![
        format!("{name}={secret}"),
        format!("{name}: {secret}"),
        format!("{name}:{secret}\r\nHost: a"),
        format!("a -H '{name}: {secret}' b"),
        format!("\"{name}\": \"{secret}\""),
        format!("'{name}':'{secret}'"),
        format!("http://h/?a=b&{name}={secret}&c=d"),
        format!("({name}={secret})"),
        format!("http://user:{secret}@host/"),
        format!("http://{secret}@host"),
        format!("'Authorization Bearer {secret}'"),
    ]
}

proptest! {
    #[test]
    fn for_all_names_and_places_a_secret_is_not_in_the_text(
        name in prop::sample::select(&NAMES[..]),
        secret in "[A-Z][A-Za-z0-9+/.!$(){}~-]{7,40}",
        around in "[ -~]{0,20}",
    ) {
        for text in assignments(name, &secret) {
            // A slash ends the address of a URL.
            if text.contains("@host") && secret.contains('/') {
                continue;
            }
            let text = format!("{around}\n{text}\n{around}");
            let masked = Secrets::Masked.text(&text);
            prop_assert!(!masked.contains(&secret) || around.contains(&secret), "{text}: {masked}");
        }
    }

    #[test]
    fn for_all_texts_masking_again_changes_nothing(text in "([ -~é\n]|token=|Cookie: |://|\"|'){0,40}") {
        let once = Secrets::Masked.text(&text);
        prop_assert_eq!(Secrets::Masked.text(&once), once);
    }

    #[test]
    fn for_all_texts_without_an_assignment_nothing_changes(text in "[^=:Bb-]{0,60}") {
        prop_assert_eq!(Secrets::Masked.text(&text), text);
    }
}
