"""Records on disk: found again after an orderly end, a crash, and damage at the end of a file."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaProducer
from kafka.broker import Broker
from kafka.broker.storage import cleaner
from kafka.errors import CorruptRecordError, IllegalStateError, KafkaConfigurationError, KafkaStorageError
from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, DeleteRecordsRequest
from kafka.record.header import scan
from test.speed import slowness

from .batches import batch, produce
from .wire import Wire, wire


def logs(data: Path) -> list[Path]:
    return sorted(data.glob("topics/*/*.log"))


def test_everything_is_there_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(topics={"events": 2}, data_dir=data) as broker:
        broker.append_many("events", ["a", "b"])
        broker.append("events", "c", partition=1)
        broker.create_topic("other", configs={"retention.ms": 1234})
        topic_id = broker.run(lambda cluster: cluster.topics["events"].id)
        cluster_id = broker.run(lambda cluster: cluster.cluster_id)
    with Broker(data_dir=data) as broker:
        assert [record.value for record in broker.records("events", 0)] == [b"a", b"b"]
        assert [record.value for record in broker.records("events", 1)] == [b"c"]
        assert broker.run(lambda cluster: cluster.topics["events"].id) == topic_id
        assert broker.run(lambda cluster: cluster.cluster_id) == cluster_id
        assert broker.run(lambda cluster: cluster.topics["other"].configs) == {"retention.ms": "1234"}
        assert broker.append("events", "d") == 2


@pytest.mark.parametrize(("option", "value"), [("flush.ms", 60_000), ("flush.messages", 2)])
def test_a_topic_s_records_are_forced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: int
) -> None:
    forced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (forced.append(fd), real(fd)))
    with Broker(data_dir=tmp_path / "data") as broker:
        broker.create_topic("events", configs={option: value})
        broker.create_topic("other")
        forced.clear()
        broker.append("other", "a")
        broker.append("events", "a")
        broker.clock.advance(59)
        assert not forced
        if option == "flush.ms":
            broker.clock.advance(1)
        else:
            broker.append("events", "b")
        assert len(forced) == 1
        broker.clock.advance(600)
        assert len(forced) == 1


def test_indexes_are_used_only_where_they_fit(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(topics=["events"], data_dir=data) as broker:
        broker.append("events", "a")
    (index,) = data.glob("topics/*/*.index")
    index.write_bytes(b"\0" * len(index.read_bytes()))
    with Broker(data_dir=data) as broker:
        assert [record.value for record in broker.records("events")] == [b"a"]


def closed_without_an_index(data: Path, values: list[str], partitions: int = 1) -> Path:
    """Write records, one a batch, and end as a crash does; the log file of the first partition."""
    with Broker(topics={"events": partitions}, data_dir=data) as broker:
        for value in values:
            broker.append("events", value)
    for index in data.glob("topics/*/*.index"):
        index.unlink()
    return logs(data)[0]


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]


@pytest.mark.parametrize("left", [1, 11, 16, 17, 60, 61, 69])
def test_a_torn_end_is_cut_off_and_the_log_says_so(tmp_path: Path, left: int, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "data"
    log = closed_without_an_index(data, ["kept", "torn"])
    whole = log.read_bytes()
    size = len(whole) // 2
    log.write_bytes(whole[: size + left])
    with Broker(data_dir=data) as broker:
        assert [record.value for record in broker.records("events")] == [b"kept"]
        assert broker.append("events", "next") == 1
    (said,) = warnings_of(caplog)
    assert f"{log}: cut off at byte {size}: the last {left} bytes" in said
    with Broker(data_dir=data) as broker:
        assert [record.value for record in broker.records("events")] == [b"kept", b"next"]
    assert not list(log.parent.glob("*.damaged*"))


@pytest.mark.parametrize(
    "what", ["offset", "greater offset", "length", "longer", "magic", "checksum", "value", "zeros"]
)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_damage_costs_what_is_damaged_and_no_more(
    tmp_path: Path, what: str, which: int, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    log = closed_without_an_index(data, ["first", "second", "third"])
    whole = log.read_bytes()
    heads = [header.position for header in scan(whole)]
    start, end = heads[which], [*heads, len(whole)][which + 1]
    damaged = bytearray(whole)
    if what == "zeros":
        damaged[start:end] = bytes(end - start)
    else:
        at = {"offset": 7, "greater offset": 2, "length": 11, "longer": 9, "magic": 16, "checksum": 17}
        damaged[end - 3 if what == "value" else start + at[what]] ^= 4
    log.write_bytes(damaged)
    values = [b"first", b"second", b"third"]
    # An offset is not covered by the checksum: that of the last batch may be greater after compaction.
    is_seen = what not in {"offset", "greater offset"} or which < 2
    looks_torn = what == "longer" and which == 2
    if is_seen:
        del values[which]
    with Broker(data_dir=data) as broker:
        assert [record.value for record in broker.records("events")] == values
        broker.append("events", "next")
    said = warnings_of(caplog)
    assert len(said) == is_seen
    if is_seen:
        assert f"{log}: " in said[0]
        assert f"byte {start}" in said[0]
        assert f" {end - start} bytes" in said[0]
    copies = list(log.parent.glob("*.damaged*"))
    assert [copy.read_bytes() for copy in copies] == [bytes(damaged)] * (is_seen and not looks_torn)
    caplog.clear()
    with Broker(data_dir=data) as broker:
        assert [record.value for record in broker.records("events")] == [*values, b"next"]
    assert not warnings_of(caplog)


def test_each_damaged_stretch_is_named_with_the_offsets_it_costs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    log = closed_without_an_index(data, [f"value {number}" for number in range(9)])
    whole = bytearray(log.read_bytes())
    heads = [header.position for header in scan(bytes(whole))]
    for which in (2, 3, 8):
        whole[heads[which] + 20] ^= 1
    log.write_bytes(whole)
    with Broker(data_dir=data) as broker:
        assert [record.offset for record in broker.records("events")] == [0, 1, 4, 5, 6, 7]
    one, two = warnings_of(caplog)  # two batches behind each other are one stretch
    for said, between in ((one, "offset 1 and offset 4"), (two, "offset 7 and the end")):
        assert f"the records between {between}" in said
        assert "kept as 00000000000000000000.damaged" in said


def test_a_segment_that_is_not_the_last_is_never_torn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "data"
    with Broker(topics=["events"], data_dir=data) as broker:
        broker.append("events", "a")
        broker.append("events", "b")
        broker.roll("events")
        broker.append("events", "c")
    for index in data.glob("topics/*/*.index"):
        index.unlink()
    first, _ = logs(data)
    first.write_bytes(first.read_bytes()[:-3])
    with Broker(data_dir=data) as broker:
        assert [record.offset for record in broker.records("events")] == [0, 2]
    (said,) = warnings_of(caplog)
    assert "the records between offset 0 and offset 2 are lost" in said


def test_a_batch_within_a_damaged_batch_is_not_taken_for_one(tmp_path: Path) -> None:
    data = tmp_path / "data"
    inner = bytearray(batch(b"not a record"))
    inner[7] = 1  # its offset
    log = closed_without_an_index(data, ["first"])
    with Broker(data_dir=data) as broker:
        broker.append("events", bytes(inner))
        broker.append("events", "last")
    for index in data.glob("topics/*/*.index"):
        index.unlink()
    whole = bytearray(log.read_bytes())
    heads = [header.position for header in scan(bytes(whole))]
    whole[heads[1] + 17] ^= 1  # the checksum of the batch around it
    log.write_bytes(whole)
    with Broker(data_dir=data) as broker:
        assert [record.value for record in broker.records("events")] == [b"first", b"last"]


def test_damaged_tables_are_refused_in_words(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(topics=["events", "other"], data_dir=data):
        pass
    tables = data / "tables"
    whole = tables.read_bytes()
    tables.write_bytes(whole.replace(b"events", b"evemts", 1))
    with pytest.raises(IllegalStateError, match=r"tables is damaged: line \d+"):
        Broker(data_dir=data).start()
    assert tables.read_bytes() == whole.replace(b"events", b"evemts", 1)
    tables.write_bytes(whole)
    with Broker(data_dir=data) as broker:
        assert {"events", "other"} <= broker.run(lambda cluster: set(cluster.topics))


@pytest.mark.skipif(os.name == "nt", reason="no such permissions there")
def test_files_and_directories_are_for_their_owner_only(tmp_path: Path) -> None:
    data = tmp_path / "above" / "data"
    with Broker(topics={"events": 2}, data_dir=data, sasl=[("SCRAM-SHA-256", "a", "b")], fsync=True) as broker:
        broker.append("events", "a")
        broker.roll("events")
        broker.append("events", "b")
    for path in [data, *data.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_producers_transactions_and_epochs_are_known_again(tmp_path: Path) -> None:
    data = tmp_path / "data"

    def write(cluster: object) -> None:
        partition = cluster.partition("events", 0)  # type: ignore[attr-defined]
        for producer, sequence in ((5, 0), (6, 0), (5, 1)):
            sealed = batch(b"t", producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True)
            cluster.append(partition, sealed)  # type: ignore[attr-defined]
        cluster.append_marker(partition, 5, 0, committed=False)  # type: ignore[attr-defined]

    with Broker(nodes=2, topics=["events"], data_dir=data) as broker:
        broker.run(write)
        broker.move_leader(("events", 0), 3 - broker.leader("events"))
        broker.append("events", b"later")
    with Broker(nodes=2, data_dir=data) as broker:
        log = broker.run(lambda cluster: cluster.partition("events", 0).log)
        assert (log.stable_offset, log.end_offset) == (1, 5)
        assert [(one.producer_id, one.first_offset, one.last_offset) for one in log.producers.aborted] == [(5, 0, 3)]
        assert log.epochs == [(0, 0), (1, 4)]
        leader = broker.leader("events")
        with wire(broker, leader) as client:
            repeated = batch(b"t", producer_id=6, producer_epoch=0, base_sequence=0)
            part = client.ask(produce(repeated)).responses[0].partition_responses[0]
            assert (part.error_code, part.base_offset) == (0, 1)


def test_the_start_of_the_log_is_remembered(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(topics=["events"], data_dir=data) as broker:
        broker.append_many("events", ["a", "b", "c"])
        with wire(broker) as client:
            client.ask(DeleteRecordsRequest[0](topics=[("events", [(0, 3)])], timeout_ms=1000))
    with Broker(data_dir=data) as broker:
        assert broker.offsets("events") == (3, 3, 3)
        assert broker.append("events", "d") == 3


def test_segments_are_rolled_and_retention_removes_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data_dir=data) as broker:
        broker.clock.freeze()
        broker.create_topic("old", configs={"retention.ms": 1000, "segment.ms": 100})
        for value in ("a", "b", "c"):
            broker.append("old", value)
            broker.clock.advance(0.5)
        assert len(logs(data)) == 3
        broker.apply_retention()
        assert [record.value for record in broker.records("old")] == [b"b", b"c"]
        broker.clock.advance(10)
        broker.apply_retention()
        assert broker.offsets("old") == (3, 3, 3)
        assert logs(data) == []
    with Broker(data_dir=data) as broker:
        assert broker.offsets("old") == (3, 3, 3)


def test_compaction_survives_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data_dir=data) as broker:
        broker.create_topic("table", configs={"cleanup.policy": "compact"})
        broker.append_many("table", [("k", "1"), ("l", "1"), ("k", "2")])
        broker.roll("table")
        broker.append("table", "3", key="m")
        assert broker.compact() > 0
        expected = [(1, b"l"), (2, b"k"), (3, b"m")]
        assert [(record.offset, record.key) for record in broker.records("table")] == expected
    with Broker(data_dir=data) as broker:
        assert [(record.offset, record.key) for record in broker.records("table")] == expected
        assert broker.append("table", "4", key="n") == 4


def test_records_are_checked_as_a_consumer_checks_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(topics=["events"], data_dir=data) as broker:
        broker.append("events", "value")
    (path,) = logs(data)
    damaged = bytearray(path.read_bytes())
    damaged[-3] ^= 1
    path.write_bytes(damaged)
    with Broker(data_dir=data) as broker, pytest.raises(CorruptRecordError):  # the index was right, so none was read
        broker.records("events")


@pytest.mark.parametrize("rolls", [True, False])
def test_offsets_survive_a_restart_where_compaction_has_left_nothing(tmp_path: Path, rolls: bool) -> None:
    data = tmp_path / "data"
    with Broker(data_dir=data) as broker:
        broker.create_topic("table", configs={"cleanup.policy": "compact", "delete.retention.ms": 0})
        broker.append_many("table", [("k", None), ("l", None)])
        broker.roll("table")
        if not rolls:
            broker.append("table", "v", key="m")
        broker.compact()
        broker.compact()
        expected = broker.offsets("table")
        assert expected == ((0, 2, 2) if rolls else (0, 3, 3))
        assert [record.offset for record in broker.records("table")] == ([] if rolls else [2])
    with Broker(data_dir=data) as broker:
        assert broker.offsets("table") == expected
        assert broker.append("table", "v", key="n") == expected[2]


def test_compaction_lets_others_run_between_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaner, "_SLICE_S", 0.0)
    with Broker(data_dir=tmp_path / "data") as broker:
        broker.create_topic("table", configs={"cleanup.policy": "compact"})
        for number in range(60):
            broker.append_many("table", [(b"%d" % key, b"x" * 20) for key in range(number, number + 50)])
        broker.roll("table")

        async def compact() -> int:
            """Return how many passes of the event loop it took."""
            cluster = broker.cluster
            work = asyncio.ensure_future(cluster.service(cleaner.LogCleaner).compact(always=True))
            turns = 0
            while not work.done():
                await asyncio.sleep(0)
                turns += 1
            assert work.result() > 0
            return turns

        turns = asyncio.run_coroutine_threadsafe(compact(), broker.cluster.loop).result(60)
        assert turns > 60 + 60  # each batch is read twice, and what is left is written
        assert len(broker.records("table")) == 109


@pytest.mark.slow
def test_compaction_and_retention_hold_the_loop_for_less_than_20_ms() -> None:
    with Broker(topics={"events": 50}) as broker:
        broker.create_topic("table", configs={"cleanup.policy": "compact"})
        for number in range(3):  # batches of 20,000 records took 100 ms of the loop at one go
            broker.append_many("table", [(b"%d" % (key + number), b"x") for key in range(20_000)])
        broker.roll("table")
        for partition in range(50):
            for _ in range(10):
                broker.append("events", b"x", partition=partition)
                broker.run(lambda cluster, at=partition: cluster.topic("events").partitions[at].log.roll())
        broker.clock.freeze()
        cluster = broker.cluster
        log_cleaner = broker.run(lambda cluster: cluster.service(cleaner.LogCleaner))

        async def longest(work: Coroutine[Any, Any, object]) -> float:
            """Return the processor time of the longest pass of the event loop while the work is done."""
            task, most = asyncio.ensure_future(work), 0.0
            while not task.done():
                began = time.thread_time()
                await asyncio.sleep(0)
                most = max(most, time.thread_time() - began)
            await task
            return most

        def hold(work: Coroutine[Any, Any, object]) -> float:
            return asyncio.run_coroutine_threadsafe(longest(work), cluster.loop).result(60)

        assert hold(log_cleaner.compact(always=True)) < 0.02 * slowness()
        assert len(broker.records("table")) == 20_002
        broker.clock.advance(8 * 24 * 3600)
        assert hold(log_cleaner.apply_retention()) < 0.02 * slowness()
        assert broker.records("events") == []


def test_there_may_be_fewer_nodes_than_before(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(nodes=3, topics={"events": 3}, data_dir=data) as broker:
        for number in range(3):
            broker.append("events", b"%d" % number, partition=number)
    with Broker(nodes=1, data_dir=data) as broker:
        assert [broker.leader("events", number) for number in range(3)] == [1, 1, 1]
        assert [record.value for record in broker.records("events")] == [b"0", b"1", b"2"]


def test_a_deleted_topic_leaves_no_files(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(topics={"events": 2}, data_dir=data) as broker:
        broker.append("events", "a")
        broker.delete_topic("events")
        assert list((data / "topics").iterdir()) == []


def test_acknowledged_records_survive_kill_9(tmp_path: Path) -> None:
    data = tmp_path / "data"
    command = [
        sys.executable,
        "-m",
        "kafka",
        "broker",
        "--port",
        "0",
        "--topic",
        "events",
        "--data",
        str(data),
        "--fsync",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition(":")[2])
            with Wire(port) as client:
                for number in range(20):
                    part = client.ask(produce(batch(b"%d" % number))).responses[0].partition_responses[0]
                    assert part.base_offset == number
        finally:
            os.kill(process.pid, signal.SIGKILL)
    with Broker(data_dir=data) as broker:
        assert [record.value for record in broker.records("events")] == [b"%d" % number for number in range(20)]


def test_a_directory_is_used_by_one_broker_at_a_time(tmp_path: Path) -> None:
    other = Broker(data_dir=tmp_path / "data")
    with Broker(data_dir=tmp_path / "data"), pytest.raises(IllegalStateError, match="in use by another broker"):
        other.start()
    with Broker(data_dir=tmp_path / "data"):
        pass


def test_a_directory_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("data", encoding="utf-8")
    with pytest.raises(KafkaConfigurationError, match="not empty"):
        Broker(data_dir=tmp_path).start()
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "layout").write_text("purekafka broker data, layout 99\n", encoding="utf-8")
    with pytest.raises(KafkaConfigurationError, match="does not know: purekafka broker data, layout 99"):
        Broker(data_dir=newer).start()
    assert [path.name for path in newer.iterdir()] == ["layout"]
    with pytest.raises(KafkaConfigurationError, match="not a directory"):
        Broker(data_dir=tmp_path / "precious").start()


def test_a_full_disk_is_an_error_of_that_append_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(topics=["events"], data_dir=tmp_path / "data") as broker, wire(broker) as client:
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", _no_space)
            assert client.ask(produce(batch(b"lost"))).responses[0].partition_responses[0].error_code == 56
        part = client.ask(produce(batch(b"kept"))).responses[0].partition_responses[0]
        assert (part.error_code, part.base_offset) == (0, 0)
        assert [record.value for record in broker.records("events")] == [b"kept"]


def _no_space(*_args: object) -> int:
    raise OSError(28, "No space left on device")


def test_an_error_of_the_disk_ends_neither_compaction_nor_retention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    with Broker(data_dir=data) as broker:
        broker.clock.freeze()
        tables = ("first", "second")
        for topic in tables:
            broker.create_topic(topic, configs={"cleanup.policy": "compact"})
            broker.append_many(topic, [("k", "1"), ("k", "2")])
            broker.roll(topic)
        broker.create_topic("old", configs={"retention.ms": 1000})
        broker.append("old", "a")

        async def idle() -> None:
            while broker.cluster._tasks:
                await asyncio.sleep(0)

        def advance(seconds: float) -> None:
            broker.clock.advance(seconds)
            asyncio.run_coroutine_threadsafe(idle(), broker.cluster.loop).result(60)

        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", _no_space)
            unlink = Path.unlink
            patch.setattr(
                Path,
                "unlink",
                lambda path, **how: _no_space() if path.suffix == ".log" else unlink(path, **how),
            )
            advance(300)
        shown = [record.getMessage() for record in caplog.records if record.name == "kafka.broker"]
        assert sorted(text.split(":")[0] for text in shown) == [  # the partitions are cleaned beside each other
            "cannot apply the retention of old-0",
            "cannot compact first-0",
            "cannot compact second-0",
        ]
        assert all(text.endswith("No space left on device") for text in shown)
        assert [len(broker.records(topic)) for topic in tables] == [2, 2]
        broker.append("old", "b")
        advance(300)
        assert [len(broker.records(topic)) for topic in tables] == [1, 1]
        assert broker.records("old") == []
        assert not list(data.glob("topics/*/*.new"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here")
def test_only_the_segments_that_are_appended_to_are_open(tmp_path: Path) -> None:
    data = tmp_path / "data"

    def opened() -> list[str]:
        links = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
        return sorted(Path(link).name for link in links if link.startswith(str(data.resolve())) and ".log" in link)

    last = f"{5:020}.log"
    with Broker(topics=["events"], data_dir=data) as broker:
        for _ in range(5):
            broker.append("events", "a")
            broker.roll("events")
        assert len(broker.records("events")) == 5
        assert opened() == [last]
    with Broker(data_dir=data) as broker:
        assert opened() == [last]
        assert len(broker.records("events")) == 5
        assert opened() == [last]


def test_a_transaction_ends_when_the_disk_has_room_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        Broker(topics=["events"], data_dir=tmp_path / "data") as broker,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="moves") as producer,
    ):
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("events", b"a").get(30)
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", _no_space)
            producer.commit_transaction()
            assert broker.run(lambda cluster: cluster.topic("events").partitions[0].log.stable_offset) == 0
        producer.begin_transaction()  # waits until the one before has ended
        producer.send("events", b"b").get(30)
        producer.commit_transaction()
        assert [record.value for record in broker.records("events", committed=True)] == [b"a", b"b"]


def test_a_topic_has_all_its_partitions_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Path.mkdir

    def mkdir(path: Path, *args: Any, **how: Any) -> None:
        if path.name.endswith("-1"):
            _no_space()
        made(path, *args, **how)

    with Broker(topics=["events"], data_dir=tmp_path / "data") as broker, wire(broker) as client:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "mkdir", mkdir)
            (refused,) = client.ask(CreateTopicsRequest[5]([("orders", 2, 1, [], [])], 1000, False)).topics
            assert (refused.error_code, refused.error_message) == (
                KafkaStorageError.errno,
                "the log of orders-1 cannot be made: [Errno 28] No space left on device",
            )
            more = CreatePartitionsRequest[1]([("events", 3, None)], 1000, False)
            (full,) = client.ask(more).results
            assert full.error_code == KafkaStorageError.errno
        assert broker.run(lambda cluster: list(cluster.topics)) == ["events"]
        assert len(list(tmp_path.glob("data/topics/*"))) == 1
        broker.create_topic("orders", 2)
        assert client.ask(more).results[0].error_code == 0
        assert broker.append("orders", "a", partition=1) == broker.append("events", "a", partition=2) == 0
