"""`AIOKafkaAdminClient` against the embedded broker: the calls of the blocking face, awaited."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
import time

import pytest

from kafka import KafkaAdminClient, OffsetSpec, TopicPartition
from kafka.admin.client import AdminCalls
from kafka.aio import AIOKafkaAdminClient
from kafka.aio.lifecycle import Lifecycle
from kafka.broker import Broker
from kafka.errors import ClientClosedError, IllegalStateError, NoBrokersAvailable, TopicAlreadyExistsError
from kafka.testing import SILENCE  # noqa: F401

PARTITION = TopicPartition("events", 0)


def test_the_results_equal_the_results_of_the_blocking_client():
    async def with_asyncio(servers: str) -> list[object]:
        async with AIOKafkaAdminClient(bootstrap_servers=servers) as admin:
            return [
                await admin.list_topics(),
                await admin.describe_topics(["events", "missing"]),
                await admin.describe_cluster(),
                await admin.list_partition_offsets({PARTITION: OffsetSpec.LATEST}),
                await admin.list_groups(),
                await admin.describe_groups(["readers"]),
            ]

    with Broker(nodes=3, topics={"events": 2}) as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            expected = [
                admin.list_topics(),
                admin.describe_topics(["events", "missing"]),
                admin.describe_cluster(),
                admin.list_partition_offsets({PARTITION: OffsetSpec.LATEST}),
                admin.list_groups(),
                admin.describe_groups(["readers"]),
            ]
        assert asyncio.run(with_asyncio(broker.bootstrap_servers)) == expected


def test_many_calls_run_at_the_same_time_without_a_thread():
    async def program(servers: str) -> None:
        async with AIOKafkaAdminClient(bootstrap_servers=servers) as admin:
            await asyncio.gather(*(admin.create_topics([f"t{number}"]) for number in range(20)))
            assert sorted(await admin.list_topics()) == sorted(f"t{number}" for number in range(20))
            assert not [thread.name for thread in threading.enumerate() if "admin" in thread.name]
            with pytest.raises(TopicAlreadyExistsError, match="'t7'"):
                await admin.create_topics(["t7"])

    with Broker() as broker:
        asyncio.run(program(broker.bootstrap_servers))


def tasks_of(admin: AIOKafkaAdminClient) -> int:
    """How many tasks of the library the client has."""
    found = re.search(r"tasks=(\d+)", repr(admin._core.loop))
    assert found is not None
    return int(found[1])


def test_a_call_that_is_cancelled_leaves_no_task_and_the_client_works():
    async def program(broker: Broker) -> None:
        async with AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            before = tasks_of(admin)
            for _ in range(20):
                call = asyncio.ensure_future(admin.wait_for_topics(["missing"], timeout_ms=60_000))
                await asyncio.sleep(0)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            assert await admin.list_topics() == []
            assert asyncio.all_tasks() == {asyncio.current_task()}
            deadline = time.monotonic() + 10
            while tasks_of(admin) > before and time.monotonic() < deadline:
                await admin.list_topics()
            assert tasks_of(admin) <= before

    with Broker() as broker:
        asyncio.run(program(broker))


def test_it_is_used_between_start_and_stop():
    async def program(servers: str) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=servers)
        with pytest.raises(IllegalStateError, match="start"):
            await admin.list_topics()
        await admin.start()
        assert admin.bootstrap_connected()
        assert admin.health()["ok"]
        await admin.close()
        await admin.close()
        with pytest.raises(ClientClosedError):
            await admin.list_topics()

    with Broker() as broker:
        asyncio.run(program(broker.bootstrap_servers))


def test_start_raises_where_no_broker_answers():
    async def program() -> None:
        with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1"):
            await AIOKafkaAdminClient(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=200).start()

    asyncio.run(program())


def test_every_call_is_there_and_none_of_their_parts_hides_one_of_the_life_cycle():
    for name, call in inspect.getmembers(AdminCalls, inspect.iscoroutinefunction):
        if not name.startswith("_"):
            assert getattr(AIOKafkaAdminClient, name) is call
    own = {name for kind in AdminCalls.__mro__[:-1] for name in vars(kind) if not name.startswith("__")}
    assert own & {name for name in vars(Lifecycle) if not name.startswith("__")} == {"_check_usable"}
