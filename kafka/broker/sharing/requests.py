"""The common parts of ShareFetch and ShareAcknowledge: rights, partitions, and acknowledgements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kafka.broker.security.acls import Operation, Resource
from kafka.broker.sharing.share_partition import RENEW, Acknowledgement, SharePartition
from kafka.broker.sharing.share_sessions import Place, share_sessions
from kafka.errors import Code, InvalidRequestError, UnsupportedVersionError

if TYPE_CHECKING:
    from kafka.broker.cluster.topics import Partition
    from kafka.broker.server.call import Call

_FEATURE: Final = "share.version"
#: Kafka's ids of members are UUIDs in text form.
_LONGEST_MEMBER_ID: Final = 36


def check_member(call: Call, group_id: str | None, member_id: str | None) -> None:
    """Raise if this client may not read for this group."""
    if not call.cluster.features.serves(_FEATURE):
        raise UnsupportedVersionError
    call.require(Operation.READ, Resource.GROUP, group_id or "")
    if not group_id or not member_id or len(member_id) > _LONGEST_MEMBER_ID:
        raise InvalidRequestError


def lock_timeout_ms(call: Call, group_id: str) -> int:
    """Return how long a member of the group has what it acquires."""
    return round(share_sessions(call.node).settings_of(group_id).share_record_lock_duration * 1000)


def find_partition(call: Call, place: Place) -> tuple[Partition | None, int]:
    """Return a partition that the client may read, or why it may not."""
    topic = call.cluster.topic(topic_id=place[0])
    if topic is None:
        return None, Code.UNKNOWN_TOPIC_ID
    if not call.allows(Operation.READ, Resource.TOPIC, topic.name):
        return None, Code.TOPIC_AUTHORIZATION_FAILED
    partition = topic.partition(place[1])
    return partition, Code.NONE if partition is not None else Code.UNKNOWN_TOPIC_OR_PARTITION


def acknowledgements_of(topics: Iterable[Any]) -> dict[Place, list[Acknowledgement]]:
    """Return the acknowledgements of a request, by partition."""
    found: dict[tuple[UUID, int], list[Acknowledgement]] = {}
    for topic in topics:
        for part in topic.partitions:
            rows = [
                Acknowledgement(one.first_offset, one.last_offset, one.acknowledge_types)
                for one in part.acknowledgement_batches
            ]
            if rows:
                found[topic.topic_id, part.partition_index] = rows
    return found


class Acknowledging:
    """The acknowledgements of a request: all are checked first, and done later."""

    def __init__(self, call: Call, group_id: str, member_id: str, topics: Iterable[Any], *, may_renew: bool) -> None:
        self._member_id = member_id
        #: Error codes by partition.
        self.codes: dict[Place, int] = {}
        self._checked: dict[Place, tuple[SharePartition, dict[int, int]]] = {}
        for place, rows in acknowledgements_of(topics).items():
            partition, code = find_partition(call, place)
            shared = share_sessions(call.node).partition(group_id, place)
            if partition is not None and not _is_valid(rows, may_renew=may_renew):
                code = Code.INVALID_REQUEST
            elif partition is not None and shared is None:
                code = Code.UNKNOWN_TOPIC_OR_PARTITION
            if not code and shared is not None:
                outcome = shared.check(member_id, rows)
                if isinstance(outcome, Code):
                    code = outcome
                else:
                    self._checked[place] = (shared, outcome)
            self.codes[place] = code

    def do(self) -> None:
        """Do all that is correct."""
        for place, (shared, outcome) in self._checked.items():
            self.codes[place] = shared.acknowledge(self._member_id, outcome)


def _is_valid(rows: Iterable[Acknowledgement], *, may_renew: bool) -> bool:
    """Whether acknowledgements ascend, and have a type for all offsets or for each."""
    known = range(RENEW + 1 if may_renew else RENEW)
    before = -1
    for first, last, types in rows:
        if not types or not before < first <= last or len(types) not in {1, last - first + 1}:
            return False
        if not all(kind in known for kind in types):
            return False
        before = last
    return True
