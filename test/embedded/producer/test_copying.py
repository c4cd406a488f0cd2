"""Consume, transform, produce against the embedded broker, with the program killed in the middle: each record once."""

from __future__ import annotations

import pytest

from kafka.broker import Broker
from test.copying import PARTITIONS, check_copy, copy_with_kills, copy_with_two, fill


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", ["v2", "classic"])
@pytest.mark.parametrize(
    ("records", "kills", "after"), [(6_000, 2, (1, 2)), pytest.param(100_000, 12, (2, 8), marks=pytest.mark.soak)]
)
def test_a_copy_has_each_record_once_and_in_order(kind, records, kills, after):
    with Broker(nodes=3) as broker:
        if kind == "classic":
            for api, newest in (("EndTxn", 4), ("Produce", 11), ("TxnOffsetCommit", 4)):
                broker.advertise(api, 0, newest)
        broker.create_topic("source", PARTITIONS)
        broker.create_topic("target", PARTITIONS)
        servers = broker.bootstrap_servers
        fill(servers, "source", records)
        assert copy_with_kills(servers, "source", "target", "copiers", kills, after) == kills
        check_copy(servers, "target", records)


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    ("records", "kills", "after"), [(6_000, 1, (1, 2)), pytest.param(100_000, 8, (2, 6), marks=pytest.mark.soak)]
)
def test_two_programs_of_one_group_copy_each_record_once_and_in_order(records, kills, after):
    with Broker(nodes=3) as broker:
        broker.create_topic("source", PARTITIONS)
        broker.create_topic("target", PARTITIONS)
        servers = broker.bootstrap_servers
        fill(servers, "source", records)
        killed = copy_with_two(servers, "source", "target", "copiers", kills, after)
        check_copy(servers, "target", records)
        assert killed >= kills
