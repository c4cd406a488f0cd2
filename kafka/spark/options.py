"""The options of the source and the sink: names, defaults and checks of Spark's own connector, and a few more."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeVar

from kafka.config import BY_SPELLING
from kafka.spark.consumer_strategy import Subscription, parse_subscription
from kafka.spark.errors import KafkaSparkOptionError
from kafka.spark.java_options import check_together, client_options
from kafka.spark.offset_ranges import OffsetLimit
from kafka.spark.offsets import EARLIEST, LATEST, Offsets, parse_offsets, parse_timestamps
from kafka.spark.registry_columns import REGISTRY_OPTIONS, RegistryOptions

__all__ = ["SourceOptions", "check_names", "kafka_options", "lower_keys", "parse_flag", "parse_duration", "SinkOptions"]


log = logging.getLogger(__name__)

T = TypeVar("T")

#: The options of the source and of the sink, besides kafka.*: programs give both the same ones.
_NAMES: Final = (
    "assign",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "failOnDataLoss",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "groupIdPrefix",
    "commitOffsetsToGroup",
    "rowsPerTask",
    "freezeWorkers",
    "filterPushdown",
    "holdFile",
    "topic",
    "exactlyOnce",
    "transactionalIdPrefix",
    "verifyReplays",
    "foreachBatch",
    *REGISTRY_OPTIONS,
)
#: Spark's own, which it hands on to every source and sink.
_OF_SPARK: Final = frozenset({"path", "paths", "checkpointlocation", "queryname"})
_DESERIALIZER: Final = "Use DataFrame operations to explicitly deserialize the"
_FORBIDDEN: Final = {
    "auto.offset.reset": (
        "Kafka option 'auto.offset.reset' is not supported. Instead set the source option 'startingoffsets' to "
        "'earliest' or 'latest' to specify where to start. Structured Streaming manages which offsets are consumed "
        "internally, rather than relying on the kafkaConsumer to do it. 'startingoffsets' only applies when a new "
        "streaming query is started; resuming always picks up from where the query left off."
    ),
    "key.deserializer": (
        "Kafka option 'key.deserializer' is not supported as keys are deserialized as byte arrays with "
        f"ByteArrayDeserializer. {_DESERIALIZER} keys."
    ),
    "value.deserializer": (
        "Kafka option 'value.deserializer' is not supported as values are deserialized as byte arrays with "
        f"ByteArrayDeserializer. {_DESERIALIZER} values."
    ),
    "enable.auto.commit": "Kafka option 'enable.auto.commit' is not supported as the source keeps track of offsets.",
    "interceptor.classes": (
        "Kafka option 'interceptor.classes' is not supported as the source always reads keys and values as byte arrays."
    ),
}


@dataclass(frozen=True)
class SourceOptions:
    """The options of a read, checked.

    >>> options = SourceOptions.parse({"kafka.bootstrap.servers": "b1:9092", "subscribe": "a, b"}, streaming=True)
    >>> options.subscription.topics, options.start, options.fail_on_data_loss
    (('a', 'b'), OffsetLimit(latest), True)
    """

    streaming: bool
    subscription: Subscription
    start: OffsetLimit
    end: OffsetLimit
    client: dict[str, Any] = field(repr=False)
    """Keywords for a client; secrets are among them."""
    strict_timestamps: bool = True
    """No record at or after a starting timestamp is an error, not the latest offset."""
    fail_on_data_loss: bool = True
    poll_timeout: float = 120.0
    retries: int = 3
    retry_interval: float = 1.0
    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay: float = 900.0
    min_partitions: int | None = None
    max_records: int | None = None
    include_headers: bool = False
    has_group_id: bool = False
    """Whether there is an option kafka.group.id."""
    # Beyond Spark's own connector.
    group: str | None = None
    """The group that progress is committed to."""
    group_rows: int = 10_000
    freeze: bool = True
    pushdown: bool = False
    """Whether batch queries leave out what their filters do not need."""
    hold_file: str | None = None
    """Streaming queries: no new batch begins while a file of this name exists. The ready jobs use it to stop."""
    registry: RegistryOptions | None = None
    """Where the types of keys and values come from; they are bytes without it."""

    @classmethod
    def parse(cls, given: Mapping[str, str], *, streaming: bool, check_edges: bool = True) -> SourceOptions:
        """Check options for a batch or a streaming read; without ``check_edges`` what both refuse."""
        options = lower_keys(given)
        check_names(options)
        kafka = kafka_options(options)
        subscription = parse_subscription(options)
        _check_forbidden(kafka)
        if not kafka.get("bootstrap.servers", "").strip():
            raise KafkaSparkOptionError(
                "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer"
            )
        start = _bound(options, "starting", LATEST if streaming else EARLIEST)
        end = _bound(options, "ending", LATEST)
        if check_edges:
            (_check_streaming if streaming else _check_batch)(options, start, end)
        else:
            _check_either(options, start, end)
        numbers = {
            name: _number(options, option, positive=positive)
            for name, option, positive in (
                ("max_offsets", "maxOffsetsPerTrigger", False),
                ("min_offsets", "minOffsetsPerTrigger", False),
                ("min_partitions", "minPartitions", True),
                ("max_records", "maxRecordsPerPartition", True),
            )
        }
        if check_edges and not streaming and numbers["max_offsets"] is not None:
            log.warning("maxOffsetsPerTrigger option ignored in batch queries")
        _check_order(numbers["min_offsets"], numbers["max_offsets"])
        prefix = options.get("groupidprefix", "spark-kafka-source" if streaming else "spark-kafka-relation")
        return cls(
            streaming=streaming,
            subscription=subscription,
            start=start,
            end=end,
            client=_client(kafka, prefix),
            strict_timestamps=_strategy(options),
            fail_on_data_loss=parse_flag(options, "failOnDataLoss", default=True),
            poll_timeout=_count(options, "kafkaConsumer.pollTimeoutMs", 120_000) / 1000,
            retries=_count(options, "fetchOffset.numRetries", 3),
            retry_interval=_count(options, "fetchOffset.retryIntervalMs", 1000) / 1000,
            max_delay=parse_duration("maxTriggerDelay", options.get("maxtriggerdelay", "15m")),
            include_headers=parse_flag(options, "includeHeaders", default=False),
            has_group_id="group.id" in kafka,
            group=options.get("commitoffsetstogroup") or None,
            group_rows=_count(options, "rowsPerTask", 10_000),
            freeze=parse_flag(options, "freezeWorkers", default=True),
            pushdown=parse_flag(options, "filterPushdown", default=False),
            hold_file=(options.get("holdfile") or None) if streaming else None,
            registry=RegistryOptions.parse(
                options, subscription.topics or sorted({tp.topic for tp in subscription.partitions})
            ),
            **numbers,
        )


def lower_keys(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options with names as Spark compares them."""
    return {str(name).lower(): str(value) for name, value in given.items() if value is not None}


def kafka_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options ``kafka.*`` without that prefix."""
    return {name[6:]: value for name, value in options.items() if name.startswith("kafka.")}


_warned: set[str] = set()
_BY_LOWER: Final = {name.lower(): name for name in _NAMES}


def check_names(options: Mapping[str, str]) -> None:
    """Refuse a name that is nearly one of an option, and warn once about one that nothing here knows.

    An option that is misspelled has no effect, and startingOffset for startingOffsets skips what the topic has.
    Names of other connectors are common in programs that choose the format late, so they are no error.

    >>> check_names({"startingoffset": "earliest"})
    Traceback (most recent call last):
    kafka.spark.errors.KafkaSparkOptionError: The format purekafka has no option 'startingoffset': did you mean \
'startingOffsets'?
    """
    for name in options:
        if name in _BY_LOWER or name in _OF_SPARK or name.startswith("kafka."):
            continue
        near = get_close_matches(name, _BY_LOWER, n=1, cutoff=0.75)
        meant = f"kafka.{name}" if "." in name and name in BY_SPELLING else _BY_LOWER[near[0]] if near else None
        if meant is not None:
            raise KafkaSparkOptionError(
                f"The format purekafka has no option '{name}': did you mean '{meant}'?", option=name
            )
        if name not in _warned:
            _warned.add(name)
            log.warning("The option %s is not known to the format purekafka and has no effect", name)


def parse_flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return an option that is true or false.

    >>> parse_flag({"includeheaders": "TRUE"}, "includeHeaders", default=False)
    True
    """
    return _take(options, name, _flag, default)


def _take(options: Mapping[str, str], name: str, read: Callable[[str], T], default: T) -> T:
    text = options.get(name.lower())
    if text is None:
        return default
    try:
        return read(text)
    except ValueError:
        raise KafkaSparkOptionError(f'For input string: "{text}", which {name} cannot be', option=name) from None


def _flag(text: str) -> bool:
    word = text.strip().lower()
    if word not in {"true", "false"}:
        raise ValueError(word)
    return word == "true"


def _long(text: str) -> int:
    return int(text.strip())


def _count(options: Mapping[str, str], name: str, default: int) -> int:
    number = _take(options, name, _long, default)
    if number < 0:
        raise KafkaSparkOptionError(f"{name} must not be negative", option=name)
    return number


def _number(options: Mapping[str, str], name: str, *, positive: bool) -> int | None:
    if name.lower() not in options:
        return None
    if not positive:
        return _count(options, name, 0)
    number = _take(options, name, _long, 0)
    if number <= 0:
        raise KafkaSparkOptionError(f"{name} must be positive", option=name)
    return number


def _check_order(least: int | None, most: int | None) -> None:
    if least is not None and most is not None and least > most:
        raise KafkaSparkOptionError(
            f"The value of minOffsetPerTrigger({least}) is higher than the maxOffsetsPerTrigger({most})."
        )


def _check_forbidden(kafka: Mapping[str, str]) -> None:
    for name, sentence in _FORBIDDEN.items():
        if name in kafka:
            raise KafkaSparkOptionError(sentence, option=f"kafka.{name}")


# Where it begins and ends.


def _bound(options: Mapping[str, str], edge: str, default: int) -> OffsetLimit:
    single = options.get(f"{edge}timestamp")
    if single is not None:
        try:
            time = _long(single)
        except ValueError:
            raise KafkaSparkOptionError(f"Expected a single long value, got {single}") from None
        # Below 0 are not times but ListOffsets' names for the edges and the highest timestamp.
        _refuse_below(0, [time], f"{edge}Timestamp", single)
        return OffsetLimit(timestamp=time)
    by_partition = options.get(f"{edge}offsetsbytimestamp")
    if by_partition is not None:
        times = parse_timestamps(by_partition.strip())
        _refuse_below(0, times.values(), f"{edge}OffsetsByTimestamp", by_partition)
        return OffsetLimit(timestamps=times)
    text = options.get(f"{edge}offsets", "").strip()
    if text:
        named = {"latest": LATEST, "earliest": EARLIEST}.get(text.lower())
        if named is not None:
            return OffsetLimit(everywhere=named)
        offsets = parse_offsets(text)
        _refuse_below(EARLIEST, offsets.values(), f"{edge}Offsets", text)
        return OffsetLimit(offsets=offsets)
    return OffsetLimit(everywhere=default)


def _refuse_below(least: int, numbers: Iterable[int], option: str, text: str) -> None:
    if any(number < least for number in numbers):
        raise KafkaSparkOptionError(f"No number in {option} can be below {least}, got {text}", option=option)


def _strategy(options: Mapping[str, str]) -> bool:
    value = options.get("startingoffsetsbytimestampstrategy", "error").strip().lower()
    if value not in {"error", "latest"}:
        raise KafkaSparkOptionError(
            f"Unexpected value for option startingOffsetsByTimestampStrategy: {value}. It is 'error' or 'latest'"
        )
    return value == "error"


def _check_either(options: Mapping[str, str], start: OffsetLimit, end: OffsetLimit) -> None:
    """Refuse what neither kind of query can have; which it will be is not known yet."""
    try:
        _check_batch(options, start, end)
    except KafkaSparkOptionError as error:
        try:
            _check_streaming(options, start, end)
        except KafkaSparkOptionError:
            raise error from None


def _check_streaming(options: Mapping[str, str], _start: OffsetLimit, _end: OffsetLimit) -> None:
    for name, what in (("endingoffsets", "offset"), ("endingoffsetsbytimestamp", "timestamp")):
        if name in options:
            raise KafkaSparkOptionError(f"ending {what} not valid in streaming queries")


def _check_batch(_options: Mapping[str, str], start: OffsetLimit, end: OffsetLimit) -> None:
    if start.everywhere == LATEST:
        raise KafkaSparkOptionError("starting offset can't be latest for batch queries on Kafka")
    if end.everywhere == EARLIEST:
        raise KafkaSparkOptionError("ending offset can't be earliest for batch queries on Kafka")
    _refuse_edge(start.offsets, LATEST, "startingOffsets for {} can't be latest for batch queries on Kafka")
    _refuse_edge(end.offsets, EARLIEST, "ending offset for {} can't be earliest for batch queries on Kafka")


def _refuse_edge(offsets: Offsets, edge: int, sentence: str) -> None:
    for (topic, partition), offset in offsets.items():
        if offset == edge:
            raise KafkaSparkOptionError(sentence.format(f"{topic}-{partition}"))


def _client(kafka: Mapping[str, str], prefix: str) -> dict[str, Any]:
    found = client_options("consumer", {name: value for name, value in kafka.items() if name != "group.id"})
    found["allow_auto_create_topics"] = False
    if "group.id" in kafka:
        log.warning("kafka.group.id is only the name that brokers see: the source does not join a group")
    # The same in all queries of an application, as connections are kept by their options.
    found.setdefault("client_id", kafka.get("group.id") or prefix)
    check_together("consumer", found)
    return found


_SECONDS: Final = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}


def parse_duration(option: str, text: str) -> float:
    """Return the seconds of a time; a bare number is of milliseconds.

    >>> parse_duration("maxTriggerDelay", "15m"), parse_duration("maxTriggerDelay", "500")
    (900.0, 0.5)
    """
    match = re.fullmatch(r"(-?\d+)([a-z]*)", text.strip().lower())
    if match is None or (match[2] or "ms") not in _SECONDS:
        raise KafkaSparkOptionError(
            f"{option}: Time must be specified as seconds (s), milliseconds (ms), microseconds (us), minutes (m or "
            f"min), hour (h), or day (d). E.g. 50s, 100ms, or 250us. Failed to parse time string: {text}"
        )
    return int(match[1]) * _SECONDS[match[2] or "ms"]


# Larger than what the producer takes for single records by default: here they come ten thousand at a time.
_BATCH_SIZE = 256 << 10
_LINGER_MS = 20
_MAX_BLOCK_MS = 60_000


class ForeachBatch(NamedTuple):
    """The batch that a function for foreachBatch writes; the option foreachBatch has it as text."""

    query: str
    batch: int
    run: str | None

    @classmethod
    def of(cls, text: str) -> ForeachBatch:
        """Read the option."""
        return cls(*json.loads(text))

    def text(self) -> str:
        """Return what the option has."""
        return json.dumps(self)


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
    registry: RegistryOptions | None = None
    """Where the schemas of keys and values come from; they are bytes or text without it."""
    batch: ForeachBatch | None = None
    """What `foreach_batch_writer` writes."""

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
            registry=RegistryOptions.parse(options, [] if topic is None else [topic.strip()]),
            batch=ForeachBatch.of(options["foreachbatch"]) if "foreachbatch" in options else None,
        )
