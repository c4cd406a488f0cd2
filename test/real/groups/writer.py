"""Somebody who writes all the time, and knows which records the cluster promised to keep."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from kafka.producer import KafkaProducer

if TYPE_CHECKING:
    from typing_extensions import Self


class Writer:
    """Writes numbers to the partitions of a topic in turn, so many a second, until it is stopped."""

    def __init__(self, servers: str, topic: str, partitions: int, *, rate: float = 150.0) -> None:
        self.topic = topic
        self.written: dict[int, dict[int, int]] = {number: {} for number in range(partitions)}
        """Partition -> {offset: value} of what was acknowledged."""
        self.sent = 0
        """How many records were handed over; the next one's value."""
        self.failed: list[BaseException] = []
        self._pause = 1 / rate
        self._stopped = threading.Event()
        self._producer = KafkaProducer(bootstrap_servers=servers, acks="all", linger_ms=5)
        self._thread = threading.Thread(target=self._write, name=f"writer of {topic}", daemon=True)

    def _write(self) -> None:
        step = len(self.written)
        due = time.monotonic()
        while not self._stopped.is_set():
            for partition in self.written:
                future: Any = self._producer.send(self.topic, b"%d" % self.sent, partition=partition)
                future.add_callback(self._acknowledged, self.sent)
                future.add_errback(self.failed.append)
                self.sent += 1
            due = max(due + step * self._pause, time.monotonic() - 1)  # what it missed long ago stays missed
            self._stopped.wait(max(0.0, due - time.monotonic()))

    def _acknowledged(self, value: int, metadata: Any) -> None:
        self.written[metadata.partition][metadata.offset] = value

    def count(self) -> int:
        """How many records were acknowledged so far."""
        return sum(map(len, self.written.values()))

    def ends(self) -> dict[int, int]:
        """Partition -> offset behind the last acknowledged record."""
        return {number: max(tuple(offsets), default=-1) + 1 for number, offsets in self.written.items()}

    def stop(self) -> None:
        """Write no more, and wait until all was acknowledged."""
        self._stopped.set()
        self._thread.join()
        self._producer.flush(timeout=60)
        assert not self.failed, self.failed[:3]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._producer.close(timeout=10)
