"""The embedded broker of ``--sandbox``: the same topics, records and group each time, so that examples can be tried."""

from __future__ import annotations

from kafka.broker import Broker

#: ACLs can be listed and changed.
_CONFIGS = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
_BEGIN_MS = 1_767_225_600_000  # 2026-01-01 00:00 UTC
_CITIES = ("Oslo", "Lima", "Kyoto", "Accra", "Zürich")


def start() -> Broker:
    """Start a broker with ``events`` (3 partitions, 30 records), ``orders`` (5 records) and the group ``billing``.

    >>> broker = start()
    >>> len(broker.records("events")), broker.committed("billing", "events", 0)
    (30, 4)
    >>> broker.close()
    """
    from kafka.admin import KafkaAdminClient

    broker = Broker(topics={"events": 3, "orders": 1}, configs=_CONFIGS)
    broker.start()
    try:
        for number in range(30):
            city = _CITIES[number % len(_CITIES)]
            broker.append(
                "events",
                partition=number % 3,
                key=f"user-{number % 4}".encode(),
                value=f'{{"id": {number}, "city": "{city}"}}'.encode(),
                timestamp_ms=_BEGIN_MS + number * 60_000,
            )
        for number in range(5):
            broker.append(
                "orders",
                key=f"order-{number}".encode(),
                value=f"{number + 1} apples".encode(),
                headers=[("source", b"shop")],
                timestamp_ms=_BEGIN_MS + number * 3_600_000,
            )
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.alter_group_offsets("billing", {("events", 0): 4, ("events", 1): 10, ("orders", 0): 2})
    except BaseException:
        broker.close()
        raise
    return broker
