"""Sessions of a second (KIP-368): clients authenticate again while they work, and nobody notices."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import Any

import pytest

from kafka.broker import Broker, Exchange
from test.renewals import OAUTH, SCRAM, work, work_with_asyncio

USERS = [("SCRAM-SHA-256", "ann", "secret"), ("OAUTHBEARER", "", "")]
# The broker ends sessions after three times what it tells: a machine that stands still for a moment fails no test.
CONFIGS = {"connections.max.reauth.ms": 3000}


@pytest.mark.parametrize("seconds", [2.5, pytest.param(60, marks=pytest.mark.soak)])
@pytest.mark.parametrize("run", [work, work_with_asyncio])
@pytest.mark.parametrize("options", [SCRAM, OAUTH], ids=["SCRAM", "OAUTHBEARER"])
def test_a_session_that_is_renewed_loses_no_connection(
    options: dict[str, Any], run: Any, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    logins: Counter[int] = Counter()

    def authenticated(exchange: Exchange) -> None:
        if exchange.reply.session_lifetime_ms:
            exchange.reply.session_lifetime_ms = 1000
            logins[exchange.call.connection.number] += 1

    caplog.set_level(logging.WARNING, "kafka")
    with Broker(nodes=2, topics={"events": 8}, configs=CONFIGS, sasl=USERS) as broker:
        broker.intercept("SaslAuthenticate", authenticated)
        broker.delay("SaslAuthenticate", 0.05)  # a renewal takes long enough for requests to come meanwhile
        end = time.monotonic() + seconds

        def enough() -> bool:
            # The producer's two connections, the consumer's three, and the administrator's.
            return sum(count >= 3 for count in tuple(logins.values())) >= 6 and time.monotonic() > end

        sent, received = run(enough, "events", bootstrap_servers=broker.bootstrap_servers, **options)
    assert Counter(received) == Counter(sent)
    assert [record.getMessage() for record in caplog.records] == []
