"""The client core while brokers are killed and stopped: it goes on by itself, and says why it cannot."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafka._core.client import Client
from kafka._runtime.asyncio_driver import asyncio_driver
from kafka._runtime.network_thread import ThreadDriver, complete
from kafka.config import resolve
from kafka.errors import ForkedClientError, KafkaConnectionError, KafkaError, RequestTimedOutError
from kafka.protocol.metadata import MetadataRequest

from .kafka_process import KafkaCluster


@pytest.fixture
def three(kafka_cluster: KafkaCluster) -> KafkaCluster:
    return kafka_cluster


class Driven:
    """A client core on its own network thread."""

    def __init__(self, cluster: KafkaCluster, **config: Any) -> None:
        config.setdefault("request_timeout_ms", 5000)
        self.core = Client(resolve("client", {"bootstrap_servers": cluster.bootstrap_servers, **config}))
        self.driver = ThreadDriver(self.core.loop)
        complete(self.driver.run(self.core.bootstrap()))

    def ask(self, node_id: int | None = None, seconds: float = 30) -> Any:
        """Ask what every broker can answer as soon as it is there: a coordinator may still be loading its groups."""
        deadline = self.core.loop.time() + seconds
        return complete(
            self.driver.run(self.core.request(MetadataRequest(topics=[]), node_id=node_id, deadline=deadline))
        )

    def ask_until_answered(self, node_id: int | None = None, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while True:
            try:
                assert self.ask(node_id).brokers
                return
            except KafkaError:  # noqa: PERF203 - each is waited for
                if time.monotonic() > end:
                    raise

    def close(self) -> None:
        self.core.loop.call_soon(self.core.shut_down)
        complete(self.driver.close())


@pytest.fixture
def driven(three: KafkaCluster) -> Iterator[Driven]:
    three.wait_ready()  # a node that was started again knows of itself before the others do
    made = Driven(three)
    yield made
    made.close()
    assert not any(thread.name == "kafka-network" for thread in threading.enumerate())


def test_a_killed_broker_is_gone_round_and_found_again(three: KafkaCluster, driven: Driven) -> None:
    for node in (1, 2, 3):
        driven.ask(node)
    three.kill(2)
    try:
        with pytest.raises(KafkaError):
            driven.ask(2, seconds=2)
        for _ in range(20):
            assert driven.ask().brokers
        assert driven.core.health()["ok"]
        deadline = time.monotonic() + 60
        while "refused" not in driven.core.health()["brokers"]["2/default"]["error"]:  # at first it was closed
            assert time.monotonic() < deadline
            with pytest.raises(KafkaError):
                driven.ask(2, seconds=2)
    finally:
        three.start(2)
    driven.ask_until_answered(2)
    assert driven.core.health()["brokers"]["2/default"]["error"] is None


def test_a_stopped_broker_times_out_and_holds_up_no_other(three: KafkaCluster, driven: Driven) -> None:
    for node in (1, 2, 3):
        driven.ask(node)
    three.pause(3)
    try:
        began = time.monotonic()
        with pytest.raises((RequestTimedOutError, KafkaConnectionError)):
            driven.ask(3, seconds=2)
        assert 1.5 < time.monotonic() - began < 10  # a busy machine adds to it; the broker never answers
        began = time.monotonic()
        driven.ask(1)
        assert time.monotonic() - began < 15  # what waited for the other one would have its 30 s
    finally:
        three.resume(3)
    driven.ask_until_answered(3)


def test_many_threads_share_one_client(driven: Driven) -> None:
    errors: list[BaseException] = []

    def use() -> None:
        try:
            for _ in range(50):
                assert driven.ask().brokers
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors


def test_asyncio_drives_the_same_core(three: KafkaCluster) -> None:
    async def main() -> None:
        core = Client(resolve("client", {"bootstrap_servers": three.bootstrap_servers}))
        driver = asyncio_driver(core.loop)
        await driver.run(core.bootstrap())
        replies = await asyncio.gather(*(driver.run(core.request(MetadataRequest(topics=[]))) for _ in range(200)))
        assert all(reply.brokers for reply in replies)
        task = asyncio.create_task(driver.run(core.request(MetadataRequest(topics=[]))))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await driver.run(core.request(MetadataRequest(topics=[])))).brokers
        core.shut_down()
        await driver.close()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def _use_in_child(driven: Driven, pipe: Any) -> None:
    try:
        driven.ask()
    except Exception as error:
        pipe.send(type(error).__name__)
    driven.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_leaves_the_parents_connections_alone(driven: Driven) -> None:
    driven.ask(1)
    link = driven.core.link(1)
    here, there = multiprocessing.get_context("fork").Pipe()
    child = multiprocessing.get_context("fork").Process(target=_use_in_child, args=(driven, there))
    child.start()
    assert here.poll(30)
    assert here.recv() == ForkedClientError.__name__
    child.join(30)
    assert child.exitcode == 0
    for _ in range(20):
        assert driven.ask(1).brokers
    assert driven.core.link(1) is link
    assert link.failures == 0
