"""Calls `stillwell service` with a client that protoc has generated.

    service.py STILLWELL DESCRIPTORS
"""

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from api.client import service_pb2, service_pb2_grpc
from api.distributor import distributor_pb2, distributor_pb2_grpc
from api.request_source import service_pb2 as source_pb2
from api.request_source import service_pb2_grpc as source_pb2_grpc
from api.sink import sink_pb2, sink_pb2_grpc
from stillwell.service.v1 import samples_pb2

STILLWELL, DESCRIPTORS = sys.argv[1:]
WAIT_S = 60


@contextlib.contextmanager
def started(*words):
    """A process of Stillwell, and the address in the message that it prints when it listens."""
    process = subprocess.Popen([STILLWELL, *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    lines, address = [], queue.Queue()

    def read_messages():
        for line in process.stderr:
            lines.append(line)
            if match := re.search(r"listening on (?:\w+://)?([\d.]+:\d+)", line):
                address.put(match[1])
        address.put(None)

    threading.Thread(target=read_messages, daemon=True).start()
    try:
        try:
            listening = address.get(timeout=WAIT_S)
        except queue.Empty:
            listening = None
        assert listening, (words, lines)
        yield listening, process
    finally:
        process.kill()
        process.wait()


def start(url, **options):
    """Returns a request for a load."""
    request = service_pb2.ExecutionRequest()
    load_options = request.start_request.options
    load_options.uri.value = url
    load_options.requests_per_second.value = options.pop("rps", 100)
    load_options.connections.value = 2
    load_options.sequencer_idle_strategy.value = 3
    if options.pop("endless", False):
        load_options.no_duration.value = True
    else:
        load_options.duration.seconds = options.pop("seconds", 1)
    for name, value in options.pop("failure_predicates", {}).items():
        load_options.failure_predicates[name] = value
    if execution := options.pop("execution_id", None):
        load_options.execution_id.value = execution
    assert not options, options
    return request


class Stream:
    """A bidirectional stream: requests are sent as responses arrive."""

    def __init__(self, method, **kwargs):
        self.requests = queue.Queue()
        self.responses = method(iter(self.requests.get, None), timeout=WAIT_S, **kwargs)

    def send(self, request):
        self.requests.put(request)

    def receive(self):
        return next(self.responses)

    def end(self):
        self.requests.put(None)
        left = list(self.responses)
        assert not left, left
        return self.responses.code()

    def refusal(self):
        """Returns the status and message of a stream that ends without a response."""
        try:
            return "response: " + str(next(self.responses))
        except grpc.RpcError as error:
            self.requests.put(None)
            return error.code(), error.details()


def counters(result):
    return {counter.name: counter.value for counter in result.counters}


def only_result(response, name="global"):
    results = [result for result in response.output.results if result.name == name]
    assert len(results) == 1, response
    return results[0]


def check_run(stub, url):
    stream = Stream(stub.ExecutionStream)
    for _ in range(2):
        stream.send(start(url))
        response = stream.receive()
        assert not response.HasField("error_detail"), response.error_detail
        result = only_result(response)
        assert 90 <= counters(result)["benchmark.http_2xx"] <= 110, counters(result)
        assert response.output.options.requests_per_second.value == 100
        assert response.output.options.uri.value == url
        assert 1.0 <= result.execution_duration.ToNanoseconds() / 1e9 < 3.0
        times = {statistic.id: statistic for statistic in result.statistics}
        latency = times["benchmark_http_client.request_to_response"]
        assert latency.count == counters(result)["benchmark.http_2xx"]
        assert latency.percentiles[-1].percentile == 1
        assert latency.percentiles[-1].duration == latency.max
    assert stream.end() == grpc.StatusCode.OK


def check_course(stub, url):
    """Progress, a refused second load, and cancellation."""
    stream = Stream(stub.ExecutionStream)
    stream.send(start(url, endless=True))
    seen = 0
    while seen == 0:
        stream.send(service_pb2.ExecutionRequest(update_request={}))
        result = only_result(stream.receive(), "progress")
        seen = counters(result).get("benchmark.http_2xx", 0)
        time.sleep(0.05)
    second = Stream(stub.ExecutionStream)
    second.send(start(url))
    busy = (grpc.StatusCode.INTERNAL, "Only a single benchmark session is allowed at a time.")
    assert second.refusal() == busy
    stream.send(service_pb2.ExecutionRequest(cancellation_request={}))
    response = stream.receive()
    assert not response.HasField("error_detail"), response.error_detail
    counts = counters(only_result(response))
    assert counts["benchmark.http_2xx"] >= seen and counts["graceful_stop_requested"] == 1, counts
    assert stream.end() == grpc.StatusCode.OK


def check_disconnect(stub, url):
    """The load of a client that disconnects ends, and another one is accepted then."""
    stream = Stream(stub.ExecutionStream)
    stream.send(start(url, endless=True))
    stream.send(service_pb2.ExecutionRequest(update_request={}))
    stream.receive()
    stream.responses.cancel()
    until = time.monotonic() + WAIT_S
    while True:
        next_stream = Stream(stub.ExecutionStream)
        next_stream.send(start(url))
        try:
            next_stream.receive()
            break
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INTERNAL and time.monotonic() < until, error
            time.sleep(0.02)
    assert next_stream.end() == grpc.StatusCode.OK


def check_refusals(stub, url, failing):
    stream = Stream(stub.ExecutionStream)
    stream.send(start(url, rps=0))
    response = stream.receive()
    assert response.error_detail.code == 13 and not response.HasField("output"), response
    assert "value must be inside range" in response.error_detail.message, response
    stream.send(start(failing, failure_predicates={"benchmark.http_5xx": 3}))
    response = stream.receive()
    assert response.error_detail.code == 13, response
    detail = response.error_detail.message
    assert "failing termination predicate: benchmark.http_5xx went above 3" in detail, detail
    assert counters(only_result(response))["benchmark.http_5xx"] >= 4
    request = start(url)
    request.start_request.options.transport_socket.name = "raw"
    stream.send(request)
    detail = stream.receive().error_detail
    assert detail.code == 13 and "typed_config" in detail.message, detail
    assert stream.end() == grpc.StatusCode.OK
    for request in ({"update_request": {}}, {"cancellation_request": {}}):
        alone = Stream(stub.ExecutionStream)
        alone.send(service_pb2.ExecutionRequest(**request))
        assert alone.refusal() == (grpc.StatusCode.INTERNAL, "Request is not supported yet.")


def check_health_and_reflection(channel, service):
    health = health_pb2_grpc.HealthStub(channel)
    for name in ("", service):
        response = health.Check(health_pb2.HealthCheckRequest(service=name), timeout=WAIT_S)
        assert response.status == health_pb2.HealthCheckResponse.SERVING
    try:
        health.Check(health_pb2.HealthCheckRequest(service="other"), timeout=WAIT_S)
        raise AssertionError("there is no such service")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.NOT_FOUND
    database = ProtoReflectionDescriptorDatabase(channel)
    assert service in database.get_services()
    pool = descriptor_pool.DescriptorPool(database)
    pool.FindServiceByName(service)
    # Reflection returns the descriptors that protoc compiles.
    compiled = descriptor_pb2.FileDescriptorSet()
    with open(DESCRIPTORS, "rb") as file:
        compiled.ParseFromString(file.read())
    compared = 0
    for expected in compiled.file:
        if expected.name.startswith("google/protobuf/"):
            continue
        reflected = database.FindFileByName(expected.name)
        assert reflected == expected, f"{expected.name}:\n{reflected}\n{expected}"
        compared += 1
    assert compared > 10


def check_distributor(url):
    words = ("service", "--listen", "127.0.0.1:0")
    with (
        started(*words) as (first, _),
        started(*words) as (second, _),
        started(*words, "--service", "distributor") as (distributor, _),
        grpc.insecure_channel(distributor) as channel,
    ):
        check_health_and_reflection(channel, "nighthawk.NighthawkDistributor")
        stream = Stream(
            distributor_pb2_grpc.NighthawkDistributorStub(channel).DistributedRequestStream,
            metadata=(("stillwell-samples", "1"),),
        )
        request = distributor_pb2.DistributedRequest(
            execution_request=start(url, execution_id="one")
        )
        for address in (first, second):
            host, port = address.split(":")
            socket = request.services.add().socket_address
            socket.address, socket.port_value = host, int(port)
        stream.send(request)
        parts = [response.execution_response for response in stream.receive().service_response]
        assert [part.error_detail.code for part in parts] == [0, 0], parts
        assert stream.end() == grpc.StatusCode.OK
        sink = sink_pb2_grpc.NighthawkSinkStub(channel)
        merged = next(sink.SinkRequestStream(iter([sink_pb2.SinkRequest(execution_id="one")])))
        whole = only_result(merged.execution_response)
        sums = {}
        for part in parts:
            for name, value in counters(only_result(part)).items():
                sums[name] = sums.get(name, 0) + value
        assert counters(whole) == sums, (counters(whole), sums)
        check_merged(whole, [only_result(part) for part in parts])


def check_merged(whole, parts):
    """Compares the quantiles of the whole with those of the samples of its parts."""
    import json

    recorded = []
    for part in parts:
        (output,) = [output for output in part.user_defined_outputs if output.plugin_name == "stillwell.samples"]
        samples = samples_pb2.Samples()
        assert output.typed_output.Unpack(samples)
        recorded.append(json.loads(samples.result))
    name = "benchmark_http_client.request_to_response"
    values = {}
    for result in recorded:
        (statistic,) = [statistic for statistic in result["statistics"] if statistic["id"] == name]
        for bucket, count in decoded(statistic["histogram"]["v2"]).items():
            values[bucket] = values.get(bucket, 0) + count
    (latency,) = [statistic for statistic in whole.statistics if statistic.id == name]
    total = sum(values.values())
    assert latency.count == total
    for entry in latency.percentiles:
        rank = max(1, -(-int(round(entry.percentile * total * 1e9)) // 10**9))
        seen, highest = 0, None
        for bucket in sorted(values):
            seen += values[bucket]
            if seen >= rank:
                highest = min(bucket[1], latency.max.ToNanoseconds())
                break
        assert entry.duration.ToNanoseconds() == highest, (entry, highest)
        assert entry.count == seen, (entry, seen)


def decoded(text):
    """Each bucket's values, lowest and highest, and its count, in HdrHistogram's V2 encoding."""
    import base64
    import struct
    import zlib

    raw = base64.b64decode(text)
    assert raw[:4] == b"\x1c\x84\x93\x14", raw[:4]
    raw = zlib.decompress(raw[8:])
    cookie, length, _, digits = struct.unpack(">IIII", raw[:16])
    assert cookie == 0x1C849313, hex(cookie)
    (lowest,) = struct.unpack(">Q", raw[16:24])
    half_bits = (2 * 10**digits - 1).bit_length() - 1
    half, unit = 1 << half_bits, lowest.bit_length() - 1
    counts, index, at, end = {}, 0, 40, 40 + length
    while at < end:
        number, shift = 0, 0
        for position in range(9):
            byte = raw[at]
            at += 1
            if position == 8:
                number |= byte << shift
                break
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        number = (number >> 1) ^ -(number & 1)
        if number < 0:
            index += -number
            continue
        if number > 0:
            bucket, sub = (index >> half_bits) - 1, (index & (half - 1)) + half
            if bucket < 0:
                bucket, sub = 0, sub - half
            lowest_value = sub << (bucket + unit)
            counts[lowest_value, lowest_value + (1 << (bucket + unit)) - 1] = number
        index += 1
    return counts


def check_request_source():
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as list_:
        list_.write("PUT http://h:1/a body\nhttp://h/b\n")
        list_.flush()
        words = ("--listen", "127.0.0.1:0", "--service", "request-source", "--requests", list_.name)
        with started("service", *words) as (address, _), grpc.insecure_channel(address) as channel:
            stub = source_pb2_grpc.NighthawkRequestSourceServiceStub(channel)
            messages = iter([source_pb2.RequestStreamRequest(quantity=3)])
            responses = stub.RequestStream(messages, timeout=WAIT_S)
            requests = [response.request_specifier for response in responses]
            lines = [(request.method.value, request.path.value, request.authority.value) for request in requests]
            assert lines == [("PUT", "/a", "h:1"), ("GET", "/b", "h"), ("PUT", "/a", "h:1")], lines
            assert requests[0].content_length.value == 4


def check_tls(url):
    with tempfile.TemporaryDirectory() as folder:
        pem = os.path.join(folder, "pem")
        words = ("--listen", "127.0.0.1:0", "--tls", "self-signed", "--tls-certificate-out", pem)
        with started("service", *words) as (address, _):
            with open(pem, "rb") as file:
                credentials = grpc.ssl_channel_credentials(file.read())
            port = address.rsplit(":")[-1]
            with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
                check_run(service_pb2_grpc.NighthawkServiceStub(channel), url)


def check_end(url):
    """SIGTERM ends the current load, whose result is sent as that of a failure."""
    with started("service", "--listen", "127.0.0.1:0") as (address, process):
        with grpc.insecure_channel(address) as channel:
            stream = Stream(service_pb2_grpc.NighthawkServiceStub(channel).ExecutionStream)
            stream.send(start(url, endless=True))
            stream.send(service_pb2.ExecutionRequest(update_request={}))
            stream.receive()
            process.send_signal(signal.SIGTERM)
            response = stream.receive()
            assert counters(only_result(response))["graceful_stop_requested"] == 1
            assert response.error_detail.code == 14, response.error_detail
        assert process.wait(WAIT_S) == 0


def main():
    with (
        started("serve", "--address", "127.0.0.1:0") as (target, _),
        started("serve", "--address", "127.0.0.1:0", "--status", "503") as (failing, _),
    ):
        url, failing = f"http://{target}/", f"http://{failing}/"
        words = ("service", "--listen", "127.0.0.1:0")
        with started(*words) as (address, _), grpc.insecure_channel(address) as channel:
            stub = service_pb2_grpc.NighthawkServiceStub(channel)
            check_run(stub, url)
            check_course(stub, url)
            check_disconnect(stub, url)
            check_refusals(stub, url, failing)
            check_health_and_reflection(channel, "nighthawk.client.NighthawkService")
        check_tls(url)
        check_end(url)
        check_distributor(url)
        check_request_source()
    print("grpcio: loads, progress, cancellation, refusals, health, reflection, TLS, the end,")
    print("a distributor whose quantiles are those of all samples, and a request source")


main()
