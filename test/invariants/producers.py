"""What an idempotent producer may send: sequence numbers by partition, and batches within their transaction."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import Code, KafkaError
from kafka.protocol.registry import ApiKey
from kafka.record.header import read_header

if TYPE_CHECKING:
    from kafka.broker.server.call import Call
    from kafka.record.header import BatchHeader
    from test.invariants.clients import Peer

__all__ = ["SequenceNumbers", "Transactions"]

Report = Callable[[str, str], None]

#: As many as a broker remembers of a producer: with more in flight it could not recognise a repetition (KIP-98).
_WINDOW: Final = 5
#: Batches that are remembered per partition.
_REMEMBERED: Final = 50
_SEQUENCES: Final = 2**31
_PRODUCE: Final = b"\x00\x00"
#: With these codes the leader may have written the batch.
_OUTCOME_UNKNOWN: Final = frozenset(
    {
        Code.UNKNOWN_SERVER_ERROR,
        Code.REQUEST_TIMED_OUT,
        Code.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Code.NETWORK_EXCEPTION,
        Code.KAFKA_STORAGE_ERROR,
    }
)


def _topic(call: Call, topic: Any) -> str:
    """Return the topic's name: from v13 on a request has its id."""
    found = call.cluster.topics_by_id.get(topic.topic_id) if not topic.name else None
    return found.name if found is not None else topic.name or str(topic.topic_id)


def _batches(call: Call, request: Any) -> Iterator[tuple[str, int, BatchHeader]]:
    for topic in request.topic_data or ():
        name = _topic(call, topic)
        for part in topic.partition_data:
            header = None
            with suppress(KafkaError):  # the broker refuses it
                header = read_header(part.records) if part.records else None
            if header is not None and header.producer_id >= 0:
                yield name, part.index, header


class _Batch:
    """A batch with a number."""

    __slots__ = ("bytes", "end", "is_refused", "open")

    def __init__(self, header: BatchHeader) -> None:
        self.bytes = header.crc, header.count
        self.end = header.base_sequence + header.count
        self.open = 1
        """How many requests have brought it that have no answer, or one that leaves it open."""
        self.is_refused = False


class _Chain:
    """The numbers of one producer id, epoch and partition."""

    def __init__(self) -> None:
        self.next = -1
        self.batches: OrderedDict[int, _Batch] = OrderedDict()
        #: Numbers of batches that a broker has refused: they may be those of other batches.
        self.free: list[tuple[int, int]] = []

    def add(self, header: BatchHeader) -> str | None:
        """Take a batch that has arrived; return what is wrong with it."""
        first = header.base_sequence
        known = self.batches.get(first)
        if known is not None and known.bytes == (header.crc, header.count):
            known.open += 1
            return None
        if known is not None and not known.is_refused:
            return f"sequence number {first} again, with other bytes"
        if known is None and self.next >= 0 and first != self.next and not self._is_free(first):
            if first < next(iter(self.batches), 0):
                return None  # it is no longer remembered
            kind = "a gap" if (first - self.next) % _SEQUENCES < _SEQUENCES // 2 else "an overlap"
            return f"{kind}: sequence number {first} where {self.next} follows"
        if known is not None:
            self.free.append((first, known.end))
        self.batches[first] = batch = _Batch(header)
        if first == self.next or self.next < 0:
            self.next = batch.end % _SEQUENCES
        while len(self.batches) > _REMEMBERED:
            self.batches.popitem(last=False)
        return None

    def _is_free(self, first: int) -> bool:
        return any(start <= first < end for start, end in self.free) or any(
            start <= first < batch.end and batch.is_refused for start, batch in self.batches.items()
        )

    def answer(self, header: BatchHeader, code: int) -> None:
        """Take the answer to a batch."""
        batch = self.batches.get(header.base_sequence)
        if batch is None or batch.bytes != (header.crc, header.count):
            return
        if code in {0, Code.DUPLICATE_SEQUENCE_NUMBER}:
            batch.is_refused = False
            batch.open = 1  # for good
        elif code not in _OUTCOME_UNKNOWN:
            batch.open -= 1
            batch.is_refused = batch.open == 0


class SequenceNumbers:
    """The sequence numbers of each producer id, epoch and partition, in the order in which they arrive."""

    apis: frozenset[int] | None = frozenset({ApiKey.Produce, ApiKey.InitProducerId})

    def __init__(self, report: Report) -> None:
        self._report = report
        self._chains: dict[tuple[int, int, str, int], _Chain] = {}
        self._given_out: set[int] = set()

    def arrived(self, peer: Peer, call: Call, request: Any) -> None:
        if ApiKey.Produce != request.API_KEY:
            return
        is_numbered = False
        for topic, partition, header in _batches(call, request):
            is_numbered = True
            key = header.producer_id, header.producer_epoch, topic, partition
            chain = self._chains.get(key)
            if chain is None:
                chain = self._chains[key] = _Chain()
                if header.producer_id in self._given_out:
                    chain.next = 0  # all its batches come here
            problem = chain.add(header)
            if problem is not None:
                self._report(
                    "sequence numbers", f"{peer}: {topic}-{partition}, producer {key[0]}, epoch {key[1]}: {problem}"
                )
        if is_numbered:
            self._check_in_flight(peer, call)

    def _check_in_flight(self, peer: Peer, call: Call) -> None:
        waiting = call.connection._waiting
        if not waiting:
            return
        limit = min(_WINDOW, peer.number("max_in_flight_requests_per_connection", _WINDOW))
        in_flight = 1 + sum(frame[:2] == _PRODUCE for frame in waiting)
        if in_flight > limit:
            self._report("sequence numbers", f"{peer}: {in_flight} produce requests in flight on one connection")

    def answered(self, _peer: Peer, call: Call, request: Any, reply: Any) -> None:
        if reply is None:
            return
        if ApiKey.InitProducerId == request.API_KEY:
            self._given_out.add(reply.producer_id)
            return
        codes = {}
        for topic in reply.responses or ():
            name = _topic(call, topic)
            codes.update({(name, part.index): part.error_code for part in topic.partition_responses or ()})
        for topic, partition, header in _batches(call, request):
            chain = self._chains.get((header.producer_id, header.producer_epoch, topic, partition))
            if chain is not None and (topic, partition) in codes:
                chain.answer(header, codes[topic, partition])

    def closed(self, connection: int) -> None:
        pass


#: From this version of Produce on a batch adds its partition to the transaction by itself (KIP-890).
_ADDS_BY_ITSELF: Final = 12
#: From this version of EndTxn on each end is followed by the next epoch (KIP-890).
_NEXT_EPOCH: Final = 5


class Transactions:
    """Batches of transactions, and the requests that begin and end these."""

    apis: frozenset[int] | None = frozenset({ApiKey.Produce, ApiKey.AddPartitionsToTxn, ApiKey.EndTxn})

    def __init__(self, report: Report) -> None:
        self._report = report
        self._added: dict[tuple[int, int], set[tuple[str, int]]] = {}
        self._ended: set[tuple[int, int]] = set()

    def arrived(self, peer: Peer, call: Call, request: Any) -> None:
        if ApiKey.EndTxn == request.API_KEY:
            producer = request.producer_id, request.producer_epoch
            self._added.pop(producer, None)
            if call.version >= _NEXT_EPOCH:
                self._ended.add(producer)
        elif ApiKey.Produce == request.API_KEY and request.transactional_id is not None:
            for topic, partition, header in _batches(call, request):
                producer = header.producer_id, header.producer_epoch
                who = f"{peer}: transaction {request.transactional_id!r}, producer {producer[0]}, epoch {producer[1]}"
                if not header.is_transactional:
                    self._report("transactions", f"{who}: a batch that is not transactional, to {topic}-{partition}")
                elif producer in self._ended:
                    self._report("transactions", f"{who}: a batch to {topic}-{partition} after the end of its epoch")
                elif call.version < _ADDS_BY_ITSELF and (topic, partition) not in self._added.get(producer, ()):
                    self._report("transactions", f"{who}: {topic}-{partition} has not been added, or the end has come")

    def answered(self, _peer: Peer, _call: Call, request: Any, reply: Any) -> None:
        if ApiKey.AddPartitionsToTxn != request.API_KEY or reply is None:
            return
        producer = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
        added = self._added.setdefault(producer, set())
        for topic in reply.results_by_topic_v3_and_below or ():
            for part in topic.results_by_partition:
                if not part.partition_error_code:
                    added.add((topic.name, part.partition_index))

    def closed(self, connection: int) -> None:
        pass
