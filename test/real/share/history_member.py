"""A member of a share group as a process of its own. Arguments: servers, group, topic, face.

Does what the lines of its input say, and prints a line for each: ``poll ms`` the records that came, with delivery
counts; ``say [[partition, offset, type], ...]`` acknowledges and commits, and prints the partitions that were refused;
``close`` ends it.
"""

from __future__ import annotations

import json
import sys

from kafka import AcknowledgeType, KafkaShareConsumer, TopicPartition
from test.embedded.faces import AIOShareConsumer, Loop


def main() -> None:
    """Obey until the input ends."""
    servers, group, topic, face = sys.argv[1:]
    member = (AIOShareConsumer if face == "asyncio" else KafkaShareConsumer)(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        share_acknowledgement_mode="explicit",
        max_poll_records=6,
        fetch_max_wait_ms=200,
    )
    print(json.dumps("started"), flush=True)
    for line in sys.stdin:
        what, argument = json.loads(line)
        said: object = what
        if what == "poll":
            found = member.poll(argument)
            said = sorted([row.partition, row.offset, row.delivery_count] for rows in found.values() for row in rows)
        elif what == "say":
            for number, offset, kind in argument:
                member.acknowledge_offset(TopicPartition(topic, number), offset, AcknowledgeType(kind))
            said = sorted([place.partition, type(error).__name__] for place, error in member.commit().items() if error)
        else:
            member.close()
        print(json.dumps(said), flush=True)
    while Loop.open:
        Loop.open.pop().close()


main()
