"""Name lookups off the loop, retry delays, worker threads."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
import threading
from random import Random

import pytest

from kafka._runtime.loop import Loop
from kafka._runtime.timers import Backoff
from kafka._runtime.workers import InlineWorkers, ThreadWorkers
from kafka.config import resolve
from kafka.errors import KafkaConnectionError
from kafka.future import Future
from kafka.net.environment import Environment
from kafka.net.resolver import Address, Resolver
from kafka.net.settings import ConnectionContext, ConnectionSettings
from kafka.testing import MemoryNetwork

FOUR, SIX = socket.AF_INET, socket.AF_INET6


def entry(family, host, port=9092):
    return (family, socket.SOCK_STREAM, 6, "", (host, port) if family == FOUR else (host, port, 0, 0))


class Names:
    def __init__(self, **names):
        self.names, self.asked = names, []

    def __call__(self, host, port, family=0, kind=0, proto=0):
        self.asked.append(host)
        if host not in self.names:
            raise socket.gaierror(-2, "Name or service not known")
        return self.names[host]

    def reverse(self, sockaddr, _flags):
        if sockaddr[0].endswith("9"):
            raise socket.gaierror(-2, "no name")
        return f"host-{sockaddr[0]}", str(sockaddr[1])


@pytest.fixture
def loop():
    network = MemoryNetwork()
    loop = Loop(clock=network.clock, selector=network.selector)
    yield loop
    loop.close()


def run(loop, coro):
    return loop.run_until(loop.spawn(coro))


def test_families_alternate_beginning_with_the_systems_choice(loop):
    names = Names(b=[entry(SIX, "::1"), entry(SIX, "::2"), entry(FOUR, "1.1.1.1"), entry(SIX, "::1")])
    resolver = Resolver(loop, InlineWorkers(), names)
    assert [address.sockaddr[0] for address in run(loop, resolver.resolve("b", 9092))] == ["::1", "1.1.1.1", "::2"]


def test_a_result_is_reused_for_a_while_and_forgotten_on_demand(loop):
    names = Names(b=[entry(FOUR, "1.1.1.1")])
    resolver = Resolver(loop, InlineWorkers(), names)
    run(loop, resolver.resolve("b", 9092))
    run(loop, resolver.resolve("b", 9092))
    assert len(names.asked) == 1
    resolver.forget("b")
    run(loop, resolver.resolve("b", 9092))
    assert len(names.asked) == 2
    loop.clock.advance(60)
    run(loop, resolver.resolve("b", 9092))
    assert len(names.asked) == 3


def test_addresses_that_failed_come_last_the_latest_at_the_end(loop):
    names = Names(b=[entry(FOUR, f"1.1.1.{n}") for n in range(4)], c=[entry(FOUR, "1.1.1.0"), entry(FOUR, "1.1.1.1")])
    resolver = Resolver(loop, InlineWorkers(), names)
    order = run(loop, resolver.resolve("b", 9092))
    for failed, expected in [(0, "1230"), (1, "2301"), (0, "2310"), (2, "3102"), (3, "1023")]:
        resolver.failed("b", 9092, order[failed])
        assert "".join(address.sockaddr[0][-1] for address in run(loop, resolver.resolve("b", 9092))) == expected
    loop.clock.advance(60)
    assert run(loop, resolver.resolve("b", 9092))[0] == order[1]
    # Another name, or another port, may lead to another program there.
    assert run(loop, resolver.resolve("c", 9092))[0] == order[0]
    assert run(loop, resolver.resolve("b", 9093))[0].sockaddr[0] == "1.1.1.0"


def test_the_memory_of_failed_addresses_is_bounded(loop):
    resolver = Resolver(loop, InlineWorkers(), Names())
    for number in range(1000):
        resolver.failed("b", 9092, Address(FOUR, (f"10.0.{number // 250}.{number % 250}", 9092)))
    assert len(resolver._failed["b", 9092]) < 100


def test_lookups_of_one_name_at_one_time_are_one(loop):
    class Later:
        def __init__(self):
            self.futures = []

        def submit(self, *_):
            self.futures.append(Future())
            return self.futures[-1]

    later = Later()
    resolver = Resolver(loop, later)
    tasks = [loop.spawn(resolver.resolve("b", 9092)) for _ in range(3)]
    loop.turn(0)
    tasks[0].cancel()
    loop.turn(0)
    assert len(later.futures) == 1
    later.futures[0].success([entry(FOUR, "1.1.1.1")])
    assert loop.run_until(tasks[2]) == [Address(FOUR, ("1.1.1.1", 9092))]


@pytest.mark.parametrize("host", ["missing", "empty"])
def test_a_name_that_leads_nowhere_says_so(loop, host):
    resolver = Resolver(loop, InlineWorkers(), Names(empty=[]))
    with pytest.raises(KafkaConnectionError, match=host):
        run(loop, resolver.resolve(host, 9092))


def test_a_name_that_cannot_be_encoded_is_a_connection_error(loop):
    with pytest.raises(KafkaConnectionError):
        run(loop, Resolver(loop, InlineWorkers(), socket.getaddrinfo).resolve("a" * 70 + "\u00e4", 9092))


def test_canonical_names_stand_for_each_address(loop):
    names = Names(b=[entry(FOUR, "1.1.1.1"), entry(FOUR, "1.1.1.9")])
    resolver = Resolver(loop, InlineWorkers(), names, names.reverse)
    assert run(loop, resolver.canonical_names("b", 9092)) == ["host-1.1.1.1", "1.1.1.9"]


def test_a_slow_lookup_does_not_hold_up_the_loop():
    gate = threading.Event()

    def slow(*_):
        gate.wait(10)
        return [entry(FOUR, "1.1.1.1")]

    loop = Loop()
    task = loop.spawn(Resolver(loop, ThreadWorkers(), slow).resolve("b", 9092))
    for _ in range(3):
        loop.turn(0)
    assert not task.is_done
    gate.set()
    assert loop.run_until(task, loop.time() + 10)
    loop.close()


def test_workers_are_bounded_and_go_when_there_is_no_work():
    workers, gate, most = ThreadWorkers(most=2, name="bounded"), threading.Event(), []

    def job():
        most.append(sum(thread.name == "bounded" for thread in threading.enumerate()))
        gate.wait(10)
        return 1

    jobs = [workers.submit(job) for _ in range(6)]
    gate.set()
    threads = [thread for thread in threading.enumerate() if thread.name == "bounded"]
    for thread in threads:
        thread.join(60)
    assert all(job.value == 1 for job in jobs)
    assert max(most) <= 2


def test_a_job_is_done_while_the_interpreter_exits():
    """Python 3.12 starts no thread then, so the names that a last record needs could not be looked up."""
    program = """
        import atexit, time
        from kafka._runtime.workers import ThreadWorkers

        def at_exit():
            future = ThreadWorkers().submit(len, "four")
            while not future.is_done:
                time.sleep(0.001)
            print(future.value if future.succeeded() else future.exception)

        atexit.register(at_exit)
    """
    words = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "4\n", "")


def test_an_error_of_a_job_is_its_result():
    for workers in (InlineWorkers(), ThreadWorkers()):
        done = threading.Event()
        future = workers.submit(lambda: 1 / 0)
        future.add_both(lambda _, done=done: done.set())
        assert done.wait(10)
        assert isinstance(future.exception, ZeroDivisionError)


def test_delays_double_up_to_the_limit_give_or_take_a_fifth():
    backoff = Backoff(0.05, 1.0, Random(0))
    assert backoff.delay(0) == 0
    for failures, expected in ((1, 0.05), (2, 0.1), (3, 0.2), (6, 1.0), (10**9, 1.0)):
        delays = [backoff.delay(failures) for _ in range(100)]
        assert expected * 0.8 <= min(delays) < max(delays) <= expected * 1.2


def test_authentications_that_hang_do_not_hold_up_name_lookups():
    """A token endpoint or a directory service may take its time; its threads are not those of the resolver."""
    environment = Environment(lookup=lambda *_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 9092))])
    loop = environment.make_loop()
    context = ConnectionContext(loop, ConnectionSettings(resolve("connection", {})), environment)
    leave = threading.Event()
    hanging = [context.workers.submit(leave.wait, 30) for _ in range(20)]
    try:
        addresses = loop.run_until(loop.spawn(context.resolver.resolve("b1", 9092)), loop.time() + 20)
        assert [address.sockaddr[0] for address in addresses] == ["10.0.0.1"]
        assert not any(future.is_done for future in hanging)
    finally:
        leave.set()
        loop.close()
