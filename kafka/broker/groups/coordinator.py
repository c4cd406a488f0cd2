"""All groups of the cluster: lookup by kind, conversion, offsets, listing, describing, deleting.

Sans-IO; the API files translate messages into the calls here, and this class finds the group that each concerns. What
it raises is the error code of the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from kafka.broker.cluster.clock import BrokerClock, Timers
from kafka.broker.groups.classic_group import ClassicGroup, ClassicGroupSnapshot
from kafka.broker.groups.classic_member import JoinAsk, JoinResult, SyncAsk, SyncResult
from kafka.broker.groups.consumer_group import ConsumerGroup, ConsumerGroupSnapshot
from kafka.broker.groups.consumer_member import HeartbeatAsk, HeartbeatResult
from kafka.broker.groups.epoch_group import JOIN, Topics
from kafka.broker.groups.group import Answer, ClassicMembers, Commit, Group
from kafka.broker.groups.migration import ClassicFace, check_first_join, downgrade, upgrade
from kafka.broker.groups.offsets import NO_EXPIRY, CommittedOffset, GroupOffsets
from kafka.broker.groups.persistence import from_json, to_json
from kafka.broker.groups.settings import GroupSettings
from kafka.broker.groups.share_group import ShareAsk, ShareGroup, ShareGroupSnapshot, ShareMember
from kafka.broker.groups.share_offsets import ShareOffsets
from kafka.broker.groups.streams_group import StreamsAsk, StreamsGroup, StreamsGroupSnapshot, StreamsResult
from kafka.errors import (
    Code,
    GroupIdNotFoundError,
    IllegalGenerationError,
    InvalidGroupIdError,
    NonEmptyGroupError,
    UnknownMemberIdError,
)
from kafka.structs import TopicPartition

#: The version of OffsetCommit from which GROUP_ID_NOT_FOUND may be answered.
_NO_SUCH_GROUP_FROM: Final = 9

GroupT = TypeVar("GroupT", bound=Group)


class _Kind(NamedTuple):
    """How groups of a kind are made, and the state that is kept of them."""

    make: Callable[[str], Group]
    snapshot: type[Any]


Tables = Callable[[str], MutableMapping[str, Any]]


class GroupCoordinator:
    """Every group, and its offsets."""

    def __init__(
        self,
        settings: GroupSettings,
        clock: BrokerClock,
        timers: Timers,
        topics: Topics,
        new_id: Callable[[], str],
        tables: Tables,
        settings_of: Callable[[str], GroupSettings] | None = None,
    ) -> None:
        self.settings = settings
        #: The settings of a group: the brokers', and what is set for the group itself.
        self.settings_of = settings_of or (lambda _group_id: self.settings)
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, GroupOffsets] = {}
        self._clock = clock
        self._timers = timers
        self._topics = topics
        self._new_id = new_id
        self._kinds: dict[str, _Kind] = {
            ClassicGroup.kind: _Kind(self._new_classic, ClassicGroupSnapshot),
            ConsumerGroup.kind: _Kind(self._new_consumer, ConsumerGroupSnapshot),
            ShareGroup.kind: _Kind(self._new_share, ShareGroupSnapshot),
            StreamsGroup.kind: _Kind(self._new_streams, StreamsGroupSnapshot),
        }
        self._saved_groups = tables("groups")
        self._saved_share_offsets = tables("share_group_offsets")
        self._share_offsets: dict[str, ShareOffsets] = {}
        self._saved_offsets = tables("group_offsets")
        self._saved_pending = tables("group_pending_offsets")
        #: What consumers of the ZooKeeper era committed (OffsetCommit v0): another place, not to be seen by groups.
        self.zookeeper = tables("zookeeper_offsets")
        self._load()
        self._cleaner = timers.call_later(settings.offsets_check_interval, self._clean)

    def _load(self) -> None:
        for key, saved in self._saved_offsets.items():
            group_id, topic, index = key.rsplit("/", 2)
            offsets = self.offsets_of(group_id)
            offsets.committed[TopicPartition(topic, int(index))] = CommittedOffset(*saved)
        for key, saved in list(self._saved_pending.items()):
            producer_id, _, rest = key.partition("/")
            group_id, topic, index = rest.rsplit("/", 2)
            offsets = self.offsets_of(group_id)
            offsets.commit_pending(int(producer_id), TopicPartition(topic, int(index)), CommittedOffset(*saved))
        for group_id, saved in self._saved_groups.items():
            kind = self._kinds[saved["kind"]]
            group = self.groups[group_id] = kind.make(group_id)
            group.load(from_json(kind.snapshot, saved["state"]))

    def close(self) -> None:
        """Stop all timers."""
        self._cleaner.cancel()
        for group in self.groups.values():
            group.resign()

    def settings_changed(self, group_id: str | None = None) -> None:
        """Apply the present settings to one group, or to all."""
        for each in self.groups if group_id is None else {group_id} & self.groups.keys():
            self.groups[each].settings = self.settings_of(each)

    # Finding and making groups

    def _new_classic(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(
            group_id, self.settings_of(group_id), self._clock, self._timers, self._new_id, on_stored=self._save
        )

    def _new_consumer(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(
            group_id,
            self.settings_of(group_id),
            self._clock,
            self._timers,
            self._topics,
            on_change=self._consumer_changed,
            classic=lambda group: ClassicFace(group, self._topics, self._new_id, self._consumer_changed),
        )

    def _new_share(self, group_id: str) -> ShareGroup:
        settings = self.settings_of(group_id)
        offsets = self.share_offsets(group_id)
        return ShareGroup(group_id, settings, self._clock, self._timers, self._topics, self._changed, offsets=offsets)

    def _new_streams(self, group_id: str) -> StreamsGroup:
        settings = self.settings_of(group_id)
        return StreamsGroup(group_id, settings, self._clock, self._timers, self._topics, self._changed)

    def _changed(self, group: Group) -> None:
        if self.groups.get(group.group_id) is group:
            self._save(group)

    def _save(self, group: Group) -> None:
        self._saved_groups[group.group_id] = {"kind": group.kind, "state": to_json(group.snapshot())}

    def _consumer_changed(self, group: ConsumerGroup) -> None:
        if self.groups.get(group.group_id) is not group:
            return
        if group.can_downgrade:
            classic = self._new_classic(group.group_id)
            self.groups[group.group_id] = classic
            downgrade(group, classic, self._topics)
            self._save(classic)
        else:
            self._save(group)

    def offsets_of(self, group_id: str) -> GroupOffsets:
        """Return the offsets of a group, none if it is new."""
        found = self.offsets.get(group_id)
        if found is None:
            found = self.offsets[group_id] = GroupOffsets(
                partial(self._offset_changed, group_id), partial(self._pending_changed, group_id)
            )
        return found

    def _offset_changed(self, group_id: str, partition: TopicPartition, offset: CommittedOffset | None) -> None:
        key = f"{group_id}/{partition.topic}/{partition.partition}"
        if offset is None:
            self._saved_offsets.pop(key, None)
        else:
            self._saved_offsets[key] = list(offset)

    def _pending_changed(
        self, group_id: str, producer_id: int, partition: TopicPartition, offset: CommittedOffset | None
    ) -> None:
        key = f"{producer_id}/{group_id}/{partition.topic}/{partition.partition}"
        if offset is None:
            self._saved_pending.pop(key, None)
        else:
            self._saved_pending[key] = list(offset)

    def _drop(self, group_id: str) -> None:
        self.groups.pop(group_id, None)
        self.offsets.pop(group_id, None)
        self._saved_groups.pop(group_id, None)

    # The classic protocol

    def join(self, group_id: str, ask: JoinAsk) -> Answer[JoinResult]:
        """Serve JoinGroup."""
        if not group_id:
            return Answer.of(JoinResult(Code.INVALID_GROUP_ID, ask.member_id))
        if not self.settings.min_session_timeout <= ask.session_timeout <= self.settings.max_session_timeout:
            return Answer.of(JoinResult(Code.INVALID_SESSION_TIMEOUT, ask.member_id))
        group = self.groups.get(group_id)
        if group is None or group.gives_way:
            if ask.member_id:
                return Answer.of(JoinResult(Code.UNKNOWN_MEMBER_ID, ask.member_id))
            group = self.groups[group_id] = self._new_classic(group_id)
        if group.classic_members is None:
            return Answer.of(JoinResult(Code.INCONSISTENT_GROUP_PROTOCOL, ask.member_id))
        return group.classic_members.join(ask)

    def sync(self, group_id: str, ask: SyncAsk) -> Answer[SyncResult]:
        """Serve SyncGroup."""
        if not group_id:
            return Answer.of(SyncResult(Code.INVALID_GROUP_ID))
        members = self._classic_members(group_id)
        return Answer.of(SyncResult(Code.UNKNOWN_MEMBER_ID)) if members is None else members.sync(ask)

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> None:
        """Serve Heartbeat."""
        if not group_id:
            raise InvalidGroupIdError
        members = self._classic_members(group_id)
        if members is None:
            raise UnknownMemberIdError
        members.heartbeat(member_id, instance_id, generation)

    def leave(self, group_id: str, leaving: Iterable[tuple[str, str | None]]) -> list[int]:
        """Serve LeaveGroup: an error code for each member."""
        if not group_id:
            raise InvalidGroupIdError
        members = self._classic_members(group_id)
        return [Code.UNKNOWN_MEMBER_ID for _ in leaving] if members is None else members.leave(leaving)

    def _classic_members(self, group_id: str) -> ClassicMembers | None:
        group = self.groups.get(group_id)
        return None if group is None else group.classic_members

    # The consumer protocol

    def consumer_heartbeat(self, group_id: str, ask: HeartbeatAsk) -> HeartbeatResult:
        """Serve ConsumerGroupHeartbeat."""
        group = self._consumer_for(group_id, ask)
        if ask.epoch < JOIN:
            group.leave(ask.member_id, ask.instance_id, ask.epoch)
            return HeartbeatResult(ask.member_id, ask.epoch)
        return group.heartbeat(ask)

    def _consumer_for(self, group_id: str, ask: HeartbeatAsk) -> ConsumerGroup:
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        classic = group if isinstance(group, ClassicGroup) else None
        if ask.epoch != JOIN or group is not classic:
            raise GroupIdNotFoundError(
                f"Group {group_id} is not a consumer group." if group else f"Consumer group {group_id} not found."
            )
        check_first_join(classic, ask, self.settings.consumer_max_size)
        consumer = self._new_consumer(group_id)
        if classic is not None and len(classic.roster):
            upgrade(classic, consumer, self._topics)
        self.groups[group_id] = consumer
        return consumer

    # The share and the streams protocol

    def share_heartbeat(self, group_id: str, ask: ShareAsk) -> tuple[ShareMember, bool]:
        """Serve ShareGroupHeartbeat: the member, and whether the response has its assignment."""
        if group_id not in self.groups:
            if ask.epoch != JOIN:
                raise GroupIdNotFoundError(f"Share group {group_id} not found.")
            self.groups[group_id] = self._new_share(group_id)
        return self.find(ShareGroup, group_id).heartbeat(ask)

    def leave_epochs(self, kind: type[ShareGroup | StreamsGroup], group_id: str, member_id: str) -> None:
        """Serve the heartbeat of a member that leaves a share or streams group."""
        group = self.find(kind, group_id)
        group.remove(group.expect(member_id).member_id)

    def streams_heartbeat(self, group_id: str, ask: StreamsAsk) -> StreamsResult:
        """Serve StreamsGroupHeartbeat."""
        group = self.groups.get(group_id)
        joins = ask.epoch == JOIN
        if group is None and not joins:
            raise GroupIdNotFoundError(f"Streams group {group_id} not found.")
        if group is None or (joins and group.kind == ClassicGroup.kind and group.is_empty):
            self.groups[group_id] = self._new_streams(group_id)
        return self.find(StreamsGroup, group_id).heartbeat(ask)

    def share_offsets(self, group_id: str) -> ShareOffsets:
        """Return the offsets of a share group; Kafka lets members read that have not joined, and so make a group."""
        found = self._share_offsets.get(group_id)
        if found is None:
            found = self._share_offsets[group_id] = ShareOffsets(self._saved_share_offsets, group_id)
        return found

    def alterable_share(self, group_id: str, *, creates: bool) -> ShareGroup:
        """Return a share group whose offsets may be changed, with ``creates`` a new one if there is none."""
        if not group_id:
            raise InvalidGroupIdError("The group id is invalid.")
        if group_id not in self.groups and creates:
            group = self.groups[group_id] = self._new_share(group_id)
            group.make_empty()
        found = self.find(ShareGroup, group_id)
        found.check_empty()
        return found

    # Offsets

    def commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        offsets: Iterable[tuple[TopicPartition, CommittedOffset]],
        *,
        version: int,
    ) -> None:
        """Commit; raises if the member may not."""
        offsets = list(offsets)
        self.check_commit(group_id, member_id, instance_id, epoch, version, [partition for partition, _ in offsets])
        store = self.offsets_of(group_id)
        for partition, offset in offsets:
            store.commit(partition, offset)

    def commit_pending(
        self, group_id: str, producer_id: int, offsets: Iterable[tuple[TopicPartition, CommittedOffset]]
    ) -> None:
        """Commit when the producer's transaction does; whether the member may was checked."""
        store = self.offsets_of(group_id)
        for partition, offset in offsets:
            store.commit_pending(producer_id, partition, offset)

    def check_commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        version: int,
        partitions: Iterable[TopicPartition],
        *,
        transactional: bool = False,
    ) -> None:
        """Raise if the member may not commit these partitions; create a group that only keeps offsets."""
        group = self.groups.get(group_id)
        if group is None:
            if epoch >= 0:
                raise (
                    GroupIdNotFoundError
                    if version >= _NO_SUCH_GROUP_FROM and not transactional
                    else IllegalGenerationError
                )
            # A group that only keeps offsets: no member has ever joined it.
            self.groups[group_id] = group = self._new_classic(group_id)
            self._save(group)
        group.check_commit(Commit(member_id, instance_id, epoch, list(partitions), transactional, version))

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Raise if a member may not read committed offsets now (v9)."""
        group = self.groups.get(group_id)
        if group is not None:
            group.check_fetch(member_id, epoch)

    def end_transaction(self, producer_id: int, group_ids: Iterable[str], *, committed: bool) -> None:
        """A producer's transaction has ended: its offsets count, or are forgotten."""
        for group_id in group_ids:
            if group_id in self.offsets:
                self.offsets[group_id].end_transaction(producer_id, committed=committed)

    def deletable(self, group_id: str) -> Callable[[str], bool]:
        """Return which topics' offsets may be deleted; raises if none may (OffsetDelete)."""
        if not group_id:
            raise InvalidGroupIdError
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFoundError
        group.check_deletion_of_offsets()
        return lambda topic: not group.expects(topic)

    # Expiry

    def _clean(self) -> None:
        self._cleaner = self._timers.call_later(self.settings.offsets_check_interval, self._clean)
        self.expire()

    def expire(self) -> None:
        """Forget the offsets whose time is up, and empty groups that have none left."""
        now = self._clock.now_ms()
        for group_id, group in list(self.groups.items()):
            if group.stays:
                continue
            offsets = self.offsets.get(group_id)
            if offsets:
                offsets.expire(partial(self._is_expired, group, now))
            if not offsets and group.is_empty and not group.has_pending:
                self._drop(group_id)

    def _is_expired(self, group: Group, now: int, partition: TopicPartition, offset: CommittedOffset) -> bool:
        if not group.is_empty and group.expects(partition.topic):
            return False
        if offset.expire_ms != NO_EXPIRY:
            return now >= offset.expire_ms
        return now - group.unused_since_ms(offset.commit_ms) >= self.settings.offsets_retention * 1000

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted: so are its offsets."""
        for offsets in self.offsets.values():
            for partition in offsets.partitions:
                if partition.topic == topic:
                    offsets.delete(partition)

    # Administration

    def listed(self) -> Iterator[tuple[str, str, str, str]]:
        """Return id, protocol type, state and type of each group."""
        for group_id, group in self.groups.items():
            yield group_id, group.protocol_type or "", group.state_name, group.kind

    def find(self, kind: type[GroupT], group_id: str) -> GroupT:
        """Return a group of that kind, or raise GroupIdNotFoundError."""
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFoundError(f"Group {group_id} not found.")
        if not isinstance(group, kind):
            raise GroupIdNotFoundError(f"Group {group_id} is not a {kind.kind} group.")
        return group

    def delete(self, group_id: str) -> None:
        """Delete an empty group with its offsets."""
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFoundError
        if not group.is_empty:
            raise NonEmptyGroupError
        offsets = self.offsets_of(group_id)
        for partition in offsets.partitions:
            offsets.delete(partition)
        group.delete()
        self._share_offsets.pop(group_id, None)
        self._drop(group_id)

    def expel(self, group_id: str, member_id: str) -> None:
        """End a member's session now, as its timeout would."""
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFoundError(f"Group {group_id} not found.")
        group.expel(member_id)

    def moved(self, group_id: str) -> None:
        """Another node coordinates the group from now on: waiting requests are answered, sessions start again."""
        group = self.groups.get(group_id)
        if group is not None:
            group.resign()
            group.resume()
