"""A real schema registry for the tests, in two releases, and the one of this package for tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka.schema_registry import SchemaRegistryServer
from test.real.kafka_jars import KafkaUnavailable

from .apicurio import NEW, OLD, Apicurio


def start(version: str, users: dict[str, str] | None = None) -> Apicurio:
    """Start a registry; the test is skipped, with a line that says why, where it is not to be had."""
    try:
        return Apicurio(version, users=users)
    except KafkaUnavailable as error:
        pytest.skip(str(error))


OURS = "purekafka"


@pytest.fixture(scope="package", params=[OLD, NEW, OURS])
def registry_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a registry that all tests share: use subjects of your own."""
    if request.param == OURS:
        with SchemaRegistryServer(compatibility="NONE") as server:  # as a real one of that kind begins
            yield server.url
        return
    with start(request.param) as registry:
        yield registry.url
