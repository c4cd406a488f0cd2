"""What every client tells about itself, on both faces: whether it is connected, and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.metrics import Metrics

__all__ = ["ClientStatus"]


class ClientStatus:
    """The base of the clients of both faces. A client brings `_connections` and `_measured`, and its own `health`."""

    def bootstrap_connected(self) -> bool:
        """Whether there is a connection to any broker."""
        client = self._connections()
        return client is not None and any(link.ready for link in client.links())

    def metrics(self, raw: bool = False) -> Any:
        """Return the metrics: names and values by group, or with `raw` the metrics themselves; None if they are off."""
        metrics = self._measured()
        if metrics is None:
            return None
        return dict(metrics.metrics if raw else metrics.snapshot())

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: make one in each process that needs one")

    def _connections(self) -> Client | None:
        """Return the client that has the connections; None before it is made."""
        raise NotImplementedError

    def _measured(self) -> Metrics | None:
        """Return the metrics; None if they are off."""
        raise NotImplementedError
