# Short names for common commands. The logic is in cargo, xtask and .ci/run.

# List the recipes.
default:
    @just --list

# Run all tests. Tests whose program is missing are skipped and say so.
test:
    cargo test --workspace

# Check format, lints, house rules and documentation.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo xtask tidy
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Run the quick checks of CI: tests, format, lints, house rules, documentation, dependencies.
ci *arguments:
    bash .ci/run quick {{arguments}}

# Run the checks of CI with programs of others, the examples and the fuzz targets.
interop *arguments:
    bash .ci/run interop {{arguments}}

# Run the comparison of the README.
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

# Payload bytes per CPU second of each format.
bench-payload:
    cargo bench -p stillwell-benches --bench payload

# CPU time per stamp: writing, searching and recording.
bench-stamp:
    cargo bench -p stillwell-benches --bench stamp

# Lateness of sends, with and without a reserved core.
bench-pacing:
    cargo bench -p stillwell-benches --bench pacing

# CPU time to observe a process tree.
bench-observer:
    cargo bench -p stillwell-benches --bench observer

# Time to judge a suite of 100 experiments.
bench-judge:
    cargo bench -p stillwell-benches --bench judge

# Run every correctness case with every installed target; the table is in harness/README.md.
harness-correctness runs="2" targets="all":
    harness/tables correctness {{runs}} {{targets}}

# Seed 002's test of buffers on disk: five producers, 60 s, 100 MB; its table goes into harness/README.md.
harness-disk-buffer runs="6" measure="60s" targets="rsyslog,syslog-ng,otelcol,relay":
    harness/tables disk-buffer {{runs}} {{targets}} --measure {{measure}}

# Share of right verdicts for known differences: same, cpu or throughput.
calibrate mode="same" experiments="20" pairs="10":
    .ci/calibrate {{mode}} {{experiments}} {{pairs}}

# Long run: memory does not grow, no sample is lost, the delivery ledger is exact. With `faults` there is a fault every ten seconds.
soak minutes="30" rate="200k" faults="":
    .ci/soak {{minutes}} {{rate}} {{faults}}

# Share of capacity searches within 3 % of a known limit: limit, queue, relay or all.
capacity-trials mode="all" tries="10":
    .ci/capacity-trials {{mode}} {{tries}}

# Fuzz every parser for some seconds, or the named target.
fuzz seconds="60" *targets:
    .ci/fuzz {{seconds}} {{targets}}

# Faults and hostile input: files, peers, signals, limits, rights of callers. Prints a table: tried, held.
faults:
    .ci/faults

# Accept the current output of snapshot tests. Read the diff before you commit it.
bless:
    INSTA_UPDATE=always cargo test --workspace

# Build the static program, the Debian package and the image into the folder dist.
package:
    packaging/build all
