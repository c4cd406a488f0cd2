"""The same queries with Spark's own connector and with this source: the same rows, tasks and checkpoints.

Runs with ``-m soak``; the connector's jars are fetched with Maven once. Against Apache Kafka, test/real/spark has more.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.producer import KafkaProducer
from test.spark_runs import parity

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def official() -> Iterator[Any]:
    """Return a session that has both."""
    with parity.session_with_both() as session:
        yield session


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Return a broker with records of every codec, with nulls, headers and transactions, some of them aborted."""
    with Broker(topics={"events": 4}) as running:
        parity.fill_everything(running.bootstrap_servers, "events")
        yield running


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
    theirs, ours = (
        parity.frame(official, source, broker.bootstrap_servers, subscribe="events", **options)
        for source in parity.SOURCES
    )
    assert ours.schema == theirs.schema
    assert parity.digest(ours) == parity.digest(theirs)


@pytest.mark.parametrize("order", [("kafka", "purekafka", "kafka"), ("purekafka", "kafka", "purekafka")])
def test_a_checkpoint_is_handed_over_without_gap_or_repeat(
    official: Any, broker: Broker, tmp_path: Path, order: tuple[str, ...]
) -> None:
    def more() -> None:
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for _ in range(77):
                producer.send("events", b"more")

    seen = parity.hand_over(official, order, broker.bootstrap_servers, "events", tmp_path, more)
    visible = {(record.partition, record.offset) for record in broker.records("events")}
    assert len(seen) == len(set(seen))
    assert len(visible) - len(seen) == 77  # what came after the last run
    assert set(seen) < visible
