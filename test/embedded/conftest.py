"""The broker of a test, and the faces that it runs on."""

from __future__ import annotations

import pytest

from kafka.broker import Broker

from .faces import face, pytest_generate_tests

__all__ = ["broker", "face", "pytest_generate_tests"]


@pytest.fixture
def broker(kafka_broker: Broker) -> Broker:
    """The broker of this test: how it is made says the marker ``kafka_broker``, or ``kafka_broker_options``."""
    return kafka_broker
