"""OpenTelemetry: spans and metrics of all clients. Needs ``opentelemetry-api`` (``pip install purekafka[otel]``).

``opentelemetry-instrument python app.py`` calls `instrument` before the program starts, so the program needs no line of
this. A client is traced if it is made after that. `process` is for programs that take records by `poll()`, and for
asyncio: which part of a program processes a record, only the program can say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.otel.instrumentation import Instrumentor, instrument, process, uninstrument

__all__ = ["Instrumentor", "instrument", "process", "uninstrument"]

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, {"instrumentation": " ".join(__all__)})
