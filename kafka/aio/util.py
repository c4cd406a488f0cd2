"""Helpers that programs for aiokafka import."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

__all__ = ["INTEGER_MAX_VALUE", "INTEGER_MIN_VALUE", "create_future", "create_task"]

T = TypeVar("T")

INTEGER_MAX_VALUE: Final = 2**31 - 1
INTEGER_MIN_VALUE: Final = -(2**31)


def create_task(coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Return a task of the running event loop."""
    return asyncio.get_running_loop().create_task(coro)


def create_future(loop: asyncio.AbstractEventLoop | None = None) -> asyncio.Future[Any]:
    """Return a future of an event loop, the running one by default."""
    return (loop or asyncio.get_running_loop()).create_future()
