from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import strategies as st

from kafka.record import crc32c as crc32c_module

from . import reference
from .strategies import given

VARIANTS = [crc32c_module.crc32c, crc32c_module.crc32c_python]


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


def test_the_package_is_taken_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    crc32c_module.fastest.cache_clear()
    assert crc32c_module.fastest() is not crc32c_module.crc32c_python
    crc32c_module.fastest.cache_clear()
    monkeypatch.setitem(sys.modules, "crc32c", None)
    try:
        assert crc32c_module.fastest() is crc32c_module.crc32c_python
        assert crc32c_module.crc32c(b"123456789") == 0xE3069283
    finally:
        monkeypatch.undo()
        crc32c_module.fastest.cache_clear()


# Without site, whose .pth files of other packages import what they like.
PATHS = f"import sys; sys.path[:] = {sys.path!r}\n"


def test_the_extension_is_loaded_without_the_package() -> None:
    program = """
import sys
from kafka.record.crc32c import crc32c
assert crc32c(b"123456789") == 0xE3069283
print([name for name in ("crc32c", "importlib.metadata", "argparse") if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-S", "-c", PATHS + program], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
