"""Options of the source: what is accepted, what is refused and in which words."""

from __future__ import annotations

import runpy
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kafka
from kafka.spark.errors import KafkaSparkOptionError
from kafka.spark.offset_ranges import OffsetLimit
from kafka.spark.offsets import EARLIEST, LATEST
from kafka.spark.options import _NAMES, SinkOptions, SourceOptions
from kafka.structs import TopicPartition

SERVERS = {"kafka.bootstrap.servers": "b1:9092"}
BASE = {**SERVERS, "subscribe": "events"}


def refused(streaming: bool = True, **options: str) -> str:
    given = {name.replace("__", "."): value for name, value in options.items()}
    with pytest.raises(KafkaSparkOptionError) as caught:
        SourceOptions.parse(given, streaming=streaming)
    return str(caught.value)


def test_defaults_match_the_official_connector() -> None:
    stream = SourceOptions.parse(BASE, streaming=True)
    batch = SourceOptions.parse(BASE, streaming=False)
    assert stream.start == OffsetLimit(everywhere=LATEST)
    assert batch.start == OffsetLimit(everywhere=EARLIEST)
    assert batch.end == OffsetLimit(everywhere=LATEST)
    assert stream.fail_on_data_loss
    assert (stream.poll_timeout, stream.retries, stream.retry_interval, stream.max_delay) == (120.0, 3, 1.0, 900.0)
    assert not stream.include_headers
    assert stream.strict_timestamps
    assert stream.client["client_id"] == "spark-kafka-source"
    assert batch.client["client_id"] == "spark-kafka-relation"


def test_names_do_not_care_for_capitals() -> None:
    options = SourceOptions.parse({**SERVERS, "SUBSCRIBE": "a", "FailOnDataLoss": "FALSE"}, streaming=True)
    assert not options.fail_on_data_loss


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({**SERVERS}, "One of the following options must be specified for Kafka source: "),
        ({**BASE, "assign": '{"a":[0]}'}, "Only one of the following options can be specified for Kafka source: "),
        ({"subscribe": "a"}, "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer"),
        ({**SERVERS, "subscribe": " , "}, "No topics to subscribe to as specified value for option 'subscribe' is"),
        ({**SERVERS, "subscribePattern": " "}, "Pattern to subscribe is empty as specified value"),
        ({**SERVERS, "assign": "a-0"}, "No topicpartitions to assign as specified value for option 'assign' is 'a-0'"),
        ({**SERVERS, "assign": '{"a":["x"]}'}, 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got {"a":["x"]}'),
        ({**BASE, "startingOffsets": '{"a":0}'}, 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got'),
        ({**BASE, "startingTimestamp": "soon"}, "Expected a single long value, got soon"),
        ({**BASE, "minPartitions": "0"}, "minPartitions must be positive"),
        ({**BASE, "maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition must be positive"),
        ({**BASE, "kafka.auto.offset.reset": "latest"}, "Kafka option 'auto.offset.reset' is not supported"),
        ({**BASE, "kafka.key.deserializer": "x"}, "explicitly deserialize the keys."),
        ({**BASE, "kafka.value.deserializer": "x"}, "explicitly deserialize the values."),
        ({**BASE, "kafka.enable.auto.commit": "true"}, "Kafka option 'enable.auto.commit' is not supported"),
        ({**BASE, "kafka.interceptor.classes": "x"}, "Kafka option 'interceptor.classes' is not supported"),
        (
            {**SERVERS, "subscribePattern": "a("},
            "The value 'a(' of the option 'subscribePattern' is not a valid regular expression: ",
        ),
        ({**BASE, "startingOffsets": '{"a":{"0":-3}}'}, "No number in startingOffsets can be below -2, got {"),
        ({**BASE, "startingTimestamp": "-1"}, "No number in startingTimestamp can be below 0, got -1"),
        (
            {**BASE, "startingOffsetsByTimestamp": '{"a":{"0":-2}}'},
            "No number in startingOffsetsByTimestamp can be below",
        ),
        ({**BASE, "kafkaConsumer.pollTimeoutMs": "-1"}, "kafkaConsumer.pollTimeoutMs must not be negative"),
        ({**BASE, "fetchOffset.numRetries": "-1"}, "fetchOffset.numRetries must not be negative"),
        ({**BASE, "fetchOffset.retryIntervalMs": "-1"}, "fetchOffset.retryIntervalMs must not be negative"),
        ({**BASE, "maxOffsetsPerTrigger": "-1"}, "maxOffsetsPerTrigger must not be negative"),
        ({**BASE, "minOffsetsPerTrigger": "-1"}, "minOffsetsPerTrigger must not be negative"),
        ({**BASE, "rowsPerTask": "-1"}, "rowsPerTask must not be negative"),
        ({**BASE, "includeHeaders": "perhaps"}, 'For input string: "perhaps"'),
        ({**BASE, "kafka.security.protocol": "TLS"}, "kafka.security.protocol"),
    ],
)
def test_an_error_common_to_every_query_has_the_official_words(options: dict[str, str], words: str) -> None:
    for streaming in (True, False):
        with pytest.raises(KafkaSparkOptionError) as caught:
            SourceOptions.parse(options, streaming=streaming)
        assert words in str(caught.value)


def test_edges_that_a_kind_of_query_cannot_have() -> None:
    batch: dict[str, Any] = {"streaming": False, "kafka__bootstrap__servers": "b", "subscribe": "a"}
    assert refused(**batch, startingOffsets="latest") == "starting offset can't be latest for batch queries on Kafka"
    assert refused(**batch, endingOffsets="earliest") == "ending offset can't be earliest for batch queries on Kafka"
    assert "can't be latest for batch" in refused(**batch, startingOffsets='{"a":{"0":-1}}')
    assert "can't be earliest for batch" in refused(**batch, endingOffsets='{"a":{"0":-2}}')
    stream = {**batch, "streaming": True}
    assert refused(**stream, endingOffsets="latest") == "ending offset not valid in streaming queries"
    assert "ending timestamp not valid in streaming" in refused(**stream, endingOffsetsByTimestamp='{"a":{"0":7}}')
    assert "is higher than the maxOffsetsPerTrigger(5)" in refused(
        **stream, minOffsetsPerTrigger="9", maxOffsetsPerTrigger="5"
    )


def test_edges_that_no_query_can_have_are_refused_before_its_kind_is_known() -> None:
    def load(**options: str) -> SourceOptions:
        return SourceOptions.parse({**BASE, **options}, streaming=False, check_edges=False)

    for options in ({"endingOffsets": "earliest"}, {"startingOffsets": "latest", "endingOffsets": "latest"}):
        with pytest.raises(KafkaSparkOptionError, match="for batch queries on Kafka"):
            load(**options)
    assert load(startingOffsets="latest").start == OffsetLimit(everywhere=LATEST)
    assert load(endingOffsets='{"events":{"0":5}}').end == OffsetLimit(offsets={TopicPartition("events", 0): 5})


def test_a_timestamp_goes_before_timestamps_and_those_before_offsets() -> None:
    options = {**BASE, "startingOffsets": "earliest"}
    assert SourceOptions.parse(options, streaming=True).start == OffsetLimit(everywhere=EARLIEST)
    options["startingOffsetsByTimestamp"] = '{"events":{"0":5}}'
    start = OffsetLimit(timestamps={TopicPartition("events", 0): 5})
    assert SourceOptions.parse(options, streaming=True).start == start
    options["startingTimestamp"] = "7"
    assert SourceOptions.parse(options, streaming=True).start == OffsetLimit(timestamp=7)


def test_only_a_start_that_may_move_is_written_down() -> None:
    def fixed(**options: str) -> bool:
        return SourceOptions.parse({**BASE, **options}, streaming=True).start.is_fixed

    assert fixed(startingOffsets="earliest")
    assert fixed(startingOffsets='{"events":{"0":-2,"1":5}}')
    assert not fixed()
    assert not fixed(startingOffsets='{"events":{"0":-1}}')
    assert not fixed(startingTimestamp="5")


@pytest.mark.parametrize(("text", "seconds"), [("15m", 900), ("500ms", 0.5), ("30", 0.03), ("2h", 7200), ("1 d", None)])
def test_times_are_written_as_in_spark(text: str, seconds: float | None) -> None:
    options = {**BASE, "maxTriggerDelay": text}
    if seconds is None:
        with pytest.raises(KafkaSparkOptionError, match="Failed to parse time string: 1 d"):
            SourceOptions.parse(options, streaming=True)
    else:
        assert SourceOptions.parse(options, streaming=True).max_delay == pytest.approx(seconds)


def test_a_file_that_holds_a_query_is_for_streaming_queries() -> None:
    options = {**BASE, "HoldFile": "/tmp/hold"}
    assert SourceOptions.parse(options, streaming=True).hold_file == "/tmp/hold"
    assert SourceOptions.parse(options, streaming=False).hold_file is None
    assert SourceOptions.parse({**BASE, "holdFile": ""}, streaming=True).hold_file is None


def test_options_do_not_show_secrets() -> None:
    options = {**BASE, "kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"}
    options["kafka.sasl.jaas.config"] = 'a.PlainLoginModule required username="me" password="hush";'
    parsed = SourceOptions.parse(options, streaming=True)
    assert parsed.client["sasl_plain_password"] == "hush"
    assert "hush" not in repr(parsed)


def test_the_sink_needs_servers_and_takes_no_serializers() -> None:
    with pytest.raises(KafkaSparkOptionError, match="must be specified for configuring Kafka producer"):
        SinkOptions.parse({"topic": "out"})
    for name in ("key", "value"):
        with pytest.raises(KafkaSparkOptionError, match=f"'{name}.serializer' is not supported"):
            SinkOptions.parse({**SERVERS, f"kafka.{name}.serializer": "x"})
    assert SinkOptions.parse({**SERVERS, "kafka.compression.type": "zstd"}).client["compression_type"] == "zstd"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"kafka.delivery.timeout.ms": "10"}, "kafka.delivery.timeout.ms must be at least"),
        ({"kafka.acks": "1", "exactlyOnce": "true"}, "exactlyOnce=true needs kafka.acks='all'"),
        (
            {"kafka.enable.idempotence": "false", "exactlyOnce": "true"},
            "exactlyOnce=true needs kafka.enable.idempotence=True",
        ),
    ],
)
def test_options_of_a_sink_that_do_not_go_together_are_refused_before_a_task_is(
    more: dict[str, str], words: str
) -> None:
    with pytest.raises(KafkaSparkOptionError, match=words):
        SinkOptions.parse({"kafka.bootstrap.servers": "b1:9092", "topic": "out", **more})


def test_options_of_a_source_that_do_not_go_together_are_refused_when_it_is_loaded() -> None:
    given = {"kafka.bootstrap.servers": "b1:9092", "subscribe": "a", "kafka.security.protocol": "SASL_SSL"}
    with pytest.raises(KafkaSparkOptionError, match=r"needs a kafka\.sasl\.mechanism, such as"):
        SourceOptions.parse(given, streaming=False, check_edges=False)


def parsed(**more: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": "b1:9092", "subscribe": "a"}
    return SourceOptions.parse(
        {**given, **{name.replace("__", "."): value for name, value in more.items()}}, streaming=True
    )


def test_a_call_may_have_less_time_than_a_request_has_by_default_as_with_java_s_consumer() -> None:
    client = parsed(kafka__default__api__timeout__ms="15000").client
    assert (client["default_api_timeout_ms"], client["request_timeout_ms"]) == (15_000, 15_000)
    client = parsed(kafka__default__api__timeout__ms="90000").client
    assert (client["default_api_timeout_ms"], client["request_timeout_ms"]) == (90_000, 30_000)


def test_options_that_contradict_each_other_are_called_what_the_program_calls_them() -> None:
    with pytest.raises(KafkaSparkOptionError) as caught:
        parsed(kafka__default__api__timeout__ms="15000", kafka__request__timeout__ms="20000")
    assert str(caught.value) == (
        "Options do not go together: kafka.default.api.timeout.ms must be at least kafka.request.timeout.ms (20000), "
        "not 15000: lower kafka.request.timeout.ms too"
    )
    with pytest.raises(KafkaSparkOptionError, match=r"needs kafka\.sasl\.jaas\.config with username and password"):
        parsed(kafka__security__protocol="SASL_SSL", kafka__sasl__mechanism="PLAIN")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("startingOffset", "startingOffsets"),
        ("failOnDatLoss", "failOnDataLoss"),
        ("subscribepattern1", "subscribePattern"),
        ("include_headers", "includeHeaders"),
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
        ("security.protocol", "kafka.security.protocol"),
        ("request.timeout.ms", "kafka.request.timeout.ms"),
    ],
)
def test_an_option_that_is_misspelled_is_refused_with_the_nearest_name(name: str, meant: str) -> None:
    sentence = f"The format purekafka has no option '{name.lower()}': did you mean '{meant}'?"
    for parse in (SourceOptions.parse, partial(SourceOptions.parse, check_edges=False)):
        with pytest.raises(KafkaSparkOptionError) as caught:
            parse({"kafka.bootstrap.servers": "b1:9092", "subscribe": "a", name: "x"}, streaming=False)
        assert str(caught.value).startswith(sentence)
    with pytest.raises(KafkaSparkOptionError) as caught:
        SinkOptions.parse({"kafka.bootstrap.servers": "b1:9092", "topic": "a", name: "x"})
    assert str(caught.value).startswith(sentence)


def test_an_option_that_nothing_knows_is_warned_about_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka.spark.options._warned", set())
    for _ in range(2):
        parsed(inferSchema="true", path="/x", checkpointLocation="/c")
    assert [entry.getMessage() for entry in caplog.records] == [
        "The option inferschema is not known to the format purekafka and has no effect"
    ]


def test_the_source_and_the_sink_take_each_other_s_options() -> None:
    assert parsed(topic="out", exactlyOnce="true").subscription.topics == ("a",)
    given = {"kafka.bootstrap.servers": "b1:9092", "topic": "a", "startingOffsets": "earliest", "holdFile": "/h"}
    assert SinkOptions.parse(given).topic == "a"


def test_without_a_registry_nothing_of_one_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process of Spark imports the options, and a streaming sink has a new process for each batch."""
    monkeypatch.setitem(sys.modules, "kafka.schema_registry", None)  # importing it is an error now
    home = Path(kafka.__file__).parent / "spark" / "registry_columns.py"
    assert runpy.run_path(str(home))["RegistryOptions"].parse({}, ["events"]) is None


def test_an_unknown_kafka_option_is_warned_about_with_the_nearest_name(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka.spark.java_options._warned", set())
    parsed(kafka__secruity__protocol="SSL", kafka__quite__unknown="1")
    assert [entry.getMessage() for entry in caplog.records] == [
        "The option kafka.secruity.protocol is not known and has no effect: did you mean kafka.security.protocol?",
        "The option kafka.quite.unknown is not known and has no effect",
    ]


def test_the_documentation_has_each_option_and_no_table_has_what_is_for_jobs_and_functions() -> None:
    text = (Path(kafka.__file__).parents[1] / "docs" / "spark.rst").read_text(encoding="utf-8")
    table = text[text.index("Options of the source\n---") : text.index("Filter pushdown\n---")]
    assert "startingOffsets" in table
    last = text.replace("\nsslCertfile, sslKeyfile", "\nschemaRegistry.sslCertfile, schemaRegistry.sslKeyfile")
    assert [name for name in _NAMES if name not in last] == []
    assert "holdFile" not in table
    assert "foreachBatch" not in table
