"""`AIOKafkaShareConsumer`: a member of a share group, in tasks of asyncio."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast, overload

from kafka._core.client import Client, make_client
from kafka.aio.arguments import SHARED_DEFAULTS, checked_config
from kafka.aio.lifecycle import Lifecycle, Phase
from kafka.config import Config, defaults, given_options, name_client
from kafka.consumer.arguments import checked_timeout, checked_topics, options_before_topics
from kafka.errors import ConsumerStoppedError
from kafka.record.consumer_record import K, V
from kafka.share.acknowledgements import AcknowledgeType
from kafka.share.calls import ShareConsumerCalls, check_group_id
from kafka.share.core import ShareConsumerCore
from kafka.share.record import ShareRecord

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from kafka._runtime.loop import Loop
    from kafka.options import AIOBytesShareConsumerOptions, AIOShareConsumerOptions
    from kafka.serializer.abstract import Deserializes

__all__ = ["AIOKafkaShareConsumer"]

T = TypeVar("T")
U = TypeVar("U")


class AIOKafkaShareConsumer(Lifecycle, ShareConsumerCalls[ShareRecord[K, V]], Generic[K, V]):
    """A member of a share group (KIP-932): a queue on Kafka's topics. Needs brokers of Kafka 4.2.

    ::

        async with AIOKafkaShareConsumer(
            "jobs", group_id="workers", bootstrap_servers="localhost:9092", share_acknowledgement_mode="explicit"
        ) as consumer:
            async for record in consumer:
                with consumer.processing(record, max_deliveries=3):
                    await handle(record.value)

    It has the calls of `KafkaShareConsumer`; a call that waits is awaited. One task at a time may take records. A
    `poll` or an iteration that is cancelled has taken none: the records that were acquired meanwhile come with the next
    one. Keyword arguments are the options in ``DEFAULT_CONFIG``; the group_id must be given.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = {**defaults("share"), **SHARED_DEFAULTS}

    _kind = "consumer"
    _stopped_error = ConsumerStoppedError

    @overload
    def __init__(
        self: AIOKafkaShareConsumer[bytes | None, bytes | None],
        *topics: str,
        key_deserializer: None = None,
        value_deserializer: None = None,
        **configs: Unpack[AIOBytesShareConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AIOKafkaShareConsumer[bytes | None, T],
        *topics: str,
        key_deserializer: None = None,
        value_deserializer: Callable[[bytes], T] | Deserializes[T],
        **configs: Unpack[AIOBytesShareConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AIOKafkaShareConsumer[T, bytes | None],
        *topics: str,
        key_deserializer: Callable[[bytes], T] | Deserializes[T],
        value_deserializer: None = None,
        **configs: Unpack[AIOBytesShareConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AIOKafkaShareConsumer[T, U],
        *topics: str,
        key_deserializer: Callable[[bytes], T] | Deserializes[T],
        value_deserializer: Callable[[bytes], U] | Deserializes[U],
        **configs: Unpack[AIOBytesShareConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(self, *topics: str, **configs: Unpack[AIOShareConsumerOptions]) -> None: ...
    @overload
    def __init__(
        self, options: Mapping[str, object], /, *topics: str, **configs: Unpack[AIOShareConsumerOptions]
    ) -> None: ...
    def __init__(self, *topics: Any, **configs: Any) -> None:
        super().__init__()
        options, topics = options_before_topics("AIOKafkaShareConsumer", topics)
        given = given_options("AIOKafkaShareConsumer", options, configs)
        self.config: Config = checked_config("share", "AIOKafkaShareConsumer", given)
        check_group_id("AIOKafkaShareConsumer", self.config)
        name_client(self.config, "share")
        timeout = self.config["consumer_timeout_ms"]
        self._iteration_timeout = math.inf if timeout < 0 or timeout == math.inf else timeout / 1000
        self._chosen = frozenset(checked_topics(topics))
        self._client: Client
        self._yield_at = 0.0

    # Its life…

    def _open(self) -> Loop:
        self._client = make_client(self.config, self._world(self.config))
        return self._client.loop

    async def _begin(self) -> None:
        core = self._core = ShareConsumerCore(self.config, self._client, self._application)
        core.closed_error = ConsumerStoppedError
        await self._application.run(self._client.begin(), what="looking for a broker")
        if self._chosen:
            core.subscribe(self._chosen)

    async def stop(self, timeout: float | None = None) -> None:
        """End the consumer within about `timeout` seconds (10 by default), also while brokers are down. Idempotent.

        Sends the acknowledgements, releases all other records, and leaves the group. In the implicit mode the records
        of the last poll are released, too: only the next poll, or `commit`, accepts them. A `poll` that waits raises
        ConsumerStoppedError, an iteration ends. Closing continues when the caller is cancelled.
        """
        core = self._core
        if core is not None:
            core.check_not_in_callback()
        await super().stop(timeout)

    async def close(self, timeout_ms: float | None = None) -> None:
        """End the consumer: another name of `stop`."""
        await self.stop(None if timeout_ms is None else checked_timeout(timeout_ms))

    async def _finish(self, deadline: float) -> None:
        core = self._core
        assert core is not None
        await core.close(max(0.0, deadline - core.loop.time()))

    def _release(self) -> None:
        core = self._core
        if core is not None:
            core.closed = True
            core.waiting.notify()
        self._client.shut_down()

    def _free(self) -> None:
        if hasattr(self, "_client"):
            super()._free()

    def _usable(self, *, any_thread: bool = False) -> ShareConsumerCore:
        core = self._core
        if not any_thread or core is None:
            self._check_usable()
            core = self._core
        assert core is not None
        return core

    def _choose(self, topics: frozenset[str]) -> None:
        if self._phase is Phase.NEW:
            self._chosen = topics
        else:
            super()._choose(topics)

    # Reading…

    def __aiter__(self) -> Self:
        """Return the consumer. In the implicit mode the record that a loop before was left with is released."""
        self._usable().end_current(AcknowledgeType.RELEASE)
        return self

    async def __anext__(self) -> ShareRecord[K, V]:
        if monotonic() >= self._yield_at:
            await asyncio.sleep(0)  # let the other tasks of the event loop run
            self._yield_at = self._client.loop.slice_end()
        try:
            core = self._usable()
            record = await core.next(core.deadline(self._iteration_timeout))
        except ConsumerStoppedError:
            raise StopAsyncIteration from None
        if record is None:
            raise StopAsyncIteration
        return cast("ShareRecord[K, V]", record)

    # How it is…

    def _health_without_core(self) -> dict[str, Any]:
        return {"ok": False, "closed": self.closed, "problems": [f"the consumer is {self._phase.value}"]}
