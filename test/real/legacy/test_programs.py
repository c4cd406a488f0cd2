"""Programs in the style of each generation of kafka-python against releases of Apache Kafka."""

from __future__ import annotations

import pytest

from test.embedded.legacy.test_programs import PROGRAMS, run
from test.real.kafka_process import KafkaCluster

SINCE = {"kafka_python_1_3": (0, 10), "kafka_python_1_4": (1, 0), "kafka_python_2_0": (1, 0)}


@pytest.mark.matrix
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_an_older_generation_runs(program: str, kafka_matrix: KafkaCluster) -> None:
    since = SINCE.get(program, (2, 8))
    if kafka_matrix.release.number < since:
        pytest.skip(f"{program} uses what brokers have since {'.'.join(map(str, since))}")
    run(program, kafka_matrix.bootstrap_servers, program.replace("_", "-"))
