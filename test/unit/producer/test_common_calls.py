"""kafka.producer.common_calls: calls that are written once and stand on both faces."""

from __future__ import annotations

import inspect

import pytest

from kafka import KafkaProducer
from kafka.aio import AIOKafkaProducer
from kafka.producer.common_calls import CommonCalls

ON_BOTH = [
    *("flush", "partitions_for", "purge"),
    *("begin_transaction", "send_offsets_to_transaction", "commit_transaction", "abort_transaction"),
]
BLOCKING = [*ON_BOTH, "init_transactions"]


@pytest.mark.parametrize("name", BLOCKING)
def test_the_producer_that_blocks_has_the_call_with_its_parameters_and_its_text(name: str) -> None:
    call, method = getattr(CommonCalls, name), getattr(KafkaProducer, name)
    assert inspect.signature(method) == inspect.signature(call)
    assert method.__doc__ == call.__doc__
    assert not inspect.iscoroutinefunction(method)


@pytest.mark.parametrize("name", ON_BOTH)
def test_the_producer_of_asyncio_has_the_call_with_its_parameters_and_its_text(name: str) -> None:
    call, method = getattr(CommonCalls, name), getattr(AIOKafkaProducer, name)
    assert inspect.signature(method) == inspect.signature(call)
    assert method.__doc__ == call.__doc__
    assert inspect.iscoroutinefunction(method)


def test_importing_the_calls_imports_no_core() -> None:
    """The calls are imported with `KafkaProducer`, the core with the first one that is made."""
    import subprocess
    import sys

    program = "import sys, kafka.producer.kafka; print([name for name in sys.modules if name == 'kafka._core.client'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
