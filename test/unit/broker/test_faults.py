"""Orders of tests and the log of requests."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kafka.broker.faults import Faults, SeenRequest, Taken, error_code, error_codes
from kafka.broker.server.versions import ApiTable, api_key_of
from kafka.errors import IllegalArgumentError, KafkaConfigurationError, KafkaTimeoutError, NotCoordinatorError
from kafka.protocol.fetch import FetchRequest, FetchResponse
from kafka.protocol.metadata import MetadataRequest


@pytest.fixture(autouse=True)
def no_watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker of the invariants would keep the faults active."""
    monkeypatch.setattr(Faults, "make_watcher", None)


def test_errors_are_given_in_any_form() -> None:
    assert [error_code(error) for error in (16, NotCoordinatorError, NotCoordinatorError("x"), None)] == [
        16,
        16,
        16,
        None,
    ]
    assert error_code("NOT_COORDINATOR") == error_code("not_coordinator") == error_code("NotCoordinatorError") == 16
    for other in (KafkaTimeoutError, True, 1.5, object):
        with pytest.raises(IllegalArgumentError, match="is not an error that a broker answers with; give a code"):
            error_code(other)  # type: ignore[arg-type]
    with pytest.raises(IllegalArgumentError, match="did you mean 'NOT_COORDINATOR'"):
        error_code("NOT_CORDINATOR")


def test_one_error_or_several_are_given() -> None:
    assert error_codes(NotCoordinatorError) == error_codes("NOT_COORDINATOR") == error_codes(16) == [16]
    assert error_codes(NotCoordinatorError("x")) == [16]
    assert error_codes([16, None, "NOT_CONTROLLER"]) == [16, None, 41]
    assert error_codes(each for each in (6, 7)) == [6, 7]


def test_apis_are_named_in_any_form() -> None:
    assert {api_key_of(api) for api in (1, "fetch", "FetchRequest", FetchRequest, FetchResponse, FetchRequest[4])} == {
        1
    }
    with pytest.raises(IllegalArgumentError, match="not an API of Kafka"):
        api_key_of(12345)


def never(code: int) -> None:
    raise AssertionError(f"no order says an error, not {code}")


def test_an_order_ends_when_it_is_used_up_or_taken_back() -> None:
    faults = Faults()
    faults.add("Fetch", delay=1.0, times=2, node=None)
    assert faults.is_active
    assert faults.take(3, 1, never) is None
    assert [taken.delays for taken in (faults.take(1, 1, never), faults.take(1, 2, never)) if taken] == [[1.0], [1.0]]
    assert not faults.is_active
    with faults.add(None, delay=1.0, times=None, node=2) as every:
        assert faults.take(3, 2, never) == Taken(delays=[1.0])
        assert faults.take(3, 1, never) is None
        assert every.used == 1
    assert not faults.is_active
    every.remove()


@pytest.mark.parametrize(
    "options",
    [
        {"delay": 1.0, "times": 1},
        {"drops": True, "times": 1},
        {"interceptor": print, "before": True, "times": 1},
        {"interceptor": print, "times": 1},
        {"errors": deque([6]), "times": None},
    ],
    ids=["delay", "drop", "before", "after", "error"],
)
def test_times_counts_a_request_when_it_arrives(options: dict[str, Any]) -> None:
    faults = Faults()
    faults.add("Fetch", node=None, **options)
    taken = faults.take(1, 1, str)
    assert taken is not None
    assert taken != Taken()
    assert faults.take(1, 1, str) is None


def test_an_interceptor_that_is_not_asked_is_not_used_up() -> None:
    faults = Faults()
    faults.add("Fetch", node=None, interceptor=print, times=1)
    faults.add("Fetch", node=None, errors=deque([6, None]), times=None)
    faults.add("Fetch", node=None, interceptor=repr, before=True, times=1)
    assert faults.take(1, 1, str) == Taken(reply="6")
    assert faults.take(1, 1, str) == Taken(before=[repr], after=[print])
    assert faults.take(1, 1, str) is None


def test_an_error_waits_for_a_request_that_can_have_it() -> None:
    faults = Faults()
    faults.add("Fetch", node=None, errors=deque([6]), times=None)
    assert faults.take(1, 1, lambda code: None) == Taken()
    assert faults.take(1, 1, str) == Taken(reply="6")
    assert not faults.is_active


def test_the_log_of_requests_is_bounded_by_bytes() -> None:
    faults = Faults()
    request = MetadataRequest[1]([])
    for number in range(10):
        faults.note(SeenRequest(request, 3, 1, None, 1, 1, number, 0.0, Faults.LOG_BYTES // 4))
    assert [seen.correlation_id for seen in faults.seen()] == [6, 7, 8, 9]
    assert faults.seen()[0].name == "Metadata"
    faults.forget()
    assert faults.seen() == []


def test_a_release_offers_what_it_had() -> None:
    old = ApiTable("0.11")
    assert old.get(0) == (0, 3)
    assert old.get(68) is None
    assert ApiTable().get(0) == (0, 13)
    assert ApiTable("2.8.1").release == (2, 8)
    for wrong in ("soon", "0.7", ""):
        with (
            pytest.raises(KafkaConfigurationError, match="not a release of Kafka")
            if wrong
            else pytest.raises(AssertionError)
        ):
            assert ApiTable(wrong).release is not None
