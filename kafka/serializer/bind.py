"""Recognise a serializer's form once, so that the path of a record calls it without a look at what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka._signature import arity
from kafka.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from kafka.serializer.abstract import Headers

__all__ = ["Bound", "bind_deserializer", "bind_serializer"]


class Bound(NamedTuple):
    """A serializer made ready for a hot path.

    ``call(data)`` where ``plain`` is true, else ``call(topic, headers, data)``: the caller branches once per client.
    Exceptions of the user's code come out of ``call`` as they are.
    """

    call: Callable[..., Any]
    plain: bool
    close: Callable[[], object] | None = None

    def __call__(self, topic: str, headers: Headers, data: Any) -> Any:
        """The same in one form, for where a branch does not matter."""
        return self.call(data) if self.plain else self.call(topic, headers, data)


def bind_serializer(serializer: object, option: str = "value_serializer") -> Bound | None:
    """What to call for a serializer given as the option; None for None: the data is bytes already.

    >>> bind_serializer(str.encode)("events", [], "a")
    b'a'
    """
    return _bind(serializer, option, "serialize")


def bind_deserializer(deserializer: object, option: str = "value_deserializer") -> Bound | None:
    """What to call for a deserializer given as the option; None for None: bytes are what the user wants.

    >>> import json
    >>> bind_deserializer(json.loads).call(b'{"a": 1}')
    {'a': 1}
    """
    return _bind(deserializer, option, "deserialize")


def _bind(given: object, option: str, method_name: str) -> Bound | None:
    if given is None:
        return None
    method = getattr(given, method_name, None)
    if isinstance(given, type) and method is not None:
        raise KafkaConfigurationError(
            f"{option} is the class {given.__name__}; give an instance: {given.__name__}()", option=option
        )
    if callable(method):
        call, plain = _method_form(method, option, method_name)
    elif callable(given):
        call, plain = _function_form(given, option)
    else:
        raise KafkaConfigurationError(
            f"{option} must be a callable or an object with a method {method_name}(), not {given!r}", option=option
        )
    close = getattr(given, "close", None)
    return Bound(call, plain, close if callable(close) and callable(method) else None)


def _method_form(method: Callable[..., Any], option: str, name: str) -> tuple[Callable[..., Any], bool]:
    found = arity(method)
    # What it cannot do without decides: serialize(topic, value, headers=None) is of the 2.x form.
    if found is None or found.required == 3 or (found.most == float("inf") and found.required < 3):
        return method, False
    if found.required == 2:
        return (lambda topic, _headers, data: method(topic, data)), False
    if found.required <= 1 <= found.most:
        return method, True
    raise KafkaConfigurationError(
        f"{option}: {name}() must take (topic, headers, data), (topic, data) or (data), "
        f"but it needs {found.required} arguments",
        option=option,
    )


def _function_form(function: Callable[..., Any], option: str) -> tuple[Callable[..., Any], bool]:
    found = arity(function)
    if found is None or found.takes(1):
        return function, True
    raise KafkaConfigurationError(
        f"{option} must be callable with one argument, the data, but {function!r} is not", option=option
    )
