"""How programs end: with Ctrl-C, without stop(), with a closed event loop, after a fork; in silence and in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

HEAD = """
import asyncio, os, sys, time
from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer
ADDRESS = sys.argv[1]
"""


def run(program, broker, *, interrupt=False):
    """Run a program; return its exit code and its output. With `interrupt`, press Ctrl-C when it is ready."""
    child = subprocess.Popen(
        [sys.executable, "-c", HEAD + program, broker.bootstrap_servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    took = None
    if interrupt:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        child.wait(60)
        took = time.monotonic() - began
    out, err = child.communicate(timeout=60)
    return child.returncode, out, err, took


pytestmark = pytest.mark.kafka_broker(topics=["events"])


def test_ctrl_c_ends_a_program_that_waits_for_records(broker):
    code, _, err, took = run(
        """
async def main():
    async with AIOKafkaConsumer("events", group_id="g", bootstrap_servers=ADDRESS) as consumer:
        print("ready", flush=True)
        async for _ in consumer:
            pass
asyncio.run(main())
""",
        broker,
        interrupt=True,
    )
    assert code in {1, 130, -signal.SIGINT}
    assert err.strip().endswith("KeyboardInterrupt")
    assert "destroyed" not in err
    assert took < 15
    assert not broker.group_members("g"), "it has left its group"


def test_ctrl_c_while_the_cluster_is_down_ends_within_the_bound_of_stop(broker):
    code, _, err, took = run(
        """
async def main():
    async with AIOKafkaProducer(bootstrap_servers=ADDRESS) as producer:
        await producer.send_and_wait("events", b"x")
        print("ready", flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
""",
        broker,
        interrupt=True,
    )
    assert code != 0
    assert "destroyed" not in err
    assert took < 11


@pytest.mark.parametrize("kind", ["AIOKafkaProducer", "AIOKafkaConsumer"])
def test_a_program_that_stops_nothing_ends_at_once_without_a_traceback(broker, kind):
    topic = '"events", group_id="g", ' if kind == "AIOKafkaConsumer" else ""
    code, _, err, _ = run(
        f"""
client = {kind}({topic}bootstrap_servers=ADDRESS)
async def main():
    await client.start()
asyncio.run(main())
""",
        broker,
    )
    assert code == 0
    assert "Traceback" not in err
    assert "destroyed" not in err


def test_a_child_of_a_fork_gets_an_error_and_the_parent_is_unharmed(broker):
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork here")
    code, out, err, _ = run(
        """
import warnings
warnings.simplefilter("ignore")
async def main():
    async with AIOKafkaProducer(bootstrap_servers=ADDRESS) as producer:
        await producer.send_and_wait("events", b"1")
        child = os.fork()
        if child == 0:
            try:
                producer._refuse()
            except Exception as error:
                print(type(error).__name__, producer.health()["ok"], flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print((await producer.send_and_wait("events", b"2")).offset)
asyncio.run(main())
""",
        broker,
    )
    assert (code, out.split()) == (0, ["ForkedClientError", "False", "1"])
    assert "Traceback" not in err


def test_without_a_pollable_selector_a_thread_does_the_networks_work(broker):
    code, out, err, _ = run(
        """
import selectors, threading
class NoDescriptor(selectors.SelectSelector):
    pass
async def main():
    options = {"bootstrap_servers": ADDRESS, "selector": NoDescriptor}
    async with AIOKafkaProducer(**options) as producer:
        futures = [await producer.send("events", b"x") for _ in range(100)]
        print((await asyncio.gather(*futures))[-1].offset, (await producer.send_and_wait("events", b"x")).offset)
    async with AIOKafkaConsumer("events", group_id="g", auto_offset_reset="earliest", **options) as consumer:
        print(sum([1 for _ in range(101) if await consumer.getone()]), threading.active_count() > 1)
    print([thread.name for thread in threading.enumerate() if "kafka" in thread.name], len(asyncio.all_tasks()))
asyncio.run(main())
""",
        broker,
    )
    assert (code, out.split()) == (0, ["99", "100", "101", "True", "[]", "1"]), err
