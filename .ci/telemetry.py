"""Part of .ci/telemetry: compares reports and captures with the exported metrics."""

import collections
import http.server
import json
import pathlib
import re
import sys
import time
import urllib.parse
import urllib.request


def report(path):
    """Totals of a report: outcomes, requests begun, spans."""
    value = json.loads(pathlib.Path(path).read_text())
    outcomes = {entry["outcome"]: entry["count"] for entry in value["global"]["outcomes"]}
    counters = value["global"]["counters"]
    spans = sum(
        count
        for name, count in counters.items()
        if name.startswith("tracing.") and name.endswith(".spans_sent")
    )
    return outcomes, counters, spans


def agree(value, exported, reported):
    if exported != reported:
        sys.exit(f"{value}: exported {exported}, reported {reported}")
    print(f"  {value}: {exported}")


def complete(path):
    """Fails if an export failed."""
    value = json.loads(pathlib.Path(path).read_text())
    for warning in value["health"]["warnings"]:
        if warning["code"] == "export_failed":
            sys.exit(warning["text"])


def sink(port, folder):
    """Keeps every body that is posted in a file named by its path."""
    folder = pathlib.Path(folder)
    count = 0

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            nonlocal count
            count += 1
            body = self.rfile.read(int(self.headers["content-length"]))
            name = self.path.strip("/").replace("/", "-")
            (folder / f"{count:06}-{name}.json").write_bytes(body)
            self.answer(b"{}")

        def do_GET(self):
            self.answer(b"{}")

        def answer(self, body):
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


def bodies(folder, name):
    for path in sorted(pathlib.Path(folder).glob(f"*-{name}.json")):
        yield json.loads(path.read_text())


def metrics(folder, name):
    for body in bodies(folder, f"{name}-metrics"):
        for resource in body["resourceMetrics"]:
            for scope in resource["scopeMetrics"]:
                yield from scope["metrics"]


def attribute(point, key):
    for entry in point.get("attributes", []):
        if entry["key"] == key:
            return entry["value"]["stringValue"]
    return None


def spans(folder, name):
    ids = set()
    for body in bodies(folder, f"{name}-traces"):
        for resource in body["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                ids.update(span["traceId"] for span in scope["spans"])
    return len(ids)


def collector(folder, http_report, grpc_report):
    outcomes, _, sent = report(http_report)
    ok = outcomes["ok"]
    for transport in ["http", "grpc"]:
        last = {}
        for metric in metrics(folder, transport):
            points = (metric.get("sum") or metric.get("histogram"))["dataPoints"]
            for point in points:
                count = int(point.get("asInt", point.get("count", 0)))
                last[metric["name"], attribute(point, "outcome")] = count
        agree(f"OTLP by {transport}, responses", last["stillwell.outcomes", "ok"], ok)
        times = last["stillwell.response_time", "ok"]
        agree(f"OTLP by {transport}, times", times, ok)
    sums = collections.Counter()
    for metric in metrics(folder, "statsd"):
        for point in metric.get("sum", {}).get("dataPoints", []):
            sums[metric["name"]] += int(point["asInt"])
    agree("statsd, responses", sums["stillwell.outcomes.ok"], ok)
    agree("statsd, times", sums["stillwell.response_time.ok.count"], ok)
    agree("spans by http", spans(folder, "http"), sent)
    if not 0.3 * ok < sent < 0.7 * ok:
        sys.exit(f"{sent} spans of {ok} requests are not a half")
    _, _, sent = report(grpc_report)
    agree("spans by grpc", spans(folder, "grpc"), sent)


def prometheus(server, load_report):
    outcomes, _, _ = report(load_report)
    ok = outcomes["ok"]

    def evaluate(query):
        parameters = urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(f"{server}/api/v1/query?{parameters}") as response:
            result = json.load(response)["data"]["result"]
        return int(result[0]["value"][1]) if result else None

    for job, transport in [("stillwell", "remote write"), ("page", "scraping")]:
        labels = f'{{job="{job}",outcome="ok"}}'
        exported = evaluate(f"max_over_time(stillwell_outcomes_total{labels}[5m])")
        agree(f"{transport}, responses", exported, ok)
        exported = evaluate(f"max_over_time(stillwell_response_time_seconds_count{labels}[5m])")
        agree(f"{transport}, times", exported, ok)
        labels = f'{{job="{job}",outcome="ok",le="+Inf"}}'
        exported = evaluate(f"max_over_time(stillwell_response_time_seconds_bucket{labels}[5m])")
        agree(f"{transport}, in buckets", exported, ok)


def sent_events(text):
    """Returns the number of sent events, from the text of `captool`."""
    [maximum] = re.findall(r"max: (\d+)", pathlib.Path(text).read_text())
    return int(maximum)


def collected_run(folder, text):
    """Compares the metrics of a run that the Collector has sent with its capture."""
    sent, memory = [], []
    for metric in metrics(folder, "http"):
        if metric["name"] == "stillwell.events_written":
            sent += [int(point["asInt"]) for point in metric["sum"]["dataPoints"]]
        if metric["name"] == "stillwell.total_rss_bytes":
            memory += [point["asDouble"] for point in metric["gauge"]["dataPoints"]]
    agree("OTLP, events of a run", max(sent, default=0), sent_events(text))
    if not any(value > 1e5 for value in memory):
        sys.exit("the memory of the target was not exported")


def runs(server, text, dashboard):
    """Compares a run and a suite in Prometheus with their captures, and evaluates the queries of the dashboard."""

    def evaluate(path, **parameters):
        url = f"{server}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url) as response:
            return json.load(response)["data"]["result"]

    run_series = evaluate("query", query='max_over_time(stillwell_events_written_total{job="stillwell",experiment=""}[10m])')
    [series] = run_series
    agree("remote write, events of a run", int(series["value"][1]), sent_events(text))
    variants = evaluate("query", query='count by (variant) (max_over_time(stillwell_target_cpu_seconds_total{variant!=""}[10m]))')
    agree("remote write, variants", sorted(series["metric"]["variant"] for series in variants), ["baseline", "comparison"])
    panels = json.loads(pathlib.Path(dashboard).read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    now, filled = time.time(), 0
    for query in queries:
        for name in ("$job", "$experiment", "$variant"):
            query = query.replace(name, ".*")
        query = query.replace("$__rate_interval", "5s")
        result = evaluate("query_range", query=query, start=now - 300, end=now, step=1)
        variants = {series["metric"].get("variant") for series in result}
        # The relay answers no requests, and nothing fails.
        is_of_requests = re.search("requests_sent|response_time|generator_lateness|outcomes", query)
        if not is_of_requests and not {"baseline", "comparison"} <= variants:
            sys.exit(f"{query}: only of {variants}")
        filled += bool(result)
    print(f"  the dashboard: {len(queries)} queries, {filled} with lines")


def main():
    command, *arguments = sys.argv[1:]
    if command == "spans":
        _, _, sent = report(arguments[0])
        agree("spans", int(arguments[1]), sent)
        return
    parts = [complete, sink, collector, prometheus, collected_run, runs]
    commands = {part.__name__: part for part in parts}
    commands[command](*arguments)


main()
