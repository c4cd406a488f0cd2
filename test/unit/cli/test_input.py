"""Reading standard input, and signals meanwhile."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from kafka.cli.record_input import pieces_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and pipes")


class Stopped(Exception):
    """Raised by the handler of a test."""


@pytest.fixture
def pipe() -> Iterator[tuple[Any, int]]:
    reader, writer = os.pipe()
    with open(reader, "rb") as source:
        yield source, writer
    os.close(writer)


def stop(*_: object) -> None:
    raise Stopped


@pytest.mark.parametrize("raises", [True, False])
def test_a_signal_right_before_the_wait_for_input_ends_it(
    raises: bool, pipe: tuple[Any, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its handler would run after the read, which may wait for ever."""
    source, writer = pipe
    waits: list[bool] = []
    real = select.select

    def late(*descriptors: Any) -> Any:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        signal.raise_signal(signal.SIGUSR1)
        try:
            # As CPython's handler does, which runs right before the system call that waits.
            os.write(signal.set_wakeup_fd(-1), b"\0")
            found = real(*descriptors, 30)
        finally:
            monkeypatch.setattr(select, "select", real)
            os.write(writer, b"line\n")
        waits.append(source.fileno() in found[0])
        if raises:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
        return found

    before = signal.signal(signal.SIGUSR1, stop if raises else signal.SIG_IGN)
    monkeypatch.setattr(select, "select", late)
    pieces = pieces_of(source, b"\n")
    try:
        if raises:
            with pytest.raises(Stopped):
                next(pieces)
        else:
            assert next(pieces) == [b"line"]
    finally:
        pieces.close()  # type: ignore[attr-defined]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
        signal.signal(signal.SIGUSR1, before)
    assert waits == [False]


def test_the_place_for_signals_is_given_back(pipe: tuple[Any, int]) -> None:
    source, writer = pipe
    reader, other = os.pipe()
    os.set_blocking(other, False)
    signal.set_wakeup_fd(other)
    try:
        os.write(writer, b"a\nb\n")
        pieces = pieces_of(source, b"\n")
        assert next(pieces) == [b"a", b"b"]
        pieces.close()  # type: ignore[attr-defined]
        assert signal.set_wakeup_fd(-1) == other
    finally:
        signal.set_wakeup_fd(-1)
        os.close(reader)
        os.close(other)
