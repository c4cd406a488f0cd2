from __future__ import annotations

import sys

import pytest
from hypothesis import strategies as st

from kafka.record import _crc32c

from . import reference
from .strategies import given

VARIANTS = [_crc32c.crc32c, _crc32c.crc32c_python, _crc32c.crc32c_numpy]


@pytest.mark.parametrize("crc", VARIANTS)
def test_known_values(crc) -> None:
    # RFC 3720, B.4
    assert crc(b"") == 0
    assert crc(b"123456789") == 0xE3069283
    assert crc(bytes(32)) == 0x8A9136AA
    assert crc(b"\xff" * 32) == 0x62A8AB43
    assert crc(bytes(range(32))) == 0x46DD794E


@given(st.binary(max_size=4000), st.integers(0, 2**32 - 1), st.integers(0, 8))
def test_variants_agree_and_continue(data: bytes, start: int, repeat: int) -> None:
    data *= repeat
    expected = reference.crc32c(data, start)
    for crc in VARIANTS:
        assert crc(data, start) == expected
        assert crc(memoryview(data)[7:], crc(data[:7], start)) == expected


@pytest.mark.parametrize("size", [1023, 1024, 1025, 4096, 65_535, 65_536, 65_537, 300_001])
def test_numpy_agrees_at_the_edges_of_its_lanes(size: int) -> None:
    data = bytes(at * 7 & 0xFF for at in range(size))
    assert _crc32c.crc32c_numpy(data, 99) == _crc32c.crc32c_python(bytearray(data), 99)


def test_best_available_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    _crc32c._best.cache_clear()
    monkeypatch.setitem(sys.modules, "crc32c", None)
    try:
        assert _crc32c._best() is _crc32c.crc32c_numpy
        _crc32c._best.cache_clear()
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        assert _crc32c._best() is _crc32c.crc32c_python
        assert _crc32c.crc32c(b"123456789") == 0xE3069283
    finally:
        monkeypatch.undo()
        _crc32c._best.cache_clear()
