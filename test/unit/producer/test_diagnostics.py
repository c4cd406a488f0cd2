"""kafka.producer.diagnostics: why records are not acknowledged, in words."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafka.errors import KafkaConnectionError, KafkaError, RequestTimedOutError
from kafka.producer.diagnostics import no_answers


@pytest.mark.parametrize(
    ("error", "is_advised"),
    [(KafkaConnectionError("broker 3: Connection refused"), True), (RequestTimedOutError("no reply"), False)],
)
def test_the_reason_is_kept_when_the_connections_of_lost_brokers_are_gone(error: KafkaError, is_advised: bool) -> None:
    client = SimpleNamespace(loop=SimpleNamespace(time=lambda: 0.0), links=list, cluster=SimpleNamespace(error=error))
    told = no_answers(client)
    assert str(error) in told
    assert ("see whether it runs" in told) is is_advised


@pytest.mark.parametrize("throttled", [0.0, 3.0])
def test_a_broker_that_throttles_is_not_said_to_hang(throttled: float) -> None:
    """It reads requests that were in flight when it said so only when the time is up."""
    pipeline = SimpleNamespace(oldest_sent_at=lambda: 5.0)
    link = SimpleNamespace(ready=True, pipeline=pipeline, throttled=lambda: throttled)
    loop, cluster = SimpleNamespace(time=lambda: 9.0), SimpleNamespace(error=None)
    client = SimpleNamespace(loop=loop, links=lambda: [link], cluster=cluster)
    told = no_answers(client)
    assert ("throttles this client for another 3.0 seconds: see its quotas" in told) is bool(throttled)
    assert ("has not answered for 4.0 seconds: see whether it hangs" in told) is not throttled
