"""An administrator that is connected to controllers (KIP-919): the controllers it asks, and what they do not serve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource
from kafka.errors import (
    KafkaConfigurationError,
    MismatchedEndpointTypeError,
    UnsupportedEndpointTypeError,
    UnsupportedVersionError,
)
from kafka.protocol.metadata import DescribeClusterResponse
from kafka.protocol.registry import APIS
from kafka.testing import MemoryNetwork, ScriptedBroker

from .conftest import Admin, AdminCluster

CONTROLLERS = 2


class Quorum(AdminCluster):
    """Controllers b0, b1, b2, of which one is active."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.controller = 1
        self.brokers = [ScriptedBroker(self.network, f"b{number}") for number in range(3)]
        for node in self.brokers:
            node.ranges = {
                api.key: (api.min_version, api.max_version)
                for api in APIS.values()
                if "controller" in api.listeners.split()
            }
            node.on("DescribeCluster", self.describe_cluster)

    def describe_cluster(self, request: Any, _session: Any) -> dict[str, Any]:
        assert request.endpoint_type == CONTROLLERS
        kind = DescribeClusterResponse.DescribeClusterBroker
        return {
            "endpoint_type": CONTROLLERS,
            "cluster_id": "c",
            "controller_id": self.controller,
            "brokers": [
                kind(broker_id=number, host=node.host, port=node.port) for number, node in enumerate(self.brokers)
            ],
        }

    def answer_quorum(self) -> None:
        """Answer DescribeQuorum as the controllers do: only the active one knows."""
        self.on(
            "DescribeQuorum",
            lambda request, number: {
                "topics": [
                    {
                        "topic_name": "__cluster_metadata",
                        "partitions": [
                            {
                                "partition_index": 0,
                                "error_code": 0 if number == self.controller else 6,
                                "leader_id": self.controller,
                                "leader_epoch": 3,
                                "high_watermark": 9,
                                "current_voters": [],
                                "observers": [],
                            }
                        ],
                    }
                ],
                "nodes": [],
            },
        )


@pytest.fixture
def quorum() -> Quorum:
    return Quorum()


@pytest.fixture
def admin(quorum: Quorum) -> Iterator[Admin]:
    admin = Admin(quorum, bootstrap_controllers="b0,b1,b2")
    admin.run(admin.core.begin())
    yield admin
    admin.loop.close()
    assert not quorum.network.open_sockets


def test_the_nodes_of_the_cluster_are_the_controllers(admin: Admin, quorum: Quorum):
    found = admin.run(admin.calls.describe_cluster())
    assert (found.cluster_id, found.controller_id) == ("c", 1)
    assert [(one.broker_id, one.host) for one in found.brokers] == [(0, "b0"), (1, "b1"), (2, "b2")]
    assert quorum.asked("Metadata") == []


def test_every_request_goes_to_the_active_controller(admin: Admin, quorum: Quorum):
    quorum.answer_quorum()
    assert admin.run(admin.calls.describe_metadata_quorum()).leader_id == 1
    assert quorum.asked("DescribeQuorum") == [1]


def test_a_controller_that_is_no_longer_active_costs_a_retry(admin: Admin, quorum: Quorum):
    quorum.answer_quorum()
    quorum.controller = 2
    assert admin.run(admin.calls.describe_metadata_quorum()).leader_id == 2
    assert quorum.asked("DescribeQuorum") == [1, 2]


def test_a_controller_that_is_gone_is_not_waited_for(admin: Admin, quorum: Quorum):
    quorum.answer_quorum()
    quorum.brokers[1].stop()
    quorum.controller = 2
    assert admin.run(admin.calls.describe_metadata_quorum()).leader_id == 2


def test_settings_of_brokers_are_changed_by_the_active_controller(admin: Admin, quorum: Quorum):
    quorum.on(
        "IncrementalAlterConfigs",
        lambda request, _: {
            "responses": [
                {"resource_type": one.resource_type, "resource_name": one.resource_name} for one in request.resources
            ]
        },
    )
    wanted = [ConfigResource("broker", "7", {"log.cleaner.threads": 2}), ConfigResource("topic", "t", {"a": 1})]
    assert admin.run(admin.calls.alter_configs(wanted)) == {"broker": {"7": "OK"}, "topic": {"t": "OK"}}
    assert quorum.asked("IncrementalAlterConfigs") == [1]


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("list_topics", ()),
        ("list_groups", ()),
        ("list_group_offsets", (["g"],)),
        ("describe_groups", (["g"],)),
        ("list_partition_offsets", ({("t", 0): "latest"},)),
        ("describe_log_dirs", ()),
    ],
)
def test_calls_that_only_brokers_serve_say_so(admin: Admin, call: str, args: tuple[Any, ...]):
    with pytest.raises(UnsupportedEndpointTypeError, match="bootstrap_servers instead of bootstrap_controllers"):
        admin.run(getattr(admin.calls, call)(*args))


def test_a_broker_given_as_a_controller_is_an_error_at_once():
    cluster = AdminCluster()
    for node in cluster.brokers:
        node.on("DescribeCluster", {"error_code": 114, "cluster_id": "", "brokers": []})
    admin = Admin(cluster, bootstrap_controllers="b0")
    began = admin.now
    with pytest.raises(MismatchedEndpointTypeError, match="bootstrap_servers"):
        admin.run(admin.core.begin())
    assert admin.now - began < 1
    admin.loop.close()


def test_a_controller_of_an_old_release_is_an_error_at_once(quorum: Quorum):
    quorum.brokers[0].ranges[60] = (0, 0)
    admin = Admin(quorum, bootstrap_controllers="b0")
    with pytest.raises(UnsupportedVersionError, match=r"3\.7"):
        admin.run(admin.core.begin())
    admin.loop.close()


def test_a_controller_given_as_a_broker_is_an_error_at_once(quorum: Quorum):
    admin = Admin(quorum, bootstrap_servers="b0")
    began = admin.now
    with pytest.raises(MismatchedEndpointTypeError, match="bootstrap_controllers"):
        admin.run(admin.core.begin())
    assert admin.now - began < 1
    admin.loop.close()


@pytest.mark.parametrize("other", [{"bootstrap_servers": "b0"}, {"kafka_client": object}])
def test_controllers_exclude_brokers(other: dict[str, Any]):
    with pytest.raises(KafkaConfigurationError, match="bootstrap_controllers"):
        KafkaAdminClient(bootstrap_controllers="b0", **other)
