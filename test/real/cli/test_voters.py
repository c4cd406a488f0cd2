"""KIP-853: voters of a quorum of Apache Kafka are added and removed, by the command line and by the admin client."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaAdminClient
from kafka.admin import NewTopic, QuorumDescription
from kafka.errors import DuplicateVoterError, InconsistentClusterIdError, VoterNotFoundError
from test.embedded.cli.shell import run
from test.real.broker_config import CONTROLLER
from test.real.kafka_process import KafkaCluster

FIRST, SECOND = 2, 3  # the controllers; node 1 is the broker
TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"


@pytest.fixture(scope="module")
def cluster(kafka_version: str) -> Iterator[KafkaCluster]:
    """Each test begins and ends with the first controller as the only voter."""
    with KafkaCluster(kafka_version, nodes=1, controllers=2, dynamic_quorum=True) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def settings(cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def voters(found: QuorumDescription) -> list[int]:
    return sorted(one.replica_id for one in found.voters)


def wait_quorum(
    admin: KafkaAdminClient, condition: Callable[[QuorumDescription], bool], what: str
) -> QuorumDescription:
    """Return the description of the quorum in which a condition holds."""
    deadline = time.monotonic() + 60
    while True:
        found = admin.describe_metadata_quorum()
        if condition(found):
            return found
        assert time.monotonic() < deadline, f"{what}: {found}"
        time.sleep(0.1)


def directory_id(cluster: KafkaCluster, node: int) -> str:
    text = (cluster.root / f"node-{node}" / "data" / "meta.properties").read_text()
    found = re.search(r"^directory\.id=(\S+)", text, re.MULTILINE)
    assert found is not None
    return found[1]


def listener(cluster: KafkaCluster, node: int) -> str:
    host, port = cluster.address(node, CONTROLLER)
    return f"{CONTROLLER}={host}:{port}"


def known_to_kafka(cluster: KafkaCluster) -> tuple[list[int], list[int]]:
    """Return the voters and the observers that Kafka's own tool names."""
    done = cluster.tool(TOOL, "--bootstrap-server", cluster.bootstrap_servers, "describe", "--status")
    assert done.returncode == 0, done.stderr
    lines = (re.search(rf"^Current{role}s:\s+(.*)$", done.stdout, re.MULTILINE) for role in ("Voter", "Observer"))
    first, second = (sorted(map(int, re.findall(r'"id": (\d+)', line[1] if line else ""))) for line in lines)
    return first, second


def test_voters_are_added_and_removed_by_the_command_line(cluster: KafkaCluster) -> None:
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        assert admin.describe_features().finalized_features["kraft.version"].max_version == 1
        wait_quorum(
            admin, lambda found: SECOND in {one.replica_id for one in found.observers}, "the controller follows"
        )
        assert run("purekafka cluster voters -f '{node}'").lines == [str(FIRST)]
        added = f"purekafka cluster voters add {SECOND} --listener {listener(cluster, SECOND)}"
        assert run(f"{added} --dry-run").code == 0
        assert run(f"{added} --yes").out.splitlines()[-1] == f"{SECOND}: added"
        rows = {row["node"]: row for row in run("purekafka cluster voters -f json").json}
        assert rows == {
            node: {
                "node": node,
                "directory_id": directory_id(cluster, node),
                "listeners": [listener(cluster, node)],
                "leader": node == FIRST,
            }
            for node in (FIRST, SECOND)
        }
        assert known_to_kafka(cluster) == ([FIRST, SECOND], [1])
        twice = run(f"{added} --yes")
        assert (twice.code, f"node {SECOND} is a voter already" in twice.err) == (1, True)

        # The leader itself is removed: the other controller takes its place, and the cluster works on.
        wait_quorum(admin, lambda found: min(one.log_end_offset for one in found.voters) > 0, "the new voter follows")
        assert run(f"purekafka cluster voters remove {FIRST} --yes").out.splitlines()[-1] == f"{FIRST}: removed"
        wait_quorum(admin, lambda found: found.leader_id == SECOND and voters(found) == [SECOND], "it leads alone")
        admin.create_topics([NewTopic(f"t-{uuid.uuid4().hex[:8]}", 1, 1)])
        wait_quorum(admin, lambda found: FIRST in {one.replica_id for one in found.observers}, "the first one follows")
        roles = {row["node"]: row["role"] for row in run("purekafka cluster quorum -f json").json}
        assert roles == {SECOND: "leader", FIRST: "observer", 1: "observer"}
        assert known_to_kafka(cluster) == ([SECOND], [1, FIRST])
        gone = run(f"purekafka cluster voters remove {FIRST} --yes")
        assert (gone.code, f"node {FIRST} is not a voter; the voters are {SECOND}" in gone.err) == (1, True)
        back = f"purekafka cluster voters add {FIRST} --listener {listener(cluster, FIRST)}"
        assert run(f"{back} --directory-id {directory_id(cluster, FIRST)} --yes").code == 0
        assert voters(admin.describe_metadata_quorum()) == [FIRST, SECOND]
        wait_quorum(admin, lambda found: min(one.log_end_offset for one in found.voters) > 0, "the voter follows")
        assert run(f"purekafka cluster voters remove {SECOND} --yes").code == 0
        wait_quorum(admin, lambda found: found.leader_id == FIRST and voters(found) == [FIRST], "all is as it was")


@pytest.mark.parametrize("at", ["broker", "controller"])
def test_voters_are_added_and_removed_by_the_admin_client(at: str, cluster: KafkaCluster) -> None:
    address: dict[str, Any] = (
        {"bootstrap_servers": cluster.bootstrap_servers}
        if at == "broker"
        else {"bootstrap_controllers": cluster.bootstrap(CONTROLLER)}
    )
    host, port = cluster.address(SECOND, CONTROLLER)
    with KafkaAdminClient(**address) as admin:
        found = wait_quorum(
            admin, lambda found: SECOND in {one.replica_id for one in found.observers}, "the controller follows"
        )
        assert voters(found) == [FIRST]
        directory = next(one.replica_directory_id for one in found.observers if one.replica_id == SECOND)
        first = found.voters[0].replica_directory_id
        endpoints = [(CONTROLLER, host, port)]
        with pytest.raises(InconsistentClusterIdError):
            admin.add_raft_voter(SECOND, directory, endpoints, cluster_id="another")
        with pytest.raises(VoterNotFoundError):
            admin.remove_raft_voter(SECOND, directory)
        admin.add_raft_voter(SECOND, directory, endpoints)
        found = admin.describe_metadata_quorum()
        assert voters(found) == [FIRST, SECOND]
        assert {node.node_id: [(one.name, one.host, one.port) for one in node.listeners] for node in found.nodes}[
            SECOND
        ] == endpoints
        with pytest.raises(DuplicateVoterError):
            admin.add_raft_voter(SECOND, directory, endpoints)
        with pytest.raises(VoterNotFoundError):
            admin.remove_raft_voter(FIRST, uuid.uuid4())
        admin.remove_raft_voter(SECOND, directory)
        found = wait_quorum(admin, lambda found: voters(found) == [FIRST], "one voter is left")
        assert found.voters[0].replica_directory_id == first
