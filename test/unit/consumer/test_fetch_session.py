"""The session is what the broker remembers: every request is judged by a broker's side of it."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from kafka.consumer.fetch_session import NO_TOPIC_ID, FetchSession, Wanted
from kafka.structs import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def wanted(offset: int, topic_id: int = 0) -> Wanted:
    return Wanted(offset, -1, -1, 100, UUID(int=topic_id) if topic_id else NO_TOPIC_ID)


def test_a_lost_reply_makes_the_next_request_full_and_replaces_the_session() -> None:
    session = FetchSession()
    session.next({A: wanted(0)})
    session.answered(5)
    session.next({A: wanted(1)})
    session.failed()
    out = session.next({A: wanted(1)})
    assert (out.session_id, out.epoch, dict(out.wanted)) == (5, 0, {A: wanted(1)})
    session.answered(6)
    assert session.next({A: wanted(1)})[:2] == (6, 1)


def test_a_session_that_the_broker_forgot_is_not_named_again() -> None:
    session = FetchSession()
    session.next({A: wanted(0)})
    session.answered(5)
    session.refused(70)
    assert session.next({A: wanted(0)})[:2] == (0, 0)


def test_a_reply_with_another_id_begins_that_session() -> None:
    session = FetchSession()
    session.next({A: wanted(0)})
    session.answered(5)
    session.next({A: wanted(1)})
    session.answered(9)
    assert session.next({A: wanted(2)})[:2] == (9, 1)


def test_without_an_id_all_requests_are_full() -> None:
    session = FetchSession()
    for _ in range(3):
        out = session.next({A: wanted(0)})
        assert (out.session_id, out.epoch, len(out.wanted)) == (0, 0, 1)
        session.answered(0)


def test_a_topic_created_again_is_forgotten_and_asked_for_again() -> None:
    session = FetchSession()
    session.next({A: wanted(9, topic_id=1)})
    session.answered(5)
    out = session.next({A: wanted(0, topic_id=2)})
    assert list(out.forgotten) == [(A, UUID(int=1))]
    assert dict(out.wanted) == {A: wanted(0, topic_id=2)}


def test_names_and_ids_are_not_mixed_in_a_session() -> None:
    session = FetchSession()
    session.next({A: wanted(0)})
    session.answered(5)
    assert session.next({A: wanted(0, topic_id=1)}).epoch == 0


def test_the_epoch_wraps_around_and_a_closing_request_ends_the_session() -> None:
    session = FetchSession()
    assert session.closing() is None
    session.next({})
    session.answered(5)
    session.epoch = 2**31 - 1
    session.answered(5)
    assert session.epoch == 1
    closing = session.closing()
    assert closing is not None
    assert closing[:2] == (5, -1)


def test_switched_off_it_is_sessionless() -> None:
    session = FetchSession(enabled=False)
    session.next({A: wanted(0)})
    session.answered(5)
    assert session.next({A: wanted(0)})[:2] == (0, -1)


_REQUESTS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from([A, B]), st.builds(wanted, st.integers(0, 3)), max_size=2),
        st.sampled_from(["answered", "lost", "forgotten", "evicted"]),
    ),
    max_size=12,
)


@given(_REQUESTS)
def test_the_broker_always_knows_what_is_wanted(requests: list[tuple[dict[TopicPartition, Wanted], str]]) -> None:
    session = FetchSession()
    held: dict[int, dict[TopicPartition, Wanted]] = {}
    epochs: dict[int, int] = {}
    ids = iter(range(1, 100))
    for now_wanted, fate in requests:
        out = session.next(now_wanted)
        if fate == "evicted":
            held.clear()
        if out.epoch == 0:
            held.pop(out.session_id, None)
            number = next(ids)
            held[number] = dict(out.wanted)
        elif out.session_id not in held:
            session.refused(70)
            continue
        else:
            number = out.session_id
            assert out.epoch == epochs[number] + 1
            for partition, _ in out.forgotten:
                held[number].pop(partition, None)
            held[number].update(out.wanted)
        epochs[number] = out.epoch
        assert held[number] == now_wanted
        if fate == "lost":
            session.failed()
        elif fate == "forgotten":
            held.pop(number, None)
            session.answered(number)
        else:
            session.answered(number)
