"""A proxy made of other people's libraries: CONNECT over HTTP/3 (aioquic), and
CONNECT-UDP over HTTP/2 (h2). Prints its two ports, and at its end the number of tunnels by protocol.

    tunnel.py CERTIFICATE KEY
"""

import asyncio
import json
import signal
import sys
from collections import Counter

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived as H2Data
from h2.events import RequestReceived, StreamEnded
from h2.settings import SettingCodes, Settings

tunnels = Counter()


class Http3(QuicConnectionProtocol):
    """Each stream is a tunnel over TCP."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = None
        self.peers = {}

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if isinstance(event, ConnectionTerminated):
            for received in self.peers.values():
                received.put_nowait(b"")
        if self.http is None:
            return
        for http_event in self.http.handle_event(event):
            if isinstance(http_event, HeadersReceived):
                headers = dict(http_event.headers)
                received = self.peers[http_event.stream_id] = asyncio.Queue()
                asyncio.ensure_future(self.relay(http_event.stream_id, headers, received))
            elif isinstance(http_event, DataReceived):
                self.peers[http_event.stream_id].put_nowait(http_event.data)
                if http_event.stream_ended:
                    self.peers[http_event.stream_id].put_nowait(b"")

    async def relay(self, stream, headers, received):
        if headers.get(b":method") != b"CONNECT" or b":path" in headers:
            self.http.send_headers(stream, [(b":status", b"405")], end_stream=True)
            return self.transmit()
        host, port = headers[b":authority"].decode().rsplit(":", 1)
        tunnels["CONNECT over HTTP/3"] += 1
        reader, writer = await asyncio.open_connection(host, int(port))
        self.http.send_headers(stream, [(b":status", b"200")])
        self.transmit()

        async def return_data():
            while data := await reader.read(1 << 16):
                self.http.send_data(stream, data, end_stream=False)
                self.transmit()

        returning = asyncio.ensure_future(return_data())
        while data := await received.get():
            writer.write(data)
            await writer.drain()
        returning.cancel()
        writer.close()


def integer(data, at):
    """Returns an integer of QUIC and its end, or None if it is incomplete."""
    if at >= len(data):
        return None
    length = 1 << (data[at] >> 6)
    if at + length > len(data):
        return None
    value = int.from_bytes(data[at : at + length], "big") & ((1 << (8 * length - 2)) - 1)
    return value, at + length


def capsule(payload):
    length = len(payload) + 1
    head = bytes([length]) if length < 64 else (length | 0x4000).to_bytes(2, "big")
    return b"\0" + head + b"\0" + payload


class ReturnedDatagrams(asyncio.DatagramProtocol):
    def __init__(self, proxy):
        self.proxy = proxy

    def datagram_received(self, data, address):
        self.proxy.unsent += capsule(data)
        self.proxy.send()


class Http2(asyncio.Protocol):
    """The only stream is a tunnel for datagrams."""

    def connection_made(self, transport):
        self.transport = transport
        self.http = H2Connection(config=H2Configuration(client_side=False))
        self.http.local_settings = Settings(client=False, initial_values={SettingCodes.ENABLE_CONNECT_PROTOCOL: 1})
        self.http.initiate_connection()
        self.stream = self.peer = None
        self.received, self.unsent = b"", b""
        self.send()

    def data_received(self, data):
        for event in self.http.receive_data(data):
            if isinstance(event, RequestReceived):
                self.begin(event.stream_id, dict(event.headers))
            elif isinstance(event, H2Data):
                self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self.received += event.data
            elif isinstance(event, StreamEnded):
                self.transport.close()
        self.pass_on()
        self.send()

    def begin(self, stream, headers):
        text = {name if isinstance(name, str) else name.decode(): value for name, value in headers.items()}
        text = {name: value if isinstance(value, str) else value.decode() for name, value in text.items()}
        assert text[":method"] == "CONNECT" and text[":protocol"] == "connect-udp", text
        assert text["capsule-protocol"] == "?1", text
        _, well_known, masque, udp, host, port, rest = text[":path"].split("/")
        assert (well_known, masque, udp, rest) == (".well-known", "masque", "udp", ""), text
        tunnels["CONNECT-UDP over HTTP/2"] += 1
        asyncio.ensure_future(self.connect(stream, host, int(port)))

    async def connect(self, stream, host, port):
        loop = asyncio.get_running_loop()
        self.peer, _ = await loop.create_datagram_endpoint(lambda: ReturnedDatagrams(self), remote_addr=(host, port))
        self.stream = stream
        self.http.send_headers(stream, [(":status", "200"), ("capsule-protocol", "?1")])
        self.pass_on()
        self.send()

    def pass_on(self):
        while self.peer is not None and (kind := integer(self.received, 0)):
            if not (length := integer(self.received, kind[1])):
                return
            at, end = length[1], length[1] + length[0]
            if end > len(self.received):
                return
            if kind[0] == 0 and self.received[at] == 0:
                self.peer.sendto(self.received[at + 1 : end])
            self.received = self.received[end:]

    def send(self):
        while self.unsent and self.stream is not None:
            room = min(self.http.local_flow_control_window(self.stream), self.http.max_outbound_frame_size)
            if room <= 0:
                break
            self.http.send_data(self.stream, self.unsent[:room])
            self.unsent = self.unsent[room:]
        self.transport.write(self.http.data_to_send())

    def connection_lost(self, error):
        if self.peer is not None:
            self.peer.close()


async def main(certificate, key):
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=False)
    configuration.load_cert_chain(certificate, key)
    over_quic = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Http3)
    loop = asyncio.get_running_loop()
    over_tcp = await loop.create_server(Http2, "127.0.0.1", 0)
    ports = [over_quic._transport.get_extra_info("sockname")[1], over_tcp.sockets[0].getsockname()[1]]
    print(*ports, flush=True)
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    print(json.dumps(tunnels), flush=True)


asyncio.run(main(*sys.argv[1:]))
