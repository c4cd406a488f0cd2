"""How fast confluent-kafka gets records through a broker.

Prints JSON, for writing and for reading: the seconds that it took, the processor seconds of the client's and of the
broker's process, and for how long the one that did so longer stood in the queue for a processor that others used.
"""

import json
import os
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition

SERVERS, COUNT, BROKER_PID = sys.argv[1], int(sys.argv[2]), sys.argv[3]
PARTITIONS = 3


def waited(pid):
    """For how long a process stood in the queue for a processor: the one of its threads that stood there longest."""
    seconds = [0.0]
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="utf-8") as file:
            seconds.append(int(file.read().split()[1]) / 1e9)
    return max(seconds)


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(work):
    wall = time.perf_counter()
    queued = waited("self"), waited(BROKER_PID)
    used = processor_seconds("self"), processor_seconds(BROKER_PID)
    work()
    return {
        "wall": time.perf_counter() - wall,
        "client": processor_seconds("self") - used[0],
        "broker": processor_seconds(BROKER_PID) - used[1],
        "waited": max(waited("self") - queued[0], waited(BROKER_PID) - queued[1]),
    }


producer = Producer({"bootstrap.servers": SERVERS, "linger.ms": 5, "queue.buffering.max.messages": 2 * COUNT})
producer.list_topics("events", timeout=10)
value = b"x" * 100


def write():
    for _ in range(COUNT):
        producer.produce("events", value)
    assert producer.flush(60) == 0


written = measured(write)

consumer = Consumer({"bootstrap.servers": SERVERS, "group.id": "speed", "enable.auto.commit": False})
consumer.assign([TopicPartition("events", number, 0) for number in range(PARTITIONS)])


def read():
    got = 0
    while got < COUNT:
        messages = consumer.consume(10_000, 10)
        assert messages, f"{got} of {COUNT} came"
        got += len(messages)


print(json.dumps({"written": written, "read": measured(read)}))
consumer.close()
