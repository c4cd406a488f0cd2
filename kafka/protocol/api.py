"""Requests, responses and how they are framed for the wire.

A request travels as a 4-byte size, a header and the message; so does its response. Which version a
header has follows from the message's version, with two exceptions that are kept here.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from kafka.errors import Code, KafkaProtocolError
from kafka.protocol._historic import historic_names
from kafka.protocol.codec.layout import has_records, layout_of
from kafka.protocol.registry import ApiKey
from kafka.protocol.struct import Struct, StructMeta, _need_version, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from typing_extensions import Self

    from kafka.protocol.fields import Buffer
    from kafka.protocol.headers import RequestHeader, ResponseHeader

# Historic names.
CONTROLLED_SHUTDOWN = ApiKey.ControlledShutdown
FIND_COORDINATOR = ApiKey.FindCoordinator
API_VERSIONS = ApiKey.ApiVersions

__getattr__ = historic_names(__name__)

_SIZE = struct.Struct(">i").pack
_LENGTH = struct.Struct(">h").pack
#: API key, version, correlation id: the start of every request header.
_HEADER = struct.Struct(">hhi")
_CORRELATION = struct.Struct(">i")

ResponseT_co = TypeVar("ResponseT_co", bound="Response", covariant=True)


class _Counterpart:
    """``Request.RESPONSE_TYPE`` and ``Response.REQUEST_TYPE``: the class of the same name's other half."""

    def __init__(self, here: str, there: str) -> None:
        self._here = here
        self._there = there

    @overload
    def __get__(self, instance: Request[ResponseT_co], owner: object = None) -> type[ResponseT_co]: ...
    @overload
    def __get__(self, instance: None, owner: type[Request[ResponseT_co]]) -> type[ResponseT_co]: ...
    @overload
    def __get__(self, instance: object, owner: object = None) -> Any: ...
    def __get__(self, instance: object, owner: object = None) -> Any:
        cls: StructMeta = type(instance) if instance is not None else owner  # type: ignore[assignment]
        found = cls.__dict__.get("_counterpart")  # kept with the class: each request that is sent asks for this
        if found is None:
            found = cls._counterpart = self._find(cls)
        return found

    def _find(self, cls: StructMeta) -> StructMeta:
        import sys

        name = cls._unbound.__name__
        other: StructMeta | None = getattr(
            sys.modules[cls.__module__], name.removesuffix(self._here) + self._there, None
        )
        if other is None:
            raise AttributeError(f"{name} has no {self._there.lower()}")
        return other if cls._version is None else other._of_version(cls._version)


class _IsFlexible:
    """``FLEXIBLE_VERSION``: whether the version that a class is bound to has tag buffers."""

    def __get__(self, instance: object, owner: StructMeta) -> bool:
        return owner._version in owner._unbound._flexible


class Request(Struct, Generic[ResponseT_co]):
    """A message from a client to a broker. Its type parameter, for type checkers only, is the class of the response.

    >>> from kafka.protocol.metadata import MetadataRequest
    >>> MetadataRequest[1](['events']).frame(correlation_id=7, client_id='me')
    b'\\x00\\x00\\x00\\x18\\x00\\x03\\x00\\x01\\x00\\x00\\x00\\x07\\x00\\x02me\\x00\\x00\\x00\\x01\\x00\\x06events'
    """

    __slots__ = ()

    API_KEY: ClassVar[int]
    FLEXIBLE_VERSION: ClassVar[Any] = _IsFlexible()
    RESPONSE_TYPE = _Counterpart("Request", "Response")

    def expect_response(self) -> bool:
        """Whether the broker answers: all requests but a produce request with ``acks=0``."""
        return not (ApiKey.Produce == self.API_KEY and getattr(self, "acks", None) == 0)

    @classmethod
    def header_version(cls, version: int | None = None) -> int:
        """Return the version of the header that goes before this request."""
        if version is None:
            version = _need_version(cls)
        if ApiKey.ControlledShutdown == cls.API_KEY and version == 0:
            return 0  # the only API that was there before clients had names
        return 2 if version in cls._unbound._flexible else 1

    def build_header(self, correlation_id: int, client_id: str | None, version: int | None = None) -> RequestHeader:
        """Return the header that goes before this request."""
        from kafka.protocol.headers import RequestHeader

        cls = type(self)
        version = _need_version(cls) if version is None else version
        header_class: type[RequestHeader] = RequestHeader[cls.header_version(version)]
        made: RequestHeader = header_class(cls.API_KEY, version, correlation_id)
        made.client_id = client_id
        return made

    def to_object(self) -> dict[str, Any]:
        """Return the request as dictionaries and lists, with the fields' old names. ``to_json`` has Kafka's."""
        from kafka.protocol._declarative import to_object

        return to_object(self)

    def frame_parts(self, correlation_id: int, client_id: str | None = None, version: int | None = None) -> list[bytes]:
        """Return the framed request in pieces for a scatter-gather send; large fields are not copied."""
        cls = type(self)
        if version is None:
            version = _need_version(cls)
        header = _HEADER.pack(cls.API_KEY, version, correlation_id)
        header_version, encode = _framing(cls, version)
        if header_version:
            name = b"" if client_id is None else client_id.encode()
            header += _LENGTH(-1 if client_id is None else len(name)) + name
        if header_version > 1:
            header += b"\0"
        parts = [b""]
        if encode is None:
            parts += self.encode_parts(version)
        else:
            encode(self, parts)
        parts[0] = _SIZE(len(header) + sum(map(len, parts))) + header
        return parts

    def frame(self, correlation_id: int, client_id: str | None = None, version: int | None = None) -> bytes:
        """Return the request as it goes over the wire: size, header, message."""
        return b"".join(self.frame_parts(correlation_id, client_id, version))

    @staticmethod
    def unframe(data: Buffer) -> tuple[RequestHeader, Request[Response]]:
        """Read a framed request (without its size), as a broker does: the header says what it is."""
        from kafka.protocol.codec.interpreter import decode_prefix
        from kafka.protocol.headers import RequestHeader
        from kafka.protocol.registry import request_class

        if len(data) < _HEADER.size:
            raise KafkaProtocolError(f"a request needs at least {_HEADER.size} bytes, not {len(data)}")
        api_key, version = _HEADER.unpack_from(data)[:2]
        cls = request_class(api_key)[version]
        header_class: type[RequestHeader] = RequestHeader[cls.header_version()]
        header, used = decode_prefix(header_class, data)
        return header, cls.decode(data, start=used)


class Response(Struct):
    """A broker's answer.

    >>> from kafka.protocol.metadata import MetadataResponse
    >>> frame = MetadataResponse[0]([(1, 'a', 9092)], []).frame(correlation_id=7)
    >>> MetadataResponse[0].unframe(frame[4:])
    (7, MetadataResponse[0](brokers=[MetadataResponseBroker(node_id=1, host='a', port=9092)], topics=[]))
    """

    __slots__ = ()

    API_KEY: ClassVar[int]
    FLEXIBLE_VERSION: ClassVar[Any] = _IsFlexible()
    REQUEST_TYPE: ClassVar[Any] = _Counterpart("Response", "Request")

    def __init_subclass__(cls) -> None:
        if cls.__doc__ is None and cls.__name__.endswith("Response"):
            cls.__doc__ = f"The answer to ``{cls.__name__.removesuffix('Response')}Request``."

    @classmethod
    def header_version(cls, version: int | None = None) -> int:
        """Return the version of the header that goes before this response."""
        if version is None:
            version = _need_version(cls)
        if ApiKey.ApiVersions == cls.API_KEY:
            return 0  # so that a client can read it before it knows what the broker speaks (KIP-511)
        return 1 if version in cls._unbound._flexible else 0

    @classmethod
    def unframe(cls, data: Buffer, version: int | None = None) -> tuple[int, Self]:
        """Read a framed response (without its size); return the correlation id and the message."""
        if len(data) < _CORRELATION.size:
            raise KafkaProtocolError(f"{describe(cls)}: a response needs at least 4 bytes, not {len(data)}")
        (correlation_id,) = _CORRELATION.unpack_from(data)
        start = _CORRELATION.size
        if cls.header_version(version):
            start = _skip_header_tags(data, cls)
        return correlation_id, cls.decode(data, version, start=start)

    @classmethod
    def parse_header(cls, read_buffer: Any) -> ResponseHeader:
        """Read the header that goes before this response from a file, and leave the file behind it."""
        from kafka.protocol.headers import ResponseHeader

        return ResponseHeader[cls.header_version()].decode(read_buffer)

    def to_object(self) -> dict[str, Any]:
        """Return the response as dictionaries and lists, with the fields' old names. ``to_json`` has Kafka's."""
        from kafka.protocol._declarative import to_object

        return to_object(self)

    def frame_parts(self, correlation_id: int, version: int | None = None) -> list[bytes]:
        """Return the framed response in pieces for a scatter-gather send."""
        header = _CORRELATION.pack(correlation_id) + b"\0" * type(self).header_version(version)
        parts = [b"", *self.encode_parts(version)]
        parts[0] = _SIZE(len(header) + sum(map(len, parts))) + header
        return parts

    def frame(self, correlation_id: int, version: int | None = None) -> bytes:
        """Return the response as it goes over the wire: size, header, message."""
        return b"".join(self.frame_parts(correlation_id, version))


def answered_version(api_key: int, version: int, frame: Buffer) -> int:
    """Return the version of a framed response (without its size) to a request in `version`.

    They differ in one case (KIP-511): a broker that does not know a version of ApiVersions answers in version 0.
    """
    if api_key == ApiKey.ApiVersions and int.from_bytes(frame[4:6], "big") == Code.UNSUPPORTED_VERSION:
        return 0
    return version


def has_wrong_id(api_key: int | None, correlation_id: int) -> bool:
    """Return whether a broker may send this correlation id to a request with another: 0.8.2 does, for coordinators."""
    return correlation_id == 0 and api_key == ApiKey.FindCoordinator


@lru_cache(maxsize=512)
def reply_decoder(response: type[Response], version: int) -> Callable[[Buffer], Any]:
    """Return the function that reads a framed response (without its size) in one version: ``unframe``, prepared.

    The frame still has its correlation id, which matched it to a request.
    """
    if response._schema is not None:
        return lambda frame: response.unframe(frame, version)[1]
    has_tags = bool(response.header_version(version))
    decode = response._unbound._codec(version).decode

    def decode_reply(frame: Buffer) -> Any:
        start = _CORRELATION.size
        if has_tags:  # mostly none
            start = start + 1 if len(frame) > start and frame[start] == 0 else _skip_header_tags(frame, response)
        return decode(frame, start=start)

    return decode_reply


@lru_cache(maxsize=512)
def decoder_of(request: type[Request[Any]], version: int) -> Callable[[Buffer], Any]:
    """Return the function that reads a framed response (without its size) to a request in one version."""
    return reply_decoder(request.RESPONSE_TYPE, version)


@lru_cache(maxsize=512)
def slices_of(request: type[Request[Any]], version: int) -> Callable[[bytes], Generator[None, None, Any]] | None:
    """Return the generator function that does the work of `decoder_of`, a struct of a list at a time.

    None for a response with records, which are views, and for one of a schema of the user's.
    """
    response = request.RESPONSE_TYPE
    if response._schema is not None or has_records(layout_of(response._unbound._of_version(version))):
        return None
    has_tags = bool(response.header_version(version))
    decode = response._unbound._codec(version).decode_slices

    def slices(frame: bytes) -> Generator[None, None, Any]:
        return (yield from decode(frame, _skip_header_tags(frame, response) if has_tags else _CORRELATION.size))

    return slices


@lru_cache(maxsize=512)
def _framing(cls: type[Request[Any]], version: int) -> tuple[int, Callable[[Struct, list[bytes]], object] | None]:
    """Return the version of the header before a request, and its compiled encoder if it has one."""
    return cls.header_version(version), None if cls._schema is not None else cls._unbound._codec(version).encode


def _skip_header_tags(data: Buffer, cls: StructMeta) -> int:
    from kafka.protocol.codec.interpreter import decode_prefix
    from kafka.protocol.headers import ResponseHeader

    try:
        return decode_prefix(ResponseHeader[1], data)[1]
    except KafkaProtocolError as error:
        raise KafkaProtocolError(f"{describe(cls)}: {error}") from None
