"""The same queries of Apache Kafka with Spark's own connector and with this source.

The same rows in the same tasks, batches with the same bounds, errors of the same kind, and checkpoints that are handed
over, on topics with all that a log can have. Runs with ``-m soak``; the connector's jars are fetched with Maven once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition
from test.real.kafka_process import KafkaCluster
from test.spark_runs import parity
from test.spark_runs.sessions import finish

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800), pytest.mark.filterwarnings("ignore::ResourceWarning")]

DEADLINE = 90.0
CLEANING = {"log.cleaner.backoff.ms": "200", "log.cleaner.min.compaction.lag.ms": "0"}
COMPACT = {
    "cleanup.policy": "compact",
    "segment.ms": "500",
    "min.cleanable.dirty.ratio": "0.001",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "0",
}
#: Before this the clock of the first records has not been, after it that of the last ones is.
HALF_AN_HOUR = 1_800_000


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """Return a session that has both."""
    with parity.session_with_both() as session:
        yield session


@pytest.fixture(scope="module")
def broker(kafka_version: str) -> Iterator[KafkaCluster]:
    """One node with a cleaner that is in a hurry, and the topics that nobody changes."""
    with KafkaCluster(kafka_version, properties=CLEANING) as cluster:
        servers = cluster.bootstrap_servers
        parity.fill_everything(servers, cluster.create_topic("events", partitions=4))
        parity.fill_everything(servers, cluster.create_topic("events-too", partitions=3), each=50)
        compact(servers, cluster.create_topic("compacted", partitions=2, configs=COMPACT))
        fill_with_times(servers, cluster.create_topic("timed", partitions=2, configs={"retention.ms": "-1"}))
        yield cluster


def compact(servers: str, topic: str) -> None:
    """Write keys again and again until the cleaner has taken most of the records away."""
    began = time.monotonic()
    number = 0
    while True:
        with KafkaProducer(bootstrap_servers=servers, batch_size=1000) as producer:
            for _ in range(1000):
                producer.send(topic, b"%d" % number, b"k%d" % (number % 97), partition=number % 2)
                number += 1
        time.sleep(1.0)  # segments are rolled by the clock
        holes = number - count(servers, topic)
        if holes > 1500 and number - holes > 500:
            return
        assert time.monotonic() - began < DEADLINE, f"the cleaner left all but {holes} of {number} records"


def count(servers: str, topic: str) -> int:
    """How many records a topic has."""
    where = [TopicPartition(topic, partition) for partition in range(2)]
    found = 0
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as reader:
        reader.assign(where)
        ends = reader.end_offsets(where)
        while any(reader.position(each) < ends[each] for each in where):
            found += sum(map(len, reader.poll(500).values()))
    return found


def fill_with_times(servers: str, topic: str) -> None:
    """Records of half a year, one an hour."""
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(600):
            stamp = 1_700_000_000_000 + number * 2 * HALF_AN_HOUR
            producer.send(topic, b"%d" % number, partition=number % 2, timestamp_ms=stamp)


def at(topic: str, *offsets: int) -> str:
    return (
        f'{{"{topic}":{{{",".join(f"{chr(34)}{number}{chr(34)}:{offset}" for number, offset in enumerate(offsets))}}}}}'
    )


# Batches.

BATCHES: dict[str, dict[str, str]] = {
    "everything": {"subscribe": "events"},
    "read_committed": {"subscribe": "events", "kafka__isolation__level": "read_committed"},
    "small fetches": {"subscribe": "events", "kafka__max__partition__fetch__bytes": "1000"},
    "minPartitions": {"subscribe": "events", "minPartitions": "11"},
    "minPartitions of two topics": {"subscribe": "events, events-too", "minPartitions": "13"},
    "fewer minPartitions than there are": {"subscribe": "events", "minPartitions": "2"},
    "startingOffsets": {"subscribe": "events", "startingOffsets": at("events", 3, 4, 5, 6)},
    "both offsets": {
        "subscribe": "events",
        "startingOffsets": at("events", 30, -2, 5, 100),
        "endingOffsets": at("events", 200, 100, -1, 100),
    },
    "a pattern": {"subscribePattern": "event.*"},
    "a pattern that the brokers' own topics match": {"subscribePattern": "(events|__.*)"},
    "a pattern of whole names": {"subscribePattern": "^events$"},
    "an assignment": {"assign": '{"events":[0,2],"events-too":[1]}'},
    "an assignment of which some is not there": {"assign": '{"events":[1,77]}'},
    "compacted": {"subscribe": "compacted"},
    "compacted, in parts": {"subscribe": "compacted", "minPartitions": "9"},
    "startingTimestamp": {"subscribe": "timed", "startingTimestamp": str(1_700_000_000_000 + 101 * HALF_AN_HOUR)},
    "both timestamps": {
        "subscribe": "timed",
        "startingTimestamp": "1700003600000",
        "endingTimestamp": str(1_700_000_000_000 + 700 * HALF_AN_HOUR),
    },
    "timestamps by partition": {
        "subscribe": "timed",
        "startingOffsetsByTimestamp": at("timed", 1_700_036_000_000, 1_700_072_000_000),
        "endingOffsetsByTimestamp": at("timed", 1_700_720_000_000, 1_800_720_000_000_000),
    },
    "no record as late, and latest then": {
        "subscribe": "timed",
        "startingOffsetsByTimestamp": at("timed", 1_700_036_000_000, 4_000_000_000_000),
        "startingOffsetsByTimestampStrategy": "latest",
    },
}


@pytest.mark.parametrize("options", BATCHES.values(), ids=BATCHES.keys())
def test_a_batch_has_the_same_rows_in_the_same_tasks(spark: Any, broker: KafkaCluster, options: dict[str, str]) -> None:
    theirs, ours = (parity.frame(spark, source, broker.bootstrap_servers, **options) for source in parity.SOURCES)
    assert ours.schema == theirs.schema
    # Spark's own connector has a task for an empty range too, and we have none; those with rows the digest compares.
    assert ours.rdd.getNumPartitions() <= theirs.rdd.getNumPartitions()
    expected = parity.digest(theirs)
    assert expected, "a query that reads nothing shows nothing"
    assert parity.digest(ours) == expected


def test_a_range_that_begins_and_ends_in_holes(spark: Any, broker: KafkaCluster) -> None:
    servers = broker.bootstrap_servers
    left = parity.frame(spark, "kafka", servers, subscribe="compacted").select("partition", "offset").collect()
    holes = []
    for number in range(2):
        there = {row.offset for row in left if row.partition == number}
        missing = sorted(set(range(max(there))) - there)
        holes.append(missing[len(missing) // 2])
    for edge in ({"startingOffsets": at("compacted", *holes)}, {"endingOffsets": at("compacted", *holes)}):
        theirs, ours = (
            parity.digest(parity.frame(spark, source, servers, subscribe="compacted", **edge))
            for source in parity.SOURCES
        )
        assert ours == theirs


# Streams.

STREAMS: dict[str, dict[str, str]] = {
    "everything at once": {"subscribe": "events"},
    "limited": {"subscribe": "events", "maxOffsetsPerTrigger": "317"},
    "limited and in parts": {"subscribe": "events", "maxOffsetsPerTrigger": "500", "minPartitions": "6"},
    "read_committed": {
        "subscribe": "events",
        "maxOffsetsPerTrigger": "700",
        "kafka__isolation__level": "read_committed",
    },
    "maxRecordsPerPartition": {"subscribe": "events", "maxRecordsPerPartition": "150"},
    "compacted": {"subscribe": "compacted", "maxOffsetsPerTrigger": "400"},
}


@pytest.mark.parametrize("options", STREAMS.values(), ids=STREAMS.keys())
def test_a_stream_has_the_same_batches(
    spark: Any, broker: KafkaCluster, tmp_path: Path, options: dict[str, str]
) -> None:
    found, ends = [], []
    for source in parity.SOURCES:
        rows = parity.stream(spark, source, broker.bootstrap_servers, startingOffsets="earliest", **options)
        found.append(parity.streamed(rows, tmp_path / source))
        ends.append(parity.ends_of_batches(tmp_path / source))
    assert found[0]
    assert ends[1] == ends[0]
    assert found[1] == found[0]


@pytest.mark.parametrize("order", [("kafka", "purekafka", "kafka"), ("purekafka", "kafka", "purekafka")], ids="-".join)
def test_a_checkpoint_is_handed_over_without_gap_or_repeat(
    spark: Any, broker: KafkaCluster, tmp_path: Path, order: tuple[str, ...]
) -> None:
    servers = broker.bootstrap_servers
    topic = broker.create_topic("handed-" + order[0], partitions=4)
    parity.fill_everything(servers, topic)

    def more() -> None:
        with KafkaProducer(bootstrap_servers=servers) as producer:
            for number in range(77):
                producer.send(topic, b"more", partition=number % 4)

    seen = parity.hand_over(spark, (*order, order[1]), servers, topic, tmp_path, more)
    assert len(seen) == len(set(seen)), "read twice"
    rows = parity.frame(spark, "kafka", servers, subscribe=topic).select("partition", "offset").collect()
    left = {(row.partition, row.offset) for row in rows} - set(seen)
    assert len(left) == 77, "all but what came after the last run"
    assert len(set(seen) | left) == len(rows)


# Errors.

#: What both have to say. Spark puts the words of a source in Python into a sentence of its own.
ERRORS: dict[str, tuple[str, dict[str, str]]] = {
    "no servers": ("'kafka.bootstrap.servers' must be specified", {"kafka__bootstrap__servers": ""}),
    "two strategies": ("Only one of the following options can be specified", {"assign": '{"events":[0]}'}),
    "offsets that are no JSON": ("Expected e.g.", {"startingOffsets": '{"events":{"0":1'}),
    "offsets of some partitions": (
        "Partitions specified for Kafka start offsets don't match what are assigned",
        {"startingOffsets": '{"events":{"0":1}}'},
    ),
    "a start at latest": ("starting offset can't be latest for batch queries", {"startingOffsets": "latest"}),
    "an end at earliest": ("ending offset can't be earliest for batch queries", {"endingOffsets": "earliest"}),
    "a start at -1": ("startingOffsets for .* can't be latest", {"startingOffsets": at("events", 1, 1, 1, -1)}),
    "a start after the end": (
        "The specified start offset 9 is greater than the end offset 1 for topic events partition 0",
        {"startingOffsets": at("events", 9, 9, 9, 9), "endingOffsets": at("events", 1, 10, 10, 10)},
    ),
    "a resolved start after the end": (
        r"The resolved start offset 9999 is greater than the resolved end offset \d+ for topic events partition 0",
        {"startingOffsets": at("events", 9999, 9, 9, 9), "endingOffsets": at("events", -1, 10, 10, 10)},
    ),
    "a timestamp after the last record": ("No offset matched from request", {"startingTimestamp": "4000000000000"}),
    "a timestamp that is none": ("Expected a single long value", {"startingTimestamp": "soon"}),
    "timestamps of some partitions": (
        "Partitions specified for Kafka timestamp based start offsets don't match what are assigned",
        {"startingOffsetsByTimestamp": '{"events":{"0":1}}'},
    ),
    "a topic that is not there": ("UnknownTopicOrPartition", {"subscribe": "nowhere"}),
    "a forbidden option": ("'auto.offset.reset' is not supported", {"kafka__auto__offset__reset": "earliest"}),
    "minPartitions of nothing": ("minPartitions must be positive", {"minPartitions": "0"}),
    "a flag that is none": ("perhaps|For input string", {"failOnDataLoss": "perhaps"}),
    "no isolation level": ("isolation.level|isolation_level", {"kafka__isolation__level": "some"}),
}


@pytest.mark.parametrize("source", parity.SOURCES)
@pytest.mark.parametrize(("said", "options"), ERRORS.values(), ids=ERRORS.keys())
def test_a_wrong_query_fails_with_the_same_kind_of_error(
    spark: Any, broker: KafkaCluster, source: str, said: str, options: dict[str, str]
) -> None:
    chosen = {name: value for name, value in {"subscribe": "events", **options}.items() if value}
    servers = broker.bootstrap_servers
    if "kafka__bootstrap__servers" in options:
        reader = spark.read.format(source).option("subscribe", "events")
        found = parity.outcome(lambda: reader.load().count())
    else:
        found = parity.outcome(lambda: parity.frame(spark, source, servers, **chosen).count())
    assert found.startswith("ERROR")
    assert re.search(said, found), found


# Loss.

LOST = "Some data may have been lost because they are not available in Kafka any more"


@pytest.fixture
def trimmed(spark: Any, broker: KafkaCluster, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Return what makes a topic whose first records are deleted behind a query's checkpoint, and that query."""
    made: list[str] = []

    def make(source: str, **options: str) -> Any:
        topic = f"trimmed-{abs(hash(request.node.name))}-{len(made)}"
        made.append(broker.create_topic(topic, partitions=2))
        servers = broker.bootstrap_servers
        write(servers, topic, range(100))
        rows = parity.stream(
            spark, source, servers, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="60", **options
        )
        checkpoint = tmp_path / str(len(made))
        first = seen_by(rows, checkpoint)
        assert sorted(first) == list(range(100))
        write(servers, topic, range(100, 400))
        delete_before(broker, tmp_path, topic, {0: 120, 1: 60})
        return lambda: seen_by(rows, checkpoint)

    return make


def write(servers: str, topic: str, numbers: range) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, partition=number % 2)


def seen_by(rows: Any, checkpoint: Path) -> list[int]:
    found: list[int] = []

    def take(batch: Any, _number: int) -> None:
        found.extend(int(row.value) for row in batch.select("value").collect())

    finish(rows.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)))
    return found


def delete_before(broker: KafkaCluster, home: Path, topic: str, offsets: dict[int, int]) -> None:
    """What kafka-delete-records.sh does."""
    parts = [{"topic": topic, "partition": number, "offset": offset} for number, offset in offsets.items()]
    path = home / f"delete-{topic}.json"
    path.write_text(str({"partitions": parts, "version": 1}).replace("'", '"'), encoding="utf-8")
    words = ("--bootstrap-server", broker.bootstrap_servers, "--offset-json-file", str(path))
    done = broker.tool("org.apache.kafka.tools.DeleteRecordsCommand", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "low_watermark" in done.stdout


@pytest.mark.parametrize("source", parity.SOURCES)
def test_records_deleted_behind_a_checkpoint_fail_the_query(trimmed: Any, source: str) -> None:
    found = parity.outcome(trimmed(source))
    assert found.startswith("ERROR")
    assert LOST in found, found
    assert re.search(r"Could not read records in offset \[\d+, \d+\) for topic partition trimmed", found), found


def test_records_deleted_behind_a_checkpoint_are_left_out_where_that_is_wanted(trimmed: Any) -> None:
    theirs, ours = (trimmed(source, failOnDataLoss="false")() for source in parity.SOURCES)
    # Of partition 0 all before offset 120 (the even numbers before 240) is gone, of partition 1 before 60.
    expected = [*range(240, 400, 2), *range(121, 400, 2)]
    assert sorted(theirs) == sorted(expected)
    assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_batch_that_starts_at_deleted_records(spark: Any, broker: KafkaCluster, tmp_path: Path, fail: str) -> None:
    servers = broker.bootstrap_servers
    topic = broker.create_topic(f"deleted-{fail}", partitions=2)
    write(servers, topic, range(200))
    delete_before(broker, tmp_path, topic, {0: 40, 1: 10})
    options = {"subscribe": topic, "startingOffsets": at(topic, 10, 0), "failOnDataLoss": fail}
    theirs, ours = (
        parity.outcome(lambda source=source: parity.digest(parity.frame(spark, source, servers, **options)))  # type: ignore[misc]
        for source in parity.SOURCES
    )
    if fail == "true":
        assert all(LOST in text for text in (theirs, ours)), (theirs, ours)
    else:
        assert ours == theirs


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("source", parity.SOURCES)
def test_a_topic_that_was_created_again_behind_a_checkpoint(
    spark: Any, broker: KafkaCluster, tmp_path: Path, source: str, fail: str
) -> None:
    servers = broker.bootstrap_servers
    topic = broker.create_topic(f"anew-{source}-{fail}", partitions=2)
    write(servers, topic, range(100))
    rows = parity.stream(spark, source, servers, subscribe=topic, startingOffsets="earliest", failOnDataLoss=fail)
    assert len(seen_by(rows, tmp_path / "checkpoint")) == 100
    words = ("--bootstrap-server", servers, "--topic", topic, "--delete")
    assert broker.tool("org.apache.kafka.tools.TopicCommand", *words).returncode == 0
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            broker.create_topic(topic, partitions=2)
            break
        except Exception:  # it is still being deleted
            assert time.monotonic() < deadline
            time.sleep(0.5)
    write(servers, topic, range(10))
    found = parity.outcome(lambda: seen_by(rows, tmp_path / "checkpoint"))
    if fail == "true":
        assert LOST in found, found
        assert "offset was changed from 50 to 5" in found, found
    else:
        assert found == "RESULT []"


def test_batches_begin_where_the_one_before_ended(spark: Any, broker: KafkaCluster, tmp_path: Path) -> None:
    rows = parity.stream(
        spark,
        "purekafka",
        broker.bootstrap_servers,
        subscribe="events",
        startingOffsets="earliest",
        maxOffsetsPerTrigger="300",
    )
    parity.streamed(rows, tmp_path)
    for before, after in pairwise(parity.ends_of_batches(tmp_path)):
        assert all(after["events"][number] >= offset for number, offset in before["events"].items())
