"""Spans and metrics of the clients by OpenTelemetry's conventions for messaging (`kafka.otel.conventions`).

`KafkaTracer` is the `kafka._hooks.tracer` of a program that calls `kafka.otel.instrument`. A tracer must not cost a
record: what fails here is logged, once, and the record is sent without a span.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sized
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from kafka.otel import conventions as names
from kafka.otel.propagation import context_of, has_context, header_pairs, headers_of, span_context_of
from kafka.version import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.util.types import Attributes

    from kafka._hooks import ClientFacts, HeaderPairs
    from kafka.structs import TopicPartition

log = logging.getLogger("kafka.otel")

#: A span has this many links at most, by default, in the SDK.
_MOST_LINKS: Final = 128
# Topics whose attributes a producer keeps.
_MOST_TOPICS: Final = 1000
#: In place of spans of sends there is propagation only.
_SEND_SPANS: Final = "OTEL_PYTHON_KAFKA_SEND_SPANS"
#: Keys of records are shown in spans only where this says so: they may be personal data.
_MESSAGE_KEYS: Final = "OTEL_PYTHON_KAFKA_MESSAGE_KEYS"
_SUPPRESSED: Final = contexts._SUPPRESS_INSTRUMENTATION_KEY  # noqa: SLF001
# Older instrumentations set the plain name.
_SUPPRESSED_BEFORE: Final = "suppress_instrumentation"
_OFF: Final = frozenset({"none", "false", "0", "off"})
_ON: Final = frozenset({"true", "1", "on", "yes"})


class Telemetry:
    """The instruments that all clients share."""

    def __init__(self, tracer_provider: Any = None, meter_provider: Any = None) -> None:
        self.tracer = trace.get_tracer("kafka.otel", __version__, tracer_provider, names.SCHEMA_URL)
        meter = metrics.get_meter("kafka.otel", __version__, meter_provider, names.SCHEMA_URL)
        self.meter = meter
        self.enabled = True
        self.send_spans = os.environ.get(_SEND_SPANS, "").strip().lower() not in _OFF
        self.keys = os.environ.get(_MESSAGE_KEYS, "").strip().lower() in _ON
        self._has_failed = False
        seconds: dict[str, Any] = {"unit": "s", "explicit_bucket_boundaries_advisory": names.BUCKETS}
        self.durations = meter.create_histogram(
            names.OPERATION_DURATION, description="Duration of messaging operation initiated by a client.", **seconds
        )
        self.process_durations = meter.create_histogram(
            names.PROCESS_DURATION, description="Duration of processing operation.", **seconds
        )
        self.sent = meter.create_counter(
            names.SENT_MESSAGES, "{message}", "Number of messages producer attempted to send to the broker."
        )
        self.consumed = meter.create_counter(
            names.CONSUMED_MESSAGES, "{message}", "Number of messages that were delivered to the application."
        )

    def is_suppressed(self, context: Context) -> bool:
        """Whether there is nothing to trace in a context: an exporter may send through this library."""
        return not self.enabled or bool(context.get(_SUPPRESSED) or context.get(_SUPPRESSED_BEFORE))

    def drops(self, parent: trace.SpanContext) -> bool:
        """Whether a span below this one would not be sampled, so that it need not be made."""
        if not parent.is_valid or parent.trace_flags & 1:
            return False
        sampler = getattr(getattr(self.tracer, "_tracer", self.tracer), "sampler", None)
        below = "_remote_parent_not_sampled" if parent.is_remote else "_local_parent_not_sampled"
        return type(getattr(sampler, below, None)).__name__ == "StaticSampler" and "AlwaysOff" in str(
            getattr(sampler, below).get_description()
        )

    def failed(self, what: str) -> None:
        """Log the exception that is being handled, the first time."""
        if not self._has_failed:
            self._has_failed = True
            log.warning("Tracing failed while %s; records are not affected. This is logged once", what, exc_info=True)


def _error_type(error: BaseException) -> str:
    return type(error).__name__


def _end(span: trace.Span, error: BaseException | None = None) -> None:
    if error is not None and span.is_recording():
        span.set_attribute(names.ERROR_TYPE, _error_type(error))
        span.set_status(Status(StatusCode.ERROR, str(error)))
    span.end()


class _SentSpan:
    """The span of a call that sends; ended by reference, on whichever thread the records are settled."""

    __slots__ = ("_of", "_span")

    def __init__(self, span: trace.Span, of: ProducerTracing) -> None:
        self._span = span
        self._of = of

    def succeeded(self, metadata: Any = None) -> None:
        try:
            if metadata is not None:
                offset = metadata.offset
                place = self._of.place(metadata.topic_partition)
                self._span.set_attributes(place if offset < 0 else {**place, names.OFFSET: offset})
            self._span.end()
        except Exception:
            self._of.telemetry.failed("a span of send() was ended")

    def failed(self, error: BaseException) -> None:
        try:
            _end(self._span, error)
        except Exception:
            self._of.telemetry.failed("a span of send() was ended")


class _CallSpan:
    """The span of a call that sends no records of this process, such as a commit: it is a block, or `ended` ends it."""

    def __init__(
        self,
        telemetry: Telemetry,
        name: str,
        attributes: Callable[[], dict[str, Any]],
        measure: Callable[[float, BaseException | None], object] | None = None,
    ) -> None:
        self._telemetry = telemetry
        self._span: trace.Span = trace.INVALID_SPAN
        self._measure = measure
        self._began = perf_counter()
        try:
            if not telemetry.is_suppressed(contexts.get_current()):
                self._span = telemetry.tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes())
        except Exception:
            telemetry.failed("a span was begun")

    def ended(self, error: BaseException | None = None) -> None:
        if self._span is trace.INVALID_SPAN:
            return
        try:
            _end(self._span, error)
            if self._measure is not None:
                self._measure(perf_counter() - self._began, error)
        except Exception:
            self._telemetry.failed("a span was ended")

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace_back: object) -> None:
        self.ended(error)


class _Tracing:
    """The facts that the spans of one client share."""

    def __init__(self, telemetry: Telemetry, facts: ClientFacts) -> None:
        self.telemetry = telemetry
        self.facts = facts
        self._common: dict[str, Any] = {names.SYSTEM: "kafka", names.CLIENT_ID: facts.client_id}
        if facts.group_id:
            self._common[names.GROUP] = facts.group_id
        self._cluster_known = False

    def attributes(self, name: str, kind: str, topic: str | None = None) -> dict[str, Any]:
        """Return the attributes of a span at its start, for samplers too."""
        if not self._cluster_known and (cluster := self.facts.cluster_id):
            self._common[names.CLUSTER_ID] = cluster
            self._cluster_known = True
        found = {**self._common, names.OPERATION_NAME: name, names.OPERATION_TYPE: kind}
        if topic is not None:
            found[names.DESTINATION] = topic
        return found

    def settling(self, operation: str) -> _CallSpan:
        """Begin the span of a block that commits, or of a commit that ends later on the network thread."""
        return _CallSpan(
            self.telemetry,
            operation,
            lambda: self.attributes(operation, "settle"),
            lambda seconds, error: self.measure(operation, None, seconds, error),
        )

    def measured(self, operation: str, topic: str | None, error: BaseException | None = None) -> dict[str, Any]:
        """Return the attributes of a metric."""
        found: dict[str, Any] = {names.SYSTEM: "kafka", names.OPERATION_NAME: operation}
        if topic is not None:
            found[names.DESTINATION] = topic
        if self.facts.group_id:
            found[names.GROUP] = self.facts.group_id
        if error is not None:
            found[names.ERROR_TYPE] = _error_type(error)
        return found

    def measure(self, operation: str, topic: str | None, seconds: float, error: BaseException | None) -> None:
        """Record how long an operation took."""
        self.telemetry.durations.record(max(0.0, seconds), self.measured(operation, topic, error))

    def place_of(self, partition: TopicPartition) -> dict[str, Any]:
        """Return the attributes of a partition and its leader."""
        found: dict[str, Any] = {names.PARTITION: str(partition.partition)}
        address = self.facts.address(partition.topic, partition.partition)
        if address is not None:
            found[names.SERVER_ADDRESS], found[names.SERVER_PORT] = address
        return found


class ProducerTracing(_Tracing):
    """The tracer of one producer; see `kafka._hooks.ProducerTracer`."""

    def __init__(self, telemetry: Telemetry, facts: ClientFacts) -> None:
        super().__init__(telemetry, facts)
        self._cached: tuple[object, object, HeaderPairs] = (None, None, [])
        self._of_topics: dict[str, tuple[str, dict[str, Any]]] = {}
        self._place: tuple[TopicPartition | None, dict[str, Any]] = (None, {})

    def send(
        self, topic: str, key: object, value: object, headers: Any, partition: int | None, with_headers: bool
    ) -> tuple[_SentSpan | None, Any]:
        """Begin the span of a record."""
        try:
            # Each step here is one per record. An empty context has no span, and suppresses nothing.
            context = contexts.get_current()
            telemetry = self.telemetry
            if telemetry.is_suppressed(context) if context else not telemetry.enabled:
                return None, headers
            pairs = header_pairs(headers) if headers else []
            own = bool(pairs) and has_context(pairs)
            propagates = with_headers and not own
            current = trace.get_current_span(context) if context else trace.INVALID_SPAN
            if not telemetry.send_spans or (context and telemetry.drops(current.get_span_context())):
                more = self._current_headers(context, current) if propagates else ()
                return None, [*pairs, *more] if more else headers
            name, attributes = self._of_record(topic, key, value, partition)
            span = telemetry.tracer.start_span(
                name,
                context,
                SpanKind.PRODUCER if propagates else SpanKind.CLIENT,
                attributes,
                _links([headers_context]) if own and (headers_context := span_context_of(pairs)) else None,
            )
            # One that is not sampled has nothing to follow the record for.
            sent = _SentSpan(span, self) if span.is_recording() else None
            try:
                return sent, pairs + headers_of(context, span) if propagates else headers
            except Exception:
                telemetry.failed("the context of a record was written")
                return sent, headers
        except Exception:
            self.telemetry.failed("a span of send() was begun")
            return None, headers

    def _of_record(self, topic: str, key: object, value: object, partition: int | None) -> tuple[str, dict[str, Any]]:
        """Return name and attributes of a record's span at its start."""
        found = self._of_topics.get(topic)
        if found is None or not self._cluster_known:
            found = f"send {topic}", self.attributes("send", "send", topic)
            if len(self._of_topics) < _MOST_TOPICS:
                self._of_topics[topic] = found
        if partition is None and value is not None and not self.telemetry.keys:
            return found
        attributes = dict(found[1])
        if partition is not None:
            attributes[names.PARTITION] = str(partition)
        if value is None:
            attributes[names.TOMBSTONE] = True
        if self.telemetry.keys and key is not None:
            attributes[names.KEY] = key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
        return found[0], attributes

    def place(self, partition: TopicPartition) -> dict[str, Any]:
        """Return the attributes of a partition, looked up once for each batch: `settled` comes before its records."""
        of, place = self._place
        if of is not partition:
            place = self.place_of(partition)
            self._place = partition, place
        return place

    def _current_headers(self, context: Context, span: trace.Span) -> HeaderPairs:
        """Return the headers for a record without a span: the context of the span around it."""
        seen, of_span, more = self._cached
        if seen is not context or of_span is not span:
            more = headers_of(context, span)
            self._cached = context, span, more
        return more

    def send_many(self, topic: str, count: int, with_headers: bool) -> tuple[_SentSpan | None, HeaderPairs]:
        """Begin the span of many records."""
        try:
            context = contexts.get_current()
            telemetry = self.telemetry
            if telemetry.is_suppressed(context):
                return None, []
            current = trace.get_current_span(context)
            if not telemetry.send_spans or telemetry.drops(current.get_span_context()):
                return None, self._current_headers(context, current) if with_headers else []
            attributes = self.attributes("send", "send", topic)
            attributes[names.MESSAGE_COUNT] = count
            kind = SpanKind.PRODUCER if with_headers else SpanKind.CLIENT
            span = telemetry.tracer.start_span(f"send {topic}", context, kind, attributes)
            return _SentSpan(span, self), headers_of(context, span) if with_headers else []
        except Exception:
            self.telemetry.failed("a span of send_many() was begun")
            return None, []

    def settled(self, topic: str, count: int, seconds: float, error: BaseException | None) -> None:
        """Measure a batch."""
        self._place = None, {}  # the leader may be another one
        try:
            if not self.telemetry.enabled:
                return
            self.telemetry.sent.add(count, self.measured("send", topic, error))
            self.measure("send", topic, seconds, error)
        except Exception:
            self.telemetry.failed("a batch was measured")


def _links(found: Iterable[trace.SpanContext], attributes: Attributes = None) -> list[Link]:
    return [Link(each, attributes) for each in found]


# Which consumer has returned the records of a partition last: `process` is given nothing but the record.
_receivers: WeakValueDictionary[tuple[str, int], ConsumerTracing] = WeakValueDictionary()


class ConsumerTracing(_Tracing):
    """The tracer of one consumer; see `kafka._hooks.ConsumerTracer`."""

    def now(self) -> int:
        """Return the time as spans have it."""
        return time_ns()

    def received(self, began: int, taken: Mapping[TopicPartition, Sized]) -> None:
        """Make the span of a call that has taken records."""
        try:
            context = contexts.get_current()
            telemetry = self.telemetry
            for partition in taken:
                _receivers[partition.topic, partition.partition] = self
            if telemetry.is_suppressed(context):
                return
            ended = time_ns()
            counts = self._count(taken)
            total = sum(counts.values())
            if not total:
                return
            topic = next(iter(counts)) if len(counts) == 1 else None
            self.measure("poll", topic, (ended - began) / 1e9, None)
            if telemetry.drops(trace.get_current_span(context).get_span_context()):
                return
            attributes = self.attributes("poll", "receive", topic)
            attributes[names.MESSAGE_COUNT] = total
            if len(taken) == 1:
                attributes |= self.place_of(next(iter(taken)))
            span = telemetry.tracer.start_span(
                "poll" if topic is None else f"poll {topic}",
                context,
                SpanKind.CLIENT,
                attributes,
                _links(_contexts_of(taken.values())),
                start_time=began,
            )
            span.end(ended)
        except Exception:
            self.telemetry.failed("a span of poll() was made")

    def _count(self, taken: Mapping[TopicPartition, Sized]) -> dict[str, int]:
        """Count records by topic, and add them to the metric."""
        counts: dict[str, int] = {}
        for partition, records in taken.items():
            counts[partition.topic] = counts.get(partition.topic, 0) + len(records)
        for topic, count in counts.items():
            self.telemetry.consumed.add(count, self.measured("poll", topic))
        return counts

    def failed(self, began: int, error: BaseException) -> None:
        """Make the span of a call that has failed."""
        try:
            telemetry = self.telemetry
            if telemetry.is_suppressed(contexts.get_current()):
                return
            span = telemetry.tracer.start_span(
                "poll", kind=SpanKind.CLIENT, attributes=self.attributes("poll", "receive"), start_time=began
            )
            _end(span, error)
            self.measure("poll", None, (time_ns() - began) / 1e9, error)
        except Exception:
            self.telemetry.failed("a span of poll() was made")

    def processing(self, record: Any) -> ProcessBlock:
        """Return the block in which a record is processed."""
        return ProcessBlock(self.telemetry, [record], self)


def _contexts_of(chunks: Iterable[Any]) -> list[trace.SpanContext]:
    """Return the contexts in the headers of records, each once, as many as a span has links."""
    found: dict[tuple[int, int], trace.SpanContext] = {}
    before: Any = None
    for records in chunks:
        for record in records if isinstance(records, (list, tuple)) else ():  # columns have no headers at hand
            headers = record.headers
            if not headers or headers == before:
                continue
            before = headers
            one = span_context_of(headers)
            if one is not None:
                found[one.trace_id, one.span_id] = one
                if len(found) >= _MOST_LINKS:
                    return list(found.values())
    return list(found.values())


class ProcessBlock:
    """A block in which records are processed: its span is current there, and has the error that leaves the block.

    A single record without a span around the block continues the trace of its producer. Otherwise the span is below
    the one around it, and has links to the producers' spans.
    """

    def __init__(self, telemetry: Telemetry | None, records: list[Any], client: ConsumerTracing | None = None) -> None:
        self._telemetry = telemetry
        self._records = records
        self._client = client
        self._span: trace.Span = trace.INVALID_SPAN
        self._context: Context | None = None
        self._token: Any = None
        self._began = 0.0
        self._measured: dict[str, Any] = {}

    def __enter__(self) -> trace.Span:
        telemetry = self._telemetry
        if telemetry is not None and self._records and not telemetry.is_suppressed(contexts.get_current()):
            try:
                self._begin(telemetry)
            except Exception:
                telemetry.failed("a span of processing was begun")
        return self._span

    def _begin(self, telemetry: Telemetry) -> None:
        records = self._records
        first = records[0]
        topics = {record.topic for record in records}
        topic = first.topic if len(topics) == 1 else None
        client = self._client or _receivers.get((first.topic, first.partition))
        if client is not None:
            attributes = client.attributes("process", "process", topic)
        else:
            attributes = {names.SYSTEM: "kafka", names.OPERATION_NAME: "process", names.OPERATION_TYPE: "process"}
            if topic is not None:
                attributes[names.DESTINATION] = topic
        self._measured = {
            key: attributes[key]
            for key in (names.SYSTEM, names.OPERATION_NAME, names.DESTINATION, names.GROUP)
            if key in attributes
        }
        if len({(record.topic, record.partition) for record in records}) == 1:
            attributes[names.PARTITION] = str(first.partition)
        context, links = contexts.get_current(), []
        if len(records) == 1:
            attributes[names.OFFSET] = first.offset
            if first.value is None:
                attributes[names.TOMBSTONE] = True
            if telemetry.keys and first.key is not None:
                key = first.key
                attributes[names.KEY] = key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
            has_ambient = trace.get_current_span(context).get_span_context().is_valid
            if has_ambient:
                links = _contexts_of([records])
            else:
                context = context_of(first.headers, context)
        else:
            attributes[names.MESSAGE_COUNT] = len(records)
            links = _contexts_of([records])
        self._began = perf_counter()
        self._span = telemetry.tracer.start_span(
            "process" if topic is None else f"process {topic}", context, SpanKind.CONSUMER, attributes, _links(links)
        )
        self._context = trace.set_span_in_context(self._span, context)
        self._token = contexts.attach(self._context)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace_back: object) -> None:
        telemetry = self._telemetry
        if telemetry is None or self._context is None:
            return
        try:
            # An iterator that was dropped may be closed in another thread or task, where another context is current.
            if contexts.get_current() is self._context:
                contexts.detach(self._token)
            if isinstance(error, (GeneratorExit, StopIteration)):
                error = None
            _end(self._span, error)
            if error is not None:
                self._measured[names.ERROR_TYPE] = _error_type(error)
            telemetry.process_durations.record(perf_counter() - self._began, self._measured)
        except Exception:
            telemetry.failed("a span of processing was ended")


class KafkaTracer:
    """Makes the tracers of clients, and the spans of `process`."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self._has_warned = False

    def producer(self, facts: ClientFacts) -> ProducerTracing | None:
        """Return the tracer of a producer, unless another instrumentation traces it."""
        return None if self._is_traced(facts, "send") else ProducerTracing(self.telemetry, facts)

    def consumer(self, facts: ClientFacts) -> ConsumerTracing | None:
        """Return the tracer of a consumer, unless another instrumentation traces it."""
        return None if self._is_traced(facts, "__next__") else ConsumerTracing(self.telemetry, facts)

    def writing(self, topic: str | None) -> _CallSpan:
        """Begin the span of a block in which other processes send records: its context is not in these."""
        attributes = {names.SYSTEM: "kafka", names.OPERATION_NAME: "send", names.OPERATION_TYPE: "send"}
        if topic is not None:
            attributes[names.DESTINATION] = topic
        return _CallSpan(self.telemetry, "send" if topic is None else f"send {topic}", lambda: attributes)

    def _is_traced(self, facts: ClientFacts, method: str) -> bool:
        """Whether an instrumentation of OpenTelemetry has wrapped the class: then every span would be there twice."""
        made = vars(sys.modules["kafka"]).get(facts.face)
        wrapper = None if made is None else getattr(vars(made).get(method), "_self_wrapper", None)
        module = getattr(wrapper, "__module__", "")
        if not module.startswith("opentelemetry.instrumentation."):
            return False
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "%s is traced by %s already, so kafka.otel does not trace it. Set "
                "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=kafka to have the spans of kafka.otel, which cover all calls",
                facts.face,
                module,
            )
        return True


def process_block(telemetry: Telemetry | None, records: Any) -> ProcessBlock:
    """Return the block in which a record, a list of records, or the result of `poll()` is processed."""
    if isinstance(records, Mapping):
        found = [record for rows in records.values() for record in rows]
    elif isinstance(records, list):
        found = records
    else:
        found = [records]
    return ProcessBlock(telemetry, found)
