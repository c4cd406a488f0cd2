"""A TCP proxy before the embedded broker that behaves as bad networks do: it splits, delays, resets, goes dumb.

It cuts where `CuttingProxy` cuts, and ends connections in the `manner` that the test chooses. What it forwards it may
hand on in small pieces, with pauses between them.
"""

from __future__ import annotations

import socket
import struct
import time
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, Final

from test.embedded.cutting import UP, CuttingProxy

if TYPE_CHECKING:
    from kafka.broker import Broker

__all__ = ["END", "HALF", "MANNERS", "RESET", "SILENCE", "ChaosProxy"]

#: The client reads the end of the stream, after what was let through.
END: Final = "end"
#: The client gets ECONNRESET, perhaps before it has read what was let through.
RESET: Final = "reset"
#: The client reads the end of the stream, but what it sends is still taken, and thrown away.
HALF: Final = "half"
#: The client hears and sees nothing, as when a firewall forgets the connection.
SILENCE: Final = "silence"
MANNERS: Final = (END, RESET, HALF, SILENCE)

_NO_LINGER: Final = struct.pack("ii", 1, 0)


class _Trickle:
    """A socket that sends in small pieces."""

    def __init__(self, sock: socket.socket, proxy: ChaosProxy) -> None:
        self.sock = sock
        self._proxy = proxy

    def sendall(self, data: bytes) -> None:
        proxy = self._proxy
        if not proxy.largest_piece:
            self.sock.sendall(data)
            return
        at = 0
        while at < len(data):
            size = proxy.rng.randint(1, proxy.largest_piece)
            self.sock.sendall(data[at : at + size])
            at += size
            if proxy.longest_pause:
                time.sleep(proxy.rng.uniform(0, proxy.longest_pause))

    def close(self) -> None:
        self.sock.close()


class ChaosProxy(CuttingProxy):
    """See the head of this file."""

    def __init__(self, broker: Broker, seed: int = 0) -> None:
        self.rng = Random(seed)
        self.manner = END
        self.largest_piece = 0
        """At most so many bytes at once; 0: as they come."""
        self.longest_pause = 0.0
        """Seconds, after each piece."""
        self._dumb: list[socket.socket] = []
        super().__init__(broker)

    def close(self) -> None:
        """Cut everything and stop."""
        self.manner = END
        super().close()
        for sock in self._dumb:
            sock.close()

    def _accept(self, node: int) -> None:
        before = set(self._flows)
        super()._accept(node)
        for flow in self._flows - before:
            sink: Any = _Trickle(flow.sink, self)
            flow.sink = sink

    def _end(self, flow: Any) -> None:
        if flow not in self._flows:
            return
        client = flow.source if flow.direction == UP else flow.sink.sock
        if self.manner == RESET:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        elif self.manner in {HALF, SILENCE}:
            # Another descriptor of the same connection keeps it open when the first is closed.
            self._dumb.append(client.dup())
            if self.manner == HALF:
                with suppress(OSError):  # the client was quicker
                    client.shutdown(socket.SHUT_WR)
        super()._end(flow)
