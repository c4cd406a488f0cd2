"""confluent-kafka logs in with SCRAM and asks for metadata: prints how many brokers there are, or the first error."""

from __future__ import annotations

import sys

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

errors: list[str] = []
client = AdminClient(
    {
        "bootstrap.servers": sys.argv[1],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "ada",
        "sasl.password": "secret",
        "error_cb": lambda error: errors.append(error.str()),
        "logger": None,
    }
)
try:
    print(len(client.list_topics(timeout=10 if len(sys.argv) > 2 else 60).brokers))
except KafkaException as error:
    client.poll(0)
    print(errors[0] if errors else error)
