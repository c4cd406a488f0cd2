"""Each program of the cookbook is killed, paused beyond every timeout while a second copy runs, and cut off.

The programs run as processes of their own, as the page has them; only defaults of options differ, so that sessions
last two seconds. A test prints what it did: ``pytest -rP``.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from kafka.broker import Broker
from test.embedded.docs.blocks import ROOT, blocks

from .world import CONFIGS, PATIENCE, World, check_order, group_of, say

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="signals"),
    pytest.mark.timeout(300),
    # Members are killed, and those that were paused continue to ask for what they have lost.
    pytest.mark.breaks_invariant("storms", "commits", reason="programs are killed and paused"),
]
PAGE = ROOT / "docs" / "cookbook.rst"
#: What begins, or is in, each program of the page.
PROGRAMS = {
    "worker": 'group_id="billing"',
    "shutdown": 'group_id="shipping"',
    "dead letters": 'group_id="accounting"',
    "retries": 'group_id="delivery"',
    "transactions": 'group_id="invoicing"',
    "database": 'group_id="archive"',
    "outbox": 'transactional_id="outbox"',
    "parquet": 'group_id="lake"',
    "replay": "seek_to_timestamp",
    "threads": 'group_id="pool"',
    "threads by key": 'group_id="pool-by-key"',
    "web": "ThreadingHTTPServer",
}


def programs() -> dict[str, str]:
    found = [block.text for block in blocks(PAGE) if block.language == "python" and not block.hidden]
    chosen = {name: [text for text in found if mark in text] for name, mark in PROGRAMS.items()}
    assert all(len(texts) == 1 for texts in chosen.values()), {name: len(texts) for name, texts in chosen.items()}
    assert len(found) == len(chosen), "a program of the page has no attack"
    return {name: text for name, (text,) in chosen.items()}


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    topics = {"orders": 2, "orders-retry": 2, "orders-failed": 1, "invoices": 1, "payments": 1, "visits": 1}
    with Broker(topics=topics, configs=CONFIGS) as broker:
        text = programs()[request.node.callspec.params["program"]]
        made = World(broker, tmp_path, text.replace("DELAY_S, ATTEMPTS = 10, 5", "DELAY_S, ATTEMPTS = 0.3, 5"))
        try:
            yield made
        finally:
            made.close()


def attack(world: World, done: Callable[[], Iterable[int]], killed_at: str, *, survives_pause: bool = True) -> None:
    """Attack a program that reads orders: away at start, killed, paused with a second copy, brokers away and back."""

    def all_done() -> bool:
        return set(done()) >= set(range(world.count))

    world.broker.stop_node(1)
    world.orders(30)
    refused = world.start()
    world.ended(refused, 1)
    assert "NoBrokersAvailable" in world.errors(refused)
    waiting = world.start({"bootstrap_timeout_ms": 0}, poll={"1": "KILL"})
    world.broker.start_node(1)
    world.ended(waiting, -signal.SIGKILL)
    world.ended(world.start(**{killed_at: {"2": "KILL"}}), -signal.SIGKILL)

    first = world.start(poll={"2": "STOP"})
    world.until(lambda: world.is_stopped(first))
    second = world.start()
    world.orders(30)
    world.until(all_done, second)  # among them what the first has taken: its session has ended
    world.did["paused"] += 1
    first.send_signal(signal.SIGCONT)
    world.orders(30)
    if survives_pause:
        world.until(all_done, first, second)
        world.until(lambda: len(world.broker.group_members(group_of(world))) == 2, first, second)
    else:
        world.ended(first, 1)
        world.until(all_done, second)

    world.broker.stop_node(1)
    world.orders(30)
    world.broker.start_node(1)
    world.did["outages"] += 1
    world.until(all_done, second)
    second.kill()
    world.ended(second, -signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("program", ["worker", "shutdown", "threads", "threads by key", "dead letters", "retries"])
def test_each_order_is_handled_at_least_once(world: World, program: str) -> None:
    attack(world, world.handled, "commit")
    found = world.handled()
    say(world, found, program)
    if program in {"threads by key", "retries", "worker", "shutdown"}:
        check_order(found)
    assert not world.broker.records("orders-failed")


@pytest.mark.slow
@pytest.mark.parametrize("program", ["worker", "shutdown", "threads", "threads by key"])
def test_an_order_that_fails_ends_the_program_and_is_not_passed(world: World, program: str) -> None:
    world.orders(20)
    world.fail(**{"11": 1})
    failed = world.start()
    world.ended(failed, 1)
    assert "order 11 is poison" in world.errors(failed)
    committed = world.broker.committed(group_of(world), "orders", 1) or 0
    numbers = [json.loads(record.value or b"")["id"] for record in world.broker.records("orders", 1)]
    assert committed <= numbers.index(11)
    world.fail()
    world.start()
    world.until(lambda: set(world.handled()) == set(range(20)))


@pytest.mark.slow
@pytest.mark.parametrize("program", ["shutdown"])
def test_sigterm_loses_and_doubles_nothing_and_others_take_over(world: World, program: str) -> None:
    world.orders(100)
    for round_ in range(4):
        process = world.start()
        world.until(lambda wanted=20 * (round_ + 1): len(world.handled()) >= wanted, process)
        begun = time.monotonic()
        process.terminate()
        world.ended(process, 0)
        assert time.monotonic() - begun < 15
        assert not world.broker.group_members("shipping"), "it has left the group"
    last = world.start()
    world.until(lambda: len(world.handled()) >= 100, last)
    say(world, world.handled(), program)
    assert sorted(world.handled()) == list(range(100))


@pytest.mark.slow
@pytest.mark.parametrize("program", ["dead letters"])
def test_what_cannot_be_read_or_handled_is_set_aside_and_the_rest_is_handled(world: World, program: str) -> None:
    world.orders(10)
    world.broker.append("orders", b"\xff not JSON", partition=0)
    world.broker.append("orders", b'{"id": 99}', partition=1)
    world.orders(10)
    world.ended(world.start(commit={"1": "KILL"}), -signal.SIGKILL)
    world.start()
    world.until(lambda: set(world.handled()) == set(range(20)))
    world.until(lambda: len({record.value for record in world.broker.records("orders-failed")}) == 2)
    found = world.broker.records("orders-failed")
    assert {record.value for record in found} == {b"\xff not JSON", b'{"id": 99}'}
    assert {name for record in found for name, _ in record.headers} == {"error", "from"}
    say(world, world.handled(), f"{program}, 2 poison records, {len(found)} set aside")


@pytest.mark.slow
@pytest.mark.parametrize("program", ["retries"])
def test_orders_of_a_key_wait_for_the_one_that_is_tried_again(world: World, program: str) -> None:
    world.fail(**{"3": 2, "11": 3, "12": 100})
    world.orders(40)
    first = world.start(poll={"4": "STOP"})
    world.until(lambda: world.is_stopped(first))
    second = world.start(poll={"6": "KILL"})
    world.ended(second, -signal.SIGKILL)
    first.kill()
    last = world.start()
    world.until(lambda: set(world.handled()) == set(range(40)) - {12}, last)
    world.until(lambda: world.broker.records("orders-failed"), last)
    say(world, [*world.handled(), 12], program)
    check_order(world.handled())
    assert {json.loads(record.value or b"")["id"] for record in world.broker.records("orders-failed")} == {12}


@pytest.mark.slow
@pytest.mark.parametrize("program", ["transactions"])
def test_each_order_has_one_invoice(world: World, program: str) -> None:
    def invoices() -> list[int]:
        return [json.loads(record.value or b"")["ID"] for record in world.broker.records("invoices", committed=True)]

    attack(world, invoices, "transaction", survives_pause=True)
    found = invoices()
    say(world, found, program)
    assert sorted(found) == list(range(world.count))
    for partition in (0, 1):
        mine = [number for number in found if number % 5 % 2 == partition]
        assert mine == sorted(mine)


@pytest.mark.slow
@pytest.mark.parametrize("program", ["database"])
def test_each_order_is_one_row(world: World, program: str) -> None:
    def rows() -> list[int]:
        try:
            with sqlite3.connect(f"file:{world.where / 'orders.db'}?mode=ro", uri=True) as database:
                return [json.loads(value)["id"] for (value,) in database.execute("select value from orders")]
        except sqlite3.OperationalError:  # not made yet, or locked
            return []

    attack(world, rows, "poll")
    found = rows()
    say(world, found, program)
    assert sorted(found) == list(range(world.count))


@pytest.mark.slow
@pytest.mark.parametrize("program", ["outbox"])
def test_each_row_of_the_outbox_is_sent_in_order(world: World, program: str) -> None:
    path = world.where / "shop.db"
    database = sqlite3.connect(path, timeout=60, isolation_level=None)
    database.execute("create table outbox (id integer primary key, topic text, key blob, value blob)")

    def insert(count: int) -> None:
        for number in range(world.count, world.count + count):
            database.execute("insert into outbox values (?, 'payments', ?, ?)", (number, b"ada", b"%d" % number))
        world.count += count

    def sent() -> list[int]:
        return [int(record.value or b"") for record in world.broker.records("payments", committed=True)]

    def all_sent() -> bool:
        return set(sent()) == set(range(world.count))

    try:
        insert(20)
        world.ended(world.start(transaction={"1": "KILL"}), -signal.SIGKILL)
        paused = world.start(transaction={"1": "STOP"})
        world.until(lambda: world.is_stopped(paused))
        second = world.start()
        insert(20)
        world.until(all_sent, second)
        paused.send_signal(signal.SIGCONT)
        world.ended(paused, 1)
        assert "Fenced" in world.errors(paused) or "fenced" in world.errors(paused)
        world.did["paused"] += 1
        world.broker.stop_node(1)
        insert(20)
        world.broker.start_node(1)
        world.did["outages"] += 1
        world.until(all_sent, second)
        world.until(lambda: database.execute("select count(*) from outbox").fetchone() == (0,), second)
    finally:
        database.close()
    found = sent()
    say(world, found, program)
    assert list(dict.fromkeys(found)) == sorted(set(found))
    assert found == sorted(found), "nothing comes late"


@pytest.mark.slow
@pytest.mark.parametrize("program", ["parquet"])
def test_a_file_that_was_not_committed_is_written_again(world: World, program: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    world.orders(5)
    world.ended(world.start(commit={"1": "KILL"}), -signal.SIGKILL)
    assert parquet.read_table(world.where / "orders.parquet").num_rows >= 3
    world.ended(world.start(), 0)
    rows = parquet.read_table(world.where / "orders.parquet").to_pydict()["value"]
    say(world, [json.loads(value)["id"] for value in rows], program)


@pytest.mark.slow
@pytest.mark.parametrize("program", ["replay"])
def test_a_replay_ends_after_an_outage(world: World, program: str) -> None:
    world.orders(30)
    process = world.start(poll={"1": "STOP"})
    world.until(lambda: world.is_stopped(process))
    world.broker.stop_node(1)
    process.send_signal(signal.SIGCONT)
    world.broker.start_node(1)
    world.ended(process, 0)
    world.did["outages"] += 1
    lines = world.printed(process).splitlines()
    say(world, [json.loads(line.split(" b", 1)[1][1:-1])["id"] for line in lines], program)
    assert len(lines) == 30


@pytest.mark.slow
@pytest.mark.parametrize("program", ["web"])
def test_a_request_does_not_wait_for_brokers_that_are_away(world: World, program: str) -> None:
    with open(world.file, "a") as out:
        out.write("print(server.server_port, flush=True)\nserver.serve_forever()\n")
    process = world.start()
    world.until(lambda: world.printed(process).endswith("\n"), process)
    port = int(world.printed(process))

    def visit(number: int) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{number}", timeout=PATIENCE) as answer:
            assert answer.status == 204

    visit(0)
    world.until(lambda: world.broker.records("visits"), process)
    world.broker.stop_node(1)
    begun = time.monotonic()
    for number in range(1, 10):
        visit(number)
    assert time.monotonic() - begun < 20
    world.broker.start_node(1)
    world.until(lambda: len(world.broker.records("visits")) == 10, process)
    found = [json.loads(record.value or b"")["path"] for record in world.broker.records("visits")]
    assert found == [f"/{number}" for number in range(10)]
