"""Transactions over TCP: markers, timeouts on the pushed clock, and what readers of committed records see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafka.broker import Broker
from kafka.protocol.offset import ListOffsetsRequest
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.transaction import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from kafka.record.batch_builder import BatchBuilder
from test.embedded.broker.wire import Wire

INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, PRODUCER_FENCED, NOT_LEADER_OR_FOLLOWER = 47, 48, 90, 6


def start(wire: Wire) -> tuple[int, int]:
    reply = wire.ask(InitProducerIdRequest[5](transactional_id="x", transaction_timeout_ms=30000))
    assert reply.error_code == 0
    return reply.producer_id, reply.producer_epoch


def produce(
    wire: Wire, who: tuple[int, int], sequence: int = 0, version: int = 12, *, transactional: bool = True
) -> int:
    builder = BatchBuilder(limit=10_000)
    builder.append(1_700_000_000_000, None, b"value")
    batch = builder.seal(producer_id=who[0], producer_epoch=who[1], base_sequence=sequence, transactional=transactional)
    part = ProduceRequest[version].PartitionProduceData(index=0, records=batch.data)
    data = ProduceRequest[version].TopicProduceData(name="t", partition_data=[part])
    reply = wire.ask(ProduceRequest[version](transactional_id="x", acks=-1, timeout_ms=1000, topic_data=[data]))
    return int(reply.responses[0].partition_responses[0].error_code)


def stable_offset(wire: Wire) -> int:
    request = ListOffsetsRequest[7](replica_id=-1, isolation_level=1, topics=[("t", [(0, -1, -1)])])
    return int(wire.ask(request).topics[0].partitions[0].offset)


def test_committed_records_are_seen_when_the_marker_is_there() -> None:
    with Broker(topics={"t": 1}) as broker, Wire(broker.port()) as wire:
        who = start(wire)
        assert produce(wire, who) == 0
        assert stable_offset(wire) == 0
        reply = wire.ask(EndTxnRequest[5]("x", *who, True))
        assert (reply.error_code, reply.producer_epoch) == (0, who[1] + 1)
        assert stable_offset(wire) == 2


def test_a_transaction_times_out_on_the_broker_s_clock() -> None:
    with Broker(topics={"t": 1}) as broker, Wire(broker.port()) as wire:
        who = start(wire)
        produce(wire, who)
        broker.clock.advance(31)
        assert stable_offset(wire) == 2
        state = wire.ask(DescribeTransactionsRequest[0](["x"])).transaction_states[0]
        assert state.transaction_state == "CompleteAbort"
        assert wire.ask(EndTxnRequest[4]("x", *who, True)).error_code == PRODUCER_FENCED
        assert wire.ask(EndTxnRequest[5]("x", *who, True)).error_code == 48  # INVALID_TXN_STATE, as Kafka has it
        assert produce(wire, who, 1) == INVALID_PRODUCER_EPOCH


def test_writes_that_were_not_announced_are_refused_before_version_two() -> None:
    with Broker(topics={"t": 1}) as broker, Wire(broker.port()) as wire:
        who = start(wire)
        assert produce(wire, who, version=11) == 120  # TRANSACTION_ABORTABLE
        assert produce(wire, who, version=9) == 48  # INVALID_TXN_STATE


def test_a_partition_that_is_not_in_the_open_transaction_is_refused() -> None:
    with Broker(topics={"t": 1}) as broker, Wire(broker.port()) as wire:
        who = start(wire)
        assert produce(wire, who) == 0
        assert produce(wire, who, 1, transactional=False) == INVALID_TXN_STATE  # as Kafka has it
        assert produce(wire, who, 1) == 0
        assert wire.ask(EndTxnRequest[5]("x", *who, True)).error_code == 0


def test_in_version_two_a_producer_begins_with_its_first_batch() -> None:
    # Kafka: OUT_OF_ORDER_SEQUENCE_NUMBER, since the batches before it were lost.
    with Broker(topics={"t": 1}) as broker, Wire(broker.port()) as wire:
        who = start(wire)
        assert produce(wire, who, 7) == 45
        assert produce(wire, who, 0) == 0
        assert produce(wire, (999, 0), 7, transactional=False) == 0  # an idempotent one may begin anywhere


def test_markers_wait_for_a_leader() -> None:
    with Broker(nodes=2) as broker:
        broker.create_topic("t", replication_factor=1)
        leader = broker.leader("t")
        with Wire(broker.port(leader)) as wire:
            who = _start_anywhere(broker)
            assert produce(wire, who) == 0
        broker.stop_node(leader)
        other = next(node for node in broker.node_ids if node != leader)
        with Wire(broker.port(other)) as wire:
            assert wire.ask(EndTxnRequest[5]("x", *who, True)).error_code == 0
            state = wire.ask(DescribeTransactionsRequest[0](["x"])).transaction_states[0]
            assert state.transaction_state == "PrepareCommit"
        broker.start_node(leader)
        broker.clock.advance(1)
        with Wire(broker.port(leader)) as wire:
            assert stable_offset(wire) == 2


def _start_anywhere(broker: Broker) -> tuple[int, int]:
    for node in broker.node_ids:
        with Wire(broker.port(node)) as wire:
            reply = wire.ask(InitProducerIdRequest[5](transactional_id="x", transaction_timeout_ms=30000))
            if reply.error_code == 0:
                return reply.producer_id, reply.producer_epoch
    raise AssertionError("no coordinator")


def test_an_open_transaction_is_there_again_after_a_restart(tmp_path: Path) -> None:
    with Broker(topics={"t": 1}, data_dir=tmp_path) as broker, Wire(broker.port()) as wire:
        who = start(wire)
        assert produce(wire, who) == 0
        offsets: Any = TxnOffsetCommitRequest[5](
            transactional_id="x", group_id="g", producer_id=who[0], producer_epoch=who[1]
        )
        offsets.topics = [("t", [(0, 5, -1, "")])]
        assert wire.ask(offsets).topics[0].partitions[0].error_code == 0
    with Broker(data_dir=tmp_path) as broker, Wire(broker.port()) as wire:
        assert stable_offset(wire) == 0
        assert wire.ask(EndTxnRequest[5]("x", *who, True)).error_code == 0
        assert stable_offset(wire) == 2


def test_an_ended_transaction_is_described_with_its_start() -> None:
    with Broker(topics={"t": 1}) as broker, Wire(broker.port()) as wire:
        broker.clock.freeze()
        who = start(wire)
        assert wire.ask(DescribeTransactionsRequest[0](["x"])).transaction_states[0].transaction_start_time_ms == -1
        began = broker.run(lambda cluster: cluster.clock.now_ms())
        produce(wire, who)
        broker.clock.advance(5)
        assert wire.ask(EndTxnRequest[5]("x", *who, True)).error_code == 0
        state = wire.ask(DescribeTransactionsRequest[0](["x"])).transaction_states[0]
        assert (state.transaction_state, state.transaction_start_time_ms) == ("CompleteCommit", began)


def test_every_replica_describes_its_producers() -> None:
    with Broker(nodes=3) as broker:
        broker.create_topic("t", 1, replication_factor=2)
        broker.move_leader(("t", 0), 1)
        with Wire(broker.port(1)) as wire:
            assert produce(wire, start_anywhere(broker), transactional=False) == 0
        codes, producers = {}, {}
        replicas = broker.run(lambda cluster: list(cluster.partition("t", 0).replicas))
        for node in (1, 2, 3):
            with Wire(broker.port(node)) as wire:
                part = wire.ask(DescribeProducersRequest[0]([("t", [0])])).topics[0].partitions[0]
            codes[node], producers[node] = part.error_code, len(part.active_producers)
        assert codes == {node: 0 if node in replicas else NOT_LEADER_OR_FOLLOWER for node in (1, 2, 3)}
        assert all(producers[node] == 1 for node in replicas)


def start_anywhere(broker: Broker) -> tuple[int, int]:
    """An idempotent producer without transactions."""
    with Wire(broker.port()) as wire:
        reply = wire.ask(InitProducerIdRequest[5](transactional_id=None, transaction_timeout_ms=30000))
        return reply.producer_id, reply.producer_epoch
