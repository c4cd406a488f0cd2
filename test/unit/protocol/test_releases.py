from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from kafka.errors import UnrecognizedBrokerVersion
from kafka.protocol.broker_release import KNOWN_RELEASES, apis_of, infer_release, known_release
from kafka.protocol.registry import APIS

ROOT = Path(__file__).parents[3]
LEADER_AND_ISR, DESCRIBE_QUORUM, UNREGISTER_BROKER = 4, 55, 64


def test_every_minor_release_is_known():
    names = ["0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1"]
    names += [f"{major}.{minor}" for major, last in ((2, 8), (3, 9), (4, 3)) for minor in range(last + 1)]
    assert [".".join(map(str, release)) for release in KNOWN_RELEASES] == names


def test_the_table_is_what_the_tool_writes():
    spec = importlib.util.spec_from_file_location("generate_releases", ROOT / "tools" / "generate_releases.py")
    tool = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    try:
        spec.loader.exec_module(tool)
    finally:
        sys.path[:] = path
    facts = tool.json.loads(tool.FACTS.read_text(encoding="utf-8"))
    assert tool.MODULE.read_text(encoding="utf-8") == tool.module(tool.offers(facts))


def test_an_offer_stays_within_what_we_can_speak():
    for release in KNOWN_RELEASES:
        for key, (low, high) in apis_of(release).items():
            assert 0 <= low <= high <= APIS[key].max_version, APIS[key]
            assert high >= APIS[key].min_version, APIS[key]


@pytest.mark.parametrize(
    ("release", "key", "versions"),
    [
        ((0, 8, 0), 0, (0, 0)),
        ((0, 8, 1), 8, (0, 0)),
        ((0, 8, 2), 9, (0, 1)),
        ((0, 9, 0), 0, (0, 1)),
        ((0, 9, 0), 14, (0, 0)),
        ((0, 10, 0), 18, (0, 0)),
        ((0, 11, 0), 1, (0, 5)),
        ((2, 8), 3, (0, 11)),
        ((3, 9), 1, (0, 17)),
        ((4, 0), 0, (0, 12)),  # KAFKA-18659: told from 0 although served from 3
        ((4, 0), 1, (4, 17)),
        ((4, 3), 35, (1, 5)),
    ],
)
def test_facts_of_releases(release, key, versions):
    assert apis_of(release)[key] == versions


def test_nothing_older_than_0_10_can_be_asked_for_versions():
    assert [release for release in KNOWN_RELEASES if 18 not in apis_of(release)] == [
        (0, 8, 0),
        (0, 8, 1),
        (0, 8, 2),
        (0, 9, 0),
    ]


def test_brokers_offer_no_apis_of_controllers_and_none_that_need_a_plugin():
    for release in KNOWN_RELEASES:
        assert not {52, 53, 54, 59, 62, 63, 71, 72} & apis_of(release).keys()


def test_an_offer_cannot_be_changed():
    with pytest.raises(TypeError):
        apis_of((2, 8))[0] = (0, 0)


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ((2, 8, 1), (2, 8)),
        ((2, 8, 2, 1), (2, 8)),
        ([3, 9], (3, 9)),
        ((0, 8), (0, 8, 0)),
        ((0, 8, 2, 2), (0, 8, 2)),
        ((0, 9), (0, 9, 0)),
        ((0, 10), (0, 10, 0)),
        ((0, 11, 0, 3), (0, 11, 0)),
        ((1,), (1, 0)),
        ((2, 99), (2, 8)),
        ((99, 0), KNOWN_RELEASES[-1]),
    ],
)
def test_a_release_stands_for_its_patches_and_for_unknown_ones_after_it(given, known):
    assert known_release(given) == known
    assert apis_of(given) is apis_of(known)


@pytest.mark.parametrize("given", [(0, 7), (0, 7, 2), (), "2.8", (2, "8"), (2, -1), (True, 0), 2.8, None])
def test_nonsense_is_refused_with_what_is_known(given):
    with pytest.raises(UnrecognizedBrokerVersion, match=r"0\.8\.0, .* 2\.8, .*4\.3"):
        apis_of(given)


# From an offer to a release


def test_each_release_recognises_itself():
    for release in KNOWN_RELEASES:
        assert infer_release(apis_of(release)) == release


@pytest.mark.parametrize("release", [each for each in KNOWN_RELEASES if (2, 8) <= each < (4, 0)], ids=str)
def test_a_broker_of_either_kind_is_recognised(release):
    zookeeper = without(apis_of(release), DESCRIBE_QUORUM, UNREGISTER_BROKER)
    assert infer_release(zookeeper) == release
    kraft = without(apis_of(release), 4, 5, 6, 7, 56, 58, 67)
    # All that is new in 3.4 is between brokers that keep no quorum.
    assert infer_release(kraft) == ((3, 3) if release == (3, 4) else release)


def test_a_broker_that_leaves_out_all_that_is_not_needed_to_produce_and_consume_is_not_taken_for_a_newer_one():
    for release in KNOWN_RELEASES:
        plain = {key: versions for key, versions in apis_of(release).items() if key in {0, 1, 2, 3, *range(8, 15), 18}}
        found = infer_release(plain)
        assert found <= release
        assert all(apis_of(found).get(key, (0, -1))[1] == versions[1] for key, versions in plain.items())


def test_newer_versions_and_unknown_apis_are_taken_for_the_newest_release():
    newer = {key: (low, high + 1) for key, (low, high) in apis_of(KNOWN_RELEASES[-1]).items()}
    assert infer_release({**newer, 10_000: (0, 3), 555: (0, 0)}) == KNOWN_RELEASES[-1]


def test_one_lagging_api_outside_the_main_path_does_not_matter():
    confluent = {**apis_of((3, 9)), 29: (0, 1), 38: (0, 1), 10_002: (0, 0)}
    assert infer_release(confluent) == (3, 9)


def test_one_lagging_api_on_the_main_path_decides():
    assert infer_release({**apis_of((3, 9)), 0: (0, 7)}) == (2, 3)


def test_event_hubs_is_1_0():
    # What the service told in 2023: far ahead in groups, but Fetch and Metadata are those of 1.0.
    offered = {0: (3, 7), 1: (4, 6), 2: (0, 7), 3: (0, 5), 8: (0, 8), 9: (0, 8), 10: (0, 1), 11: (0, 7)}
    offered |= {12: (0, 4), 13: (0, 4), 14: (0, 5), 15: (0, 5), 18: (0, 3), 36: (0, 1)}
    assert infer_release(offered) == (1, 0)


def test_an_empty_offer_shows_nothing():
    assert infer_release({}) == KNOWN_RELEASES[0]


def without(offer, *keys):
    return {key: versions for key, versions in offer.items() if key not in keys}
