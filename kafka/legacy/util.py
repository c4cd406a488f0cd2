"""The functions and classes of ``kafka.util`` in kafka-python 1.x and 2.x."""

from __future__ import annotations

import functools
import logging
import re
import struct
import time
from collections.abc import Callable, Iterable
from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakMethod as WeakMethod_
from zlib import crc32 as _unsigned_crc32

from kafka.errors import BufferUnderflowError, KafkaTimeoutError
from kafka.structs import check_topic

if TYPE_CHECKING:
    from kafka.legacy.payloads import OfPartition


__all__ = [
    "MAX_INT",
    "TOPIC_LEGAL_CHARS",
    "TOPIC_MAX_LENGTH",
    "TO_SIGNED",
    "Dict",
    "ReentrantTimer",
    "Timer",
    "WeakMethod",
    "crc32",
    "ensure_valid_topic_name",
    "group_by_topic_and_partition",
    "read_short_string",
    "relative_unpack",
    "synchronized",
    "try_method_on_system_exit",
    "write_int_string",
]

P = TypeVar("P", bound="OfPartition")

log = logging.getLogger("kafka.util")

MAX_INT: Final = 2**31
TO_SIGNED: Final = 2**32
_STOP_TIMEOUT: Final = 5.0  # seconds


def crc32(data: bytes) -> int:
    """Return a checksum as a signed number, as messages have it.

    >>> crc32(b"some bytes"), crc32(b"a")
    (-1621524651, -390611389)
    """
    crc = _unsigned_crc32(data)
    return crc - TO_SIGNED if crc >= MAX_INT else crc


def write_int_string(s: bytes | None) -> bytes:
    """Return bytes with their length in front; None has the length -1.

    >>> write_int_string(b"ab")
    b'\\x00\\x00\\x00\\x02ab'
    """
    return struct.pack(">i", -1) if s is None else struct.pack(f">i{len(s)}s", len(s), s)


def read_short_string(data: bytes, cur: int) -> tuple[bytes | None, int]:
    """Read bytes that have their length in front; return them and where they end.

    >>> read_short_string(b"\\x00\\x02ab", 0)
    (b'ab', 4)
    """
    (length,), cur = relative_unpack(">h", data, cur)
    if length == -1:
        return None, cur
    if len(data) < cur + length:
        raise BufferUnderflowError(f"a string of {length} bytes is cut off after {len(data) - cur}")
    return data[cur : cur + length], cur + length


def relative_unpack(fmt: str, data: bytes, cur: int) -> tuple[tuple[Any, ...], int]:
    """Unpack values from a place on; return them and where they end.

    >>> relative_unpack(">hh", b"\\x00\\x01\\x00\\x02", 0)
    ((1, 2), 4)
    """
    size = struct.calcsize(fmt)
    if len(data) < cur + size:
        raise BufferUnderflowError(f"{size} bytes are wanted, {len(data) - cur} are left")
    return struct.unpack(fmt, data[cur : cur + size]), cur + size


def group_by_topic_and_partition(tuples: Iterable[P]) -> dict[str, dict[int, P]]:
    """Return payloads by topic and partition; each partition may have one.

    >>> from kafka.structs import TopicPartition
    >>> group_by_topic_and_partition([TopicPartition("events", 0)])
    {'events': {0: TopicPartition(topic='events', partition=0)}}
    """
    grouped: dict[str, dict[int, P]] = {}
    for each in tuples:
        partitions = grouped.setdefault(each.topic, {})
        if each.partition in partitions:
            raise AssertionError(f"Duplicate {type(each).__name__}s for {each.topic} {each.partition}")
        partitions[each.partition] = each
    return grouped


class Dict(dict[Any, Any]):
    """A dict that can be referred to weakly."""

    __slots__ = ("__weakref__",)


class WeakMethod:
    """Calls a method of an object that it does not keep; afterwards it raises ReferenceError.

    >>> class Counter:
    ...     def next(self):
    ...         return 1
    >>> counter = Counter()
    >>> method = WeakMethod(counter.next)
    >>> method()
    1
    """

    def __init__(self, object_dot_method: Callable[..., object]) -> None:
        self.method = WeakMethod_(object_dot_method)
        self._hash = hash(object_dot_method)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the method."""
        method = self.method()
        if method is None:
            raise ReferenceError("the object of the method is gone")
        return method(*args, **kwargs)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WeakMethod) and self.method == other.method


class ReentrantTimer:
    """Calls a function every ``t`` milliseconds, in a thread, between `start` and `stop`.

    >>> from threading import Event
    >>> called = Event()
    >>> timer = ReentrantTimer(1, called.set)
    >>> timer.start()
    >>> called.wait(10)
    True
    >>> timer.stop()
    """

    def __init__(self, t: float, fn: Callable[..., object], *args: object, **kwargs: object) -> None:
        if t <= 0:
            raise ValueError(f"Invalid timeout value {t!r}: it is in ms, greater than 0")
        if not callable(fn):
            raise ValueError(f"fn must be callable, not {fn!r}")
        self.t = t / 1000
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.active: Event | None = None
        self.thread: Thread | None = None

    def start(self) -> None:
        """Begin; a timer that runs begins its interval again."""
        if self.thread is not None:
            self.stop()
        self.active = Event()
        # The thread refers to what it calls, not to the timer.
        arguments = (self.active, self.t, self.fn, self.args, self.kwargs)
        self.thread = Thread(target=_call_every, args=arguments, name="kafka-timer", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """End. A call that runs is waited for."""
        if self.active is not None:
            self.active.set()
        if self.thread is not None and self.thread is not current_thread():
            self.thread.join(_STOP_TIMEOUT)
        self.thread = None

    def __del__(self) -> None:
        if getattr(self, "active", None) is not None:
            self.active.set()  # type: ignore[union-attr] # it was just asked for


def _call_every(
    ended: Event, interval: float, fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    while not ended.wait(interval):
        try:
            fn(*args, **kwargs)
        except Exception:  # noqa: PERF203 - the next call may succeed
            log.exception("The timer's function failed; it is called again after %g s", interval)


def try_method_on_system_exit(obj: object, method: str, *args: object, **kwargs: object) -> None:
    """Call a method of an object when the interpreter exits, unless the object is gone."""
    import atexit
    import weakref

    reference = weakref.ref(obj)

    def call() -> None:
        found = reference()
        if found is not None:
            getattr(found, method)(*args, **kwargs)

    atexit.register(call)


# kafka.util of 2.x

TOPIC_MAX_LENGTH: Final = 249
TOPIC_LEGAL_CHARS: Final = re.compile("^[a-zA-Z0-9._-]+$")


def ensure_valid_topic_name(topic: str) -> None:
    """Raise TypeError or ValueError for a name that a topic cannot have."""
    check_topic(topic)


class Timer:
    """Measures the time that is left of a timeout.

    >>> timer = Timer(60_000)
    >>> timer.expired, timer.timeout_ms > 0
    (False, True)
    """

    def __init__(
        self, timeout_ms: float | None, error_message: str | None = None, start_at: float | None = None
    ) -> None:
        self._started_at = time.monotonic() if start_at is None else start_at
        self._deadline = None if timeout_ms is None else self._started_at + timeout_ms / 1000
        self._error_message = error_message

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return self._deadline is not None and time.monotonic() >= self._deadline

    @property
    def timeout_ms(self) -> float | None:
        """Milliseconds left, at least 0; None without a limit."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic()) * 1000

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the start."""
        return (time.monotonic() - self._started_at) * 1000

    def maybe_raise(self) -> None:
        """Raise KafkaTimeoutError if the time is up."""
        if self.expired:
            raise KafkaTimeoutError(self._error_message or f"the time is up after {self.elapsed_ms:.0f} ms")


def synchronized(func: Callable[..., object]) -> Callable[..., Any]:
    """Run a method while its object's ``_lock`` is held."""

    @functools.wraps(func)
    def wrapper(self: Any, *args: object, **kwargs: object) -> object:
        with self._lock:
            return func(self, *args, **kwargs)

    return wrapper
