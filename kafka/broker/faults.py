"""What tests order to go wrong, or want to see: errors, delays, changed replies, the log of requests, and a watcher.

The dispatcher asks :class:`Faults` about each request. With no order in force that is one look-up in an empty dict.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from kafka.broker.server.versions import ApiKeyLike, api_key_of
from kafka.errors import IllegalArgumentError, KafkaError, kafka_errors

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.broker.server.call import Call
    from kafka.broker.server.connection import Connection
    from kafka.protocol.api import Request, Response


class _Action:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


#: Returned by an interceptor: the request is never answered.
NO_REPLY: Final = _Action("NO_REPLY")
#: Returned by an interceptor: the connection is closed instead.
CLOSE: Final = _Action("CLOSE")

ErrorLike = int | str | KafkaError | type[KafkaError] | None


def error_code(error: ErrorLike) -> int | None:
    """Return the code of an error given as number, Kafka's name, class or instance; None stays None.

    >>> error_code("NOT_LEADER_OR_FOLLOWER"), error_code("NotLeaderOrFollowerError")
    (6, 6)
    """
    if error is None:
        return None
    if isinstance(error, str):
        return _code_named(error)
    code = error if isinstance(error, int) and not isinstance(error, bool) else getattr(error, "errno", None)
    if not isinstance(code, int):
        raise IllegalArgumentError(
            f"{error!r} is not an error that a broker answers with; give a code, Kafka's name of one such as "
            "'NOT_LEADER_OR_FOLLOWER', or a class of kafka.errors that has an errno"
        )
    return code


def error_codes(errors: ErrorLike | Iterable[ErrorLike]) -> list[int | None]:
    """Return the codes of one error or of several."""
    is_one = errors is None or isinstance(errors, (int, str, KafkaError, type)) or not isinstance(errors, Iterable)
    return [error_code(error) for error in ((errors,) if is_one else errors)]  # type: ignore[union-attr, arg-type]


def _code_named(name: str) -> int:
    known: dict[str, int] = {}
    for code, cls in kafka_errors.items():
        known[str(cls.message)] = known[cls.__name__.upper()] = code
    found = known.get(name.upper())
    if found is None:
        near = get_close_matches(name.upper(), [str(cls.message) for cls in kafka_errors.values()], n=1)
        raise IllegalArgumentError(
            f"Kafka has no error {name!r}" + (f"; did you mean {near[0]!r}?" if near else "; kafka.errors lists them")
        )
    return found


@dataclass(frozen=True)
class SeenRequest:
    """A request that arrived, as ``broker.requests`` lists it."""

    request: Request[Response]
    api_key: int
    version: int
    client_id: str | None
    node_id: int
    connection: int
    """The number of the connection; each has its own."""
    correlation_id: int
    time: float
    """The broker's time."""
    size: int

    @property
    def name(self) -> str:
        """The API's name, as ``Fetch``."""
        return type(self.request).__name__.removesuffix("Request")


@dataclass
class Exchange:
    """A request and the reply that is about to be sent, as an interceptor receives them."""

    request: Request[Response]
    reply: Any
    call: Call

    @property
    def node_id(self) -> int:
        """The node that was asked."""
        return self.call.node.node_id

    @property
    def client_id(self) -> str:
        """The client's name for itself."""
        return self.call.client_id

    @property
    def version(self) -> int:
        """The request's version."""
        return self.call.version


Interceptor = Callable[[Exchange], Any]


@dataclass(eq=False)
class Order:
    """One thing that a test ordered; ``remove()`` or the end of ``with`` takes it back."""

    api_key: int | None
    node: int | None
    times: int | None
    errors: deque[int | None] = field(default_factory=deque)
    interceptor: Interceptor | None = None
    before: bool = False
    delay: float | None = None
    drops: bool = False
    used: int = 0
    _owner: Faults | None = None

    def remove(self) -> None:
        """Take it back."""
        if self._owner is not None:
            self._owner.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.remove()


@dataclass
class Taken:
    """What one request obeys: it was counted by each of these orders when it arrived."""

    delays: list[float] = field(default_factory=list)
    before: list[Interceptor] = field(default_factory=list)
    reply: Any = None
    """The reply with an error, or :data:`CLOSE`."""
    after: list[Interceptor] = field(default_factory=list)


class Watcher(Protocol):
    """Sees all connections, requests and replies of a cluster, on the broker's loop; it must not block or raise."""

    def opened(self, connection: Connection) -> None:
        """A client has connected."""
        ...

    def closed(self, connection: Connection) -> None:
        """A connection has ended."""
        ...

    def arrived(self, call: Call, request: Request[Response]) -> None:
        """A request has been read, and is served next."""
        ...

    def answered(self, call: Call, request: Request[Response], reply: Any) -> None:
        """A reply is about to be sent, as faults have left it; None where the request has none."""
        ...


class Faults:
    """The orders in force, and the requests that have been seen."""

    #: The log of requests keeps the latest up to this many bytes of frames.
    LOG_BYTES: Final = 16 * 1024 * 1024

    #: Makes the watcher of each cluster that starts; the tests of this project set it.
    make_watcher: ClassVar[Callable[[], Watcher] | None] = None

    def __init__(self) -> None:
        self._orders: dict[int | None, list[Order]] = defaultdict(list)
        self.watcher = None if Faults.make_watcher is None else Faults.make_watcher()
        #: Whether the dispatcher must ask about each request.
        self.is_active = self.watcher is not None
        self._log: deque[SeenRequest] = deque()
        self._log_bytes = 0

    def add(self, api: ApiKeyLike | None, **options: Any) -> Order:
        """Put an order in force; for all APIs with None."""
        order = Order(None if api is None else api_key_of(api), **options, _owner=self)
        self._orders[order.api_key].append(order)
        self.is_active = True
        return order

    def remove(self, order: Order) -> None:
        """Take an order back; harmless if it is used up."""
        orders = self._orders.get(order.api_key)
        if orders and order in orders:
            orders.remove(order)
        self.is_active = self.watcher is not None or any(self._orders.values())

    def clear(self) -> None:
        """Take all orders back."""
        self._orders.clear()
        self.is_active = self.watcher is not None

    def take(self, api_key: int, node_id: int, refuse: Callable[[int], Any]) -> Taken | None:
        """Return what a request that has arrived must obey, and count it; None if no order is for it.

        Counted at once, not when it is carried out: an order for one request is not for later requests that arrive
        in the meantime. ``refuse(code)`` makes the reply with an error, or returns None if the request asks for
        nothing that could have it: then the error waits for one that does.
        """
        orders = [
            order
            for order in (*self._orders.get(api_key, ()), *self._orders.get(None, ()))
            if order.node is None or order.node == node_id
        ]
        if not orders:
            return None
        taken = Taken([order.delay for order in orders if order.delay is not None])
        for order in orders:
            if order.delay is not None:
                self._use(order)
            elif taken.reply is None:
                self._take_before(order, taken, refuse)
        if taken.reply is None:
            for order in orders:
                if order.interceptor is not None and not order.before:
                    taken.after.append(order.interceptor)
                    self._use(order)
        return taken

    def _take_before(self, order: Order, taken: Taken, refuse: Callable[[int], Any]) -> None:
        """Take what answers, or may answer, in the place of the API."""
        if order.drops:
            taken.reply = CLOSE
            self._use(order)
        elif order.errors:
            taken.reply = self._next_error(order, refuse)
        elif order.interceptor is not None and order.before:
            taken.before.append(order.interceptor)
            self._use(order)

    def _next_error(self, order: Order, refuse: Callable[[int], Any]) -> Any:
        code = order.errors[0]
        reply = None if code is None else refuse(code)
        if reply is not None or code is None:
            order.errors.popleft()
            order.used += 1
            if not order.errors:
                self.remove(order)
        return reply

    def _use(self, order: Order) -> None:
        """Count one use; an order that has been used as often as it says is gone."""
        order.used += 1
        if order.times is not None and order.used >= order.times:
            self.remove(order)

    # The log of requests

    def note(self, seen: SeenRequest) -> None:
        """Remember a request; forget the oldest beyond :attr:`LOG_BYTES`."""
        self._log.append(seen)
        self._log_bytes += seen.size
        while self._log_bytes > self.LOG_BYTES:
            self._log_bytes -= self._log.popleft().size

    def seen(self) -> list[SeenRequest]:
        """Return the requests, oldest first."""
        return list(self._log)

    def forget(self) -> None:
        """Empty the log of requests."""
        self._log.clear()
        self._log_bytes = 0
