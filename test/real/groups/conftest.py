"""Groups of processes on a cluster, and a writer beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from test.real.kafka_process import KafkaCluster

from .members import Group

MakeGroup = Callable[..., Group]

KINDS: dict[str, dict[str, Any]] = {
    "range": {"assignors": ["range"]},
    "cooperative-sticky": {"assignors": ["cooperative-sticky"]},
    "consumer": {"protocol": "consumer"},
}


@pytest.fixture
def make_group(tmp_path: Path) -> Iterator[MakeGroup]:
    """Makes groups whose members end with the test."""
    with ExitStack() as opened:

        def make(cluster: KafkaCluster, topic: str, name: str, partitions: int = 6, **plan: Any) -> Group:
            return opened.enter_context(Group(tmp_path, cluster.bootstrap_servers, topic, name, partitions, plan))

        yield make
