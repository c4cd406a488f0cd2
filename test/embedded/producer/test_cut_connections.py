"""KafkaProducer behind a proxy that cuts its connections: at each byte of a request, of a reply, of a handshake."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from kafka.broker import Broker
from test.embedded.cutting import DOWN, UP, CuttingProxy
from test.embedded.producer.conftest import WAIT

FACES = "both"

MOST_BYTES = 2000


pytestmark = pytest.mark.kafka_broker(seed=1)


@pytest.fixture
def proxy(broker: Broker) -> Iterator[CuttingProxy]:
    with CuttingProxy(broker) as proxy:
        yield proxy


def cut_each_byte(producer, proxy, topic, direction, *, anew=False, step=1):
    """Send a record for each byte that the connection may be cut at, until none is cut; their numbers."""
    for count in range(0, MOST_BYTES, step):
        cuts = proxy.cuts
        if anew:
            proxy.cut_now()
        # The first of the new connections to come so far may be the one that asks for metadata.
        proxy.cut_after(count, direction, times=2 if anew else 1)
        assert producer.send(topic, b"%d" % count, partition=0).get(WAIT).offset > count // step
        if proxy.cuts == cuts:
            proxy.stop_cutting()
            return list(range(0, count + 1, step))
    raise AssertionError(f"no request was smaller than {MOST_BYTES} bytes")


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_at_each_byte_loses_nothing_and_repeats_nothing(make, broker, proxy, topic, direction):
    producer = make(bootstrap_servers=proxy.bootstrap_servers, linger_ms=0)
    producer.send(topic, b"-1", partition=0).get(WAIT)
    sent = cut_each_byte(producer, proxy, topic, direction)
    assert len(sent) > 30
    assert [int(record.value) for record in broker.records(topic)] == [-1, *sent]


@pytest.mark.slow
@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_in_a_handshake_loses_nothing_and_repeats_nothing(make, broker, proxy, topic, direction, step):
    producer = make(bootstrap_servers=proxy.bootstrap_servers, linger_ms=0)
    producer.send(topic, b"-1", partition=0).get(WAIT)
    sent = cut_each_byte(producer, proxy, topic, direction, anew=True, step=step)
    assert sent[-1] > 60
    assert [int(record.value) for record in broker.records(topic)] == [-1, *sent]


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_without_idempotence_a_cut_at_each_byte_loses_nothing_and_keeps_the_order(
    make, broker, proxy, topic, direction
):
    producer = make(bootstrap_servers=proxy.bootstrap_servers, linger_ms=0, enable_idempotence=False)
    producer.send(topic, b"-1", partition=0).get(WAIT)
    sent = cut_each_byte(producer, proxy, topic, direction)
    found = [int(record.value) for record in broker.records(topic)]
    assert list(dict.fromkeys(found)) == [-1, *sent]
    if direction == UP:
        assert len(found) == len(sent) + 1  # what was cut on its way was never written


@pytest.mark.slow
@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak), pytest.param(2, marks=pytest.mark.soak)])
def test_connections_of_a_few_thousand_bytes_carry_everything_in_order(make, broker, proxy, topic, idempotent, seed):
    producer = make(
        bootstrap_servers=proxy.bootstrap_servers, batch_size=500, linger_ms=0, enable_idempotence=idempotent
    )
    producer.partitions_for(topic)
    proxy.cut_all_after(Random(seed), 300, 2500)
    proxy.cut_now()
    futures = [producer.send(topic, b"%060d" % number, partition=0) for number in range(1000)]
    producer.flush(60)
    proxy.stop_cutting()
    assert all(future.succeeded() for future in futures)
    assert proxy.cuts > 5
    found = [int(record.value) for record in broker.records(topic)]
    assert list(dict.fromkeys(found)) == list(range(1000))
    if idempotent:
        assert len(found) == 1000
        for number, future in enumerate(futures):
            offset = future.value.offset
            assert offset < 0 or found[offset] == number


@pytest.mark.slow
@pytest.mark.parametrize("codec", [None, "gzip"])
def test_a_large_batch_cut_anywhere_is_sent_again_byte_for_byte(make, broker, proxy, topic, codec):
    producer = make(
        bootstrap_servers=proxy.bootstrap_servers, linger_ms=60_000, batch_size=200_000, compression_type=codec
    )
    producer.send(topic, b"-1", partition=0).get(WAIT)
    rng = Random(1)
    # Within what stands before the batch, its header, its body: each a piece of its own for the socket.
    places = [1, 40, 60, 80, 100, 120, 150, *sorted(rng.choices(range(150, 45_000), k=8))]
    expected = [b"-1"]
    for number, place in enumerate(places):
        proxy.cut_after(place, UP)
        values = [b"%d-%d-" % (number, at) + rng.randbytes(500).hex().encode() for at in range(100)]
        futures = [producer.send(topic, value, partition=0) for value in values]
        producer.flush(WAIT)
        assert [future.get(WAIT).offset for future in futures] == list(range(len(expected), len(expected) + 100))
        expected += values
    assert proxy.cuts == len(places)
    assert [record.value for record in broker.records(topic)] == expected
