"""`OffsetCommitContext`: the positions of a `SimpleConsumer` are committed when a block of a program succeeds."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from kafka.errors import OffsetOutOfRangeError
from kafka.legacy import warn_deprecated
from kafka.legacy.payload_requests import check_error
from kafka.legacy.payloads import OffsetCommitRequestPayload
from kafka.legacy.simple_consumer import SimpleConsumer

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["OffsetCommitContext"]


class OffsetCommitContext:
    """Commits what was marked when its ``with`` block ends, and goes back to the start of the block if it raised.

    ::

        consumer = SimpleConsumer(client, group, topic, auto_commit=False)
        consumer.provide_partition_info()
        consumer.fetch_last_known_offsets()
        while some_condition:
            with OffsetCommitContext(consumer) as context:
                for partition, message in consumer.get_messages(count, block=False):
                    process(message)
                    context.mark(partition, message.offset)

    A position that is out of range sets the consumer to the end of its partitions.
    """

    def __init__(self, consumer: SimpleConsumer) -> None:
        warn_deprecated("OffsetCommitContext", "KafkaConsumer, with enable_auto_commit=False and commit()")
        self.consumer = consumer
        self.initial_offsets: dict[int, int] = {}
        self.high_water_mark: dict[int, int] = {}
        self.logger = None

    def mark(self, partition: int, offset: int) -> None:
        """Note that a message was processed."""
        self.high_water_mark[partition] = max(offset + 1, self.high_water_mark.get(partition, 0))

    def __enter__(self) -> Self:
        self.initial_offsets = dict(self.consumer.offsets)
        self.high_water_mark = {}
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc_type is None:
            self.commit()
        elif isinstance(exc_value, OffsetOutOfRangeError):
            self.handle_out_of_range()
        else:
            self.rollback()

    def commit(self) -> None:
        """Commit what was marked, and set the consumer to it."""
        if self.high_water_mark:
            self.commit_partition_offsets(self.high_water_mark)
            self.update_consumer_offsets(self.high_water_mark)

    def rollback(self) -> None:
        """Set the consumer to where it was when the block began."""
        self.update_consumer_offsets(self.initial_offsets)

    def commit_partition_offsets(self, partition_offsets: dict[int, int]) -> None:
        """Commit these positions."""
        consumer = self.consumer
        if consumer.group is None:
            raise ValueError("the consumer has no group to commit for")
        payloads = [
            OffsetCommitRequestPayload(consumer.topic, partition, offset, None)
            for partition, offset in partition_offsets.items()
        ]
        for response in consumer.client.send_offset_commit_request(consumer.group, payloads, fail_on_error=False):
            check_error(response)

    def update_consumer_offsets(self, partition_offsets: dict[int, int]) -> None:
        """Set the consumer to these positions; what it has fetched is fetched again."""
        self.consumer.offsets.update(partition_offsets)
        self.consumer.fetch_offsets = dict(self.consumer.offsets)
        self.consumer.queue.clear()

    def handle_out_of_range(self) -> None:
        """Set the consumer to the end of its partitions."""
        self.consumer.seek(0, 2)
