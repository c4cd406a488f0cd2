"""What send() and send_many() take, and what they say about the rest."""

from __future__ import annotations

from test.unit.producer.memory_cluster import Cluster


def test_what_send_many_returns_says_the_same_as_single_futures(make_producer):
    producer = make_producer(Cluster({"events": 1}))
    headers = [("trace", b"77")]
    records = [
        (b"k", b"value"),
        (None, b"v", headers),
        (b"key", None, headers, 0),
        (b"k", b"", None, 0, 12_345),
        b"alone",
    ]
    found = producer.send_many("events", records).get(10)
    assert [metadata.offset for metadata in found] == [0, 1, 2, 3, 4]
    sizes = [(each.serialized_key_size, each.serialized_value_size, each.serialized_header_size) for each in found]
    assert sizes == [(1, 5, -1), (-1, 1, 7), (3, -1, 7), (1, 0, -1), (-1, 5, -1)]
    assert found[3].timestamp == 12_345
    assert {metadata.timestamp for metadata in (*found[:3], found[4])} == {int(producer._time() * 1000)}


def test_send_many_of_values_says_their_sizes(make_producer):
    producer = make_producer(Cluster({"events": 3}))
    values = [b"x" * (number % 7) if number % 5 else None for number in range(20_000)]
    found = producer.send_many("events", values).get(10)
    assert [each.serialized_value_size for each in found] == [-1 if value is None else len(value) for value in values]


def test_send_many_of_nothing_is_nothing(make_producer):
    sent = make_producer(Cluster({"events": 3})).send_many("events", [])
    assert (len(sent), list(sent), sent.get(10)) == (0, [], [])
