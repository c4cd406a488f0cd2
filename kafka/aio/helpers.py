"""What helps to make options."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from ssl import Purpose, SSLContext, create_default_context

__all__ = ["create_ssl_context"]

Path = str | bytes | PathLike[str] | PathLike[bytes]


def create_ssl_context(
    *,
    cafile: Path | None = None,
    capath: Path | None = None,
    cadata: str | bytes | None = None,
    certfile: Path | None = None,
    keyfile: Path | None = None,
    password: str | bytes | bytearray | Callable[[], str | bytes | bytearray] | None = None,
) -> SSLContext:
    """Return a context for ``ssl_context=``, which checks certificates and host names.

    Trusts the authorities in `cafile`, `capath` and `cadata` (a str in PEM, bytes in DER), and the system's if none of
    these is given. `certfile`, `keyfile` and `password` are the client's certificate, for brokers that request one.

    >>> create_ssl_context().check_hostname
    True
    """
    context = create_default_context(Purpose.SERVER_AUTH, cafile=cafile, capath=capath, cadata=cadata)
    if certfile is not None:
        context.load_cert_chain(certfile, keyfile, password)
    return context
