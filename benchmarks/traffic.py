"""What the workloads with a broker have in common: values, topics, and the settings that are the same for everyone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

LINGER_MS = 5
BATCH_BYTES = 65_536
IN_FLIGHT = 5
FETCH_MAX_BYTES = 52_428_800
PARTITION_FETCH_BYTES = 1_048_576
FETCH_MIN_BYTES = 1
FETCH_WAIT_MS = 10  # short: what is asked for at the end of a topic shall not delay the next pass
TIMEOUT_S = 60.0

_POOL = 1000


def values(size: int) -> list[bytes]:
    """A thousand different values of that size that compress about as well as JSON events do."""
    rng = random.Random(size)
    made = []
    for number in range(_POOL):
        event = {"id": rng.getrandbits(40), "kind": rng.choice(["view", "cart", "order"]), "n": number, "text": ""}
        spare = size - len(json.dumps(event))
        words = " ".join(rng.choice(["alpha", "bravo", "delta", f"{rng.getrandbits(16):x}"]) for _ in range(size // 4))
        event["text"] = words[: max(0, spare)]
        made.append(json.dumps(event).encode()[:size].ljust(size, b"."))
    return made


def make_topics(bootstrap: str, topics: Mapping[str, int], config: Mapping[str, str]) -> set[str]:
    """Create those of the topics (name -> partitions) that are missing, with confluent-kafka; give their names."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [NewTopic(name, num_partitions=count, config=dict(config)) for name, count in topics.items()]
    created = set()
    for name, future in admin.create_topics(wanted).items():
        try:
            future.result(TIMEOUT_S)
            created.add(name)
        except KafkaException as error:  # noqa: PERF203 - a handful of topics
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
    return created


def fill(bootstrap: str, topic: str, records: Iterable[bytes], codec: str) -> None:
    """Produce the records with confluent-kafka, in batches of the size that all workloads use."""
    producer = confluent_producer(bootstrap, compression=codec, acks="all", idempotent=True)
    failed: list[Any] = []

    def delivered(error: Any, _message: Any) -> None:
        if error:
            failed.append(error)

    for record in records:
        while True:
            try:
                producer.produce(topic, record, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.05)
    left = producer.flush(TIMEOUT_S)
    if left or failed:
        raise RuntimeError(f"filling {topic}: {left} records left, {len(failed)} failed, first: {failed[:1]}")


def confluent_producer(
    bootstrap: str, *, compression: str, acks: str, idempotent: bool, linger_ms: int = LINGER_MS
) -> Any:
    """A confluent-kafka producer with the settings of this file."""
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": linger_ms,
            "batch.size": BATCH_BYTES,
            "batch.num.messages": 1_000_000,  # the bytes alone shall bound a batch, as everywhere else
            "compression.type": compression,
            "acks": acks,
            "enable.idempotence": idempotent,
            "max.in.flight.requests.per.connection": IN_FLIGHT,
        }
    )
