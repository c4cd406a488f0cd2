"""Copies a topic in transactions until SIGTERM: ``python copier.py SERVERS SOURCE TARGET GROUP NAME PROTOCOL``."""

from __future__ import annotations

import logging
import signal
import sys

from kafka import KafkaConsumer, KafkaProducer
from test.copying import copied


def main(servers: str, source: str, target: str, group: str, name: str, protocol: str) -> None:
    logging.basicConfig(level="WARNING", format="%(asctime)s %(name)s %(message)s")
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    options = {"group_protocol": "consumer"} if protocol == "consumer" else {"session_timeout_ms": 6000}
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=servers,
        bootstrap_timeout_ms=60_000,
        group_id=group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        request_timeout_ms=10_000,
        **options,
    )
    producer = KafkaProducer(
        bootstrap_servers=servers,
        bootstrap_timeout_ms=60_000,
        transactional_id=f"{group}-{name}",
        transaction_timeout_ms=20_000,
        request_timeout_ms=10_000,
    )
    producer.init_transactions()
    while not stopped:
        found = consumer.poll(200)
        if found:
            copied(consumer, producer, target, found)
    producer.close()
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
