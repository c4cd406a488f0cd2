"""``python -m kafka.producer``, with the words of kafka-python 3."""

from __future__ import annotations

import sys

from kafka.cli.kafka_python import producer

if __name__ == "__main__":
    sys.exit(producer())
