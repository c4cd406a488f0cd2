"""Runs a program of the documentation as a user does, in its own process, with other defaults of the options.

    python -m test.embedded.recipes.child PROGRAM '{"defaults": {}, "signals": {"poll": {"2": "STOP"}}}'

``signals`` are signals that the process sends to itself at a place that matters: after the second poll() that returned
records, or before a commit(). So it is killed, or paused, exactly there.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.config import OPTIONS


def signalled(place: str, at: dict[str, str]) -> Callable[[], None]:
    """Return what to call each time the program is at a place: it sends the signals of these times."""
    times = 0

    def here() -> None:
        nonlocal times
        times += 1
        if (name := at.get(str(times))) is not None:
            print(f"{name} at {place} {times}", file=sys.stderr, flush=True)
            os.kill(os.getpid(), getattr(signal, f"SIG{name}"))

    return here


def main() -> None:
    program, text = sys.argv[1:]
    options = json.loads(text)
    for name, value in options["defaults"].items():
        OPTIONS[name].default = value
    signals = options.get("signals", {})
    polled, committing, flushing = (
        signalled(place, signals.get(place, {})) for place in ("poll", "commit", "transaction")
    )
    poll, commit, begin = KafkaConsumer.poll, KafkaConsumer.commit, KafkaProducer.commit_transaction

    def poll_here(self: Any, timeout_ms: Any = 0, *args: Any, **kwargs: Any) -> Any:
        records = poll(self, min(timeout_ms, 100), *args, **kwargs)
        if records:
            polled()
        return records

    def commit_here(self: Any, *args: Any, **kwargs: Any) -> Any:
        committing()
        return commit(self, *args, **kwargs)

    def end_here(self: Any, *args: Any, **kwargs: Any) -> Any:
        flushing()
        return begin(self, *args, **kwargs)

    KafkaConsumer.poll = poll_here  # type: ignore[method-assign]
    KafkaConsumer.commit = commit_here  # type: ignore[method-assign]
    KafkaProducer.commit_transaction = end_here  # type: ignore[method-assign]
    sys.path.insert(0, os.path.dirname(program))
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
