"""Sessions of Apache Kafka that end after six seconds (KIP-368), and clients that work on.

The client authenticates again after 85 to 95 % of a session; what it sent before may reach a busy broker after the end.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kafka.sasl.oauth import OidcTokenProvider
from test.renewals import scram, work, work_with_asyncio

from .kafka_process import KafkaCluster
from .oauth import CLIENT_ID, CLIENT_SECRET, TokenServer

_SESSION: float = 6.0


def test_a_session_that_is_renewed_loses_no_connection(
    secured: KafkaCluster, token_server: TokenServer, caplog: pytest.LogCaptureFixture
) -> None:
    servers = secured.bootstrap("SASL_PLAINTEXT")
    oauth = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": OidcTokenProvider(token_server.token_url, CLIENT_ID, CLIENT_SECRET),
    }
    # test/embedded/net/test_session_renewal.py has the other pairs.
    kinds = {"blocking-scram": (work, scram("bob", "hunter2")), "asyncio-oauth": (work_with_asyncio, oauth)}
    for topic in kinds:
        secured.create_topic(topic, 8)
    end = time.monotonic() + 1.5 * _SESSION

    def run(topic: str) -> Any:
        function, options = kinds[topic]
        return function(lambda: time.monotonic() > end, topic, bootstrap_servers=servers, **options)

    with ThreadPoolExecutor(len(kinds)) as pool:
        for sent, received in pool.map(run, kinds):
            assert len(sent) > 100
            assert Counter(received) == Counter(sent)
    texts = [record.getMessage() for record in caplog.records if record.name.startswith("kafka.net")]
    assert [text for text in texts if not text.startswith("Authenticated to ")] == []
