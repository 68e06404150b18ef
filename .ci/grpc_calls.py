"""Runs `stillwell load` against a server of grpcio, and compares the counts of both.

    grpc_calls.py STILLWELL FOLDER

FOLDER has the code that protoc generated from calls.proto, and its descriptors as calls.bin.
"""

import collections
import concurrent.futures
import contextlib
import json
import os
import subprocess
import sys
import threading
import time

import grpc
from grpc_reflection.v1alpha import reflection

import calls_pb2 as messages
import calls_pb2_grpc as services

STILLWELL, FOLDER = sys.argv[1:]
DESCRIPTORS = os.path.join(FOLDER, "calls.bin")
NAME = "stillwell.ci.Caller"
WAIT_S = 60


class Caller(services.CallerServicer):
    """Responds as requested, and counts messages."""

    def __init__(self):
        self.lock = threading.Condition()
        self.reset()

    def reset(self):
        self.statuses = collections.Counter()
        self.received = 0
        self.sent = 0
        self.metadata = set()
        self.requests = set()
        self.remaining = []
        self.spans = []

    def begin(self, context):
        with self.lock:
            self.metadata.update(
                (key, value) for key, value in context.invocation_metadata() if key.startswith("x-")
            )
            if (left := context.time_remaining()) is not None:
                self.remaining.append(left)

    def end(self, request, context):
        """Ends the call with the requested status, if it is not OK."""
        if request.delay_ms:
            time.sleep(request.delay_ms / 1000)
        with self.lock:
            self.statuses[request.status] += 1
        if request.status:
            code = next(code for code in grpc.StatusCode if code.value[0] == request.status)
            context.abort(code, "the requested status")

    def count_received(self):
        with self.lock:
            self.received += 1

    def count_sent(self):
        with self.lock:
            self.sent += 1
            self.lock.notify_all()

    def wait_for_sent(self, count):
        """Waits until so many responses were sent; returns their number."""
        with self.lock:
            self.lock.wait_for(lambda: self.sent >= count, WAIT_S)
            return self.sent

    def Unary(self, request, context):
        self.begin(context)
        with self.lock:
            self.requests.add(request.SerializeToString(deterministic=True))
        self.count_received()
        self.end(request, context)
        self.count_sent()
        return messages.Response(name=request.name, count=len(request.detail.payload))

    def Collect(self, request_iterator, context):
        self.begin(context)
        begun, count, last = time.monotonic(), 0, messages.Request()
        for last in request_iterator:
            self.count_received()
            count += 1
        with self.lock:
            self.spans.append(time.monotonic() - begun)
        self.end(last, context)
        self.count_sent()
        return messages.Response(name=last.name, count=count)

    def Repeat(self, request, context):
        self.begin(context)
        self.count_received()
        for number in range(request.responses):
            self.count_sent()
            yield messages.Response(name=request.name, count=number)
        self.end(request, context)

    def Exchange(self, request_iterator, context):
        self.begin(context)
        count, last = 0, messages.Request()
        for last in request_iterator:
            self.count_received()
            count += 1
            self.count_sent()
            yield messages.Response(name=last.name, count=count)
        self.end(last, context)


@contextlib.contextmanager
def served(caller, reflects=True, credentials=None, compression=None):
    """Starts a server, and yields its address."""
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=32)
    server = grpc.server(pool, compression=compression)
    services.add_CallerServicer_to_server(caller, server)
    if reflects:
        reflection.enable_server_reflection((NAME, reflection.SERVICE_NAME), server)
    address = "127.0.0.1:0"
    if credentials:
        port = server.add_secure_port(address, credentials)
    else:
        port = server.add_insecure_port(address)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(grace=1).wait(WAIT_S)


def load(url, method, *words, code=0):
    """Returns the report of a load, or its messages if it must end with `code`."""
    command = [STILLWELL, "load", "--grpc-method", f"{NAME}/{method}", "-q", "--seed", "1"]
    command += ["--output-format", "stillwell", *words, url]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    # 1 without a success; 4 if other programs made the generator late.
    codes = (code,) if code else (0, 1, 4)
    assert completed.returncode in codes, (command, completed.returncode, completed.stdout[:400], completed.stderr)
    if code:
        return completed.stderr
    report = json.loads(completed.stdout)
    report["counters"] = report["global"]["counters"]
    report["outcomes"] = {entry["outcome"]: entry["count"] for entry in report["global"]["outcomes"]}
    report["times"] = {entry["id"]: entry for entry in report["global"]["statistics"]}
    return report


def grpc_counters(report):
    counters = report["counters"].items()
    return {name.removeprefix("grpc_"): value for name, value in counters if name.startswith("grpc_")}


def request_json(**fields):
    return json.dumps(fields)


def counts_agree(caller, report, **expected):
    counters = grpc_counters(report)
    assert counters == expected, (counters, expected)
    assert counters.get("messages_sent", 0) == caller.received, (counters, caller.received)
    assert counters.get("messages_received", 0) == caller.sent, (counters, caller.sent)


def check_kinds(caller, url):
    """Each kind of method, described by reflection and by a file, in both loops."""
    # name, JSON, words, messages to and from the server in each call
    kinds = [
        ("Unary", request_json(name="a"), [], 1, 1),
        ("Collect", request_json(name="a"), ["--grpc-messages", "7"], 7, 1),
        ("Collect", request_json(name="a") * 3, [], 3, 1),
        ("Repeat", request_json(name="a", responses=5), [], 1, 5),
        ("Repeat", request_json(name="a"), [], 1, 0),
        ("Exchange", request_json(name="a"), ["--grpc-messages", "9"], 9, 9),
    ]
    for name, text, words, sent, received in kinds:
        for described in [[], ["--grpc-descriptors", DESCRIPTORS]]:
            for paced in [[], ["-r", "400/s"]]:
                caller.reset()
                more = ["-n", "100", "-c", "4", "--streams", "3"]
                report = load(url, name, "--grpc-json", text, *words, *described, *paced, *more)
                expected = dict(ok=100, messages_sent=100 * sent)
                if received:
                    expected["messages_received"] = 100 * received
                counts_agree(caller, report, **expected)
                assert report["outcomes"] == {"ok": 100}, report["outcomes"]
                assert caller.statuses == {0: 100}, caller.statuses
                times = report["times"]
                assert times["stillwell.service_time"]["moments"]["count"] == 100, times
                first = times.get("stillwell.first_message", {"moments": {"count": 0}})["moments"]["count"]
                assert first == (100 if name in ("Repeat", "Exchange") and received else 0), first


def check_messages(caller, url):
    """The same message as JSON, as text and in binary."""
    message = messages.Request(name="é", detail=messages.Detail(payload=b"123", levels=[1, 0]))
    binary = os.path.join(FOLDER, "message")
    with open(binary, "wb") as file:
        file.write(message.SerializeToString())
    message_json = request_json(name="é", detail=dict(payload="MTIz", levels=["HIGH", 0]))
    text = 'name: "é" detail { payload: "123" levels: [HIGH, LOW] }'
    for words in [
        ["--grpc-json", message_json],
        ["--grpc-text", text],
        ["--body", f"@{binary}"],
        ["--body", f"@{binary}", "--grpc-streaming", "none"],
    ]:
        caller.reset()
        report = load(url, "Unary", *words, "-n", "3", "-c", "1", "-H", "x-key: value")
        counts_agree(caller, report, ok=3, messages_sent=3, messages_received=3)
        assert caller.metadata == {("x-key", "value")}, caller.metadata
        assert caller.requests == {message.SerializeToString(deterministic=True)}, caller.requests
    # Several messages take turns.
    caller.reset()
    both = request_json(name="a") + request_json(name="b", status=5)
    report = load(url, "Unary", "--grpc-json", both, "-n", "10", "-c", "1")
    assert grpc_counters(report)["not_found"] == caller.statuses[5] == 5, report["counters"]


def check_statuses(caller, url):
    """The load and the server count the same statuses."""
    names = [code.name.lower() for code in grpc.StatusCode]
    for code in grpc.StatusCode:
        number, name = code.value[0], code.name.lower()
        for method in ["Unary", "Collect", "Repeat", "Exchange"]:
            caller.reset()
            report = load(url, method, "--grpc-json", request_json(status=number), "-n", "20", "-c", "2")
            assert caller.statuses == {number: 20}, (caller.statuses, number)
            counters = grpc_counters(report)
            assert counters[name] == 20, (name, counters)
            assert not any(counters.get(status) for status in names if status != name), counters
            assert sum(report["outcomes"].values()) == 20, report["outcomes"]
            assert ("ok" in report["outcomes"]) == (number == 0), report["outcomes"]


def check_deadlines(caller, url):
    """A server that sleeps longer than the deadline."""
    caller.reset()
    words = ["--grpc-json", request_json(delay_ms=2000), "--grpc-deadline", "150ms"]
    report = load(url, "Unary", *words, "-n", "8", "-c", "2", "--streams", "2")
    counters = grpc_counters(report)
    assert counters["deadline_exceeded"] == 8, counters
    # The client has cancelled the calls before their responses.
    assert sum(report["outcomes"].values()) == 8, report["outcomes"]
    assert 0 < max(caller.remaining) <= 0.15, caller.remaining
    assert report["global"]["execution_duration_ns"] < 1_500_000_000, report["global"]
    # The handlers sleep longer than the load, and count then.
    sent = caller.wait_for_sent(8)
    assert sent == 8, sent
    caller.reset()
    words = ["--grpc-json", request_json(delay_ms=1), "--grpc-deadline", "20s"]
    report = load(url, "Unary", *words, "-n", "20", "-c", "2")
    assert grpc_counters(report)["ok"] == 20, report["counters"]
    assert len(caller.remaining) == 20 and min(caller.remaining) > 10, caller.remaining


def check_pace(caller, url):
    """Messages of a call at a rate."""
    caller.reset()
    words = ["--grpc-json", request_json(name="a"), "--grpc-messages", "11", "--grpc-message-rate", "20/s"]
    report = load(url, "Collect", *words, "-n", "4", "-c", "2", "--streams", "2")
    counts_agree(caller, report, ok=4, messages_sent=44, messages_received=4)
    assert min(caller.spans) > 0.4, caller.spans


def check_large(caller, url):
    """Messages larger than the flow-control windows."""
    caller.reset()
    payload = "A" * 4 * 200_000
    text = os.path.join(FOLDER, "large")
    with open(text, "w") as file:
        file.write(request_json(detail=dict(payload=payload)))
    words = ["--grpc-json", f"@{text}", "--grpc-messages", "5"]
    for method in ["Collect", "Exchange"]:
        caller.reset()
        report = load(url, method, *words, "-n", "6", "-c", "2", "--streams", "2")
        received = 30 if method == "Exchange" else 6
        counts_agree(caller, report, ok=6, messages_sent=30, messages_received=received)


def check_payload(caller, url):
    """Blocks of the payload crate; the server may refuse them."""
    caller.reset()
    words = ["--body", "payload:opentelemetry_logs:16KiB", "--grpc-streaming", "none"]
    report = load(url, "Unary", *words, "-n", "50", "-c", "2")
    counters = grpc_counters(report)
    assert counters["messages_sent"] == 50, counters


def check_mistakes(caller, url, silent):
    single = ["-n", "1", "-c", "1"]
    for method, words, target, expected in [
        ("Unray", [], url, "did you mean `Unary`?; known: Unary, Collect, Repeat, Exchange"),
        ("Unary", ["--grpc-json", '{"nmae": "a"}'], url, "field `nmae`"),
        ("Unary", ["--grpc-json", '{"detail": {"levels": ["TOP"]}}'], url, "field `detail.levels`"),
        ("Unary", ["--grpc-text", "status: high"], url, "stillwell.ci.Request"),
        ("Unary", ["--body", "payload"], url, "it does not match stillwell.ci.Request"),
        ("Unary", ["--grpc-messages", "2"], url, "takes one message"),
        ("Unary", [], silent, "give --grpc-descriptors FILE"),
        ("Unary", ["--grpc-descriptors", __file__], url, "it is not a descriptor set"),
        ("Unary", ["--grpc-descriptors", "/nowhere"], url, "read /nowhere"),
    ]:
        error = load(target, method, *words, *single, code=2)
        assert expected in error, (expected, error)
    error = load("http://127.0.0.1:1", "Unary", *single, code=3)
    assert "127.0.0.1:1" in error, error
    # The server has no such method.
    words = ["--grpc-streaming", "none", "-n", "5", "-c", "1"]
    report = load(url, "Other", *words)
    assert grpc_counters(report)["unimplemented"] == 5, report["counters"]


def check_compressed():
    caller = Caller()
    with served(caller, compression=grpc.Compression.Gzip) as address:
        words = ["--grpc-json", request_json(name="a" * 2000), "-n", "10", "-c", "1"]
        # This server always compresses its responses.
        for more in [[], ["-H", "grpc-accept-encoding: gzip"]]:
            caller.reset()
            report = load(f"http://{address}", "Unary", *words, *more)
            counters = grpc_counters(report)
            assert counters["ok"] == 10, counters
            assert counters.get("messages_compressed", 0) == 10, counters


def check_tls():
    key, certificate = (os.path.join(FOLDER, name) for name in ["key.pem", "certificate.pem"])
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    command += " -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout " + key + " -out " + certificate
    subprocess.run(command.split(), check=True, capture_output=True)
    pair = (open(key, "rb").read(), open(certificate, "rb").read())
    caller = Caller()
    with served(caller, credentials=grpc.ssl_server_credentials([pair])) as address:
        url = f"https://{address}"
        words = ["--grpc-json", request_json(name="a"), "--grpc-messages", "3", "-n", "50", "-c", "2"]
        report = load(url, "Exchange", *words, "--ca", certificate)
        counts_agree(caller, report, ok=50, messages_sent=150, messages_received=150)
        error = load(url, "Exchange", *words, code=3)
        assert "certificate" in error, error


def main():
    caller = Caller()
    with served(caller) as address, served(Caller(), reflects=False) as silent:
        url = f"http://{address}"
        for check in [
            check_kinds,
            check_messages,
            check_statuses,
            check_deadlines,
            check_pace,
            check_large,
            check_payload,
        ]:
            check(caller, url)
            print(f"{check.__name__}: passed")
        check_mistakes(caller, url, f"http://{silent}")
        print("check_mistakes: passed")
    for check in [check_compressed, check_tls]:
        check()
        print(f"{check.__name__}: passed")


main()
