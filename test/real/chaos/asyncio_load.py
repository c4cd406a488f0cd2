"""The stream of numbered records of `test.real.producer.load`, sent by a producer of asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

from kafka.aio import AIOKafkaProducer
from test.real.producer.load import CHUNK, PAD, PARTITIONS, WAIT

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.aio.record_future import AIORecordFuture
    from kafka.structs import RecordMetadata
    from test.real.kafka_process import KafkaCluster


class Outcome:
    """What came of a record, with the names of a synchronous future."""

    def __init__(self, future: AIORecordFuture) -> None:
        self._future = future

    def succeeded(self) -> bool:
        return self._future.done() and self._future.exception() is None

    @property
    def value(self) -> RecordMetadata:
        return self._future.result()

    @property
    def exception(self) -> BaseException | None:
        return self._future.exception()


class AsyncioLoad:
    """Sends `rate` records per second, in the event loop of a thread, until `stop_sending`."""

    def __init__(self, cluster: KafkaCluster, topic: str, *, rate: int) -> None:
        self.futures: list[Outcome] = []
        self.longest_send = 0.0
        self._servers = cluster.bootstrap_servers
        self._topic = topic
        self._pause = CHUNK / rate
        self._stop = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="asyncio load")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop = True
        self._thread.join(WAIT)

    @property
    def sent(self) -> int:
        """How many records were handed over."""
        return len(self.futures)

    def _run(self) -> None:
        try:
            asyncio.run(self._send())
        except BaseException as error:
            self._error = error

    async def _send(self) -> None:
        max_block_ms = int(WAIT * 1000)
        async with AIOKafkaProducer(bootstrap_servers=self._servers, max_block_ms=max_block_ms) as producer:
            while not self._stop:
                for number in range(self.sent, self.sent + CHUNK):
                    began = time.monotonic()
                    value = b"%d %s" % (number // PARTITIONS, PAD)
                    future = await producer.send(self._topic, value, partition=number % PARTITIONS)
                    self.futures.append(Outcome(future))
                    self.longest_send = max(self.longest_send, time.monotonic() - began)
                await asyncio.sleep(self._pause)
            await producer.flush()

    def stop_sending(self) -> None:
        """Send no more."""
        self._stop = True

    def finish(self) -> None:
        """Wait for all outcomes."""
        self._thread.join(WAIT)
        assert not self._thread.is_alive(), "flush() or stop() hangs"
        if self._error is not None:
            raise self._error
