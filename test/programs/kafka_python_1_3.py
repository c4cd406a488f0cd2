"""A program written for kafka-python 1.3.5."""


import logging
import sys
import time

from kafka import (
    ConsumerRebalanceListener,
    KafkaConsumer,
    KafkaProducer,
    KeyedProducer,
    SimpleClient,
    SimpleConsumer,
    SimpleProducer,
    TopicPartition,
    create_message,
)
from kafka.client_async import KafkaClient
from kafka.common import KafkaError, OffsetAndMetadata, ProduceRequestPayload
from kafka.partitioner import RoundRobinPartitioner
from kafka.protocol.api import Request, Response
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.types import Array, Boolean, Int8, Int16, Int32, Schema, String

log = logging.getLogger(__name__)


class ListGroupsResponse_v0(Response):
    API_KEY = 16
    API_VERSION = 0
    SCHEMA = Schema(
        ("error_code", Int16), ("groups", Array(("group", String("utf-8")), ("protocol_type", String("utf-8"))))
    )


class ListGroupsRequest_v0(Request):
    API_KEY = 16
    API_VERSION = 0
    RESPONSE_TYPE = ListGroupsResponse_v0
    SCHEMA = Schema()


class Listener(ConsumerRebalanceListener):
    def __init__(self):
        self.assigned = set()

    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        self.assigned = set(assigned)


def first_byte(key, all_partitions, available_partitions):
    return all_partitions[key[0] % len(all_partitions)]


def simple(servers, topic):
    client = SimpleClient(servers)
    client.ensure_topic_exists(topic)
    producer = SimpleProducer(client)
    for number in range(4):
        producer.send_messages(topic, b"simple %d" % number)
    keyed = KeyedProducer(client, partitioner=RoundRobinPartitioner)
    keyed.send_messages(topic, b"key", b"keyed")
    payload = ProduceRequestPayload(topic, 0, [create_message(b"payload")])
    (response,) = client.send_produce_request([payload])
    assert response.error == 0
    consumer = SimpleConsumer(client, topic + "-simple", topic, iter_timeout=1)
    values = set(message.message.value for message in consumer)
    assert values == {b"simple 0", b"simple 1", b"simple 2", b"simple 3", b"keyed", b"payload"}, values
    consumer.commit()
    consumer.stop()
    client.close()


def modern(servers, topic):
    producer = KafkaProducer(bootstrap_servers=[servers], partitioner=first_byte, retries=3, acks="all")
    futures = [producer.send(topic, key=b"k%d" % n, value=b"modern %d" % n) for n in range(3)]
    for future in futures:
        try:
            metadata = future.get(timeout=30)
        except KafkaError:
            log.exception("not sent")
            raise
        assert metadata.topic == topic
    producer.flush()
    listener = Listener()
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id=topic + "-group",
        auto_offset_reset="smallest",
        enable_auto_commit=False,
        consumer_timeout_ms=3000,
        session_timeout_ms=10000,
    )
    consumer.subscribe([topic], listener=listener)
    values = []
    for message in consumer:
        values.append(message.value)
        consumer.commit({TopicPartition(topic, message.partition): OffsetAndMetadata(message.offset + 1, None)})
    assert set(b"modern %d" % n for n in range(3)) <= set(values), values
    assert listener.assigned == consumer.assignment()
    partition = sorted(listener.assigned)[0]
    assert consumer.committed(partition) == consumer.position(partition)
    assert consumer.highwater(partition) == consumer.position(partition)
    consumer.close(autocommit=False)
    producer.close()


def raw(servers):
    client = KafkaClient(bootstrap_servers=servers)
    node_id = client.least_loaded_node()
    while not client.ready(node_id):
        client.poll(timeout_ms=100)
    future = client.send(node_id, MetadataRequest[0]([]))
    client.poll(future=future)
    assert future.succeeded()
    assert len(future.value.brokers) == 1
    future = client.send(node_id, ListGroupsRequest_v0())
    client.poll(future=future)
    assert future.value.error_code == 0
    assert client.cluster.brokers()
    assert Boolean.encode(True) + Int8.encode(1) + Int32.encode(1) == b"\x01\x01\x00\x00\x00\x01"
    client.schedule(lambda: None, time.time())
    client.close()


if __name__ == "__main__":
    simple(sys.argv[1], sys.argv[2] + "-simple")
    modern(sys.argv[1], sys.argv[2] + "-simple")
    raw(sys.argv[1])
    print("done")
