"""What is asked of both brokers about transactions: each function is one script."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kafka.protocol.commit import FindCoordinatorRequest, OffsetFetchRequest
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
)
from kafka.record.batch_builder import BatchBuilder

from . import group_scripts
from .group_scripts import full_join, join, subscription, sync
from .script import Connection, Script

CONCURRENT = 51


def prepare(script: Script, *topics: tuple[str, int]) -> None:
    """Create topics, and have the transaction coordinator come up, as it does when it is first looked for."""
    group_scripts.prepare(script, *topics)
    script.wait(
        script.connect(),
        lambda: FindCoordinatorRequest[2](key="any", key_type=1),
        lambda reply: reply.error_code == 0,
    )


def init(
    script: Script,
    here: Connection,
    name: str | None,
    *,
    version: int = 5,
    pid: int = -1,
    epoch: int = -1,
    timeout: int = 60000,
) -> Any:
    """Get a producer id, trying again while an older transaction is being aborted."""

    def make() -> InitProducerIdRequest:
        request = InitProducerIdRequest[version](transactional_id=name, transaction_timeout_ms=timeout)
        if version >= 3:
            request.producer_id, request.producer_epoch = pid, epoch
        return request

    # 15, 16: the coordinator's partition is still being loaded at a fresh broker.
    return script.until(here, make, lambda reply: reply.error_code not in (CONCURRENT, 14, 15, 16))


def add(script: Script, here: Connection, name: str, who: Any, topics: Any, *, version: int = 3) -> Any:
    def make() -> AddPartitionsToTxnRequest:
        request = AddPartitionsToTxnRequest[version]()
        request.v3_and_below_transactional_id = name
        request.v3_and_below_producer_id, request.v3_and_below_producer_epoch = who
        request.v3_and_below_topics = list(topics)
        return request

    def settled(reply: Any) -> bool:
        return all(
            part.partition_error_code != CONCURRENT
            for topic in reply.results_by_topic_v3_and_below
            for part in topic.results_by_partition
        )

    return script.until(here, make, settled)


def end(script: Script, here: Connection, name: str, who: Any, commit: bool, *, version: int = 5) -> Any:
    return script.until(
        here,
        lambda: EndTxnRequest[version](name, who[0], who[1], commit),
        lambda reply: reply.error_code != CONCURRENT,
    )


def produce(
    script: Script, here: Connection, name: str | None, who: Any, sequence: int, topic: str, *, version: int = 12
) -> Any:
    def make() -> ProduceRequest:
        builder = BatchBuilder(limit=10_000)
        builder.append(int(time.time() * 1000), None, b"value")  # an old one would be deleted
        batch = builder.seal(
            producer_id=who[0], producer_epoch=who[1], base_sequence=sequence, transactional=name is not None
        )
        part = ProduceRequest[version].PartitionProduceData(index=0, records=batch.data)
        data = ProduceRequest[version].TopicProduceData(name=topic, partition_data=[part])
        return ProduceRequest[version](transactional_id=name, acks=-1, timeout_ms=30000, topic_data=[data])

    def settled(reply: Any) -> bool:
        codes = [part.error_code for each in reply.responses for part in each.partition_responses]
        return not {CONCURRENT, 19} & set(codes)

    reply = None
    deadline = time.monotonic() + 20
    while reply is None or not (settled(reply) or time.monotonic() > deadline):
        reply = here.ask(make())
        time.sleep(0.02)
    codes = [(part.error_code, part.base_offset) for each in reply.responses for part in each.partition_responses]
    script.notes.append(f"produced {codes}")
    return reply


def look(script: Script, here: Connection, topic: str, until: int | None = None) -> None:
    """Note what a reader of committed records sees, once the last stable offset is ``until``."""
    deadline = time.monotonic() + 20
    while True:
        request = FetchRequest[11](max_wait_ms=10, min_bytes=0, max_bytes=100000, isolation_level=1)
        request.replica_id = -1
        request.session_id, request.session_epoch = 0, -1
        part = FetchRequest[11].FetchPartition(
            partition=0, fetch_offset=0, log_start_offset=-1, partition_max_bytes=100000, current_leader_epoch=-1
        )
        request.topics = [FetchRequest[11].FetchTopic(topic=topic, partitions=[part])]
        request.rack_id = ""
        data = here.ask(request).responses[0].partitions[0]
        if until is None or data.last_stable_offset >= until or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    aborted = [each.first_offset for each in data.aborted_transactions or []]
    script.notes.append(f"hw {data.high_watermark} lso {data.last_stable_offset} aborted {aborted}")


def describe(script: Script, here: Connection, *names: str) -> None:
    """Note transactions, once none of them is between decision and completion."""
    script.until(
        here,
        lambda: DescribeTransactionsRequest[0](list(names)),
        lambda reply: not any(each.transaction_state.startswith("Prepare") for each in reply.transaction_states),
    )


def offset_commit(
    name: str, group: str, who: Any, topic: str, offset: int, *, version: int = 5, member: Any = (-1, "", None)
) -> TxnOffsetCommitRequest:
    request = TxnOffsetCommitRequest[version](
        transactional_id=name, group_id=group, producer_id=who[0], producer_epoch=who[1]
    )
    if version >= 3:
        request.generation_id, request.member_id, request.group_instance_id = member
    request.topics = [(topic, [(0, offset, -1, "")])]
    return request


def pids(script: Script) -> None:
    prepare(script)
    here = script.connect()
    for version in range(6):
        init(script, here, None, version=version)
    init(script, here, "")
    init(script, here, "x1", timeout=0)
    init(script, here, "x1", timeout=-1)
    init(script, here, "x1", timeout=100_000_000)
    init(script, here, "x1", pid=5)
    init(script, here, "x1", epoch=5)
    first = init(script, here, "x1")
    init(script, here, "x1")
    again = init(script, here, "x1", pid=first.producer_id, epoch=first.producer_epoch + 1)
    init(script, here, "x1", pid=first.producer_id, epoch=first.producer_epoch + 1)
    init(script, here, "x1", pid=first.producer_id, epoch=first.producer_epoch)
    init(script, here, "x1", pid=first.producer_id, epoch=first.producer_epoch, version=3)
    init(script, here, "x1", pid=first.producer_id + 1000, epoch=again.producer_epoch)
    describe(script, here, "x1", "nope", "")


def version_one(script: Script) -> None:
    prepare(script, ("x", 2))
    here = script.connect()
    first = init(script, here, "x2", version=3)
    who = (first.producer_id, first.producer_epoch)
    end(script, here, "x2", who, True, version=4)
    end(script, here, "x2", who, False, version=4)
    produce(script, here, "x2", who, 0, "x", version=9)
    produce(script, here, "x2", who, 0, "x", version=11)
    add(script, here, "x2", who, [("x", [0, 7]), ("nope", [0])])
    add(script, here, "nope", who, [("x", [0])])
    add(script, here, "x2", (who[0] + 1000, who[1]), [("x", [0])])
    add(script, here, "x2", (who[0], who[1] + 1), [("x", [0])])
    add(script, here, "x2", (who[0], who[1] + 1), [("x", [0])], version=1)
    add(script, here, "x2", who, [("x", [0, 1])])
    describe(script, here, "x2")
    produce(script, here, "x2", who, 0, "x", version=9)
    look(script, here, "x")
    script.ask(here, DescribeProducersRequest[0]([("x", [0])]), note=False)
    end(script, here, "x2", (who[0], who[1] + 1), True, version=4)
    end(script, here, "x2", (who[0], who[1] + 1), True, version=1)
    end(script, here, "x2", (who[0] + 1000, who[1]), True, version=4)
    end(script, here, "nope", who, True, version=4)
    end(script, here, "", who, True, version=4)
    end(script, here, "x2", who, True, version=4)
    look(script, here, "x", until=2)
    describe(script, here, "x2")
    end(script, here, "x2", who, True, version=4)
    end(script, here, "x2", who, False, version=4)
    add(script, here, "x2", who, [("x", [0])])
    produce(script, here, "x2", who, 1, "x", version=9)
    end(script, here, "x2", who, False, version=4)
    look(script, here, "x", until=4)
    end(script, here, "x2", who, False, version=4)
    end(script, here, "x2", who, True, version=4)
    describe(script, here, "x2")


def version_two(script: Script) -> None:
    prepare(script, ("y", 2))
    here = script.connect()
    first = init(script, here, "x3")
    who = (first.producer_id, first.producer_epoch)
    end(script, here, "x3", who, True)
    produce(script, here, "x3", who, 0, "y")
    describe(script, here, "x3")
    script.ask(here, AddOffsetsToTxnRequest[4]("x3", who[0], who[1], "xg"))
    reply = end(script, here, "x3", who, True)
    look(script, here, "y", until=2)
    end(script, here, "x3", who, True)
    end(script, here, "x3", who, False)
    who = (reply.producer_id, reply.producer_epoch)
    end(script, here, "x3", who, True)
    reply = end(script, here, "x3", who, False)
    who = (reply.producer_id, reply.producer_epoch)
    describe(script, here, "x3")
    produce(script, here, "x3", (who[0], who[1] - 1), 0, "y")
    produce(script, here, "x3", who, 0, "y")
    reply = end(script, here, "x3", who, False)
    look(script, here, "y", until=4)
    who = (reply.producer_id, reply.producer_epoch)
    produce(script, here, "x3", who, 0, "y")
    reply = init(script, here, "x3")
    look(script, here, "y", until=6)
    produce(script, here, "x3", who, 1, "y")
    end(script, here, "x3", who, True)
    describe(script, here, "x3")


def listed(script: Script) -> None:
    prepare(script, ("z", 1))
    here = script.connect()
    one, two = init(script, here, "list-1"), init(script, here, "list-2")
    produce(script, here, "list-2", (two.producer_id, two.producer_epoch), 0, "z")

    def note(**filters: Any) -> None:
        reply = here.ask(ListTransactionsRequest[2](duration_filter=-1, **filters))
        found = [
            (each.transactional_id, each.transaction_state)
            for each in reply.transaction_states
            if each.transactional_id.startswith("list-")
        ]
        script.notes.append(str((reply.error_code, reply.unknown_state_filters, sorted(found))))

    note()
    note(state_filters=["Ongoing", "Nonsense"])
    note(state_filters=["Empty"])
    note(producer_id_filters=[one.producer_id])
    note(transactional_id_pattern="list-[12]")
    note(transactional_id_pattern=".*2")
    note(transactional_id_pattern="list")
    note(transactional_id_pattern="")
    note(transactional_id_pattern="(")
    end(script, here, "list-2", (two.producer_id, two.producer_epoch), False)


def offsets_in_transactions(script: Script) -> None:
    prepare(script, ("w", 1))
    here = script.connect()
    first = init(script, here, "x4", version=3)
    who = (first.producer_id, first.producer_epoch)
    script.ask(here, offset_commit("x4", "wg", who, "w", 5, version=3))
    script.ask(here, offset_commit("x4", "wg", who, "w", 5, version=4))
    script.ask(here, AddOffsetsToTxnRequest[3]("x4", who[0], who[1], "wg"))
    script.ask(here, offset_commit("x4", "wg", who, "w", 5, version=3))
    script.ask(here, offset_commit("x4", "wg", who, "nope", 5, version=3))
    script.ask(here, offset_commit("x4", "wg", (who[0], who[1] + 1), "w", 5, version=3))
    script.ask(here, offset_commit("x4", "wg", (who[0] + 1000, who[1]), "w", 5, version=3))
    describe(script, here, "x4")

    def fetched(stable: bool) -> None:
        request = OffsetFetchRequest[7](group_id="wg", topics=[("w", [0])], require_stable=stable)
        if stable:
            script.ask(here, request)
        else:
            script.until(here, lambda: request, lambda reply: True)

    fetched(False)
    fetched(True)
    end(script, here, "x4", who, True, version=4)
    script.until(
        here,
        lambda: OffsetFetchRequest[7](group_id="wg", topics=[("w", [0])], require_stable=True),
        lambda reply: reply.topics[0].partitions[0].error_code == 0,
    )
    first = init(script, here, "x4")
    who = (first.producer_id, first.producer_epoch)
    script.ask(here, offset_commit("x4", "wg", who, "w", 9))
    fetched(True)
    describe(script, here, "x4")
    reply = end(script, here, "x4", who, False)
    script.until(
        here,
        lambda: OffsetFetchRequest[7](group_id="wg", topics=[("w", [0])], require_stable=True),
        lambda reply: reply.topics[0].partitions[0].error_code == 0,
    )
    who = (reply.producer_id, reply.producer_epoch)
    # The offsets are stable before the coordinator has noted that the transaction has ended.
    script.until(
        here,
        lambda: offset_commit("x4", "wg", who, "w", 9, member=(1, "nobody", None)),
        lambda reply: reply.topics[0].partitions[0].error_code != CONCURRENT,
    )
    script.ask(here, offset_commit("x4", "wg", who, "w", 9, member=(-1, "nobody", None)))
    member = full_join(script, here, "wg2", protocols=[("range", subscription("w"))])
    me, generation = member.member_id, member.generation_id
    script.ask(here, offset_commit("x4", "wg2", who, "w", 9, member=(generation, me, None)))
    script.ask(here, sync("wg2", generation, me, [(me, b"")]))
    script.ask(here, offset_commit("x4", "wg2", who, "w", 9, member=(generation, me, None)))
    script.ask(here, offset_commit("x4", "wg2", who, "w", 9, member=(generation + 1, me, None)))
    script.ask(here, offset_commit("x4", "wg2", who, "w", 9, member=(generation, me, "i")))
    script.ask(here, offset_commit("x4", "wg2", who, "w", 9, member=(generation, "nobody", None)))
    script.ask(here, offset_commit("x4", "wg2", who, "w", 9))
    script.ask(here, join("wg2", me, protocols=[("range", subscription("w"))]))
    end(script, here, "x4", who, True)


def timed_out(script: Script) -> None:
    """A transaction that its producer leaves open is aborted by the coordinator, and the producer is fenced."""
    prepare(script, ("late", 1))
    here = script.connect()
    for name in ("t1", "t2"):
        granted = init(script, here, name, timeout=1000)
        who = granted.producer_id, granted.producer_epoch
        add(script, here, name, who, [("late", [0])])
        produce(script, here, name, who, 0, "late")
    look(script, here, "late", until=4)  # a record and a marker of each
    describe(script, here, "t1", "t2")
    end(script, here, "t2", who, True)
    end(script, here, "t2", who, False)
    add(script, here, "t2", who, [("late", [0])], version=3)
    produce(script, here, "t2", who, 1, "late")
    again = init(script, here, "t2", timeout=60000)
    who = again.producer_id, again.producer_epoch
    add(script, here, "t2", who, [("late", [0])])
    produce(script, here, "t2", who, 0, "late")
    end(script, here, "t2", who, True)
    look(script, here, "late", until=6)
    describe(script, here, "t2")


TRANSACTION_SCRIPTS: list[Callable[[Script], None]] = [
    timed_out,
    pids,
    version_one,
    version_two,
    listed,
    offsets_in_transactions,
]
