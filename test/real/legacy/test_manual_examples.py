"""The examples of the manuals, which test/manual_examples.py lists, against releases of Apache Kafka."""

from __future__ import annotations

import functools

import pytest

from test.embedded.legacy.test_manual_examples import run
from test.manual_examples import EXAMPLES, SIMPLE_EXAMPLES, TOPICS, runs_on
from test.real.kafka_process import KafkaCluster


@functools.cache
def create_topics(cluster: KafkaCluster) -> None:
    for topic, partitions in TOPICS.items():
        cluster.create_topic(topic, partitions=partitions)


@pytest.mark.matrix
@pytest.mark.parametrize("name", [*EXAMPLES, *SIMPLE_EXAMPLES])
def test_an_example_runs_as_printed(name: str, kafka_matrix: KafkaCluster) -> None:
    if not runs_on(name, str(kafka_matrix.release)):
        pytest.skip(f"{name} uses what this release does not have")
    create_topics(kafka_matrix)
    run([name], kafka_matrix.bootstrap_servers)
