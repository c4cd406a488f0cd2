"""Topics: who is asked, what is tried again, and what is left of the time."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.errors import (
    KafkaTimeoutError,
    NotControllerError,
    TopicAlreadyExistsError,
    UnsupportedVersionError,
)
from kafka.protocol.admin import CreateTopicsResponse
from kafka.testing import HANG_UP, SILENCE

from .conftest import Admin, AdminCluster

NOT_CONTROLLER, EXISTS, THROTTLED = 41, 36, 89


def created(names: list[str], **codes: int) -> dict[str, Any]:
    topic = CreateTopicsResponse.CreatableTopicResult
    return {
        "topics": [topic(name=name, error_code=codes.get(name, 0), error_message=None, configs=[]) for name in names]
    }


def names_of(request: Any) -> list[str]:
    return [topic.name for topic in request.topics]


def create(admin: Admin, *names: str, timeout: float = 10.0, **options: Any) -> Any:
    return admin.run(admin.calls.create_topics(names, timeout * 1000, **options))


def test_the_controller_is_asked(admin: Admin, cluster: AdminCluster):
    cluster.on("CreateTopics", lambda request, _: created(names_of(request)))
    assert create(admin, "a", "b").topic_errors == [("a", 0, None), ("b", 0, None)]
    assert cluster.asked("CreateTopics") == [1]


def test_a_controller_that_moved_is_looked_up_and_asked(admin: Admin, cluster: AdminCluster):
    def answer(request: Any, broker: int) -> Any:
        cluster.controller = 2
        codes = {} if broker == 2 else dict.fromkeys(names_of(request), NOT_CONTROLLER)
        return created(names_of(request), **codes)

    cluster.on("CreateTopics", answer)
    assert create(admin, "a").topics.ok
    assert cluster.asked("CreateTopics") == [1, 2]


def test_a_controller_that_died_is_not_an_error_when_another_one_takes_over(admin: Admin, cluster: AdminCluster):
    def answer(request: Any, broker: int) -> Any:
        cluster.controller = 0
        return created(names_of(request)) if broker == 0 else HANG_UP

    cluster.on("CreateTopics", answer)
    assert create(admin, "a").topics.ok
    assert cluster.asked("CreateTopics") == [0, 1]


def test_only_what_was_not_decided_is_asked_again(admin: Admin, cluster: AdminCluster):
    asked: list[list[str]] = []

    def answer(request: Any, _: int) -> Any:
        asked.append(names_of(request))
        return created(names_of(request), **({"b": THROTTLED, "c": EXISTS} if len(asked) == 1 else {}))

    cluster.on("CreateTopics", answer)
    found = create(admin, "a", "b", "c", raise_errors=False)
    assert asked == [["a", "b", "c"], ["b"]]
    assert [(topic.name, topic.ok) for topic in found.topics] == [("a", True), ("b", True), ("c", False)]


def test_the_deadline_ends_the_attempts_with_the_last_error(admin: Admin, cluster: AdminCluster):
    cluster.on("CreateTopics", lambda request, _: created(names_of(request), a=NOT_CONTROLLER))
    began = admin.now
    with pytest.raises(NotControllerError) as caught:
        create(admin, "a", timeout=2.0)
    assert 1.0 < admin.now - began <= 2.1
    assert caught.value.results.topics[0].error_code == NOT_CONTROLLER


def test_the_deadline_ends_a_call_that_no_broker_answers(admin: Admin, cluster: AdminCluster):
    cluster.on("CreateTopics", lambda *_: SILENCE)
    began = admin.now
    with pytest.raises(KafkaTimeoutError):
        create(admin, "a", timeout=2.0)
    assert 1.9 < admin.now - began <= 2.1


def test_a_request_that_times_out_right_before_the_deadline_is_a_timeout_of_the_call(cluster: AdminCluster):
    admin = Admin(cluster, request_timeout_ms=1000, default_api_timeout_ms=1000)
    admin.run(admin.core.begin())
    cluster.on("CreateTopics", lambda *_: SILENCE)
    with pytest.raises(KafkaTimeoutError, match=r"create_topics\(\) took too long"):
        create(admin, "a", timeout=1.05)
    admin.loop.close()


def test_brokers_may_wait_for_as_long_as_is_left(admin: Admin, cluster: AdminCluster):
    waits: list[int] = []

    def answer(request: Any, _: int) -> Any:
        waits.append(request.timeout_ms)
        return created(names_of(request), **({"a": NOT_CONTROLLER} if len(waits) == 1 else {}))

    cluster.on("CreateTopics", answer)
    create(admin, "a", timeout=5.0)
    assert 4900 < waits[0] <= 5000
    assert waits[1] < waits[0]


def test_the_first_error_of_a_topic_is_raised_and_nothing_is_tried_again(admin: Admin, cluster: AdminCluster):
    cluster.on("CreateTopics", lambda request, _: created(names_of(request), b=EXISTS))
    with pytest.raises(TopicAlreadyExistsError, match="topic 'b'") as caught:
        create(admin, "a", "b")
    assert [topic.ok for topic in caught.value.results.topics] == [True, False]
    assert len(cluster.asked("CreateTopics")) == 1


def test_nothing_to_create_asks_no_broker(admin: Admin, cluster: AdminCluster):
    assert create(admin).topics == []
    assert not cluster.asked("CreateTopics")


def test_a_request_that_an_old_broker_lacks_is_an_unsupported_version(cluster: AdminCluster):
    admin = Admin(cluster, api_version=(2, 0))
    admin.run(admin.core.begin())
    with pytest.raises(
        UnsupportedVersionError, match=r"default number of partitions needs Kafka 2.4; the broker is 2\.0"
    ):
        create(admin, "a")
    admin.loop.close()


def test_topics_are_described_in_the_order_asked_for(admin: Admin, cluster: AdminCluster):
    cluster.topics = {"a": 1, "b": 3}
    found = admin.run(admin.calls.describe_topics(["b", "x", "a"], 5000))
    assert [(topic.name, topic.error_code, len(topic.partitions)) for topic in found] == [
        ("b", 0, 3),
        ("x", 3, 0),
        ("a", 0, 1),
    ]
    assert admin.run(admin.calls.describe_topics([], 5000)) == []


def test_a_broker_that_would_create_the_topic_is_asked_for_all(cluster: AdminCluster):
    admin = Admin(cluster, api_version=(0, 10, 2))
    admin.run(admin.core.begin())
    found = admin.run(admin.calls.describe_topics(["x", "t"], 5000))
    assert [topic.error_code for topic in found] == [3, 0]
    asked = [request.topics for broker in cluster.brokers for request in broker.asked("Metadata")]
    assert [topic.name for topics in asked for topic in topics or ()] == []
    admin.loop.close()


def test_waiting_ends_when_every_broker_serves_the_topic(admin: Admin, cluster: AdminCluster):
    late = cluster.network.clock.monotonic() + 1.0

    def metadata(request: Any, _: Any) -> Any:
        cluster.topics = {"t": 2} if cluster.network.clock.monotonic() < late else {"t": 2, "new": 1}
        return cluster.metadata(request, None)

    cluster.brokers[2].on("Metadata", metadata)
    cluster.topics = {"t": 2, "new": 1}
    admin.run(admin.calls.wait_for_topics(["new"], 10000))
    assert late <= admin.now < late + 1


@pytest.mark.parametrize("gone", [True, False])
def test_a_broker_that_is_down_is_waited_for_until_it_leaves_the_metadata(
    admin: Admin, cluster: AdminCluster, gone: bool
):
    cluster.topics = {"t": 2, "new": 1}
    dead = cluster.brokers[2]
    dead.stop()
    began, fenced = admin.now, admin.now + 9

    def metadata(request: Any, session: Any) -> Any:
        if gone and admin.now >= fenced:
            cluster.brokers = cluster.brokers[:2]
        return cluster.metadata(request, session)

    for broker in cluster.brokers[:2]:
        broker.on("Metadata", metadata)
    if gone:
        admin.run(admin.calls.wait_for_topics(["new"], 60_000))
        assert 9 <= admin.now - began < 20
    else:
        with pytest.raises(KafkaTimeoutError, match=r"serves these topics in time: new: broker 2: "):
            admin.run(admin.calls.wait_for_topics(["new"], 60_000))
        assert 59 <= admin.now - began <= 61


def test_waiting_without_success_names_the_topics(admin: Admin):
    with pytest.raises(KafkaTimeoutError, match=r"not every broker serves these topics in time: new$"):
        admin.run(admin.calls.wait_for_topics(["t", "new"], 1000))
