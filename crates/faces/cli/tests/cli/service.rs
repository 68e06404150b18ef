//! `stillwell service` between real processes, called by a client of this test.
//! `.ci/service` does the same with a client that protoc made.

#[path = "service/access.rs"]
mod access;
#[path = "service/source.rs"]
mod source;

use std::fs;
use std::future::Future;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use stillwell_nighthawk::service::{CallFailed, Channel, ChannelError, ClientCall, StatusCode};
use stillwell_nighthawk::wire::{
    ExecutionRequest, ExecutionResponse, Schema, UnknownFields, decode_response, encode_request,
    response_of_json,
};
use stillwell_nighthawk::{CommandLineOptions, IdleStrategy, WorkerResult, read_json};
use stillwell_plan::tls::{Alpn, ClientTlsPlan, TlsSuites, Verification};
use stillwell_testkit::{Finished, LONG, Process, free_port, wait_until};
use stillwell_units::Nanos;
use tempfile::TempDir;

const STILLWELL: &str = env!("CARGO_BIN_EXE_stillwell");
const EXECUTION: &str = "/nighthawk.client.NighthawkService/ExecutionStream";

/// A process of ours that listens, and where.
struct Listening(Process, String);

impl Listening {
    fn start(words: &[&str]) -> Self {
        let process = Process::start(Command::new(STILLWELL).args(words));
        Self::wait(process, "://")
    }

    /// Until it says where it listens, behind `mark`.
    fn wait(process: Process, mark: &str) -> Self {
        let mut address = None;
        wait_until(LONG, || {
            let stderr = process.stderr();
            let result = stderr
                .split_once(mark)
                .and_then(|(_, rest)| rest.split_once('\n'));
            address = result.map(|(result, _)| result.trim_end_matches('/').to_owned());
            address.is_some()
        });
        assert!(address.is_some(), "it says only: {}", process.stderr());
        Self(process, address.unwrap())
    }

    fn service(words: &[&str]) -> Self {
        Self::start(&[&["service", "--listen", "127.0.0.1:0"], words].concat())
    }

    fn target(words: &[&str]) -> Self {
        Self::start(&[&["serve", "--address", "127.0.0.1:0"], words].concat())
    }
}

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(LONG, future).await };
    runtime.block_on(limited).expect("it takes too long")
}

async fn call(address: &str) -> ClientCall {
    let channel = Channel::new(address, None).unwrap();
    channel.call(EXECUTION, &[]).await.unwrap()
}

/// Our binary under another name, for as long as the folder is there.
fn named(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    symlink(STILLWELL, &path).unwrap();
    (folder, path)
}

/// Runs `nighthawk_client` with these words to its end.
fn client(words: &str) -> Finished {
    let (_folder, name) = named("nighthawk_client");
    Process::start(Command::new(&name).args(words.split_whitespace())).finish(LONG)
}

/// A load of a hundred requests on `target`, which are due within a second.
fn load(target: &Listening) -> CommandLineOptions {
    CommandLineOptions {
        requests_per_second: Some(100),
        connections: Some(2),
        duration: Some(Nanos::from_secs(100)),
        termination_predicates: [("benchmark.http_2xx".to_owned(), 99)].into(),
        sequencer_idle_strategy: Some(IdleStrategy::Sleep),
        uri: Some(format!("http://{}/", target.1)),
        ..CommandLineOptions::default()
    }
}

/// One that ends only by itself being ended.
fn endless(target: &Listening) -> CommandLineOptions {
    CommandLineOptions {
        duration: None,
        no_duration: Some(true),
        termination_predicates: Default::default(),
        ..load(target)
    }
}

fn send(call: &mut ClientCall, request: &ExecutionRequest) {
    call.send(&encode_request(request).unwrap());
}

fn start(call: &mut ClientCall, options: CommandLineOptions) {
    send(call, &ExecutionRequest::Start(Box::new(options)));
}

async fn answer(call: &mut ClientCall) -> ExecutionResponse {
    let bytes = call.next().await.unwrap().expect("no answer came");
    decode_response(&bytes).unwrap()
}

/// The error that ends a call instead of an answer.
async fn end_of(call: &mut ClientCall) -> CallFailed {
    let error = call.next().await.unwrap_err();
    let is_ended = matches!(error, ChannelError::CallFailed(_));
    assert!(is_ended, "{error}");
    match error {
        ChannelError::CallFailed(ended) => ended,
        _ => unreachable!("it was just looked at"),
    }
}

fn result(response: &ExecutionResponse) -> &WorkerResult {
    response.output.as_ref().unwrap().results.last().unwrap()
}

fn detail(response: &ExecutionResponse) -> (u32, &str) {
    let detail = response.error_detail.as_ref().unwrap();
    (detail.code, &detail.message)
}

/// Polls until answers have come.
async fn until_answers_come(call: &mut ClientCall) -> u64 {
    until_counted(call, "benchmark.http_2xx").await
}

/// Polls until the counter `name` is above 0.
async fn until_counted(call: &mut ClientCall, name: &str) -> u64 {
    loop {
        send(call, &ExecutionRequest::Update);
        let response = answer(call).await;
        assert_eq!(result(&response).name, "progress");
        let seen = result(&response).counter(name);
        if seen > 0 {
            return seen;
        }
    }
}

// compat: nighthawk_service | ExecutionStream | works
#[test]
fn loads_follow_each_other_on_one_stream() {
    let (target, service) = (Listening::target(&[]), Listening::service(&[]));
    wait_for(async {
        let mut call = call(&service.1).await;
        for _ in 0..2 {
            start(&mut call, load(&target));
            let response = answer(&mut call).await;
            assert_eq!(response.error_detail, None);
            let sent = result(&response).counter("benchmark.http_2xx");
            // One more may be under way when the last one comes.
            assert!((100..=101).contains(&sent), "{sent}");
            let options = &response.output.as_ref().unwrap().options;
            assert_eq!(options.requests_per_second, Some(100));
            assert_eq!(options.max_active_requests, Some(100));
        }
        call.end();
        assert_eq!(call.next().await.unwrap(), None);
    });
    service.0.signal("TERM");
    assert_eq!(service.0.finish(LONG).code, 0);
}

// compat: nighthawk_service | cancellation_request | works
// compat: nighthawk_service | update_request | works
#[test]
fn a_load_reports_how_far_it_is_and_ends_when_it_is_cancelled() {
    let (target, service) = (Listening::target(&[]), Listening::service(&[]));
    wait_for(async {
        let mut call = call(&service.1).await;
        start(&mut call, endless(&target));
        let seen = until_answers_come(&mut call).await;
        let mut second = self::call(&service.1).await;
        start(&mut second, load(&target));
        let busy = "Only a single benchmark session is allowed at a time.";
        assert_eq!(
            end_of(&mut second).await,
            CallFailed::new(StatusCode::Internal, busy)
        );
        send(&mut call, &ExecutionRequest::Cancel);
        let response = answer(&mut call).await;
        assert_eq!(response.error_detail, None);
        let result = result(&response);
        assert_eq!(result.name, "global");
        assert!(result.counter("benchmark.http_2xx") >= seen);
        assert_eq!(result.counter("graceful_stop_requested"), 1);
        // A late one has no effect.
        send(&mut call, &ExecutionRequest::Cancel);
        call.end();
        assert_eq!(call.next().await.unwrap(), None);
    });
}

#[test]
fn the_progress_of_a_load_has_its_failures() {
    let target = Listening::target(&["--error", "'reset'"]);
    let service = Listening::service(&[]);
    let dead = format!("http://127.0.0.1:{}/", free_port());
    wait_for(async {
        let mut call = call(&service.1).await;
        for (uri, counter) in [
            (format!("http://{}/", target.1), "benchmark.stream_resets"),
            (dead, "benchmark.pool_connection_failure"),
        ] {
            let options = CommandLineOptions {
                uri: Some(uri),
                no_default_failure_predicates: Some(true),
                ..endless(&target)
            };
            start(&mut call, options);
            until_counted(&mut call, counter).await;
            send(&mut call, &ExecutionRequest::Cancel);
            assert!(result(&answer(&mut call).await).counter(counter) > 0);
        }
    });
}

#[test]
fn a_client_that_goes_takes_its_load_with_it() {
    let (target, service) = (Listening::target(&[]), Listening::service(&[]));
    wait_for(async {
        let mut gone = call(&service.1).await;
        start(&mut gone, endless(&target));
        until_answers_come(&mut gone).await;
        drop(gone);
        loop {
            let mut call = call(&service.1).await;
            start(&mut call, load(&target));
            match call.next().await {
                Ok(answer) => {
                    let response = decode_response(&answer.unwrap()).unwrap();
                    assert_eq!(response.error_detail, None);
                    return;
                }
                Err(ChannelError::CallFailed(ended)) => {
                    assert_eq!(ended.code, StatusCode::Internal)
                }
                Err(second) => panic!("{second}"),
            }
        }
    });
}

#[test]
fn what_cannot_be_done_is_answered_with_its_detail() {
    let (target, service) = (
        Listening::target(&["--status", "503"]),
        Listening::service(&[]),
    );
    wait_for(async {
        let mut call = call(&service.1).await;
        let mut options = load(&target);
        options.requests_per_second = Some(0);
        start(&mut call, options);
        let response = answer(&mut call).await;
        let (code, why) = detail(&response);
        assert!(
            code == 13 && why.contains("value must be inside range"),
            "{why}"
        );
        assert_eq!(response.output, None);

        let mut options = load(&target);
        options
            .failure_predicates
            .insert("benchmark.http_5xx".to_owned(), 3);
        start(&mut call, options);
        let response = answer(&mut call).await;
        let failed =
            "Exiting due to failing termination predicate: benchmark.http_5xx went above 3";
        assert_eq!(detail(&response), (13, failed));
        assert!(result(&response).counter("benchmark.http_5xx") >= 4);

        let mut options = load(&target);
        options.uri = Some("http://no.such.host.invalid/".to_owned());
        start(&mut call, options);
        let response = answer(&mut call).await;
        let (code, why) = detail(&response);
        assert!(code == 13 && why.contains("no.such.host.invalid"), "{why}");

        call.send(b"\x0a\x7f");
        assert_eq!(end_of(&mut call).await.code, StatusCode::InvalidArgument);
        for request in [ExecutionRequest::Update, ExecutionRequest::Cancel] {
            let mut alone = self::call(&service.1).await;
            send(&mut alone, &request);
            let unsupported =
                CallFailed::new(StatusCode::Internal, "Request is not supported yet.");
            assert_eq!(end_of(&mut alone).await, unsupported);
        }
        let channel = Channel::new(&service.1, None).unwrap();
        let mut unknown = channel.call("/a.B/C", &[]).await.unwrap();
        assert_eq!(end_of(&mut unknown).await.code, StatusCode::Unimplemented);
    });
}

#[test]
fn sigterm_ends_the_load_that_is_on_and_it_is_answered_as_a_failure_with_its_result() {
    let (target, service) = (Listening::target(&[]), Listening::service(&[]));
    wait_for(async {
        let mut call = call(&service.1).await;
        start(&mut call, endless(&target));
        let seen = until_answers_come(&mut call).await;
        service.0.signal("TERM");
        let response = answer(&mut call).await;
        assert!(result(&response).counter("benchmark.http_2xx") >= seen);
        let failure = "the service shut down during the load";
        assert_eq!(detail(&response), (14, failure));
        // Nighthawk's client takes its exit code from the end of the call.
        let expected = CallFailed::new(StatusCode::Unavailable, failure);
        assert_eq!(end_of(&mut call).await, expected);
    });
    assert_eq!(service.0.finish(LONG).code, 0);
}

#[test]
fn a_port_that_is_taken_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = ["service", "--listen", &address];
    let ended = Process::start(Command::new(STILLWELL).args(words)).finish(LONG);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("it is already in use"),
        "{}",
        ended.stderr
    );
    // Under the ancestor's name, in its words.
    let (_folder, name) = named("nighthawk_service");
    for listen in [address.as_str(), "nowhere"] {
        let ended = Process::start(Command::new(&name).args(["--listen", listen])).finish(LONG);
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        let expected = "Failure: Could not start the grpc service";
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

#[test]
fn certificates_of_clients_are_not_requested_without_tls() {
    let words = [
        "service",
        "--listen",
        "127.0.0.1:0",
        "--client-ca",
        "ca.pem",
    ];
    let ended = Process::start(Command::new(STILLWELL).args(words)).finish(LONG);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("needs TLS"), "{}", ended.stderr);
}

// compat: nighthawk_service | --listen | differs | 127.0.0.1:8443 by default
// compat: nighthawk_service | --service | works
// compat: nighthawk_service | --listener-address-file | works
#[test]
fn called_nighthawk_service_it_takes_its_flags() {
    let (folder, name) = named("nighthawk_service");
    let file = folder.path().join("address");
    let mut command = Command::new(&name);
    command.args([
        "--listen",
        "127.0.0.1:0",
        "--service",
        "traffic-generator-service",
    ]);
    command.arg("--listener-address-file").arg(&file);
    let target = Listening::target(&[]);
    let service = Listening::wait(Process::start(&mut command), "listening: ");
    wait_until(LONG, || {
        fs::read_to_string(&file).is_ok_and(|text| !text.is_empty())
    });
    let address = fs::read_to_string(&file).unwrap();
    assert_eq!(address, service.1);
    wait_for(async {
        let mut call = call(&address).await;
        start(&mut call, load(&target));
        assert_eq!(answer(&mut call).await.error_detail, None);
    });
    let help = Process::start(Command::new(&name).arg("--help")).finish(LONG);
    assert!(
        help.code == 0 && help.stdout.contains("USAGE"),
        "{}",
        help.stdout
    );
}

#[test]
fn tls_is_used_with_clients_that_trust_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("pem");
    let words = [
        "--tls",
        "self-signed",
        "--tls-certificate-out",
        pem.to_str().unwrap(),
    ];
    let (target, service) = (Listening::target(&[]), Listening::service(&words));
    let plan = |extra| ClientTlsPlan {
        verification: Verification::Roots {
            extra,
            public: false,
        },
        identity: None,
        alpn: vec![Alpn::Http2],
        server_name: Some("localhost".to_owned()),
        resumption: false,
        suites: TlsSuites::default(),
    };
    wait_for(async {
        let channel = Channel::new(&service.1, Some(&plan(vec![pem.clone().into()]))).unwrap();
        let mut call = channel.call(EXECUTION, &[]).await.unwrap();
        start(&mut call, load(&target));
        assert_eq!(answer(&mut call).await.error_detail, None);
        let plain = Channel::new(&service.1, None).unwrap();
        let mut call = plain.call(EXECUTION, &[]).await.unwrap();
        start(&mut call, load(&target));
        assert!(call.next().await.is_err(), "it was answered without TLS");
    });
}

// compat: nighthawk_service | NighthawkDistributor | works
// compat: nighthawk_service | NighthawkSink | works
#[test]
fn results_of_several_services_are_put_together() {
    let target = Listening::target(&[]);
    let services = [Listening::service(&[]), Listening::service(&[])];
    let distributor = Listening::service(&["--service", "distributor"]);
    let mut options = load(&target);
    options.execution_id = Some("ours".to_owned());
    let execution = encode_request(&ExecutionRequest::Start(Box::new(options))).unwrap();
    let schema = Schema::shared();
    let decode =
        |name: &str, bytes: &[u8]| schema.decode(name, bytes, UnknownFields::Refuse).unwrap();
    let addresses = services.iter().map(|service| {
        let (host, port) = service.1.split_once(':').unwrap();
        let port: u16 = port.parse().unwrap();
        json!({ "socket_address": { "address": host, "port_value": port } })
    });
    let request = json!({
        "execution_request": decode("nighthawk.client.ExecutionRequest", &execution),
        "services": addresses.collect::<Vec<_>>(),
    });
    let request = schema
        .encode("nighthawk.DistributedRequest", &request)
        .unwrap();
    wait_for(async {
        let channel = Channel::new(&distributor.1, None).unwrap();
        let path = "/nighthawk.NighthawkDistributor/DistributedRequestStream";
        let mut call = channel.call(path, &[]).await.unwrap();
        call.send(&request);
        call.end();
        let answered = call.next().await.unwrap().unwrap();
        let mut answered = decode("nighthawk.DistributedResponse", &answered);
        let mut sum = 0;
        for number in 0..2 {
            let response = answered["service_response"][number]["execution_response"].take();
            let response = response_of_json(response).unwrap();
            assert_eq!(response.error_detail, None);
            // Histograms were not requested.
            assert_eq!(result(&response).user_defined_outputs, []);
            sum += result(&response).counter("benchmark.http_2xx");
        }
        let mut call = channel
            .call("/nighthawk.NighthawkSink/SinkRequestStream", &[])
            .await
            .unwrap();
        let sink_request =
            |id: &str| schema.encode("nighthawk.SinkRequest", &json!({ "execution_id": id }));
        call.send(&sink_request("ours").unwrap());
        let bytes = call.next().await.unwrap().unwrap();
        let mut merged = decode("nighthawk.SinkResponse", &bytes);
        let merged = response_of_json(merged["execution_response"].take()).unwrap();
        assert_eq!(result(&merged).name, "global");
        assert_eq!(result(&merged).counter("benchmark.http_2xx"), sum);
        let id = "benchmark_http_client.request_to_response";
        let statistic = result(&merged).statistic(id).unwrap();
        assert_eq!(statistic.count, sum);
        assert_eq!(statistic.percentiles.last().unwrap().count, sum);
        call.send(&sink_request("theirs").unwrap());
        assert_eq!(end_of(&mut call).await.code, StatusCode::NotFound);
    });
}

/// Over TLS; each service reports its progress, and both are cancelled.
#[test]
fn a_distributor_passes_updates_and_cancellations_on_over_tls() {
    let target = Listening::target(&[]);
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("pem").display().to_string();
    let words = ["--tls", "self-signed", "--tls-certificate-out", &pem];
    let service = Listening::service(&words);
    let words = ["--service", "distributor", "--services-tls"];
    let without_authority = Listening::service(&words);
    let with_authority = Listening::service(&[&words[..], &["--services-ca", &pem]].concat());
    let schema = Schema::shared();
    let message = |entry: &ExecutionRequest| {
        let name = "nighthawk.client.ExecutionRequest";
        let entry = schema.decode(name, &encode_request(entry).unwrap(), UnknownFields::Refuse);
        let (host, port) = service.1.split_once(':').unwrap();
        let port: u16 = port.parse().unwrap();
        let address = json!({ "socket_address": { "address": host, "port_value": port } });
        let request = json!({ "execution_request": entry.unwrap(), "services": [address] });
        schema
            .encode("nighthawk.DistributedRequest", &request)
            .unwrap()
    };
    let begin = ExecutionRequest::Start(Box::new(endless(&target)));
    let path = "/nighthawk.NighthawkDistributor/DistributedRequestStream";
    wait_for(async {
        let next = async |call: &mut ClientCall| {
            let bytes = call.next().await.unwrap().unwrap();
            let name = "nighthawk.DistributedResponse";
            let entry = schema.decode(name, &bytes, UnknownFields::Refuse);
            entry.unwrap()["service_response"][0].take()
        };
        let channel = Channel::new(&without_authority.1, None).unwrap();
        let mut call = channel.call(path, &[]).await.unwrap();
        call.send(&message(&begin));
        let refused = next(&mut call).await;
        let why = refused["error"]["message"].as_str().unwrap();
        assert!(why.contains("comes from an unknown authority"), "{refused}");

        let channel = Channel::new(&with_authority.1, None).unwrap();
        let mut call = channel.call(path, &[]).await.unwrap();
        call.send(&message(&begin));
        for request in [ExecutionRequest::Update, ExecutionRequest::Update] {
            call.send(&message(&request));
            let mut output = next(&mut call).await;
            let output = response_of_json(output["execution_response"].take()).unwrap();
            assert_eq!(result(&output).name, "progress");
        }
        call.send(&message(&ExecutionRequest::Cancel));
        let mut whole = next(&mut call).await;
        let whole = response_of_json(whole["execution_response"].take()).unwrap();
        assert_eq!(result(&whole).name, "global");
        call.send(&message(&ExecutionRequest::Update));
        assert_eq!(end_of(&mut call).await.code, StatusCode::InvalidArgument);
    });
}

/// Settings that cannot be read, or have no effect, are reported before the first call.
#[test]
fn a_distributor_that_cannot_use_tls_does_not_begin() {
    let words = [
        "service",
        "--service",
        "distributor",
        "--services-tls",
        "--services-ca",
        "/nowhere",
    ];
    let ended = Process::start(Command::new(STILLWELL).args(words)).finish(LONG);
    assert!(
        ended.code == 2 && ended.stderr.contains("/nowhere"),
        "{}",
        ended.stderr
    );
    let words = ["service", "--services-tls"];
    let ended = Process::start(Command::new(STILLWELL).args(words)).finish(LONG);
    assert!(
        ended.stderr.contains("is for --service distributor"),
        "{}",
        ended.stderr
    );
}

// compat: nighthawk_client | --nighthawk-service | works
#[test]
fn nighthawks_client_has_a_service_make_its_load() {
    let (target, service) = (Listening::target(&[]), Listening::service(&[]));
    let words = format!(
        "--nighthawk-service grpc://{} --rps 100 --connections 1 --duration 100 --label far \
         --termination-predicate benchmark.http_2xx:99 --output-format json \
         --sequencer-idle-strategy sleep",
        service.1
    );
    let ended = client(&format!("{words} http://{}/", target.1));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let output = read_json(&ended.stdout).unwrap();
    assert_eq!(output.options.labels, ["far"]);
    let sent = output.global().unwrap().counter("benchmark.http_2xx");
    assert_eq!(sent, 100);
    // A failure there is a failure here, with its detail.
    let failing = Listening::target(&["--status", "503"]);
    let ended = client(&format!("{words} http://{}/", failing.1));
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let expected = "failing termination predicate: benchmark.http_5xx went above 0";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    assert!(read_json(&ended.stdout).is_ok(), "{}", ended.stdout);
    // No service there.
    let words = format!("--nighthawk-service 127.0.0.1:{} http://a/", free_port());
    let ended = client(&words);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(
        ended
            .stderr
            .contains("request the load from the service at"),
        "{}",
        ended.stderr
    );
}

// compat: nighthawk_client | --nighthawk-service | works
/// Scripts read the options of it, and see by the exit code that there is no result.
#[test]
fn a_service_that_cannot_be_reached_leaves_a_result_without_results() {
    let line = "--nighthawk-service 127.0.0.1:1 --output-format json http://127.0.0.1:2/";
    let ended = client(line);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let output: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(output["results"].as_array().map(Vec::len), Some(0));
    assert_eq!(output["options"]["uri"], "http://127.0.0.1:2/");
}

#[test]
fn health_and_reflection_are_there() {
    let service = Listening::service(&[]);
    let schema = Schema::shared();
    let name = "nighthawk.client.NighthawkService";
    wait_for(async {
        let channel = Channel::new(&service.1, None).unwrap();
        for (service, state) in [
            (name, "SERVING"),
            ("", "SERVING"),
            ("a.B", "SERVICE_UNKNOWN"),
        ] {
            let mut call = channel
                .call("/grpc.health.v1.Health/Watch", &[])
                .await
                .unwrap();
            let requested = json!({ "service": service });
            call.send(
                &schema
                    .encode("grpc.health.v1.HealthCheckRequest", &requested)
                    .unwrap(),
            );
            let output = call.next().await.unwrap().unwrap();
            let message = "grpc.health.v1.HealthCheckResponse";
            let output = schema
                .decode(message, &output, UnknownFields::Refuse)
                .unwrap();
            assert_eq!(output["status"], state, "{service}");
        }
        for version in ["v1", "v1alpha"] {
            let of = format!("grpc.reflection.{version}.ServerReflection");
            let path = format!("/{of}/ServerReflectionInfo");
            let mut call = channel.call(&path, &[]).await.unwrap();
            let mut output = Vec::new();
            for requested in [
                json!({ "list_services": "*" }),
                json!({ "file_containing_symbol": name }),
                json!({ "file_by_filename": "api/client/options.proto" }),
                json!({ "file_containing_symbol": "a.B" }),
            ] {
                call.send(&schema.encode(&format!("{of}Request"), &requested).unwrap());
                let bytes = call.next().await.unwrap().unwrap();
                let message = format!("{of}Response");
                output.push(
                    schema
                        .decode(&message, &bytes, UnknownFields::Refuse)
                        .unwrap(),
                );
                assert_eq!(output.last().unwrap()["original_request"], requested);
            }
            let services = output[0]["list_services_response"]["service"]
                .as_array()
                .unwrap();
            let names: Vec<_> = services
                .iter()
                .map(|entry| entry["name"].as_str().unwrap())
                .collect();
            assert!(
                names.contains(&name) && names.contains(&of.as_str()),
                "{names:?}"
            );
            // A service that is not served here is not listed.
            assert!(!names.contains(&"nighthawk.NighthawkSink"), "{names:?}");
            for files in &output[1..3] {
                let files = files["file_descriptor_response"]["file_descriptor_proto"].as_array();
                assert!(files.unwrap().len() > 5);
            }
            assert_eq!(output[3]["error_response"]["error_code"], 5);
        }
    });
}
