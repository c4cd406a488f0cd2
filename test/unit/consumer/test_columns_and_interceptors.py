"""Columns do not pass through interceptors, so the two are not used together in silence."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.errors import IllegalStateError
from kafka.interceptors import ConsumerInterceptor
from test.unit.consumer.scripted import Cluster, MakeConsumer, read


class Audit(ConsumerInterceptor):
    def on_consume(self, records: Any) -> Any:
        return records


class Commits(ConsumerInterceptor):
    def on_commit(self, offsets: Any) -> None:
        pass


class NotDerived:
    def on_consume(self, records: Any) -> Any:
        return records


@pytest.mark.parametrize("interceptor", [Audit, NotDerived])
def test_columns_are_refused_where_an_interceptor_would_miss_records(
    cluster: Cluster, make: MakeConsumer, interceptor: type
) -> None:
    cluster.fill(10)
    consumer = make("t", interceptors=[interceptor])
    with pytest.raises(IllegalStateError, match=r"poll_batches\(\).*interceptors.*use poll\(\)"):
        consumer.poll_batches(timeout_ms=1000)
    assert len(read(consumer, 10)) == 10


def test_columns_go_well_with_an_interceptor_of_commits(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    consumer = make("t", interceptors=[Commits()])
    (columns,) = consumer.poll_batches(timeout_ms=1000).values()
    assert len(columns) == 10
