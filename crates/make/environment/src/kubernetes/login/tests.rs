use super::*;

const VERSION: &str = "client.authentication.k8s.io/v1";

fn exec(script: &str) -> ExecLogin {
    ExecLogin {
        program: "/bin/sh".into(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        variables: vec![("WHO".to_owned(), "me".to_owned())],
        version: VERSION.to_owned(),
        cluster: None,
        hint: Some("install it".to_owned()),
    }
}

fn login(script: &str) -> Result<Arc<ClusterLogin>, ClusterLoginError> {
    ClusterLogin::new(exec(script), None).map(|(login, _)| login)
}

fn token(login: &ClusterLogin) -> Result<String, ClusterLoginError> {
    wait_for(login.token()).unwrap()
}

fn credential(status: &str) -> String {
    format!(r#"{{"kind":"ExecCredential","apiVersion":"{VERSION}","status":{status}}}"#)
}

#[test]
fn an_expired_token_is_renewed_and_another_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    for (expires, count) in [
        (r#""1960-01-01T00:00:00Z""#, 3),
        (r#""2000-01-01T00:00:00Z""#, 3),
        (r#""2200-01-01T00:00:00+02:00""#, 1),
        (r#""9999-12-30T00:00:00Z""#, 1),
        (r#""""#, 1),
        ("null", 1),
    ] {
        let status = format!(
            r#"{{"expirationTimestamp":{expires},"token":"'$WHO-$(wc -l <{0})'"}}"#,
            calls.display()
        );
        let script = format!(
            "echo x >>{}\necho '{}'",
            calls.display(),
            credential(&status)
        );
        let login = login(&script).unwrap();
        token(&login).unwrap();
        assert_eq!(token(&login).unwrap(), format!("me-{count}"), "{expires}");
        std::fs::remove_file(&calls).unwrap();
    }
}

#[test]
fn a_program_receives_the_question_of_kubernetes_own_clients() {
    let folder = tempfile::tempdir().unwrap();
    let (question, authority) = (folder.path().join("question"), folder.path().join("ca"));
    std::fs::write(&authority, "PEM").unwrap();
    let script = format!(
        r#"echo "$KUBERNETES_EXEC_INFO" >{}; echo '{}'"#,
        question.display(),
        credential(r#"{"token":"t"}"#)
    );
    let data = r#","certificate-authority-data":"UEVN""#;
    for (cluster, authority, expected) in [
        (false, None, String::new()),
        (
            true,
            None,
            r#""cluster":{"server":"https://a"},"#.to_owned(),
        ),
        (
            true,
            Some(PemSource::File(authority)),
            format!(r#""cluster":{{"server":"https://a"{data}}},"#),
        ),
    ] {
        let cluster = cluster.then(|| serde_json::json!({"server": "https://a"}));
        let exec = ExecLogin {
            cluster,
            ..exec(&script)
        };
        ClusterLogin::new(exec, authority.as_ref()).unwrap();
        let expected = format!(
            r#"{{"apiVersion":"{VERSION}","kind":"ExecCredential","spec":{{{expected}"interactive":false}}}}"#
        );
        let received: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&question).unwrap()).unwrap();
        let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(received, expected);
    }
}

#[test]
fn a_certificate_of_a_login_becomes_the_identity() {
    let status = r#"{"clientCertificateData":"CERT","clientKeyData":"KEY"}"#;
    let script = format!("echo '{}'", credential(status));
    let (login, identity) = ClusterLogin::new(exec(&script), None).unwrap();
    let identity = identity.unwrap();
    assert_eq!(identity.certificates, PemSource::Text("CERT".to_owned()));
    assert_eq!(identity.key, PemSource::Text("KEY".to_owned()));
    assert_eq!(token(&login).unwrap(), "");
    assert!(!format!("{login:?}").contains("KEY"));
}

#[test]
fn a_program_that_does_not_log_in_is_named_and_no_secret_is_shown() {
    let script = |status| format!("echo '{}'", credential(status));
    for (script, message) in [
        (
            "printf 'no\\033[31m\\nsession\\n' >&2; exit 3".to_owned(),
            "ended with exit status: 3: no [31m session",
        ),
        ("exit 4".to_owned(), "ended with exit status: 4"),
        ("echo secret".to_owned(), "line 1 of its output is not JSON"),
        ("yes secret".to_owned(), "read the output of"),
        ("yes secret >&2".to_owned(), "read the output of"),
        (script("null"), "it has no status"),
        (script("{}"), "neither a token nor a certificate"),
        (
            script(r#"{"clientKeyData":"secret"}"#),
            "a certificate without its key",
        ),
        (
            script(r#"{"token":"secret x: y"}"#),
            "its token has characters that no header may have",
        ),
        (
            script(r#"{"token":"secret","expirationTimestamp":"soon"}"#),
            "its expirationTimestamp is not a time of RFC 3339",
        ),
        (
            script(r#"{"token":"secret"}"#).replace("/v1", "/v1beta1"),
            "its apiVersion is not that of the kubeconfig",
        ),
        (
            script(r#"{"token":"secret"}"#).replace("ExecCredential", "Secret"),
            "its kind is not ExecCredential",
        ),
    ] {
        let error = login(&script).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert!(
            error.contains("/bin/sh") && !error.contains("secret") && !error.contains('\x1b'),
            "{error}"
        );
    }
    let missing = ExecLogin {
        program: "/no/such".into(),
        ..exec("")
    };
    let error = ClusterLogin::new(missing, None).unwrap_err().to_string();
    let expected = "start `/no/such`, which logs in to the cluster: No such file or directory (os error 2): \
                    install it";
    assert_eq!(error, expected);
}

#[test]
fn a_long_message_is_shown_by_its_end() {
    let error = login("yes begin | head -n 1000 >&2; echo end >&2; exit 1").unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains(": …") && error.ends_with("begin end"),
        "{error}"
    );
    assert!(error.len() < 400, "{error}");
}
