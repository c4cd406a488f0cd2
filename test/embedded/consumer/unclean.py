"""An unclean election: a replica that lacks the end of the log becomes the leader."""

from __future__ import annotations

from typing import Any

from kafka.broker import Broker
from kafka.broker.cluster.topics import move_leader
from kafka.record.header import scan
from kafka.structs import TopicPartition


def cut_log(broker: Broker, partition: TopicPartition, offset: int, leader: int) -> None:
    """Have another node lead a partition, and its log end at an offset (or before, where a batch reaches across)."""

    def cut(cluster: Any) -> None:
        found = cluster.partition(*partition)
        assert found is not None
        log = found.log
        data = bytes(log.read(log.start_offset, 1 << 30))
        headers = list(scan(data))
        kept = [
            (data[header.position : header.end], header.leader_epoch)
            for header in headers
            if header.last_offset < offset
        ]
        for segment in log.segments:
            segment.delete()
        log.segments.clear()
        log.epochs.clear()
        # The first batch may begin before the start of the log: where records were deleted within it.
        log.end_offset = headers[0].base_offset if kept else log.start_offset
        for batch, epoch in kept:
            log.append(batch, epoch)
        move_leader(found, leader)

    broker.run(cut)
