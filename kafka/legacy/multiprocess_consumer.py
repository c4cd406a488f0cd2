"""`MultiProcessConsumer`: several processes read the partitions of a topic, one takes the messages from them.

Each process runs a `SimpleConsumer` and writes its messages to a pipe; a thread for each reads it into one queue. A
full queue stops the threads and so, through the pipes, the processes. The processes are started as new interpreters,
so nothing of a connection or of a lock is inherited, and the program needs no guard around its main part. They end
when the pipe to their input closes, thus also with the program.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import time
from collections import deque, namedtuple
from collections.abc import Iterable, Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, BinaryIO, Final

from kafka.errors import KafkaError
from kafka.legacy.payloads import OffsetAndMessage
from kafka.legacy.simple_client import SimpleClient
from kafka.legacy.simple_consumer import (
    AUTO_COMMIT_INTERVAL,
    AUTO_COMMIT_MSG_COUNT,
    MAX_BACKOFF_SECONDS,
    Consumer,
    SimpleConsumer,
)

__all__ = ["Events", "MultiProcessConsumer"]

log = logging.getLogger("kafka.consumer.multiprocess")

Events = namedtuple("Events", ["start", "pause", "exit"])  # noqa: PYI024 - a historic name

_QUEUE_SIZE: Final = 1024
_STOP_TIMEOUT: Final = 10.0  # seconds
_CHECK_INTERVAL: Final = 0.2  # how soon a thread sees that the consumer was stopped, in seconds
_PROGRAM: Final = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from kafka.legacy.multiprocess_consumer import serve; serve()"
)


class MultiProcessConsumer(Consumer):
    """Reads the partitions of a topic with ``num_procs`` processes, or with one for ``partitions_per_proc`` partitions.

    Takes the arguments of `SimpleConsumer` too. Call `stop` at the end.
    """

    def __init__(
        self,
        client: SimpleClient,
        group: str | bytes | None,
        topic: str | bytes,
        partitions: Iterable[int] | None = None,
        auto_commit: bool = True,
        auto_commit_every_n: int | None = AUTO_COMMIT_MSG_COUNT,
        auto_commit_every_t: int | None = AUTO_COMMIT_INTERVAL,
        num_procs: int = 1,
        partitions_per_proc: int = 0,
        **simple_consumer_options: Any,
    ) -> None:
        super().__init__(client, group, topic, partitions, auto_commit, auto_commit_every_n, auto_commit_every_t)
        self.queue: Queue[tuple[int, OffsetAndMessage | KafkaError]] = Queue(_QUEUE_SIZE)
        self._kept: deque[tuple[int, OffsetAndMessage]] = deque()
        self.processes: list[subprocess.Popen[bytes]] = []
        self._ended = Event()
        own = sorted(self.offsets)
        if partitions_per_proc:
            num_procs = -(-len(own) // partitions_per_proc)
        settings = (client.copy(), self.group, self.topic, simple_consumer_options)
        for index in range(min(num_procs, len(own))):
            self._start_process((*settings, own[index::num_procs]))

    def _start_process(self, settings: tuple[object, ...]) -> None:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and program
            [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pickle.dumps(sys.path) + pickle.dumps(settings))
        process.stdin.flush()
        self.processes.append(process)
        # The thread has the queue and not the consumer, which can thus be collected.
        reading = (process.stdout, self.queue, self._ended)
        Thread(target=_read, args=reading, name="kafka-multiprocess", daemon=True).start()

    def _next(self, block: bool, timeout: float | None) -> tuple[int, OffsetAndMessage] | None:
        if self._kept:
            return self._kept.popleft()
        try:
            partition, message = self.queue.get(block, timeout)
        except Empty:
            return None
        if isinstance(message, KafkaError):
            raise message
        return partition, message

    def _put_back(self, taken: list[tuple[int, OffsetAndMessage]]) -> None:
        self._kept.extendleft(reversed(taken))

    def get_messages(self, count: int = 1, block: bool | int = True, timeout: float | None = 10) -> list[Any]:
        """Return up to ``count`` messages; ``block`` and ``timeout`` are as in `SimpleConsumer.get_messages`."""
        return self._get_messages(count, block, timeout)

    def __iter__(self) -> Iterator[Any]:
        """Yield messages for ever."""
        while True:
            yield from self._get_messages(1, True, None)

    def stop(self) -> None:
        """End the processes, and commit a last time if positions are committed automatically."""
        self._ended.set()
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
        deadline = time.monotonic() + _STOP_TIMEOUT
        for process in self.processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:  # noqa: PERF203 - each may hang
                process.kill()
                process.wait()
        self.processes = []
        super().stop()

    def __del__(self) -> None:
        if hasattr(self, "_ended"):
            self._ended.set()
        for process in getattr(self, "processes", ()):
            process.kill()
            process.wait()
            process.stdin.close()
        super().__del__()

    def __repr__(self) -> str:
        return f"<MultiProcessConsumer group={self.group}, topic={self.topic}, consumers={len(self.processes)}>"


def _read(pipe: BinaryIO, queue: Queue[tuple[int, OffsetAndMessage | KafkaError]], ended: Event) -> None:
    """Put the messages of one process into the queue until it ends, or the consumer does."""
    with pipe:
        while not ended.is_set():
            try:
                found = pickle.load(pipe)  # noqa: S301 - from our own process
            except (EOFError, OSError, pickle.UnpicklingError):
                found = (-1, KafkaError("a process of the MultiProcessConsumer has ended; its output says why"))
            while not ended.is_set():
                try:
                    queue.put(found, timeout=_CHECK_INTERVAL)
                    break
                except Full:
                    continue
            if found[0] == -1:
                return


# In the process that reads


def serve() -> None:
    """Read messages and write them to the output until the input closes. Runs in a process of the consumer."""
    client, group, topic, options, partitions = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
    Thread(target=_exit_with_parent, daemon=True).start()
    consumer: SimpleConsumer | None = None
    failures = 0
    while True:
        try:
            if consumer is None:
                consumer = SimpleConsumer(client, group, topic, auto_commit=False, partitions=partitions, **options)
                consumer.provide_partition_info()
            found = consumer.get_messages(_QUEUE_SIZE, block=1, timeout=_CHECK_INTERVAL)
            failures = 0
        except KafkaError as error:
            failures += 1
            pause = min(2 ** min(failures, 10) * _CHECK_INTERVAL, MAX_BACKOFF_SECONDS)  # as a float it has an end
            log.error("Reading %s failed, the next attempt is in %g s: %s", topic, pause, error)
            time.sleep(pause)
            continue
        for each in found:
            pickle.dump(each, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _exit_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)
