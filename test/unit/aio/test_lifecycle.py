"""The life of asyncio clients: made anywhere, bound by start(), ended by stop(), and what goes wrong in between."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import warnings
import weakref
from decimal import Decimal

import pytest

from kafka.aio import AIOKafkaClient, AIOKafkaProducer
from kafka.aio.lifecycle import STOP_TIMEOUT, Lifecycle
from kafka.errors import ClientClosedError, IllegalArgumentError, IllegalStateError, NoBrokersAvailable
from kafka.protocol.metadata import MetadataResponse
from kafka.testing import SILENCE, MemoryNetwork, ScriptedBroker
from test.unit.aio.virtual import live_in, run
from test.unit.producer.memory_cluster import Cluster


@pytest.fixture
def network():
    return MemoryNetwork()


@pytest.fixture
def broker(network):
    broker = ScriptedBroker(network)
    brokers = [MetadataResponse.MetadataResponseBroker(node_id=0, host="broker", port=9092, rack=None)]
    broker.on("Metadata", {"brokers": brokers, "controller_id": 0})
    return broker


def make(network, kind=AIOKafkaClient, **options):
    return live_in(network, kind(bootstrap_servers="broker:9092", **options))


def no_tasks():
    return asyncio.all_tasks() == {asyncio.current_task()}


def test_a_client_can_be_made_without_a_running_loop_and_holds_nothing(network, broker):
    client = make(network)
    assert repr(client) == "<AIOKafkaClient not started>"
    assert client.hosts == [("broker", 9092)]
    assert not network.sockets

    async def main():
        async with client as entered:
            assert entered is client
            assert repr(client) == "<AIOKafkaClient started>"
        assert no_tasks()

    run(network, main())
    assert repr(client) == "<AIOKafkaClient stopped>"
    assert not network.open_sockets


def test_a_client_that_was_never_started_is_dropped_in_silence(network, recwarn):
    client = make(network)
    ref = weakref.ref(client)
    del client
    gc.collect()
    assert ref() is None
    assert not recwarn.list


def test_before_start_each_call_says_what_to_do(network, broker):
    client = make(network)
    with pytest.raises(IllegalStateError, match=r"^This AIOKafkaClient is not started: call `await client.start\(\)`"):
        client.get_random_node()


def test_start_twice_and_start_after_stop_say_so(network, broker):
    async def main():
        client = make(network)
        await client.start()
        with pytest.raises(IllegalStateError, match=r"^start\(\) was called twice: <AIOKafkaClient started>"):
            await client.start()
        await client.stop()
        await client.stop()
        with pytest.raises(ClientClosedError, match="was stopped and cannot be started again: make a new one"):
            await client.start()
        with pytest.raises(ClientClosedError, match="This AIOKafkaClient was stopped"):
            client.get_random_node()

    run(network, main())


def test_stop_of_a_client_that_was_not_started_does_nothing(network, broker):
    async def main():
        client = make(network)
        await client.stop()
        await client.start()
        await client.stop()

    run(network, main())


def test_a_start_that_fails_frees_everything_and_may_be_tried_again(network, broker, recwarn):
    broker.stop()

    async def main():
        client = make(network)
        for _ in range(3):
            with pytest.raises(NoBrokersAvailable):
                await client.start()
            assert no_tasks()
            assert not network.open_sockets
            assert repr(client) == "<AIOKafkaClient not started>"
        broker.start()
        await client.start()
        await client.stop()

    run(network, main())
    gc.collect()
    assert not recwarn.list


def test_a_start_that_is_cancelled_at_any_point_frees_everything(network, broker, recwarn):
    async def main():
        for delay in range(40):
            client = make(network)
            starting = asyncio.ensure_future(client.start())
            for _ in range(delay):
                await asyncio.sleep(0)
            starting.cancel()
            try:
                await starting
            except asyncio.CancelledError:
                assert repr(client) == "<AIOKafkaClient not started>"
            else:
                await client.stop()
            assert no_tasks()
            assert not network.open_sockets
        assert repr(client) == "<AIOKafkaClient stopped>", "the last of these starts were quicker than the cancelling"

    run(network, main())
    gc.collect()
    assert not recwarn.list


def test_stop_ends_a_start_that_is_under_way(network, broker):
    broker.on("Metadata", lambda *_: SILENCE)

    async def main():
        client = make(network)
        starting = asyncio.ensure_future(client.start())
        await asyncio.sleep(1)
        await client.stop()
        with pytest.raises(ClientClosedError):
            await starting
        assert repr(client) == "<AIOKafkaClient stopped>"

    run(network, main())
    assert not network.open_sockets


class Slow(AIOKafkaClient):
    """Takes its time to end."""

    seconds = 5.0
    stubborn = False
    failure: Exception | None = None

    async def _finish(self, deadline: float) -> None:
        end = self._deadline(self.seconds)
        while self._loop.time() < end:
            try:
                await asyncio.sleep(end - self._loop.time())
            except asyncio.CancelledError:  # noqa: PERF203
                if not self.stubborn:
                    raise
        if self.failure is not None:
            raise self.failure


def test_stop_continues_when_it_is_cancelled_and_a_second_one_waits_for_it(network, broker):
    async def main():
        client = make(network, Slow)
        await client.start()
        began = network.clock.monotonic()
        for _ in range(3):
            stopping = asyncio.ensure_future(client.stop())
            await asyncio.sleep(1)
            stopping.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stopping
        assert repr(client) == "<Slow stopping>"
        await client.stop()
        assert network.clock.monotonic() - began == pytest.approx(5)
        assert no_tasks()

    run(network, main())
    assert not network.open_sockets


@pytest.mark.parametrize("stubborn", [False, True])
def test_stop_is_bounded_whatever_user_code_does(network, broker, stubborn):
    async def main():
        client = make(network, Slow)
        client.seconds, client.stubborn = 1000.0, stubborn
        await client.start()
        began = network.clock.monotonic()
        await client.stop(2)
        assert network.clock.monotonic() - began == pytest.approx(3.0 if stubborn else 2.5)
        assert not network.open_sockets
        if stubborn:
            await asyncio.sleep(1000)

    run(network, main())


def test_a_second_stop_ends_the_first_after_its_own_time(network, broker):
    async def main():
        client = make(network, Slow)
        client.seconds = 1000.0
        await client.start()
        began = network.clock.monotonic()
        first = asyncio.ensure_future(client.stop(100))
        await asyncio.sleep(1)
        await client.stop(2)
        assert network.clock.monotonic() - began == pytest.approx(1 + 2.5)
        await first
        assert no_tasks()

    run(network, main())


def test_without_a_timeout_stop_takes_some_seconds_at_most(network, broker):
    async def main():
        client = make(network, Slow)
        client.seconds = 1000.0
        await client.start()
        began = network.clock.monotonic()
        await client.stop()
        assert network.clock.monotonic() - began == pytest.approx(STOP_TIMEOUT + 0.5)

    run(network, main())


@pytest.mark.parametrize("strange", [float("nan"), Decimal(1), True, "1", 10**400])
def test_a_strange_timeout_is_an_error_or_as_long_as_it_says_and_stop_works_after_it(network, broker, strange):
    async def main():
        client = make(network, Slow)
        await client.start()
        if isinstance(strange, int) and strange > 1:
            await asyncio.wait_for(client.stop(strange), 100)
        else:
            with pytest.raises((TypeError, IllegalArgumentError), match=r"^the timeout of stop\(\) must be a number"):
                await asyncio.wait_for(client.stop(strange), 100)
        await asyncio.wait_for(client.stop(), 100)
        assert client.closed

    run(network, main())


@pytest.mark.parametrize("silence", [25, 35])
def test_stop_of_a_producer_waits_thirty_seconds_for_a_broker_as_close_does(silence):
    cluster = Cluster({"events": 1})
    cluster.script += [SILENCE] * 100

    async def main():
        producer = live_in(cluster.network, AIOKafkaProducer(bootstrap_servers="b0:9092", request_timeout_ms=2000))
        await producer.start()
        future = await producer.send("events", b"x")
        asyncio.get_running_loop().call_later(silence, cluster.script.clear)
        await producer.stop()
        assert future.done()
        assert (future.exception() is None) == (silence < 30)

    run(cluster.network, main())


def test_what_fails_at_the_end_is_logged_and_everything_is_freed(network, broker, caplog):
    async def main():
        for failure in (NoBrokersAvailable("nobody"), ValueError("in a listener")):
            client = make(network, Slow)
            client.failure = failure
            async with client:
                pass

    with caplog.at_level(logging.WARNING, "kafka.aio.lifecycle"):
        run(network, main())
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    assert not network.open_sockets


def test_a_listener_that_calls_stop_at_the_end_does_not_wait_for_itself(network, broker):
    class Again(AIOKafkaClient):
        async def _finish(self, deadline: float) -> None:
            await self.stop()

    async def main():
        client = make(network, Again)
        await client.start()
        await asyncio.wait_for(client.stop(), 1)

    run(network, main())


def test_a_client_is_used_on_its_own_loop_only(network, broker):
    client = make(network)
    seen = []

    async def elsewhere():
        with pytest.raises(IllegalStateError, match="belongs to the event loop that started it, and was used on"):
            client.get_random_node()
        with pytest.raises(IllegalStateError, match="stop it there"):
            await client.stop()
        seen.append("loop")

    def thread():
        asyncio.run(elsewhere())
        with pytest.raises(IllegalStateError, match=r"used in thread 'other', outside of a task: call asyncio\.run_co"):
            client.get_random_node()
        seen.append("thread")

    async def main():
        async with client:
            other = threading.Thread(target=thread, name="other")
            other.start()
            other.join()

    run(network, main())
    assert seen == ["loop", "thread"]


def test_loop_as_an_argument_is_deprecated_and_is_the_loop_to_start_on(network, broker):
    async def main():
        with pytest.deprecated_call(match=r"AIOKafkaClient\(loop=\.\.\.\) is deprecated"):
            client = make(network, loop=asyncio.get_running_loop())
        await client.start()
        await client.stop()
        other = asyncio.new_event_loop()
        with pytest.deprecated_call():
            client = make(network, loop=other)
        with pytest.raises(IllegalStateError, match="was made for another event loop"):
            await client.start()
        other.close()

    run(network, main())


@pytest.mark.parametrize("debug", [False, True])
def test_an_unclosed_client_warns_and_tells_the_exception_handler(network, broker, debug):
    told = []

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_debug(debug)
        loop.set_exception_handler(lambda _loop, context: told.append({**context, "client": repr(context["client"])}))
        client = make(network)
        await client.start()
        ref = weakref.ref(client)
        kept = [client]
        del client
        with pytest.warns(ResourceWarning, match="^Unclosed AIOKafkaClient"):
            kept.clear()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not network.open_sockets
        assert ref() is None
        assert no_tasks()

    run(network, main())
    (context,) = told
    assert context.pop("client").startswith("<AIOKafkaClient")
    assert context.pop("message") == "Unclosed AIOKafkaClient"
    assert ("source_traceback" in context) is debug
    if debug:
        assert "test_lifecycle" in str(context.pop("source_traceback"))
    assert not context


def test_a_loop_that_is_closed_first_leaves_a_warning_and_nothing_else(network, broker, caplog):
    kept = [make(network)]

    async def main():
        await kept[0].start()

    run(network, main())
    with pytest.raises(IllegalStateError):
        kept[0].get_random_node()
    with pytest.warns(ResourceWarning, match="^Unclosed AIOKafkaClient"):
        kept.clear()
    assert not network.open_sockets
    assert not caplog.records


def test_a_client_whose_loop_was_closed_can_be_stopped_on_another(network, broker):
    kept = [make(network)]

    async def main():
        await kept[0].start()

    run(network, main())
    run(network, kept[0].stop())
    assert repr(kept[0]) == "<AIOKafkaClient stopped>"
    assert not network.open_sockets
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept.clear()


def test_the_base_class_of_clients_is_documented():
    assert Lifecycle.start.__doc__
    assert Lifecycle.stop.__doc__
