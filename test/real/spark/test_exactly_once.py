"""An interrupted batch of an exactly-once sink, with the coordinators of Apache Kafka. Needs no Spark."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.cli import main
from kafka.errors import IllegalStateError
from kafka.spark.exactly_once import TaskIdentity, TaskOutcome, finish_batch, give_up_batch, transactors, write_once
from kafka.spark.options import SinkOptions
from kafka.structs import TopicPartition
from test.real.kafka_process import KafkaCluster


class Sink:
    """A query's sink, and who reads what it commits."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers = servers
        self._topic = topic
        self._query = str(uuid.uuid4())
        self.options = SinkOptions.parse({"kafka.bootstrap.servers": servers, "topic": topic, "exactlyOnce": "true"})

    def write(self, run: str, batch: int, task: int, values: Sequence[bytes]) -> TaskOutcome:
        rows: Any = pa.RecordBatch.from_pydict({"value": list(values)})
        return write_once(self.options, TaskIdentity(self._query, batch, task, run), [rows])

    def run_batch(self, run: str, batch: int, *tasks: Sequence[bytes]) -> list[TaskOutcome]:
        outcomes = [self.write(run, batch, number, values) for number, values in enumerate(tasks)]
        try:
            finish_batch(self.options, outcomes, batch)
        except BaseException:
            give_up_batch(self.options, outcomes)
            raise
        return outcomes

    def group(self, task: int) -> str:
        return f"spark-{self._query}-{task}"

    def committed(self) -> list[bytes]:
        places = [TopicPartition(self._topic, number) for number in range(2)]
        found: list[bytes] = []
        with KafkaConsumer(
            bootstrap_servers=self._servers, isolation_level="read_committed", auto_offset_reset="earliest"
        ) as reader:
            reader.assign(places)
            ends = reader.end_offsets(places)
            while any(reader.position(place) < end for place, end in ends.items()):
                found += [record.value for records in reader.poll(500).values() for record in records]
        return sorted(found)


@pytest.fixture
def sink(kafka: KafkaCluster) -> Iterator[Sink]:
    yield Sink(kafka.bootstrap_servers, kafka.create_topic(f"once-{uuid.uuid4().hex[:8]}", partitions=2))
    transactors.close()


@pytest.mark.timeout(300)
def test_the_rest_of_an_interrupted_batch_is_committed_by_the_driver(sink: Sink) -> None:
    tasks = [[b"%d" % number] for number in range(1, 6)]
    sink.run_batch("old", 0, *([b"0"] for _ in tasks))
    assert sink.write("old", 1, 3, tasks[3]).held is None
    before = sink.committed()
    outcomes = [sink.write("new", 1, number, values) for number, values in enumerate(tasks)]
    assert [each.held is None for each in outcomes] == [False, False, False, True, False]
    assert sink.committed() == before
    finish_batch(sink.options, outcomes, 1)
    assert sink.committed() == [b"0"] * 5 + [b"1", b"2", b"3", b"4", b"5"]
    assert [each.held for each in sink.run_batch("new", 2, *tasks)] == [None] * 5


@pytest.mark.timeout(300)
def test_tasks_that_are_others_now_show_nothing(sink: Sink) -> None:
    sink.run_batch("old", 0, *([b"0"] for _ in range(3)))
    sink.write("old", 1, 2, [b"c"])
    before = sink.committed()
    with pytest.raises(IllegalStateError, match="Batch 1 consists of 2 tasks, but was written by at least 3"):
        sink.run_batch("new", 1, [b"a", b"b"], [b"c"])
    assert sink.committed() == before
    sink.run_batch("newer", 1, [b"a"], [b"b"], [b"c"])
    assert sink.committed() == [*before[:3], b"a", b"b", b"c"]


@pytest.mark.timeout(300)
def test_no_monitor_shows_a_lag_of_the_groups_of_marks(
    sink: Sink, kafka: KafkaCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    servers, tasks = kafka.bootstrap_servers, ([b"a"], [b"b"])
    for batch in range(2):
        sink.run_batch("run", batch, *tasks)
    groups = [sink.group(number) for number in range(2)]
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        assert set(groups) <= {group.group_id for group in admin.list_groups()}
        lags = admin.group_lag(groups)
    assert [(one.committed, one.lag) for name in groups for one in lags[name]] == [(None, None)] * 2
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    done = kafka.tool(tool, "--bootstrap-server", servers, "--describe", "--all-groups")
    rows = {words[0]: words[3:6] for line in done.stdout.splitlines() if len(words := line.split()) > 5}
    for name in groups:
        offset, end, lag = rows[name]
        assert (offset, end.isdecimal(), lag) == ("-", True, "-"), done.stdout
    for words in (["groups", "lag", "-b", servers], ["exporter", "--once", "-b", servers]):
        capsys.readouterr()
        assert main(words) == 0
        shown = capsys.readouterr().out
        assert not [name for name in groups if name in shown], shown
