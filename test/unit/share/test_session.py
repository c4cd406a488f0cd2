"""The requests of a share session against a broker's view of it."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from kafka.share.session import ShareSession

PLACES = [(UUID(int=topic), number) for topic in (1, 2) for number in (0, 1)]


@given(st.lists(st.tuples(st.sampled_from(["ok", "acknowledge", "failed"]), st.sets(st.sampled_from(PLACES)))))
def test_the_broker_knows_what_the_member_reads(steps: list[tuple[str, set[tuple[UUID, int]]]]) -> None:
    session, known, epoch = ShareSession(), set(), None
    for outcome, wanted in steps:
        if outcome == "acknowledge":
            if session.is_open:
                assert session.epoch == epoch
                session.answered()
                epoch = session.epoch
            continue
        out = session.fetch(sorted(wanted))
        if out.epoch == 0:
            known = set()
        else:
            assert out.epoch == epoch
        assert not known & set(out.added)
        assert set(out.forgotten) <= known
        known = (known | set(out.added)) - set(out.forgotten)
        assert known == wanted
        if outcome == "ok":
            session.answered()
            assert session.epoch == out.epoch + 1
            epoch = session.epoch
        else:
            session = ShareSession()


def test_after_the_last_epoch_comes_the_first() -> None:
    session = ShareSession()
    session.epoch = 2**31 - 1
    session.answered()
    assert session.epoch == 1
