"""The same queries with Spark's own connector and with this source: the same rows, tasks and checkpoints.

Runs with ``-m soak``, in a session of its own; the connector's jars are fetched with Maven once.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.producer import KafkaProducer
from test.embedded.spark.test_session import finish

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore::ResourceWarning")]

# The connector of 4.2 is the newest that there is, and works with 4.3; not all of its parts were released together.
JARS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
CACHE = Path.home() / ".cache" / "purekafka-test" / "spark-sql-kafka-4.2.0"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def jars() -> list[Path]:
    """Return the connector's jars, from the cache or from Maven."""
    paths = []
    for artifact in JARS:
        _, name, version = artifact.split(":")
        path = CACHE / f"{name}-{version}.jar"
        if not path.exists():
            maven = shutil.which("mvn")
            if maven is None:
                pytest.skip("Spark's own Kafka connector is fetched with Maven: install maven")
            words = [maven, "-q", "-B", COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={CACHE}"]
            if subprocess.run(words, capture_output=True, timeout=300, check=False).returncode:
                pytest.skip(f"Maven does not find {artifact}")
        paths.append(path)
    return paths


@pytest.fixture(scope="module")
def official() -> Iterator[Any]:
    """Return a session that has both."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
    from pyspark.sql import SparkSession

    from kafka.spark.session import local_session

    if SparkSession.getActiveSession() is not None:
        pytest.skip("a session without the connector runs in this process: run this file by itself")
    configs = {
        "spark.driver.memory": "1g",
        "spark.log.level": "ERROR",
        "spark.jars": ",".join(map(str, jars())),
    }
    session = local_session("parity", master="local[2]", configs=configs)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Return a broker with records of every codec, with nulls, headers and transactions, some of them aborted."""
    with Broker(topics={"events": 4}) as running:
        servers = running.bootstrap_servers
        for codec in (None, "gzip", "snappy", "lz4", "zstd"):
            with KafkaProducer(bootstrap_servers=servers, compression_type=codec, batch_size=2000) as producer:
                for number in range(400):
                    value = None if number % 7 == 0 else b"%d" % number
                    key = None if number % 3 else b"k%d" % number
                    producer.send("events", value, key, [("h", b"x"), ("n", None)] if number % 5 == 0 else None)
        for commit in (True, False, True):
            with KafkaProducer(bootstrap_servers=servers, transactional_id="t") as producer:
                producer.init_transactions()
                producer.begin_transaction()
                for number in range(50):
                    producer.send("events", b"t%d" % number)
                producer.flush()
                (producer.commit_transaction if commit else producer.abort_transaction)()
        yield running


def read(spark: Any, broker: Broker, source: str, **options: str) -> Any:
    chosen = {name.replace("__", "."): value for name, value in options.items()}
    reader = spark.read.format(source).option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return reader.options(subscribe="events", includeHeaders="true", **chosen).load()


def digest(frame: Any) -> list[Any]:
    """Return for each task the number of its rows and a hash over all of their columns."""
    from pyspark.sql import functions

    columns = "xxhash64(key, value, topic, partition, offset, timestamp, timestampType, headers)"
    rows = frame.withColumn("task", functions.spark_partition_id()).groupBy("task")
    found = rows.agg(functions.count("*"), functions.expr(f"bit_xor({columns})"), functions.min("offset"))
    return sorted(tuple(row)[1:] for row in found.collect())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kafka__isolation__level": "read_committed"},
        {"minPartitions": "11"},
        {"startingOffsets": '{"events":{"0":3,"1":4,"2":5,"3":6}}'},
        {"startingTimestamp": "1000", "endingOffsets": '{"events":{"0":30,"1":40,"2":50,"3":-1}}'},
    ],
)
def test_a_batch_has_the_same_rows_in_the_same_tasks(official: Any, broker: Broker, options: dict[str, str]) -> None:
    theirs = read(official, broker, "kafka", **options)
    ours = read(official, broker, "purekafka", rowsPerTask="0", **options)
    assert ours.schema == theirs.schema
    assert digest(ours) == digest(theirs)


@pytest.mark.parametrize("order", [("kafka", "purekafka", "kafka"), ("purekafka", "kafka", "purekafka")])
def test_a_checkpoint_is_handed_over_without_gap_or_repeat(
    official: Any, broker: Broker, tmp_path: Path, order: tuple[str, ...]
) -> None:
    seen: list[tuple[int, int]] = []

    def take(rows: Any, _number: int) -> None:
        seen.extend((row.partition, row.offset) for row in rows.select("partition", "offset").collect())

    for source in order:
        reader = official.readStream.format(source).option("kafka.bootstrap.servers", broker.bootstrap_servers)
        frame = reader.options(subscribe="events", startingOffsets="earliest").load()
        finish(frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path)))
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for _ in range(77):
                producer.send("events", b"more")
    visible = {(record.partition, record.offset) for record in broker.records("events")}
    assert len(seen) == len(set(seen))
    assert len(visible) - len(seen) == 77  # what came after the last run
    assert set(seen) < visible
