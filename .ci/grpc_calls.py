"""Has `stillwell load` call a server of grpcio's, and compares what both count.

    grpc_calls.py STILLWELL FOLDER

FOLDER holds what protoc made of calls.proto, and its descriptors as calls.bin.
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
    """Answers as the request says, and counts."""

    def __init__(self):
        self.lock = threading.Lock()
        self.forget()

    def forget(self):
        self.statuses = collections.Counter()
        self.asked = 0
        self.answered = 0
        self.metadata = set()
        self.remaining = []
        self.spans = []

    def begin(self, context):
        with self.lock:
            self.metadata.update(
                (key, value) for key, value in context.invocation_metadata() if key.startswith("x-")
            )
            if (left := context.time_remaining()) is not None:
                self.remaining.append(left)

    def end(self, ask, context):
        """The requested status; any but OK ends the call."""
        if ask.delay_ms:
            time.sleep(ask.delay_ms / 1000)
        with self.lock:
            self.statuses[ask.status] += 1
        if ask.status:
            code = next(code for code in grpc.StatusCode if code.value[0] == ask.status)
            context.abort(code, "as it was asked for")

    def came(self, count=1):
        with self.lock:
            self.asked += count

    def goes(self):
        with self.lock:
            self.answered += 1

    def Unary(self, request, context):
        self.begin(context)
        self.came()
        self.end(request, context)
        self.goes()
        return messages.Answer(name=request.name, asked=len(request.detail.payload))

    def Collect(self, request_iterator, context):
        self.begin(context)
        begun, count, last = time.monotonic(), 0, messages.Ask()
        for last in request_iterator:
            self.came()
            count += 1
        with self.lock:
            self.spans.append(time.monotonic() - begun)
        self.end(last, context)
        self.goes()
        return messages.Answer(name=last.name, asked=count)

    def Repeat(self, request, context):
        self.begin(context)
        self.came()
        for number in range(request.answers):
            self.goes()
            yield messages.Answer(name=request.name, asked=number)
        self.end(request, context)

    def Talk(self, request_iterator, context):
        self.begin(context)
        count, last = 0, messages.Ask()
        for last in request_iterator:
            self.came()
            count += 1
            self.goes()
            yield messages.Answer(name=last.name, asked=count)
        self.end(last, context)


@contextlib.contextmanager
def served(caller, reflects=True, credentials=None, compression=None):
    """The address of a server."""
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
    """What a load finds, or what it says where it ends with another code."""
    command = [STILLWELL, "load", "--grpc-method", f"{NAME}/{method}", "-q", "--seed", "1"]
    command += ["--output-format", "stillwell", *words, url]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    # 1 without a success; 4 if other programs made the generator late.
    codes = (code,) if code else (0, 1, 4)
    assert ran.returncode in codes, (command, ran.returncode, ran.stdout[:400], ran.stderr)
    if code:
        return ran.stderr
    found = json.loads(ran.stdout)
    found["counters"] = found["global"]["counters"]
    found["ends"] = {own["outcome"]: own["count"] for own in found["global"]["outcomes"]}
    found["times"] = {own["id"]: own for own in found["global"]["statistics"]}
    return found


def grpc_counters(found):
    own = found["counters"].items()
    return {name.removeprefix("grpc_"): value for name, value in own if name.startswith("grpc_")}


def ask(**fields):
    return json.dumps(fields)


def both_agree(caller, found, **expected):
    counters = grpc_counters(found)
    assert counters == expected, (counters, expected)
    assert counters.get("messages_sent", 0) == caller.asked, (counters, caller.asked)
    assert counters.get("messages_received", 0) == caller.answered, (counters, caller.answered)


def check_kinds(caller, url):
    """Each kind of method, described by reflection and by a file, in both loops."""
    # name, JSON, words, messages to and from the server in each call
    kinds = [
        ("Unary", ask(name="a"), [], 1, 1),
        ("Collect", ask(name="a"), ["--grpc-messages", "7"], 7, 1),
        ("Collect", ask(name="a") * 3, [], 3, 1),
        ("Repeat", ask(name="a", answers=5), [], 1, 5),
        ("Repeat", ask(name="a"), [], 1, 0),
        ("Talk", ask(name="a"), ["--grpc-messages", "9"], 9, 9),
    ]
    for name, text, words, sent, received in kinds:
        for described in [[], ["--grpc-descriptors", DESCRIPTORS]]:
            for paced in [[], ["-r", "400/s"]]:
                caller.forget()
                more = ["-n", "100", "-c", "4", "--streams", "3"]
                found = load(url, name, "--grpc-json", text, *words, *described, *paced, *more)
                expected = dict(ok=100, messages_sent=100 * sent)
                if received:
                    expected["messages_received"] = 100 * received
                both_agree(caller, found, **expected)
                assert found["ends"] == {"ok": 100}, found["ends"]
                assert caller.statuses == {0: 100}, caller.statuses
                times = found["times"]
                assert times["stillwell.service_time"]["moments"]["count"] == 100, times
                first = times.get("stillwell.first_message", {"moments": {"count": 0}})["moments"]["count"]
                assert first == (100 if name in ("Repeat", "Talk") and received else 0), first


def check_messages(caller, url):
    """The same message as JSON, as text and in binary."""
    message = messages.Ask(name="é", detail=messages.Detail(payload=b"123", levels=[1, 0]))
    binary = os.path.join(FOLDER, "message")
    with open(binary, "wb") as file:
        file.write(message.SerializeToString())
    own = ask(name="é", detail=dict(payload="MTIz", levels=["HIGH", 0]))
    text = 'name: "é" detail { payload: "123" levels: [HIGH, LOW] }'
    sizes = set()
    for words in [
        ["--grpc-json", own],
        ["--grpc-text", text],
        ["--body", f"@{binary}"],
        ["--body", f"@{binary}", "--grpc-streaming", "none"],
    ]:
        caller.forget()
        found = load(url, "Unary", *words, "-n", "3", "-c", "1", "-H", "x-key: value")
        both_agree(caller, found, ok=3, messages_sent=3, messages_received=3)
        assert caller.metadata == {("x-key", "value")}, caller.metadata
        sizes.add(found["counters"]["upstream_cx_rx_bytes_total"] // 10)
    assert len(sizes) == 1, sizes
    # Several take turns.
    caller.forget()
    both = ask(name="a") + ask(name="b", status=5)
    found = load(url, "Unary", "--grpc-json", both, "-n", "10", "-c", "1")
    assert grpc_counters(found)["not_found"] == caller.statuses[5] == 5, found["counters"]


def check_statuses(caller, url):
    """Every status, as both ends count it."""
    names = [code.name.lower() for code in grpc.StatusCode]
    for code in grpc.StatusCode:
        number, name = code.value[0], code.name.lower()
        for method in ["Unary", "Collect", "Repeat", "Talk"]:
            caller.forget()
            found = load(url, method, "--grpc-json", ask(status=number), "-n", "20", "-c", "2")
            assert caller.statuses == {number: 20}, (caller.statuses, number)
            counters = grpc_counters(found)
            assert counters[name] == 20, (name, counters)
            assert not any(counters.get(other) for other in names if other != name), counters
            assert sum(found["ends"].values()) == 20, found["ends"]
            assert ("ok" in found["ends"]) == (number == 0), found["ends"]


def check_deadlines(caller, url):
    """A server that sleeps longer than it may."""
    caller.forget()
    words = ["--grpc-json", ask(delay_ms=2000), "--grpc-deadline", "150ms"]
    found = load(url, "Unary", *words, "-n", "8", "-c", "2", "--streams", "2")
    counters = grpc_counters(found)
    assert counters["deadline_exceeded"] == 8, counters
    # The client gave up: no answer came.
    assert sum(found["ends"].values()) == 8, found["ends"]
    assert 0 < max(caller.remaining) <= 0.15, caller.remaining
    assert found["global"]["execution_duration_ns"] < 1_500_000_000, found["global"]
    # Its handlers sleep on, and count in the end.
    until = time.monotonic() + WAIT_S
    while caller.answered < 8 and time.monotonic() < until:
        time.sleep(0.05)
    assert caller.answered == 8, caller.answered
    caller.forget()
    words = ["--grpc-json", ask(delay_ms=1), "--grpc-deadline", "20s"]
    found = load(url, "Unary", *words, "-n", "20", "-c", "2")
    assert grpc_counters(found)["ok"] == 20, found["counters"]
    assert len(caller.remaining) == 20 and min(caller.remaining) > 10, caller.remaining


def check_pace(caller, url):
    """Messages of one call that follow each other at a rate."""
    caller.forget()
    words = ["--grpc-json", ask(name="a"), "--grpc-messages", "11", "--grpc-message-rate", "20/s"]
    found = load(url, "Collect", *words, "-n", "4", "-c", "2", "--streams", "2")
    both_agree(caller, found, ok=4, messages_sent=44, messages_received=4)
    assert min(caller.spans) > 0.4, caller.spans


def check_large(caller, url):
    """Messages beyond every window."""
    caller.forget()
    payload = "A" * 4 * 200_000
    text = os.path.join(FOLDER, "large")
    with open(text, "w") as file:
        file.write(ask(detail=dict(payload=payload)))
    words = ["--grpc-json", f"@{text}", "--grpc-messages", "5"]
    for method in ["Collect", "Talk"]:
        caller.forget()
        found = load(url, method, *words, "-n", "6", "-c", "2", "--streams", "2")
        received = 30 if method == "Talk" else 6
        both_agree(caller, found, ok=6, messages_sent=30, messages_received=received)


def check_payload(caller, url):
    """Blocks of the payload crate; the server may refuse them."""
    caller.forget()
    words = ["--body", "payload:opentelemetry_logs:16KiB", "--grpc-streaming", "none"]
    found = load(url, "Unary", *words, "-n", "50", "-c", "2")
    counters = grpc_counters(found)
    assert counters["messages_sent"] == 50, counters


def check_mistakes(caller, url, silent):
    one = ["-n", "1", "-c", "1"]
    for method, words, target, says in [
        ("Unray", [], url, "did you mean `Unary`?; there are Unary, Collect, Repeat, Talk"),
        ("Unary", ["--grpc-json", '{"nmae": "a"}'], url, "field `nmae`"),
        ("Unary", ["--grpc-json", '{"detail": {"levels": ["TOP"]}}'], url, "field `detail.levels`"),
        ("Unary", ["--grpc-text", "status: high"], url, "stillwell.ci.Ask"),
        ("Unary", ["--body", "payload"], url, "it does not fit stillwell.ci.Ask"),
        ("Unary", ["--grpc-messages", "2"], url, "takes one message"),
        ("Unary", [], silent, "give --grpc-descriptors FILE"),
        ("Unary", ["--grpc-descriptors", __file__], url, "it is not a descriptor set"),
        ("Unary", ["--grpc-descriptors", "/nowhere"], url, "read /nowhere"),
    ]:
        said = load(target, method, *words, *one, code=2)
        assert says in said, (says, said)
    said = load("http://127.0.0.1:1", "Unary", *one, code=3)
    assert "127.0.0.1:1" in said, said
    # Known here and not there.
    words = ["--grpc-streaming", "none", "-n", "5", "-c", "1"]
    found = load(url, "Other", *words)
    assert grpc_counters(found)["unimplemented"] == 5, found["counters"]


def check_compressed():
    caller = Caller()
    with served(caller, compression=grpc.Compression.Gzip) as address:
        words = ["--grpc-json", ask(name="a" * 2000), "-n", "10", "-c", "1"]
        # This server compresses its answers, requested or not.
        for more in [[], ["-H", "grpc-accept-encoding: gzip"]]:
            caller.forget()
            found = load(f"http://{address}", "Unary", *words, *more)
            counters = grpc_counters(found)
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
        words = ["--grpc-json", ask(name="a"), "--grpc-messages", "3", "-n", "50", "-c", "2"]
        found = load(url, "Talk", *words, "--ca", certificate)
        both_agree(caller, found, ok=50, messages_sent=150, messages_received=150)
        said = load(url, "Talk", *words, code=3)
        assert "certificate" in said, said


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
            print(f"{check.__name__}: as it should be")
        check_mistakes(caller, url, f"http://{silent}")
        print("check_mistakes: as it should be")
    for check in [check_compressed, check_tls]:
        check()
        print(f"{check.__name__}: as it should be")


main()
