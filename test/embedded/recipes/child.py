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


#: Where a program may send itself a signal: in front of these calls, and behind a poll() that returned records.
CALLS = {
    "commit": (KafkaConsumer, "commit"),
    "transaction": (KafkaProducer, "commit_transaction"),
    "close": (KafkaProducer, "close"),
}


def before(method: Callable[..., Any], here: Callable[[], None]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        here()
        return method(*args, **kwargs)

    return called


def after_poll(poll: Callable[..., Any], here: Callable[[], None]) -> Callable[..., Any]:
    def polled(self: Any, timeout_ms: Any = 0, *args: Any, **kwargs: Any) -> Any:
        records = poll(self, min(timeout_ms, 100), *args, **kwargs)
        if records:
            here()
        return records

    return polled


def main() -> None:
    program, text = sys.argv[1:]
    options = json.loads(text)
    for name, value in options["defaults"].items():
        OPTIONS[name].default = value
    signals = options["signals"]
    for place, (owner, name) in CALLS.items():
        if place in signals:
            setattr(owner, name, before(getattr(owner, name), signalled(place, signals[place])))
    with open(program, encoding="utf-8") as file:
        if (
            "consumer.poll(" in file.read()
        ):  # an iteration stays as it is: a poll() that is replaced makes it another one
            KafkaConsumer.poll = after_poll(KafkaConsumer.poll, signalled("poll", signals.get("poll", {})))  # type: ignore[method-assign]
    sys.path.insert(0, os.path.dirname(program))
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
