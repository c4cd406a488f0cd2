"""``python -m kafka.consumer``, with the words of kafka-python 3."""

from __future__ import annotations

import sys

from kafka.cli.kafka_python import consumer

if __name__ == "__main__":
    sys.exit(consumer())
