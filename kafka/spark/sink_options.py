"""The options of the sink, checked as Spark's own connector does. Needs no pyspark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka.spark.errors import KafkaSparkOptionError
from kafka.spark.java import check_together, client_options
from kafka.spark.options import check_names, kafka_options, lower_keys, parse_flag

__all__ = ["SinkOptions"]

# Larger than what the producer takes for single records by default: here they come ten thousand at a time.
_BATCH_SIZE = 256 << 10
_LINGER_MS = 20
_MAX_BLOCK_MS = 60_000


@dataclass(frozen=True)
class SinkOptions:
    """The options of a write.

    >>> SinkOptions.parse({"kafka.bootstrap.servers": "b1:9092", "topic": " out "}).topic
    'out'
    """

    topic: str | None
    """Where all rows go; None leaves it to their column."""
    client: dict[str, Any] = field(repr=False)
    """Keywords for a producer; secrets are among them."""
    exactly_once: bool = False
    """Write in transactions (streaming queries)."""
    transactional_prefix: str = "spark"
    verify_replays: bool = True
    """Exactly once: fail a batch that is done again if its tasks are others than before."""
    freeze: bool = True
    """Spare the garbage collector of workers what is loaded."""

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SinkOptions:
        """Check the options of a write."""
        options = lower_keys(given)
        check_names(options)
        kafka = kafka_options(options)
        for name, what in (("key", "keys"), ("value", "values")):
            if f"{name}.serializer" in kafka:
                raise KafkaSparkOptionError(
                    f"Kafka option '{name}.serializer' is not supported as {what} are serialized with "
                    "ByteArraySerializer."
                )
        if not kafka.get("bootstrap.servers", "").strip():
            raise KafkaSparkOptionError(
                "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer"
            )
        topic = options.get("topic")
        if "transactional.id" in kafka:
            raise KafkaSparkOptionError(
                "kafka.transactional.id cannot be one for all tasks: set exactlyOnce and transactionalIdPrefix"
            )
        client = client_options("producer", kafka)
        client.setdefault("batch_size", _BATCH_SIZE)
        client.setdefault("linger_ms", _LINGER_MS)
        # A task may begin while the brokers are away. It waits for them as long as a record would wait for metadata.
        client.setdefault("bootstrap_timeout_ms", client.get("max_block_ms", _MAX_BLOCK_MS))
        once = parse_flag(options, "exactlyOnce", default=False)
        if once and not (topic or "").strip():
            raise KafkaSparkOptionError(
                "exactlyOnce needs the option topic: the marks of written batches are kept with it"
            )
        # The id itself is each task's own.
        check_together("producer", {**client, "transactional_id": "a task's"} if once else client)
        return cls(
            topic=None if topic is None else topic.strip(),
            client=client,
            exactly_once=once,
            transactional_prefix=options.get("transactionalidprefix", "spark"),
            verify_replays=parse_flag(options, "verifyReplays", default=True),
            freeze=parse_flag(options, "freezeWorkers", default=True),
        )
