"""Histories of administrators: topics come, grow and go, with configurations that are valid, and ones that are not."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
)
from kafka.protocol.configs import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from kafka.protocol.metadata import MetadataRequest

from .lockstep import Kind, Step
from .records import batch, produced

NAMES = ("a", "b", "c")
NO_ID = UUID(int=0)
TOPIC = 2
SET, DELETE, APPEND, SUBTRACT = range(4)
#: Values of options, of which some are not valid.
VALUES = {
    "cleanup.policy": ("delete", "compact", "compact,delete", "", "none"),
    "retention.ms": ("-1", "0", "86400000", "-2", "day"),
    "retention.bytes": ("-1", "1048576", "1.5"),
    "segment.bytes": ("1048576", "13", "2147483648"),
    "max.message.bytes": ("0", "1000", "-1"),
    "min.insync.replicas": ("1", "2", "0"),
    "compression.type": ("producer", "gzip", "uncompressed", "brotli"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime", "createtime"),
    "min.compaction.lag.ms": ("0", "1000", "-1"),
    "max.compaction.lag.ms": ("1", "5000", "0"),
    "min.cleanable.dirty.ratio": ("0", "0.5", "1.1"),
    "delete.retention.ms": ("0", "100", "-1"),
    "unclean.leader.election.enable": ("true", "false", "maybe"),
    "retention.msec": ("1",),
}


class Topics(Kind):
    """Three topics. The controller answers changes at once; what the brokers know of them follows."""

    length = 40

    def prepare(self) -> None:
        self.side.make_topics(there=1)

    @staticmethod
    def steps(rng: random.Random, length: int) -> list[Step]:
        steps = []
        for _ in range(length):
            topic = rng.choice([*NAMES, *NAMES, *NAMES, "none"])
            what = rng.choice(["create", "alter", "alter", "alter", "describe", "grow", "delete", "produce", "trim"])
            asked: dict[str, Any] = {"topic": topic}
            if what == "create":
                asked |= {
                    "topic": rng.choice(NAMES) if rng.random() < 0.9 else rng.choice(["", ".", "x/y", "x" * 250]),
                    "partitions": rng.choice([1, 1, 2, 3, -1, 0]),
                    "replicas": rng.choice([1, 1, 1, 1, -1, 0, 2]),
                    "configs": [_option(rng) for _ in range(rng.choice([0, 0, 1, 2]))],
                    "only_checks": rng.random() < 0.2,
                }
            elif what == "alter":
                asked |= {
                    "changes": [_change(rng) for _ in range(rng.choice([1, 1, 2]))],
                    "only_checks": rng.random() < 0.2,
                }
            elif what == "grow":
                asked |= {"partitions": rng.choice([0, 1, 2, 3, 4, -1]), "only_checks": rng.random() < 0.2}
            elif what == "produce":
                asked |= {"count": rng.randint(1, 3)}
            elif what == "trim":
                asked |= {"offset": rng.choice([-1, 0, 1, 2, 99, -2])}
            steps.append(Step(what, asked, eventually=what in {"describe", "produce", "trim"}))
        return steps

    def create(
        self, topic: str, partitions: int, replicas: int, configs: list[tuple[str, str]], only_checks: bool
    ) -> Any:
        name = self.side.name(topic) if topic in NAMES else topic
        wanted: list[Any] = [(name, partitions, replicas, [], list(dict(configs).items()))]
        reply = self.side.ask(CreateTopicsRequest[7](wanted, 30_000, only_checks))
        return [(one.error_code, one.num_partitions, one.replication_factor) for one in reply.topics]

    def delete(self, topic: str) -> Any:
        reply = self.side.ask(DeleteTopicsRequest[6]([(self.side.name(topic), NO_ID)], 30_000))
        return [one.error_code for one in reply.responses]

    def grow(self, topic: str, partitions: int, only_checks: bool) -> Any:
        asked: list[Any] = [(self.side.name(topic), partitions, None)]
        reply = self.side.ask(CreatePartitionsRequest[3](asked, 30_000, only_checks))
        return [one.error_code for one in reply.results]

    def alter(self, topic: str, changes: list[tuple[str, int, str | None]], only_checks: bool) -> Any:
        asked: list[Any] = [(TOPIC, self.side.name(topic), changes)]
        reply = self.side.ask(IncrementalAlterConfigsRequest[1](asked, only_checks))
        return [one.error_code for one in reply.responses]

    def describe(self, topic: str) -> Any:
        """The configuration and the partitions, as the brokers know them."""
        name = self.side.name(topic)
        found = self.side.ask(MetadataRequest[12]([(NO_ID, name)], False)).topics[0]
        shown = (found.error_code, sorted(part.partition_index for part in found.partitions))
        reply = self.side.ask(DescribeConfigsRequest[4]([(TOPIC, name, list(VALUES))], True, False))
        options = [
            (one.name, one.value, one.config_source, one.is_sensitive, one.read_only, one.config_type)
            for result in reply.results
            for one in result.configs
        ]
        return shown, [result.error_code for result in reply.results], sorted(options)

    def produce(self, topic: str, count: int) -> Any:
        """Records without keys, which a compacted topic refuses."""
        reply = self.side.ask(produced(9, self.side.name(topic), 0, batch((-1, -1), -1, count)))
        return [part.error_code for one in reply.responses for part in one.partition_responses]

    def trim(self, topic: str, offset: int) -> Any:
        asked: list[Any] = [(self.side.name(topic), [(0, offset)])]
        reply = self.side.ask(DeleteRecordsRequest[2](asked, 30_000))
        return [part.error_code for one in reply.topics for part in one.partitions]


def _option(rng: random.Random) -> tuple[str, str]:
    name = rng.choice(list(VALUES))
    return name, rng.choice(VALUES[name])


def _change(rng: random.Random) -> tuple[str, int, str | None]:
    name, value = _option(rng)
    operation = rng.choice([SET, SET, SET, SET, DELETE, APPEND, SUBTRACT])
    return name, operation, None if operation == DELETE or rng.random() < 0.03 else value
