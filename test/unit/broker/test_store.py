"""The tables that outlive the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka.broker.store import Store


def test_values_are_there_after_an_orderly_end_and_after_none(tmp_path: Path) -> None:
    path = tmp_path / "tables"
    store = Store(path)
    store.table("a")["k"] = {"n": 1}
    store.table("a")["gone"] = 1
    del store.table("a")["gone"]
    store.table("b")["ä"] = [1, "x"]
    crashed = Store(path)
    assert dict(crashed.table("a")) == {"k": {"n": 1}}
    crashed.close()
    store.close()
    again = Store(path)
    assert dict(again.table("a")) == {"k": {"n": 1}}
    assert dict(again.table("b")) == {"ä": [1, "x"]}
    again.close()


@pytest.mark.parametrize("end", [b"half a line", b"00000000 [1]\n", b"\xff\xfe\n"])
def test_a_torn_end_is_cut_off(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "tables"
    store = Store(path)
    store.table("a")["k"] = 1
    store.close()
    whole = path.read_bytes()
    path.write_bytes(whole + end)
    store = Store(path)
    assert dict(store.table("a")) == {"k": 1}
    store.table("a")["l"] = 2
    store.close()
    store = Store(path)
    assert dict(store.table("a")) == {"k": 1, "l": 2}
    store.close()


def test_the_file_does_not_grow_without_end(tmp_path: Path) -> None:
    path = tmp_path / "tables"
    store = Store(path)
    for number in range(5000):
        store.table("a")["k"] = number
    assert len(path.read_bytes().splitlines()) < 2000
    store.close()
    assert len(path.read_bytes().splitlines()) == 1
