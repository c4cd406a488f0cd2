"""The tables that outlive the process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from stat import S_ISDIR

import pytest

from kafka.broker.cluster.store import Store
from kafka.errors import IllegalStateError


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


LINES = [("a", "k", 1), ("a", "l", {"text": "x" * 50}), ("b", "m", None), ("b", "n", 2)]


def written(path: Path) -> bytes:
    """What a store holds that a crash has ended: a line for each change."""
    store = Store(path)
    for table, key, value in LINES:
        if value is None:
            store.table(table)[key] = 0
            del store.table(table)[key]
        else:
            store.table(table)[key] = value
    return crash(store, path)


def crash(store: Store, path: Path) -> bytes:
    """End a store as a crash does; return what it leaves."""
    assert store._file is not None
    store._file.close()
    return path.read_bytes()


@pytest.mark.parametrize("end", [b"half a line", b'00000000 ["a', b"\0" * 40])
def test_a_torn_end_is_cut_off_and_the_log_says_so(
    tmp_path: Path, end: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tables"
    store = Store(path)
    store.table("a")["k"] = 1
    store.close()
    whole = path.read_bytes()
    path.write_bytes(whole + end)
    store = Store(path)
    (said,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert f"{path}: cut off at byte {len(whole)}: the last {len(end)} bytes" in said
    assert dict(store.table("a")) == {"k": 1}
    store.table("a")["l"] = 2
    store.close()
    store = Store(path)
    assert dict(store.table("a")) == {"k": 1, "l": 2}
    store.close()


def test_a_crash_at_any_byte_costs_the_last_line_at_most(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole")
    ends = [at for at, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(len(whole) + 1):
        path = tmp_path / "tables"
        path.write_bytes(whole[:size])
        store = Store(path)
        complete = sum(end <= size for end in ends)  # a last line without its newline is whole, too
        assert store._lines == complete
        store.table("c")["next"] = 3
        crash(store, path)
        again = Store(path)
        assert again.table("c")["next"] == 3
        crash(again, path)


def test_a_flipped_bit_is_never_passed_over(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole")
    path = tmp_path / "tables"
    for position in range(len(whole) - 1):
        for bit in (0, 6):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            line = whole[:position].count(b"\n") + 1
            with pytest.raises(IllegalStateError, match=rf"tables is damaged: line {line} \(byte \d+, \d+ bytes\)"):
                Store(path)
            assert path.read_bytes() == damaged


def test_the_error_about_damage_names_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "tables"
    first, second, *rest = written(path).splitlines(keepends=True)
    path.write_bytes(first + second.replace(b"xxx", b"xyx", 1) + b"".join(rest))
    with pytest.raises(IllegalStateError, match=r"Restore the file from a copy; or, to continue without .* delete it"):
        Store(path)
    path.write_bytes(first + b"".join(rest))
    store = Store(path)
    assert dict(store.table("a")) == {"k": 1}
    store.close()


@pytest.mark.skipif(os.name == "nt", reason="no such permissions there")
def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    store = Store(tmp_path / "tables")
    store.table("a")["k"] = 1
    assert (tmp_path / "tables").stat().st_mode & 0o777 == 0o600
    (tmp_path / "tables").chmod(0o644)  # as an earlier release has made it
    store.close()
    assert (tmp_path / "tables").stat().st_mode & 0o777 == 0o600


def test_the_file_does_not_grow_without_end(tmp_path: Path) -> None:
    path = tmp_path / "tables"
    store = Store(path)
    for number in range(5000):
        store.table("a")["k"] = number
    assert len(path.read_bytes().splitlines()) < 2000
    store.close()
    assert len(path.read_bytes().splitlines()) == 1


def test_a_rewritten_file_is_on_the_disk_before_it_takes_the_old_one_s_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tables"
    store = Store(path)
    store.table("t")["k"] = 1
    done: list[tuple[str, int]] = []
    fsync, rename = os.fsync, Path.replace

    def note_fsync(fd: int) -> None:
        done.append(("fsync", os.fstat(fd).st_ino))
        fsync(fd)

    def note_rename(source: Path, target: Path) -> Path:
        done.append(("rename", source.stat().st_ino))
        return rename(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_rename)
    store.close()
    inode = path.stat().st_ino
    assert done.index(("fsync", inode)) < done.index(("rename", inode))


@pytest.mark.skipif(sys.platform == "win32", reason="directories cannot be opened there, and need not be")
def test_the_name_of_a_new_and_of_a_rewritten_file_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    rename = Path.replace

    def note_rename(source: Path, target: Path) -> Path:
        done.append("rename")
        return rename(source, target)

    monkeypatch.setattr(os, "fsync", lambda fd: done.append("directory" if S_ISDIR(os.fstat(fd).st_mode) else "file"))
    monkeypatch.setattr(Path, "replace", note_rename)
    store = Store(tmp_path / "tables", fsync=True)
    assert done == ["directory"]
    store.table("t")["k"] = 1
    assert done == ["directory", "file"]
    store.close()
    assert done == ["directory", "file", "file", "rename", "directory"]
    done.clear()
    Store(tmp_path / "without").close()
    assert done == ["file", "rename"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process")
def test_a_change_that_finds_no_room_has_not_happened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in the table, nor in the file once there is room again, nor after a restart."""
    import resource

    store = Store(tmp_path / "tables")
    table = store.table("t")
    table["kept"] = table["gone"] = 1
    _, most = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, ((tmp_path / "tables").stat().st_size + 20, most)
    )  # a part of a line fits
    try:
        with pytest.raises(OSError, match=r"tables|File too large"):
            table["kept"] = "x" * 100
        with pytest.raises(OSError, match=r"tables|File too large"):
            del table["gone"]
        with pytest.raises(KeyError):
            del table["never"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    wanted = {"kept": 1, "gone": 1}
    assert dict(table) == after_a_crash(tmp_path) == wanted
    table["more"] = 2
    assert dict(table) == after_a_crash(tmp_path) == wanted | {"more": 2}
    assert caplog.text.count("a line that a crash interrupted") == 1
    store.close()


def after_a_crash(directory: Path) -> dict[str, object]:
    """Return what the file has, which stays as it is."""
    (directory / "copy").write_bytes((directory / "tables").read_bytes())
    store = Store(directory / "copy")
    store.close()
    return dict(store.table("t"))
