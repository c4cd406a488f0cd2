"""The two faces have the same calls, from one coroutine each."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

import pytest

from kafka.admin import KafkaAdminClient
from kafka.admin.calls import Calls
from kafka.admin.client import AdminCalls
from kafka.errors import ClientClosedError

from .conftest import Admin, AdminCluster

CALLS = sorted(
    name
    for name, value in inspect.getmembers(AdminCalls, inspect.iscoroutinefunction)
    if not name.startswith("_") and value.__module__.startswith("kafka.admin.")
)


def test_every_call_blocks_with_the_same_parameters_and_help():
    for name in CALLS:
        call, method = getattr(AdminCalls, name), getattr(KafkaAdminClient, name)
        assert inspect.signature(method) == inspect.signature(call), name
        assert method.__doc__ == call.__doc__, name
        assert not inspect.iscoroutinefunction(method), name


def test_every_call_takes_a_timeout():
    for name in CALLS:
        assert "timeout_ms" in inspect.signature(getattr(AdminCalls, name)).parameters, name


def test_every_call_that_changes_several_items_raises_unless_raise_errors_is_false():
    changing = (
        "alter_",
        "create_",
        "delete_",
        "elect_",
        "fence_",
        "incremental_",
        "remove_",
        "replace_",
        "reset_",
        "update_",
    )
    one_item = {"create_delegation_token", "remove_raft_voter"}
    as_in_kafka_python_2 = {"delete_consumer_groups"}
    for name in CALLS:
        if name.startswith(changing) and name not in one_item | as_in_kafka_python_2:
            parameter = inspect.signature(getattr(AdminCalls, name)).parameters.get("raise_errors")
            assert parameter is not None, name
            assert parameter.default is True, name


def test_no_two_classes_of_calls_share_a_name():
    classes = [kind for kind in AdminCalls.__mro__ if issubclass(kind, Calls) and kind not in (Calls, AdminCalls)]
    names = Counter(name for kind in classes for name in vars(kind) if not name.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []


def test_none_for_a_parameter_that_a_call_needs_is_refused_by_its_name(admin: Admin):
    for name in CALLS:
        parameters = list(inspect.signature(getattr(AdminCalls, name)).parameters.values())[1:]
        required = [parameter for parameter in parameters if parameter.default is parameter.empty]
        if required and name != "find_coordinator":  # which says that the message's key may not be None
            with pytest.raises(TypeError) as raised:
                admin.run(getattr(admin.calls, name)(*[None] * len(required)))
            assert f"): {required[0].name} must be " in str(raised.value), name
            assert str(raised.value).endswith(", not None"), name
    with pytest.raises(TypeError, match=r"^create_acls\(\): acls must be Iterable\[ACL\], not None"):
        admin.run(admin.calls.create_acls(acls=None))  # type: ignore[arg-type]


def test_a_timeout_that_makes_no_sense_is_refused(admin: Admin):
    for wrong in (-1, "5", float("nan")):
        with pytest.raises((TypeError, ValueError)):
            admin.run(admin.calls.list_topics(timeout_ms=wrong))  # type: ignore[arg-type]


def test_a_closed_client_says_so(admin: Admin):
    admin.loop.close()
    with pytest.raises(ClientClosedError, match="closed"):
        admin.calls.list_topics().send(None)


def test_with_a_timeout_of_0_a_request_is_sent_once_and_no_broker_waits(admin: Admin, cluster: AdminCluster):
    waits: list[int] = []

    def refuse(request: Any, _: int) -> Any:
        waits.append(request.timeout_ms)
        return {"topics": [{"name": "a", "error_code": 41, "error_message": None, "configs": []}]}

    cluster.on("CreateTopics", refuse)
    found = admin.run(admin.calls.create_topics(["a"], timeout_ms=0, raise_errors=False))
    assert [topic.error_code for topic in found.topics] == [41]
    assert waits == [0]
    assert admin.run(admin.calls.list_topics(timeout_ms=0)) == ["t"]
