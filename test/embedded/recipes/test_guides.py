"""Each program of the guides that promises a delivery is killed, paused while a second copy runs, and cut off.

docs/internals/recipes.rst lists the programs of all pages: what they promise and the test that attacks them, or why no
test does. A test prints what it did: ``pytest -rP``.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource
from kafka.broker import Broker
from test.embedded.docs.blocks import ROOT, Block, blocks, pages

from .world import CONFIGS, World, say

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="signals"),
    pytest.mark.timeout(300),
    # Members are killed, and those that were paused continue to ask for what they have lost.
    pytest.mark.breaks_invariant("storms", "commits", reason="programs are killed and paused"),
]
SHARE = "docs/share.rst"
LOOP = """
from kafka import KafkaProducer, KafkaShareConsumer
from shop import handle

with (
    KafkaShareConsumer(
        "jobs", bootstrap_servers="localhost:9092", group_id="workers", share_acknowledgement_mode="explicit"
    ) as consumer,
    KafkaProducer(bootstrap_servers="localhost:9092") as producer,
):
"""
WITH_HANDLE = "from shop import handle\n"
SERVERS = '"localhost:9092"'
#: Programs that read: a page, how the block begins, and what makes a program of a function.
READERS = {
    "README": ("README.rst", "from kafka import KafkaConsumer, KafkaProducer\n", ""),
    "quickstart": ("docs/quickstart.rst", "from kafka import KafkaConsumer\n\nconsumer", ""),
}
WORKERS = {
    "worker loop": (
        SHARE,
        "from kafka import KafkaShareConsumer\n\ndef work(",
        f"{WITH_HANDLE}work({SERVERS}, handle)\n",
    ),
    "transfer": (
        SHARE,
        "from kafka import AcknowledgeType\n\ndef transfer(",
        f"{LOOP}    while True:\n        transfer(consumer, lambda value: handle(value) is None)\n",
    ),
    "parking": (
        SHARE,
        "from kafka import AcknowledgeType\n\ndef handle_or_park(",
        f"{LOOP}    for record in consumer:\n        handle_or_park(consumer, producer, record, handle)\n",
    ),
    "long job": (
        SHARE,
        "import threading\n\nfrom kafka import AcknowledgeType\n",
        f"{LOOP}    for record in consumer:\n        long_job(consumer, record, handle)\n",
    ),
    "priorities": (
        SHARE,
        "from kafka import KafkaShareConsumer\n\ndef work_by_priority(",
        f"{WITH_HANDLE}work_by_priority({SERVERS}, handle, lambda: False)\n",
    ),
}
APPLICATION = "docs/examples/fastapi_app.py"
#: Serves the application without a port: requests are lines, and so are answers.
REQUESTS = """
async def serve():
    import httpx, json, sys
    options = {"transport": httpx.ASGITransport(app), "base_url": "http://app"}
    async with app.router.lifespan_context(app), httpx.AsyncClient(**options) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            method, path, *body = line.split(maxsplit=2)
            answer = await client.request(method, path, json=json.loads(body[0]) if body else None)
            print(answer.status_code, answer.text)

asyncio.run(serve())
"""


def program(page: str, beginning: str, tail: str = "") -> str:
    found = [block for block in blocks(ROOT / page) if block.text.startswith(beginning) and not block.hidden]
    assert len(found) == 1, (page, beginning, len(found))
    return found[0].text + tail


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    topics = {"events": 2, "orders": 2, "jobs": 2, "jobs.urgent": 1, "jobs.dead": 1}
    worlds: list[World] = []
    with Broker(topics=topics, configs=CONFIGS) as broker:

        def make(text: str, topic: str = "events") -> World:
            worlds.append(World(broker, tmp_path, text, topic))
            return worlds[-1]

        yield make
        for world in worlds:
            world.close()


def attack(world: World, done: Callable[[], Iterable[int]], while_paused: Callable[[], object] = lambda: None) -> None:
    """Attack a reader: away at start, killed twice, paused with a second copy, brokers away and back."""

    def is_done() -> bool:
        return set(done()) >= set(range(world.count))

    def has_begun() -> bool:
        """Whether a part of the last thirty is done, mostly not all."""
        return len({number for number in done() if number >= world.count - 30}) >= 5

    world.broker.stop_node(1)
    refused = world.start()
    world.ended(refused, 1)
    assert "NoBrokersAvailable" in world.errors(refused)
    world.broker.start_node(1)
    for _ in range(2):
        world.orders(30)
        killed = world.start()
        world.until(has_begun, killed)
        killed.kill()
        world.ended(killed, -signal.SIGKILL)
        while_paused()
    world.orders(30)
    first = world.start()
    world.until(has_begun, first)
    first.send_signal(signal.SIGSTOP)
    world.until(lambda: world.is_stopped(first))
    second = world.start()
    world.orders(30)
    while_paused()
    world.until(is_done, second)
    world.did["paused"] += 1
    first.send_signal(signal.SIGCONT)
    world.orders(30)
    world.until(is_done, first, second)
    world.broker.stop_node(1)
    world.orders(30)
    world.broker.start_node(1)
    world.did["outages"] += 1
    world.until(is_done, first, second)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_reader_continues_where_its_group_stopped(make_world: Callable[..., World], name: str) -> None:
    world = make_world(program(*READERS[name]))

    def printed() -> list[int]:
        return [int(number) for number in re.findall(r'"id": (\d+)', world.printed())]

    attack(world, printed)
    say(world, printed(), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKERS)
def test_a_queue_delivers_each_job_until_it_is_done(make_world: Callable[..., World], name: str) -> None:
    world = make_world(program(*WORKERS[name]), "jobs")
    start_at_the_beginning(world)
    attack(world, world.handled, lambda: world.broker.expire_share_locks("workers", "jobs"))
    say(world, world.handled(), name)


def start_at_the_beginning(world: World) -> None:
    with KafkaAdminClient(bootstrap_servers=world.broker.bootstrap_servers) as admin:
        admin.alter_configs([ConfigResource("GROUP", "workers", {"share.auto.offset.reset": "earliest"})])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["worker loop", "long job", "parking"])
def test_a_poison_job_ends_and_the_others_are_done(make_world: Callable[..., World], name: str) -> None:
    """It is delivered three times, or four and then parked; a worker that is killed meanwhile changes nothing."""
    world = make_world(program(*WORKERS[name]), "jobs")
    start_at_the_beginning(world)
    world.fail(**{"11": 100})
    world.orders(20)
    killed = world.start()
    world.until(lambda: "order 11 is poison" in world.errors(killed) or len(world.handled()) > 10, killed)
    killed.kill()
    world.ended(killed, -signal.SIGKILL)
    world.broker.expire_share_locks("workers", "jobs")
    worker = world.start()
    world.until(lambda: set(world.handled()) == set(range(20)) - {11}, worker)
    world.until(
        lambda: (
            not [
                record for number in (0, 1) for record in world.broker.share_records("workers", "jobs", number).values()
            ]
        ),
        worker,
    )
    parked = [json.loads(record.value or b"")["id"] for record in world.broker.records("jobs.dead")]
    say(world, [*world.handled(), 11], f"{name}, 1 poison job, {len(parked)} parked")
    assert set(parked) == ({11} if name == "parking" else set())


@pytest.mark.slow
def test_a_job_that_fails_ends_the_program_by_priority_and_comes_again(make_world: Callable[..., World]) -> None:
    world = make_world(program(*WORKERS["priorities"]), "jobs")
    start_at_the_beginning(world)
    world.fail(**{"11": 1})
    world.orders(20)
    failed = world.start()
    world.ended(failed, 1)
    assert "order 11 is poison" in world.errors(failed)
    world.fail()
    worker = world.start()
    world.until(lambda: set(world.handled()) == set(range(20)), worker)
    say(world, world.handled(), "priorities, 1 poison job")


SENDER = ("docs/producer.rst", "from kafka import KafkaProducer\n\nwith")


@pytest.mark.slow
def test_the_end_of_a_block_waits_until_records_are_written(make_world: Callable[..., World]) -> None:
    world = make_world(program(*SENDER))
    world.broker.stop_node(1)
    refused = world.start()
    world.ended(refused, 1)
    assert "NoBrokersAvailable" in world.errors(refused)
    world.broker.start_node(1)
    process = world.start(close={"1": "STOP"})
    world.until(lambda: world.is_stopped(process))
    world.broker.stop_node(1)
    process.send_signal(signal.SIGCONT)
    world.broker.start_node(1)
    world.ended(process, 0)
    assert sorted(record.value or b"" for record in world.broker.records("events")) == [b"first", b"second"]


@pytest.mark.slow
def test_records_that_are_not_written_are_logged_at_the_end_of_a_block(make_world: Callable[..., World]) -> None:
    """Between the metadata of the topic and the records the brokers go, and do not come back."""
    first = 'producer.send("events", b"first")'
    pause = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    text = program(*SENDER).replace(first, f'producer.partitions_for("events")\n    {pause}\n    {first}')
    world = make_world(text)
    process = world.start({"request_timeout_ms": 1000, "delivery_timeout_ms": 3000})
    world.until(lambda: world.is_stopped(process))
    world.broker.stop_node(1)
    process.send_signal(signal.SIGCONT)
    process.wait(60)
    assert "2 records to topic 'events' failed" in world.errors(process)
    world.broker.start_node(1)
    assert world.broker.records("events") == []


@pytest.mark.slow
def test_a_record_whose_future_succeeded_is_there_after_a_kill(make_world: Callable[..., World]) -> None:
    world = make_world(
        program("docs/quickstart.rst", "from kafka import KafkaProducer\n\nwith KafkaProducer(bootstrap")
    )
    for number in range(3):
        process = world.start(close={"1": "KILL"})
        world.ended(process, -signal.SIGKILL)
        assert re.fullmatch(r"partition \d, offset \d\n", world.printed(process))
        assert len(world.broker.records("events")) == number + 1


@pytest.mark.slow
def test_the_web_application_keeps_what_it_has_answered_and_says_when_it_does_not_read(
    make_world: Callable[..., World],
) -> None:
    pytest.importorskip("httpx")
    pytest.importorskip("fastapi")
    world = make_world((ROOT / APPLICATION).read_text(encoding="utf-8") + REQUESTS)

    def answers(process: Any) -> list[tuple[int, Any]]:
        return [(int(line[:3]), json.loads(line[4:])) for line in world.printed(process).split("\n")[:-1]]

    def asked(process: Any, request: str, *, alive: bool = True) -> tuple[int, Any]:
        count = len(answers(process))
        print(request, file=process.stdin, flush=True)
        world.until(lambda: len(answers(process)) > count, *([process] if alive else []))
        return answers(process)[-1]

    world.broker.stop_node(1)
    first = world.start()
    status, problems = asked(first, "GET /health")
    assert (status, bool(problems)) == (503, True)
    world.broker.start_node(1)
    world.until(lambda: asked(first, "GET /health") == (200, []), first)
    acknowledged = []
    for _ in range(2):
        process = world.start()
        acknowledged += [asked(process, f'POST /orders/ada {{"item": {number}}}') for number in range(10)]
        print('POST /orders/ada {"item": 10}', file=process.stdin, flush=True)  # its answer may come or not
        process.kill()
        world.ended(process, -signal.SIGKILL)
        acknowledged += answers(process)[10:]
    first.send_signal(signal.SIGSTOP)
    world.until(lambda: world.is_stopped(first))
    world.did["paused"] += 1
    second = world.start()
    asked(second, 'POST /orders/ada {"item": 11}')
    first.send_signal(signal.SIGCONT)
    world.broker.stop_node(1)
    print('POST /orders/ada {"item": 12}', file=second.stdin, flush=True)
    world.until(lambda: asked(first, "GET /health")[0] == 503, first)
    world.broker.start_node(1)
    world.did["outages"] += 1
    world.until(lambda: len(answers(second)) == 2, second)
    acknowledged += answers(second)
    assert {status for status, _ in acknowledged} == {200}
    places = [(answer["partition"], answer["offset"]) for _, answer in acknowledged]
    records = world.broker.records("orders")
    assert set(places) <= {(record.partition, record.offset) for record in records}
    assert len(places) == len(set(places)) >= 22
    for process in (first, second):
        world.until(lambda process=process: asked(process, "GET /orders/ada") == (200, len(records)), process)
    print(f"FastAPI: {len(records)} orders, {len(places)} acknowledged, {dict(world.did)}, 0 lost")

    world.broker.append("orders", "{}", key=b"\xff")
    world.until(lambda: "UnicodeDecodeError" in str(asked(second, "GET /health")), second)
    assert asked(second, "GET /health")[0] == 503
    assert asked(second, 'POST /orders/ada {"item": 13}')[0] == 200
    assert second.stdin is not None
    second.stdin.close()
    world.ended(second, 0)
    assert "orders are not counted any more" in world.errors(second)


TABLE = ROOT / "docs" / "internals" / "recipes.rst"
#: What a program does that delivers records; a block without any of these delivers none.
DELIVERS = re.compile(
    r"\.(send\w*|poll\w*|get(one|many)|acknowledge\w*|transaction|commit)\(|in consumer:|(read|write)Stream"
)


def rows() -> list[list[str]]:
    """Return the cells of the table: place, promise, test or reason."""
    text = TABLE.read_text(encoding="utf-8")
    return [
        re.split(r"\n     -(?: |$)", row, flags=re.MULTILINE)
        for row in re.findall(r"^   \* - (.+(?:\n     .+)*)", text, re.MULTILINE)
    ][1:]


def places(row: list[str]) -> set[tuple[str, str]]:
    """Return page and mark of each program that a row is about."""
    return set(re.findall(r"``([\w/.]+): (.+?)``", " ".join(row[0].split())))


def test_each_program_of_the_pages_has_an_attack_or_a_reason() -> None:
    listed = {place for row in rows() for place in places(row)}
    cookbook = ROOT / "docs" / "cookbook.rst"  # its own test demands an attack of each
    found: dict[tuple[str, str], list[Block]] = {place: [] for place in listed}
    missing = []
    for page in pages():
        name = page.relative_to(ROOT).as_posix()
        for block in blocks(page):
            # A session in a REPL shows one thing, mostly with a broker of its own.
            if page == cookbook or block.hidden or block.is_doctest or block.language != "python":
                continue
            of = [place for place in listed if place[0] == name and place[1] in block.text]
            for place in of:
                found[place].append(block)
            if not of and DELIVERS.search(block.text):
                missing.append(block.place)
    for path in (ROOT / "docs" / "examples").glob("*.py"):
        place = (path.relative_to(ROOT).as_posix(), "whole")
        if place not in listed:
            missing.append(path.name)
        found.pop(place, None)
    assert missing == []
    assert {place for place, which in found.items() if len(which) != 1} == set()


def test_the_tests_of_the_table_exist() -> None:
    named = 0
    cookbook = [row for row in rows() if not places(row)]  # the first table
    for row in rows():
        for path, function in re.findall(r"``(?:(test/[\w/]+\.py)::)?(test_\w+)``", row[2]):
            place = ROOT / (path or "test/embedded/recipes/test_guides.py")
            if row in cookbook:
                place = ROOT / "test/embedded/recipes/test_cookbook.py"
            assert f"def {function}(" in place.read_text(encoding="utf-8"), (place, function)
            named += 1
    assert named > 20


def test_pages_with_the_program_of_another_page_have_it_word_for_word() -> None:
    """So the attack on one is an attack on both."""

    def consuming(page: str) -> str:
        options = 'options = {"bootstrap_servers": "localhost:9092", "group_id": "readers"}\n'
        (found,) = {options + block.text.split(options)[1] for block in blocks(ROOT / page) if options in block.text}
        return found.split("for record in consumer:")[0]

    assert consuming("docs/index.rst") == consuming("README.rst")
    assert consuming("docs/consumer.rst") == consuming("docs/groups.rst") == consuming("README.rst")
