"""What is in force, where it comes from, what is refused."""

from __future__ import annotations

import uuid

import pytest

from kafka.broker.cluster.store import Store
from kafka.broker.cluster.topics import Topic
from kafka.broker.configs import Configs, Source
from kafka.broker.configs.definitions import BROKER_OPTIONS, GROUP_OPTIONS, TOPIC_OPTIONS
from kafka.broker.configs.option import Kind, check_value
from kafka.errors import InvalidConfigurationError, KafkaConfigurationError


def topic(**configs: str) -> Topic:
    return Topic("t", uuid.uuid4(), {name.replace("_", "."): value for name, value in configs.items()})


def test_the_nearest_value_is_in_force() -> None:
    configs = Configs(Store(), {"log.retention.ms": "1000"})
    option = TOPIC_OPTIONS["retention.ms"]
    assert configs.topic_value(topic(), "retention.ms") == "1000"
    configs.set_dynamic(None, {"log.retention.ms": "2000"})
    configs.set_dynamic(1, {"log.retention.ms": "3000"})
    own = topic(retention_ms="4000")
    assert [(value.value, value.source) for value in configs.topic_values(option, own.configs, 1)] == [
        ("4000", Source.TOPIC),
        ("3000", Source.DYNAMIC_BROKER),
        ("2000", Source.DYNAMIC_DEFAULT_BROKER),
        ("1000", Source.STATIC_BROKER),
        ("604800000", Source.DEFAULT),
    ]
    assert configs.topic_int(topic(), "retention.ms") == 2000


def test_hours_count_where_milliseconds_are_not_said() -> None:
    configs = Configs(Store(), {"log.retention.hours": "2"})
    assert configs.topic_int(topic(), "retention.ms") == 2 * 3_600_000
    assert (
        Configs(Store(), {"log.retention.hours": "2", "log.retention.ms": "5"}).topic_int(topic(), "retention.ms") == 5
    )


def test_a_log_goes_by_its_topics_configuration() -> None:
    configs = Configs(Store(), {})
    config = configs.log_config(topic(cleanup_policy="compact,delete", message_timestamp_type="LogAppendTime"))
    assert (config.compacts, config.deletes, config.append_time) == (True, True, True)
    config = configs.log_config(topic(compression_type="gzip"))
    assert (config.compression, config.compression_level) == ("gzip", None)
    assert configs.log_config(topic(compression_type="zstd")).compression_level == 3


@pytest.mark.parametrize("options", [TOPIC_OPTIONS, BROKER_OPTIONS, GROUP_OPTIONS])
def test_every_default_is_allowed(options: dict[str, object]) -> None:
    for option in options.values():
        if option.default:  # type: ignore[attr-defined]
            check_value(option, option.default)  # type: ignore[arg-type, attr-defined]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("retention.ms", "soon", "Not a number of type LONG"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("min.insync.replicas", "99999999999", "Not a number of type INT"),
        ("min.cleanable.dirty.ratio", "2", "Value must be no more than 1"),
        ("min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("compression.type", "brotli", "String must be one of"),
    ],
)
def test_wrong_values_are_refused_in_words(name: str, value: str, says: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=says):
        check_value(TOPIC_OPTIONS[name], value)


def test_unknown_and_wrong_static_options_are_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match=r"'no\.such' is not an option"):
        Configs(Store(), {"no.such": "1"})
    with pytest.raises(KafkaConfigurationError, match="Invalid value"):
        Configs(Store(), {"num.partitions": "0"})


def test_every_topic_option_has_its_brokers() -> None:
    for option in TOPIC_OPTIONS.values():
        if option.broker_name is not None:
            assert BROKER_OPTIONS[option.broker_name].kind is option.kind
        assert isinstance(option.kind, Kind)
