"""Which version is chosen, and what is said where there is none."""

from __future__ import annotations

import pytest

from kafka.errors import UnsupportedVersionError
from kafka.protocol.admin import ApiVersionsResponse, DeleteGroupsRequest
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.negotiation import ApiVersions
from kafka.protocol.registry import APIS
from kafka.protocol.transaction import InitProducerIdRequest


def test_the_newest_version_of_both_sides_is_chosen() -> None:
    broker = ApiVersions({1: (0, 11), 3: (0, 99)})
    assert broker.highest(FetchRequest) == 11
    assert broker.highest(MetadataRequest) == 13
    assert broker.choose(FetchRequest) is FetchRequest[11]
    assert broker.highest(FetchRequest, at_most=4) == 4
    assert broker.highest(1) == 11


def test_the_version_of_a_request_is_chosen_for_its_class_and_for_an_instance() -> None:
    broker = ApiVersions({1: (0, 11), 3: (0, 99)})
    assert broker.version_for(FetchRequest) == broker.version_for(FetchRequest()) == 11
    assert broker.version_for(FetchRequest[4]()) == 4


def test_unstable_versions_are_never_chosen() -> None:
    everything = ApiVersions(dict.fromkeys(APIS, (0, 1000)))
    assert everything.highest(InitProducerIdRequest) == 5
    assert not ApiVersions({78: (0, 0)}).supports(78), "ShareFetch 0 was an early access version"


def test_missing_support_is_named_with_the_release_that_has_it() -> None:
    old = ApiVersions.of_release((0, 10, 2))
    with pytest.raises(UnsupportedVersionError, match=r"0.10.2\) has no DeleteGroups; it came with Kafka 1.1"):
        old.highest(DeleteGroupsRequest)
    newest_only = ApiVersions({1: (40, 50)})
    with pytest.raises(UnsupportedVersionError, match="has Fetch in versions 40-50, none of which can be used"):
        newest_only.highest(FetchRequest)
    with pytest.raises(UnsupportedVersionError, match=r"Fetch in versions 4-17, .* wanted is 0-3"):
        ApiVersions({1: (4, 17)}).highest(FetchRequest, at_most=3)
    with pytest.raises(UnsupportedVersionError, match="no API with key 4711"):
        old.highest(4711)


def test_support_can_be_asked_for_one_version() -> None:
    broker = ApiVersions.of_release((2, 8))
    assert broker.supports(FetchRequest)
    assert broker.supports(FetchRequest, 12)
    assert not broker.supports(FetchRequest, 13)
    assert not broker.supports(68)
    assert broker.release == (2, 8)
    assert len(broker) == len(dict(broker))


def test_connections_share_what_brokers_answer_alike() -> None:
    answer, other = ApiVersionsResponse[0](0, [(1, 0, 11), (18, 0, 3)]), ApiVersionsResponse[0](0, [(1, 0, 12)])
    first = ApiVersions.from_response(answer)
    assert ApiVersions.from_response(answer) is first
    assert ApiVersions.from_response(other) is not first
    assert dict(ApiVersions.from_response(other)) == {1: (0, 12)}
    feature = ApiVersionsResponse.FinalizedFeatureKey(name="f", max_version_level=2, min_version_level=1)
    featured = ApiVersionsResponse(api_keys=answer.api_keys, finalized_features=[feature])
    assert ApiVersions.from_response(featured).features == {"f": (1, 2)}
    assert not first.features


def test_an_answer_is_read_and_an_error_in_it_is_raised() -> None:
    answer = ApiVersionsResponse[0](0, [(1, 0, 11), (18, 0, 3)])
    assert dict(ApiVersions.from_response(answer)) == {1: (0, 11), 18: (0, 3)}
    with pytest.raises(UnsupportedVersionError, match="the ApiVersions request failed"):
        ApiVersions.from_response(ApiVersionsResponse[0](35, []))
