"""Requests and responses on one connection: frames, order, correlation ids, deadlines, throttling. Sans-IO.

Requests wait in a queue until the connection can send them: it is ready, not throttled, and fewer requests than allowed
are in flight. Then they become bytes in the send queue and wait in order for their responses. A response belongs to the
oldest request in flight; any other response means that the stream is broken. Each future is resolved exactly once: with
the response, by `fail`, or at its deadline.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections import deque
from collections.abc import Callable, Collection, Generator
from copy import copy
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

from kafka.errors import (
    CorrelationIdError,
    InvalidReceiveError,
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    SslAuthenticationError,
)
from kafka.future import Future
from kafka.protocol.api import decoder_of, has_wrong_id, slices_of
from kafka.protocol.fields import Buffer
from kafka.protocol.negotiation import ApiVersions
from kafka.protocol.registry import ApiKey

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.metrics.sensor import Journal, Sensor

__all__ = ["FrameReader", "InFlightRequest", "Pipeline", "SendQueue", "Traffic"]

# From this size on decoding a reply may take more than two milliseconds.
_LARGE_REPLY: Final = 16 << 10
# Results of batches and commits reach a program in order, and the next reply may overtake one that is read in slices.
_IN_ORDER: Final = frozenset({ApiKey.Produce, ApiKey.OffsetCommit, ApiKey.TxnOffsetCommit})
# From this size on the memory of a frame is mapped: `bytearray(50 << 20)` writes zeros for 20 ms in one pass. Smaller
# frames, as fetches are by default, use memory again that the C library has kept.
_MAPPED: Final = 4 << 20
# The most that is read at once into such a frame, for the same reason.
_READ_AT_ONCE: Final = 1 << 20


class FrameReader:
    """Cuts what is received into frames.

    >>> reader = FrameReader(1000)
    >>> reader.receive(memoryview(b"\\0\\0\\0\\x02ab\\0\\0\\0\\x05c"))
    [b'ab']
    >>> reader.target()[:4] = b"defg"
    >>> reader.filled(4)
    bytearray(b'cdefg')
    """

    __slots__ = ("_filled", "_head", "_limit", "body")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = b""  # of a size that came in parts
        self.body: memoryview | None = None
        """The memory of the present frame; None while it is not known how large that is."""
        self._filled = 0

    @property
    def is_mid_frame(self) -> bool:
        """Whether a frame has begun and is not complete."""
        return self.body is not None or bool(self._head)

    def target(self) -> memoryview | None:
        """Return where the next part of the present frame belongs, if it is known how large the frame is."""
        return None if self.body is None else self.body[self._filled : self._filled + _READ_AT_ONCE]

    def filled(self, count: int) -> Buffer | None:
        """Record `count` bytes received into the target; return the frame if that completes it."""
        assert self.body is not None
        self._filled += count
        if self._filled < len(self.body):
            return None
        body, self.body = self.body, None
        return cast("Buffer", body.obj)

    def receive(self, data: memoryview) -> list[Buffer]:
        """Take bytes that were received elsewhere (they are copied) and return the frames they complete."""
        frames: list[Buffer] = []
        position, end = 0, len(data)
        if self.body is not None:
            position = min(end, len(self.body) - self._filled)
            self.body[self._filled : self._filled + position] = data[:position]
            frame = self.filled(position)
            if frame is None:
                return frames
            frames.append(frame)
        while position < end:
            head = self._head + bytes(data[position : position + 4 - len(self._head)])
            position += len(head) - len(self._head)
            if len(head) < 4:
                self._head = head
                break
            self._head = b""
            size = int.from_bytes(head, "big", signed=True)
            if not 0 <= size <= self._limit:
                raise _strange(head, size, self._limit)
            if end - position >= size:
                frames.append(bytes(data[position : position + size]))
                position += size
            else:
                # The peer chooses the size; the limit bounds it.
                self.body = _memory(size)
                self._filled = end - position
                self.body[: self._filled] = data[position:]
                break
        return frames


def _memory(size: int) -> memoryview:
    """Return memory for a frame."""
    return memoryview(bytearray(size)) if size < _MAPPED else mapped_memory(size)


def mapped_memory(size: int) -> memoryview:
    """Return memory from the system, of which it keeps the pages that are written to.

    Private, as memory of the C library is: by default the child of a fork and its parent would write into each other's.
    """
    # Windows has no flags, and no fork.
    flags = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    return memoryview(mmap.mmap(-1, size, **flags))


def _strange(head: bytes, size: int, limit: int) -> KafkaError:
    """Return the error for the head of a stream that is not Kafka's."""
    if head[:2] in {b"\x15\x03", b"\x16\x03"}:
        return SslAuthenticationError("the other side speaks TLS: set security_protocol to SSL or SASL_SSL")
    if head in {b"HTTP", b"<htm", b"<!DO"}:
        return InvalidReceiveError("the other side speaks HTTP: this is not a broker's port")
    if head[:3] == b"SSH":
        return InvalidReceiveError("the other side speaks SSH: this is not a broker's port")
    if size < 0:
        return InvalidReceiveError(f"invalid frame size {size}: the stream is corrupt, or this is not a Kafka broker")
    return InvalidReceiveError(f"a frame of {size} bytes exceeds receive_message_max_bytes ({limit})")


class SendQueue:
    """Pieces to send in order, with callbacks for messages that have left.

    >>> queue = SendQueue()
    >>> queue.put([b"abc", b"defg"])
    7
    >>> list(queue.waiting)
    [b'abc', b'defg']
    >>> queue.sent(5)
    >>> bytes(queue.waiting[0])
    b'fg'
    """

    __slots__ = ("_marks", "_put", "_sent", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[bytes | memoryview] = deque()
        """The pieces that were not taken yet, none of them empty."""
        self._put = 0
        self._sent = 0
        self._marks: deque[tuple[int, Callable[[], object]]] = deque()

    def __len__(self) -> int:
        return self._put - self._sent

    def put(self, pieces: list[bytes], on_sent: Callable[[], object] | None = None) -> int:
        """Add a message and return its size; `on_sent` is called when its last byte has been taken."""
        before = self._put
        if len(pieces) > _MANY and max(map(len, pieces)) < _WORTH_A_PIECE:
            pieces = [b"".join(pieces)]  # of a request that lists many topics
        for piece in pieces:
            if len(piece):
                self.waiting.append(piece)
                self._put += len(piece)
        if on_sent is not None:
            self._marks.append((self._put, on_sent))
        return self._put - before

    def sent(self, count: int) -> None:
        """Record that the socket took `count` bytes."""
        self._sent += count
        pieces = self.waiting
        while count:
            first = pieces.popleft()
            if len(first) > count:
                pieces.appendleft(memoryview(first)[count:])
                break
            count -= len(first)
        while self._marks and self._marks[0][0] <= self._sent:
            self._marks.popleft()[1]()


_MAX_CORRELATION_ID: Final = 2**31 - 1
# A system call takes some dozens of pieces; to copy small ones takes less than to handle each of them.
_MANY: Final = 16
_WORTH_A_PIECE: Final = 8 << 10
# A throttle time of this length, in seconds, is logged; the client waits for the second number at most. The broker
# enforces a longer one itself, by not reading from the connection (KIP-219).
_LONG_PAUSE: Final = 10.0
_LONGEST_PAUSE: Final = 60.0

Decode = Callable[[Any], object]  # of a Buffer


class Traffic:
    """The numbers of the connections to one broker. The loop alone writes it, any thread may read."""

    __slots__ = ("_exchanges", "_unanswered", "received", "responses", "seconds", "sent", "throttled")

    def __init__(self, exchanges: Journal | None = None, unanswered: Sensor | None = None) -> None:
        self._exchanges = exchanges  # bytes of a request, milliseconds to its response, bytes of that
        self._unanswered = unanswered  # bytes of a request that has no response
        self.sent = self.received = 0
        """Bytes."""
        self.responses = 0
        self.seconds = 0.0
        """From requests to their responses."""
        self.throttled = 0.0
        """Seconds of pauses that the broker asked for."""

    def answered(self, request: int, seconds: float, response: int) -> None:
        """Count a request of that many bytes and its response, which came this long after it."""
        self.responses += 1
        self.seconds += seconds
        if self._exchanges is not None:
            self._exchanges.add(request, seconds * 1000, response)

    def unanswered(self, request: int) -> None:
        """Count a request that has no response: the broker sends none, or the connection has ended."""
        if self._unanswered is not None:
            self._unanswered.record(request)


class InFlightRequest(Future[Any]):
    """A request that was submitted, as the future of its response.

    Its version is `newest` at most, and just that if the caller brings what decodes the reply.
    """

    __slots__ = (
        "correlation_id",
        "deadline",
        "decode",
        "name",
        "newest",
        "request",
        "sent_at",
        "size",
        "version",
    )

    def __init__(self, request: Any, deadline: float, newest: int | None = None, decode: Decode | None = None) -> None:
        super().__init__()
        self.request = request
        self.deadline = deadline
        self.name = type(request).__name__
        self.newest = newest
        self.version = 0
        self.correlation_id = 0
        self.sent_at = 0.0
        self.size = 0
        self.decode = decode

    def success(self, value: Any) -> Self:
        """Complete; again with the same response does nothing, as kafka-python 2 left it to the callers of recv()."""
        return self if self.is_done and self.value is value else super().success(value)


class Pipeline:
    """The requests of a connection, between the socket and the futures."""

    def __init__(self, client_id: str | None, max_in_flight: int, traffic: Traffic) -> None:
        self.outgoing = SendQueue()
        self.open = False
        """Whether requests may go out: set by the connection when it is ready."""
        self.versions: ApiVersions | None = None
        self.throttled_until = 0.0
        self.traffic = traffic
        self.on_long_pause: Callable[[float, float], object] | None = None
        """Called with the throttle time of a broker, and the seconds that the client pauses."""
        self.decode_later: Callable[[InFlightRequest, Generator[None, None, Any]], object] | None = None
        """Called with the decoding of a large reply, which is to be done in slices; `decoded` takes the response."""
        self._client_id = client_id
        self._max_in_flight = max_in_flight
        self.waiting: deque[InFlightRequest] = deque()
        """Requests that were not sent yet."""
        self._in_flight: deque[InFlightRequest] = deque()
        self._unacknowledged_writes: deque[InFlightRequest] = deque()  # with acks=0: done when they have left
        self._correlation_id = 0
        self._ignored: Collection[int] = ()

    @property
    def in_flight(self) -> int:
        """How many requests wait for replies."""
        return len(self._in_flight)

    def oldest_sent_at(self) -> float | None:
        """Return when the oldest request in flight was sent; None if no request is in flight. Safe from any thread."""
        try:
            return self._in_flight[0].sent_at
        except IndexError:
            return None

    def oldest_unanswered(self) -> str | None:
        """Return the name and version of the oldest request in flight; None if no request is in flight."""
        if not self._in_flight:
            return None
        entry = self._in_flight[0]
        return f"{entry.name} version {entry.version}"

    def can_send_more(self) -> bool:
        """Whether another request may be in flight."""
        return len(self._in_flight) < self._max_in_flight

    def begin(self, versions: ApiVersions, correlation_id: int, ignored: Collection[int]) -> None:
        """Begin to use a connection: `correlation_id` was the last one, and responses to those `ignored` may come."""
        self.versions = versions
        self._correlation_id = correlation_id
        self._ignored = ignored

    # Writing…

    def pump(self, now: float) -> None:
        """Turn waiting requests into bytes, as many as may go out."""
        if not self.open or now < self.throttled_until:
            return
        versions = self.versions
        assert versions is not None
        while self.waiting and len(self._in_flight) < self._max_in_flight:
            entry = self.waiting.popleft()
            if entry.is_done:  # its caller has given up
                continue
            if entry.deadline <= now:  # sent now, it would end the connection, and fail the requests of others
                entry.try_failure(_not_sent(entry))
                continue
            request = entry.request
            try:
                newest, expect = entry.newest, True
                if newest is None:
                    version = versions.version_for(request)
                else:
                    version = newest if entry.decode is not None else versions.highest(request, newest)
                if entry.decode is None and (expect := request.expect_response()):
                    entry.decode = decoder_of(type(request), version)  # type: ignore[arg-type]  # a class has a hash
                self._correlation_id = correlation_id = (self._correlation_id + 1) & _MAX_CORRELATION_ID
                pieces = request.frame_parts(correlation_id, self._client_id, version)
            except (KafkaError, TypeError, ValueError, OverflowError, AttributeError, struct.error) as error:
                entry.try_failure(_not_encodable(entry, error))
                continue
            entry.correlation_id, entry.version, entry.sent_at = correlation_id, version, now
            if expect:
                self._in_flight.append(entry)
                entry.size = self.outgoing.put(pieces)
            else:
                self._unacknowledged_writes.append(entry)
                entry.size = self.outgoing.put(pieces, self._on_written)

    def _on_written(self) -> None:
        entry = self._unacknowledged_writes.popleft()
        self.traffic.unanswered(entry.size)
        entry.try_success(None)

    # Coming in…

    def received(self, frame: Buffer, now: float) -> tuple[Future[Any], object] | None:
        """Resolve the request that a frame answers; return its future and the response.

        After a KafkaProtocolError the connection is unusable, and `fail_sent` fails the request.
        """
        in_flight = self._in_flight
        entry = in_flight[0] if in_flight else None
        found = int.from_bytes(frame[:4], "big", signed=True)
        if entry is None or found != entry.correlation_id or len(frame) < 4:
            if self._is_ignored(frame, found, entry):
                return None
            assert entry is not None
        in_flight.popleft()
        self.traffic.answered(entry.size, now - entry.sent_at, len(frame) + 4)
        assert entry.decode is not None
        if (
            len(frame) >= _LARGE_REPLY
            and self.decode_later is not None
            and entry.decode is decoder_of(kind := type(entry.request), entry.version)  # type: ignore[arg-type]
            and kind.API_KEY not in _IN_ORDER
            and (slices := slices_of(kind, entry.version)) is not None  # type: ignore[arg-type]
        ):
            self.decode_later(entry, slices(bytes(frame)))
            return None
        try:
            response = entry.decode(frame)
        except KafkaError:
            self._in_flight.appendleft(entry)
            raise
        self.decoded(entry, response, now)
        return entry, response

    def decoded(self, entry: InFlightRequest, response: object, now: float) -> None:
        """Resolve a request with its response."""
        throttle = getattr(response, "throttle_time_ms", 0)
        if throttle > 0 and self.versions is not None and self.versions.expects_client_throttling:
            self._throttle(throttle / 1000, now)
        entry.request = entry.decode = None  # a program may keep the future
        entry.try_success(response)

    def _throttle(self, asked: float, now: float) -> None:
        """Pause for the throttle time of the broker, up to a limit."""
        if asked >= _LONG_PAUSE and self.on_long_pause is not None and self.throttled_until <= now:
            self.on_long_pause(asked, min(asked, _LONGEST_PAUSE))
        self.traffic.throttled += min(asked, _LONGEST_PAUSE)
        self.throttled_until = max(self.throttled_until, now + min(asked, _LONGEST_PAUSE))

    def _is_ignored(self, frame: Buffer, found: int, entry: InFlightRequest | None) -> bool:
        """Whether a frame that does not have the id of the oldest request is to be ignored; else it is its answer."""
        if len(frame) < 4:
            without = "without a request" if entry is None else "as a response, which is too short"
            raise KafkaProtocolError(f"the broker sent {len(frame)} bytes {without}")
        if entry is not None and has_wrong_id(getattr(entry.request, "API_KEY", None), found):
            return False
        if found in self._ignored:
            return True
        if entry is None:
            raise KafkaProtocolError(f"the broker sent {len(frame)} bytes without a request")
        raise CorrelationIdError(
            f"the broker answered request {found}, expected was {entry.correlation_id} ({entry.name})"
        )

    # Time…

    def next_deadline(self) -> float | None:
        """Return when something must be done although nothing comes in; None for never."""
        deadlines = [entry.deadline for entry in chain(self._in_flight, self._unacknowledged_writes, self.waiting)]
        if self.waiting and self.open and self.throttled_until:
            deadlines.append(self.throttled_until)
        deadline = min(deadlines, default=math.inf)
        return None if deadline == math.inf else deadline

    def expire(self, now: float, why: str = "") -> KafkaError | None:
        """Fail requests whose deadline has passed; return the error if one of them ends the connection.

        A late response cannot be matched to its request, and a request that the socket does not take may be written in
        part already. `why` says why waiting requests could not be sent.
        """
        if self.throttled_until and self.throttled_until <= now:
            self.throttled_until = 0.0
        late: list[tuple[InFlightRequest, KafkaError]] = [
            (entry, _not_sent(entry, why)) for entry in self.waiting if entry.deadline <= now
        ]
        if late:
            self.waiting = deque(entry for entry in self.waiting if entry.deadline > now)
        error: KafkaError | None = None
        for entry in self._unacknowledged_writes:
            if entry.deadline <= now:
                waited = now - entry.sent_at
                error = KafkaTimeoutError(f"{entry.name} could not be written within {waited:.1f} seconds")
                late.append((entry, error))
        for entry in self._in_flight:
            if entry.deadline <= now:
                waited = now - entry.sent_at
                error = RequestTimedOutError(f"no response to {entry.name} within {waited:.1f} seconds")
                late.append((entry, error))
        if error is not None:
            self.open = False
        # Now that nothing iterates over the queues: a callback may submit another request.
        for entry, failure in late:
            entry.try_failure(failure)
        return error

    def fail_sent(self, error: BaseException) -> None:
        """Fail the requests that were sent and keep the others in the queue.

        The broker may have carried them out, whatever has ended the connection; their errors say so.
        """
        self.open = False
        self.throttled_until = 0.0
        self.outgoing = SendQueue()
        in_flight, self._in_flight = self._in_flight, deque()
        leaving, self._unacknowledged_writes = self._unacknowledged_writes, deque()
        unknown = _with_unknown_outcome(error)
        for entry in (*in_flight, *leaving):
            self.traffic.unanswered(entry.size)
            entry.try_failure(unknown)

    def fail(self, error: BaseException) -> None:
        """Fail everything: the connection has ended."""
        waiting, self.waiting = self.waiting, deque()  # first: a callback may submit another request
        self.fail_sent(error)
        if waiting:
            # Not sent, so not in effect: a caller may retry safely.
            unsent = error if not getattr(error, "outcome_unknown", False) else NodeNotReadyError(f"not sent: {error}")
            for entry in waiting:
                entry.try_failure(unsent)


def _not_sent(entry: InFlightRequest, why: str = "") -> KafkaTimeoutError:
    return KafkaTimeoutError(f"{entry.name} could not be sent in time{why}")


def _with_unknown_outcome(error: BaseException) -> BaseException:
    """Return the error for requests that were sent, if the connection ended with this one."""
    if not isinstance(error, KafkaError) or error.outcome_unknown:
        return error
    unknown = copy(error)
    unknown.outcome_unknown = True
    return unknown


def _not_encodable(entry: InFlightRequest, error: Exception) -> BaseException:
    """Return the error for a request that cannot be put into bytes: the caller's mistake, not the connection's."""
    if isinstance(error, KafkaError):
        return error
    return KafkaProtocolError(f"{entry.name} cannot be encoded: {error}")
