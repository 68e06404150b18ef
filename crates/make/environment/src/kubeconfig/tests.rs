use super::*;

/// As `kind` and `kubeadm` write it.
const ADMIN: &str = "apiVersion: v1
kind: Config
preferences: {}
current-context: kind-lab
clusters:
- name: kind-lab
  cluster:
    server: https://127.0.0.1:40123
    certificate-authority-data: Q0VSVElGSUNBVEU=
contexts:
- name: kind-lab
  context: {cluster: kind-lab, user: kind-lab, namespace: lab}
- name: other
  context: {cluster: plain, user: ''}
- name: nowhere
  context: {cluster: gone, user: kind-lab}
users:
- name: kind-lab
  user:
    client-certificate-data: Q0VSVA==
    client-key-data: S0VZ
";

/// Another file beside it.
const MORE: &str = "current-context: never
clusters:
- name: plain
  cluster: {server: 'http://127.0.0.1:8001', extensions: [{name: x}]}
- name: kind-lab
  cluster: {server: 'http://shadowed'}
- name: files
  cluster:
    server: https://api.test/k8s/clusters/c-1
    certificate-authority: ca.crt
    tls-server-name: kubernetes
- name: blind
  cluster: {server: 'https://[::1]:6443', insecure-skip-tls-verify: true}
contexts:
- name: files
  context: {cluster: files, user: files}
- name: blind
  context: {cluster: blind, user: bearer}
users:
- name: files
  user: {client-certificate: /etc/a.crt, client-key: a.key, token: t, tokenFile: ../token}
- name: bearer
  user: {token: '12'}
";

fn both() -> Kubeconfig {
    let texts = [
        ("/a/.kube/config".into(), ADMIN.to_owned()),
        ("/etc/more".into(), MORE.to_owned()),
    ];
    Kubeconfig::read(&texts).unwrap()
}

#[test]
fn the_current_context_of_the_first_file_selects_the_cluster() {
    let access = both().access(None).unwrap();
    assert_eq!(access.server, "https://127.0.0.1:40123");
    let text = |text: &str| PemSource::Text(text.to_owned());
    assert_eq!(access.authority, Some(text("CERTIFICATE")));
    let identity = access.identity.clone().unwrap();
    assert_eq!(
        (identity.certificates, identity.key),
        (text("CERT"), text("KEY"))
    );
    assert!(matches!(access.token, ClusterToken::None));
    assert_eq!(access.namespace.as_deref(), Some("lab"));
    assert!(!access.is_unverified);
    assert_eq!(
        format!("{access:?}"),
        "ClusterAccess { server: \"https://127.0.0.1:40123\", .. }"
    );
}

#[test]
fn a_context_may_be_named_and_be_in_another_file() {
    let access = both().access(Some("other")).unwrap();
    assert_eq!(access.server, "http://127.0.0.1:8001");
    assert!(access.identity.is_none() && access.authority.is_none());
    let access = both().access(Some("files")).unwrap();
    assert_eq!(
        access.authority,
        Some(PemSource::File("/etc/ca.crt".into()))
    );
    let identity = access.identity.unwrap();
    assert_eq!(identity.certificates, PemSource::File("/etc/a.crt".into()));
    assert_eq!(identity.key, PemSource::File("/etc/a.key".into()));
    assert!(
        matches!(&access.token, ClusterToken::File(path) if path == Path::new("/etc/../token"))
    );
    assert_eq!(access.server_name.as_deref(), Some("kubernetes"));
    let access = both().access(Some("blind")).unwrap();
    assert!(access.is_unverified);
    assert!(matches!(&access.token, ClusterToken::Text(text) if text == "12"));
    assert_eq!(format!("{:?}", access.token), "Text(…)");
}

#[test]
fn a_missing_entry_is_named_with_the_existing_ones() {
    for (context, message) in [
        (
            "missing",
            "there is no context `missing` in /a/.kube/config, which has `kind-lab`, `other`, `nowhere`, \
             `files`, `blind`",
        ),
        (
            "nowhere",
            "there is no cluster `gone` in /a/.kube/config, which has `kind-lab`, `plain`, `kind-lab`, \
             `files`, `blind`",
        ),
    ] {
        assert_eq!(
            both().access(Some(context)).unwrap_err().to_string(),
            message
        );
    }
    let empty = Kubeconfig::read(&[("k".into(), String::new())]).unwrap();
    let error = empty.access(None).unwrap_err().to_string();
    assert!(
        error.starts_with("k has no current context") && error.ends_with("of none"),
        "{error}"
    );
}

/// A kubeconfig with this cluster and this user.
fn with(cluster: &str, user: &str) -> Result<ClusterAccess, KubeconfigError> {
    let text = format!(
        "current-context: c\nclusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: c, user: {user}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: c}}}}]\n"
    );
    Kubeconfig::read(&[("k".into(), text)])?.access(None)
}

const SERVER: &str = "{server: 'https://a'}";

#[test]
fn what_is_not_followed_is_refused_by_name_with_what_to_do() {
    for key in ["auth-provider", "username", "password"] {
        let error = with(SERVER, &format!("{{{key}: {{command: aws}}}}")).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(&format!("the user `c` in k has `{key}`")),
            "{message}"
        );
        assert!(message.contains("kubectl create token"), "{message}");
    }
    let error = with(SERVER, "{as: somebody}").unwrap_err().to_string();
    assert!(error.contains("`as`"), "{error}");
    let error = with("{server: 'https://a', proxy-url: 'http://b'}", "{}").unwrap_err();
    assert!(error.to_string().contains("`proxy-url`"), "{error}");
    assert!(with(SERVER, "{exec: ~}").is_ok());
}

#[test]
fn a_program_that_logs_in_is_read_with_the_cluster_that_it_requests() {
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./aws, args: [eks, get-token], \
                env: [{name: AWS_PROFILE, value: a}], provideClusterInfo: true, installHint: see b}}";
    let exec = with(SERVER, user).unwrap().exec.unwrap();
    assert_eq!(exec.program, Path::new("./aws"));
    assert_eq!(exec.arguments, ["eks", "get-token"]);
    assert_eq!(exec.variables, [("AWS_PROFILE".to_owned(), "a".to_owned())]);
    assert_eq!(exec.version, "client.authentication.k8s.io/v1");
    assert_eq!(
        exec.cluster,
        Some(serde_json::json!({"server": "https://a"}))
    );
    assert_eq!(exec.hint.as_deref(), Some("see b"));
    for (user, message) in [
        ("{exec: {apiVersion: a}}", "has no `command`"),
        ("{exec: {command: a}}", "has no `apiVersion`"),
        (
            "{exec: {command: a, apiVersion: client.authentication.k8s.io/v1alpha1}}",
            "`apiVersion` of the user `c` in k is not `client.authentication.k8s.io/v1` or",
        ),
        (
            "{exec: {command: a, interactiveMode: Always}}",
            "`interactiveMode` of the user `c` in k is not `Never`",
        ),
        (
            "{exec: {command: a, apiVersion: client.authentication.k8s.io/v1, env: [{name: b}]}}",
            "is not a list of names and values",
        ),
        (
            "{exec: {command: a, apiVersion: client.authentication.k8s.io/v1, args: b}}",
            "is not a list of texts",
        ),
    ] {
        let error = with(SERVER, user).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    // Its settings would be missing where the program looks for them.
    let cluster = "{server: 'https://a', extensions: [{name: client.authentication.k8s.io/exec}]}";
    let error = with(cluster, user).unwrap_err().to_string();
    assert!(error.contains("`extensions`"), "{error}");
}

#[test]
fn errors_do_not_quote_the_text_around_them() {
    for (cluster, user, message) in [
        ("{}", "{}", "the cluster `c` in k has no `server`"),
        ("~", "{}", "the cluster `c` in k has no `server`"),
        (
            "{server: [a]}",
            "{}",
            "`server` of the cluster `c` in k is not a text",
        ),
        (
            SERVER,
            "{client-key-data: S0VZ}",
            "the user `c` in k has no `client-certificate`",
        ),
        (
            SERVER,
            "{client-certificate: a}",
            "the user `c` in k has no `client-key`",
        ),
        (
            SERVER,
            "{client-certificate-data: '%', client-key: a}",
            "`client-certificate-data` of the user `c` in k is not PEM in base 64",
        ),
        (
            "{server: a, insecure-skip-tls-verify: perhaps}",
            "{}",
            "`insecure-skip-tls-verify` of the cluster `c` in k is not `true` or `false`",
        ),
    ] {
        assert_eq!(with(cluster, user).unwrap_err().to_string(), message);
    }
    for text in [
        "- a",
        "token: secret: x",
        "token: secret\ntoken: secret",
        "secret",
    ] {
        let error = Kubeconfig::read(&[("k".into(), text.to_owned())]).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("k is not a kubeconfig: "), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
}
