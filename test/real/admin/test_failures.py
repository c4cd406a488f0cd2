"""Nodes of Apache Kafka that die during calls of the administrator."""

from __future__ import annotations

import contextlib
import threading
import uuid

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import NoError, TopicAlreadyExistsError
from test.real.kafka_process import KafkaCluster

COUNT = 30


def test_a_controller_that_is_killed_costs_attempts(kafka_cluster: KafkaCluster):
    """The controller dies while topics are created and offsets are committed: each call succeeds within its time."""
    topic, group = (f"{name}-{uuid.uuid4().hex[:6]}" for name in ("events", "readers"))
    names = [f"topic-{number}-{uuid.uuid4().hex[:6]}" for number in range(COUNT)]
    failures: list[BaseException] = []
    done = threading.Semaphore(0)
    with KafkaAdminClient(bootstrap_servers=kafka_cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, 3, 3)], wait_for_metadata=True)
        admin.alter_group_offsets(group, {(topic, 0): 0})
        controller = admin.describe_metadata_quorum().leader_id

        def create() -> None:
            try:
                for number, name in enumerate(names):
                    with contextlib.suppress(TopicAlreadyExistsError):  # of a repeated request whose reply was lost
                        admin.create_topics([NewTopic(name, 1, 2)], timeout_ms=60_000)
                    outcome = admin.alter_group_offsets(group, {(topic, 0): number}, timeout_ms=60_000)
                    assert outcome == {TopicPartition(topic, 0): NoError}
                    done.release()
            except BaseException as error:
                failures.append(error)
                done.release(COUNT)

        thread = threading.Thread(target=create)
        thread.start()
        for _ in range(5):
            done.acquire()
        kafka_cluster.kill(controller)
        thread.join(120)
        assert failures == []
        assert not thread.is_alive()
        admin.wait_for_topics(names, timeout_ms=60_000)  # any broker may be asked, and each learns of them by itself
        assert set(names) <= set(admin.list_topics())
        assert admin.list_group_offsets(group)[group][TopicPartition(topic, 0)].offset == COUNT - 1
        assert admin.describe_metadata_quorum().leader_id != controller
