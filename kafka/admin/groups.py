"""Groups: list and delete them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from kafka.acl import Named
from kafka.admin.calls import Calls, call
from kafka.admin.results import Outcome, Result, error_of, raise_first
from kafka.errors import KafkaError, NoError
from kafka.protocol.admin import DeleteGroupsRequest, DeleteGroupsResponse, ListGroupsRequest

_STATES_SINCE: Final = 4
_TYPES_SINCE: Final = 5


class GroupState(Named, str, Enum):
    """The state of a group, as Kafka writes it."""

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"

    __str__ = str.__str__


class GroupType(Named, str, Enum):
    """The type of a group, as Kafka writes it."""

    UNKNOWN = "Unknown"
    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"
    STREAMS = "Streams"

    __str__ = str.__str__


class MemberToRemove(NamedTuple):
    """A member of a group that is to be removed: its id, or the ``group_instance_id`` of a static member."""

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class ListedGroup(Result):
    """A group; its state and type are empty where the broker does not tell (before 2.6 and 3.8)."""

    __slots__ = ()
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


class ListedGroups(list[ListedGroup]):
    """The groups of the brokers that answered; `failed` has the error of each broker that did not."""

    __slots__ = ("failed",)

    def __init__(self, groups: Iterable[ListedGroup], failed: Mapping[int, KafkaError]) -> None:
        super().__init__(groups)
        self.failed: dict[int, KafkaError] = dict(failed)

    @property
    def ok(self) -> bool:
        """Whether every broker answered."""
        return not self.failed


def as_groups(groups: Iterable[object]) -> list[str]:
    """Return the names of groups, each once.

    >>> as_groups("g")
    Traceback (most recent call last):
    TypeError: group_ids must be a list of names, not 'g'; for one group, a list with one element
    """
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise TypeError(f"group_ids must be a list of names, not {groups!r}; for one group, a list with one element")
    return list(dict.fromkeys(as_group(group) for group in groups))


def as_group(group: object) -> str:
    """Return the name of a group."""
    if not isinstance(group, str):
        raise TypeError(f"the id of a group must be a str, not {group!r}")
    return group


class Groups(Calls):
    """The calls about groups as a whole."""

    @call
    async def list_groups(
        self,
        broker_ids: Iterable[int] | None = None,
        states_filter: Iterable[str] | None = None,
        types_filter: Iterable[str] | None = None,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> ListedGroups:
        """List the groups of all brokers, or of some, in these states and of these types.

        A broker that does not answer raises its error; with ``raise_errors=False`` the groups of the others are
        returned, with the errors by broker in ``failed``.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         committed = admin.alter_group_offsets("readers", {("events", 0): 0})
        ...         [(group.group_id, group.group_state) for group in admin.list_groups()]
        [('readers', 'Empty')]
        """
        deadline = self._core.deadline(timeout_ms)
        brokers = None if broker_ids is None else list(broker_ids)
        states = [str(state) for state in states_filter or ()]
        types = [str(kind) for kind in types_filter or ()]
        await self._core.require(deadline, ListGroupsRequest.API_KEY, 0, "list_groups()", "0.9")
        version = await self._core.version_of(ListGroupsRequest(), deadline)
        if states and version < _STATES_SINCE:
            raise self._core.unsupported("states_filter", "2.6")
        if types and version < _TYPES_SINCE:
            raise self._core.unsupported("types_filter", "3.8")
        nodes = await self._core.brokers(deadline) if brokers is None else brokers
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        answers = await self._core.ask_each(nodes, lambda _: request, deadline, "list_groups()", checked=True)
        failed = {node: answer for node, answer in answers.items() if isinstance(answer, KafkaError)}
        # Both brokers may list a group whose coordinator moves meanwhile.
        groups = {
            group.group_id: ListedGroup.of_entry(group)
            for answer in answers.values()
            if not isinstance(answer, KafkaError)
            for group in answer.groups
        }
        found = ListedGroups(groups.values(), failed)
        if raise_errors:
            raise_first(failed.values(), found)
        return found

    async def list_consumer_groups(
        self, broker_ids: Iterable[int] | None = None, timeout_ms: float | None = None
    ) -> list[tuple[str, str]]:
        """List the groups as pairs of name and protocol type, as kafka-python 2 does."""
        found = await self.list_groups(broker_ids, timeout_ms=timeout_ms)
        return [(group.group_id, group.protocol_type) for group in found]

    @call
    async def delete_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[str, Outcome]:
        """Delete groups without members.

        The first error of a group is raised; with ``raise_errors=False`` the result has ``OK`` or the text of the error
        for each, which is a `str` with the exception in its ``error``.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     admin.delete_groups(["readers"], raise_errors=False)["readers"].error.message
        'GROUP_ID_NOT_FOUND'
        """
        deadline = self._core.deadline(timeout_ms)
        groups = as_groups(group_ids)
        await self._core.require(deadline, DeleteGroupsRequest.API_KEY, 0, "delete_groups()", "1.1")

        def read(response: DeleteGroupsResponse) -> dict[str, KafkaError | bool]:
            return {
                entry.group_id: error_of(entry.error_code, f"delete_groups(): {entry.group_id!r}") or True
                for entry in response.results
            }

        answers = await self._core.ask_coordinators(
            groups,
            lambda some: DeleteGroupsRequest(groups_names=some),
            read,
            deadline,
            "delete_groups()",
            node_id=group_coordinator_id,
        )
        found = {
            group: Outcome(answer if isinstance(answer, KafkaError) else None) for group, answer in answers.items()
        }
        if raise_errors:
            raise_first((outcome.error for outcome in found.values()), found)
        return found

    async def delete_consumer_groups(
        self, group_ids: Iterable[str], group_coordinator_id: int | None = None, timeout_ms: float | None = None
    ) -> list[tuple[str, type[KafkaError]]]:
        """Delete groups without members; return pairs of name and error class, as kafka-python 2 does."""
        found = await self.delete_groups(group_ids, group_coordinator_id, timeout_ms, raise_errors=False)
        return [(group, type(outcome.error) if outcome.error else NoError) for group, outcome in found.items()]
