"""Results of an administrator's calls: fields that are keys and attributes, old names, errors of items."""

from __future__ import annotations

import copy
import json
import pickle
from typing import ClassVar

import pytest

from kafka.admin.results import ItemResult, Result, Results, raise_failed
from kafka.errors import InvalidTopicError, KafkaError, TopicAlreadyExistsError


class Place(Result):
    node_id: int
    _aliases: ClassVar = {"id": "node_id"}


class Named(ItemResult):
    name: str

    def item(self) -> str:
        return f"topic {self.name!r}"


GOOD = Named(name="good", error_code=0, error_message=None)
TAKEN = Named(name="taken", error_code=36, error_message=None)
WRONG = Named(name="wrong", error_code=17, error_message="a space")


def test_a_field_is_a_key_and_an_attribute():
    place = Place(node_id=1)
    assert place.node_id == place["node_id"] == place.get("node_id") == 1
    assert place == {"node_id": 1}
    assert json.loads(json.dumps(place)) == {"node_id": 1}
    assert repr(place) == "Place(node_id=1)"


def test_an_old_name_answers_but_is_not_listed():
    place = Place(node_id=1)
    assert place["id"] == place.id == place.get("id") == 1
    assert "id" not in place
    assert list(place) == ["node_id"]


def test_an_unknown_name_is_refused_as_by_a_dict_and_by_an_object():
    place = Place(node_id=1)
    with pytest.raises(KeyError, match="rack"):
        place["rack"]
    with pytest.raises(AttributeError, match="Place has no field 'rack'; it has node_id"):
        place.rack  # noqa: B018
    assert place.get("rack") is None
    assert place.get("rack", 7) == 7


def test_a_result_survives_pickling_and_copying():
    for twin in (pickle.loads(pickle.dumps(TAKEN)), copy.copy(TAKEN), copy.deepcopy(TAKEN)):
        assert twin == TAKEN
        assert type(twin) is Named
        assert twin.error == TAKEN.error


def test_an_item_has_its_error():
    assert GOOD.ok
    assert GOOD.error is None
    GOOD.raise_for_error()
    assert TAKEN.error == TopicAlreadyExistsError(f"topic 'taken': {TopicAlreadyExistsError.description}")
    with pytest.raises(InvalidTopicError, match="topic 'wrong': a space"):
        WRONG.raise_for_error()


def test_a_collection_knows_what_failed():
    results = Results([GOOD, TAKEN])
    assert not results.ok
    assert results.failed == [TAKEN]
    assert Results([GOOD]).ok


def test_the_first_error_is_raised_with_the_results_of_all():
    results = Results([GOOD, TAKEN, WRONG])
    with pytest.raises(TopicAlreadyExistsError, match=r"'taken'.*2 items failed") as caught:
        results.raise_for_error()
    assert caught.value.results is results
    assert "wrong" not in str(caught.value)
    raise_failed([GOOD], results)


def test_the_results_are_no_fact_that_the_message_shows():
    error = KafkaError("no", node_id=1)
    error.results = [GOOD]
    assert str(error) == "no (node_id=1)"
    assert pickle.loads(pickle.dumps(error)).results == [GOOD]
