//! Rights of callers: files, targets, tokens, limits, and hosts beyond this one.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

const TOKEN: &str = "a-token-of-this-test";

/// A load whose requests come from the file at `path` on the service's host.
fn from_file(path: &Path) -> CommandLineOptions {
    let config = json!({
        "name": "nighthawk.file-based-request-source-plugin",
        "typed_config": {
            "@type": "type.googleapis.com/nighthawk.request_source.\
                      FileBasedOptionsListRequestSourceConfig",
            "file_path": path.to_str().unwrap(),
            "num_requests": 1,
        },
    });
    let options = json!({
        "request_source_plugin_config": config,
        "uri": "http://127.0.0.1:1/",
        "duration": "0.1s",
        "no_default_failure_predicates": true,
    });
    let request = json!({ "start_request": { "options": options } });
    match stillwell_nighthawk::wire::request_of_json(request).unwrap() {
        ExecutionRequest::Start(options) => *options,
        _ => unreachable!("it is a start"),
    }
}

/// The detail of the answer to `options`; empty for a load that was made.
fn refusal(service: &Listening, options: CommandLineOptions) -> String {
    wait_for(async {
        let mut call = call(&service.1).await;
        start(&mut call, options);
        let response = answer(&mut call).await;
        response
            .error_detail
            .map(|detail| detail.message)
            .unwrap_or_default()
    })
}

#[test]
fn files_are_read_below_the_allowed_folder_alone_and_never_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let allowed = folder.path().join("allowed");
    fs::create_dir(&allowed).unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "SECRETLINE: 1").unwrap();
    symlink(&secret, allowed.join("link")).unwrap();
    fs::write(allowed.join("wrong"), "SECRETLINE: 1").unwrap();
    fs::write(allowed.join("list"), "options: [{request_method: GET}]").unwrap();
    let pipe = Command::new("mkfifo").arg(allowed.join("pipe")).status();
    assert!(pipe.unwrap().success());

    let closed = Listening::service(&[]);
    let words = ["--allow-files", allowed.to_str().unwrap()];
    let open = Listening::service(&words);
    let why = refusal(&closed, from_file(&allowed.join("list")));
    assert!(why.contains("--allow-files"), "{why}");
    let paths = [
        secret,
        allowed.join("link"),
        allowed.join("pipe"),
        allowed.join("../secret"),
        "/dev/zero".into(),
    ];
    for path in paths {
        let why = refusal(&open, from_file(&path));
        assert!(why.contains("not a readable file below"), "{why}");
        assert!(!why.contains("SECRETLINE"), "{why}");
    }
    let why = refusal(&open, from_file(&allowed.join("wrong")));
    assert!(why.contains("its content is not shown"), "{why}");
    assert!(!why.contains("SECRETLINE"), "{why}");
    assert_eq!(refusal(&open, from_file(&allowed.join("list"))), "");
    for service in [closed, open] {
        service.0.signal("TERM");
        assert_eq!(service.0.finish(LONG).code, 0);
    }
}

#[test]
fn targets_and_limits_are_those_of_the_service() {
    let target = Listening::target(&[]);
    let narrow = Listening::service(&["--allow-target", "10.0.0.0/8"]);
    let why = refusal(&narrow, load(&target));
    assert!(why.contains("is not allowed"), "{why}");
    let wide = Listening::service(&["--allow-target", "127.0.0.1", "--max-rate", "100"]);
    assert_eq!(refusal(&wide, load(&target)), "");
    for (words, flag) in [
        (["--max-rate", "99"], "--max-rate"),
        (["--max-connections", "1"], "--max-connections"),
        (["--max-duration", "500ms"], "--max-duration"),
    ] {
        let why = refusal(&Listening::service(&words), load(&target));
        assert!(why.contains(flag), "{why}");
    }
}

#[test]
fn a_call_without_the_token_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let target = Listening::target(&[]);
    let service = Listening::service(&["--token-file", file.to_str().unwrap()]);
    wait_for(async {
        let channel = Channel::new(&service.1, None).unwrap();
        let wrong = format!("Bearer {TOKEN}x");
        for headers in [vec![], vec![("authorization", wrong.as_str())]] {
            let mut call = channel.call(EXECUTION, &headers).await.unwrap();
            start(&mut call, load(&target));
            assert_eq!(end_of(&mut call).await.code, StatusCode::Unauthenticated);
        }
        let right = format!("Bearer {TOKEN}");
        let headers = [("authorization", right.as_str())];
        let mut call = channel.call(EXECUTION, &headers).await.unwrap();
        start(&mut call, load(&target));
        assert_eq!(answer(&mut call).await.error_detail, None);
    });
    assert_needs_token(&format!(
        "--nighthawk-service grpc://{} --rps 50 --duration 1 http://{}/",
        service.1, target.1
    ));
    // A distributor has that of its services in a file.
    let words = ["--service", "distributor", "--services-token-file"];
    let distributor = Listening::service(&[&words[..], &[file.to_str().unwrap()]].concat());
    assert!(!distributor.1.is_empty());
}

/// The client sends its token to the source of its requests, too.
#[test]
fn a_request_source_requires_the_token_of_its_clients() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, TOKEN).unwrap();
    let target = Listening::target(&[]);
    let words = ["--service", "request-source", "--token-file"];
    let source = Listening::service(&[&words[..], &[file.to_str().unwrap()]].concat());
    assert_needs_token(&format!(
        "--request-source grpc://{} --rps 50 --duration 100 \
         --termination-predicate benchmark.http_2xx:9 http://{}/",
        source.1, target.1
    ));
}

/// Checks that the client of the command line sends the token that is in its environment.
fn assert_needs_token(words: &str) {
    let (_folder, name) = named("nighthawk_client");
    for (token, code) in [(TOKEN, 0), ("another-token-of-it", 1)] {
        let mut command = Command::new(&name);
        command.args(words.split_whitespace());
        command.env("STILLWELL_SERVICE_TOKEN", token);
        let ended = Process::start(&mut command).finish(LONG);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        let is_refused = ended.stderr.contains("requires its token");
        assert_eq!(is_refused, code == 1, "{}", ended.stderr);
    }
}

#[test]
fn a_service_that_other_hosts_reach_needs_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let short = folder.path().join("short");
    fs::write(&short, "short").unwrap();
    let run = |words: &[&str]| {
        let words = [&["service", "--listen", "0.0.0.0:0"], words].concat();
        Process::start(Command::new(STILLWELL).args(words)).finish(LONG)
    };
    let (_folder, name) = named("nighthawk_service");
    let ended = Process::start(Command::new(name).args(["--listen", "0.0.0.0:0"])).finish(LONG);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    // Only options that a command line takes are named.
    assert!(
        ended.stderr.contains("--token-file FILE") && !ended.stderr.contains("--client-ca"),
        "{}",
        ended.stderr
    );
    for (words, expected) in [
        (vec![], "--client-ca FILE"),
        (
            vec!["--token-file", short.to_str().unwrap()],
            "16 characters",
        ),
        (vec!["--token-file", "/nowhere/token"], "/nowhere/token"),
        (vec!["--allow-files", "/nowhere"], "/nowhere"),
        (vec!["--allow-target", "http://a"], "HOST[:PORT]"),
        (vec!["--max-rate", "0"], "above zero"),
    ] {
        let ended = run(&words);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    let process = Process::start(Command::new(STILLWELL).args([
        "service",
        "--listen",
        "0.0.0.0:0",
        "--insecure",
    ]));
    let open = Listening::wait(process, "://");
    assert!(open.0.stderr().contains("warning"), "{}", open.0.stderr());
}

/// A network namespace with one end of a pair of devices, for as long as it lives.
struct Namespace(String);

impl Namespace {
    /// Returns `None` without the right to make one.
    fn new() -> Option<Self> {
        let name = format!("sw-test-{}", std::process::id());
        let namespace = Self(name.clone());
        let (here, there) = (
            format!("swh{}", std::process::id()),
            format!("swt{}", std::process::id()),
        );
        for words in [
            format!("netns add {name}"),
            format!("link add {here} type veth peer name {there} netns {name}"),
            format!("address add 198.18.77.1/30 dev {here}"),
            format!("link set {here} up"),
            format!("-n {name} address add 198.18.77.2/30 dev {there}"),
            format!("-n {name} link set {there} up"),
        ] {
            let made = Command::new("ip").args(words.split(' ')).output();
            if !made.is_ok_and(|made| made.status.success()) {
                return None;
            }
        }
        Some(namespace)
    }

    /// Runs `nighthawk_client` there.
    fn client(&self, service: &str, target: &str, token: Option<&str>) -> Finished {
        let (_folder, name) = named("nighthawk_client");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).arg(name);
        command.args([
            "--rps",
            "50",
            "--duration",
            "1",
            "--sequencer-idle-strategy",
            "sleep",
        ]);
        command.args(["--nighthawk-service", &format!("grpc://{service}"), target]);
        match token {
            Some(token) => command.env("STILLWELL_SERVICE_TOKEN", token),
            None => command.env_remove("STILLWELL_SERVICE_TOKEN"),
        };
        Process::start(&mut command).finish(LONG)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(
            Command::new("ip")
                .args(["netns", "delete", &self.0])
                .output(),
        );
    }
}

#[test]
fn another_host_is_refused_without_a_token_and_has_no_target_by_default() {
    let Some(distant) = Namespace::new() else {
        println!("SKIPPED: another_host_is_refused: needs root and the program ip");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, TOKEN).unwrap();
    let target = Listening::target(&[]);
    let url = format!("http://{}/", target.1);
    let service = |words: &[&str]| {
        let all = [
            "service",
            "--listen",
            "198.18.77.1:0",
            "--token-file",
            file.to_str().unwrap(),
        ];
        Listening::start(&[&all[..], words].concat())
    };
    let closed = service(&[]);
    let ended = distant.client(&closed.1, &url, None);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("requires its token in the header `authorization`, after the word `Bearer`"),
        "{}",
        ended.stderr
    );
    let ended = distant.client(&closed.1, &url, Some(TOKEN));
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("is not allowed"), "{}", ended.stderr);
    let open = service(&["--allow-target", "127.0.0.1"]);
    let ended = distant.client(&open.1, &url, Some(TOKEN));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}
