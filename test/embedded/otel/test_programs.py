"""`opentelemetry-instrument` on the example programs of the documentation, which have no line about traces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kafka.broker import Broker

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
# Name, kind, whether it failed: how often there is such a span.
SPANS = {
    "orders_threads.py": {
        ("send orders", "PRODUCER", False): 2,
        ("poll orders", "CLIENT", False): 1,
        ("process orders", "CONSUMER", False): 3,
        ("commit", "CLIENT", False): 1,
    },
    "orders_asyncio.py": {
        ("send orders", "PRODUCER", False): 2,
        ("poll orders", "CLIENT", False): 1,
        ("commit", "CLIENT", False): 1,
    },
    "orders_transactions.py": {
        ("send orders", "PRODUCER", False): 1,
        ("poll orders", "CLIENT", False): 1,
        ("send meals", "PRODUCER", False): 1,
        ("send_offsets_to_transaction", "CLIENT", False): 1,
    },
    "orders_share.py": {
        ("send orders", "PRODUCER", False): 2,
        ("poll orders", "CLIENT", False): 1,
        ("process orders", "CONSUMER", False): 1,
        ("process orders", "CONSUMER", True): 1,
        ("commit", "CLIENT", False): 1,
    },
}


def spans_of(program: Path, *, instrumented: bool = True, **environment: str) -> list[dict]:
    """Run a program against an embedded broker; return the spans that it has printed."""
    command = [sys.executable, str(program)]
    if instrumented:
        command = [str(Path(sys.executable).with_name("opentelemetry-instrument")), *command]
    with Broker(topics=["orders", "meals"]) as broker:
        ran = subprocess.run(
            command,
            env={
                **os.environ,
                "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
                "OTEL_TRACES_EXPORTER": "console",
                "OTEL_METRICS_EXPORTER": "none",
                "OTEL_LOGS_EXPORTER": "none",
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    return list(printed(ran.stdout))


def printed(text: str):
    """Return the JSON documents in what a program has printed, between its own lines."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find('{\n    "name"', at)) >= 0:
        span, length = decoder.raw_decode(text[at:])
        yield span
        at += length


@pytest.mark.parametrize("name", sorted(SPANS))
def test_an_unchanged_program_is_traced(name):
    spans = spans_of(EXAMPLES / name)
    found = Counter(
        (span["name"], span["kind"].removeprefix("SpanKind."), span["status"]["status_code"] == "ERROR")
        for span in spans
    )
    wanted = SPANS[name]
    # Records that come in two responses make two polls.
    polls = ("poll orders", "CLIENT", False)
    assert found.pop(polls) >= 1
    assert dict(found) == {kind: count for kind, count in wanted.items() if kind != polls}
    by_id = {span["context"]["span_id"]: span for span in spans}
    for span in spans:
        assert span["attributes"]["messaging.system"] == "kafka"
        if span["name"] == "process orders":
            parent = by_id[span["parent_id"]]
            assert parent["name"] == "send orders"
            assert parent["context"]["trace_id"] == span["context"]["trace_id"]
        if span["name"] == "poll orders":
            assert {by_id[link["context"]["span_id"]]["name"] for link in span["links"]} == {"send orders"}


def test_without_it_a_program_imports_nothing_of_opentelemetry_or_prometheus():
    """O1."""
    program = EXAMPLES / "orders_threads.py"
    check = (
        f"import runpy, sys; runpy.run_path({str(program)!r}); "
        "print([name for name in sys.modules if name.split('.')[0] in ('opentelemetry', 'prometheus_client')]); "
        "print([name for name in sys.modules if name.startswith(('kafka.otel', 'kafka.metrics.catalog'))])"
    )
    with Broker(topics=["orders"]) as broker:
        ran = subprocess.run(
            [sys.executable, "-c", check],
            env={**os.environ, "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    assert ran.stdout.splitlines()[-2:] == ["[]", "[]"]


def test_a_program_can_be_excluded_from_it():
    assert spans_of(EXAMPLES / "orders_threads.py", OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="purekafka") == []
