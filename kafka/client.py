"""The historic place of `kafka.client_async.KafkaClient`, and of `SimpleClient`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.client_async import KafkaClient

if TYPE_CHECKING:
    from kafka.legacy.simple_client import SimpleClient

__all__ = ["KafkaClient", "SimpleClient"]


if not TYPE_CHECKING:  # checkers report a name that is not here

    def __getattr__(name: str) -> Any:
        if name == "SimpleClient":
            from kafka.legacy.simple_client import SimpleClient

            return SimpleClient
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
