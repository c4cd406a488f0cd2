"""What programs written for other clients are told."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import kafka
from kafka import KafkaProducer
from kafka.aio import AIOKafkaProducer
from kafka.config import given_options
from kafka.errors import KafkaConfigurationError
from test.unit.producer.memory_cluster import Cluster, InlineDriver


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("produce", r"'Producer' object has no attribute 'produce': use send\(topic, value, key\)"),
        ("poll", "callbacks run on the producer's own thread"),
        ("send_and_wait", r"use send\(\.\.\.\)\.get\(\)"),
        ("stop", r"use close\(\)"),
        ("begin", r"use begin_transaction\(\)"),
        ("nothing_like_it", "no attribute 'nothing_like_it'$"),
        ("_private", "no attribute '_private'$"),
    ],
)
def test_a_method_of_another_client_is_answered_with_ours(make_producer, name, said):
    producer = make_producer(Cluster({"events": 1}))
    with pytest.raises(AttributeError, match=said):
        getattr(producer, name)
    assert not hasattr(producer, name)


def test_looking_at_an_attribute_is_not_slowed_down():
    assert not hasattr(KafkaProducer, "__getattr__")
    assert not hasattr(KafkaProducer, "__getattribute__") or KafkaProducer.__getattribute__ is object.__getattribute__


def test_methods_that_are_proposed_exist():
    for use in kafka.producer.kafka._ELSEWHERE.values():
        for method in re.findall(r"(?<![\w.])(\w+)\(", use):
            assert hasattr(KafkaProducer, method) or method == "poll", use


def test_options_may_come_in_a_dict(make_producer):
    cluster = Cluster({"events": 1})
    options = {"bootstrap.servers": "b0", "linger.ms": 7, "client_id": "mine"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafka.producer.kafka.ThreadDriver", InlineDriver)
        with KafkaProducer(options, environment=cluster.network.environment(), acks=1) as producer:
            config = producer.config
            assert (config["linger_ms"], config["client_id"], config["acks"]) == (7, "mine", 1)
            assert producer.send("events", b"x").get(10).offset == 0


def test_an_option_by_name_that_is_none_leaves_that_of_the_dict():
    given = {"value_serializer": str.encode, "acks": 1}
    assert given_options("KafkaProducer", given, {"value_serializer": None, "key_serializer": None}) == {
        "value_serializer": str.encode,
        "acks": 1,
        "key_serializer": None,
    }


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (
            ("localhost:9092",),
            {},
            r"takes its options by name, as in KafkaProducer\(bootstrap_servers=.*, not str$",
        ),
        (({}, {}), {}, "takes from 1 to 2 positional arguments but 3 were given"),
        (({"acks": 1},), {"acks": 1}, "the option 'acks' twice"),
        (({3: 1},), {}, "the name of an option must be a str, not 3"),
    ],
)
def test_other_positional_arguments_are_refused_with_public_names(given, options, said):
    with pytest.raises(TypeError, match=said) as refused:
        KafkaProducer(*given, **options)
    assert "Face" not in str(refused.value)


def test_unknown_options_in_a_dict_are_refused_like_others():
    with pytest.raises(KafkaConfigurationError, match=r"did you mean 'bootstrap\.servers'"):
        KafkaProducer({"bootstrap.server": "b0"})


@pytest.mark.parametrize("name", ["AIOKafkaProducer", "AIOKafkaConsumer", "Producer", "Consumer"])
def test_importing_another_packages_class_says_what_to_use(name):
    done = subprocess.run(
        [sys.executable, "-c", f"from kafka import {name}"], capture_output=True, text=True, check=False, timeout=60
    )
    use = f"kafka.aio.{name}" if name.startswith("AIO") else f"kafka.Kafka{name}"
    assert f"ImportError: cannot import name {name!r} from 'kafka': use {use}" in done.stderr


@pytest.mark.parametrize(
    ("module", "name", "use"),
    [
        ("kafka", "KafkaError", "kafka.errors.KafkaError"),
        ("kafka.admin", "AdminClient", "KafkaAdminClient"),
        ("kafka.errors", "KafkaException", "KafkaError"),
        ("kafka.aio", "KafkaConsumer", "AIOKafkaConsumer"),
        ("kafka.schema_registry", "AvroSerializer", "SchemaSerializer"),
        ("kafka.schema_registry", "SchemaRegistryClient", "SchemaRegistry"),
    ],
)
def test_a_name_of_another_package_says_what_to_use(module, name, use):
    with pytest.raises(ImportError, match=f"cannot import name {name!r} from {module!r}: use {use}$"):
        exec(f"from {module} import {name}")


def test_a_producer_has_no_length_and_is_true(make_producer):
    producer = make_producer(Cluster({"events": 1}))
    with pytest.raises(TypeError, match=r"Producer has no length: health\(\)\['partitions'\]"):
        len(producer)
    assert producer
    assert AIOKafkaProducer()
    with pytest.raises(TypeError, match="AIOKafkaProducer has no length"):
        len(AIOKafkaProducer())


def test_methods_of_other_producers_in_asyncio():
    with pytest.raises(AttributeError, match=r"'AIOKafkaProducer' object has no attribute 'produce': use await send\("):
        AIOKafkaProducer().produce("events", b"x")  # type: ignore[attr-defined]


def test_methods_of_other_futures(make_producer):
    future = make_producer(Cluster({"events": 1})).send("events", b"x")
    with pytest.raises(AttributeError, match=r"no attribute 'result': use get\(timeout\)"):
        future.result(5)
    with pytest.raises(AttributeError, match=r"use add_callback\(f\) and add_errback\(g\)"):
        future.add_done_callback(print)
    assert future.get(10).offset == 0


def test_other_names_are_not_there_as_before():
    assert not hasattr(kafka, "nothing_like_it")
