"""Lists the public names of the package, one to a line: modules, what they export, and the members of their classes.

``python tools/public_names.py > test/unit/public_names.txt`` records the names that programs may use. The test
``test/unit/test_public_names.py`` fails when one of them is missing, so an update of the file shows each name that a
release would take away.

Public are the package's documented modules and the historic modules of kafka-python that this package has. The modules
between them (`kafka.net`, the parts of `kafka.producer` and so on) are internals, and move freely.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PUBLIC: Final = (
    "kafka",
    "kafka.admin",
    "kafka.admin.client",
    "kafka.admin.config_resource",
    "kafka.admin.new_partitions",
    "kafka.admin.new_topic",
    "kafka.aio",
    "kafka.broker",
    "kafka.client",
    "kafka.client_async",
    "kafka.cluster",
    "kafka.codec",
    "kafka.conn",
    "kafka.consumer",
    "kafka.consumer.fetcher",
    "kafka.consumer.group",
    "kafka.consumer.subscription_state",
    "kafka.coordinator",
    "kafka.coordinator.assignors*",
    "kafka.coordinator.base",
    "kafka.coordinator.consumer",
    "kafka.coordinator.heartbeat",
    "kafka.coordinator.protocol",
    "kafka.errors",
    "kafka.future",
    "kafka.interceptors",
    "kafka.legacy",
    "kafka.metrics*",
    "kafka.oauth*",
    "kafka.options",
    "kafka.partitioner*",
    "kafka.producer",
    "kafka.producer.arrow",
    "kafka.producer.delivery",
    "kafka.producer.future",
    "kafka.producer.kafka",
    "kafka.protocol*",
    "kafka.record",
    "kafka.share",
    "kafka.record.columns",
    "kafka.record.default_records",
    "kafka.record.legacy_records",
    "kafka.record.memory_records",
    "kafka.record.util",
    "kafka.sasl*",
    "kafka.serializer*",
    "kafka.spark",
    "kafka.structs",
    "kafka.testing",
    "kafka.version",
)
# Message and error classes have the same members everywhere; other tests know their fields.
WITHOUT_MEMBERS: Final = ("kafka.protocol", "kafka.errors")
# Classes that other public classes derive from, and whose members are not public by that.
INTERNAL: Final = ("kafka.net", "kafka._")


def main() -> None:
    """Print the names."""
    for name in sorted(set(public_names())):
        print(name)


def public_names() -> Iterator[str]:
    """Yield the public names of the package in this directory."""
    seen: set[type] = set()
    for name in public_modules():
        module = import_module(name)
        yield name
        for exported in exports(module):
            yield f"{name}.{exported}"
            value = getattr(module, exported)
            if isinstance(value, type) and value not in seen and not name.startswith(WITHOUT_MEMBERS):
                seen.add(value)
                yield from (f"{name}.{exported}.{member}" for member in members(value))


def public_modules() -> Iterator[str]:
    """Yield the names of the public modules that exist."""
    for path in sorted((ROOT / "kafka").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        private = any(part.startswith("_") for part in name.split(".")) or name.startswith("kafka.protocol.codec")
        if not private and any(fnmatch(name, pattern) for pattern in PUBLIC):
            yield name


def exports(module: ModuleType) -> list[str]:
    """Return what ``from module import *`` gives; for a module without ``__all__``, what it defines."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", module.__name__) == module.__name__
    ]


def members(cls: type) -> list[str]:
    """Return the public members of a class that public classes of this package define."""
    found: set[str] = set()
    for base in cls.__mro__:
        if base.__module__.startswith("kafka") and not base.__module__.startswith(INTERNAL):
            found.update(name for name in vars(base) if not name.startswith("_"))
    # Names of other clients raise an error that names ours.
    return sorted(name for name in found if hasattr(cls, name))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
