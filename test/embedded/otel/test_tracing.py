"""Spans of unchanged programs: which there are, what they have, how they are connected, and what they never change."""

from __future__ import annotations

import asyncio
import logging
import sys
import time

import pytest
from opentelemetry import baggage, context, propagate, trace
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.semconv.attributes import error_attributes, server_attributes
from opentelemetry.trace import SpanKind, StatusCode

import kafka.otel
from kafka import KafkaConsumer, KafkaProducer, TopicPartition, _hooks
from kafka.aio import AIOKafkaConsumer
from kafka.broker.faults import NO_REPLY
from kafka.errors import KafkaError, RecordDeserializationError

from .conftest import WAIT, Telemetry, ids, read, traceparent

FACES = "both"

DEPRECATED = {
    "messaging.client_id",
    "messaging.kafka.consumer.group",
    "messaging.kafka.destination.partition",
    "messaging.kafka.message.offset",
    "messaging.operation",
}
KNOWN = {
    value
    for module in (messaging_attributes, error_attributes, server_attributes)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str)
} - DEPRECATED


def test_a_record_has_a_span_until_it_is_settled_and_its_context_in_a_header(telemetry, make, broker):
    producer = make("producer", client_id="shop")
    metadata = producer.send("orders", b"1", headers=[("kind", b"new")]).get(WAIT)
    (span,) = telemetry.spans("send")
    assert (span.name, span.kind, span.status.status_code) == ("send orders", SpanKind.PRODUCER, StatusCode.UNSET)
    attributes = dict(span.attributes)
    assert attributes.pop("messaging.kafka.cluster.id")
    assert f"127.0.0.1:{attributes.pop('server.port')}" in broker.bootstrap_servers
    assert attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.client.id": "shop",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "0",
        "messaging.kafka.offset": metadata.offset,
        "server.address": "127.0.0.1",
    }
    assert span.instrumentation_scope.schema_url == "https://opentelemetry.io/schemas/1.44.0"
    (record,) = broker.records("orders")
    assert record.headers == [("kind", b"new"), ("traceparent", traceparent(span))]


@pytest.mark.parametrize(
    "records",
    [
        [b"a", b"b", b"c"],
        [(b"k", b"a"), (None, b"b"), (b"l", b"c")],
        [(b"k", b"a", [("x", b"1")]), (None, b"b", None, 0), b"c"],
    ],
    ids=["values", "pairs", "tuples"],
)
def test_send_many_has_one_span_whose_context_is_in_each_record(telemetry, make, broker, records):
    producer = make("producer")
    sent = producer.send_many("orders", records)
    sent.get(WAIT)
    (span,) = telemetry.spans("send")
    assert span.attributes["messaging.batch.message_count"] == 3
    found = broker.records("orders")
    assert [record.value for record in found] == [b"a", b"b", b"c"]
    assert [dict(record.headers)["traceparent"] for record in found] == [traceparent(span)] * 3
    if len(records[0]) == 3:
        assert found[0].headers[0] == ("x", b"1")
    assert [each.place[0].count for each in sent] == [3, 3, 3]


def test_more_records_than_a_batch_has_room_for_have_one_span(telemetry, make, broker):
    producer = make("producer", batch_size=2000)
    producer.send_many("orders", [b"%04d" % number * 20 for number in range(300)]).get(WAIT)
    (span,) = telemetry.spans("send")
    found = broker.records("orders")
    assert [record.value for record in found] == [b"%04d" % number * 20 for number in range(300)]
    assert {dict(record.headers)["traceparent"] for record in found} == {traceparent(span)}


@pytest.mark.one_face  # a method of the synchronous producer
def test_columns_have_one_span_whose_context_is_in_each_record(telemetry, make, broker):
    import pyarrow as pa

    producer = make("producer")
    producer.send_columns("payments", pa.array([b"a", b"b"]), keys=pa.array([b"k", b"l"])).get(WAIT)
    (span,) = telemetry.spans("send")
    assert (span.kind, span.attributes["messaging.batch.message_count"]) == (SpanKind.PRODUCER, 2)
    assert [record.headers for record in broker.records("payments")] == [[("traceparent", traceparent(span))]] * 2
    headers = pa.array(
        [[{"key": "x", "value": b"1"}]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    producer.send_columns("orders", pa.array([b"c"]), headers=headers).get(WAIT)
    assert [record.headers for record in broker.records("orders")] == [[("x", b"1")]]
    assert telemetry.spans("send", 2)[1].kind is SpanKind.CLIENT  # its context is in no record


def test_the_trace_goes_from_the_span_around_send_to_the_block_that_processes(telemetry, make):
    producer = make("producer")
    consumer = make("consumer", "orders", group_id="g")
    with telemetry.tracer.start_as_current_span("request") as request:
        producer._run.run(lambda: producer.client.send_and_wait("orders", b"1")) if hasattr(
            producer, "_run"
        ) else producer.send("orders", b"1").get(WAIT)
    (record,) = read(consumer, 1)
    with kafka.otel.process(record) as block, telemetry.tracer.start_as_current_span("inside") as inside:
        assert trace.get_current_span() is inside
    (sent,) = telemetry.spans("send")
    (process,) = telemetry.spans("process")
    (polled,) = telemetry.spans("poll")
    if not hasattr(producer, "_run"):  # the adapter of the tests sends in a task with another context
        assert ids(sent)[0] == ids(request)[0]
        assert sent.parent.span_id == ids(request)[1]
    assert ids(process) == ids(block)
    assert (process.name, process.kind) == ("process orders", SpanKind.CONSUMER)
    assert ids(process)[0] == ids(sent)[0] == ids(inside)[0]
    assert process.parent.span_id == ids(sent)[1]
    assert process.attributes["messaging.consumer.group.name"] == "g"
    assert process.attributes["messaging.kafka.offset"] == 0
    assert (polled.name, polled.kind, polled.parent) == ("poll orders", SpanKind.CLIENT, None)
    assert [ids(link.context) for link in polled.links] == [ids(sent)]
    assert polled.attributes["messaging.batch.message_count"] == 1


def test_with_a_span_around_the_block_there_are_links(telemetry, make):
    producer = make("producer")
    consumer = make("consumer", "orders", group_id=None)
    producer.send("orders", b"1").get(WAIT)
    producer.send("orders", None, key=b"gone").get(WAIT)
    records = read(consumer, 2)
    first, second = telemetry.spans("send", 2)
    assert second.attributes["messaging.kafka.message.tombstone"] is True
    with telemetry.tracer.start_as_current_span("job") as job, kafka.otel.process(records[1]):
        pass
    with kafka.otel.process(records):
        pass
    one, both = telemetry.spans("process", 2)
    assert one.parent.span_id == ids(job)[1]
    assert [ids(link.context) for link in one.links] == [ids(second)]
    assert one.attributes["messaging.kafka.message.tombstone"] is True
    assert both.parent is None
    assert [ids(link.context) for link in both.links] == [ids(first), ids(second)]
    assert both.attributes["messaging.batch.message_count"] == 2


def test_an_exception_that_leaves_the_block_is_in_its_span(telemetry, make, broker):
    broker.append("orders", value=b"1")
    (record,) = read(make("consumer", "orders", group_id=None), 1)
    with pytest.raises(ZeroDivisionError), kafka.otel.process(record):
        1 / 0  # noqa: B018
    (span,) = telemetry.spans("process")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "ZeroDivisionError"
    assert not trace.get_current_span().get_span_context().is_valid


def fail(consumer):
    for record in consumer:
        raise ZeroDivisionError(record.offset)


@pytest.mark.one_face  # in asyncio only the program knows where a record's processing ends
def test_an_iteration_processes_each_record_in_a_span_that_is_current_in_its_body(telemetry, make, broker):
    producer = make("producer")
    for value in (b"1", b"2", b"3"):
        producer.send("orders", value).get(WAIT)
    sent = telemetry.spans("send", 3)
    consumer = make("consumer", "orders", group_id="g")
    for record in consumer:
        current = trace.get_current_span().get_span_context()
        assert current.trace_id == ids(sent[record.offset])[0]
        if record.offset == 1:
            break
    assert not trace.get_current_span().get_span_context().is_valid
    assert len(telemetry.spans("process", 2)) == 2
    with pytest.raises(ZeroDivisionError):
        fail(consumer)
    assert not trace.get_current_span().get_span_context().is_valid
    assert telemetry.spans("process", 3)[2].attributes["messaging.kafka.offset"] == 2
    consumer.seek_to_beginning()
    assert next(consumer).offset == 0  # without a loop there is no span of the processing
    telemetry.spans("process", 3)


@pytest.mark.one_face  # an asynchronous iteration, written out
def test_an_asynchronous_iteration_leaves_no_span_behind(telemetry, broker, caplog):
    for number in range(3):
        broker.append("orders", value=b"%d" % number)

    async def main():
        async with AIOKafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            async for record in consumer:
                with kafka.otel.process(record):
                    await asyncio.sleep(0)
                if record.offset == 1:
                    break
            assert not trace.get_current_span().get_span_context().is_valid

    asyncio.run(main())
    telemetry.spans("process", 2)
    assert [span.attributes["messaging.batch.message_count"] for span in telemetry.spans("poll")] == [3]
    assert "detach" not in caplog.text


def test_a_commit_has_a_span(telemetry, make, broker):
    broker.append("orders", value=b"1")
    consumer = make("consumer", "orders", group_id="g", enable_auto_commit=False)
    read(consumer, 1)
    consumer.commit()
    (span,) = telemetry.spans("commit")
    assert (span.name, span.kind) == ("commit", SpanKind.CLIENT)
    assert span.attributes["messaging.operation.type"] == "settle"
    assert span.attributes["messaging.consumer.group.name"] == "g"
    with broker.intercept("OffsetCommit", lambda _exchange: NO_REPLY, before=True), pytest.raises(KafkaError) as raised:
        consumer.commit({TopicPartition("orders", 0): 1}, timeout_ms=50)
    _, failed = telemetry.spans("commit", 2)
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes["error.type"] == type(raised.value).__name__


def test_asynchronous_commits_have_spans(telemetry, make, broker):
    broker.append("orders", value=b"1")
    consumer = make("consumer", "orders", group_id="g", enable_auto_commit=False)
    read(consumer, 1)
    with telemetry.tracer.start_as_current_span("job") as job:
        consumer.commit_async()
    (span,) = telemetry.spans("commit")
    assert (span.name, span.kind, span.status.status_code) == ("commit", SpanKind.CLIENT, StatusCode.UNSET)
    assert span.parent is not None
    assert span.parent.span_id == job.get_span_context().span_id
    broker.fail("OffsetCommit", "GROUP_AUTHORIZATION_FAILED")
    consumer.commit_async({TopicPartition("orders", 0): 1})
    _, failed = telemetry.spans("commit", 2)
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes["error.type"] == "GroupAuthorizationFailedError"


def test_automatic_commits_have_spans(telemetry, make, broker):
    broker.append("orders", value=b"1")
    consumer = make("consumer", "orders", group_id="g", auto_commit_interval_ms=20)
    read(consumer, 1)
    deadline = time.monotonic() + WAIT
    while not any(span.name == "commit" for span in telemetry.all()) and time.monotonic() < deadline:
        consumer.poll(timeout_ms=10)
    broker.append("orders", value=b"2")
    read(consumer, 1)
    consumer.close()  # commits what was returned, unless a poll did
    requests = sum(one.name == "OffsetCommit" for one in broker.requests)
    assert requests >= 2
    spans = telemetry.spans("commit", requests)
    assert {span.attributes["messaging.consumer.group.name"] for span in spans} == {"g"}


def test_records_and_offsets_of_a_transaction_have_spans(telemetry, make, broker):
    producer = make("producer", transactional_id="mover")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"1")
    producer.send_offsets_to_transaction({TopicPartition("payments", 0): 1}, "g")
    producer.commit_transaction()
    producer.begin_transaction()
    producer.send("orders", b"2")
    producer.abort_transaction()
    first, second = telemetry.spans("send", 2)
    (offsets,) = telemetry.spans("send_offsets_to_transaction")
    assert first.status.status_code is StatusCode.UNSET
    assert offsets.attributes["messaging.operation.type"] == "settle"
    committed = broker.records("orders", committed=True)
    assert [dict(record.headers)["traceparent"] for record in committed] == [traceparent(first)]
    assert second.end_time is not None


def test_a_share_consumer_has_spans_of_poll_processing_and_commit(telemetry, make):
    producer = make("producer")
    producer.send("orders", b"1").get(WAIT)
    producer.send("orders", b"2").get(WAIT)
    first, second = telemetry.spans("send", 2)
    share = make("share", "orders", group_id="workers", share_acknowledgement_mode="explicit")
    done = 0
    while done < 2:
        for rows in share.poll(timeout_ms=WAIT * 1000).values():
            for record in rows:
                with share.processing(record):
                    done += 1
                    if record.offset == 1 and record.delivery_count == 1:
                        raise ValueError(record)
    share.commit()
    polled = [span for span in telemetry.all() if span.name == "poll orders"]
    assert {ids(link.context) for span in polled for link in span.links} == {ids(first), ids(second)}
    one, failed = [span for span in telemetry.all() if span.name == "process orders"][:2]
    assert one.parent.span_id == ids(first)[1]
    assert one.status.status_code is StatusCode.UNSET
    assert failed.parent.span_id == ids(second)[1]
    assert failed.attributes["error.type"] == "ValueError"
    assert telemetry.spans("commit")[0].attributes["messaging.consumer.group.name"] == "workers"


@pytest.mark.one_face  # as above
def test_an_iteration_of_a_share_consumer_that_accepts_implicitly_has_spans(telemetry, make, broker):
    broker.append("orders", value=b"1")
    broker.append("orders", value=b"2")
    share = make("share", "orders", group_id="workers", consumer_timeout_ms=WAIT * 1000)
    seen = []
    for record in share:
        assert trace.get_current_span().get_span_context().is_valid
        seen.append(record.offset)
        if len(seen) == 2:
            break
    assert seen == [0, 1]
    telemetry.spans("process", 2)


def test_every_failed_record_has_a_span_with_its_error(telemetry, make, broker):
    """O6: refused, too large for the broker, given up, closed before it was sent."""
    producer = make("producer", max_request_size=5000, delivery_timeout_ms=400, request_timeout_ms=200, linger_ms=0)
    expected = []
    try:
        refused = producer.send("orders", b"x" * 9000)
        expected.append(type(refused.exception).__name__)
    except KafkaError as error:
        expected.append(type(error).__name__)
    broker.create_topic("small", configs={"max.message.bytes": "100"})
    for topic, value in (("small", b"x" * 500), ("orders", b"late")):
        hang = broker.intercept("Produce", lambda _exchange: NO_REPLY, before=True) if topic == "orders" else None
        sent = producer.send(topic, value)
        with pytest.raises(KafkaError) as raised:
            sent.get(WAIT)
        expected.append(type(raised.value).__name__)
        if hang is not None:
            hang.remove()
    with pytest.raises(TypeError):
        producer.send("orders", 5)
    expected.append("TypeError")
    spans = telemetry.spans("send", 4)
    assert {span.status.status_code for span in spans} == {StatusCode.ERROR}
    found = [span.attributes["error.type"] for span in spans]
    assert found == expected


def test_a_batch_of_send_many_that_fails_is_an_error(telemetry, make, broker):
    broker.create_topic("small", configs={"max.message.bytes": "100"})
    producer = make("producer")
    with pytest.raises(KafkaError):
        producer.send_many("small", [b"x" * 500, b"y"]).get(WAIT)
    (span,) = telemetry.spans("send")
    assert span.status.status_code is StatusCode.ERROR


def test_a_poll_that_raises_has_a_span_with_the_error(telemetry, make, broker):
    broker.append("orders", value=b"\xff")
    consumer = make("consumer", "orders", group_id=None, value_deserializer=lambda data: data.decode())
    with pytest.raises(RecordDeserializationError):
        read(consumer, 1)
    (span,) = telemetry.spans("poll")
    assert span.attributes["error.type"] == "RecordDeserializationError"


def test_an_empty_poll_has_no_span(telemetry, make):
    consumer = make("consumer", "orders", group_id=None)
    assert consumer.poll(timeout_ms=50) == {}
    assert telemetry.all() == []


def test_links_are_bounded_and_bad_contexts_are_tolerated(telemetry, make, broker):
    good = b"00-%032x-%016x-01"
    for number in range(1, 201):
        broker.append("orders", value=b"x", headers=[("traceparent", good % (number, number))])
    for bad in (b"", b"junk", b"\xff" * 55, None, good % (0, 1), b"ff" + (good % (1, 1))[2:], (good % (7, 7))[:-1]):
        broker.append("payments", value=b"x", headers=[("traceparent", bad)], partition=0)
    # Whatever passes a record on appends: the last one counts.
    broker.append(
        "payments", value=b"x", headers=[("traceparent", good % (5, 5)), ("traceparent", good % (6, 6))], partition=0
    )
    consumer = make("consumer", group_id=None)
    consumer.assign([TopicPartition("orders", 0)])
    read(consumer, 200)
    spans = [span for span in telemetry.all() if span.name == "poll orders"]
    assert all(len(span.links) <= 128 for span in spans)
    assert sum(len(span.links) for span in spans) >= 128
    consumer.assign([TopicPartition("payments", 0)])
    for record in read(consumer, 8):
        with kafka.otel.process(record):
            pass
    links = [link for span in telemetry.all() if span.name == "poll payments" for link in span.links]
    assert [ids(link.context) for link in links] == [(6, 6)]
    parents = [span.parent for span in telemetry.spans("process", 8)]
    assert [parent.span_id for parent in parents if parent is not None] == [6]


def test_a_context_that_a_record_has_is_kept_and_not_doubled(telemetry, make, broker):
    producer = make("producer")
    own = b"00-%032x-%016x-01" % (7, 8)
    headers = [("traceparent", own)]
    producer.send("orders", b"1", headers=headers).get(WAIT)
    producer.send_many("orders", [(None, b"2", headers)]).get(WAIT)
    first, _ = telemetry.spans("send", 2)
    assert first.kind is SpanKind.CLIENT
    assert [ids(link.context) for link in first.links] == [(7, 8)]
    assert [record.headers for record in broker.records("orders")] == [[("traceparent", own)]] * 2
    assert headers == [("traceparent", own)]


@pytest.mark.parametrize(
    "headers",
    [None, [], (), (("a", b"1"),), [["a", b"1"]], {"a": b"1"}],
    ids=["none", "list", "tuple", "pair", "lists", "dict"],
)
def test_headers_of_the_application_are_never_changed(telemetry, make, broker, headers):
    before = repr(headers)
    make("producer").send("orders", b"1", headers=headers).get(WAIT)
    assert repr(headers) == before
    (record,) = broker.records("orders")
    assert [name for name, _ in record.headers] == (["a", "traceparent"] if headers else ["traceparent"])


def test_bad_arguments_raise_what_they_raise_without_a_tracer(telemetry, make):
    producer = make("producer")
    for arguments in ({"headers": 5}, {"headers": [("a",)]}, {"headers": [("a", "text")]}, {"value": "text"}):
        with pytest.raises(TypeError) as traced:
            producer.send("orders", **{"value": b"x", **arguments}).get(WAIT)
        kafka.otel.uninstrument()
        with pytest.raises(TypeError) as plain:
            make("producer").send("orders", **{"value": b"x", **arguments}).get(WAIT)
        assert str(traced.value) == str(plain.value)


class Broken:
    """A tracer of OpenTelemetry that raises."""

    def start_span(self, *_args, **_options):
        raise RuntimeError("the tracer is broken")


def test_a_tracer_that_raises_loses_no_record_and_is_logged_once(telemetry, make, broker, caplog):
    _hooks.tracer.telemetry.tracer = Broken()
    producer = make("producer")
    with caplog.at_level(logging.WARNING, "kafka.otel"):
        for _ in range(3):
            producer.send("orders", b"1").get(WAIT)
        producer.send_many("orders", [b"2"] * 3).get(WAIT)
        records = read(make("consumer", "orders", group_id=None), 6)
        with kafka.otel.process(records):
            pass
    assert [record.value for record in records] == [b"1"] * 3 + [b"2"] * 3
    assert caplog.text.count("Tracing failed while") == 1


def test_suppression_is_honoured(telemetry, make, broker):
    producer = make("producer")
    producer.partitions_for("orders")
    token = context.attach(context.set_value(context._SUPPRESS_INSTRUMENTATION_KEY, True))
    try:
        producer.send("orders", b"1").get(WAIT)
        producer.send_many("orders", [b"1"]).get(WAIT)
        consumer = make("consumer", "orders", group_id=None)
        with kafka.otel.process(read(consumer, 2)):
            pass
    finally:
        context.detach(token)
    if not hasattr(producer, "_run"):  # as above: the adapter's tasks have another context
        assert telemetry.all() == []
        assert [record.headers for record in broker.records("orders")] == [[], []]


def test_every_attribute_is_one_of_the_conventions(telemetry, make, broker, monkeypatch):
    """O7. Required by the model: system, name and type of the operation, and the destination of one record."""
    producer = make("producer", client_id="shop")
    consumer = make("consumer", "orders", group_id="g")
    producer.send("orders", b"1", partition=0).get(WAIT)
    producer.send_many("orders", [b"2"] * 2).get(WAIT)
    with pytest.raises(TypeError):
        producer.send("orders", 3)
    for record in read(consumer, 3):
        with kafka.otel.process(record):
            pass
    consumer.commit()
    kinds = {
        "send": SpanKind.PRODUCER,
        "receive": SpanKind.CLIENT,
        "process": SpanKind.CONSUMER,
        "settle": SpanKind.CLIENT,
    }
    for span in telemetry.all():
        assert set(span.attributes) <= KNOWN, span.name
        assert span.attributes["messaging.system"] == "kafka"
        operation = span.attributes["messaging.operation.type"]
        assert operation in {each.value for each in messaging_attributes.MessagingOperationTypeValues}
        assert span.kind is kinds[operation]
        assert span.name.split(" ")[0] == span.attributes["messaging.operation.name"]
        if operation in {"send", "process"}:
            assert span.attributes["messaging.destination.name"] == "orders"
        assert type(span.attributes.get("messaging.destination.partition.id", "")) is str
        assert "messaging.kafka.message.key" not in span.attributes


def test_metrics_match_the_conventions_and_the_java_agent(telemetry, make, broker):
    producer = make("producer", client_id="shop")
    consumer = make("consumer", "orders", group_id="g", client_id="biller")
    producer.send_many("orders", [b"1"] * 5).get(WAIT)
    for record in read(consumer, 5):
        with kafka.otel.process(record):
            pass
    consumer.poll(timeout_ms=50)
    found = telemetry.metrics()
    sent = found["messaging.client.sent.messages"]
    assert (sent.unit, sum(point.value for point in sent.data.data_points)) == ("{message}", 5)
    consumed = found["messaging.client.consumed.messages"]
    assert sum(point.value for point in consumed.data.data_points) == 5
    assert consumed.data.data_points[0].attributes["messaging.consumer.group.name"] == "g"
    durations = found["messaging.client.operation.duration"]
    assert durations.unit == "s"
    assert {point.attributes["messaging.operation.name"] for point in durations.data.data_points} >= {"send", "poll"}
    assert durations.data.data_points[0].explicit_bounds[0] == 0.005
    assert found["messaging.process.duration"].data.data_points[0].count == 5
    records = found["kafka.producer.record_send_total"]
    assert [(point.value, dict(point.attributes)) for point in records.data.data_points] == [
        (5, {"client-id": "shop", "topic": "orders"})
    ]
    lag = found["kafka.consumer.records_lag"]
    assert [(point.value, dict(point.attributes)) for point in lag.data.data_points] == [
        (0, {"client-id": "biller", "topic": "orders", "partition": "0"})
    ]
    kafka.otel.uninstrument()
    assert not [name for name in telemetry.metrics() if name.startswith("kafka.")]


def test_baggage_and_other_propagators_go_with_the_record(telemetry, make, broker):
    producer = make("producer")
    producer.partitions_for("orders")
    token = context.attach(baggage.set_baggage("tenant", "acme"))
    try:
        producer.send("orders", b"1").get(WAIT)
    finally:
        context.detach(token)
    if hasattr(producer, "_run"):
        return  # as above: the adapter's tasks have another context
    (record,) = read(make("consumer", "orders", group_id=None), 1)
    assert [name for name, _ in record.headers] == ["traceparent", "baggage"]
    with kafka.otel.process(record) as span:
        assert span.get_span_context().is_valid
        assert baggage.get_baggage("tenant") == "acme"


class Numbers:
    """A propagator with a header of its own."""

    fields = {"x-number"}

    def inject(self, carrier, context=None, setter=None):
        found = trace.get_current_span(context).get_span_context()
        setter.set(carrier, "x-number", f"{found.trace_id}/{found.span_id}")

    def extract(self, carrier, context=None, getter=None):
        (text,) = getter.get(carrier, "x-number") or ["1/1"]
        one, other = map(int, text.split("/"))
        return trace.set_span_in_context(
            trace.NonRecordingSpan(trace.SpanContext(one, other, is_remote=True, trace_flags=trace.TraceFlags(1))),
            context,
        )


def test_the_global_propagator_decides_on_the_headers(telemetry, make, monkeypatch):
    before = propagate.get_global_textmap()
    propagate.set_global_textmap(Numbers())
    try:
        make("producer").send("orders", b"1").get(WAIT)
        (record,) = read(make("consumer", "orders", group_id=None), 1)
        (sent,) = telemetry.spans("send")
        assert list(record.headers) == [("x-number", "/".join(map(str, ids(sent))).encode())]
        assert [ids(link.context) for link in telemetry.spans("poll")[0].links] == [ids(sent)]
        with kafka.otel.process(record):
            pass
        assert telemetry.spans("process")[0].parent.span_id == ids(sent)[1]
    finally:
        propagate.set_global_textmap(before)


@pytest.mark.one_face  # the sampler decides below both faces
def test_below_a_span_that_is_not_sampled_there_is_only_propagation(make, broker):
    telemetry = Telemetry(ParentBased(TraceIdRatioBased(0)))
    try:
        producer = make("producer")
        with telemetry.tracer.start_as_current_span("request") as request:
            producer.send("orders", b"1").get(WAIT)
            producer.send_many("orders", [b"2"]).get(WAIT)
        (first, second) = broker.records("orders")
        assert first.headers == second.headers == [("traceparent", traceparent(request))]
        assert telemetry.all() == []
    finally:
        telemetry.close()
    telemetry = Telemetry(ALWAYS_OFF)
    try:
        make("producer").send("orders", b"3").get(WAIT)
        assert dict(broker.records("orders")[2].headers)["traceparent"][-2:] in {b"00", b"02"}
    finally:
        telemetry.close()


@pytest.mark.one_face  # the environment is that of the process
def test_send_spans_none_propagates_only(make, broker, monkeypatch):
    monkeypatch.setenv("OTEL_PYTHON_KAFKA_SEND_SPANS", "none")
    monkeypatch.setenv("OTEL_PYTHON_KAFKA_MESSAGE_KEYS", "true")
    telemetry = Telemetry()
    try:
        producer = make("producer")
        with telemetry.tracer.start_as_current_span("request") as request:
            producer.send("orders", b"1", key=b"ada").get(WAIT)
        producer.send("orders", b"2").get(WAIT)
        first, second = broker.records("orders")
        assert first.headers == [("traceparent", traceparent(request))]
        assert second.headers == []
        assert [span.name for span in telemetry.all()] == ["request"]
        with kafka.otel.process(first):
            pass
        assert telemetry.spans("process")[0].attributes["messaging.kafka.message.key"] == "ada"
    finally:
        telemetry.close()


@pytest.mark.one_face  # that instrumentation knows the synchronous classes only
def test_beside_the_instrumentation_of_contrib_there_are_no_double_spans(telemetry, make, broker, caplog):
    wrapt = pytest.importorskip("wrapt")

    def wrapper(wrapped, _instance, args, options):
        return wrapped(*args, **options)

    wrapper.__module__ = "opentelemetry.instrumentation.kafka.utils"
    plain = KafkaProducer.send, KafkaConsumer.__next__
    wrapt.wrap_function_wrapper(KafkaProducer, "send", wrapper)
    wrapt.wrap_function_wrapper(KafkaConsumer, "__next__", wrapper)
    try:
        with caplog.at_level(logging.WARNING, "kafka.otel"):
            producer = make("producer")
            producer.send("orders", b"1").get(WAIT)
            consumer = make("consumer", "orders", group_id=None)
            read(consumer, 1)
        assert telemetry.all() == []
        assert broker.records("orders")[0].headers == []
        assert caplog.text.count("is traced by opentelemetry.instrumentation.kafka.utils already") == 1
    finally:
        KafkaProducer.send, KafkaConsumer.__next__ = plain
    make("producer").send("orders", b"2").get(WAIT)
    telemetry.spans("send")


@pytest.mark.one_face  # as above
def test_a_client_that_was_made_before_is_not_traced_and_uninstrument_ends_it(make):
    before = make("producer")
    telemetry = Telemetry()
    before.send("orders", b"1").get(WAIT)
    after = make("producer")
    after.send("orders", b"1").get(WAIT)
    telemetry.spans("send")
    telemetry.close()
    after.send("orders", b"1").get(WAIT)
    telemetry.spans("send")
    assert _hooks.tracer is None


@pytest.mark.one_face  # a broker of that time, with the synchronous face
def test_brokers_before_headers_get_none(telemetry):
    from kafka.broker import Broker

    with (
        Broker(topics=["orders"], as_version="0.10.2") as old,
        KafkaProducer(bootstrap_servers=old.bootstrap_servers) as producer,
    ):
        producer.send("orders", b"1").get(WAIT)
        producer.send_many("orders", [b"2"]).get(WAIT)
    first, _ = telemetry.spans("send", 2)
    assert first.kind is SpanKind.CLIENT


def test_a_record_that_is_sent_by_send_and_wait_has_a_span(telemetry, make):
    producer = make("producer")
    if hasattr(producer, "_run"):
        producer._run.run(lambda: producer.client.send_and_wait("orders", b"1"))
        telemetry.spans("send")
    else:
        assert producer.send("orders", b"1").get(WAIT).offset == 0
    assert "opentelemetry" in sys.modules
