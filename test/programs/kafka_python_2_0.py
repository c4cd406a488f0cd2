"""A program written for kafka-python 2.0.2."""

import sys

from kafka import BrokerConnection, KafkaAdminClient, KafkaClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.cluster import ClusterMetadata
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import IllegalStateError, KafkaTimeoutError, NoBrokersAvailable, UnknownTopicOrPartitionError
from kafka.partitioner.default import DefaultPartitioner, murmur2
from kafka.protocol.admin import ListGroupsRequest_v1
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from kafka.structs import OffsetAndMetadata, TopicPartition


class CommitOnRevoke(ConsumerRebalanceListener):
    def __init__(self, consumer):
        self.consumer = consumer
        self.calls = []

    def on_partitions_revoked(self, revoked):
        self.calls.append("revoked")
        self.consumer.commit()

    def on_partitions_assigned(self, assigned):
        self.calls.append("assigned")


class Partitioner(DefaultPartitioner):
    @classmethod
    def __call__(cls, key, all_partitions, available):
        if key is None:
            return all_partitions[0]
        return all_partitions[(murmur2(key) & 0x7FFFFFFF) % len(all_partitions)]


def administrate(servers, topic):
    admin = KafkaAdminClient(bootstrap_servers=servers)
    response = admin.create_topics([NewTopic(topic, 2, 1)], timeout_ms=30000, validate_only=False)
    assert response is not None
    assert topic in admin.list_topics()
    assert [found["topic"] for found in admin.describe_topics([topic])] == [topic]
    assert admin.describe_cluster()["brokers"]
    return admin


def main(servers, topic):
    admin = administrate(servers, topic)
    producer = KafkaProducer(bootstrap_servers=servers, partitioner=Partitioner(), compression_type="gzip", retries=5)
    for number in range(20):
        producer.send(topic, b"value %d" % number, key=b"%d" % number if number % 2 else None)
    producer.flush()
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id=topic + "-group",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=7,
        max_poll_interval_ms=60000,
    )
    listener = CommitOnRevoke(consumer)
    consumer.subscribe(pattern="^" + topic + "$", listener=listener)
    values = []
    while len(values) < 20:
        for records in consumer.poll(timeout_ms=1000).values():
            values += [record.value for record in records]
    assert len(set(values)) == 20
    partitions = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))]
    ends = consumer.end_offsets(partitions)
    assert sum(ends.values()) == 20
    assert consumer.beginning_offsets(partitions) == dict.fromkeys(partitions, 0)
    consumer.commit({tp: OffsetAndMetadata(offset, "note") for tp, offset in ends.items()})
    assert consumer.committed(partitions[0], metadata=True).metadata == "note"
    found = consumer.offsets_for_times({partitions[0]: 0})[partitions[0]]
    assert found is None or found.offset == 0
    consumer.pause(*partitions)
    assert consumer.paused() == set(partitions)
    consumer.resume(*partitions)
    try:
        consumer.assign(partitions)
        raise AssertionError("assigned although subscribed")
    except IllegalStateError:
        pass
    assert (topic + "-group", "consumer") in [tuple(group)[:2] for group in admin.list_consumer_groups()]
    offsets = admin.list_consumer_group_offsets(topic + "-group")
    assert offsets[partitions[0]].offset == ends[partitions[0]]
    (description,) = admin.describe_consumer_groups([topic + "-group"])
    assert description.state == "Stable"
    consumer.close()
    assert listener.calls[0] == "assigned" or "assigned" in listener.calls
    producer.close()
    admin.delete_topics([topic])
    admin.close()


def raw(servers):
    client = KafkaClient(bootstrap_servers=servers, api_version_auto_timeout_ms=10000)
    assert client.check_version() >= (0, 8)
    assert isinstance(client.cluster, ClusterMetadata)
    node_id = client.least_loaded_node()
    client.await_ready(node_id)
    future = client.send(node_id, ListGroupsRequest_v1())
    client.poll(future=future)
    assert future.value.error_code == 0
    client.close()
    host, port = servers.split(":")
    connection = BrokerConnection(host, int(port), 0)
    assert connection.connect_blocking(timeout=30)
    connection.close()
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1024)
    builder.append(timestamp=1, key=b"k", value=b"v", headers=[("h", b"1")])
    builder.close()
    (record,) = MemoryRecords(bytes(builder.buffer())).next_batch()
    assert (record.key, record.value, record.headers) == (b"k", b"v", [("h", b"1")])
    try:
        KafkaProducer(bootstrap_servers="localhost:1", api_version_auto_timeout_ms=500)
        raise AssertionError("connected to nothing")
    except NoBrokersAvailable:
        pass
    assert issubclass(KafkaTimeoutError, Exception)
    assert UnknownTopicOrPartitionError.errno == 3


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] + "-topic")
    raw(sys.argv[1])
    print("done")
