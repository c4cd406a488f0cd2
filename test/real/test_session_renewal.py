"""Sessions of Apache Kafka that end after five seconds (KIP-368), and clients that work on.

The client authenticates again after 85 to 95 % of a session; what it sent before may reach a busy broker after the end.
"""

from __future__ import annotations

import time
from collections import Counter

import pytest

from kafka import KafkaAdminClient
from test.renewals import OAUTH, scram, work, work_with_asyncio

from . import sasl
from .conftest import StartKafka

_SESSION: float = 5.0


def test_a_session_that_is_renewed_loses_no_connection(kafka_at: StartKafka, caplog: pytest.LogCaptureFixture) -> None:
    security = [
        sasl.scram("SCRAM-SHA-256"),
        sasl.unsecured_oauth(),
        sasl.reauthenticate_every(round(1000 * _SESSION)),
    ]
    cluster = kafka_at(listeners=("PLAINTEXT", "SASL_PLAINTEXT"), security=security)
    cluster.add_scram_user("bob", "hunter2", "SCRAM-SHA-256")
    servers = cluster.bootstrap("SASL_PLAINTEXT")
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap("PLAINTEXT")) as admin:
        for topic, run, options in (
            ("blocking-scram", work, scram("bob", "hunter2")),
            ("blocking-oauth", work, OAUTH),
            ("asyncio-scram", work_with_asyncio, scram("bob", "hunter2")),
            ("asyncio-oauth", work_with_asyncio, OAUTH),
        ):
            admin.create_topics({topic: {"num_partitions": 8, "replication_factor": 1}})
            while topic not in admin.list_topics():  # the broker learns of it after the controller has answered
                time.sleep(0.02)
            end = time.monotonic() + 1.5 * _SESSION
            sent, received = run(lambda end=end: time.monotonic() > end, topic, bootstrap_servers=servers, **options)
            assert Counter(received) == Counter(sent)
    texts = [record.getMessage() for record in caplog.records if record.name.startswith("kafka.net")]
    assert [text for text in texts if not text.startswith("Authenticated to ")] == []
