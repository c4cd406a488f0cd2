"""The threads of the library."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from kafka._runtime import workers


def test_an_interpreter_without_daemon_threads_gets_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    class Thread(threading.Thread):
        def __init__(self, *, daemon: bool, **options: object) -> None:
            if daemon:
                raise RuntimeError("daemon threads are disabled in this (sub)interpreter")
            super().__init__(daemon=daemon, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(workers, "Thread", Thread)
    done: list[int] = []
    thread = workers.daemon_thread(done.append, "work", (1,))
    thread.start()
    thread.join(10)
    assert not thread.daemon
    assert done == [1]


_PROGRAM = """
import _interpreters
interpreter = _interpreters.create()
failure = _interpreters.run_string(interpreter, '''
from kafka import KafkaConsumer, KafkaProducer
for client in (KafkaConsumer, KafkaProducer):
    client(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=0).close()
''')
assert failure is None, failure.formatted
_interpreters.destroy(interpreter)
"""


@pytest.mark.skipif(sys.version_info < (3, 13), reason="interpreters with their own lock have a module since 3.13")
def test_clients_live_in_a_sub_interpreter() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True, timeout=60)
