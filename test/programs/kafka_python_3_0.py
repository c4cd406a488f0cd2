"""A program written for kafka-python 3.0: admin calls with plain values, serializer and partitioner classes."""

import sys

from kafka import (
    ConsumerRebalanceListener,
    Deserializer,
    JsonSerializer,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetSpec,
    Serializer,
    TopicPartition,
)
from kafka.errors import KafkaError
from kafka.partitioner import Partitioner


class Prefixed(Serializer, Deserializer):
    """Writes the topic's name in front of a key."""

    def serialize(self, topic, headers, data):
        return None if data is None else ("%s/%s" % (topic, data)).encode()

    def deserialize(self, topic, headers, data):
        return None if data is None else data.decode().removeprefix(topic + "/")


class LastPartition(Partitioner):
    def partition(self, topic, key, serialized_key, value, serialized_value, cluster):
        return max(cluster.partitions_for_topic(topic))


class Listener(ConsumerRebalanceListener):
    assigned = ()

    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        self.assigned = assigned

    def on_partitions_lost(self, lost):
        pass


def main(servers, topic):
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics({topic: {"num_partitions": 3, "replication_factor": 1}})
        admin.wait_for_topics([topic])
        with KafkaProducer(
            bootstrap_servers=servers,
            key_serializer=Prefixed(),
            value_serializer=JsonSerializer(),
            partitioner=LastPartition(),
        ) as producer:
            metadata = [producer.send(topic, {"number": n}, key="k%d" % n).get(timeout=30) for n in range(3)]
        assert {found.partition for found in metadata} == {2}
        last = TopicPartition(topic, 2)
        offsets = admin.list_partition_offsets({last: OffsetSpec.LATEST})
        assert offsets[last].offset == 3
        listener = Listener()
        with KafkaConsumer(
            bootstrap_servers=servers,
            group_id=topic + "-group",
            auto_offset_reset="earliest",
            key_deserializer=Prefixed(),
            value_deserializer=JsonSerializer(),
            consumer_timeout_ms=5000,
        ) as consumer:
            consumer.subscribe([topic], listener=listener)
            found = [(record.key, record.value["number"]) for record, _ in zip(consumer, range(3))]
            assert found == [("k0", 0), ("k1", 1), ("k2", 2)], found
            assert len(listener.assigned) == 3
            consumer.commit(timeout_ms=30000)
            assert consumer.group_metadata().group_id == topic + "-group"
            groups = admin.describe_groups([topic + "-group"])
            assert list(groups) == [topic + "-group"]
        admin.delete_topics([topic])
        try:
            admin.describe_topics([topic])
        except KafkaError:
            pass


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] + "-topic")
    print("done")
