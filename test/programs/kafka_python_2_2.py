"""A program written for kafka-python 2.2: transactions, static members, records with leader epochs."""

import sys

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError, ProducerFencedError


def main(servers, prefix):
    source, target = prefix + "-source", prefix + "-target"
    with_admin = KafkaAdminClient(bootstrap_servers=servers)
    with_admin.create_topics([NewTopic(name=name, num_partitions=1, replication_factor=1) for name in (source, target)])
    with KafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as producer:
        for number in range(5):
            producer.send(source, value=b"%d" % number, key=None, headers=[("number", b"%d" % number)])
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=servers,
        group_id=prefix + "-group",
        group_instance_id="member-1",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        partition_assignment_strategy=(CooperativeStickyAssignor, StickyPartitionAssignor),
    )
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id=prefix + "-transaction")
    producer.init_transactions()
    copied = 0
    while copied < 5:
        for partition, records in consumer.poll(timeout_ms=1000).items():
            producer.begin_transaction()
            try:
                for record in records:
                    producer.send(target, value=record.value, headers=record.headers)
                last = records[-1]
                offsets = {partition: OffsetAndMetadata(last.offset + 1, "", last.leader_epoch)}
                producer.send_offsets_to_transaction(offsets, prefix + "-group")
                producer.commit_transaction()
            except ProducerFencedError:
                raise
            except KafkaError:
                producer.abort_transaction()
                raise
            copied += len(records)
    producer.begin_transaction()
    producer.send(target, value=b"aborted")
    producer.abort_transaction()
    fenced = KafkaProducer(bootstrap_servers=servers, transactional_id=prefix + "-transaction")
    fenced.init_transactions()
    fenced.close()
    assert consumer.committed(TopicPartition(source, 0)) == 5
    consumer.close()
    reader = KafkaConsumer(
        target,
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=3000,
    )
    assert [record.value for record in reader] == [b"%d" % number for number in range(5)]
    reader.close()
    producer.close()
    with_admin.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    print("done")
