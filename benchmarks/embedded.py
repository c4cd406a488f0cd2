"""``python -m benchmarks.embedded``: how fast the embedded broker is, beside the mock cluster in librdkafka.

Records of 100 bytes go in and out with confluent-kafka and with our client, each in a process of its own; the processor
time is that of the broker alone. The mock cluster lives in threads of the client's process, so it has no such figure.
Besides: the memory that a million records take, and the time from the start of the process until clients can connect.
Not a workload of ``python -m benchmarks``, which counts the processor time of clients.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VALUE = b"x" * 100
PARTITIONS = 3
MOCK = "mock"
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@contextmanager
def running() -> Iterator[tuple[str, int, float]]:
    """A broker in another process: its address, its process id, and the seconds until clients can connect."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "kafka", "broker", "--port", "0", "--topic", f"events:{PARTITIONS}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1], process.pid, time.perf_counter() - began
        finally:
            process.terminate()


def cpu_s(pid: int) -> float:
    """Processor seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory(pid: int) -> int:
    """Resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) * _PAGE


def client(python: Path, package: str, servers: str, count: int, pid: int) -> dict[str, float]:
    """Have a client write and read in its own environment; return seconds, also of the broker's processor."""
    words = [str(python), __file__, "--client", package, servers, str(count), str(pid)]
    root = str(Path(__file__).resolve().parent.parent)
    env = {**os.environ, "PYTHONPATH": root if package == "purekafka" else ""}
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, check=True, text=True, cwd=sys.prefix)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure, and print a table."""
    from benchmarks.venvs import LIBRARIES, ensure

    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedded", description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    pythons = {name: ensure(LIBRARIES[name]).python for name in ("confluent-kafka", "purekafka")}
    rows: dict[str, list[dict[str, float]]] = {}
    started, grown = [], []
    for _ in range(options.rounds):
        for name, python in pythons.items():
            with running() as (servers, pid, seconds):
                started.append(seconds)
                before = memory(pid)
                rows.setdefault(f"embedded broker, {name}", []).append(
                    client(python, name, servers, options.records, pid)
                )
                grown.append((memory(pid) - before) / options.records * 1e6)
        rows.setdefault("librdkafka's mock, confluent-kafka", []).append(
            client(pythons["confluent-kafka"], "confluent-kafka", MOCK, options.records, 0)
        )
    shape = f"{options.records:,} records of {len(VALUE)} bytes, {PARTITIONS} partitions"
    print(f"{shape}, medians of {options.rounds} rounds")
    for name, found in rows.items():
        told = []
        for way in ("in", "out"):
            rate = options.records / statistics.median(each[way] for each in found)
            cpu = statistics.median(each[f"{way}_cpu"] for each in found) / options.records * 1e6
            told.append(f"{way} {rate:9,.0f}/s" + (f" {cpu:5.2f} us of the broker" if cpu else ""))
        print(f"{name:36} {'   '.join(told)}")
    print(f"memory of a million records: {statistics.median(grown) / 2**20:,.0f} MiB")
    print(f"start-up: {statistics.median(started) * 1000:,.0f} ms until clients can connect")


def work(package: str, servers: str, count: int, pid: int) -> None:
    """The client's side: no import of ours but the library that is measured."""
    write, read, close = (_confluent if package == "confluent-kafka" else _purekafka)(servers, count)
    found = {}
    for way, step in (("in", write), ("out", read)):
        began, used = time.perf_counter(), cpu_s(pid) if pid else 0.0
        step()
        found[way], found[f"{way}_cpu"] = time.perf_counter() - began, cpu_s(pid) - used if pid else 0.0
    close()
    print(json.dumps(found))


def _confluent(servers, count):  # type: ignore[no-untyped-def]
    from confluent_kafka import Consumer, Producer, TopicPartition

    where = {"bootstrap.servers": servers}
    if servers == MOCK:
        where = {"test.mock.num.brokers": 1, "bootstrap.servers": ""}
    producer = Producer({**where, "linger.ms": 5, "queue.buffering.max.messages": 2 * count})
    if servers == MOCK:  # the cluster lives as long as this producer, and tells its address
        metadata = producer.list_topics(timeout=10)
        where = {"bootstrap.servers": ",".join(f"{each.host}:{each.port}" for each in metadata.brokers.values())}
    else:
        producer.list_topics("events", timeout=10)
    consumer = Consumer({**where, "group.id": "speed", "enable.auto.commit": False})

    def write() -> None:
        for number in range(count):
            producer.produce("events", VALUE, partition=number % PARTITIONS)
        assert producer.flush(120) == 0

    def read() -> None:
        consumer.assign([TopicPartition("events", number, 0) for number in range(PARTITIONS)])
        got = 0
        while got < count:
            messages = consumer.consume(10_000, 10)
            assert messages, f"{got} of {count} came"
            got += len(messages)

    return write, read, consumer.close


def _purekafka(servers, count):  # type: ignore[no-untyped-def]
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=5)
    producer.partitions_for("events")
    consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")

    def write() -> None:
        for number in range(count):
            producer.send("events", VALUE, partition=number % PARTITIONS)
        producer.flush()

    def read() -> None:
        consumer.assign([TopicPartition("events", number) for number in range(PARTITIONS)])
        got = 0
        while got < count:
            got += sum(map(len, consumer.poll(10_000, max_records=10_000).values()))

    def close() -> None:
        producer.close()
        consumer.close()

    return write, read, close


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        work(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
