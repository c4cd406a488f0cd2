"""Requests that an application makes itself, and the brokers that coordinate something."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, cast

from kafka._arguments import check_request
from kafka.admin.calls import Calls, call
from kafka.admin.results import raise_first
from kafka.cluster import GROUP, TRANSACTION
from kafka.errors import IllegalArgumentError, KafkaError
from kafka.protocol.api import Request, Response

ResponseT = TypeVar("ResponseT", bound="Response")

_SHARE: Final = 2
_KEY_TYPES: Final = {"group": GROUP, "transaction": TRANSACTION, "share": _SHARE}


class Requests(Calls):
    """The calls that send a request as it is."""

    @call
    async def send_request(
        self, request: Request[ResponseT], node_id: int | None = None, timeout_ms: float | None = None
    ) -> ResponseT:
        """Send a request to a broker, or to the one that it is for, and return the response.

        For None that is the controller, the coordinator of the group or transaction that the request names, the leader
        of its partitions, or any broker. Error codes in the response are left to the caller.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> from kafka.protocol.admin import ListGroupsRequest
        >>> with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     admin.send_request(ListGroupsRequest()).groups
        []
        """
        deadline = self._core.deadline(timeout_ms)
        check_request(request)
        return await self._core.ask(request, deadline, type(request).__name__, node_id=node_id)

    @call
    async def send_requests(
        self,
        requests_and_node_ids: Iterable[tuple[Any, int | None]],
        response_fn: Callable[[Any], object] = lambda response: response,
        timeout_ms: float | None = None,
    ) -> list[Any]:
        """Send requests to brokers, all at the same time; return what `response_fn` makes of each response."""
        deadline = self._core.deadline(timeout_ms)
        wanted = list(requests_and_node_ids)
        for request, _ in wanted:
            check_request(request)
        responses: list[Any] = await self._core.gather(
            [self.send_request(request, node_id, timeout_ms=deadline) for request, node_id in wanted]
        )
        return [response_fn(response) for response in responses]

    @call
    async def broadcast_request(
        self, request: Request[ResponseT], broker_ids: Iterable[int] | None = None, timeout_ms: float | None = None
    ) -> dict[int, ResponseT | KafkaError]:
        """Send a request to all brokers, or to some, at the same time; return the response or the error of each."""
        deadline = self._core.deadline(timeout_ms)
        check_request(request)
        nodes = None if broker_ids is None else list(broker_ids)
        wanted = await self._core.brokers(deadline) if nodes is None else nodes
        return await self._core.ask_each(wanted, lambda _: request, deadline, type(request).__name__)

    async def find_coordinator(
        self, key: str, coordinator_type: str | int = "group", timeout_ms: float | None = None
    ) -> int:
        """Return the id of the broker that coordinates a ``group``, a ``transaction`` or a ``share`` partition."""
        found = await self.find_coordinators([key], coordinator_type, timeout_ms)
        return found[key]

    @call
    async def find_coordinators(
        self,
        keys: Iterable[str],
        coordinator_type: str | int = "group",
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[str, int]:
        """Return the ids of the brokers that coordinate groups or transactions, looked up now.

        With ``raise_errors=False`` a key whose coordinator is not known has the error instead.
        """
        deadline = self._core.deadline(timeout_ms)
        kind = _KEY_TYPES.get(str(coordinator_type).lower(), coordinator_type)
        if kind not in _KEY_TYPES.values():
            raise IllegalArgumentError(
                f"coordinator_type must be {', '.join(map(repr, _KEY_TYPES))}, not {coordinator_type!r}"
            )
        wanted = list(dict.fromkeys(keys))
        key_type = int(kind)
        found = await self._core.find_coordinators(wanted, key_type, deadline, "find_coordinators()")
        if raise_errors:
            raise_first(found.values(), found)
        return cast("dict[str, int]", found)
