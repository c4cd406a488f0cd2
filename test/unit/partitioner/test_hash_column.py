"""The hashes of a column are those of its keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.partitioner.hash_column import murmur2_column
from kafka.partitioner.murmur2_hash import murmur2


def hashes(keys: list[bytes], before: bytes = b"") -> list[int]:
    bounds = np.cumsum([len(before), *map(len, keys)], dtype=np.int32)
    return [int(found) for found in murmur2_column(before + b"".join(keys), bounds)]


@given(st.lists(st.binary(max_size=40)), st.binary(max_size=5))
def test_any_keys_have_the_hashes_that_they_have_alone(keys: list[bytes], before: bytes) -> None:
    assert hashes(keys, before) == [murmur2(key) for key in keys]


one_length = st.integers(0, 40).flatmap(lambda size: st.lists(st.binary(min_size=size, max_size=size)))


@given(one_length, st.binary(max_size=5))
def test_any_keys_of_one_length_have_the_hashes_that_they_have_alone(keys: list[bytes], before: bytes) -> None:
    assert hashes(keys, before) == [murmur2(key) for key in keys]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 7, 8, 255, 256, 257, 300])
def test_keys_of_one_length_and_very_long_ones(length: int) -> None:
    keys = [bytes((at + each) % 256 for each in range(length)) for at in range(10)]
    assert hashes(keys) == [murmur2(key) for key in keys]
    assert hashes([*keys, b"", b"abc"]) == [murmur2(key) for key in [*keys, b"", b"abc"]]


def test_no_keys_have_no_hashes() -> None:
    assert hashes([]) == []
