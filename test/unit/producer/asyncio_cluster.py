"""What an asyncio producer consists of, on the cluster in memory: time passes when no task has something to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from kafka._runtime.loop import Loop
from kafka.errors import ClientClosedError, KafkaTimeoutError
from kafka.future import Future
from kafka.producer.arguments import checked_config
from kafka.producer.asyncio_future import AsyncRecordFuture, AsyncSentRecords
from kafka.producer.calls import ProducerCalls
from kafka.testing.memory import NothingWillHappenError
from test.unit.producer.memory_cluster import Cluster


class AsyncioMemoryDriver:
    """Turns the loop in a task of asyncio: time passes when no other task has something to do."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self._turning = asyncio.get_running_loop().create_task(self._turn())

    async def _turn(self) -> None:
        while not self.loop.closed:
            for _ in range(5):  # other tasks come first
                await asyncio.sleep(0)
            with suppress(NothingWillHappenError, ClientClosedError):
                self.loop.turn(None)

    async def run(self, coro: Coroutine[Any, Any, Any], deadline: float | None = None, what: str = "the call") -> Any:
        task = self.loop.spawn(coro)
        try:
            await self.wait(task, deadline)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.is_done:
            task.cancel()
            raise KafkaTimeoutError(f"{what} took too long")
        return task.result()

    async def wait(
        self, future: Future[Any], deadline: float | None = None, begin: Callable[[], object] | None = None
    ) -> bool:
        if begin is not None:
            self.loop.call_soon(begin)
        done = asyncio.get_running_loop().create_future()
        future.add_both(lambda _: done.done() or done.set_result(None))
        timer = None if deadline is None else self.loop.call_at(deadline, lambda: done.done() or done.set_result(None))
        try:
            await done
        finally:
            if timer is not None:
                timer.cancel()
        return future.is_done

    def pending(self) -> Future[None]:
        return Future()

    async def close(self) -> None:
        self.loop.close(0.0)
        await self._turning


@asynccontextmanager
async def asyncio_calls(cluster: Cluster, **options: Any) -> AsyncIterator[ProducerCalls[AsyncRecordFuture]]:
    """What a producer of asyncio consists of."""
    options = {"bootstrap_servers": "b0", "client_id": "p", "enable_idempotence": False, **options}
    config = checked_config(options)
    calls = ProducerCalls(config, cluster.network.environment(), sent_records=AsyncSentRecords)
    driver: Any = AsyncioMemoryDriver(calls.core.loop)
    calls.attach(calls, driver, asyncio.get_running_loop())
    try:
        await calls.connect()
        yield calls
    finally:
        await calls.close(10)
        await driver.close()
        calls.release()
    assert not cluster.network.open_sockets
