"""Options of producers."""

from __future__ import annotations

import math
from typing import Final

from kafka.config.checks import INT32, Choice, Custom, Flag, Items, Number, Text, Whole
from kafka.config.option import Lazy, Option

_PRODUCER: Final = frozenset({"producer"})


def _is_serializer(value: object) -> bool:
    return value is None or callable(value) or callable(getattr(value, "serialize", None))


def _is_partitioner(value: object) -> bool:
    # A str has a method of that name, which cuts it in two.
    return callable(value) or (callable(getattr(value, "partition", None)) and not isinstance(value, (str, bytes)))


def _is_interceptor(value: object) -> bool:
    return any(hasattr(value, name) for name in ("on_send", "on_acknowledgement", "on_consume", "on_commit"))


_SERIALIZER: Final = Custom(
    "a callable, a Serializer or None", "Callable[[Any], bytes | None] | Serializes | None", _is_serializer
)

PRODUCER_OPTIONS: Final = (
    Option("key_serializer", _PRODUCER, None, _SERIALIZER, "Turns keys into bytes. None: keys are bytes."),
    Option("value_serializer", _PRODUCER, None, _SERIALIZER, "Turns values into bytes. None: values are bytes."),
    Option(
        "acks",
        _PRODUCER,
        -1,
        Choice((), synonyms={0: 0, 1: 1, -1: -1, "all": -1, "0": 0, "1": 1, "-1": -1}, shown="0, 1, 'all' or -1"),
        "The replicas that must have a record before it counts as written: none (0), the leader (1), or all in-sync "
        "replicas ('all', or -1).",
        aliases=("request_required_acks",),
    ),
    Option(
        "enable_idempotence",
        _PRODUCER,
        True,
        Flag(),
        "Whether brokers recognise and drop duplicates of retried batches, and so keep the order. Needs acks='all' "
        "and at most 5 requests in flight; the default is off if other options or older brokers exclude it.",
        since="0.11",
    ),
    Option(
        "transactional_id",
        _PRODUCER,
        None,
        Text(empty=False, sent=True),
        "The name that identifies this producer's transactions across restarts. Two producers must not share it.",
        since="0.11",
    ),
    Option(
        "transaction_timeout_ms",
        _PRODUCER,
        60000,
        Whole(least=1, most=INT32),
        "The cluster aborts a transaction that stays open for this time.",
        since="0.11",
    ),
    Option(
        "delivery_timeout_ms",
        _PRODUCER,
        120000,
        Number(),
        "How long a record may take from send() to its result, with all retries. At least linger_ms plus "
        "request_timeout_ms.",
    ),
    Option(
        "retries",
        _PRODUCER,
        math.inf,
        Whole(infinite=True),
        "How often a batch is retried after a transient error. delivery_timeout_ms is the better limit.",
        aliases=("message_send_max_retries",),
    ),
    Option(
        "linger_ms",
        _PRODUCER,
        5,
        Number(),
        "How long a batch may wait for more records. flush() and future.get() end the wait.",
    ),
    Option(
        "batch_size",
        _PRODUCER,
        16384,
        Whole(most=INT32),
        "A batch of this size in bytes is sent without waiting longer. 0 sends each record alone.",
    ),
    Option(
        "max_request_size",
        _PRODUCER,
        1048576,
        Whole(least=1, most=INT32),
        "The largest request, and with it the largest record before compression.",
        aliases=("message_max_bytes",),
    ),
    Option(
        "buffer_memory",
        _PRODUCER,
        33554432,
        Whole(least=1),
        "How many bytes of records may wait to be sent. send() blocks while this is used up.",
    ),
    Option(
        "max_block_ms",
        _PRODUCER,
        60000,
        Number(),
        "How long send() may block for buffer_memory or metadata, and transactional calls for the coordinator.",
    ),
    Option(
        "compression_type",
        _PRODUCER,
        None,
        Choice(("gzip", "snappy", "lz4", "zstd"), optional=True, synonyms={"none": None, "": None}),
        "The codec for batches. zstd needs brokers of 2.1.",
        aliases=("compression_codec",),
    ),
    Option(
        "compression_level",
        _PRODUCER,
        None,
        Whole(least=None, optional=True),
        "The codec's level; None is the codec's own default. snappy has none.",
        aliases=("compression_gzip_level", "compression_lz4_level", "compression_zstd_level"),
    ),
    Option(
        "partitioner",
        _PRODUCER,
        Lazy("kafka.partitioner", "DefaultPartitioner", call=True),
        Custom("a callable or a Partitioner", "Callable[..., int] | ChoosesPartition", _is_partitioner),
        "Chooses the partition of a record if send() does not name one. The default hashes keys as the Java client "
        "does, and fills one partition's batch after another with records without a key.",
        aliases=("partitioner_class",),
    ),
    Option(
        "partitioner_adaptive_partitioning_enable",
        _PRODUCER,
        True,
        Flag(),
        "Whether the default partitioner gives slower brokers fewer of the records without a key (KIP-794).",
    ),
    Option(
        "partitioner_availability_timeout_ms",
        _PRODUCER,
        0,
        Number(),
        "The default partitioner avoids partitions whose broker accepts no data for this time; 0 avoids none.",
    ),
    Option(
        "partitioner_ignore_keys",
        _PRODUCER,
        False,
        Flag(),
        "Whether the default partitioner ignores the keys of records.",
    ),
    Option(
        "metadata_max_idle_ms",
        _PRODUCER,
        300000,
        Number(least=5000),
        "Drop the metadata of a topic after this time without a record for it.",
    ),
    Option(
        "on_delivery",
        _PRODUCER,
        None,
        Custom(
            "a callable or None",
            "Callable[[DeliveryReport], object] | None",
            lambda value: value is None or callable(value),
        ),
        "Called once per batch with the range of its records, or with its error.",
    ),
    Option(
        "transaction_two_phase_commit_enable",
        _PRODUCER,
        False,
        Flag(),
        "Whether transactions stay open until an external coordinator decides, without a timeout (KIP-939).",
        since="4.1",
    ),
    Option(
        "interceptors",
        frozenset({"producer", "consumer"}),
        (),
        Items(
            "a list of objects with on_send, on_acknowledgement, on_consume or on_commit",
            "Sequence[object]",
            _is_interceptor,
        ),
        "Objects that observe or change records: on_send and on_acknowledgement, on_consume and on_commit (KIP-42).",
        aliases=("interceptor_classes",),
    ),
)
