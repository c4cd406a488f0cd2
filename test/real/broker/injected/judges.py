"""Three clients that carry out a command and say what the application was told: this package, confluent-kafka, Java."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from test.real import jvm
from test.real.broker.peer_venvs import python_of
from test.real.releases import NEWEST

if TYPE_CHECKING:
    from typing_extensions import Self

HERE = Path(__file__).parent
QUIET = f"-Dlog4j2.configurationFile={HERE.parent / 'quiet.properties'}"
TIMEOUT_MS = 20_000
QUICK = {"retry_backoff_ms": 10, "retry_backoff_max_ms": 50, "reconnect_backoff_ms": 10, "request_timeout_ms": 5000}


class Program:
    """A judge that is a program: a line for each command, a line for its outcome."""

    def __init__(self, command: Sequence[str], servers: str) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [*command, servers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=5)
        self._process.kill()
        self._process.wait()
        self._log.close()

    def told(self, what: str, topic: str, name: str) -> str:
        """Carry out a command; `name` is that of a group or a transactional id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what} {topic} {name}\n")
        self._process.stdin.flush()
        if line := self._process.stdout.readline().strip():
            return line
        self._log.seek(0)
        raise AssertionError(f"the judge ended\n{self._log.read()[-2000:]}")


class Ours:
    """The judge that is this package."""

    def __init__(self, servers: str) -> None:
        self._options: dict[str, Any] = {"bootstrap_servers": servers, **QUICK}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def told(self, what: str, topic: str, name: str) -> str:
        """Carry out a command; `name` is that of a group or a transactional id."""
        try:
            if what in {"produce", "transact"}:
                self._produce(topic, name if what == "transact" else None)
                return "ok"
            return self._consume(what, topic, name)
        except (KafkaError, TimeoutError) as error:
            return type(error).__name__

    def _produce(self, topic: str, transactional_id: str | None) -> None:
        producer = KafkaProducer(
            transactional_id=transactional_id, max_block_ms=TIMEOUT_MS, delivery_timeout_ms=TIMEOUT_MS, **self._options
        )
        try:
            if transactional_id is not None:
                producer.init_transactions()
                producer.begin_transaction()
            sent = producer.send(topic, b"v", partition=0)
            if transactional_id is None:
                sent.get(TIMEOUT_MS / 1000)
            else:
                producer.commit_transaction()
        finally:
            with suppress(KafkaError):
                producer.close(timeout=0)

    def _consume(self, what: str, topic: str, group: str) -> str:
        consumer = KafkaConsumer(
            group_id=group,
            auto_offset_reset="earliest" if what == "join" else "none",
            default_api_timeout_ms=TIMEOUT_MS,
            enable_auto_commit=False,
            fetch_max_wait_ms=50,
            heartbeat_interval_ms=100,
            **self._options,
        )
        partition = TopicPartition(topic, 0)
        try:
            if what == "commit":
                consumer.commit({partition: OffsetAndMetadata(1)})
            elif what == "committed":
                consumer.committed(partition)
            elif what == "list":
                return "ok" if consumer.partitions_for_topic(topic) else "returns None"
            elif what == "join":
                consumer.subscribe([topic])
                _read(consumer, 0.5)
            else:
                consumer.assign([partition])
                if what == "begin":
                    consumer.seek_to_beginning(partition)
                else:
                    consumer.seek(partition, 0)
                _read(consumer, 0.3)
            return "ok"
        finally:
            with suppress(KafkaError):
                consumer.close(timeout_ms=0)


def _read(consumer: KafkaConsumer, seconds: float) -> None:
    """Read three records, and poll for some seconds more, in which a member sends heartbeats."""
    found, deadline, until = 0, time.monotonic() + TIMEOUT_MS / 1000, float("inf")
    while found < 3 or time.monotonic() < until:
        if time.monotonic() > deadline:
            raise TimeoutError
        found += sum(map(len, consumer.poll(100).values()))
        if found >= 3 and until == float("inf"):
            until = time.monotonic() + seconds


def confluent(servers: str) -> Program:
    """confluent-kafka, in an environment without this package."""
    return Program([str(python_of("confluent-kafka")), "-I", str(HERE.parent / "judge_faults.py")], servers)


def java(servers: str) -> Program:
    """Kafka's own client."""
    return Program(jvm.command(NEWEST, *jvm.QUICK_START, "-Xmx256m", QUIET, str(HERE / "Judge.java")), servers)


JUDGES: dict[str, Callable[[str], Any]] = {"Java's client": java, "confluent-kafka": confluent, "this package": Ours}


def all_judges(stack: ExitStack, servers: str) -> dict[str, Any]:
    """Start all of them."""
    return {name: stack.enter_context(make(servers)) for name, make in JUDGES.items()}
