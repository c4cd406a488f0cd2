"""A program written for kafka-python 1.4.7."""


import collections
import json
import sys
import threading

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.errors import TopicAlreadyExistsError
from kafka.metrics import AnonMeasurable, Metrics
from kafka.vendor import six


class FirstMember(AbstractPartitionAssignor):
    """Gives all partitions to the first member."""

    name = "first-member"
    version = 0

    @classmethod
    def assign(cls, cluster, member_metadata):
        first = min(member_metadata)
        assignment = collections.defaultdict(list)
        for topic in member_metadata[first].subscription:
            assignment[topic] = sorted(cluster.partitions_for_topic(topic))
        return {
            member: ConsumerProtocolMemberAssignment(
                cls.version, list(six.iteritems(assignment)) if member == first else [], b""
            )
            for member in member_metadata
        }

    @classmethod
    def metadata(cls, topics):
        return ConsumerProtocolMemberMetadata(cls.version, list(topics), b"")

    @classmethod
    def on_assignment(cls, assignment):
        pass


def admin(servers, topic):
    client = KafkaAdminClient(bootstrap_servers=servers, client_id="admin")
    new_topic = NewTopic(name=topic, num_partitions=1, replication_factor=1, topic_configs={"retention.ms": "3600000"})
    client.create_topics([new_topic])
    try:
        client.create_topics([new_topic])
        raise AssertionError("created twice")
    except TopicAlreadyExistsError:
        pass
    client.create_partitions({topic: NewPartitions(total_count=2)})
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "7200000"})
    client.alter_configs([resource])
    assert client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    client.close()


def main(servers, topic):
    admin(servers, topic)
    delivered = []
    producer = KafkaProducer(
        bootstrap_servers=servers,
        value_serializer=lambda value: json.dumps(value).encode("utf-8"),
        key_serializer=str.encode,
        linger_ms=10,
    )
    for number in range(10):
        future = producer.send(topic, {"number": number}, key="key", headers=[("kind", b"json")], timestamp_ms=1000)
        future.add_callback(delivered.append).add_errback(lambda error: sys.exit(str(error)))
    producer.flush(timeout=30)
    assert len(delivered) == 10
    assert delivered[0].timestamp == 1000
    assert "record-send-total" in producer.metrics()["producer-metrics"]
    read = []

    def work():
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=topic + "-group",
            auto_offset_reset="earliest",
            value_deserializer=lambda raw: json.loads(raw.decode("utf-8")),
            partition_assignment_strategy=[FirstMember],
        )
        while len(read) < 10:
            for partition, records in six.iteritems(consumer.poll(timeout_ms=1000, max_records=4)):
                assert isinstance(partition, TopicPartition)
                read.extend((record.value["number"], record.headers) for record in records)
        assert len(consumer.assignment()) == 2
        consumer.commit_async(callback=lambda offsets, response: None)
        consumer.close()

    worker = threading.Thread(target=work)
    worker.start()
    worker.join(60)
    assert read == [(number, [("kind", b"json")]) for number in range(10)], read
    producer.close()
    metrics = Metrics()
    name = metrics.metric_name("answer", "group", "a metric", {"tag": "value"})
    metrics.add_metric(name, AnonMeasurable(lambda config, now: 42))
    assert metrics.metrics[name].value() == 42
    metrics.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] + "-topic")
    print("done")
