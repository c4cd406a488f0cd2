"""Which fetch session goes when there are too many."""

from __future__ import annotations

from collections import OrderedDict
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.broker.fetching.sessions import FetchSessions, SessionRefused


def test_the_session_that_was_not_used_for_longest_goes() -> None:
    sessions = FetchSessions(Random(1), slots=2)
    wanted: Any = OrderedDict({("t", 0): object()})

    def ask(session_id: int, epoch: int) -> None:
        request: Any = SimpleNamespace(
            API_VERSION=12, session_id=session_id, session_epoch=epoch, topics=(), forgotten_topics_data=()
        )
        sessions.continue_session(request)

    first, second = sessions.begin(wanted, uses_ids=False), sessions.begin(wanted, uses_ids=False)
    ask(first, 1)
    third = sessions.begin(wanted, uses_ids=False)
    with pytest.raises(SessionRefused):
        ask(second, 1)
    ask(first, 2)
    ask(third, 1)
    assert len(sessions) == 2
