"""A request that fails as a whole: the embedded broker's reply, and that of the request's class in Kafka."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from kafka.broker.server.apis import refusal, served
from kafka.broker.server.error_replies import error_reply
from kafka.protocol.registry import APIS, ApiKey
from test.real.conftest import need_kafka
from test.real.golden import Golden
from test.real.releases import NEWEST
from test.unit.protocol.instances import random_message

#: CLUSTER_AUTHORIZATION_FAILED: an error of a whole request that each API may have.
CODE = 31
#: Kafka's classes refuse nearly all random messages of these.
REFUSED = {ApiKey.DescribeAcls, ApiKey.CreateAcls, ApiKey.DeleteAcls}
NOT_SAID = {
    # Kafka writes who is connected.
    ApiKey.CreateDelegationToken: {
        *("principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name")
    },
    # Kafka has an element for each that was asked for: without an error, or without the name.
    ApiKey.ListPartitionReassignments: {"topics"},
    ApiKey.DescribeUserScramCredentials: {"results"},
}


@pytest.fixture(scope="module")
def java() -> Iterator[Golden]:
    with Golden(need_kafka(NEWEST)) as golden:
        yield golden


def said(message: Any) -> dict[str, object]:
    """What a reply says; of lists the elements that have the error, in any order and each once."""
    values = {name: getattr(message, name) for name in type(message)._fields if name != "error_message"}
    for name, value in values.items():
        if isinstance(value, list):
            elements = [repr(said(one)) for one in value if hasattr(type(one), "_fields")]
            values[name] = sorted({one for one in elements if f"error_code': {CODE}" in one})
    return values


def names_each_topic_once(request: Any) -> bool:
    names = [(one.name, one.topic_id) for one in getattr(request, "topic_data", ())]
    return len(names) == len(set(names))


@pytest.mark.parametrize("key", [key for key in sorted(served()) if not refusal(key) and key not in REFUSED])
def test_an_error_has_the_shape_that_kafka_gives_it(java: Golden, key: int) -> None:
    rng = random.Random(key)
    api = APIS[key]
    low, high = java.versions(api.name + "Request")
    compared = 0
    for version in range(low, high + 1):
        requests = [random_message(api.request[version], rng, unknown_tags=False) for _ in range(30)]
        requests = [request for request in requests if names_each_topic_once(request)]
        replies = java.refuse_many([(key, version, CODE, request.encode()) for request in requests])
        for request, reply in zip(requests, replies, strict=True):
            own = error_reply(request, CODE)
            if isinstance(reply, bytes) and reply and own is not None:
                theirs, ours = said(api.response[version].decode(reply)), said(own)
                for name in NOT_SAID.get(ApiKey(key), ()):
                    del theirs[name], ours[name]
                assert ours == theirs, f"version {version}: {request}"
                compared += 1
    assert compared
