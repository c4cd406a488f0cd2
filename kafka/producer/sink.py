"""The requests to one broker: the queue of partitions that have a batch to send, and the requests in flight.

A partition waits there once, at the end, so that none starves; a request takes one batch of each in turn, up to
max_request_size. The partition decides whether it may send, and what an answer means for it.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka._core.client import PRODUCE
from kafka.errors import Code, KafkaError, KafkaProtocolError, UnknownBrokerIdError, UnsupportedVersionError, for_code
from kafka.producer.produce_request import OLDEST, Written, read_reply, request_type
from kafka.producer.producer_batch import NOT_ACKNOWLEDGED, Delivered, ProduceOutcome, ProducerBatch, classify
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.types import Gathered
from kafka.structs import BrokerMetadata

if TYPE_CHECKING:
    from kafka._core.topology import Topology
    from kafka.net.connection import Connection
    from kafka.producer.partition import Partition
    from kafka.producer.sender import Sender
    from kafka.protocol.fields import Buffer
    from kafka.protocol.negotiation import ApiVersions
    from kafka.protocol.produce import ProduceResponse
    from kafka.record.batch_builder import SealedBatch
    from kafka.record.message_v0_v1 import SealedMessages

__all__ = ["Sink", "on_the_wire"]

log = logging.getLogger(__name__)

#: From this many bytes on, joining a batch's header and body costs more than one more piece for the socket.
_WORTH_TWO_PIECES: Final = 8 << 10

#: Topics by the number of their id: to hash and compare ids themselves calls Python functions.
_Names = dict[int, str]


class Sink:
    """The requests to one broker. See the head of this module."""

    def __init__(self, node_id: int, sender: Sender) -> None:
        self.node_id = node_id
        self.waiting: deque[Partition] = deque()
        self.in_flight = 0
        self.stalled_since: float | None = None
        """Since when there is something to send and nothing is sent."""
        self._sender = sender
        self._client = sender.client
        self._loop = sender.loop
        self._pump_due = False
        self._opening = False
        self._throttled = False
        """A timer is set for the end of a throttle."""
        self._link: Connection | None = None
        """The connection to the broker, as asked for with `_topology`; while it is not ready it is asked for again."""
        self._topology: Topology | None = None
        self._versions: ApiVersions | None = None
        """The versions that `_version` was chosen of."""
        self._version = 0

    def pump_soon(self) -> None:
        """Send what can be sent: when all partitions have been looked at, or in the next pass of the loop."""
        if self._sender.gathering is not None:
            self._sender.gathering[self] = None
        elif not self._pump_due:
            self._pump_due = True
            self._loop.call_soon(self.pump)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is to be sent, and no answer is awaited."""
        return not (self.waiting or self.in_flight or self._opening)

    def stalled(self) -> None:
        """Remember since when there is something to send that has to wait."""
        if self.stalled_since is None:
            self.stalled_since = self._loop.time()

    def pump(self, ends: float | None = None) -> None:
        """Send what can be sent, what takes longer than until `ends` in the next pass."""
        sender = self._sender
        self._pump_due = False
        if not self.waiting or self._client.closed:  # closed: the batches have their outcome
            self.stalled_since = None
            return
        link = None
        if self.in_flight < sender.max_in_flight and (sender.producer.producer_id >= 0 or sender.producer.ready()):
            link = self._link
            if link is None or not link.ready or self._topology is not self._client.cluster.topology:
                link = self._find_link()
        if link is not None and ((link.ready and not link.pipeline.throttled_until) or self._can_send(link)):
            self._pump_due = True  # partitions that are added meanwhile are seen here
            time = self._loop.time
            if ends is None:
                ends = self._loop.slice_end()
            try:
                while self.waiting and self.in_flight < sender.max_in_flight:
                    self._send(link, ends)
                    if time() >= ends:  # what waits for the next pass has larger batches then
                        break
            finally:
                self._pump_due = False
            if self.waiting and self.in_flight < sender.max_in_flight:
                self.pump_soon()
        if self.waiting:
            self.stalled()

    def _find_link(self) -> Connection | None:
        """Return the connection to the broker, which may be at another address by now; None if it has left."""
        self._link, self._topology = None, self._client.cluster.topology
        try:
            self._link = self._client.link(self.node_id, PRODUCE)
        except UnknownBrokerIdError:
            self._client.cluster.request_update()
            for partition in self._leave():  # they find another one
                partition.retry_later()
        return self._link

    def _can_send(self, link: Connection) -> bool:
        """Whether a connection that was throttled, or is not ready, takes requests now; else `pump` is called then."""
        if link.ready:
            throttled = link.throttled()
            if throttled and not self._throttled:
                self._throttled = True
                self._loop.call_later(throttled, self._throttle_ended)
            return not throttled
        if link.fatal is not None and not link.is_opening and link.backing_off():
            # The broker refuses our credentials, or we refuse the broker's. Records after the pause try again:
            # permissions and passwords may be granted later.
            for partition in self._leave():
                partition.give_up_unsent(link.fatal)
            return False
        if not self._opening:
            self._opening = True
            delay = link.backing_off()
            if delay:
                self._loop.call_later(delay, self._try_again)
            else:
                link.open().add_both(self._opened)
        return False

    def _leave(self) -> deque[Partition]:
        """Remove and return the partitions that wait here."""
        waiting, self.waiting = self.waiting, deque()
        for partition in waiting:
            partition.scheduled = False
        return waiting

    def _throttle_ended(self) -> None:
        self._throttled = False
        self.pump()

    def _try_again(self) -> None:
        self._opening = False
        self.pump()

    def _opened(self, outcome: object) -> None:
        self._opening = False
        if isinstance(outcome, BaseException):
            # The partitions may be led by another broker by now.
            self._client.cluster.request_update()
        self.pump_soon()

    # Sending…

    def _send(self, link: Connection, ends: float) -> None:  # noqa: C901, PLR0912 - hot
        """Send a request with one batch of each partition that has one, or of as many as there is time for."""
        sender, waiting = self._sender, self.waiting
        batches: list[ProducerBatch] = []
        room, time = sender.accumulator.max_request_size, self._loop.time
        for _ in range(len(waiting)):
            partition = waiting.popleft()
            partition.scheduled = False
            batch = partition.next_batch(self, room if batches else None)
            if batch is not None:
                assert batch.sealed is not None
                room -= batch.sealed.size
                batches.append(batch)
            if time() >= ends:
                break
        if not batches:
            return
        self.stalled_since = None
        for batch in batches:
            if batch.partition.queue:
                batch.partition.schedule()  # which may find that the next one has to wait: that begins now
        transactions, transactional_id = sender.transactions, None
        names: _Names = {}  # the topics by their ids, which the reply may have instead
        if link.versions is not self._versions:
            assert link.versions is not None, "the link is ready"
            try:
                self._version, self._versions = link.versions.version_for(ProduceRequest), link.versions
            except UnsupportedVersionError as error:
                self._failed(batches, error)
                return
        version = self._version
        if transactions is not None:
            version = min(version, transactions.newest_produce())
            transactional_id = transactions.producer.transactional_id
        decode = newest = None
        request: Any
        if version < OLDEST:
            request = self._request_of_structs(version, batches, transactional_id)
        else:
            placed = [(batch.partition.topic.name, batch.partition.index, batch.sealed) for batch in batches]
            topic_ids, timeout_ms = self._client.cluster.topology.topic_ids, int(sender.request_timeout * 1000)
            if sender.acks:
                decode, newest = read_reply(version), version
            request = request_type(version)(placed, topic_ids, sender.acks, timeout_ms, transactional_id, names)  # type: ignore[arg-type]
        self.in_flight += 1
        if sender.metrics is not None:
            sender.metrics.sent(batches, self._loop.time())
        future = link.submit(request, sender.request_timeout, newest, decode)
        future.add_both(partial(self._answered, batches, names))

    def _request_of_structs(
        self, version: int, batches: list[ProducerBatch], transactional_id: str | None
    ) -> ProduceRequest:
        bound: type[ProduceRequest] = ProduceRequest[version]
        by_topic: dict[str, list[ProduceRequest.PartitionProduceData]] = {}
        for batch in batches:
            assert batch.sealed is not None
            partition = batch.partition
            data = bound.PartitionProduceData(index=partition.index, records=on_the_wire(batch.sealed))
            by_topic.setdefault(partition.topic.name, []).append(data)
        topics = [bound.TopicProduceData(name=name, partition_data=data) for name, data in by_topic.items()]
        fields = {} if transactional_id is None else {"transactional_id": transactional_id}
        timeout_ms = int(self._sender.request_timeout * 1000)
        return bound(acks=self._sender.acks, timeout_ms=timeout_ms, topic_data=topics, **fields)

    # Answers…

    def _answered(self, batches: list[ProducerBatch], names: _Names, reply: Any) -> None:
        """Handle the outcome of a request: a reply, an error, or None where none is sent (acks=0)."""
        self.in_flight -= 1
        if self._sender.metrics is not None:  # first: a call that waits for a record may read them next
            self._sender.metrics.throttle_times.add(getattr(reply, "throttle_time_ms", 0))
        if type(reply) is Written:
            name = reply.topic if isinstance(reply.topic, str) else names.get(reply.topic)
            for batch in batches:
                partition = batch.partition
                delivered = reply.offsets.get(partition.index) if partition.topic.name == name else None
                if delivered is None:
                    self._left_out(batch)
                else:
                    partition.answered(batch, ProduceOutcome.DONE, delivered)
        elif isinstance(reply, BaseException):
            self._failed(batches, reply)
        elif self._sender.acks == 0:
            for batch in batches:
                batch.partition.answered(batch, ProduceOutcome.DONE, NOT_ACKNOWLEDGED)
        else:
            self._take_response(batches, names, reply)
        if self._sender.answer_awaited is not None:
            self._sender.request_done()
        if self.waiting:
            self.pump_soon()
        else:
            self.stalled_since = None

    def _failed(self, batches: list[ProducerBatch], error: BaseException) -> None:
        """Handle the failure of a request: it has no answer."""
        if not isinstance(error, KafkaError):
            error = KafkaProtocolError(f"the request failed: {error!r}")
        if error.invalid_metadata:
            self._client.cluster.request_update()
        for batch in batches:
            # Batches that were sent when the connection ended are sent again over another one, whatever ended it.
            lost = error.outcome_unknown and not self._client.closed
            outcome = ProduceOutcome.RETRY if lost else classify(error, batch.count)
            batch.partition.answered(batch, outcome, error, definite=not error.outcome_unknown)

    def _take_response(self, batches: list[ProducerBatch], names: _Names, response: ProduceResponse) -> None:
        results = {}
        for topic in response.responses:
            name = topic.name or names.get(topic.topic_id.int)
            for result in topic.partition_responses:
                results[name, result.index] = result
        for batch in batches:
            found = results.get((batch.partition.topic.name, batch.partition.index))
            if found is None:
                self._left_out(batch)
            elif not found.error_code:
                delivered = Delivered(found.base_offset, found.log_append_time_ms, found.log_start_offset)
                batch.partition.answered(batch, ProduceOutcome.DONE, delivered)
            else:
                self._take_error(batch, names, found, response)

    def _left_out(self, batch: ProducerBatch) -> None:
        missing = KafkaProtocolError("the broker's reply leaves this partition out")
        batch.partition.answered(batch, ProduceOutcome.RETRY, missing, definite=False)

    def _take_error(
        self,
        batch: ProducerBatch,
        names: _Names,
        result: ProduceResponse.PartitionProduceResponse,
        response: ProduceResponse,
    ) -> None:
        partition = batch.partition
        text = result.error_message or ""
        for culprit in result.record_errors or ():
            text += f" (record {culprit.batch_index}: {culprit.batch_index_error_message or 'not accepted'})"
        if result.error_code == Code.MESSAGE_TOO_LARGE and not text and batch.sealed is not None:
            text = (
                f"a batch of {batch.sealed.size} bytes is larger than the topic or the broker accepts "
                "(max.message.bytes)"
            )
        error = for_code(result.error_code)(*filter(None, [text.strip()]), topic_partition=partition.tp)
        known = False
        if error.invalid_metadata:
            cluster, leader = self._client.cluster, result.current_leader
            # If the topic was deleted and created again since the request, this is the leader of the one that is gone,
            # and its epoch may be higher than all that metadata will have for long.
            topic_id = cluster.topic_id(partition.topic.name)
            is_same = topic_id is None or topic_id.int in names
            if leader is not None and leader.leader_id >= 0 and is_same:  # KIP-951
                endpoints = response.node_endpoints or ()
                brokers = [BrokerMetadata(end.node_id, end.host, end.port, end.rack) for end in endpoints]
                known = cluster.update_partition_leader(partition.tp, leader.leader_id, leader.leader_epoch, brokers)
            if not known:
                cluster.request_update()
        outcome = classify(error, batch.count)
        answer: Delivered | KafkaError = Delivered(-1, -1) if outcome is ProduceOutcome.DONE else error
        batch.partition.answered(batch, outcome, answer, definite=not error.outcome_unknown, at_once=known)

    def __repr__(self) -> str:
        return f"<Sink to {self.node_id} waiting={len(self.waiting)} in_flight={self.in_flight}>"


def on_the_wire(sealed: SealedBatch | SealedMessages) -> Buffer | Gathered:
    """Return a batch as a request takes it: a large one is not copied, not even to put header and body together.

    Nothing of it changes under the request: both are never written to again, and the request keeps them for as long as
    it is under way, also where the batch has been given other numbers or forgotten by then.
    """
    if sealed.size < _WORTH_TWO_PIECES:
        return sealed.data
    return Gathered(sealed.header, sealed.body)
