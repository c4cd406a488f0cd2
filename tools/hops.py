"""Count the functions and files of the package that one record passes: a figure for how far its way is.

    python tools/hops.py send    a send().get() of a producer that has sent before
    python tools/hops.py poll    from a fetch of 100 records to the poll() that returns them

The broker runs in another process. With ``--list`` it names the functions, and how often each is called.
`PYTHONPATH` chooses the package to measure.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

TOPIC = "events"
RECORDS = 100


def serve(orders: Any, answers: Any) -> None:
    """Run a broker; each order is a number of records to append, None ends it."""
    from kafka.broker import Broker

    with Broker(topics=[TOPIC]) as broker:
        answers.put(broker.bootstrap_servers)
        while (number := orders.get()) is not None:
            broker.append_many(TOPIC, [b"x" * 100] * number)
            answers.put(number)


@contextmanager
def counted(package: str) -> Iterator[dict[tuple[str, str], int]]:
    """Count the calls of the package's functions in all threads while the block lasts, by file and name."""
    calls: dict[tuple[str, str], int] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package):
            key = code.co_filename[len(package) :], getattr(code, "co_qualname", code.co_name)
            calls[key] = calls.get(key, 0) + 1

    # The network thread runs already: only Python 3.12 can profile it. Before, what it runs is not counted.
    everywhere: Callable[[Any], None] = getattr(threading, "setprofile_all_threads", sys.setprofile)
    everywhere(note)
    try:
        yield calls
    finally:
        everywhere(None)
        sys.setprofile(None)


def send(servers: str, _append: Callable[[int], None], package: str) -> dict[tuple[str, str], int]:
    """Measure a send().get() after three others."""
    from kafka import KafkaProducer

    with KafkaProducer(bootstrap_servers=servers) as producer:
        for _ in range(3):
            producer.send(TOPIC, b"warm").get()
        with counted(package) as calls:
            producer.send(TOPIC, b"hello").get()
    return calls


def poll(servers: str, append: Callable[[int], None], package: str) -> dict[tuple[str, str], int]:
    """Measure the polls that return 100 records, after others have."""
    from kafka import KafkaConsumer

    with KafkaConsumer(TOPIC, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:

        def read() -> None:
            left = RECORDS
            while left > 0:
                left -= sum(map(len, consumer.poll(1000).values()))

        for _ in range(3):
            append(RECORDS)
            read()
        timer = threading.Timer(0.2, append, [RECORDS])
        timer.start()
        with counted(package) as calls:
            read()
        timer.join()
    return calls


def main() -> None:
    """Measure one way and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=["send", "poll"])
    parser.add_argument("--list", action="store_true", help="name the functions")
    options = parser.parse_args()

    import kafka

    package = kafka.__file__.removesuffix("__init__.py")
    context = multiprocessing.get_context("spawn")
    orders, answers = context.Queue(), context.Queue()
    process = context.Process(target=serve, args=(orders, answers))
    process.start()
    try:
        servers = answers.get(timeout=60)

        def append(number: int) -> None:
            orders.put(number)
            answers.get(timeout=60)

        calls = {"send": send, "poll": poll}[options.way](servers, append, package)
    finally:
        orders.put(None)
        process.join(10)
    files = sorted({file for file, _ in calls})
    print(f"{options.way}: {sum(calls.values())} calls, {len(calls)} functions, {len(files)} files")
    if options.list:
        for file in files:
            named = sorted(
                name if times == 1 else f"{name} x{times}" for (of, name), times in calls.items() if of == file
            )
            print(f"  {file}: {', '.join(named)}")


if __name__ == "__main__":
    main()
