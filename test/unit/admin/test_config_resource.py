"""Resources that have a configuration, and the forms in which they are given."""

from __future__ import annotations

import pytest

import kafka.admin
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from kafka.admin.config_resource import Outcome
from kafka.errors import IllegalArgumentError, InvalidConfigurationError


def test_the_historic_module_has_the_same_classes():
    assert kafka.admin.ConfigResource is ConfigResource
    assert kafka.admin.config_resource.ConfigResourceType is ConfigResourceType


def test_a_type_is_a_member_or_a_name():
    assert ConfigResource("topic", "t").resource_type is ConfigResourceType.TOPIC
    assert ConfigResource(ConfigResourceType.BROKER, 1).name == "1"
    with pytest.raises(KeyError):
        ConfigResource("topics", "t")
    with pytest.raises(TypeError, match="dict or a list of names"):
        ConfigResource("topic", "t", "retention.ms")


def test_resources_compare_by_what_they_say():
    assert ConfigResource("topic", "t", {"a": 1}) == ConfigResource("TOPIC", "t", {"a": 1})
    assert ConfigResource("topic", "t", {"a": 1}) != ConfigResource("topic", "t", {"a": 2})
    assert len({ConfigResource("topic", "t"), ConfigResource("topic", "t")}) == 1


def test_passwords_are_not_shown():
    shown = repr(ConfigResource("broker", 1, {"ssl.key.password": "hunter2", "flush.ms": 7}))
    assert "hunter2" not in shown
    assert "'flush.ms': 7" in shown


@pytest.mark.parametrize("given", [AlterConfigOp.APPEND, 2, "append", "APPEND"])
def test_an_operation_is_a_member_a_value_or_a_name(given):
    assert AlterConfigOp.build_from(given) is AlterConfigOp.APPEND
    assert AlterConfigOp.value_for(given) == 2


@pytest.mark.parametrize("given", ["add", 9, None])
def test_an_unknown_operation_is_refused(given):
    with pytest.raises(IllegalArgumentError, match="it has SET, DELETE, APPEND, SUBTRACT"):
        AlterConfigOp.build_from(given)


def test_an_outcome_is_a_text_that_knows_its_error():
    error = InvalidConfigurationError("no")
    assert Outcome(error) == str(error)
    assert Outcome(error).error is error
    assert not Outcome(error).ok
