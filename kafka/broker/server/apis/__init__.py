"""The APIs of the broker, one file each: ``api_<key>_<name>.py``.

A file is found by its name: an API with a file is served and advertised, an API without one is not. Each opens with its
versions and a line for each version's behaviour, and has one function::

    def handle(call: Call, request: MetadataRequest) -> MetadataResponse: ...

It runs on the broker's event loop and must not block. It returns the reply; or an awaitable of it where the client has
to wait; or None where no reply is due. ``call.response`` is the reply's class in the request's version.

Some have a second one, ``refuse(call, request, code)``: the reply to a request that fails with this error, where it
needs more than the request (:mod:`kafka.broker.server.error_replies`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from kafka.broker.server.call import Call
    from kafka.protocol.api import Request, Response

__all__ = ["handler", "refusal", "served"]

Handler: TypeAlias = "Callable[[Call, Request[Response]], Any]"
Refusal: TypeAlias = "Callable[[Call, Request[Response], int], Response | None]"


@lru_cache(maxsize=1)
def served() -> dict[int, str]:
    """Return the module of each API key that the broker serves.

    >>> served()[18]
    'kafka.broker.server.apis.api_18_api_versions'
    """
    names = sorted(module.name for module in iter_modules(__path__) if module.name.startswith("api_"))
    return {int(name.split("_")[1]): f"{__name__}.{name}" for name in names}


@cache
def handler(api_key: int) -> Handler:
    """Return the handler of an API; its module is imported when the first such request comes."""
    handle: Handler = import_module(served()[api_key]).handle
    return handle


@cache
def refusal(api_key: int) -> Refusal | None:
    """Return what makes an API's error replies, None if the request says all that is in them."""
    return getattr(import_module(served()[api_key]), "refuse", None)
