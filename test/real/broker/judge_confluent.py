"""What confluent-kafka (librdkafka) does with a broker; run with its interpreter and the broker's address."""

import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec

SERVERS, TOPIC = sys.argv[1:3]
QUICK = {"bootstrap.servers": SERVERS, "socket.timeout.ms": 10000}
GROUP = {**QUICK, "group.id": TOPIC + "-group", "auto.offset.reset": "earliest", "enable.auto.commit": False}


def until(what, *, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not come"
    return found


def done(futures):
    for future in futures.values():
        future.result(20)


def administer():
    admin = AdminClient(QUICK)
    done(admin.create_topics([NewTopic(TOPIC, 3, 1, config={"retention.ms": "100000000"})]))
    try:
        done(admin.create_topics([NewTopic(TOPIC, 3, 1)]))
    except KafkaException as error:
        assert error.args[0].name() == "TOPIC_ALREADY_EXISTS", error
    else:
        raise AssertionError("the topic was made twice")
    done(admin.create_partitions([NewPartitions(TOPIC, 4)]))
    until(lambda: len(admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions) == 4)
    (configs,) = admin.describe_configs([ConfigResource("topic", TOPIC)]).values()
    assert configs.result(10)["retention.ms"].value == "100000000"
    (described,) = admin.describe_cluster().result(10).nodes[:1]
    assert described.port


def produce():
    seen = []
    producer = Producer({**QUICK, "enable.idempotence": True, "compression.type": "lz4", "linger.ms": 5})
    for number in range(2000):
        producer.produce(
            TOPIC,
            b"value %d" % number,
            b"key %d" % (number % 50),
            headers=[("number", str(number))],
            on_delivery=lambda error, message: seen.append((error, message.partition(), message.offset())),
        )
    assert producer.flush(20) == 0
    assert len(seen) == 2000
    assert not any(error for error, _, _ in seen), seen[:3]


def consume_in_a_group():
    first, second = Consumer(GROUP), Consumer(GROUP)
    first.subscribe([TOPIC])
    got = []

    def poll(consumer):
        message = consumer.poll(0.1)
        if message is not None:
            assert not message.error(), message.error()
            got.append((message.partition(), message.offset(), message.key(), message.value(), message.headers()))

    def drained():
        poll(first)
        return len(got) >= 2000

    until(drained)
    assert len({(partition, offset) for partition, offset, *_ in got}) == 2000
    assert {key for _, _, key, _, _ in got} == {b"key %d" % number for number in range(50)}
    assert all(headers and headers[0][0] == "number" for *_, headers in got)
    first.commit(asynchronous=False)

    second.subscribe([TOPIC])

    def shared():
        poll(first)
        poll(second)
        return len(first.assignment()) == len(second.assignment()) == 2

    until(shared)
    committed = first.committed([TopicPartition(TOPIC, number) for number in range(4)], timeout=10)
    assert sum(max(0, one.offset) for one in committed) == 2000, committed
    second.close()
    until(lambda: poll(first) or len(first.assignment()) == 4)
    first.close()
    assert len(got) == 2000, "something was read twice although it was committed"


def transactions():
    topic = TOPIC + "-tx"
    admin = AdminClient(QUICK)  # it must outlive its futures
    done(admin.create_topics([NewTopic(topic, 1, 1)]))
    producer = Producer({**QUICK, "transactional.id": TOPIC + "-tid", "transaction.timeout.ms": 10000})
    producer.init_transactions(20)
    for committed in (True, False, True):
        producer.begin_transaction()
        producer.produce(topic, b"committed" if committed else b"aborted")
        producer.flush(10)
        (producer.commit_transaction if committed else producer.abort_transaction)(20)
    consumer = Consumer({**GROUP, "group.id": TOPIC + "-tx-group", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    got = []

    def two():
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            got.append(message.value())
        return len(got) >= 2

    until(two)
    # And nothing after them: the end of the partition is read without another record.
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    assert (low, high) == (0, 6)
    until(lambda: consumer.poll(0.05) is None and consumer.position([TopicPartition(topic, 0)])[0].offset >= 5)
    assert got == [b"committed", b"committed"], got
    # Consume, produce and commit as one.
    source = Consumer(GROUP)
    source.assign([TopicPartition(TOPIC, 0, 0)])
    producer.begin_transaction()
    producer.produce(topic, b"with offsets")
    producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, 7)], source.consumer_group_metadata(), 10)
    producer.commit_transaction(20)
    until(lambda: source.committed([TopicPartition(TOPIC, 0)], timeout=10)[0].offset == 7)
    source.close()
    consumer.close()


def look_and_clean_up():
    admin = AdminClient(QUICK)
    spec = {TopicPartition(TOPIC, number): OffsetSpec.latest() for number in range(4)}
    ends = [future.result(10).offset for future in admin.list_offsets(spec).values()]
    assert sum(ends) == 2000, ends
    groups = {group.group_id for group in admin.list_consumer_groups().result(10).valid}
    assert TOPIC + "-group" in groups, groups
    done(admin.delete_records([TopicPartition(TOPIC, 0, 5)]))
    done(admin.delete_consumer_groups([TOPIC + "-group"]))
    done(admin.delete_topics([TOPIC]))


for step in (administer, produce, consume_in_a_group, transactions, look_and_clean_up):
    begun = time.monotonic()
    step()
    print(f"{step.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
