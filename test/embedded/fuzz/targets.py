"""Random hostile input for everything that reads bytes from outside, until a time is up.

Each target is a function of a random number generator and a moment to stop; it returns how many inputs it made. An
input fails if anything but a ``KafkaError`` comes out, if reading it takes longer than ``SLOW`` seconds of CPU time, or
if the library does not work as usual afterwards.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.broker import Broker
from kafka.codec import compressor, decompressor
from kafka.errors import CorruptRecordError, KafkaError
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.registry import APIS
from kafka.record.batch_builder import BatchBuilder
from kafka.record.batch_reader import RecordReader
from kafka.record.message_v0_v1 import LegacyBuilder
from test.embedded.cutting import DOWN, CuttingProxy
from test.speed import slowness
from test.unit.protocol import messages
from test.unit.protocol.instances import random_message

SLOW = 5.0  # generous: the machine may stand still for seconds, and a reader of quadratic time takes minutes
LIMIT = 1 << 20
CODECS = (1, 2, 3, 4)
_EDGES = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)

Target = Callable[[random.Random, float], int]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return the bytes with one to six changes: bytes set, cut off, dropped, doubled, inserted, numbers overwritten."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(out) + 1)
        size = rng.choice((1, 1, 2, 4, 8, rng.randrange(64)))
        match rng.randrange(7):
            case 0 | 1:
                out[at : at + 1] = bytes((rng.choice(_EDGES),))
            case 2:
                out[at : at + 1] = rng.randbytes(1)
            case 3:
                del out[at : at + size]
            case 4:
                out[at:at] = out[at : at + size]
            case 5:
                out[at : at + 4] = struct.pack(
                    ">i", rng.choice((-1, -2, 0, 1, 2**31 - 1, -(2**31), rng.randrange(2**20)))
                )
            case _:
                out[at:at] = rng.randbytes(size)
        if rng.random() < 0.05:
            del out[rng.randrange(len(out) + 1) :]
    return bytes(out)


@contextmanager
def in_bounds(what: str, data: bytes) -> Iterator[None]:
    """Fail, with the input, for an error that is not a KafkaError and for CPU time beyond the bound."""
    began = time.thread_time()
    try:
        with suppress(KafkaError):
            yield
    except Exception as error:
        raise AssertionError(f"{what}: {error!r} for {data[:4000]!r}") from error
    spent = time.thread_time() - began
    assert spent < SLOW or spent < SLOW * slowness(), (
        f"{what} took {spent:.1f} s of CPU time for {len(data)} bytes: {data[:4000]!r}"
    )


def _content(rng: random.Random) -> bytes:
    return b"".join(rng.choice((b"event ", b"user-", rng.randbytes(9))) for _ in range(rng.randrange(200)))


def codecs(rng: random.Random, until: float) -> int:
    """Compressed data of each codec, damaged, and streams of several members."""
    count = 0
    while time.monotonic() < until:
        codec = rng.choice(CODECS)
        data = mutated(compressor(codec)(_content(rng)) * rng.choice((1, 1, 1, 2, 50)), rng)
        with in_bounds(f"codec {codec}", data):
            assert len(decompressor(codec)(data, LIMIT)) <= LIMIT
        count += 1
    return count


def _batch(rng: random.Random) -> bytes:
    magic = rng.choice((0, 1, 2, 2, 2))
    codec = rng.choice(("none", "none", "gzip", "snappy", "lz4", *(("zstd",) if magic == 2 else ())))
    builder = BatchBuilder(20_000, codec) if magic == 2 else LegacyBuilder(magic, 20_000, codec)
    for _ in range(rng.choice((1, 2, 20, 100))):
        key = rng.choice((None, b"", b"key"))
        headers = [("name", b"value"), ("none", None)] if magic == 2 and rng.random() < 0.1 else []
        builder.append(
            1_700_000_000_000 + rng.randrange(1000), key, rng.choice((None, rng.randbytes(rng.randrange(200)))), headers
        )
    return builder.seal().data


def records(rng: random.Random, until: float) -> int:
    """Record batches of all formats and codecs, damaged, read by rows and by columns."""
    count = 0
    while time.monotonic() < until:
        data = mutated(b"".join(_batch(rng) for _ in range(rng.choice((1, 1, 3)))), rng)
        checked = rng.random() < 0.2  # without the check of the CRC the damage reaches the decoders
        with in_bounds("records", data):
            _read_all(data, checked, rng)
        with in_bounds("columns", data):
            reader = RecordReader(data, "t", 0, 0, check_crcs=checked, max_batch_bytes=LIMIT)
            for columns in reader.columns():
                list(columns.values)
        count += 1
    return count


def _read_all(data: bytes, checked: bool, rng: random.Random) -> None:
    reader = RecordReader(
        data, "t", 0, 0, check_crcs=checked, max_batch_bytes=LIMIT, read_committed=rng.random() < 0.3, aborted=[(1, 0)]
    )
    for _ in range(2 * len(data) + 2):
        try:
            taken = reader.take(rng.choice((1, 7, 500)))
        except CorruptRecordError:
            reader.skip()
            continue
        if not taken:
            return
    raise AssertionError("reading does not come to an end")


def protocol(rng: random.Random, until: float) -> int:
    """Every message in every version, damaged."""
    bound = messages.versions()
    count = 0
    while time.monotonic() < until:
        cls = rng.choice(bound)
        data = mutated(random_message(cls, rng).encode(), rng)
        with in_bounds(repr(cls), data):
            cls.decode(data)
        count += 1
    return count


class _Tampering(CuttingProxy):
    """Damages what the broker answers, while it is told to."""

    def __init__(self, broker: Broker, rng: random.Random) -> None:
        self.rng = rng
        self.damage = 0.0  # the share of pieces that are damaged
        self.damaged = 0
        super().__init__(broker)

    def altered(self, data: bytes, direction: str) -> bytes:
        if direction == DOWN and self.rng.random() < self.damage:
            self.damaged += 1
            return mutated(data, self.rng)
        return data


def client(rng: random.Random, until: float) -> int:
    """Clients whose broker's answers are damaged on the way; afterwards new records must come through."""
    with Broker(topics={"t": 2}) as broker, _Tampering(broker, rng) as proxy:
        count = 0
        while time.monotonic() < until:
            proxy.damage = rng.choice((0.02, 0.1, 0.5))
            before = proxy.damaged
            _use(proxy.bootstrap_servers, b"tampered")
            count += proxy.damaged - before
        proxy.damage = 0.0
        mark = rng.randbytes(12)
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            assert producer.send("t", mark, partition=0).get(30).offset >= 0
        assert any(record.value == mark for record in broker.records("t", 0))
        return count


def _use(servers: str, value: bytes) -> None:
    limits = {
        "bootstrap_servers": servers,
        "bootstrap_timeout_ms": 500,
        "request_timeout_ms": 500,
        "reconnect_backoff_ms": 5,
        "reconnect_backoff_max_ms": 20,
        "receive_message_max_bytes": 1 << 20,
    }
    producing = {**limits, "delivery_timeout_ms": 600, "linger_ms": 0, "max_block_ms": 300}
    with suppress(KafkaError), KafkaProducer(**producing) as producer:
        futures = [producer.send("t", value) for _ in range(20)]
        for future in futures:
            with suppress(KafkaError):
                future.get(10)
            assert future.is_done
    consuming = {**limits, "auto_offset_reset": "earliest", "default_api_timeout_ms": 600, "fetch_max_wait_ms": 20}
    with suppress(KafkaError), KafkaConsumer(**consuming) as consumer:
        consumer.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
        for _ in range(10):
            with suppress(KafkaError):
                consumer.poll(timeout_ms=50)


def broker(rng: random.Random, until: float) -> int:
    """Requests to the embedded broker: damaged, cut off, or plain noise; it must go on answering others."""
    served = [api.request for api in APIS.values() if api.name not in _LASTING]
    with Broker(topics={"t": 2}, nodes=2) as cluster:
        count = 0
        while time.monotonic() < until:
            with suppress(OSError), _connected(cluster, rng.choice(cluster.node_ids)) as raw:
                for _ in range(rng.randrange(1, 20)):
                    raw.sendall(_request(rng.choice(served), rng))
                    count += 1
                    if rng.random() < 0.3:
                        raw.recv(65_536)
            _answers(cluster)
        return count


#: What random values would make large or end: partitions by the thousand, topics with their data.
_LASTING = frozenset({"CreateTopics", "CreatePartitions", "DeleteTopics", "AlterPartitionReassignments"})


def _connected(cluster: Broker, node: int) -> socket.socket:
    raw = socket.create_connection(("127.0.0.1", cluster.port(node)), timeout=10)
    raw.settimeout(0.02)
    return raw


def _request(request: object, rng: random.Random) -> bytes:
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(1, 200))
    versions = request._versions  # type: ignore[attr-defined]
    cls = request[rng.randint(versions.low, versions.high)]  # type: ignore[index]
    frame = random_message(cls, rng).frame(correlation_id=rng.randrange(2**31), client_id="fuzz")
    if rng.random() < 0.2:
        return mutated(frame, rng)
    body = mutated(frame[4:], rng) if rng.random() < 0.8 else frame[4:]
    return struct.pack(">i", len(body)) + body


def _answers(cluster: Broker) -> None:
    node = cluster.node_ids[0]
    with socket.create_connection(("127.0.0.1", cluster.port(node)), timeout=30) as raw:
        raw.sendall(MetadataRequest[1](topics=[]).frame(correlation_id=7, client_id="honest"))
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            piece = raw.recv(65_536)
            assert piece, "the broker closed an honest client's connection"
            answer += piece
    assert MetadataResponse[1].unframe(answer[4:])[0] == 7


TARGETS: dict[str, Target] = {
    "codecs": codecs,
    "records": records,
    "protocol": protocol,
    "client": client,
    "broker": broker,
}
