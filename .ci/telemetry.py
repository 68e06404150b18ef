"""Part of .ci/telemetry: compares the report of a load with the exported metrics."""

import collections
import http.server
import json
import pathlib
import sys
import urllib.parse
import urllib.request


def report(path):
    """Totals of a report: outcomes, requests begun, spans."""
    value = json.loads(pathlib.Path(path).read_text())
    outcomes = {own["outcome"]: own["count"] for own in value["global"]["outcomes"]}
    counters = value["global"]["counters"]
    spans = sum(
        count
        for name, count in counters.items()
        if name.startswith("tracing.") and name.endswith(".spans_sent")
    )
    return outcomes, counters, spans


def agree(what, told, found):
    if told != found:
        sys.exit(f"{what}: told {told}, reported {found}")
    print(f"  {what}: {told}")


def complete(path):
    """Fails if an exporter missed anything."""
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
    for own in point.get("attributes", []):
        if own["key"] == key:
            return own["value"]["stringValue"]
    return None


def spans(folder, name):
    ids = set()
    for body in bodies(folder, f"{name}-traces"):
        for resource in body["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                ids.update(span["traceId"] for span in scope["spans"])
    return len(ids)


def collector(folder, of_http, of_grpc):
    outcomes, _, sent = report(of_http)
    ok = outcomes["ok"]
    for way in ["http", "grpc"]:
        last = {}
        for metric in metrics(folder, way):
            points = (metric.get("sum") or metric.get("histogram"))["dataPoints"]
            for point in points:
                count = int(point.get("asInt", point.get("count", 0)))
                last[metric["name"], attribute(point, "outcome")] = count
        agree(f"OTLP by {way}, answered", last["stillwell.outcomes", "ok"], ok)
        times = last["stillwell.response_time", "ok"]
        agree(f"OTLP by {way}, times", times, ok)
    grown = collections.Counter()
    for metric in metrics(folder, "statsd"):
        for point in metric.get("sum", {}).get("dataPoints", []):
            grown[metric["name"]] += int(point["asInt"])
    agree("statsd, answered", grown["stillwell.outcomes.ok"], ok)
    agree("statsd, times", grown["stillwell.response_time.ok.count"], ok)
    agree("spans by http", spans(folder, "http"), sent)
    if not 0.3 * ok < sent < 0.7 * ok:
        sys.exit(f"{sent} spans of {ok} requests are not a half")
    _, _, sent = report(of_grpc)
    agree("spans by grpc", spans(folder, "grpc"), sent)


def prometheus(server, of_load):
    outcomes, _, _ = report(of_load)
    ok = outcomes["ok"]

    def ask(query):
        query = urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(f"{server}/api/v1/query?{query}") as answer:
            result = json.load(answer)["data"]["result"]
        return int(result[0]["value"][1]) if result else None

    for job, way in [("stillwell", "remote write"), ("page", "scraping")]:
        own = f'{{job="{job}",outcome="ok"}}'
        told = ask(f"max_over_time(stillwell_outcomes_total{own}[5m])")
        agree(f"{way}, answered", told, ok)
        told = ask(f"max_over_time(stillwell_response_time_seconds_count{own}[5m])")
        agree(f"{way}, times", told, ok)
        own = f'{{job="{job}",outcome="ok",le="+Inf"}}'
        told = ask(f"max_over_time(stillwell_response_time_seconds_bucket{own}[5m])")
        agree(f"{way}, in buckets", told, ok)


def main():
    command, *arguments = sys.argv[1:]
    if command == "spans":
        _, _, sent = report(arguments[0])
        agree("spans", int(arguments[1]), sent)
        return
    commands = {"complete": complete, "sink": sink, "collector": collector, "prometheus": prometheus}
    commands[command](*arguments)


main()
