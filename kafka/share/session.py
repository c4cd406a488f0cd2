"""A broker's share session (KIP-932): the epochs of its requests, the partitions they name, their layout. Sans-IO.

A member has one session with each broker. Epoch 0 opens it, and may carry no acknowledgements; each further request,
a ShareFetch or a ShareAcknowledge, has the next epoch, and epoch -1 closes it: then the broker releases what the member
has. The broker keeps the session's partitions, so a fetch names the partitions that are new and the ones to forget.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from kafka.protocol.share import ShareAcknowledgeRequest, ShareFetchRequest
from kafka.share.acknowledgements import AcknowledgedRange, Acknowledgements, acknowledged_ranges, types_of

if TYPE_CHECKING:
    from kafka.config import Config

T = TypeVar("T")

Place: TypeAlias = tuple[UUID, int]
"""A partition: the id of its topic, and its number."""

OPENING: Final = 0
CLOSING: Final = -1
_LAST_EPOCH: Final = 2**31 - 1
_RECORD_LIMIT: Final = 1


class SharedFetch(NamedTuple):
    """The part of a fetch that depends on the session."""

    epoch: int
    added: Collection[Place]
    forgotten: Collection[Place]


class ShareSession:
    """The session with one broker.

    >>> session = ShareSession()
    >>> a, b = (UUID(int=1), 0), (UUID(int=1), 1)
    >>> session.fetch([a, b]).epoch
    0
    >>> session.answered()
    >>> after = session.fetch([b])
    >>> after.epoch, list(after.added), list(after.forgotten) == [a]
    (1, [], True)
    """

    def __init__(self) -> None:
        self.epoch = OPENING
        """The epoch of the next request."""
        self.ended = False
        """Whether the broker does not have it any more, or not as it is known here; there is another one then."""
        self._known: tuple[Place, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether the broker has it, as far as is known."""
        return self.epoch != OPENING

    def fetch(self, wanted: Collection[Place]) -> SharedFetch:
        """Return the next fetch's part, which is to read these partitions."""
        known, self._known = self._known, tuple(wanted)
        return SharedFetch(
            self.epoch,
            [place for place in wanted if place not in known],
            [place for place in known if place not in wanted],
        )

    def answered(self) -> None:
        """Record a response without an error of the whole request."""
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1


class ShareRequests:
    """Makes the requests of one member."""

    def __init__(self, config: Config, member_id: str) -> None:
        self._group_id: str = config["group_id"]
        self._member_id = member_id
        self._min_bytes: int = config["fetch_min_bytes"]
        self._max_bytes: int = config["fetch_max_bytes"]
        self._max_records: int = config["max_poll_records"]
        self._mode = _RECORD_LIMIT if config["share_acquire_mode"] == "record_limit" else 0

    def fetch(
        self, session: ShareSession, places: Collection[Place], sent: Iterable[Acknowledgements], max_wait: float
    ) -> ShareFetchRequest:
        """Return the request that reads these partitions, and brings acknowledgements of some of them."""
        part, said = session.fetch(places), merged(sent)
        make, batch = ShareFetchRequest.FetchPartition, ShareFetchRequest.AcknowledgementBatch
        parts = [
            (place[0], make(partition_index=place[1], acknowledgement_batches=_batches(batch, said.get(place, ()))))
            for place in sorted({*part.added, *said}, key=lambda place: (place[0].int, place[1]))
        ]
        return ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=part.epoch,
            max_wait_ms=int(max_wait * 1000),
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            max_records=self._max_records,
            batch_size=self._max_records,
            share_acquire_mode=self._mode,
            topics=_by_topic(ShareFetchRequest.FetchTopic, parts),
            forgotten_topics_data=_by_topic(ShareFetchRequest.ForgottenTopic, part.forgotten),
        )

    def acknowledge(
        self, session: ShareSession, sent: Collection[Acknowledgements], *, closing: bool = False
    ) -> ShareAcknowledgeRequest:
        """Return the request that brings acknowledgements, and closes the session if told to."""
        make, batch = ShareAcknowledgeRequest.AcknowledgePartition, ShareAcknowledgeRequest.AcknowledgementBatch
        parts = [
            (place[0], make(partition_index=place[1], acknowledgement_batches=_batches(batch, ranges)))
            for place, ranges in merged(sent).items()
        ]
        return ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=CLOSING if closing else session.epoch,
            is_renew_ack=any(entry.renews for entry in sent),
            topics=_by_topic(ShareAcknowledgeRequest.AcknowledgeTopic, parts),
        )


def merged(sent: Iterable[Acknowledgements]) -> dict[Place, list[AcknowledgedRange]]:
    """Return acknowledgements by partition; later ones count."""
    found: dict[Place, list[AcknowledgedRange]] = {}
    for entry in sent:
        place = (entry.topic_id, entry.partition.partition)
        before = found.get(place)
        if before is None:
            found[place] = entry.ranges
        else:
            found[place] = acknowledged_ranges({**types_of(before), **entry.types})
    return found


def _batches(make: Callable[..., T], ranges: Iterable[AcknowledgedRange]) -> list[T]:
    return [make(first_offset=first, last_offset=last, acknowledge_types=types) for first, last, types in ranges]


def _by_topic(make: Callable[..., T], rows: Iterable[tuple[UUID, Any]]) -> list[T]:
    """Return partitions below their topics."""
    topics: dict[UUID, list[Any]] = {}
    for topic_id, partition in rows:
        topics.setdefault(topic_id, []).append(partition)
    return [make(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()]
