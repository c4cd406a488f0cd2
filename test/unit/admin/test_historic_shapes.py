"""Classes that programs for kafka-python 3 build themselves, mostly in tests, as in its release 3.0.12."""

from __future__ import annotations

import pytest

from kafka import TopicPartition
from kafka.admin import (
    AbortTransactionSpec,
    PartitionProducerState,
    ProducerState,
    ScramMechanism,
    TransactionDescription,
    TransactionListing,
    TransactionState,
    UserScramCredentialUpsertion,
)
from kafka.errors import IllegalArgumentError

FIRST = TopicPartition("events", 0)


def test_the_states_of_transactions_and_producers_are_named_tuples():
    listing = TransactionListing("orders", 5, TransactionState.ONGOING)
    name, producer_id, state = listing
    assert (name, producer_id, state) == listing == ("orders", 5, "Ongoing")
    assert listing._asdict() == {"transactional_id": "orders", "producer_id": 5, "state": "Ongoing"}
    assert (
        len({listing, TransactionListing(transactional_id="orders", producer_id=5, state=TransactionState.ONGOING)})
        == 1
    )
    assert listing._replace(producer_id=6)[1] == 6
    described = TransactionDescription(1, TransactionState.EMPTY, 2, 3, 4, 5, {FIRST})
    assert (described.coordinator_id, described.topic_partitions) == (1, {FIRST})
    producer = ProducerState(1, 2, 3, 4, 5, 6)
    assert (producer.producer_id, producer.current_transaction_start_offset) == (1, 6)
    assert PartitionProducerState([producer]).active_producers == [producer]
    assert AbortTransactionSpec(FIRST, 1, 2, 3).coordinator_epoch == 3


def test_the_iterations_of_a_credential_have_a_default_that_is_an_attribute():
    assert UserScramCredentialUpsertion.DEFAULT_ITERATIONS == 4096
    assert UserScramCredentialUpsertion("u", "scram-sha-256", "p", None, b"salt").iterations == 4096
    assert ScramMechanism.SCRAM_SHA_256.hash_name == "sha256"
    assert ScramMechanism.SCRAM_SHA_512.hash_name == "sha512"
    with pytest.raises(IllegalArgumentError):
        ScramMechanism.UNKNOWN.hash_name  # noqa: B018
