"""`AIOKafkaConsumer`: reads records from a cluster, in tasks of asyncio: arguments, units, names."""

# ruff: noqa: SLF001 - a consumer and its core are one thing in two modules

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from threading import get_ident
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeAlias, TypeVar, cast, overload

# Loaded here, as in kafka.aio.lifecycle.
import kafka.consumer.metrics
import kafka.coordinator.consumer
import kafka.protocol.fetch
import kafka.protocol.offset  # noqa: F401
from kafka._core.client import Client, make_client
from kafka.aio.arguments import SHARED_DEFAULTS, checked_config
from kafka.aio.consumer_core import AIOConsumerCore, ListenerCalls
from kafka.aio.consumer_offsets import ConsumerOffsets
from kafka.aio.lifecycle import Phase
from kafka.aio.structs import ConsumerRecord
from kafka.config import Config, defaults, given_options, name_client
from kafka.consumer.arguments import checked_limit, checked_partitions, checked_timeout, options_before_topics
from kafka.consumer.subscription_state import Mode, SubscriptionState
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import ConsumerStoppedError, IllegalStateError, KafkaTimeoutError, RecordTooLargeError
from kafka.record.consumer_record import K, V
from kafka.structs import ConsumerGroupMetadata, TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from kafka._runtime.loop import Loop
    from kafka.aio.client import AIOKafkaClient
    from kafka.coordinator.consumer_group import ConsumerGroup
    from kafka.options import AIOBytesConsumerOptions, AIOConsumerOptions
    from kafka.serializer.abstract import Deserializes

    Records: TypeAlias = dict[TopicPartition, list[ConsumerRecord[K, V]]]

__all__ = ["AIOKafkaConsumer"]

log = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")

#: Defaults that aiokafka documents, and range for groups with members that do not offer round robin.
DEFAULTS: Final[dict[str, Any]] = {
    **SHARED_DEFAULTS,
    "session_timeout_ms": 10_000,
    "partition_assignment_strategy": (RoundRobinPartitionAssignor, RangePartitionAssignor),
}
_clock: Final = monotonic
# The token of the consumer whose listener runs in this context.
_inside_listener: contextvars.ContextVar[object] = contextvars.ContextVar("kafka.aio listener", default=None)


class AIOKafkaConsumer(ConsumerOffsets[ConsumerRecord[K, V]], Generic[K, V]):
    """Reads records from a Kafka cluster.

    ::

        async with AIOKafkaConsumer("events", group_id="readers", bootstrap_servers="localhost:9092") as consumer:
            async for record in consumer:
                print(record.offset, record.value)

    Made with topics it reads them; `subscribe` and `assign` change what it reads. Iterate it, or call `getone` or
    `getmany`, from any number of tasks: each record goes to one of them. In a group the partitions are assigned, and
    the listener is called, by a task of the consumer, whether or not the application takes records.

    Keyword arguments are the options in ``DEFAULT_CONFIG``, and ``rebalance_timeout_ms``: the time that a listener may
    take (by default session_timeout_ms). ``max_poll_records`` is None by default: `getmany` returns 500 at most.
    """

    DEFAULT_CONFIG: Final[dict[str, Any]] = {
        **defaults("consumer"),
        **DEFAULTS,
        "max_poll_records": None,
        "consumer_timeout_ms": 200,
        "rebalance_timeout_ms": None,
    }

    _core: AIOConsumerCore
    _frames = MappingProxyType({"poll": 3, "poll_batches": 3, "getmany": 3})
    _kind = "consumer"
    _stopped_error = ConsumerStoppedError

    @overload
    def __init__(
        self: AIOKafkaConsumer[bytes | None, bytes | None],
        *topics: str,
        loop: asyncio.AbstractEventLoop | None = None,
        key_deserializer: None = None,
        value_deserializer: None = None,
        **configs: Unpack[AIOBytesConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AIOKafkaConsumer[bytes | None, T],
        *topics: str,
        loop: asyncio.AbstractEventLoop | None = None,
        key_deserializer: None = None,
        value_deserializer: Callable[[bytes], T] | Deserializes[T],
        **configs: Unpack[AIOBytesConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AIOKafkaConsumer[T, bytes | None],
        *topics: str,
        loop: asyncio.AbstractEventLoop | None = None,
        key_deserializer: Callable[[bytes], T] | Deserializes[T],
        value_deserializer: None = None,
        **configs: Unpack[AIOBytesConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AIOKafkaConsumer[T, U],
        *topics: str,
        loop: asyncio.AbstractEventLoop | None = None,
        key_deserializer: Callable[[bytes], T] | Deserializes[T],
        value_deserializer: Callable[[bytes], U] | Deserializes[U],
        **configs: Unpack[AIOBytesConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self, *topics: str, loop: asyncio.AbstractEventLoop | None = None, **configs: Unpack[AIOConsumerOptions]
    ) -> None: ...
    @overload
    def __init__(
        self,
        options: Mapping[str, object],
        /,
        *topics: str,
        loop: asyncio.AbstractEventLoop | None = None,
        **configs: Unpack[AIOConsumerOptions],
    ) -> None: ...
    def __init__(self, *topics: Any, loop: asyncio.AbstractEventLoop | None = None, **configs: Any) -> None:
        super().__init__(loop)
        options, topics = options_before_topics("AIOKafkaConsumer", topics)
        given = given_options("AIOKafkaConsumer", options, configs)
        if given.get("max_poll_records", 0) is None:
            del given["max_poll_records"]
        rebalance_timeout_ms = given.pop("rebalance_timeout_ms", None)
        given.pop("consumer_timeout_ms", None)  # the pace of aiokafka's fetcher; this one has none
        if given.get("client_rack", "") is None:
            given["client_rack"] = ""
        # With that protocol brokers decide what aiokafka's defaults are about.
        differing = SHARED_DEFAULTS if given.get("group_protocol") == "consumer" else DEFAULTS
        self.config: Config = checked_config("consumer", "AIOKafkaConsumer", given, differing)
        name_client(self.config, "consumer")
        self._rebalance_timeout = checked_timeout(
            self.config["session_timeout_ms"] if rebalance_timeout_ms is None else rebalance_timeout_ms
        )
        self._subscription = SubscriptionState()
        self._listener_context: contextvars.Context | None = None
        self._token = object()  # stands for this consumer in the context of its listener, which must not keep it alive
        self._client: Client
        self._attending: asyncio.Task[None] | None = None
        self._client_view: AIOKafkaClient | None = None
        self._commits_at_end = True
        if topics:
            self.subscribe(topics)

    # Its life…

    def _open(self) -> Loop:
        self._subscription.forget_positions()  # of an earlier start() that failed
        self._client = make_client(self.config, self._world(self.config))
        return self._client.loop

    async def _begin(self) -> None:
        self._listening = ListenerCalls(_inside_listener, self._token)
        self._listening.context, self._listening.timeout = self._listener_context, self._rebalance_timeout
        self._application.call = self._listening.call
        core = self._core = AIOConsumerCore(self.config, self._client, self._application, self._subscription)
        if core.group is not None:
            core.group.membership.rebalance_timeout = self._rebalance_timeout
        self._client.cluster.set_topics(self._subscription.wanted_topics)
        await self._application.run(core.begin(), what="looking for a broker")
        assert self._aio is not None
        # An empty context: the task lives as long as the consumer, and would keep what the caller has in its own.
        self._attending = contextvars.Context().run(self._aio.create_task, core.attend())
        is_there = self._client.cluster.update_age() is not None  # else it comes later: bootstrap_timeout_ms=0
        if self._subscription.is_automatic and is_there:
            await self._wait_for_assignment(core)

    async def _wait_for_assignment(self, core: AIOConsumerCore) -> None:
        """Wait for the first assignment of a group, or for the topology; raise what stands in the way of it."""
        seconds = self.config.seconds("default_api_timeout_ms")
        deadline = self._deadline(seconds)
        group = core.group
        while True:
            future = core.waiting.armed()
            if group is not None:
                group.polled()  # an application that waits in start() is not stuck
            if core.stopping:
                raise ConsumerStoppedError("The consumer was stopped while it was starting")
            core.raise_error()
            subscription = self._subscription
            # A listener may have ended the subscription, in the round that has brought the first assignment.
            settled = group is None or subscription.had_assignment or not subscription.is_automatic
            if settled and not core.serving and not core._is_due():
                return
            if await self._application.wait(future, deadline) or group is None:
                continue
            if group.membership.in_round:  # other members take their time to give up their partitions
                deadline = self._deadline(1.0)
                continue
            waiting_for = group.membership.coordinator.waiting_for
            raise KafkaTimeoutError(
                f"group {self.config['group_id']!r} has assigned nothing within {seconds:g} seconds "
                f"(default_api_timeout_ms): {waiting_for or 'the coordinator does not answer'}"
            )

    async def stop(self, timeout: float | None = None, *, commit: bool = True) -> None:
        """End the consumer within about `timeout` seconds (10 by default), also while brokers are down. Idempotent.

        Commits what was returned, if commits are automatic and `commit` is true, and leaves the group. A `getone` that
        waits raises ConsumerStoppedError, a `getmany` returns {}, an iteration ends. Closing continues when the caller
        is cancelled; a second call waits for its end. From a listener it does not wait.
        """
        if self._phase is Phase.STARTED:
            self._commits_at_end = commit
        if _inside_listener.get() is self._token and self._phase is Phase.STARTED:
            assert self._aio is not None
            contextvars.Context().run(self._aio.create_task, super().stop(timeout))
            return
        await super().stop(timeout)

    async def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """End the consumer: another name of `stop`."""
        await self.stop(None if timeout_ms is None else checked_timeout(timeout_ms), commit=autocommit)

    async def _finish(self, deadline: float) -> None:
        core = self._core
        self._subscription.listener = None  # it is for rebalances; the application knows that it stops
        try:
            await self._end_attending(core, deadline)
            await core.close(max(0.0, deadline - core.loop.time()), commit=self._commits_at_end)
        finally:
            if self._attending is not None:
                self._attending.cancel()

    async def _end_attending(self, core: AIOConsumerCore, deadline: float) -> None:
        """End the calls that wait, and the task that serves the group, in half of the time."""
        core.stop_waiting()
        attending = self._attending
        if attending is None:
            return
        half = (deadline + core.loop.time()) / 2
        while core.departing and not attending.done():  # what unsubscribe() has begun comes to its end
            if not await self._application.wait(core.waiting.armed(), half):
                break
        attending.cancel()
        await asyncio.wait({attending}, timeout=max(0.0, half - core.loop.time()))

    async def _give_up(self, seconds: float) -> None:
        """Leave the group, which start() may have joined: its members would wait for the end of the session."""
        core, subscription = self._begun, self._subscription
        if core is None or core.group is None:
            return
        deadline = core.deadline(seconds)
        core.group.membership.coordinator.leaving_patience = seconds  # no caller waits for this
        listener, subscription.listener = subscription.listener, None  # the next start() has it again
        try:
            await self._end_attending(core, deadline)
            await core.group.finish(deadline, commit=False, patient=True)
        finally:
            subscription.listener = listener

    def _release(self) -> None:
        core = self._begun
        attending, self._attending = self._attending, None
        if attending is not None:
            attending.cancel()
        if core is not None:
            core.stop_waiting()
            core.closed = True
            core.fetcher.stop()
        self._client.shut_down()

    @property
    def _begun(self) -> AIOConsumerCore | None:
        """The core, once `start` has made it."""
        return self._core

    def _usable(self, taking: str = "") -> AIOConsumerCore:
        if not taking:
            self._check_usable()
        elif _inside_listener.get() is self._token:
            raise IllegalStateError(
                f"{taking}() was called by a rebalance listener, while no record is handed out: take records after it"
            )
        elif self._phase is not Phase.STARTED or get_ident() != self._thread or not self._aio_runs():
            self._refuse()
        return self._core

    def _check_usable(self) -> None:
        if self._phase is Phase.STARTING and self._begun is not None:
            return  # a listener is called for the first assignment
        if self._phase is Phase.STOPPING and _inside_listener.get() is self._token:
            return  # stop() waits for it
        super()._check_usable()

    def _free(self) -> None:
        if hasattr(self, "_client"):
            super()._free()

    @property
    def client(self) -> AIOKafkaClient:
        """The client for raw requests over this consumer's connections."""
        from kafka.aio.client import AIOKafkaClient

        if self._phase is not Phase.STARTED:
            self._refuse()
        if self._client_view is None:
            self._client_view = AIOKafkaClient.of(self, self._client)
        return self._client_view

    # Reading…

    async def getone(self, *partitions: TopicPartition) -> ConsumerRecord[K, V]:
        """Return the next record, of some partitions if they are named; waits until there is one.

        Cancelled, it has taken none. Raises ConsumerStoppedError when the consumer is stopped.
        """
        core = self._usable("getone")
        if not partitions:
            return await self._next()
        only = frozenset(checked_partitions(partitions))
        while True:
            found: dict[TopicPartition, list[Any]] = await core.poll(core.take, 1, math.inf, {}, only)
            for records in found.values():
                for record in records:  # none if an interceptor left it out
                    return cast("ConsumerRecord[K, V]", record)

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord[K, V]]]:
        """Return records by partition, of some partitions if they are named; waits for `timeout_ms` if there are none.

        Returns at most `max_records` (max_poll_records, 500 if that is None), and no more than can be decoded in some
        milliseconds. {} if nothing came in time, or the consumer is stopped. Cancelled, it has taken none.
        """
        core, deadline = self._taking("getmany", timeout_ms)
        limit = self.config["max_poll_records"] if max_records is None else checked_limit(max_records)
        only = frozenset(checked_partitions(partitions)) if partitions else None
        try:
            return cast("Records[K, V]", await core.poll(core.take, limit, deadline, {}, only))
        except ConsumerStoppedError:
            return {}

    def __aiter__(self) -> Self:
        if self._phase is not Phase.STARTED:
            self._refuse()
        return self

    async def __anext__(self) -> ConsumerRecord[K, V]:
        # Hot: `_next` once more, with the look at the phase.
        if self._phase is Phase.STARTED and get_ident() == self._thread and self._aio_runs():
            core = self._core
            chunk = self._subscription.chunk
            if chunk is not None and not chunk.interrupted and _clock() < core.slice_ends:
                for record in core.rows:
                    chunk.cursor.returned = record
                    return record
        try:
            self._usable("__anext__")
            while True:
                try:
                    return await self._next()
                except RecordTooLargeError as error:  # noqa: PERF203
                    log.error("A record is passed over: %s", error)
        except ConsumerStoppedError:
            raise StopAsyncIteration from None

    async def _next(self) -> ConsumerRecord[K, V]:
        """Return the next record of any partition. Nothing is awaited between taking it and returning it."""
        core, subscription = self._core, self._subscription
        if subscription.mode is Mode.NONE:
            raise IllegalStateError("There is nothing to read: call subscribe() or assign() first")
        while True:
            chunk = subscription.chunk
            if chunk is None or chunk.interrupted or _clock() >= core.slice_ends:
                chunk = await core.shared_chunk()
            for record in core.rows:
                chunk.cursor.returned = record
                return record
            subscription.end_iteration()

    def _identity(self, group: ConsumerGroup) -> ConsumerGroupMetadata:
        identity = self._core.identity
        if identity is None or _inside_listener.get() is self._token:
            return group.metadata()
        return identity

    # What to read…

    def _checked_topics(self, topics: Iterable[str], pattern: object) -> Iterable[str]:
        if isinstance(topics, str):
            raise TypeError(f"topics must be a list of names, not the str {topics!r}: subscribe([{topics!r}])")
        topics = tuple(topics)
        if bool(topics) == (pattern is not None):
            raise TypeError("subscribe() takes either topics or a pattern")
        for topic in topics:
            if not isinstance(topic, str):
                raise TypeError(f"AIOKafkaConsumer takes names of topics one by one, not {type(topic).__name__}")
        return topics

    def _chosen(self, listener: object = None) -> None:
        self._listener_context = None if listener is None else contextvars.copy_context()
        if self._phase is not Phase.NEW:
            self._listening.context = self._listener_context
            self._core.look_at_subscription()
            self._core.waiting.notify()

    def _depart(self) -> None:
        if self._phase is Phase.NEW:
            self._subscription.unsubscribe()
            return
        self._core.depart()

    def subscription(self) -> set[str]:
        """The topics subscribed to; with a pattern the topics that it matches now."""
        return self._subscribed()

    def _check_may_choose(self) -> None:
        if self._phase in {Phase.STOPPING, Phase.STOPPED}:
            self._refuse()
        if self._phase is not Phase.NEW:
            try:
                running = asyncio.get_running_loop()
            except RuntimeError:
                running = None
            if running is not self._aio:
                self._refuse_elsewhere()

    def _refuse_elsewhere(self) -> NoReturn:
        raise IllegalStateError(
            f"This {type(self).__name__} belongs to the event loop that started it, and is used there only"
        )

    # How it is…

    @property
    def group_id(self) -> str | None:
        """The group's name; None without a group."""
        group_id: str | None = self.config["group_id"]
        return group_id

    @property
    def member_id(self) -> str | None:
        """The name that the coordinator gave to this member; None without a group, empty while it is out of it."""
        core = self._begun
        if core is None or core.group is None:
            return None
        return core.group.membership.generation.member_id

    def _health_without_core(self) -> dict[str, Any]:
        return {"ok": False, "closed": self.closed, "problems": [f"the consumer is {self._phase.value}"]}
