"""TransactionManager against a scripted coordinator, under a clock that jumps: what is asked, when, and when again."""

from __future__ import annotations

import itertools
import struct
from collections import deque
from typing import Any

import pytest

from kafka.config import resolve
from kafka.errors import (
    AbortableTransactionError,
    FatalTransactionError,
    IllegalStateError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionAbortedError,
    TransactionalIdAuthorizationFailedError,
    TransactionOutcomeUnknownError,
)
from kafka.producer.core import ProducerCore
from kafka.producer.transaction_protocol import State
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.produce import ProduceResponse
from kafka.protocol.transaction import AddPartitionsToTxnResponse, TxnOffsetCommitResponse
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kafka.testing import HANG_UP, SILENCE, MemoryNetwork, ScriptedBroker

PARTITIONS = 20
NOT_LEADER = 6
PRODUCER_AT = 43  # in the header of a batch: id, epoch, first sequence number
STEPS = ["InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"]


class Coordinator:
    """A broker that is everything, and answers codes in the order in which a test lists them."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.broker = broker = ScriptedBroker(self.network, "b0")
        self.times: dict[str, list[float]] = {}
        self.script: dict[str, deque[Any]] = {}
        self.epoch = -1
        self.offset = 0
        broker.on("Metadata", self.metadata)
        broker.on("FindCoordinator", self.find_coordinator)
        for name, answer in (
            ("InitProducerId", self.init),
            ("AddPartitionsToTxn", self.add),
            ("AddOffsetsToTxn", self.plain),
            ("TxnOffsetCommit", self.offsets),
            ("EndTxn", self.plain),
            ("Produce", self.produce),
        ):
            broker.on(name, self.scripted(name, answer))

    def old(self) -> None:
        """Be as brokers before 2.5 are."""
        self.broker.ranges |= {0: (0, 8), 22: (0, 1), 24: (0, 1), 25: (0, 1), 26: (0, 1), 28: (0, 2)}

    def scripted(self, name: str, answer: Any) -> Any:
        def handle(request: Any, _session: Any) -> Any:
            self.times.setdefault(name, []).append(self.network.clock.monotonic())
            script = self.script.get(name)
            step = script.popleft() if script else 0
            return answer(request, step) if isinstance(step, int) else step

        return handle

    def metadata(self, _request: Any, _session: Any) -> Any:
        reply = MetadataResponse
        partitions = [
            reply.MetadataResponsePartition(partition_index=at, leader_id=0, replica_nodes=[0], isr_nodes=[0])
            for at in range(PARTITIONS)
        ]
        return {
            "brokers": [reply.MetadataResponseBroker(node_id=0, host="b0", port=9092, rack=None)],
            "controller_id": 0,
            "cluster_id": "c",
            "topics": [reply.MetadataResponseTopic(error_code=0, name="t", partitions=partitions)],
        }

    def find_coordinator(self, request: Any, _session: Any) -> Any:
        from kafka.protocol.commit import FindCoordinatorResponse

        fields = {"error_code": 0, "node_id": 0, "host": "b0", "port": 9092}
        if request.coordinator_keys:
            entry = FindCoordinatorResponse.Coordinator
            return {"coordinators": [entry(key=key, error_message=None, **fields) for key in request.coordinator_keys]}
        return fields

    def init(self, _request: Any, code: int) -> Any:
        self.epoch += not code
        return {"error_code": code, "producer_id": 7, "producer_epoch": self.epoch}

    def plain(self, _request: Any, code: int) -> Any:
        return {"error_code": code}

    def add(self, request: Any, code: int) -> Any:
        reply = AddPartitionsToTxnResponse
        topics = [
            reply.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    reply.AddPartitionsToTxnPartitionResult(partition_index=at, partition_error_code=code)
                    for at in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
        return {"results_by_topic_v3_and_below": topics}

    def offsets(self, request: Any, code: int) -> Any:
        reply = TxnOffsetCommitResponse
        topics = [
            reply.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    reply.TxnOffsetCommitResponsePartition(partition_index=entry.partition_index, error_code=code)
                    for entry in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return {"topics": topics}

    def produce(self, request: Any, code: int) -> Any:
        reply = ProduceResponse
        self.offset += 1
        topics = [
            reply.TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    reply.PartitionProduceResponse(index=each.index, error_code=code, base_offset=self.offset)
                    for each in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
        return {"responses": topics}

    def asked(self, api: str) -> list[Any]:
        return self.broker.asked(api)

    def names(self) -> list[str]:
        return [name for name, _, _ in self.broker.requests if name not in {"ApiVersions", "Metadata"}]


class Producer:
    """The core of a producer, driven by the test."""

    def __init__(self, coordinator: Coordinator, **configs: Any) -> None:
        configs = {"bootstrap_servers": "b0", "transactional_id": "id", "linger_ms": 0, "client_id": "p", **configs}
        self.core = ProducerCore(resolve("producer", configs), coordinator.network.environment())
        self.run(self.core.bootstrap())
        assert self.core.transactions is not None
        self.transactions = self.core.transactions
        self.topic = self.run(self.core.find_topic("t", self.core.now() + 10))

    def run(self, coro: Any, seconds: float = 1000.0) -> Any:
        return self.core.loop.run_until(self.core.loop.spawn(coro), self.core.now() + seconds)

    def start(self, coro: Any) -> Any:
        return self.core.loop.spawn(coro)

    def rest(self, seconds: float) -> None:
        self.run(self.core.loop.sleep(seconds), seconds + 1)

    def send(self, partition: int = 0, value: bytes = b"x") -> Any:
        batch, _ = self.core.accumulator.add(self.topic, self.topic.partitions[partition], (1, None, value, None))
        return batch

    def begin(self) -> None:
        self.run(self.transactions.begin())

    def commit(self) -> None:
        self.run(self.transactions.commit())

    def abort(self) -> None:
        self.run(self.transactions.abort())

    @property
    def state(self) -> State:
        return self.transactions.state


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def make(coordinator: Coordinator) -> Any:
    made: list[Producer] = []

    def make(**configs: Any) -> Producer:
        producer = Producer(coordinator, **configs)
        made.append(producer)
        producer.run(producer.transactions.init())
        return producer

    yield make
    for producer in made:
        producer.core.shut_down()
        producer.core.loop.close()
    assert not coordinator.network.open_sockets


def sequences(coordinator: Coordinator) -> list[tuple[int, int, int]]:
    """Partition, epoch and first sequence number of each batch that was sent."""
    found = []
    for request in coordinator.asked("Produce"):
        for topic in request.topic_data:
            for each in topic.partition_data:
                _, epoch, sequence = struct.unpack_from(">qhi", bytes(each.records), PRODUCER_AT)
                found.append((each.index, epoch, sequence))
    return found


def test_the_requests_of_a_transaction_come_in_order(coordinator, make):
    producer = make()
    producer.begin()
    producer.send()
    offsets = {TopicPartition("t", 0): OffsetAndMetadata(3, "", -1)}
    producer.run(producer.core.sender.flush())
    producer.run(producer.transactions.send_offsets(offsets, ConsumerGroupMetadata("g")))
    producer.commit()
    names = [name for name in coordinator.names() if name != "FindCoordinator"]
    assert names == ["InitProducerId", "AddPartitionsToTxn", "Produce", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"]


def test_partitions_are_added_together(coordinator, make):
    producer = make()
    producer.begin()
    for partition in range(PARTITIONS):
        producer.send(partition)
    producer.commit()
    asked = coordinator.asked("AddPartitionsToTxn")
    assert len(asked) <= 2
    assert sum(len(topic.partitions) for request in asked for topic in request.v3_and_below_topics) == PARTITIONS


def test_nothing_is_written_before_its_partition_is_added(coordinator, make):
    producer = make()
    coordinator.script["AddPartitionsToTxn"] = deque([14] * 5)
    producer.begin()
    producer.send()
    producer.commit()
    names = coordinator.names()
    assert names.index("Produce") > max(at for at, name in enumerate(names) if name == "AddPartitionsToTxn")


def test_markers_that_are_still_being_written_are_waited_for_briefly(coordinator, make):
    producer = make()
    coordinator.script["AddPartitionsToTxn"] = deque([51] * 4)
    producer.begin()
    producer.send()
    producer.commit()
    times = coordinator.times["AddPartitionsToTxn"]
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(waits) == 4
    assert waits == sorted(waits)
    assert waits[-1] < 0.1


@pytest.mark.parametrize("code", [7, 14, 15, 16])
@pytest.mark.parametrize(
    "api", ["InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"]
)
def test_a_coordinator_that_takes_minutes_is_waited_for_with_pauses(coordinator, make, api, code):
    coordinator.script[api] = deque([code] * 100)
    producer = make()
    producer.begin()
    producer.send()
    offsets = {TopicPartition("t", 0): OffsetAndMetadata(3, "", -1)}
    producer.run(producer.transactions.send_offsets(offsets, ConsumerGroupMetadata("g")))
    producer.commit()
    times = coordinator.times[api]
    assert len(times) == 101
    assert times[-1] - times[0] > 60, "without pauses"


@pytest.mark.parametrize("fate", [SILENCE, HANG_UP], ids=["silence", "hang up"])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_an_end_without_an_answer_is_repeated_and_the_next_transaction_has_another_epoch(coordinator, make, end, fate):
    producer = make()
    coordinator.script["EndTxn"] = deque([fate])
    producer.begin()
    producer.send()
    producer.run(producer.core.sender.flush())
    producer.run(getattr(producer.transactions, end)())
    assert len(coordinator.asked("EndTxn")) == 2
    producer.begin()
    producer.send()
    producer.commit()
    renewal = coordinator.asked("InitProducerId")[1]
    assert (renewal.producer_id, renewal.producer_epoch) == (7, 0)
    assert sequences(coordinator) == [(0, 0, 0), (0, 1, 0)]


def test_a_caller_whose_time_is_up_leaves_and_comes_back(coordinator, make):
    producer = make()
    coordinator.script["EndTxn"] = deque([14] * 50)
    producer.begin()
    producer.send()
    with pytest.raises(KafkaTimeoutError):
        producer.run(producer.transactions.commit(), seconds=1.0)
    assert producer.state is State.COMMITTING
    producer.commit()
    assert producer.state is State.READY
    assert len(coordinator.asked("EndTxn")) == 51, "the second call joined the first"


def test_two_callers_hear_the_same(coordinator, make):
    producer = make()
    producer.begin()
    producer.send()
    calls = [producer.start(producer.transactions.commit()) for _ in range(2)]
    for call in calls:
        producer.core.loop.run_until(call, producer.core.now() + 10)
    assert len(coordinator.asked("EndTxn")) == 1
    assert producer.state is State.READY


def test_a_fence_is_a_fence_while_there_is_time(coordinator, make):
    producer = make()
    producer.begin()
    producer.send()
    coordinator.script["EndTxn"] = deque([90])
    with pytest.raises(ProducerFencedError):
        producer.commit()
    assert producer.state is State.FAILED


def test_a_fence_after_the_time_may_be_the_coordinators_own(coordinator, make):
    producer = make(transaction_timeout_ms=5000)
    producer.begin()
    producer.send()
    producer.run(producer.core.sender.flush())
    producer.rest(6)
    coordinator.script["EndTxn"] = deque([90])
    with pytest.raises(AbortableTransactionError, match="transaction_timeout_ms"):
        producer.commit()
    producer.abort()
    asked = coordinator.asked("InitProducerId")[-1]
    assert (asked.producer_id, asked.producer_epoch) == (7, 1), "the epoch that the coordinator fenced with"
    assert len(coordinator.asked("EndTxn")) == 1, "it is aborted already"
    producer.begin()


def test_a_fence_after_the_time_that_is_another_producers(coordinator, make):
    producer = make(transaction_timeout_ms=5000)
    producer.begin()
    producer.send()
    producer.run(producer.core.sender.flush())
    producer.rest(6)
    coordinator.script["EndTxn"] = deque([90])
    coordinator.script["InitProducerId"] = deque([90])
    with pytest.raises(AbortableTransactionError):
        producer.commit()
    with pytest.raises(ProducerFencedError):
        producer.abort()


def test_a_transaction_the_coordinator_may_not_have_had_is_not_taken_for_late(coordinator, make):
    """Its next epoch could be the one that a newer producer has got."""
    producer = make(transaction_timeout_ms=5000)
    coordinator.script["AddPartitionsToTxn"] = deque([SILENCE, 90])
    producer.begin()
    producer.send()
    producer.run(producer.core.sender.flush())
    with pytest.raises(ProducerFencedError):
        producer.commit()


@pytest.mark.parametrize("code", [47, 48, 90, 53, -1])
def test_a_refusal_after_a_lost_answer_leaves_the_outcome_unknown(coordinator, make, code):
    producer = make()
    coordinator.script["EndTxn"] = deque([HANG_UP, code])
    producer.begin()
    producer.send()
    with pytest.raises(TransactionOutcomeUnknownError):
        producer.commit()
    assert producer.state is State.FAILED


def test_sequence_numbers_continue_after_a_clean_abort(coordinator, make):
    producer = make()
    producer.begin()
    producer.send()
    producer.run(producer.core.sender.flush())
    producer.abort()
    producer.begin()
    producer.send()
    producer.commit()
    assert sequences(coordinator) == [(0, 0, 0), (0, 0, 1)]
    assert len(coordinator.asked("InitProducerId")) == 1


def test_a_batch_that_was_refused_is_a_gap_that_takes_another_epoch(coordinator, make):
    producer = make()
    coordinator.script["Produce"] = deque([0, 29])
    producer.begin()
    producer.send()
    producer.run(producer.core.sender.flush())
    producer.send()
    producer.run(producer.core.sender.flush())
    producer.abort()
    producer.begin()
    producer.send()
    producer.commit()
    assert sequences(coordinator) == [(0, 0, 0), (0, 0, 1), (0, 1, 0)]


def test_after_a_commit_with_an_attempt_without_an_answer_the_next_transaction_has_another_epoch(coordinator, make):
    producer = make()
    coordinator.script["Produce"] = deque([SILENCE])
    for _ in range(2):
        producer.begin()
        producer.send()
        producer.commit()
    assert sequences(coordinator) == [(0, 0, 0), (0, 0, 0), (0, 1, 0)]


def test_before_2_5_the_number_of_a_refused_batch_is_used_again(coordinator, make):
    coordinator.old()
    producer = make()
    coordinator.script["Produce"] = deque([0, 29])
    producer.begin()
    for _ in range(2):
        producer.send()
        producer.run(producer.core.sender.flush())
    producer.abort()
    producer.begin()
    producer.send()
    producer.commit()
    assert sequences(coordinator) == [(0, 0, 0), (0, 0, 1), (0, 0, 1)]
    assert len(coordinator.asked("InitProducerId")) == 1


def test_before_2_5_nothing_continues_after_a_batch_with_an_unknown_outcome(coordinator, make):
    coordinator.old()
    producer = make(delivery_timeout_ms=35_000)
    coordinator.script["Produce"] = deque([SILENCE] * 3)
    producer.begin()
    producer.send()
    producer.run(producer.core.sender.flush())
    with pytest.raises(FatalTransactionError, match=r"2\.5"):
        producer.abort()


def test_a_lost_id_is_requested_again_without_an_end(coordinator, make):
    producer = make()
    coordinator.script["AddPartitionsToTxn"] = deque([49])
    producer.begin()
    batch = producer.send()
    producer.run(producer.core.sender.flush())
    assert isinstance(batch.outcome, TransactionAbortedError)
    assert "InvalidProducerIdMapping" in str(batch.outcome), "where causes are not shown, as in Spark"
    producer.abort()
    assert coordinator.asked("EndTxn") == []
    assert coordinator.asked("InitProducerId")[-1].producer_id == 7
    producer.begin()
    producer.send()
    producer.commit()


def test_an_abort_does_not_wait_for_the_linger_nor_send_what_waits(coordinator, make):
    producer = make(linger_ms=20_000)
    producer.begin()
    batch = producer.send()
    producer.abort()
    assert isinstance(batch.outcome, TransactionAbortedError)
    assert coordinator.asked("Produce") == []


def test_an_abort_waits_for_the_answer_to_what_was_sent(coordinator, make):
    producer = make()
    coordinator.script["Produce"] = deque([SILENCE])
    producer.begin()
    batch = producer.send()
    producer.rest(1)
    started = producer.core.now()
    producer.abort()
    assert isinstance(batch.outcome, TransactionAbortedError)
    assert producer.core.now() - started >= 25, "until request_timeout_ms"
    names = coordinator.names()
    assert names.index("EndTxn") > names.index("Produce")


def test_an_abort_gives_up_the_batches_that_were_to_be_sent_again(coordinator, make):
    """The first batch is to be sent again, once the second is answered: that is when the abort is under way."""
    producer = make()
    producer.begin()
    producer.send()
    producer.run(producer.core.sender.flush())
    coordinator.script["Produce"] = deque([NOT_LEADER, SILENCE])
    batches = [producer.send(value=b"x" * 20_000) for _ in range(2)]
    producer.rest(1)
    assert len(coordinator.asked("Produce")) == 3
    producer.abort()
    assert [type(batch.outcome) for batch in batches] == [TransactionAbortedError] * 2
    producer.begin()
    producer.send()
    producer.commit()
    assert len(coordinator.asked("Produce")) == 4


def test_between_transactions_no_request_is_sent(coordinator, make):
    producer = make()
    producer.begin()
    producer.send()
    producer.commit()
    asked = coordinator.names()
    producer.rest(60)
    assert coordinator.names() == asked


def test_between_two_transactions_another_id_is_taken_over_and_numbers_restart(coordinator, make):
    producer = make()
    for name in ("id", "other", "other"):
        producer.run(producer.transactions.take_over(name))
        producer.begin()
        producer.send()
        producer.commit()
    asked = coordinator.asked("InitProducerId")
    assert [each.transactional_id for each in asked] == ["id", "id", "other", "other"]
    assert {each.producer_id for each in asked} == {-1}, "as a producer that was just made"
    assert [each.transactional_id for each in coordinator.asked("EndTxn")] == ["id", "other", "other"]
    assert sequences(coordinator) == [(0, 1, 0), (0, 2, 0), (0, 3, 0)]


def test_an_id_is_taken_over_when_the_last_transaction_s_epoch_is_there(coordinator, make):
    producer = make()
    coordinator.script["EndTxn"] = deque([SILENCE])
    producer.begin()
    producer.send()
    coordinator.script["InitProducerId"] = deque([14] * 5)
    producer.commit()
    producer.run(producer.transactions.take_over("other"))
    *renewals, taken = coordinator.asked("InitProducerId")[1:]
    assert {(each.transactional_id, each.producer_id) for each in renewals} == {("id", 7)}
    assert (taken.transactional_id, taken.producer_id) == ("other", -1)


def test_an_id_that_is_refused_can_be_asked_for_again(coordinator, make):
    producer = make()
    coordinator.script["InitProducerId"] = deque([53])
    with pytest.raises(TransactionalIdAuthorizationFailedError):
        producer.run(producer.transactions.take_over("other"))
    producer.run(producer.transactions.take_over("mine"))
    assert producer.state is State.READY
    assert coordinator.asked("InitProducerId")[-1].transactional_id == "mine"


def test_open_batches_are_whole_ones(coordinator, make):
    producer = make()
    producer.begin()
    producer.send()
    assert producer.run(producer.transactions.leave_open()) == (("id", 7, 0), False)
    assert len(coordinator.asked("Produce")) == 1
    assert not coordinator.asked("EndTxn")


def test_cut_batches_are_not_left_open(coordinator, make):
    producer = make()
    coordinator.script["Produce"] = deque([10])  # the record is too large
    producer.begin()
    producer.send()
    with pytest.raises(AbortableTransactionError):
        producer.run(producer.transactions.leave_open())
    producer.abort()
    with pytest.raises(IllegalStateError, match="no transaction is open"):
        producer.run(producer.transactions.leave_open())


def test_a_search_without_success_raises_the_last_refusal(coordinator, make):
    producer = make()
    coordinator.script["InitProducerId"] = deque([14] * 1000)
    with pytest.raises(KafkaTimeoutError):
        producer.run(producer.transactions.take_over("other"), seconds=30.0)
    error = producer.transactions.coordinator.timeout_error("taking over", 30.0)
    assert str(error).startswith("taking over took longer than 30 seconds: getting a producer id: [Error 14]")


@pytest.mark.parametrize(
    ("end", "other", "outcome"), [("commit", "abort", "committed"), ("abort", "commit", "aborted")]
)
def test_an_end_whose_caller_was_interrupted_can_be_repeated_and_the_other_end_is_refused(make, end, other, outcome):
    producer = make()
    producer.begin()
    producer.begin()  # the caller of the first one was interrupted
    producer.send()
    getattr(producer, end)()
    getattr(producer, end)()
    with pytest.raises(IllegalStateError, match=rf"{end}_transaction\(\), which was interrupted, .* is {outcome}$"):
        getattr(producer, other)()
    producer.transactions.received(f"{end}_transaction()")
    for each in (end, other):
        with pytest.raises(IllegalStateError, match="no transaction is open"):
            getattr(producer, each)()
    producer.begin()
    producer.transactions.received("begin_transaction()")
    with pytest.raises(IllegalStateError, match="a transaction is open"):
        producer.begin()


def test_another_id_is_taken_over_although_the_caller_of_the_last_take_over_was_interrupted(coordinator, make):
    producer = make()
    for name in ("other", "another"):
        producer.run(producer.transactions.take_over(name))
    assert coordinator.asked("InitProducerId")[-1].transactional_id == "another"
