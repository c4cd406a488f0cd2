"""Frames in and out: a 4-byte size and as many bytes, on a stream that splits and joins as it likes.

Sans-IO, both of them. What comes in small is copied out of a buffer that all connections of a loop
share; a frame that is larger than what has arrived gets memory of its own, and the rest of it is
received there directly. What goes out is a queue of pieces for a scatter-gather send.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final

from kafka.errors import InvalidReceiveError, KafkaError, SslAuthenticationError

__all__ = ["FrameReader", "SendQueue"]

# The kernel takes 1024 pieces at once (IOV_MAX); more than a few dozen save nothing.
_PIECES: Final = 64


class FrameReader:
    """Cuts what is received into frames.

    >>> reader = FrameReader(1000)
    >>> reader.receive(memoryview(b"\\0\\0\\0\\x02ab\\0\\0\\0\\x05c"))
    [b'ab']
    >>> reader.target()[:4] = b"defg"
    >>> reader.filled(4)
    bytearray(b'cdefg')
    """

    __slots__ = ("_body", "_filled", "_head", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = b""  # of a size that came in parts
        self._body: bytearray | None = None
        self._filled = 0

    @property
    def is_mid_frame(self) -> bool:
        """Whether a frame has begun and is not complete."""
        return self._body is not None or bool(self._head)

    def target(self) -> memoryview | None:
        """Return where the rest of the present frame belongs, if it is known how large that is."""
        return None if self._body is None else memoryview(self._body)[self._filled :]

    def filled(self, count: int) -> bytearray | None:
        """Take note of `count` bytes received into the target; return the frame if that completes it."""
        assert self._body is not None
        self._filled += count
        if self._filled < len(self._body):
            return None
        frame, self._body = self._body, None
        return frame

    def receive(self, data: memoryview) -> list[bytes | bytearray]:
        """Take bytes that were received elsewhere (they are copied) and return the frames they complete."""
        frames: list[bytes | bytearray] = []
        position, end = 0, len(data)
        if self._body is not None:
            position = min(end, len(self._body) - self._filled)
            self._body[self._filled : self._filled + position] = data[:position]
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
                # The size is the peer's word, and all of it is written to here: the limit is what bounds it.
                self._body = bytearray(size)
                self._filled = end - position
                self._body[: self._filled] = data[position:]
                break
        return frames


def _strange(head: bytes, size: int, limit: int) -> KafkaError:
    """Return what to say about a frame that cannot be one."""
    if head[:2] in {b"\x15\x03", b"\x16\x03"}:
        return SslAuthenticationError(
            "the other side speaks TLS: security_protocol has to be SSL or SASL_SSL for this port"
        )
    if head in {b"HTTP", b"<htm", b"<!DO"}:
        return InvalidReceiveError("the other side speaks HTTP: this is not a broker's port")
    if head[:3] == b"SSH":
        return InvalidReceiveError("the other side speaks SSH: this is not a broker's port")
    if size < 0:
        return InvalidReceiveError(f"a frame of {size} bytes was announced: the stream is broken, or this is no broker")
    return InvalidReceiveError(f"a frame of {size} bytes was announced, receive_message_max_bytes allows {limit}")


class SendQueue:
    """Pieces to be sent in order, and whom to tell when a message has left.

    >>> queue = SendQueue()
    >>> queue.put([b"abc", b"defg"])
    >>> queue.pieces()
    [b'abc', b'defg']
    >>> queue.sent(5)
    >>> bytes(queue.pieces()[0])
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

    def put(self, pieces: list[bytes], on_sent: Callable[[], object] | None = None) -> None:
        """Add a message; `on_sent` is called when its last byte has been taken."""
        for piece in pieces:
            if len(piece):
                self.waiting.append(piece)
                self._put += len(piece)
        if on_sent is not None:
            self._marks.append((self._put, on_sent))

    def pieces(self) -> list[bytes | memoryview]:
        """Return what to send next."""
        return list(islice(self.waiting, _PIECES))

    def sent(self, count: int) -> None:
        """Take note that `count` bytes were taken."""
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
