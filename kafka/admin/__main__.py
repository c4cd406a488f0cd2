"""``python -m kafka.admin``, with the words of kafka-python 3."""

from __future__ import annotations

import sys

from kafka.cli.kafka_python import admin

if __name__ == "__main__":
    sys.exit(admin())
