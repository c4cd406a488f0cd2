"""``purekafka transactions``: list and describe transactions, and end the ones that hang."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import CommandError
from kafka.cli.connection import Connection
from kafka.cli.grammar import TABLE, Noun, Verb, arg
from kafka.cli.offsets import find_partitions, partitions
from kafka.cli.output import Column, agreed, counted, emit, report, report_brokers, report_failed, row_of
from kafka.errors import KafkaError

if TYPE_CHECKING:
    from kafka.admin import HangingTransaction

_HANGING_COLUMNS: Final = Column.of(
    "topic", "partition", "producer_id=PRODUCER", "start_offset=START", "duration_s=SECONDS"
)
_LONGER: Final = arg("--longer-than SECONDS", "only transactions that are open for longer (900)", int, default=900)
_IDS: Final = arg("ids ID...", "transactional ids of producers")
_CHOSEN: Final = arg("partitions TOPIC[:N,N-M]...", "topics, or partitions of them", complete="topic")


@Verb(
    "list: list the transactional ids with their states",
    arg("--state STATE...", "only transactions in this state"),
    arg("--longer-than SECONDS", "only transactions that are open for longer", int),
    examples=["--sandbox", "--state Ongoing --sandbox -f json"],
    lists=True,
)
def _list(arguments: Namespace, connection: Connection) -> int:
    found = connection.admin().list_transactions(
        state_filters=arguments.state or None,
        duration_filter_ms=arguments.longer_than * 1000 if arguments.longer_than else None,
        raise_errors=False,
    )
    code = report_brokers(arguments, found.failed)
    rows = [
        {**row_of(one, "transactional_id", "state", "producer_id"), "coordinator": broker}
        for broker, some in sorted(found.items())
        for one in some
    ]
    columns = Column.of("transactional_id", "state", "producer_id=PRODUCER")
    return emit(arguments, rows, [*columns, *Column.of("coordinator")]) or code


@Verb(
    "describe: show the state, the producer and the partitions of transactions",
    _IDS,
    examples=["shop --sandbox", "purekafka transaction describe shop --sandbox -f json"],
    lists=True,
)
def _describe(arguments: Namespace, connection: Connection) -> int:
    found: dict[str, Any] = dict(connection.admin().describe_transactions(arguments.ids, raise_errors=False))
    code = report_failed(arguments, found)
    rows: list[dict[str, object]] = []
    for name, one in found.items():
        if isinstance(one, KafkaError):
            continue
        start = one.transaction_start_time_ms
        rows.append(
            {
                "transactional_id": name,
                **row_of(one, "state", "producer_id", "producer_epoch", "timeout_ms=transaction_timeout_ms"),
                "start_time": start,
                "open_s": round(time.time() - start / 1000) if start >= 0 else None,
                "partitions": [f"{tp.topic}-{tp.partition}" for tp in sorted(one.topic_partitions)],
            }
        )
    columns = Column.of(
        "transactional_id", "state", "producer_id=PRODUCER", "producer_epoch=EPOCH", "open_s=OPEN S", "partitions"
    )
    return emit(arguments, rows, columns) or code


@Verb(
    "producers: show the producers that write to partitions",
    _CHOSEN,
    examples=["events --sandbox", "orders:0 --sandbox --format json"],
    lists=True,
)
def _producers(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    chosen, absent = find_partitions(admin, arguments.partitions)
    code = report(arguments, absent)
    found = admin.describe_producers(chosen) if chosen else {}
    rows = [
        {
            **tp._asdict(),
            **row_of(one, "producer_id", "producer_epoch", "last_sequence", "last_timestamp"),
            "transaction_start": None
            if one.current_transaction_start_offset < 0
            else one.current_transaction_start_offset,
        }
        for tp, state in sorted(found.items())
        for one in state.active_producers
    ]
    columns = Column.of(
        "topic",
        "partition",
        "producer_id=PRODUCER",
        "producer_epoch=EPOCH",
        "last_sequence=SEQUENCE",
        "transaction_start=OPEN SINCE",
    )
    return emit(arguments, rows, columns) or code


def _hanging_rows(found: list[HangingTransaction]) -> list[dict[str, object]]:
    return [
        {
            **one.topic_partition._asdict(),
            **row_of(one, "producer_id", "producer_epoch", "start_offset"),
            "duration_s": one.duration_ms / 1000,
        }
        for one in found
    ]


@Verb(
    "hanging: find open transactions that their coordinator does not know",
    _LONGER,
    examples=["--sandbox", "--sandbox --format json"],
    lists=True,
)
def _hanging(arguments: Namespace, connection: Connection) -> int:
    found = connection.admin().find_hanging_transactions(max_transaction_timeout_ms=arguments.longer_than * 1000)
    return emit(arguments, _hanging_rows(found), _HANGING_COLUMNS)


@Verb(
    "abort: abort the hanging transactions of partitions, after showing them",
    [_CHOSEN, _LONGER, *TABLE],
    examples=["orders --yes -b localhost:9092", "orders:0 --dry-run -b localhost:9092"],
    asks=True,
)
def _abort(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    chosen = set(partitions(admin, arguments.partitions))
    found = [
        one
        for one in admin.find_hanging_transactions(max_transaction_timeout_ms=arguments.longer_than * 1000)
        if one.topic_partition in chosen
    ]
    if not found:
        raise CommandError("no transaction hangs there; transactions fence ID ends one that its coordinator knows")
    if not agreed(connection, f"Abort {counted(len(found), 'transaction')}?", _hanging_rows(found), _HANGING_COLUMNS):
        return 0
    outcomes: list[tuple[str, KafkaError | None, str]] = []
    for one in found:
        tp, failed = one.topic_partition, None
        try:
            admin.abort_transaction(one.as_abort())
        except KafkaError as error:  # the others are aborted all the same
            failed = error
        outcomes.append((f"{tp.topic}-{tp.partition}, producer {one.producer_id}", failed, "aborted"))
    return report(arguments, outcomes)


@Verb(
    "fence: fence the producers of transactional ids, which aborts their transactions",
    _IDS,
    examples=["shop --yes --sandbox", "shop --dry-run --sandbox"],
    asks=True,
)
def _fence(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    question = f"Fence the producers of {counted(len(arguments.ids), 'transactional id')}?"
    if not agreed(connection, question):
        return 0
    fenced: dict[str, Any] = dict(admin.fence_producers(arguments.ids, raise_errors=False))
    return report(
        arguments,
        (
            (name, one, "")
            if isinstance(one, KafkaError)
            else (name, None, f"fenced, producer {one.producer_id} has epoch {one.producer_epoch} now")
            for name, one in fenced.items()
        ),
    )


COMMAND = Noun("transactions", [_list, _describe, _producers, _hanging, _abort, _fence])
