"""``RequestHeader(request, correlation_id, client_id)`` and its relatives, as ``kafka.protocol.api`` had them.

Each stands for one version of a header of ``kafka.protocol.headers``, and what it makes is an instance of that class.
"""

from __future__ import annotations

from typing import Any

from kafka.protocol import headers


class _AliasMeta(type):
    """A class in whose place another one answers: to ``isinstance``, an index and names such as ``decode``."""

    _stands_for: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls._stands_for._unbound)

    def __getitem__(cls, version: int) -> Any:
        return cls._stands_for._unbound[version]

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._stands_for, name)


class RequestHeader(metaclass=_AliasMeta):
    """Goes before every request except flexible versions.

    >>> from kafka.protocol.metadata import MetadataRequest
    >>> RequestHeader(MetadataRequest[1](), 7, "me").encode().hex(" ")
    '00 03 00 01 00 00 00 07 00 02 6d 65'

    The header's own fields are taken by name, and in wire order where a version is given:

    >>> RequestHeader(api_key=3, api_version=1, correlation_id=7, client_id="me") == RequestHeader[1](3, 1, 7, "me")
    True
    """

    _stands_for: Any = headers.RequestHeader[1]

    def __new__(
        cls, request: Any = None, correlation_id: int = 0, client_id: str | None = "kafka-python", **fields: Any
    ) -> Any:
        """Make the header of a request."""
        if request is not None:
            fields.update(api_key=request.API_KEY, api_version=request.API_VERSION)
        return cls._stands_for(correlation_id=correlation_id, client_id=client_id, **fields)


class RequestHeaderV2(metaclass=_AliasMeta):
    """Goes before requests of flexible versions: it has a tag buffer."""

    _stands_for: Any = headers.RequestHeader[2]

    def __new__(
        cls,
        request: Any = None,
        correlation_id: int = 0,
        client_id: str | None = "kafka-python",
        tags: dict[int, bytes] | None = None,
        **fields: Any,
    ) -> Any:
        """Make the header of a request."""
        if request is not None:
            fields.update(api_key=request.API_KEY, api_version=request.API_VERSION)
        return cls._stands_for(correlation_id=correlation_id, client_id=client_id, unknown_tags=tags, **fields)


class ResponseHeader(metaclass=_AliasMeta):
    """Goes before every response except flexible versions.

    >>> ResponseHeader(7).encode(), ResponseHeaderV2(7).encode()
    (b'\\x00\\x00\\x00\\x07', b'\\x00\\x00\\x00\\x07\\x00')
    """

    _stands_for: Any = headers.ResponseHeader[0]

    def __new__(cls, correlation_id: int = 0) -> Any:
        """Make the header of a response."""
        return cls._stands_for(correlation_id)


class ResponseHeaderV2(metaclass=_AliasMeta):
    """Goes before responses of flexible versions: it has a tag buffer."""

    _stands_for: Any = headers.ResponseHeader[1]

    def __new__(cls, correlation_id: int = 0, tags: dict[int, bytes] | None = None) -> Any:
        """Make the header of a response."""
        return cls._stands_for(correlation_id, unknown_tags=tags)
