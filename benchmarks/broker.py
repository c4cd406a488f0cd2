"""The broker of a run: the one that the caller names, else an Apache Kafka started for it on loopback.

Starting one is done by what the tests against real brokers use (test/real), with the settings of a server and not of
a test: full optimisation, a heap of 1 GiB. It lives as long as the run.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.venvs import ROOT

# Whatever is produced goes away soon; a run may write gigabytes. Topics that are to stay override this.
_PROPERTIES = {
    "log.segment.bytes": str(64 << 20),
    "log.retention.bytes": str(256 << 20),
    "log.retention.check.interval.ms": "5000",
    "log.segment.delete.delay.ms": "1000",
    # Share groups: a member gets its partitions with its second heartbeat.
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
}


class NoBroker(Exception):
    """No broker was named and none can be started; the text says what is missing."""


@contextmanager
def broker(bootstrap: str | None) -> Iterator[tuple[str, str]]:
    """The address, and a line about the broker for the report."""
    if bootstrap:
        yield bootstrap, "one that was running already"
        return
    # test/ has no __init__.py, and "test" would be the standard library's: its packages are found from within.
    sys.path.insert(0, str(ROOT / "test"))
    try:
        from real import jvm
        from real.kafka_jars import KafkaUnavailable
        from real.kafka_process import KafkaCluster
    finally:
        sys.path.pop(0)
    try:
        cluster = KafkaCluster(properties=_PROPERTIES, heap_mb=1024, java_args=())
    except KafkaUnavailable as error:
        raise NoBroker(f"{error}; or name a running broker with --bootstrap") from error
    with cluster:
        # For workloads that have Java beside Python.
        os.environ["BENCH_JAVA"] = json.dumps(jvm.command(str(cluster.version), "-Xmx512m"))
        yield cluster.bootstrap_servers, f"Apache Kafka {cluster.version}, one node on loopback, on the same machine"
