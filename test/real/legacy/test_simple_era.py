"""The clients of the Simple* era against every release of Apache Kafka."""

from __future__ import annotations

from itertools import count

import pytest

from test.real.kafka_process import KafkaCluster
from test.simple_era import PROGRAMS, Program

_numbers = count()


@pytest.mark.matrix
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_of_the_simple_era_run_on_every_release(program: Program, kafka_matrix: KafkaCluster) -> None:
    topic = kafka_matrix.create_topic(f"simple-{program.__name__.replace('_', '-')}-{next(_numbers)}", partitions=2)
    program(kafka_matrix.bootstrap_servers, topic)
