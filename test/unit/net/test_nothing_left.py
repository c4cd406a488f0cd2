"""Whatever happens and whenever it is closed, a client leaves no socket behind: random lives in memory."""

from __future__ import annotations

import random

import pytest

from kafka._core.client import FETCH, Client
from kafka.cluster import GROUP
from kafka.config import resolve
from kafka.protocol.admin import ListGroupsRequest
from test.unit.test_client_async import Cluster


@pytest.fixture
def cluster():
    return Cluster()


def make(cluster, seed=0, **config):
    config = {"bootstrap_servers": "b0,b1,b2", "retry_backoff_ms": 5, "reconnect_backoff_ms": 5, **config}
    return Client(resolve("consumer", config), cluster.network.environment(seed))


async def refreshing(client):
    await client.refresh(client.loop.time() + 1)


async def holding_on(client, node_id, rng):
    """As the fetcher, the coordinators and others do: take a connection, open it, then use it."""
    link = client.link(node_id, rng.choice(["default", FETCH]))
    await client.open(link, client.loop.time() + 1)
    for _ in range(rng.randrange(3)):
        await client.loop.sleep(rng.choice([0, 0.001]))
    await link.submit(ListGroupsRequest(), 1)


def live(cluster, client, rng):
    """Do something, or have something happen."""
    spawn = client.loop.spawn
    what = rng.randrange(9)
    if what == 0:
        spawn(client.bootstrap())
    elif what == 1:
        spawn(client.request(ListGroupsRequest()))
    elif what == 2:
        spawn(client.coordinator(GROUP, f"g{rng.randrange(3)}", client.loop.time() + 1))
    elif what == 3:
        spawn(refreshing(client))
    elif what in {4, 5}:
        known = [broker.nodeId for broker in client.candidates()]
        spawn(holding_on(client, rng.choice(known), rng))
    elif what == 6:
        rng.choice(cluster.brokers).stop()
    elif what == 7:
        rng.choice(cluster.brokers).start()
    else:
        cluster.members = rng.sample(range(3), rng.randint(1, 3))


@pytest.mark.parametrize("block", range(10))
def test_a_life_of_any_kind_that_ends_at_any_moment_leaves_no_socket(block):
    for seed in range(block * 20, block * 20 + 20):
        rng = random.Random(seed)
        cluster = Cluster()
        client = make(cluster, seed)
        client.loop.spawn(client.bootstrap())
        for _ in range(rng.randrange(40)):
            live(cluster, client, rng)
            for _ in range(rng.randrange(6)):
                client.loop.turn(rng.choice([0, 0.002]))
        if rng.random() < 0.5:
            client.shut_down()
            for _ in range(rng.randrange(20)):
                client.loop.turn(rng.choice([0, 0.002]))
        client.loop.close(rng.choice([0, 1]))
        assert not cluster.network.open_sockets, f"seed {seed}"
