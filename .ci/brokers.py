"""Compares the messages in brokers with those that Stillwell's producers sent: counts and bytes are equal, refused
messages are an outcome, and every stamped message that a consumer relays is counted.

    brokers.py STILLWELL KAFKA BROKER...       checks the named brokers: nats, amqp, kafka
    brokers.py serve KAFKA FOLDER TOPIC        runs Kafka with a topic until SIGTERM; prints its address
    brokers.py bridge READY PORT KIND BROKER_PORT NAME   relays messages from a broker to a TCP sink
"""

import asyncio
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

STILLWELL, KAFKA = sys.argv[1:3] if __name__ == "__main__" and len(sys.argv) > 3 else ("", "")
PHASES = "phases: {warmup: 100ms, measure: 1s, drain: 3s, quiet: 300ms}"
LONG = 60.0
# Processes that this script must terminate.
STARTED = []


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Process:
    """A server in a session of its own, which is terminated with its children."""

    def __init__(self, command, folder, port=None, environment=None):
        self.log = folder / f"{pathlib.Path(command[0]).name}.log"
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder,
                env={**os.environ, **(environment or {})}, start_new_session=True)
        STARTED.append(self)
        if port is not None:
            self.wait_for(port)

    def wait_for(self, port):
        """Connects until the port accepts: the servers have no common message for that."""
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            if self.child.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.05)
        self.stop()
        sys.exit(f"nothing listens at port {port}:\n{self.log.read_text()[-4000:]}")

    def stop(self, sig=15):
        if self.child.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, sig)
        try:
            self.child.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, 9)
            self.child.wait()


class Run:
    """One run with one generator, and its results."""

    def __init__(self, folder, name, generator, during=None, target="", sinks=""):
        self.name = name
        path = folder / f"{name}.yaml"
        path.write_text(f"isolation: {{network: no, cgroup: no}}\n{PHASES}\n{target}workload:\n"
                       f"  generators:\n    - {generator}\n      id: producer\n{sinks}")
        self.results = folder / f"{name}.results"
        command = [STILLWELL, "observe", str(path), "--quiet", "--results", str(self.results)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if during:
            during()
        self.output = child.communicate(timeout=LONG)[0].decode()
        # 4: the run is unreliable, as on a busy machine.
        if child.returncode not in (0, 4):
            sys.exit(f"{name}: {child.returncode}\n{self.output}")

    def total(self, metric, only=""):
        """The last value of a counter, over all its series."""
        command = ["captool", str(self.results / "series.parquet"), "--metric", metric]
        dump = subprocess.run(command, executable=STILLWELL, capture_output=True, text=True)
        lines = (line for line in dump.stdout.splitlines() if line.startswith(metric + "["))
        maxima = (re.search(r"max: (\d+)", line) for line in lines if only in line)
        return sum(int(maximum[1]) for maximum in maxima if maximum)

    def has(self, metric):
        """Returns true if the capture has a series of this metric."""
        command = ["captool", str(self.results / "series.parquet"), "--metric", metric]
        dump = subprocess.run(command, executable=STILLWELL, capture_output=True, text=True)
        return any(line.startswith(metric + "[") for line in dump.stdout.splitlines())

    @property
    def outcomes(self):
        names = ["ok", "status_4xx", "status_5xx", "peer_closed", "connect_refused",
                 "handshake_failed", "malformed", "timed_out", "send_failed", "connect_timed_out"]
        counts = {name: self.total("outcomes", f"outcome:{name},") for name in names}
        return {name: count for name, count in counts.items() if count}

    def expect(self, failure, is_met):
        if not is_met:
            sys.exit(f"{self.name}: {failure}; outcomes {self.outcomes}\n{self.output}")

    def agree(self, messages, size, has_acks=True):
        """As many messages and bytes arrived as were written, and each was acknowledged if acknowledgements were requested."""
        events, written = self.total("events_written"), self.total("bytes_written")
        acknowledged = self.total("events_acknowledged")
        self.expect(f"{events} events of {written} bytes written, {messages} of {size} arrived",
                    events > 0 and (events, written) == (messages, size))
        if has_acks:
            self.expect(f"{acknowledged} of {events} acknowledged", acknowledged == events)
            self.expect("no response time", self.has("response_time"))
        print(f"  {self.name}: {events} messages, {written} bytes, {acknowledged} acknowledged, {self.outcomes}")

    def refused(self, outcome, events=None):
        """Every message was refused, with this outcome."""
        outcomes = self.outcomes
        self.expect(f"no {outcome}", outcomes.get(outcome, 0) > 0 and "ok" not in outcomes)
        self.expect("something acknowledged", self.total("events_acknowledged") == 0)
        if events:
            self.expect("no event refused", self.total("events_refused") > 0)
        print(f"  {self.name}: {outcomes}")


def wait_until(is_met, longest=LONG):
    """Calls `is_met` until it returns true, or for `longest` seconds: brokers do not notify of a count."""
    end = time.monotonic() + longest
    while not is_met() and time.monotonic() < end:
        time.sleep(0.05)


def generator(to, payload="json", rate="5000/s", **more):
    lines = [f"payload: {payload}", f"rate: {rate}", "cache: 4 MiB"]
    lines += [f"{key}: {value}" for key, value in more.items()]
    return to + "".join(f"\n      {line}" for line in lines)


def stamped(folder, name, to, bridge):
    """A consumer reads from the broker and sends to a sink: the ledger counts every stamped event."""
    port = free_port()
    ready = folder / f"{name}.ready"
    command = [sys.executable, os.path.abspath(__file__), "bridge", str(ready), str(port), *bridge]
    words = ", ".join(f'"{word}"' for word in command)
    target = f"target:\n  command: [{words}]\n  ready: {{file: {ready}}}\n"
    sinks = f"  sinks:\n    - tcp: 127.0.0.1:{port}\n"
    run = Run(folder, name, generator(to, rate="2000/s", stamps="all"), target=target, sinks=sinks)
    sent, received = run.total("stamped_events_sent"), run.total("stamped_events_received")
    run.expect(f"{received} of {sent} stamped events arrived", sent > 1000 and received == sent)
    faults = ["events_duplicated", "events_damaged", "stamps_broken", "stamps_foreign"]
    counts = {fault: run.total(fault) for fault in faults}
    run.expect(f"faults: {counts}", not any(counts.values()))
    print(f"  {name}: {sent} stamped events sent and received")


# NATS


class Nats:
    def __init__(self, folder, *words, port=None):
        self.port = port or free_port()
        self.words = ["nats-server", "-a", "127.0.0.1", "-p", str(self.port), *words]
        self.folder = folder
        self.start()

    def start(self):
        self.process = Process(self.words, self.folder, self.port)

    def to(self, *words):
        fields = ", ".join([f'address: "127.0.0.1:{self.port}"', *words])
        return f"nats: {{{fields}}}"


@contextlib.contextmanager
def nats_subscriber(port, subject):
    """Counts messages and bytes in a thread."""
    import nats
    counts, ready, end = [0, 0], threading.Event(), threading.Event()

    async def receive():
        client = await nats.connect(f"nats://127.0.0.1:{port}")

        async def take(message):
            counts[0] += 1
            counts[1] += len(message.data)

        await client.subscribe(subject, cb=take, pending_msgs_limit=-1, pending_bytes_limit=-1)
        await client.flush()
        ready.set()
        await asyncio.to_thread(end.wait)
        # A server that restarts may be away at this moment.
        with contextlib.suppress(nats.errors.Error):
            await client.drain()

    thread = threading.Thread(target=lambda: asyncio.run(receive()))
    thread.start()
    ready.wait(LONG)
    try:
        yield counts
    finally:
        end.set()
        thread.join()


def wait_for_messages(counts, wanted):
    wait_until(lambda: counts[0] >= wanted, 10)
    return counts


async def with_stream(port, work):
    import nats
    client = await nats.connect(f"nats://127.0.0.1:{port}")
    result = await work(client.jetstream())
    await client.close()
    return result


def check_nats(folder):
    server = Nats(folder, "-js", "-sd", str(folder / "nats-store"))
    for acks in ["none", "server"]:
        with nats_subscriber(server.port, "logs.>") as counts:
            to = server.to("subject: logs.a", f"acks: {acks}")
            run = Run(folder, f"nats-{acks}", generator(to, connections=3, workers=2))
            run.agree(*wait_for_messages(counts, run.total("events_written")), acks == "server")
    with nats_subscriber(server.port, "logs.>") as counts:
        to = server.to("subject: logs.a", "message: block", "acks: server")
        run = Run(folder, "nats-blocks", generator(to, "ascii", "20 MB/s", block="16 KiB"))
        blocks = run.total("blocks_written")
        wait_for_messages(counts, blocks)
        run.expect(f"{blocks} blocks, {counts} arrived",
                   counts == [blocks, run.total("bytes_written")])
        print(f"  nats-blocks: {blocks} messages, {counts[1]} bytes")

    asyncio.run(with_stream(server.port, lambda js: js.add_stream(name="S", subjects=["kept.>"])))
    to = server.to("subject: kept.a", "acks: jetstream")
    run = Run(folder, "nats-jetstream", generator(to, rate="2000/s", connections=2))
    state = asyncio.run(with_stream(server.port, lambda js: js.stream_info("S"))).state
    # A stream counts the headers of a message, too.
    run.agree(state.messages, run.total("bytes_written"))
    to = server.to("subject: unkept", "acks: jetstream")
    Run(folder, "nats-no-stream", generator(to)).refused("status_5xx", events=True)
    stamped(folder, "nats-stamped", server.to("subject: logs.s"), ["nats", str(server.port), "logs.s"])

    # The server restarts in the middle of a run.
    def restart():
        wait_until(lambda: counts[0] > 100)
        server.process.stop()
        server.start()

    with nats_subscriber(server.port, "logs.a") as counts:
        run = Run(folder, "nats-restart", generator(server.to("subject: logs.a")), during=restart)
    opened = run.total("connections_opened")
    run.expect(f"{opened} connections opened", opened == 2)
    run.expect("no connection lost", run.outcomes.get("peer_closed", 0) > 0)
    print(f"  nats-restart: {run.outcomes}")
    server.process.stop()
    run = Run(folder, "nats-absent", generator(server.to("subject: logs.a")))
    run.refused("connect_refused")

    locked = Nats(folder, "--user", "u", "--pass", "p")
    to = locked.to("subject: a", "acks: server", "user: u", "password: p")
    run = Run(folder, "nats-user", generator(to))
    run.expect("not all is acknowledged", 0 < run.total("events_written") == run.total("events_acknowledged"))
    Run(folder, "nats-wrong", generator(locked.to("subject: a", "user: u", "password: q"))).refused("status_4xx")
    locked.process.stop()

    config = folder / "small.conf"
    config.write_text("max_payload: 100\n")
    small = Nats(folder, "-c", str(config))
    run = Run(folder, "nats-large", generator(small.to("subject: a", "acks: server"), rate="20/s"))
    # Now and then the connection is closed before the reason is read, and some are small.
    run.expect("none is refused", run.outcomes.get("status_4xx", 0) > 0)
    print(f"  nats-large: {run.outcomes}")
    small.process.stop()

    config = folder / "denied.conf"
    config.write_text('authorization: {users: [{user: u, password: p, permissions: {publish: {deny: ["denied.>"]}}}]}\n')
    limited = Nats(folder, "-c", str(config))
    for acks in ["server", "jetstream"]:
        # The subject has a word of the server's own failures.
        to = limited.to("subject: denied.shutdown", f"acks: {acks}", "user: u", "password: p")
        run = Run(folder, f"nats-denied-{acks}", generator(to, rate="500/s"))
        run.refused("status_4xx", events=True)
        events, refused = run.total("events_written"), run.total("events_refused")
        run.expect(f"{refused} of {events} events refused",
                   refused == events and run.outcomes == {"status_4xx": run.total("blocks_written")})
    limited.process.stop()

    certificate(folder)
    secure = Nats(folder, "--tls", "--tlscert", str(folder / "cert.pem"), "--tlskey", str(folder / "key.pem"))
    for name, tls, wanted in [("nats-tls", f"{{ca: {folder}/cert.pem, name: localhost}}", None),
                              ("nats-tls-unknown", "{}", "handshake_failed"),
                              ("nats-tls-missing", None, "handshake_failed")]:
        words = ["subject: a", "acks: server"] + ([f"tls: {tls}"] if tls else [])
        run = Run(folder, name, generator(secure.to(*words)))
        if wanted:
            run.refused(wanted)
        else:
            run.expect("not all is acknowledged", 0 < run.total("events_written") == run.total("events_acknowledged"))
            print(f"  {name}: {run.outcomes}")
    secure.process.stop()


def certificate(folder):
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
               "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
               "-addext", "basicConstraints=critical,CA:FALSE",
               "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)


# AMQP


class Rabbit:
    def __init__(self, folder):
        self.folder = folder
        self.port, names, distribution = free_port(), free_port(), free_port()
        home = folder / "rabbit"
        home.mkdir()
        (home / "plugins").write_text("[].\n")
        self.environment = {
            "HOME": str(home), "ERL_EPMD_PORT": str(names), "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"stillwell{os.getpid()}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1", "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(distribution), "RABBITMQ_MNESIA_BASE": str(home / "data"),
            "RABBITMQ_LOG_BASE": str(home / "log"), "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(home / "none"), "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
            "RABBITMQ_PID_FILE": str(home / "pid"), "RABBITMQ_SERVER_START_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        self.names = Process(["epmd", "-port", str(names), "-address", "127.0.0.1"], folder, names)
        self.start()

    def start(self):
        # The script of Debian's package beside this program changes the user.
        command = ["/usr/lib/rabbitmq/bin/../lib/../bin/rabbitmq-server"]
        servers = sorted(pathlib.Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server"))
        self.process = Process([str(servers[-1])] if servers else command, self.folder, self.port, self.environment)

    def stop(self):
        self.process.stop()
        self.names.stop()

    def to(self, *words):
        fields = ", ".join([f'address: "127.0.0.1:{self.port}"', *words])
        return f"amqp: {{{fields}}}"

    @contextlib.contextmanager
    def channel(self):
        import pika
        end = time.monotonic() + LONG
        while True:
            try:
                connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port))
                break
            except pika.exceptions.AMQPError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        yield connection.channel()
        connection.close()

    def length(self, queue):
        """Returns the number of messages in `queue`."""
        with self.channel() as channel:
            return channel.queue_declare(queue, passive=True).method.message_count

    def take(self, queue):
        """Empties `queue`; returns the number of its messages and of their bytes."""
        with self.channel() as channel:
            messages = size = 0
            while True:
                method, _, body = channel.basic_get(queue, auto_ack=True)
                if method is None:
                    return messages, size
                messages, size = messages + 1, size + len(body)


def check_amqp(folder):
    server = Rabbit(folder)
    with server.channel() as channel:
        for queue in ["one", "two", "stamped"]:
            channel.queue_declare(queue)
        channel.queue_declare("full", arguments={"x-max-length": 10, "x-overflow": "reject-publish"})
        channel.exchange_declare("topics", "topic")
        channel.queue_bind("two", "topics", "logs.*")
    to = server.to("routing_key: one")
    run = Run(folder, "amqp-confirms", generator(to, rate="3000/s", connections=2, workers=2))
    run.agree(*server.take("one"))
    to = server.to("routing_key: logs.a", "exchange: topics", "acks: none", "persistent: true")
    run = Run(folder, "amqp-none", generator(to, rate="3000/s"))
    # Without confirms, a busy broker may still have messages to route.
    wait_until(lambda: server.length("two") >= run.total("events_written"), 10)
    run.agree(*server.take("two"), has_acks=False)
    to = server.to("routing_key: one", "message: block")
    run = Run(folder, "amqp-blocks", generator(to, "ascii", "10 MB/s", block="400 KiB"))
    messages, size = server.take("one")
    run.expect(f"{messages} messages of {size} bytes arrived", messages == run.total("blocks_written")
               and size == run.total("bytes_written") and run.total("events_acknowledged") == run.total("events_written"))
    print(f"  amqp-blocks: {messages} messages, {size} bytes")

    Run(folder, "amqp-no-exchange", generator(server.to("routing_key: a", "exchange: nowhere"))).refused("status_4xx")
    Run(folder, "amqp-no-queue", generator(server.to("routing_key: nowhere"))).refused("status_4xx", events=True)
    Run(folder, "amqp-wrong", generator(server.to("routing_key: one", "user: a", "password: b"))).refused("status_4xx")
    Run(folder, "amqp-no-vhost", generator(server.to("routing_key: one", "vhost: /none"))).refused("status_4xx")
    run = Run(folder, "amqp-full", generator(server.to("routing_key: full"), rate="500/s"))
    kept, refused = run.total("events_acknowledged"), run.total("events_refused")
    run.expect(f"{kept} acknowledged and {refused} refused", kept == 10 and kept + refused == run.total("events_written"))
    print(f"  amqp-full: {kept} acknowledged, {refused} refused, {run.outcomes}")
    stamped(folder, "amqp-stamped", server.to("routing_key: stamped"), ["amqp", str(server.port), "stamped"])

    def stop():
        wait_until(lambda: server.length("one") > 100)
        server.process.stop(9)

    run = Run(folder, "amqp-gone", generator(server.to("routing_key: one"), rate="1000/s"), during=stop)
    outcomes = run.outcomes
    run.expect("nothing sent, or nothing lost", outcomes.get("ok") and outcomes.get("connect_refused"))
    print(f"  amqp-gone: {outcomes}")
    server.stop()


# Kafka


class Kafka:
    """One node that is broker and controller. It advertises another host name than producers are given, to test that they
    connect to the address of the topic's leader."""

    def __init__(self, folder):
        self.folder = folder
        self.port, controller = free_port(), free_port()
        config = folder / "kafka.properties"
        config.write_text(f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAIN://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAIN://localhost:{self.port}
listener.security.protocol.map=PLAIN:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAIN
log.dirs={folder}/kafka-data
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
num.partitions=2
log.cleaner.enable=false
""")
        self.java = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                     "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{KAFKA}/*"]
        subprocess.run([*self.java, "kafka.tools.StorageTool", "format", "-t", "stillwellstillwellstil",
                        "-c", str(config)], check=True, capture_output=True)
        self.command = [*self.java, "kafka.Kafka", str(config)]
        self.process = Process(self.command, folder, self.port)

    def to(self, *words):
        fields = ", ".join([f'address: "127.0.0.1:{self.port}"', *words])
        return f"kafka: {{{fields}}}"

    def make(self, topic, partitions=1, **config):
        from kafka.admin import KafkaAdminClient, NewTopic
        admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{self.port}")
        topics = [NewTopic(topic, num_partitions=partitions, replication_factor=1,
                           topic_configs={key.replace("_", "."): str(value) for key, value in config.items()})]
        admin.create_topics(topics)
        admin.close()
        # A partition is there a moment later than its topic.
        wait_until(lambda: len(self.ends(topic)) == partitions)

    def ends(self, topic):
        """Returns the end offset of each partition of `topic` that has a leader."""
        from kafka import KafkaConsumer, TopicPartition
        from kafka.errors import KafkaError
        consumer = KafkaConsumer(bootstrap_servers=f"127.0.0.1:{self.port}")
        try:
            partitions = [TopicPartition(topic, partition) for partition in consumer.partitions_for_topic(topic) or []]
            return consumer.end_offsets(partitions)
        except KafkaError:
            return {}
        finally:
            consumer.close()

    def take(self, topic):
        """Reads all partitions up to their end offsets; returns the number of messages, of bytes and of used partitions."""
        from kafka import KafkaConsumer, TopicPartition
        consumer = KafkaConsumer(bootstrap_servers=f"127.0.0.1:{self.port}", auto_offset_reset="earliest",
                                 enable_auto_commit=False, consumer_timeout_ms=10000)
        partitions = [TopicPartition(topic, partition) for partition in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions).values()
        wanted, used = sum(ends), sum(end > 0 for end in ends)
        messages = size = 0
        while messages < wanted:
            message = next(consumer)
            messages, size = messages + 1, size + len(message.value)
        consumer.close()
        return messages, size, used


def check_kafka(folder):
    server = Kafka(folder)
    packings = ["none", "gzip", "snappy", "lz4", "zstd"]
    acks = ["all", "leader", "none", "all", "leader"]
    for packing, ack in zip(packings, acks):
        topic = f"packed-{packing}"
        server.make(topic, partitions=3)
        to = server.to(f"topic: {topic}", f"acks: {ack}", f"compression: {packing}")
        run = Run(folder, f"kafka-{packing}-{ack}", generator(to, rate="5000/s", connections=2, workers=2))
        messages, size, used = server.take(topic)
        run.agree(messages, size, ack != "none")
        run.expect(f"only {used} partitions were used", used == 3)
    server.make("blocks")
    run = Run(folder, "kafka-blocks", generator(server.to("topic: blocks", "message: block"), "ascii", "20 MB/s", block="200 KiB"))
    messages, size, _ = server.take("blocks")
    run.expect(f"{messages} messages of {size} bytes arrived",
               messages == run.total("blocks_written") and size == run.total("bytes_written"))
    print(f"  kafka-blocks: {messages} messages, {size} bytes")
    run = Run(folder, "kafka-made", generator(server.to("topic: made", "create_topic: true")))
    messages, size, _ = server.take("made")
    run.agree(messages, size)

    Run(folder, "kafka-unknown", generator(server.to("topic: unknown"))).refused("status_4xx")
    server.make("small", max_message_bytes=2000)
    Run(folder, "kafka-large", generator(server.to("topic: small"))).refused("status_4xx", events=True)
    server.make("stamped", partitions=2)
    stamped(folder, "kafka-stamped", server.to("topic: stamped", "compression: lz4"),
            ["kafka", str(server.port), "stamped"])

    def stop():
        wait_until(lambda: sum(server.ends("gone").values()) > 100)
        server.process.stop(9)

    server.make("gone")
    run = Run(folder, "kafka-gone", generator(server.to("topic: gone")), during=stop)
    outcomes = run.outcomes
    run.expect("nothing sent, or nothing lost", outcomes.get("ok") and outcomes.get("connect_refused"))
    print(f"  kafka-gone: {outcomes}")
    server.process.stop()


# The target of stamped runs: from a broker to a sink, one line per message.


def bridge(ready, port, kind, broker_port, name):
    # The sink listens before the target is started.
    out = socket.create_connection(("127.0.0.1", int(port)))
    is_ready = lambda: pathlib.Path(ready).touch()
    if kind == "kafka":
        from kafka import KafkaConsumer, TopicPartition
        consumer = KafkaConsumer(bootstrap_servers=f"127.0.0.1:{broker_port}", enable_auto_commit=False)
        consumer.assign([TopicPartition(name, partition) for partition in consumer.partitions_for_topic(name)])
        consumer.seek_to_beginning()
        is_ready()
        for message in consumer:
            out.sendall(message.value + b"\n")
    elif kind == "amqp":
        import pika
        channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", int(broker_port))).channel()
        channel.basic_consume(name, lambda _, __, ___, body: out.sendall(body + b"\n"), auto_ack=True)
        is_ready()
        channel.start_consuming()
    else:
        import nats

        async def receive():
            client = await nats.connect(f"nats://127.0.0.1:{broker_port}")

            async def take(message):
                out.sendall(message.data + b"\n")

            await client.subscribe(name, cb=take)
            await client.flush()
            is_ready()
            await asyncio.Event().wait()

        asyncio.run(receive())


CHECKS = {"nats": check_nats, "amqp": check_amqp, "kafka": check_kafka}


def main():
    # The brokers are ended by `finally`.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for broker in sys.argv[3:]:
        print(f"{broker}:")
        begin = time.monotonic()
        folder = pathlib.Path(tempfile.mkdtemp(prefix="stillwell-brokers-"))
        before = set(STARTED)
        try:
            CHECKS[broker](folder)
        finally:
            for process in set(STARTED) - before:
                process.stop(9)
            shutil.rmtree(folder, ignore_errors=True)
        print(f"  {time.monotonic() - begin:.0f} s")


def serve(folder, topic):
    """Runs Kafka with a topic until SIGTERM. Prints its address when producers can connect."""
    folder = pathlib.Path(folder)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        broker = Kafka(folder)
        broker.make(topic)
        print(f"127.0.0.1:{broker.port}", flush=True)
        signal.pause()
    finally:
        for process in STARTED:
            process.stop(9)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        KAFKA = sys.argv[2]
        serve(*sys.argv[3:])
    elif sys.argv[1] == "bridge":
        bridge(*sys.argv[2:])
    else:
        main()
