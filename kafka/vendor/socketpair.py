"""The historic place of `socket.socketpair`, which Windows once had not."""

from __future__ import annotations

from socket import socketpair

__all__ = ["socketpair"]
