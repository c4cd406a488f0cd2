"""Topics that a program needs: create them, or compare the ones that exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka.admin.calls import call
from kafka.admin.config_resource import ConfigResource, ConfigResourceType
from kafka.admin.configs import Configs
from kafka.admin.resources import NewTopic, as_new_topics, config_text
from kafka.admin.results import Result, raise_failed
from kafka.admin.topics import Topics
from kafka.errors import Code


class EnsuredTopic(Result):
    """A topic that was created now, or that existed.

    `differences` has, for an existing topic, what is not as wanted: the wanted and the present value by
    ``num_partitions``, ``replication_factor`` or the name of a setting.
    """

    __slots__ = ()
    created: bool
    differences: dict[str, tuple[Any, Any]]

    @property
    def ok(self) -> bool:
        """Whether the topic is as wanted."""
        return not self.differences


class TopicSetup(Topics, Configs):
    """The call that sets topics up."""

    @call
    async def ensure_topics(
        self, new_topics: Iterable[NewTopic | str] | Mapping[str, object], timeout_ms: float | None = None
    ) -> dict[str, EnsuredTopic]:
        """Create the topics that do not exist, wait until they can be written to, and compare the others.

        `new_topics` is as for `create_topics`. Numbers and settings that are left out are not compared, and nothing of
        an existing topic is changed.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics={"logs": 1}) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         found = admin.ensure_topics({"events": {}, "logs": {"num_partitions": 3}})
        >>> found["events"].created, found["logs"].differences
        (True, {'num_partitions': (3, 1)})
        """
        deadline = self._core.deadline(timeout_ms)
        topics = as_new_topics(new_topics)
        made = await self.create_topics(topics, deadline, raise_errors=False, wait_for_metadata=True)
        raise_failed([topic for topic in made.topics if topic.error_code != Code.TOPIC_ALREADY_EXISTS], made)
        created = {topic.name for topic in made.topics if topic.ok}
        others = [topic for topic in topics if topic.name not in created]
        differences = await self._topic_differences(deadline, others) if others else {}
        return {
            topic.name: EnsuredTopic(created=topic.name in created, differences=differences.get(topic.name, {}))
            for topic in topics
        }

    async def _topic_differences(
        self, deadline: float, topics: list[NewTopic]
    ) -> dict[str, dict[str, tuple[object, object]]]:
        described = await self.describe_topics([topic.name for topic in topics], deadline)
        raise_failed(described, described)
        resources = [
            ConfigResource(ConfigResourceType.TOPIC, topic.name, list(topic.topic_configs)) for topic in topics
        ]
        settings = await self.describe_configs(resources, config_filter="all", timeout_ms=deadline)
        found = {}
        for topic, present in zip(topics, described, strict=True):
            places = topic.replica_assignments
            wanted = {
                "num_partitions": len(places) if places else topic.num_partitions,
                "replication_factor": len(next(iter(places.values()))) if places else topic.replication_factor,
            }
            known = {
                "num_partitions": len(present.partitions),
                "replication_factor": len(present.partitions[0].replica_nodes),
            }
            pairs: dict[str, tuple[object, object]] = {
                name: (wanted[name], known[name]) for name in wanted if wanted[name] != -1
            }
            entries = settings.get("topic", {}).get(topic.name, {})
            for name, value in topic.topic_configs.items():
                pairs[name] = (config_text(value), entries[name].value if name in entries else None)
            found[topic.name] = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        return found
