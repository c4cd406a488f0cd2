"""Each call of the synchronous producer and consumer has its twin in kafka.aio, and each name of aiokafka is there."""

from __future__ import annotations

import inspect

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer

# Calls whose form is aiokafka's, where the two differ: plain where the synchronous one waits, or the other way round.
PLAIN = {"partitions_for_topic", "unsubscribe"}
COROUTINES = {"seek_to_beginning", "seek_to_end", "seek_to_committed"}
# Metrics of the application that are pushed (KIP-1076).
PUSHED = "register_metric_for_subscription unregister_metric_from_subscription"
WAITING = {
    KafkaProducer: "send send_many flush partitions_for init_transactions begin_transaction commit_transaction "
    "abort_transaction send_offsets_to_transaction purge client_instance_id close",
    KafkaConsumer: "poll poll_batches position commit committed beginning_offsets end_offsets offsets_for_times topics "
    "bootstrap client_instance_id close",
}
AT_ONCE = {
    KafkaProducer: f"bootstrap_connected metrics health transaction {PUSHED}",
    KafkaConsumer: "subscribe subscription assign assignment seek seek_to_timestamp pause resume paused highwater "
    f"current_lag commit_async group_metadata enforce_rebalance wakeup bootstrap_connected metrics health {PUSHED}",
}
TWINS = {KafkaProducer: AIOKafkaProducer, KafkaConsumer: AIOKafkaConsumer}
# In the order of the other client.
REORDERED = {"send"}
# Not calls on a producer: what a class knows.
OF_THE_CLASS = {"max_usable_produce_magic"}
# It encodes whole columns in one piece, which would keep the event loop from its other tasks.
WITHOUT_TWIN = {"send_columns"}
NOT_COMPARED = OF_THE_CLASS | WITHOUT_TWIN


def public(kind):
    return {
        name
        for name in dir(kind)
        if not name.startswith("_")
        and callable(inspect.getattr_static(kind, name, None))
        and inspect.isroutine(inspect.getattr_static(kind, name))
    }


def test_every_call_is_compared():
    for kind in TWINS:
        compared = {*WAITING[kind].split(), *AT_ONCE[kind].split()} | (
            PLAIN | COROUTINES if kind is KafkaConsumer else set()
        )
        assert public(kind) - NOT_COMPARED == compared


def test_a_twin_has_the_same_parameters_and_defaults():
    for kind, name in [(one, name) for one in TWINS for name in sorted(public(one) - NOT_COMPARED)]:
        twin = getattr(TWINS[kind], name)
        waits = name in WAITING[kind].split() or name in COROUTINES
        assert inspect.iscoroutinefunction(twin) is waits, name
        mine = list(inspect.signature(getattr(kind, name)).parameters.values())
        other = {parameter.name: parameter for parameter in inspect.signature(twin).parameters.values()}
        for parameter in mine:
            found = other[parameter.name]
            assert found.default == parameter.default, parameter.name
            assert found.kind == parameter.kind, parameter.name
        if name not in REORDERED:
            names = [parameter.name for parameter in mine]
            assert [found for found in other if found in names] == names


# aiokafka 0.14, by its documentation.
PRODUCER = """
start stop send send_and_wait flush partitions_for create_batch send_batch begin_transaction commit_transaction
abort_transaction transaction send_offsets_to_transaction client
"""
CONSUMER = """
start stop getone getmany commit committed position topics seek_to_beginning seek_to_end seek_to_committed
beginning_offsets end_offsets offsets_for_times subscribe unsubscribe subscription assign assignment
partitions_for_topic seek pause resume paused highwater last_stable_offset last_poll_timestamp
"""
ASYNC = set(
    """start stop send send_and_wait flush partitions_for send_batch begin_transaction commit_transaction
    abort_transaction send_offsets_to_transaction getone getmany commit committed position topics seek_to_beginning
    seek_to_end seek_to_committed beginning_offsets end_offsets offsets_for_times""".split()  # noqa: SIM905
)
SIGNATURES = {
    (AIOKafkaProducer, "send"): "topic value key partition timestamp_ms headers",
    (AIOKafkaProducer, "send_and_wait"): "topic value key partition timestamp_ms headers",
    (AIOKafkaProducer, "send_batch"): "batch topic partition",
    (AIOKafkaProducer, "send_offsets_to_transaction"): "offsets group_metadata group_id",  # by position, or by name
    (AIOKafkaConsumer, "getmany"): "partitions timeout_ms max_records",
    (AIOKafkaConsumer, "subscribe"): "topics pattern listener",
}
OPTIONS = {
    AIOKafkaProducer: {
        "acks": -1,
        "linger_ms": 0,
        "batch_size": 16384,
        "max_request_size": 1048576,
        "request_timeout_ms": 40000,
        "metadata_max_age_ms": 300000,
        "retry_backoff_ms": 100,
        "connections_max_idle_ms": 540000,
        "transaction_timeout_ms": 60000,
        "enable_idempotence": True,
    },
    AIOKafkaConsumer: {
        "fetch_max_wait_ms": 500,
        "fetch_min_bytes": 1,
        "fetch_max_bytes": 52428800,
        "max_partition_fetch_bytes": 1048576,
        "auto_offset_reset": "latest",
        "enable_auto_commit": True,
        "auto_commit_interval_ms": 5000,
        "max_poll_interval_ms": 300000,
        "session_timeout_ms": 10000,
        "heartbeat_interval_ms": 3000,
        "isolation_level": "read_uncommitted",
        "check_crcs": True,
        "exclude_internal_topics": True,
        "request_timeout_ms": 40000,
    },
}


def test_the_calls_of_aiokafka():
    for kind, name in [(AIOKafkaProducer, name) for name in PRODUCER.split()] + [
        (AIOKafkaConsumer, name) for name in CONSUMER.split()
    ]:
        found = inspect.getattr_static(kind, name)
        if name in ASYNC:
            assert inspect.iscoroutinefunction(found)
        elif name != "client":
            assert not inspect.iscoroutinefunction(found)
        expected = SIGNATURES.get((kind, name))
        if expected is not None:
            assert list(inspect.signature(found).parameters)[1 : 1 + len(expected.split())] == expected.split()


@pytest.mark.parametrize("kind", OPTIONS)
def test_the_options_of_aiokafka_have_its_defaults(kind):
    config = kind().config
    assert {name: config[name] for name in OPTIONS[kind]} == OPTIONS[kind]


def test_the_options_that_only_aiokafka_has():
    assert AIOKafkaProducer(max_batch_size=77).config["batch_size"] == 77
    reader = AIOKafkaConsumer(
        "t", max_poll_records=None, consumer_timeout_ms=200, rebalance_timeout_ms=7000, client_rack=None
    )
    assert reader._rebalance_timeout == 7
    assert reader.config["client_rack"] == ""
    assert AIOKafkaConsumer()._rebalance_timeout == 10
