"""What programs for aiokafka import is at the same places below kafka.aio, and means the same."""

from __future__ import annotations

import asyncio
import ssl
from importlib import import_module

import pytest

from kafka import errors
from kafka.aio.helpers import create_ssl_context
from kafka.aio.structs import ConsumerRecord, RecordMetadata

# Modules of aiokafka 0.14 that applications import from, and the names there.
MODULES = {
    "": "AIOKafkaClient ConsumerRebalanceListener ConsumerStoppedError IllegalOperation ConsumerRecord TopicPartition "
    "OffsetAndMetadata OffsetAndTimestamp",
    ".structs": "TopicPartition OffsetAndMetadata OffsetAndTimestamp RecordMetadata BrokerMetadata PartitionMetadata "
    "ConsumerRecord",
    ".errors": "KafkaError BrokerResponseError for_code ConsumerStoppedError IllegalOperation ProducerClosed "
    "ProducerFenced OutOfOrderSequenceNumber DuplicateSequenceNumber InvalidProducerEpoch InvalidTxnState "
    "InvalidProducerIdMapping InvalidTransactionTimeout ConcurrentTransactions TransactionCoordinatorFenced "
    "TransactionalIdAuthorizationFailed OperationNotAttempted SecurityDisabled LogDirNotFound "
    "SaslAuthenticationFailed UnknownProducerId ReassignmentInProgress DelegationTokenAuthDisabled "
    "DelegationTokenNotFound DelegationTokenOwnerMismatch DelegationTokenRequestNotAllowed "
    "DelegationTokenAuthorizationFailed DelegationTokenExpired InvalidPrincipalType NonEmptyGroup GroupIdNotFound "
    "FetchSessionIdNotFound InvalidFetchSessionEpoch ListenerNotFound MemberIdRequired KafkaTimeoutError "
    "KafkaConnectionError IllegalStateError CommitFailedError OffsetOutOfRangeError RecordTooLargeError "
    "UnknownTopicOrPartitionError TopicAuthorizationFailedError MessageSizeTooLargeError CorruptRecordException",
    ".abc": "ConsumerRebalanceListener AbstractTokenProvider",
    ".helpers": "create_ssl_context",
    ".admin": "AIOKafkaAdminClient NewTopic NewPartitions RecordsToDelete",
    ".admin.config_resource": "ConfigResource ConfigResourceType",
    ".client": "AIOKafkaClient",
    ".partitioner": "DefaultPartitioner murmur2",
    ".util": "create_future create_task INTEGER_MAX_VALUE INTEGER_MIN_VALUE",
    ".coordinator.assignors.range": "RangePartitionAssignor",
    ".coordinator.assignors.roundrobin": "RoundRobinPartitionAssignor",
    ".coordinator.assignors.sticky.sticky_assignor": "StickyPartitionAssignor",
    ".coordinator.assignors.abstract": "AbstractPartitionAssignor",
}


@pytest.mark.parametrize("module", MODULES)
def test_the_names_of_aiokafka_are_at_their_places(module):
    found = import_module(f"kafka.aio{module}")
    missing = [name for name in MODULES[module].split() if not hasattr(found, name)]
    assert not missing


def test_two_errors_are_not_kafka_errors_so_that_a_loop_that_retries_these_ends():
    for kind in (errors.ConsumerStoppedError, errors.IllegalOperation):
        assert kind.__bases__ == (Exception,)
    assert issubclass(errors.ProducerClosed, errors.KafkaError)


def test_errors_have_what_programs_read_from_them():
    error = errors.for_code(45)("batch 7")
    assert isinstance(error, errors.OutOfOrderSequenceNumber)
    assert (error.errno, error.message, error.retriable, error.invalid_metadata) == (
        45,
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        False,
        False,
    )


def test_a_record_takes_attributes_and_is_a_tuple_as_everywhere():
    record = ConsumerRecord("t", 1, 2, 3, 0, b"k", b"v")
    record.consumer = self = object()
    assert record.consumer is self
    assert record == ("t", 1, 2, 3, 0, b"k", b"v", None, -1, -1, record[10], -1, -1)
    assert type(record)._make(record) == record


def test_record_metadata_has_the_fields_of_aiokafka():
    assert RecordMetadata._fields == (
        "topic",
        "partition",
        "topic_partition",
        "offset",
        "timestamp",
        "timestamp_type",
        "log_start_offset",
    )


def test_a_context_for_tls_checks_names_and_certificates():
    context = create_ssl_context()
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats()["x509_ca"] > 0
    der = context.get_ca_certs(binary_form=True)[0]
    for data in (der, ssl.DER_cert_to_PEM_cert(der)):
        assert create_ssl_context(cadata=data).cert_store_stats()["x509_ca"] == 1


def test_helpers_make_tasks_and_futures_of_the_running_loop():
    from kafka.aio.util import create_future, create_task

    async def main():
        future = create_future()

        async def resolve():
            future.set_result(7)

        await create_task(resolve())
        return await future

    assert asyncio.run(main()) == 7
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(import_module("kafka.aio"), "Nothing")  # noqa: B009
    assert "AIOKafkaClient" in dir(import_module("kafka.aio"))
