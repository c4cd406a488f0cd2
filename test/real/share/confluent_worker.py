"""A member of a share group by confluent-kafka: does what ShareWorker.java does. Arguments: servers, group, topic."""

import select
import sys

from confluent_kafka import AcknowledgeType, ShareConsumer


def main() -> None:
    """Accept records and print them, every tenth at its second delivery, until a line comes."""
    servers, group, topic = sys.argv[1:]
    options = {
        "bootstrap.servers": servers,
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
        "max.poll.records": 10,
    }
    with ShareConsumer(options) as consumer:
        consumer.subscribe([topic])
        while not select.select([sys.stdin], [], [], 0)[0]:
            for message in consumer.poll(0.2):
                if message.error():
                    print("error", message.error(), flush=True)
                    continue
                value, count = message.value().decode(), message.delivery_count()
                again = count == 1 and int(value) % 10 == 0
                consumer.acknowledge(message, AcknowledgeType.RELEASE if again else AcknowledgeType.ACCEPT)
                if not again:
                    print("record", value, count, flush=True)
            for error in consumer.commit_sync().values():
                if error is not None:
                    print("error", error, flush=True)


main()
