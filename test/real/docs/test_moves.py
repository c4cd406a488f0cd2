"""A code block of the documentation that needs three nodes of Apache Kafka."""

from __future__ import annotations

from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource
from test.embedded.docs.blocks import Block, runs
from test.embedded.docs.shell_blocks import Shell
from test.real.kafka_process import KafkaCluster


@runs(("docs/reference/commands.rst", "purekafka partitions reassign-cancel"))
def test_a_move_is_cancelled(shown: list[Block], kafka_cluster: KafkaCluster, tmp_path: Path) -> None:
    """The copy of a replica is throttled to a byte per second, so that the partition moves while it is cancelled."""
    servers = kafka_cluster.bootstrap_servers
    moved = TopicPartition("events", 0)
    here = Shell(tmp_path, servers)
    here.run_line("purekafka topics create events --assignment 1:2")
    with KafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        for _ in range(2000):
            producer.send("events", b"x" * 1000)
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        sides = ("leader.replication.throttled", "follower.replication.throttled")
        throttle = [ConfigResource("TOPIC", "events", {f"{side}.replicas": "*" for side in sides})]
        throttle += [ConfigResource("BROKER", str(node), {f"{side}.rate": "1" for side in sides}) for node in (1, 2, 3)]
        admin.alter_configs(throttle)

        def move(_command: str) -> None:
            admin.alter_partition_reassignments({moved: [2, 3]})
            assert moved in admin.list_partition_reassignments()

        (block,) = shown
        assert here.run(block, move) == 2
        assert moved in admin.list_partition_reassignments(), "the second command was a dry run"
        here.run_line("purekafka partitions reassign-cancel --yes")
        for entry in throttle:  # other tests use these nodes
            admin.alter_configs([ConfigResource(entry.resource_type, entry.name, dict.fromkeys(entry.configs))])
