"""What the workloads with a broker have in common: records like those that users send, topics, limits.

A shape names the records: ``mix`` has values of 20 to 300 bytes, ``json`` JSON documents of 80 to 2,000 bytes, ``100``
and ``1000`` values of that size. Every second record has a key, with ``-keyed`` every one; ``-headers`` adds two to
every tenth record.
The content is random: it comes from the seed of the round.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Mapping
from itertools import cycle, islice
from typing import Any, NamedTuple

BATCH_BYTES = 16_384
FETCH_WAIT_MS = 10  # short: what is asked for at the end of a topic shall not delay the next pass
TIMEOUT_S = 60.0
MAX_BYTES = 1_000_000  # of a record that needs no option; LARGEST is for the others
LARGEST = 10_000_000

_POOL = 4096
_HEADERS = [("trace-id", b"0af7651916cd43dd8448eb211c80319c"), ("source", b"billing")]
_WORDS = ["alpha", "bravo", "delta", "order", "customer", "payment", "status", "of", "to", "2026"]


def is_large(shape: str) -> bool:
    """Whether its records are larger than clients send by default."""
    return shape.isdigit() and int(shape) > MAX_BYTES


class Record(NamedTuple):
    """What a user hands over: key and value as bytes, headers as pairs or None."""

    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]] | None


class Content:
    """The records of a shape, as many as asked for."""

    def __init__(self, shape: str, seed: int) -> None:
        kind, _, extra = shape.partition("-")
        rng = random.Random(f"{shape}/{seed}")
        value = {"mix": _mixed, "json": _document}.get(kind) or _of_size(int(kind))
        pool = 4 if is_large(shape) else _POOL
        self._pool = [
            Record(
                b"user-%07d" % rng.randrange(10_000_000) if at % 2 or extra == "keyed" else None,
                value(rng),
                _HEADERS if extra == "headers" and not at % 10 else None,
            )
            for at in range(pool)
        ]
        self.mean_size = sum(len(record.value) + len(record.key or b"") for record in self._pool) / pool
        self.has_headers = extra == "headers"

    def records(self, count: int) -> Iterable[Record]:
        """``count`` records, from the first of the pool on."""
        return islice(cycle(self._pool), count)


def _text(rng: random.Random, size: int) -> str:
    words: list[str] = []
    length = 0
    while length <= size:
        word = rng.choice(_WORDS) if rng.random() < 0.7 else f"{rng.getrandbits(24):x}"
        words.append(word)
        length += len(word) + 1
    return " ".join(words)[:size]


def _mixed(rng: random.Random) -> bytes:
    return _text(rng, rng.randint(20, 300)).encode()


def _of_size(size: int) -> Any:
    return lambda rng: rng.randbytes(size) if size > MAX_BYTES else _text(rng, size).encode()


def _document(rng: random.Random) -> bytes:
    """80 to 2,000 bytes; small ones are more frequent than large ones."""
    event = {
        "id": f"{rng.getrandbits(48):012x}",
        "type": rng.choice(["view", "cart", "order", "refund"]),
        "at": 1_700_000_000_000 + rng.randrange(10**9),
        "text": "",
    }
    spare = min(2000, round(80 * 25 ** rng.random())) - len(json.dumps(event))
    event["text"] = _text(rng, spare) if spare > 0 else ""
    return json.dumps(event).encode()


def make_topics(bootstrap: str, topics: Mapping[str, int], config: Mapping[str, str]) -> set[str]:
    """Create those of the topics (name -> partitions) that are missing, with confluent-kafka; give their names."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [NewTopic(name, num_partitions=count, config=dict(config)) for name, count in topics.items()]
    created = set()
    # One by one: a broker refuses more than 10,000 partitions in a request.
    for name, future in (pair for topic in wanted for pair in admin.create_topics([topic]).items()):
        try:
            future.result(TIMEOUT_S)
            created.add(name)
        except KafkaException as error:  # noqa: PERF203 - a handful of topics
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
    deadline = time.monotonic() + TIMEOUT_S
    for name in created:  # a broker makes thousands of partitions in seconds, and refuses records until then
        while not _has_leaders(admin.list_topics(name, TIMEOUT_S).topics[name], topics[name]):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} has no leaders after {TIMEOUT_S:g} seconds")
            time.sleep(0.1)
    return created


def _has_leaders(topic: Any, partitions: int) -> bool:
    found = topic.partitions.values()
    return topic.error is None and len(found) == partitions and all(part.leader >= 0 for part in found)


def fill(bootstrap: str, topic: str, records: Iterable[Record], codec: str) -> None:
    """Produce the records with confluent-kafka, in batches of 16 KiB as ours and kafka-python's producers make them."""
    producer = confluent_producer(bootstrap, compression=codec)
    failed: list[Any] = []

    def delivered(error: Any, _message: Any) -> None:
        if error:
            failed.append(error)

    for key, value, headers in records:
        while True:
            try:
                producer.produce(topic, value, key, on_delivery=delivered, headers=headers)
                break
            except BufferError:
                producer.poll(0.05)
    left = producer.flush(TIMEOUT_S)
    if left or failed:
        raise RuntimeError(f"filling {topic}: {left} records left, {len(failed)} failed, first: {failed[:1]}")


def confluent_producer(bootstrap: str, *, compression: str) -> Any:
    """A confluent-kafka producer that fills topics: batches of ``BATCH_BYTES``, nothing lost."""
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": BATCH_BYTES,
            "batch.num.messages": 1_000_000,  # the bytes alone shall bound a batch
            "compression.type": compression,
            "message.max.bytes": LARGEST,
            "acks": "all",
            "enable.idempotence": True,
        }
    )
