"""Serializers: what turns keys and values into bytes, and back.

A client takes a plain callable ``f(value) -> bytes``, or an object with ``serialize`` in the form of 2.x,
``serialize(topic, value)``, or of 3.x, ``serialize(topic, headers, data)``; deserializers likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.serializer.abstract import Deserializer, Headers, Serializer
    from kafka.serializer.bind import Bound, bind_deserializer, bind_serializer
    from kafka.serializer.default import DefaultSerializer, JsonSerializer, StringSerializer
    from kafka.serializer.wrapper import DeserializeWrapper, SerializeWrapper

__all__ = [
    "Bound",
    "DefaultSerializer",
    "DeserializeWrapper",
    "Deserializer",
    "Headers",
    "JsonSerializer",
    "SerializeWrapper",
    "Serializer",
    "StringSerializer",
    "bind_deserializer",
    "bind_serializer",
]

_MODULES = {
    "abstract": "Deserializer Headers Serializer",
    "bind": "bind_deserializer bind_serializer Bound",
    "default": "DefaultSerializer JsonSerializer StringSerializer",
    "wrapper": "DeserializeWrapper SerializeWrapper",
}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
