"""Connections to brokers: name resolution, proxies, TLS, SASL, and the requests over them.

Clients use `connection`, which opens when it is first needed, and again after a loss. `connection_setup` opens it (with
`resolver`, `sockets`, `proxy` and `tls`). Both hold a `frame_stream` in turn; `pipeline` matches responses
with requests. `states` is the table of its states, `diagnosis` explains a refusal, `settings` and `environment` hold
what the connections of a client share and how they reach the outside world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, {})
