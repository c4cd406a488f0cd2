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
