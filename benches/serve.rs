//! Answers at full speed: `stillwell serve` beside nginx's `return 200`, each on
//! one core, as requests for each second of the server's CPU time. The client is
//! wrk for HTTP/1.1 and h2load for HTTP/2, which are of Debian. Names of questions,
//! such as `HTTP/2`, as arguments leave the others out.

#![expect(
    clippy::print_stdout,
    reason = "what a benchmark has to say, it prints"
)]

use anyhow::Context;
use stillwell_benches::{
    Figure, Nginx, Peer, Question, RECEIVER_CPU, Side, compare_first, cpu_of, on, questions,
};
use stillwell_plan::ServePlan;
use stillwell_plan::serve::{
    AnswerPlan, FaultsPlan, FilterSet, ResponseOptions, ServeHeaders, ServeListenerPlan,
    ServeProtocols,
};
use stillwell_plan::tls::{Alpn, ServerIdentity, ServerTlsPlan, TlsSuites};
use stillwell_scope::{Scope, Token};
use stillwell_units::{Nanos, Seed};

const ROUNDS: usize = 7;

fn main() -> anyhow::Result<()> {
    let requested: Vec<String> = std::env::args().skip(1).collect();
    for question in questions(2)
        .iter()
        .filter(|question| question.is_among(&requested))
    {
        let client = if question.is_http2 {
            Peer::H2load
        } else {
            Peer::Wrk
        };
        if !client.is_there() || !Nginx::is_there() {
            println!("left out: there is no nginx, or no {}", client.name());
            continue;
        }
        println!("{}: requested by {}", question.name, client.name());
        let mut sides = [
            Side {
                name: "stillwell serve",
                turn: Box::new(|| stillwell_turn(question, client)),
            },
            Side {
                name: "nginx",
                turn: Box::new(|| nginx_turn(question, client)),
            },
        ];
        compare_first(
            ROUNDS,
            "requests per server CPU second",
            Figure::operations_per_receive_second,
            &mut sides,
        )?;
    }
    Ok(())
}

fn nginx_turn(question: &Question, client: Peer) -> anyhow::Result<Figure> {
    let server = Nginx::start(question)?;
    let before = server.cpu()?;
    let figure = client.turn(question, server.port())?;
    Ok(Figure {
        receive_cpu: server.cpu()?.saturating_sub(before),
        ..figure
    })
}

fn stillwell_turn(question: &Question, client: Peer) -> anyhow::Result<Figure> {
    let mut scope = Scope::new(&Token::new());
    let server = stillwell_serve::bind_server(&plan(question))?;
    let address = server.addresses().first().context("it has an address")?;
    let port = address.port();
    server.start(&mut scope, &on(RECEIVER_CPU))?;
    let figure = client.turn(question, port)?;
    let ends = scope.close(Nanos::from_secs(10));
    Ok(Figure {
        receive_cpu: cpu_of(&ends, "serve-")?,
        ..figure
    })
}

fn plan(question: &Question) -> ServePlan {
    let alpn = if question.is_http2 {
        Alpn::Http2
    } else {
        Alpn::Http1
    };
    let tls = question.has_tls.then(|| ServerTlsPlan {
        identity: ServerIdentity::SelfSigned {
            names: vec!["127.0.0.1".to_owned()],
        },
        alpn: vec![alpn],
        client_roots: Vec::new(),
        resumption: true,
        suites: TlsSuites::default(),
    });
    ServePlan {
        seed: Seed::from_number(1),
        workers: std::num::NonZeroU16::MIN,
        admin: None,
        listeners: vec![ServeListenerPlan {
            address: ([127, 0, 0, 1], 0).into(),
            tls,
            protocols: ServeProtocols::Auto,
            answer: AnswerPlan {
                filters: FilterSet::ALL,
                options: ResponseOptions {
                    body_bytes: Some(10),
                    ..ResponseOptions::default()
                },
                headers: ServeHeaders {
                    server: Some("envoy".to_owned()),
                    ..ServeHeaders::default()
                },
            },
            faults: FaultsPlan::default(),
            connections_max: 1024,
            chains: Vec::new(),
        }],
    }
}
