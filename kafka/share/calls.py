"""The calls of both share consumers, `KafkaShareConsumer` and the one of asyncio: each is written once.

A call that waits is an application-side coroutine of `ShareConsumerCalls`: `KafkaShareConsumer` has a method that
`blocking` makes of it, `kafka.aio.AIOKafkaShareConsumer` inherits it. Both inherit the calls that do not wait.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from kafka._core.status import ClientStatus
from kafka.consumer.arguments import checked_limit, checked_partition, checked_timeout, checked_topics
from kafka.errors import IllegalArgumentError, IllegalStateError, KafkaConfigurationError
from kafka.share.acknowledgements import AcknowledgeType
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from uuid import UUID

    from kafka._core.client import Client
    from kafka.config import Config
    from kafka.errors import KafkaError
    from kafka.metrics import Metrics
    from kafka.share.core import Callback, ShareConsumerCore

log = logging.getLogger(__name__)

RecordT = TypeVar("RecordT")

_IMPLICIT: Final = (
    "This consumer accepts records automatically (share_acknowledgement_mode='implicit'): make it with "
    "share_acknowledgement_mode='explicit' to acknowledge each record"
)


def check_group_id(client: str, config: Config) -> None:
    """Raise KafkaConfigurationError unless the configuration names a group."""
    if not config["group_id"]:
        raise KafkaConfigurationError(f"{client} needs a group_id: the name of the share group", option="group_id")


_ACCEPT: Final = AcknowledgeType.ACCEPT


def _checked_type(kind: object) -> int:
    """Return the type as a plain number, as an enum's are slow."""
    if isinstance(kind, bool) or not isinstance(kind, int):
        raise TypeError(f"type must be an AcknowledgeType, not {kind!r}")
    try:
        return AcknowledgeType(kind).value
    except ValueError:
        raise IllegalArgumentError(f"type must be an AcknowledgeType, not {kind!r}") from None


class ImmediateShareCalls(ClientStatus, Generic[RecordT]):
    """The calls that do not wait. A consumer brings `_usable`, which returns the core or says why there is none."""

    config: Config
    _chosen: frozenset[str] = frozenset()
    _core: ShareConsumerCore | None = None

    # Subscription…

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics, in place of the subscription before; with none, `unsubscribe`.

        The next `poll` or iteration joins the group. Records that were returned before can still be acknowledged.
        """
        self._choose(frozenset(checked_topics(topics)))

    def unsubscribe(self) -> None:
        """Read nothing, and leave the group, in the background. Records that were returned can be acknowledged."""
        self._choose(frozenset())

    def subscription(self) -> set[str]:
        """The topics subscribed to."""
        return set(self._chosen)

    def _choose(self, topics: frozenset[str]) -> None:
        core = self._usable()
        core.check_not_in_callback()
        self._chosen = topics
        core.subscribe(topics)

    # Acknowledging…

    def acknowledge(self, record: RecordT, type: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:  # noqa: A002
        """Say what became of a record; from any thread. Needs share_acknowledgement_mode='explicit'.

        The acknowledgement is sent with the next `poll`, `commit`, `commit_async` or `close`, and about once a second
        by an iteration; until then a later call for the same record replaces it. IllegalStateError for a record that
        this consumer has not returned, or whose acknowledgement was sent.
        """
        # Hot: once for each record.
        one: Any = record
        core = self._core
        if core is None or core.closed or core.callback_thread or core.loop.forked or not core.is_explicit:
            core = self._acknowledging()
            if not core.is_explicit:
                raise IllegalStateError(_IMPLICIT)
        core.held.acknowledge(one[:2], one[2], 1 if type is _ACCEPT else _checked_type(type))

    def acknowledge_offset(
        self,
        partition: TopicPartition,
        offset: int,
        type: AcknowledgeType = AcknowledgeType.ACCEPT,  # noqa: A002
    ) -> None:
        """Say what became of the record at an offset: of one that a deserializer has refused there is no object.

        The RecordDeserializationError has partition and offset. Without this call such a record is released. In the
        implicit mode only these records can be acknowledged.
        """
        core, kind = self._acknowledging(), _checked_type(type)
        core.held.acknowledge(checked_partition(partition), offset, kind, unreadable_only=not core.is_explicit)

    def processing(self, record: RecordT, *, max_deliveries: int | None = None) -> AbstractContextManager[RecordT]:
        """Return a block that processes a record, and acknowledges it at the end.

        ::

            for record in consumer:
                with consumer.processing(record, max_deliveries=3):
                    handle(record.value)

        When the block ends the record is accepted. When it raises an Exception, that is logged with its traceback, and
        the record is released for another delivery, or rejected if this was delivery `max_deliveries`; the program
        continues behind the block. Other exceptions, Ctrl-C and the cancellation of a task, release the record and
        leave the block. A record that the block itself acknowledges is left as it is. In asyncio it is a plain
        ``with`` too. Needs share_acknowledgement_mode='explicit'.
        """
        if not self._acknowledging().is_explicit:
            raise IllegalStateError(_IMPLICIT)
        if max_deliveries is not None:
            checked_limit(max_deliveries)
        return self._processing(record, max_deliveries)

    @contextmanager
    def _processing(self, record: RecordT, max_deliveries: int | None) -> Iterator[RecordT]:
        one = cast("Any", record)
        tracer = None if self._core is None else self._core.tracer
        try:
            with nullcontext() if tracer is None else tracer.processing(record):
                yield record
        except Exception:
            last = max_deliveries is not None and one.delivery_count >= max_deliveries
            kind = AcknowledgeType.REJECT if last else AcknowledgeType.RELEASE
            log.exception(
                "Delivery %d of the record at offset %d of %s-%d failed: it is %s",
                one.delivery_count,
                one.offset,
                one.topic,
                one.partition,
                "rejected" if last else "released",
            )
            self._acknowledge_open(record, kind)
        except BaseException:
            self._acknowledge_open(record, AcknowledgeType.RELEASE)
            raise
        else:
            self._acknowledge_open(record, AcknowledgeType.ACCEPT)

    def _acknowledge_open(self, record: RecordT, kind: AcknowledgeType) -> None:
        one = cast("Any", record)
        core = self._core
        if core is not None:
            core.held.acknowledge_if_open(one[:2], one[2], kind.value)

    def commit_async(self) -> None:
        """Send the acknowledgements without waiting; the acknowledgement callback gets the outcome.

        In the implicit mode the records of the last poll are accepted.
        """
        self._usable().commit_async()

    def set_acknowledgement_commit_callback(self, callback: Callback | None) -> None:
        """Have ``callback(offsets, error)`` called with the outcome of all acknowledgements; None: none.

        `offsets` is a dict of a TopicPartition and a set of offsets, `error` is None or a KafkaError. It is called
        inside `poll`, an iteration, `commit` and `close`, once for each partition in a response, and may not call the
        consumer; what it raises is logged. Without a callback failed acknowledgements are logged.
        """
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function of offsets and an error, not {callback!r}")
        self._usable().callback = callback

    def acquisition_lock_timeout_ms(self) -> int | None:
        """How long a member of the group has a record before others get it, in ms; None before the first fetch."""
        seconds = self._usable(any_thread=True).fetcher.lock_timeout
        return None if seconds is None else round(seconds * 1000)

    # Health and metrics…

    def wakeup(self) -> None:
        """End the present or the next call that takes records (`poll`, an iteration) with WakeupError. From any thread.

        Records and acknowledgements are kept.
        """
        if self._core is not None:
            self._core.wakeup()

    def health(self) -> dict[str, Any]:
        """Return the state of this consumer for people, probes and dashboards; `json.dumps` takes it. From any thread.

        It has the form of all clients (``docs/operations.rst``). ``partitions`` has each assigned partition with its
        leader, ``group`` the member's state and what it waits for, ``unacknowledged`` the number of records that the
        application has.
        """
        core = self._core
        return self._health_without_core() if core is None else core.health()

    def _health_without_core(self) -> dict[str, Any]:
        raise NotImplementedError

    def _connections(self) -> Client | None:
        return None if self._core is None else self._core.client

    def _measured(self) -> Metrics | None:
        return None if self._core is None else self._core.metrics

    # For the consumers…

    def _usable(self, *, any_thread: bool = False) -> ShareConsumerCore:
        """Return the core for a call."""
        raise NotImplementedError

    def _until(self, timeout_ms: float | None) -> float:
        """Return the deadline of a call that takes default_api_timeout_ms unless the application says otherwise."""
        chosen = self.config["default_api_timeout_ms"] if timeout_ms is None else timeout_ms
        return self._usable().deadline(checked_timeout(chosen))

    def _acknowledging(self) -> ShareConsumerCore:
        core = self._core
        if core is None or core.closed or core.callback_thread or core.loop.forked:
            core = self._usable(any_thread=True)
            core.check_not_in_callback()
        return core


class ShareConsumerCalls(ImmediateShareCalls[RecordT]):
    """The calls that wait."""

    async def poll(self, timeout_ms: float = 0) -> dict[TopicPartition, list[RecordT]]:
        """Return records by partition as soon as there are some; {} after `timeout_ms`.

        The first call joins the group, which takes some seconds on a broker with default settings. In the implicit
        mode the records of the call before are accepted. In the explicit mode each must have been acknowledged:
        IllegalStateError otherwise. max_poll_records bounds the number of records; with
        share_acquire_mode='batch_optimized', the default, whole batches come, so that there may be more.
        RecordDeserializationError for a record that a deserializer refuses; the next call continues after it.
        """
        core = self._usable()
        # Nothing is called after it, not even `cast`: where a function begins Ctrl-C may come, and lose these records.
        found: Any = await core.poll(core.deadline(checked_timeout(timeout_ms)))
        return found  # type: ignore[no-any-return]

    async def commit(self, timeout_ms: float | None = None) -> dict[TopicPartition, KafkaError | None]:
        """Send the acknowledgements, and return for each of their partitions None or the error; {} without any.

        In the implicit mode the records of the last poll are accepted. InvalidRecordStateError means that the lock of
        a record has run out: another member may have it. KafkaTimeoutError that no answer came within `timeout_ms`
        (default_api_timeout_ms); the callback gets it later. Acknowledgements that `poll` has sent with a fetch are
        reported to the callback only.
        """
        core = self._usable()
        return await core.commit(self._until(timeout_ms))

    async def client_instance_id(self, timeout_ms: float | None = None) -> UUID:
        """Return the id that brokers know this client by in its metrics (KIP-714), the same for its life.

        UnsupportedVersionError if no broker has a plugin that takes metrics.
        """
        from kafka._core.telemetry import client_instance_id

        core, deadline = self._usable(), self._until(timeout_ms)
        return await core.run(client_instance_id(core.client.telemetry, deadline), deadline, "client_instance_id()")
