"""kafka.producer.asyncio_future: the future of a record is one of asyncio, and nothing but a place in a batch."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest

from kafka.errors import TopicAuthorizationFailedError
from kafka.producer.asyncio_future import AsyncRecordFuture
from kafka.producer.calls import ProducerCalls
from test.unit.producer.asyncio_cluster import asyncio_calls
from test.unit.producer.memory_cluster import Cluster


def send(calls: ProducerCalls[Any], value: bytes) -> Any:
    return calls.send("events", value, None, None, 0, None)


def test_the_future_of_a_record_is_one_of_asyncio() -> None:
    cluster = Cluster({"events": 1})
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")

    async def main() -> None:
        async with asyncio_calls(cluster, linger_ms=50) as calls:
            await calls.partitions_for("events")

            def sent() -> AsyncRecordFuture:
                future = send(calls, b"x")
                assert isinstance(future, AsyncRecordFuture)
                return future

            future = sent()
            assert asyncio.isfuture(future)
            assert asyncio.ensure_future(future) is future
            assert not future.done()
            assert not hasattr(future, "_following"), "no object beyond the future until it is awaited"
            with pytest.raises(asyncio.InvalidStateError):
                future.result()
            seen: list[object] = []
            context = contextvars.copy_context()
            context.run(variable.set, "mine")
            future.add_done_callback(lambda done: seen.append((done, variable.get())), context=context)
            future.add_done_callback(seen.append)
            assert future.remove_done_callback(seen.append) == 1
            metadata = await future
            assert await future == metadata == future.result()
            assert future.exception() is None
            await asyncio.sleep(0)
            assert seen == [(future, "mine")]
            future.add_done_callback(seen.append)
            await asyncio.sleep(0)
            assert seen[1:] == [future]

            futures = [sent() for _ in range(5)]
            assert [each.offset for each in await asyncio.gather(*futures)] == [1, 2, 3, 4, 5]
            done, pending = await asyncio.wait([sent(), sent()])
            assert (len(done), len(pending)) == (2, 0)
            assert (await asyncio.wait_for(sent(), 10)).offset == 8
            assert (await asyncio.shield(sent())).offset == 9
            assert {(await each).offset for each in asyncio.as_completed([sent(), sent()])} == {10, 11}

    asyncio.run(main())


def test_a_gather_with_a_future_that_was_cancelled_ends() -> None:
    async def main() -> None:
        async with asyncio_calls(Cluster({"events": 1}), linger_ms=50) as calls:
            await calls.partitions_for("events")
            futures: list[Any] = [send(calls, b"x") for _ in range(3)]
            futures[1].cancel()
            gathered = asyncio.gather(*futures, return_exceptions=True)
            done, _ = await asyncio.wait({gathered}, timeout=10)  # asyncio.wait_for() would wait for ever
            assert done
            first, cancelled, last = gathered.result()
            assert (first.offset, type(cancelled), last.offset) == (0, asyncio.CancelledError, 2)

    asyncio.run(main())


def test_a_gather_of_futures_that_is_cancelled_ends() -> None:
    cluster = Cluster({"events": 1})

    async def main() -> None:
        async with asyncio_calls(cluster, linger_ms=50) as calls:
            await calls.partitions_for("events")
            gathered = asyncio.gather(*[send(calls, b"x") for _ in range(3)])
            gathered.cancel()
            done, _ = await asyncio.wait({gathered}, timeout=10)  # asyncio.wait_for() would wait for ever
            assert done
            with pytest.raises(asyncio.CancelledError):
                await gathered

    asyncio.run(main())


def test_cancelling_the_future_or_its_awaiter_withdraws_nothing() -> None:
    cluster = Cluster({"events": 1})

    async def main() -> None:
        async with asyncio_calls(cluster, linger_ms=50) as calls:
            await calls.partitions_for("events")
            first, second = send(calls, b"x"), send(calls, b"y")

            async def waits() -> None:
                await first

            task = asyncio.create_task(waits())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert first.cancelled()
            assert second.cancel("enough")
            assert not second.cancel()
            assert second.done()
            with pytest.raises(asyncio.CancelledError, match="enough"):
                await second
            await calls.flush()
            assert cluster.offsets["events", 0] == 2

    asyncio.run(main())


def test_the_error_of_a_record_comes_out_of_its_future() -> None:
    cluster = Cluster({"events": 1})
    cluster.script.extend([29, 29])

    async def main() -> None:
        async with asyncio_calls(cluster) as calls:
            await calls.partitions_for("events")
            future = send(calls, b"x")
            with pytest.raises(TopicAuthorizationFailedError):
                await future
            assert isinstance(future.exception(), TopicAuthorizationFailedError)
            assert not future.cancel()
            many = await calls.send_many("events", [b"a", b"b"])
            with pytest.raises(TopicAuthorizationFailedError):
                await many
            assert [each.offset for each in await (await calls.send_many("events", [b"a", b"b"]))] == [0, 1]

    asyncio.run(main())


def test_what_send_many_returns_is_awaited_to_the_end_of_a_batch_that_is_divided() -> None:
    """KIP-126: the parts of a batch that is too large for the broker are settled one after another."""
    cluster = Cluster({"events": 1})

    async def main() -> None:
        async with asyncio_calls(cluster, linger_ms=50) as calls:
            await calls.partitions_for("events")
            cluster.script.extend([10, 0, 10])  # twelve records, then six, then three
            sent: Any = await calls.send_many("events", [b"x" * 900 for _ in range(12)])
            assert [metadata.offset for metadata in await sent] == list(range(12))

    asyncio.run(main())
