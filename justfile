# The front door. The logic is in cargo, in xtask and in .ci/run.

# List the recipes.
default:
    @just --list

# Every test. Tests that lack a program say so and are skipped.
test:
    cargo test --workspace

# Form, lints, house rules and documentation.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo xtask tidy
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# All that CI checks.
ci:
    bash .ci/run

# The comparison in the README.
quickstart:
    cargo run --release -- run examples/quickstart

# Generator and sink together, for each transport, beside loops of plain system calls.
bench-pipeline:
    cargo bench -p stillwell-benches --bench pipeline
    cargo bench -p stillwell-benches --bench payload

# TCP all-out, beside a plain-syscall loop and iperf3.
bench-tcp:
    cargo bench -p stillwell-benches --bench tcp

# HTTP: POST beside plain system calls; load beside wrk, h2load, oha and fortio; serve beside nginx.
bench-http:
    cargo bench -p stillwell-benches --bench http
    cargo bench -p stillwell-benches --bench load
    cargo bench -p stillwell-benches --bench serve

# HTTP/3: load beside oha, in requests for each second of the client's CPU time.
bench-http3:
    .ci/bench-http3

# Payload bytes per CPU second, for each format.
bench-payload:
    cargo bench -p stillwell-benches --bench payload

# What a stamp costs: written, found and entered; and how fast the search is.
bench-stamp:
    cargo bench -p stillwell-benches --bench stamp

# How late a send is, with a reserved core and without.
bench-pacing:
    cargo bench -p stillwell-benches --bench pacing

# What it costs to watch a tree of processes.
bench-observer:
    cargo bench -p stillwell-benches --bench observer

# How long it takes to judge a suite of 100 experiments.
bench-judge:
    cargo bench -p stillwell-benches --bench judge

# Every correctness case over every target that is here; its table goes into harness/README.md.
harness-correctness runs="2" targets="all":
    harness/tables correctness {{runs}} {{targets}}

# Seed 002's test of buffers on disk: five producers, 60 s, 100 MB; its table goes into harness/README.md.
harness-disk-buffer runs="6" measure="60s" targets="rsyslog,syslog-ng,otelcol,relay":
    harness/tables disk-buffer {{runs}} {{targets}} --measure {{measure}}

# How often verdicts are right where the truth is known: same, cpu or throughput.
calibrate mode="same" experiments="20" pairs="10":
    .ci/calibrate {{mode}} {{experiments}} {{pairs}}

# A long run: no growth of our own memory, no sample lost, the account exact.
soak minutes="30" rate="200k":
    .ci/soak {{minutes}} {{rate}}

# How often find-capacity is within 3 % of what is known: limit, queue, relay or all.
capacity-trials mode="all" tries="10":
    .ci/capacity-trials {{mode}} {{tries}}

# Bytes from anywhere for everything that reads them, some seconds each; all targets unless one is named.
fuzz seconds="60" *targets:
    .ci/fuzz {{seconds}} {{targets}}

# Accept what the snapshot tests see now. Read the diff before you commit it.
bless:
    INSTA_UPDATE=always cargo test --workspace
