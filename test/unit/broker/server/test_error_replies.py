"""The reply that says one error about all that a request asked for, for every API that is served."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafka.broker.server.apis import served
from kafka.broker.server.error_replies import error_reply
from kafka.protocol.admin import DeleteGroupsRequest, DeleteTopicsRequest, ElectLeadersRequest
from kafka.protocol.api import Request
from kafka.protocol.commit import FindCoordinatorRequest, OffsetFetchRequest
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.group import LeaveGroupRequest
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.registry import APIS
from test.unit.protocol.instances import random_message


def codes(message: Any) -> list[int]:
    """All error codes in a reply."""
    found = []
    for name in type(message)._fields:
        value = getattr(message, name)
        if name in {"error_code", "partition_error_code"}:
            found.append(value)
        elif isinstance(value, list):
            found += [code for one in value if hasattr(type(one), "_fields") for code in codes(one)]
    return found


@pytest.mark.parametrize("key", sorted(served()))
def test_every_api_can_be_made_to_fail(key: int) -> None:
    api = APIS[key]
    rng = random.Random(key)
    for version in range(api.min_version, api.max_version + 1):
        told = False
        for _ in range(20):
            request: Request = random_message(api.request[version], rng, unknown_tags=False)
            reply = error_reply(request, 7)
            if reply is None:
                continue
            assert type(reply).unframe(reply.frame(1)[4:])[1] == reply
            told = told or 7 in codes(reply)
        # What asks for nothing cannot be refused anything, but of twenty some ask.
        assert told, f"{api.name} v{version} cannot say an error"


def test_partitions_get_the_error_each() -> None:
    request = ProduceRequest[7](acks=1, timeout_ms=1, topic_data=[("a", [(0, b""), (3, b"")]), ("b", [(1, b"")])])
    reply = error_reply(request, 6)
    assert [
        (topic.name, [(p.index, p.error_code) for p in topic.partition_responses]) for topic in reply.responses
    ] == [
        ("a", [(0, 6), (3, 6)]),
        ("b", [(1, 6)]),
    ]
    cls = FetchRequest[4]
    request = cls(
        max_wait_ms=0, min_bytes=0, topics=[cls.FetchTopic(topic="a", partitions=[cls.FetchPartition(partition=2)])]
    )
    part = error_reply(request, 6).responses[0].partitions[0]
    assert (part.partition_index, part.error_code) == (2, 6)


def test_bare_names_are_found() -> None:
    assert [(one.group_id, one.error_code) for one in error_reply(DeleteGroupsRequest[0](["g"]), 16).results] == [
        ("g", 16)
    ]
    reply = error_reply(DeleteTopicsRequest[1](topic_names=["t"], timeout_ms=1), 29)
    assert [(one.name, one.error_code) for one in reply.responses] == [("t", 29)]
    reply = error_reply(FindCoordinatorRequest[4](key_type=0, coordinator_keys=["g"]), 15)
    assert [(one.key, one.error_code) for one in reply.coordinators] == [("g", 15)]


def test_some_codes_are_of_the_whole_and_some_of_the_elements() -> None:
    offsets = {3: OffsetFetchRequest[3](group_id="g", topics=[("t", [0])])}
    cls = OffsetFetchRequest[8]
    offsets[8] = cls(groups=[cls.OffsetFetchRequestGroup(group_id="g", topics=[("t", [0])])])
    reply = error_reply(offsets[3], 16)
    assert (reply.error_code, reply.topics) == (16, [])
    reply = error_reply(offsets[3], 29)
    assert (reply.error_code, reply.topics[0].partitions[0].error_code) == (0, 29)
    (group,) = error_reply(offsets[8], 16).groups
    assert (group.group_id, group.error_code, group.topics) == ("g", 16, [])
    (group,) = error_reply(offsets[8], 88).groups
    assert (group.error_code, group.topics[0].partitions[0].error_code) == (0, 88)

    leaving = LeaveGroupRequest[3]("g", [("m", None)])
    reply = error_reply(leaving, 16)
    assert (reply.error_code, reply.members) == (16, [])
    reply = error_reply(leaving, 25)
    assert (reply.error_code, [(one.member_id, one.error_code) for one in reply.members]) == (0, [("m", 25)])

    elections = ElectLeadersRequest[1](topic_partitions=[("t", [0, 1])], timeout_ms=1)
    for code, whole in ((31, 31), (84, 0)):
        reply = error_reply(elections, code)
        assert reply.error_code == whole
        assert [one.error_code for one in reply.replica_election_results[0].partition_result] == [code, code]


def test_a_fetch_fails_at_its_partitions_and_as_a_whole_for_its_session_alone() -> None:
    cls = FetchRequest[12]
    request = cls(
        max_wait_ms=0, min_bytes=0, topics=[cls.FetchTopic(topic="a", partitions=[cls.FetchPartition(partition=2)])]
    )
    for code in (70, 71, 106):
        reply = error_reply(request, code)
        assert (reply.error_code, reply.responses) == (code, [])
    for code in (1, 3, 6, 29, 74, 75, 76, -1):
        reply = error_reply(request, code)
        assert (reply.error_code, reply.responses[0].partitions[0].error_code) == (0, code)


@pytest.mark.parametrize(
    "request_",
    [
        FetchRequest[12](max_wait_ms=0, min_bytes=0, topics=[]),
        OffsetFetchRequest[5](group_id="g", topics=None),
        DeleteGroupsRequest[0]([]),
    ],
    ids=lambda request: type(request).__name__,
)
def test_what_asks_for_nothing_cannot_be_refused_anything(request_: Request) -> None:
    assert error_reply(request_, 29) is None
