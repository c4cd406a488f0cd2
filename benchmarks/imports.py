"""Importing producer and consumer of each library: one operation is a process, with compiled modules at hand."""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping

from workload import Case, Job, Target, Workload, main

_KAFKA = "from kafka import KafkaProducer, KafkaConsumer"
STATEMENTS = {
    "purekafka": _KAFKA,
    "kafka-python": _KAFKA,
    "aiokafka": "from aiokafka import AIOKafkaProducer, AIOKafkaConsumer",
    "confluent-kafka": "from confluent_kafka import Producer, Consumer",
}
_RUNS = 10
_NEUTRAL = sys.prefix  # python -c looks for modules in the current directory first, so stand where there are none


class Imports:
    """One operation is one process that imports the clients."""

    def __init__(self, impl: str) -> None:
        self._command = [sys.executable, "-c", STATEMENTS[impl]]
        self._bare = [sys.executable, "-c", "pass"]

    def run(self, count: int) -> None:
        """Start them one after the other."""
        for _ in range(count):
            subprocess.run(self._command, check=True, cwd=_NEUTRAL)

    def figures(self) -> Mapping[str, float]:
        """The median time that such a process takes more than one that imports nothing."""
        took = [self._elapsed_ms(self._command) - self._elapsed_ms(self._bare) for _ in range(_RUNS)]
        return {"import_ms": statistics.median(took)}

    @staticmethod
    def _elapsed_ms(command: list[str]) -> float:
        began = time.perf_counter()
        subprocess.run(command, check=True, cwd=_NEUTRAL)
        return (time.perf_counter() - began) * 1000


def cpu_s() -> float:
    """CPU time of the children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def prepare(impl: str, _case: str, _args: argparse.Namespace) -> Job:
    """Start one process before the clock runs, which compiles the modules."""
    processes = Imports(impl)
    return Job(processes.run, extra=processes.figures, cpu_s=cpu_s, warm_up=1)


WORKLOAD = Workload(
    title="importing the clients",
    unit="process",
    impls=tuple(STATEMENTS),
    cases=[Case("import-clients", "a process that imports producer and consumer", 3)],
    prepare=prepare,
    targets=[
        Target("import-clients", metric="import_ms", at_most=80),
        Target("import-clients", peer="aiokafka", metric="import_ms", at_least=1),
    ],
    settings={"import ms": "what a process takes more than an empty one; CPU is that of the whole process"},
)

if __name__ == "__main__":
    main(WORKLOAD)
