"""Attempts by a deadline, and questions to all brokers at once."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from kafka.admin.core import AdminCore
from kafka.errors import (
    CoordinatorLoadInProgressError,
    InvalidTopicError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
)
from kafka.protocol.admin import ListGroupsRequest, ListGroupsResponse
from kafka.testing import HANG_UP, SILENCE
from test.unit.test_conn import answer_late

from .conftest import Admin, AdminCluster


async def _attempt(core: AdminCore, seconds: float, errors: list[Exception]) -> list[float]:
    times = []
    async for attempt in core.client.attempts(core.loop.time() + seconds, "the call"):
        with attempt:
            times.append(core.loop.time())
            if errors:
                raise errors.pop(0)
    return times


def test_attempts_end_with_the_first_that_raises_nothing(admin: Admin):
    busy = [CoordinatorLoadInProgressError("busy") for _ in range(3)]
    times = admin.run(_attempt(admin.core, 10, list(busy)))
    pauses = [round(later - earlier, 2) for earlier, later in pairwise(times)]
    assert len(times) == 4
    assert 0.08 <= pauses[0] <= 0.12  # retry_backoff_ms, within 20 %
    assert pauses[0] < pauses[1] < pauses[2]


def test_an_error_that_is_not_retriable_is_raised_at_once(admin: Admin):
    began = admin.now
    with pytest.raises(InvalidTopicError):
        admin.run(_attempt(admin.core, 10, [InvalidTopicError("no")]))
    assert admin.now == began


def test_the_last_error_before_the_deadline_is_raised(admin: Admin):
    began = admin.now
    with pytest.raises(CoordinatorLoadInProgressError, match="busy"):
        admin.run(_attempt(admin.core, 1, [CoordinatorLoadInProgressError("busy") for _ in range(100)]))
    assert admin.now - began <= 1


def test_an_error_about_metadata_refreshes_it(admin: Admin, cluster: AdminCluster):
    before = len(cluster.asked("Metadata"))
    admin.run(_attempt(admin.core, 10, [KafkaConnectionError("lost")]))
    assert len(cluster.asked("Metadata")) == before + 1


def test_metadata_that_does_not_come_does_not_hide_why_the_attempt_failed(admin: Admin, cluster: AdminCluster):
    cluster.on("Metadata", lambda *_: SILENCE)
    with pytest.raises(KafkaTimeoutError, match=r"^the call took too long: .*broker 2 was lost$"):
        admin.run(_attempt(admin.core, 3, [KafkaConnectionError("broker 2 was lost")]))


def test_all_brokers_are_asked_at_once_and_a_dead_one_costs_its_own_answer(admin: Admin, cluster: AdminCluster):
    cluster.on("ListGroups", lambda _, broker: HANG_UP if broker == 1 else {"groups": []})
    deadline = admin.now + 2
    found: dict[int, Any] = admin.run(
        admin.core.ask_each(range(3), lambda _: ListGroupsRequest(), deadline, "list_groups()")
    )
    assert [isinstance(found[node], KafkaError) for node in range(3)] == [False, True, False]
    assert found[0].groups == []


@pytest.mark.parametrize("call", ["list_groups", "group_lag", "list_transactions", "describe_log_dirs"])
def test_a_cluster_that_is_away_is_an_error_and_not_an_empty_list(admin: Admin, cluster: AdminCluster, call: str):
    for broker in cluster.brokers:
        broker.on("ListGroups", {"groups": []})
        broker.stop()
    for _ in range(3):  # from some call on the client knows the bootstrap servers only
        try:
            found = admin.run(getattr(admin.calls, call)(timeout_ms=5000))
        except KafkaError as caught:
            error = caught
        else:  # the outcome of each broker
            error = (found.failed_brokers if call == "group_lag" else found)[0]
        assert re.search(r"b0:9092\)?: Connection refused", str(error))
    cluster.brokers[0].start()
    assert admin.run(admin.calls.list_groups(timeout_ms=5000, raise_errors=False)) == []


def test_a_lag_of_no_group_is_not_ok_where_brokers_did_not_list_their_groups(admin: Admin, cluster: AdminCluster):
    for broker in cluster.brokers:
        broker.on("ListGroups", {"groups": []})
    assert admin.run(admin.calls.group_lag(timeout_ms=5000)).ok
    cluster.brokers[1].stop()
    found = admin.run(admin.calls.group_lag(timeout_ms=5000))
    assert (list(found.failed_brokers), found.ok, found.failed) == ([1], False, {})


def test_a_client_that_need_not_bootstrap_connects_with_the_first_call(cluster: AdminCluster):
    admin = Admin(cluster, bootstrap_timeout_ms=0)
    assert admin.run(admin.core.brokers(admin.now + 5)) == [0, 1, 2]
    admin.loop.close()


def test_fifty_brokers_that_take_100_ms_each_answer_in_300_ms():
    cluster = AdminCluster(50)
    admin = Admin(cluster)
    admin.run(admin.core.begin())
    listed = ListGroupsResponse.ListedGroup
    for number, broker in enumerate(cluster.brokers):
        broker.on("ListGroups", {"groups": [listed(group_id=f"g{number}", protocol_type="consumer")]})
        answer_late(broker, admin.loop, 0.1)
    began = admin.now
    found = admin.run(admin.calls.list_groups(timeout_ms=10_000))
    assert len(found) == 50
    assert 0.1 <= admin.now - began < 0.3  # twice 100 ms: the versions, then the groups
    admin.loop.close()
