"""Records: delete those before an offset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kafka.admin.calls import Calls, call
from kafka.admin.partitions import as_partition, by_topic
from kafka.admin.results import ItemResult
from kafka.errors import BrokerResponseError, Code, IllegalArgumentError, KafkaError
from kafka.protocol.admin import DeleteRecordsRequest, DeleteRecordsResponse
from kafka.structs import TopicPartition

_COMPACTED: Final = "the topic's cleanup.policy is compact; records can be deleted where it has 'delete' too"


class RecordsToDelete(NamedTuple):
    """The records before an offset; -1 for all of them."""

    before_offset: int


class DeletedRecords(ItemResult):
    """What became of a partition: its first offset now, or an error."""

    __slots__ = ("partition",)
    _item = "partition {0.partition.topic}-{0.partition.partition}"
    partition_index: int
    low_watermark: int
    partition: TopicPartition


class Records(Calls):
    """The calls about records."""

    @call
    async def delete_records(
        self,
        records_to_delete: Mapping[TopicPartition, int | RecordsToDelete],
        timeout_ms: float | None = None,
        partition_leader_id: int | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[TopicPartition, DeletedRecords]:
        """Delete the records before an offset in each partition, all of them for -1; return the first offset now.

        One error is raised as it is, several as a `BrokerResponseError` that names the partitions, in both cases with
        all outcomes in ``error.results``.

        >>> from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
        >>> from kafka.broker import Broker
        >>> partition = TopicPartition("events", 0)
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...         sent = [producer.send("events", b"record") for _ in range(5)]
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         admin.delete_records({partition: 3})[partition].low_watermark
        3
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = {as_partition(partition): _offset(offset) for partition, offset in records_to_delete.items()}
        kind = DeleteRecordsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "delete_records()", "0.11")

        def request(some: list[TopicPartition]) -> DeleteRecordsRequest:
            return kind(
                topics=by_topic(
                    some, "name", "partitions", lambda one: {"partition_index": one.partition, "offset": wanted[one]}
                ),
                timeout_ms=self._core.left(deadline),
            )

        def read(response: DeleteRecordsResponse) -> dict[TopicPartition, DeletedRecords | KafkaError]:
            found: dict[TopicPartition, DeletedRecords | KafkaError] = {}
            for topic in response.topics:
                for entry in topic.partitions:
                    # Brokers do not say more, and for records there is no other policy.
                    message = _COMPACTED if entry.error_code == Code.POLICY_VIOLATION else None
                    outcome = DeletedRecords.of_entry(entry, error_message=message)
                    partition = outcome.partition = TopicPartition(topic.name, entry.partition_index)
                    error = outcome.error
                    found[partition] = error if error is not None and error.retriable else outcome
            return found

        answers = await self._core.ask_leaders(
            list(wanted), request, read, deadline, "delete_records()", node_id=partition_leader_id
        )
        found = {}
        for partition, answer in answers.items():
            if isinstance(answer, KafkaError):
                answer = DeletedRecords.failure(answer, low_watermark=-1, partition_index=partition.partition)  # noqa: PLW2901
                answer.partition = partition
            found[partition] = answer
        if raise_errors:
            _raise(found)
        return found


def _offset(given: object) -> int:
    offset = given.before_offset if isinstance(given, RecordsToDelete) else given
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise TypeError(f"records are deleted before an offset, not before {given!r}")
    if offset < -1:
        raise IllegalArgumentError(f"records are deleted before an offset, or before the end for -1, not {offset}")
    return offset


def _raise(found: dict[TopicPartition, DeletedRecords]) -> None:
    errors = [outcome.error for outcome in found.values() if outcome.error is not None]
    if not errors:
        return
    error = errors[0]
    if len(errors) > 1:
        error = BrokerResponseError("; ".join(str(one) for one in errors))
    error.results = found
    raise error
