use proptest::prelude::*;
use stillwell_plan::{SuitePlan, TargetKind};
use stillwell_units::Nanos;

use super::*;
use crate::files::InMemory;
use crate::{Loader, SuiteOverrides};

/// Loads the text as an experiment.
fn plan(text: &str) -> Result<SuitePlan, String> {
    let path = "/suite/shop/experiment.yaml";
    let files = InMemory::with([(path, text)]);
    let loader = Loader::new(&files, &[]);
    let paths = [path.into()];
    match loader.suite(&paths, &SuiteOverrides::default()) {
        Ok(loaded) => Ok(loaded.plan),
        Err(diagnostics) => Err(format!("{diagnostics}\n{text}")),
    }
}

fn program(words: &[&str], ready: Option<ReadyProbe>) -> ScaffoldProgram {
    ScaffoldProgram {
        words: words.iter().map(|&word| word.to_owned()).collect(),
        directory: None,
        ready,
        has_private_network: true,
        variants: [VariantArgument::Same, VariantArgument::Same],
        build: ScaffoldBuild::default(),
    }
}

fn scaffold(kind: ProgramKind, program: ScaffoldProgram, input: ScaffoldInput) -> Scaffold {
    Scaffold {
        name: "shop".to_owned(),
        folder: "shop".to_owned(),
        kind,
        target: ScaffoldTarget::Program(Box::new(program)),
        input,
        output: None,
        payload: None,
        rate: None,
        remarks: Vec::new(),
    }
}

fn at(text: &str) -> ScaffoldInput {
    ScaffoldInput::Address(text.to_owned())
}

fn tcp(address: &str) -> Option<ReadyProbe> {
    let address = address.to_owned();
    Some(ReadyProbe::Tcp { address })
}

/// A scaffold of each kind, by name.
fn every_kind() -> Vec<(&'static str, Scaffold)> {
    services().into_iter().chain(pipelines()).collect()
}

/// Services that get requests.
fn services() -> Vec<(&'static str, Scaffold)> {
    let service = ScaffoldProgram {
        directory: Some("..".to_owned()),
        variants: [
            VariantArgument::Git("main".to_owned()),
            VariantArgument::Git("HEAD".to_owned()),
        ],
        build: ScaffoldBuild {
            command: "go build -o server .".to_owned(),
            output: "server".to_owned(),
            repository: Some("..".to_owned()),
        },
        ..program(
            &["../server", "--port", "8080"],
            Some(ReadyProbe::Http {
                url: "http://127.0.0.1:8080/".to_owned(),
            }),
        )
    };
    let mut http = scaffold(
        ProgramKind::Http,
        service,
        at("http://127.0.0.1:8080/items"),
    );
    http.remarks = vec!["GET / is answered with 200".to_owned()];
    let urls = Scaffold {
        target: ScaffoldTarget::Urls(["http://10.0.0.1/", "http://10.0.0.2/"].map(str::to_owned)),
        ..scaffold(
            ProgramKind::Http,
            program(&["unused"], None),
            ScaffoldInput::Target,
        )
    };
    vec![("http", http), ("urls", urls)]
}

/// Pipelines, and a reader of a topic.
fn pipelines() -> Vec<(&'static str, Scaffold)> {
    let relay = program(&["relay"], tcp("127.0.0.1:5140"));
    let mut stream = scaffold(ProgramKind::Tcp, relay, at("127.0.0.1:5140"));
    stream.output = Some("tcp:127.0.0.1:9200".parse().unwrap());
    let line = ReadyProbe::LogLine {
        contains: "listening on".to_owned(),
    };
    let receiver = program(&["receiver", "-p", "9125"], Some(line));
    let datagrams = scaffold(ProgramKind::Udp, receiver, at("127.0.0.1:9125"));
    let delay = ReadyProbe::Delay {
        length: Nanos::from_secs(1),
    };
    let reader = program(&["tail", "-F", "{state}/in.log"], Some(delay));
    let file = ScaffoldInput::File("{state}/in.log".to_owned());
    let files = scaffold(ProgramKind::Files, reader, file);
    let collector = program(&["otelcol", "--config", "c.yaml"], tcp("127.0.0.1:4317"));
    let export = "opentelemetry.proto.collector.logs.v1.LogsService/Export";
    let mut otlp = scaffold(
        ProgramKind::Otlp,
        collector.clone(),
        at(&format!("http://127.0.0.1:4317/{export}")),
    );
    otlp.output = Some("otlp:127.0.0.1:9317".parse().unwrap());
    let otlp_http = scaffold(
        ProgramKind::Otlp,
        collector,
        at("http://127.0.0.1:4318/v1/logs"),
    );
    let consumer = ScaffoldProgram {
        has_private_network: false,
        ..program(&["consumer"], None)
    };
    let topic = ScaffoldInput::Topic {
        broker: "127.0.0.1:9092".to_owned(),
        topic: "logs".to_owned(),
    };
    let kafka = scaffold(ProgramKind::Kafka, consumer, topic);
    vec![
        ("tcp", stream),
        ("udp", datagrams),
        ("files", files),
        ("otlp", otlp),
        ("otlp_http", otlp_http),
        ("kafka", kafka),
    ]
}

#[test]
fn every_kind_of_program_gets_an_experiment_that_can_be_run() {
    for (name, scaffold) in every_kind() {
        let text = scaffold.text();
        let plan = plan(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(plan.experiments.len(), 1, "{name}");
        assert_eq!(plan.experiments[0].variants.len(), 2, "{name}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 120),
            "{text}"
        );
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(name, text);
        });
    }
}

#[test]
fn a_service_of_https_gets_an_experiment_that_can_be_run() {
    let url = "https://127.0.0.1:8443/health";
    let ready = ReadyProbe::Http {
        url: url.to_owned(),
    };
    let service = program(&["server"], Some(ready.clone()));
    let text = scaffold(ProgramKind::Http, service, at(url)).text();
    let plan = plan(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.experiments[0].run_plan.target.ready, ready);
}

#[test]
fn every_form_of_a_variant_is_written() {
    for argument in [
        "git:main",
        "bin:../new",
        "cmd:../new --fast 2",
        "args:--fast 2 -x",
        "env:MODE=new,EMPTY=,N=1",
        "same",
    ] {
        let mut changed = program(&["old"], tcp("127.0.0.1:1"));
        changed.variants[1] = argument.parse().unwrap();
        changed.build.command = "make".to_owned();
        changed.build.output = "new".to_owned();
        let text = scaffold(ProgramKind::Tcp, changed, at("127.0.0.1:1")).text();
        if let Err(error) = plan(&text) {
            panic!("{argument}: {error}");
        }
    }
}

#[test]
fn outputs_and_kinds_read_as_typed() {
    for text in ["tcp:127.0.0.1:9200", "otlp:[::1]:9", "file:{state}/out.log"] {
        let output: ScaffoldOutput = text.parse().unwrap();
        assert_eq!(output.to_string(), text);
    }
    for text in ["tcp", "tcp:9200", "smtp:127.0.0.1:1", "file:"] {
        assert!(text.parse::<ScaffoldOutput>().is_err(), "{text}");
    }
    let error = "tcp:localhost:9200".parse::<ScaffoldOutput>();
    let error = error.unwrap_err();
    assert!(error.contains("with an IP address"), "{error}");
    for kind in ProgramKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert!("ftp".parse::<ProgramKind>().is_err());
}

proptest! {
    #[test]
    fn for_all_commands_the_file_has_the_same_words(
        words in proptest::collection::vec("[ -~é{}]{1,12}", 1..4),
        value in "[ -~]{0,12}",
    ) {
        let mut typed = vec!["program"];
        typed.extend(words.iter().map(String::as_str));
        let mut target = program(&typed, tcp("127.0.0.1:1"));
        target.variants[1] = VariantArgument::Environment([("KEY".to_owned(), value)].into());
        let text = scaffold(ProgramKind::Tcp, target, at("127.0.0.1:1")).text();
        let plan = plan(&text);
        // Placeholders that do not exist are errors, and not of the form.
        prop_assume!(plan.is_ok() || words.iter().any(|word| word.contains('{')));
        if let Ok(plan) = plan {
            let TargetKind::Child(child) = &plan.experiments[0].run_plan.target.kind else {
                panic!("{text}");
            };
            prop_assert_eq!(&child.arguments, &words);
        }
    }
}
