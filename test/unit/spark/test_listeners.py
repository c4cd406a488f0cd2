"""The listener of lag: what it calls as the events of queries come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka.structs import TopicPartition

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")


def test_a_query_is_alive_while_it_has_batches_or_nothing_to_do(monkeypatch: Any) -> None:
    from kafka.spark import listeners

    lags: dict[str, Any] = {}
    heard: list[str] = []
    monkeypatch.setattr(listeners, "lag", lambda progress: progress.behind)
    listener: Any = listeners.LagListener(lags.__setitem__, heard.append)
    behind = {TopicPartition("events", 0): 3}
    listener.onQueryStarted(SimpleNamespace(id="1", name="counts"))
    listener.onQueryProgress(SimpleNamespace(progress=SimpleNamespace(id="1", name="counts", behind=behind)))
    listener.onQueryIdle(SimpleNamespace(id="1"))
    listener.onQueryProgress(SimpleNamespace(progress=SimpleNamespace(id="2", name=None, behind=None)))
    listener.onQueryIdle(SimpleNamespace(id="2"))
    assert heard == ["counts", "counts", "counts", "2", "2"]
    assert lags == {"counts": behind}
    listener.onQueryTerminated(SimpleNamespace(id="1"))
    listener.onQueryIdle(SimpleNamespace(id="1"))
    assert heard[-1] == "1"


def test_without_a_function_for_it_no_sign_of_life_is_sent() -> None:
    from kafka.spark import LagListener

    listener: Any = LagListener(lambda _name, _lag: None)
    listener.onQueryStarted(SimpleNamespace(id="1", name=None))
    listener.onQueryIdle(SimpleNamespace(id="1"))
