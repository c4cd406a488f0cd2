"""Records for property tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import strategies as st


def given(*what: st.SearchStrategy[Any], examples: int = 60) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """``hypothesis.given`` without a deadline: benchmarks measure time, and a busy machine must not fail a test."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        return hypothesis.settings(deadline=None, max_examples=examples)(hypothesis.given(*what)(test))

    return decorate


# Sizes around where lengths take one more byte, and where the fast paths hand over to the general ones.
SIZES = st.one_of(
    st.integers(0, 10), st.sampled_from([60, 63, 64, 100, 8100, 8191, 8192]), st.sampled_from([3999, 4000, 4001])
)
DATA = st.one_of(st.binary(max_size=20), SIZES.map(lambda size: b"x" * size))
FIELDS = st.one_of(st.none(), DATA)
HEADERS = st.lists(st.tuples(st.text(max_size=8), FIELDS), max_size=3)
TIMES = st.one_of(
    st.integers(0, 100),
    st.integers(1_700_000_000_000, 1_700_000_100_000),
    st.sampled_from([-1, 0, 1, 2**61, 2**62 - 1, -(2**61)]),
)


@st.composite
def _repeated(draw: st.DrawFn, one: st.SearchStrategy[tuple]) -> list[tuple]:
    """Some records, each several times: that makes runs of equal shape."""
    rows: list[tuple] = []
    for row in draw(st.lists(one, min_size=1, max_size=5)):
        is_large = len(row[1] or b"") + len(row[2] or b"") > 200
        rows += [row] * draw(st.sampled_from([1, 2] if is_large else [1, 1, 2, 20, 70]))
    return rows


RECORDS = _repeated(st.tuples(TIMES, FIELDS, FIELDS, st.one_of(st.just([]), HEADERS)))
PLAIN_RECORDS = _repeated(st.tuples(TIMES, st.one_of(st.none(), DATA), DATA, st.just([])))
