"""The broker of a test, and the faces that it runs on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka.broker import Broker
from test import quick_start

from .faces import face, pytest_generate_tests

__all__ = ["broker", "face", "pytest_generate_tests"]


@pytest.fixture(scope="session", autouse=True)
def programs_begin_at_once(what_is_left_is_removed: None) -> Iterator[None]:
    """Open what `quick_start.Program` needs, which is no test's leftover."""
    with quick_start.template():
        yield


@pytest.fixture
def broker(kafka_broker: Broker) -> Broker:
    """The broker of this test: how it is made says the marker ``kafka_broker``, or ``kafka_broker_options``."""
    return kafka_broker
