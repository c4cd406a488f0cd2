"""Other tasks of the event loop have their turn, whatever the clients do; and no client starts a thread."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from random import Random

import pytest

from kafka.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from kafka.broker import Broker
from kafka.codec import codec_id, compressor
from test.embedded.aio.conftest import LOOPS, run_on
from test.speed import slowness

measured = pytest.mark.alone

PERIOD = 0.010
FILLED_WITH = 200_000
#: How often the timer goes off while it is watched: five of them may be late.
ENOUGH = 100


class Ticker:
    """A task on a timer, and how late it was.

    The machine is shared: time that this thread did not have does not count. A thread that is busy all the time has the
    period itself and what the timer is late.
    """

    def __init__(self):
        self.late = []

    async def run(self):
        loop = asyncio.get_running_loop()
        while True:
            due, cpu = loop.time() + PERIOD, time.thread_time()
            await asyncio.sleep(PERIOD)
            self.late.append(max(0.0, min(loop.time() - due, time.thread_time() - cpu - PERIOD)))


@contextmanager
def passes_timed():
    """Collect what CPU each callback of asyncio's own event loop takes in this thread; uvloop's do not show."""
    took, me, run = [], threading.get_ident(), asyncio.events.Handle._run

    def timed(handle):
        began = time.thread_time()
        run(handle)
        if threading.get_ident() == me:  # else it is of a broker
            took.append(time.thread_time() - began)

    asyncio.events.Handle._run = timed
    try:
        yield took
    finally:
        asyncio.events.Handle._run = run


async def punctual(make_work):
    """Run work that ends when it is done and the timer was watched for long enough; other tasks have their turn."""
    ticker = Ticker()
    # A full collection takes time by all that the process has; here that is mostly the test's.
    gc.collect()
    gc.freeze()
    with passes_timed() as passes:
        with_timer = asyncio.ensure_future(ticker.run())
        await asyncio.sleep(0)
        await make_work(lambda: len(ticker.late) >= ENOUGH)
        with_timer.cancel()
        await asyncio.gather(with_timer, return_exceptions=True)
    late = sorted(ticker.late)
    passes = sorted(passes) or [0.0]
    print(
        f"a 10 ms timer, {len(late)} times: p99 {late[len(late) * 99 // 100] * 1e3:.1f} ms, most {late[-1] * 1e3:.1f}; "
        f"{len(passes)} passes: p99 {passes[len(passes) * 99 // 100] * 1e3:.1f} ms, most {passes[-1] * 1e3:.1f}"
    )
    assert len(late) >= ENOUGH
    # 5 ms are promised for a pass. The same work takes up to twice the CPU while other processes use the caches of the
    # core. A timer waits for several passes and for the test's own work: on one machine, at different hours, 95 % of
    # them were late by less than 5 ms and by up to 7.5 ms, with the same commit.
    slow = slowness()
    assert passes[-1] < 0.010 * slow
    assert late[-1] < 0.015 * slow
    assert late[len(late) * 95 // 100] < 0.010 * slow
    assert passes[len(passes) * 99 // 100] < 0.005 * slow


@pytest.fixture(params=["selector", "uvloop"])
def run(request):
    return lambda main: run_on(LOOPS[request.param], main)


@pytest.fixture(scope="module")
def filled(request):
    """A broker with 200,000 records of 100 bytes, 20 MB, in batches of one codec."""
    codec = None if request.param == "plain" else request.param  # pytest sets a fixture up anew for each None
    with Broker(topics=["events"]) as broker:

        async def fill():
            async with AIOKafkaProducer(
                bootstrap_servers=broker.bootstrap_servers, compression_type=codec, batch_size=1 << 18
            ) as producer:
                for _ in range(FILLED_WITH // 1000):
                    await producer.send_many("events", [b"%0100d" % number for number in range(1000)])
                await producer.flush()  # stop() would give up what a busy machine has not sent within 10 seconds

        asyncio.run(fill())
        assert broker.offsets("events")[2] == FILLED_WITH
        yield broker


# Codec, most bytes of a fetch, and the way of reading: what decompresses and what hands out know nothing of each other.
WAYS = [
    *(("plain", 1, "iteration"), ("plain", 50, "getmany")),
    *(("gzip", 50, "iteration"), ("snappy", 50, "getmany"), ("lz4", 50, "iteration"), ("zstd", 50, "getmany")),
]


@measured
@pytest.mark.slow
@pytest.mark.parametrize(("filled", "fetched", "way"), WAYS, indirect=["filled"])
def test_a_timer_is_on_time_while_a_consumer_reads(run_once, filled, fetched, way):
    total = 400_000

    async def read(watched_enough):
        seen = 0
        async with AIOKafkaConsumer(
            "events",
            bootstrap_servers=filled.bootstrap_servers,
            auto_offset_reset="earliest",
            fetch_max_bytes=50 << 20,
            max_partition_fetch_bytes=fetched << 20,
        ) as reader:
            while seen < total or not watched_enough():
                if way == "getmany":
                    seen += sum(map(len, (await reader.getmany(timeout_ms=1000)).values()))
                else:
                    async for _ in reader:
                        seen += 1
                        if seen % FILLED_WITH == 0:
                            break
                if seen % FILLED_WITH == 0:
                    await reader.seek_to_beginning()

    run_once(punctual(read))


@pytest.fixture(scope="module")
def wide():
    """A broker with 30 MB in 50 partitions: one response of the default size brings most of it."""
    with Broker(topics={"wide": 50}) as broker:
        for partition in range(50):
            broker.append_many("wide", [b"%0100d" % number for number in range(6000)], partition=partition)
        yield broker


@measured
@pytest.mark.slow
@pytest.mark.parametrize("way", ["iteration", "getmany"])
def test_a_timer_is_on_time_while_a_response_brings_many_partitions(run_once, wide, way):
    async def read(watched_enough):
        async with AIOKafkaConsumer(
            "wide", bootstrap_servers=wide.bootstrap_servers, auto_offset_reset="earliest"
        ) as reader:
            while not watched_enough():
                seen = 0
                while seen < 300_000:
                    if way == "getmany":
                        seen += sum(map(len, (await reader.getmany(timeout_ms=1000)).values()))
                    else:
                        async for _ in reader:
                            seen += 1
                            if seen % 100_000 == 0:
                                break
                await reader.seek_to_beginning()

    run_once(punctual(read))


FIRST_USE = """
import asyncio, time

from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer

slowest = 0.0
run = asyncio.events.Handle._run


def timed(handle):
    global slowest
    began = time.thread_time()
    run(handle)
    slowest = max(slowest, time.thread_time() - began)


async def main():
    options = {"bootstrap_servers": BROKER}
    async with AIOKafkaProducer(**options) as producer:
        await producer.send_and_wait("events", b"x")
    async with AIOKafkaConsumer("events", group_id="g", auto_offset_reset="earliest", **options) as reader:
        await reader.getone()
        await reader.commit()


asyncio.events.Handle._run = timed
asyncio.run(main())
print(slowest)
"""


@measured
def test_the_first_records_of_a_process_hold_the_event_loop_for_a_moment():
    """Modules are loaded with the classes; the codecs of each request are compiled one by one."""
    with Broker(topics=["events"]) as broker:
        program = FIRST_USE.replace("BROKER", repr(broker.bootstrap_servers))
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    # 6 ms were seen, beside seven busy processes; before, 46 on a quiet machine.
    assert float(ran.stdout) < 0.012 * slowness()


@measured
@pytest.mark.slow
def test_a_timer_is_on_time_during_a_tight_loop_of_sends(run):
    with Broker(topics=["events"]) as broker:

        async def send(watched_enough):
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                await producer.partitions_for("events")
                sent = 0
                while sent < 200_000 or not watched_enough():
                    await producer.send("events", b"x" * 100)
                    sent += 1

        run(punctual(send))


@measured
@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_timer_is_on_time_while_large_batches_are_compressed(run, codec):
    words = Random(1).choices([b"alpha", b"beta", b"order", b"customer", b"%d"], k=400_000)
    value = b" ".join(words)
    began = time.thread_time()
    compressor(codec_id(codec))(value)
    reference = time.thread_time() - began
    ticker = Ticker()

    async def send(broker):
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, compression_type=codec, max_request_size=10 << 20
        ) as producer:
            await producer.send_and_wait("events", value)  # modules, and the threads of the executor
            watching = asyncio.ensure_future(ticker.run())
            await asyncio.gather(*[producer.send_and_wait("events", value) for _ in range(5)])
            watching.cancel()
        await asyncio.get_running_loop().shutdown_default_executor()  # where batches are compressed

    with Broker(topics=["events"]) as broker:
        run(send(broker))
    print(f"compressing takes {reference * 1e3:.1f} ms; the timer is late by {max(ticker.late) * 1e3:.1f} ms at most")
    # 10 ms are the copies of the value; before, all of the time for a batch and more.
    assert max(ticker.late) < max(reference / 2, 0.015 * slowness())


def test_a_reply_about_a_thousand_topics_is_read_in_slices():
    """The reply, the client's picture of the cluster and the descriptions; in one pass each before."""
    with Broker(topics={f"topic-{number}": 1 for number in range(1000)}) as broker:

        async def main():
            async with AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
                await admin.describe_topics()  # the codecs are compiled
                gc.collect()
                gc.freeze()
                with passes_timed() as passes:
                    described = await admin.describe_topics()
            assert len(described) == 1000
            return passes

        passes = run_on(LOOPS["selector"], main())
    print(f"longest of {len(passes)} passes {max(passes) * 1e3:.1f} ms, all {sum(passes) * 1e3:.1f} ms")
    assert max(passes) < sum(passes) / 3


@measured
@pytest.mark.parametrize("options", [{}, {"group_id": "g", "group_protocol": "consumer"}], ids=["alone", "KIP-848"])
def test_a_thousand_partitions_are_asked_for_and_taken_in_slices(options):
    """What is made, sent and taken for each of them was one pass, of 15 ms where the longest one takes 3 to 5 now."""
    with Broker(topics={"wide": 1000}) as broker:
        for partition in range(1000):
            broker.append("wide", value=b"x" * 100, partition=partition)

        async def read():
            async with AIOKafkaConsumer(
                "wide",
                bootstrap_servers=broker.bootstrap_servers,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                **options,
            ) as reader:
                left = 1000
                while left > 0:
                    left -= sum(map(len, (await reader.getmany(timeout_ms=1000)).values()))

        async def main():
            await read()  # modules are loaded and codecs compiled
            gc.collect()
            gc.freeze()
            with passes_timed() as passes:
                await asyncio.ensure_future(read())
            return sorted(passes)

        passes, slow = run_on(LOOPS["selector"], main()), slowness()
    print(f"{len(passes)} passes, times {slow:.2f}: most {[round(1e3 * took, 1) for took in passes[-5:]]} ms")
    assert passes[-1] < 0.010 * slow


def test_no_client_starts_a_thread(run):
    with Broker(topics=["events"], sasl=[("SCRAM-SHA-256", "ann", "secret")]) as broker:
        options = {
            "bootstrap_servers": broker.bootstrap_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_plain_username": "ann",
            "sasl_plain_password": "secret",
        }

        async def main():
            before = threading.active_count()
            async with AIOKafkaProducer(**options) as producer:
                await producer.send_and_wait("events", b"x")
                async with AIOKafkaConsumer("events", group_id="g", auto_offset_reset="earliest", **options) as reader:
                    assert (await reader.getone()).offset == 0
                    async with AIOKafkaConsumer("events", group_id="g", **options) as other:
                        while len(reader.assignment()) == len(other.assignment()):
                            await asyncio.sleep(0.01)
                        assert threading.active_count() == before
            assert threading.active_count() == before

        run(main())


def test_several_loops_in_several_threads_each_with_its_clients():
    with Broker(topics={"events": 4}) as broker:
        failures, counts = [], []

        async def main(partition):
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                for number in range(300):
                    await producer.send("events", b"%d" % number, partition=partition)
            reader = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
            reader.assign([TopicPartition("events", partition)])
            async with reader:
                counts.append([(await reader.getone()).value for _ in range(300)])

        def thread(partition):
            try:
                asyncio.run(main(partition))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=thread, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert not failures
        assert counts == [[b"%d" % number for number in range(300)]] * 4


@measured
def test_in_debug_mode_no_callback_is_slow():
    with Broker(topics=["events"]) as broker:

        async def main():
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                for _ in range(5000):
                    await producer.send("events", b"x" * 100)
            async with AIOKafkaConsumer(
                "events", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
            ) as reader:
                for _ in range(5000):
                    await reader.getone()

        run_on(LOOPS["selector"], main())  # the first of all imports modules
        with passes_timed() as passes:
            run_on(LOOPS["debug"], main())
    assert max(passes) < 0.1  # what asyncio itself takes for slow, by the clock of the thread: the machine is shared
