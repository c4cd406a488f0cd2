"""The context of a trace in the headers of a record, both ways.

The global propagator of OpenTelemetry decides on the format, so that baggage, B3 and others work. Where it is the
default one, and there is no baggage, the bytes of ``traceparent`` are written and read here, in a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from opentelemetry import baggage, propagate, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.textmap import Getter, Setter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

Pairs: TypeAlias = "list[tuple[str, bytes]]"

_TRACEPARENT: Final = "traceparent"
_LENGTH: Final = 55


class _PairSetter(Setter[Any]):
    def set(self, carrier: Pairs, key: str, value: str) -> None:
        carrier.append((key, value.encode()))


class _PairGetter(Getter[Any]):
    def get(self, carrier: Any, key: str) -> list[str] | None:
        # The last one of a name is the newest: whatever passes a record on appends.
        for name, data in reversed(carrier):
            if name.lower() == key.lower() and data is not None:
                return [bytes(data).decode("utf-8", "replace")]
        return None

    def keys(self, carrier: Any) -> list[str]:
        return [name for name, _ in carrier]


_SETTER: Final = _PairSetter()
_GETTER: Final = _PairGetter()


def _is_default() -> bool:
    """Whether the global propagator is that of the W3C's trace context and baggage."""
    return _is_of_w3c(propagate.get_global_textmap())


@lru_cache(maxsize=4)
def _is_of_w3c(propagator: object) -> bool:
    parts = [type(part) for part in getattr(propagator, "_propagators", ())]
    return type(propagator) is CompositePropagator and parts in (
        [TraceContextTextMapPropagator, W3CBaggagePropagator],
        [TraceContextTextMapPropagator],
    )


def header_pairs(headers: Any) -> list[Any]:
    """Return headers as a list of pairs, whatever form the application has."""
    if not headers:
        return []
    return list(headers.items() if isinstance(headers, Mapping) else headers)


def has_context(pairs: Iterable[Any]) -> bool:
    """Whether headers have the context of a trace already."""
    names = {name for name, _ in pairs}
    return bool(names & _FIELDS) or (
        not _is_default() and bool(names & (propagate.get_global_textmap().fields - _BAGGAGE))
    )


_FIELDS: Final = frozenset({_TRACEPARENT})
_BAGGAGE: Final = frozenset({"baggage", "tracestate"})


def headers_of(context: Context, span: trace.Span) -> Pairs:
    """Return the headers with the context of a span, and with the baggage of `context`."""
    if (not context or not baggage.get_all(context)) and _is_default():
        trace_id, span_id, _, flags, state, is_valid = span.get_span_context()  # its properties take twice as long
        if not is_valid:
            return []
        text = b"00-%032x-%016x-%02x" % (trace_id, span_id, flags)
        if state is trace.DEFAULT_TRACE_STATE or not state:
            return [(_TRACEPARENT, text)]
        return [(_TRACEPARENT, text), ("tracestate", state.to_header().encode())]
    pairs: Pairs = []
    propagate.inject(pairs, trace.set_span_in_context(span, context), setter=_SETTER)
    return pairs


def context_of(headers: Any, context: Context | None = None) -> Context:
    """Return the context in the headers of a record, its baggage too; `context` where they have none."""
    pairs = header_pairs(headers)
    return propagate.extract(pairs, context, getter=_GETTER) if pairs else context or Context()


def span_context_of(headers: Any) -> trace.SpanContext | None:
    """Return the place in a trace that the headers of a record name; None if they name none, or in no valid form."""
    if not headers:
        return None
    if not _is_default():
        found = trace.get_current_span(context_of(headers)).get_span_context()
        return found if found.is_valid else None
    for name, data in reversed(headers):
        if name == _TRACEPARENT and data is not None:
            return _parsed(data)
    return None


def _parsed(data: bytes) -> trace.SpanContext | None:
    if len(data) < _LENGTH or not data[2] == data[35] == data[52] == 45:  # dashes
        return None
    if data[:2] == b"00" and len(data) != _LENGTH:
        return None
    try:
        trace_id, span_id, flags = int(data[3:35], 16), int(data[36:52], 16), int(data[53:55], 16)
    except ValueError:
        return None
    if not trace_id or not span_id or data[:2] == b"ff":
        return None
    return trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags))
