"""Every message of the protocol, bound to every version."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import kafka.protocol.struct
from kafka.protocol.struct import Struct, StructMeta

_DIRECTORY = Path(kafka.protocol.struct.__file__).parent


def message_classes() -> list[StructMeta]:
    """Return all message classes, unbound, by name."""
    modules = [import_module(f"kafka.protocol.{path.stem}") for path in sorted(_DIRECTORY.glob("[a-z]*.py"))]
    found = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, StructMeta) and issubclass(value, Struct) and value._fields and value._version is None
    }
    return sorted(found, key=lambda cls: cls.__name__)


def versions() -> list[StructMeta]:
    """Return all message classes in all versions."""
    return [cls[version] for cls in message_classes() for version in range(cls._versions.low, cls._versions.high + 1)]
