"""Write kafka/options.py, the types of all options for editors and type checkers, from the table in kafka.config.

Running twice changes nothing; a test compares the file with the table. A new option needs nothing here, unless its type
has a name that IMPORTS does not know.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "kafka" / "options.py"
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from kafka.config import Option

HEAD: Final = '''"""The options of each client with their types, as typed dictionaries: for editors and type checkers.

Written by tools/generate_options.py from the table in kafka.config. The constructors take them by name, so a type
checker finds a misspelt or mistyped option. A program that keeps its options in a dict annotates it:

>>> from kafka.options import ProducerOptions
>>> options: ProducerOptions = {"bootstrap_servers": "localhost:9092", "linger_ms": 20}

and passes it as ``KafkaProducer(options)`` or ``KafkaProducer(**options)``. No client imports this module.
"""

# ruff: noqa: PYI051 - names beside str are what editors offer

from __future__ import annotations
'''

# The name of a type -> the module that has it.
IMPORTS: Final = {
    "AIOTokenProvider": "kafka.sasl.oauth",
    "AbstractSet": "collections.abc",
    "AbstractMetricsReporter": "kafka.metrics.reporters",
    "AbstractPartitionAssignor": "kafka.coordinator.assignors.abstract",
    "Any": "typing",
    "Assignor": "kafka.coordinator.assignors.abstract",
    "BaseSelector": "selectors",
    "Callable": "collections.abc",
    "ChoosesPartition": "kafka.partitioner.abc",
    "DeliveryReport": "kafka.producer.delivery",
    "Deserializes": "kafka.serializer.abstract",
    "Literal": "typing",
    "Mapping": "collections.abc",
    "Metrics": "kafka.metrics",
    "OnCommit": "kafka.structs",
    "PathLike": "os",
    "SSLContext": "ssl",
    "Sequence": "collections.abc",
    "Serializes": "kafka.serializer.abstract",
    "TokenProvider": "kafka.sasl.oauth",
    "TypedDict": "typing",
}

ALL: Final = frozenset({"producer", "consumer", "share", "admin", "client", "connection"})
CLIENTS: Final = ALL - {"connection"}
FACES: Final = CLIENTS - {"client"}
_ASYNCIO_ONLY: Final = frozenset({"max_poll_records", "client_rack"})
_DESERIALIZERS: Final = frozenset({"key_deserializer", "value_deserializer"})
_TOKENS: Final = "sasl_oauth_token_provider"

# Class, its bases, sentence.
CLASSES: Final = (
    ("_AllOptions", "TypedDict", "Options that every client and BrokerConnection have."),
    ("_Tokens", "TypedDict", "What synchronous clients accept for tokens."),
    ("_AIOTokens", "TypedDict", "What asyncio's clients accept for tokens."),
    ("ConnectionOptions", "_AllOptions, _Tokens", "Options of `BrokerConnection`."),
    ("_ClusterOptions", "_AllOptions", "Options of every client."),
    ("_ClientOptions", "_ClusterOptions", "Options of clients for raw requests."),
    ("ClientOptions", "_ClientOptions, _Tokens", "Options of `KafkaClient`."),
    ("AIOClientOptions", "_ClientOptions, _AIOTokens", "Options of `AIOKafkaClient`."),
    ("_FaceOptions", "_ClusterOptions", "Options of producers, consumers and admin clients."),
    ("_AdminOptions", "_FaceOptions", "Options of admin clients."),
    ("AdminOptions", "_AdminOptions, _Tokens", "Options of `KafkaAdminClient`."),
    ("AIOAdminOptions", "_AdminOptions, _AIOTokens", "Options of `AIOKafkaAdminClient`."),
    ("_ProducerOptions", "_FaceOptions", "Options of producers."),
    ("ProducerOptions", "_ProducerOptions, _Tokens", "Options of `KafkaProducer`."),
    ("AIOProducerOptions", "_ProducerOptions, _AIOTokens", "Options of `AIOKafkaProducer`."),
    ("_ConsumerOptions", "_FaceOptions", "Options of consumers."),
    ("BytesConsumerOptions", "_ConsumerOptions, _Tokens", "Options of a `KafkaConsumer` without deserializers."),
    ("ConsumerOptions", "BytesConsumerOptions", "Options of `KafkaConsumer`."),
    (
        "AIOBytesConsumerOptions",
        "_ConsumerOptions, _AIOTokens",
        "Options of an `AIOKafkaConsumer` without deserializers.",
    ),
    ("AIOConsumerOptions", "AIOBytesConsumerOptions", "Options of `AIOKafkaConsumer`."),
    ("_ShareConsumerOptions", "_FaceOptions", "Options of share consumers."),
    (
        "BytesShareConsumerOptions",
        "_ShareConsumerOptions, _Tokens",
        "Options of a `KafkaShareConsumer` without deserializers.",
    ),
    ("ShareConsumerOptions", "BytesShareConsumerOptions", "Options of `KafkaShareConsumer`."),
    (
        "AIOBytesShareConsumerOptions",
        "_ShareConsumerOptions, _AIOTokens",
        "Options of an `AIOKafkaShareConsumer` without deserializers.",
    ),
    ("AIOShareConsumerOptions", "AIOBytesShareConsumerOptions", "Options of `AIOKafkaShareConsumer`."),
)
# The class that declares what one kind of client has alone.
_DECLARES: Final = {
    "admin": "_AdminOptions",
    "client": "_ClientOptions",
    "connection": "ConnectionOptions",
    "consumer": "_ConsumerOptions",
    "producer": "_ProducerOptions",
    "share": "_ShareConsumerOptions",
}
# The options that asyncio's clients have besides, or with another type.
OF_ASYNCIO: Final = {
    "AIOProducerOptions": [("max_batch_size", "int", "The same as batch_size.")],
    "AIOBytesConsumerOptions": [
        ("max_poll_records", "int | None", "The most records that getmany() returns at once; None: 500."),
        ("client_rack", "str | None", "The rack where this client runs: it reads from a replica in that rack."),
        ("rebalance_timeout_ms", "float | None", "How long a listener may take. None: session_timeout_ms."),
    ],
}


def home(option: Option) -> list[str]:
    """Return the classes that declare an option: as far up as all clients below have it."""
    name, kinds = option.name, option.kinds & ALL
    if name == _TOKENS:
        return ["_Tokens", "_AIOTokens"]
    if name in _DESERIALIZERS:
        return ["ConsumerOptions", "AIOConsumerOptions", "ShareConsumerOptions", "AIOShareConsumerOptions"]
    if name in _ASYNCIO_ONLY:
        return ["BytesConsumerOptions", "_ShareConsumerOptions"]
    for found, where in ((ALL, "_AllOptions"), (CLIENTS, "_ClusterOptions"), (FACES, "_FaceOptions")):
        if kinds >= found:
            return [where, *(_DECLARES[kind] for kind in _DECLARES if kind in kinds - found)]
    return [_DECLARES[kind] for kind in _DECLARES if kind in kinds]


def entries() -> dict[str, list[tuple[str, str, str]]]:
    """Return the name, the type and the description of each option by the class that declares it."""
    from kafka.config import OPTIONS

    found: dict[str, list[tuple[str, str, str]]] = {name: [] for name, *_ in CLASSES}
    for option in OPTIONS.values():
        if option.obsolete:
            continue  # accepted with a warning, so a type checker may warn too
        shown = [(option.name, option.doc), *((alias, f"The same as {option.name}.") for alias in option.aliases)]
        for where in home(option):
            annotation = option.check.annotation
            if where == "_AIOTokens":
                annotation = f"AIOTokenProvider | {annotation}"
            found[where] += [(name, annotation, doc) for name, doc in shown]
    for where, more in OF_ASYNCIO.items():
        found[where] += more
    return found


def render() -> str:
    """Return the text of the module."""
    body = []
    for (name, base, sentence), declared in zip(CLASSES, entries().values(), strict=True):
        lines = [f'class {name}({base}, total=False):\n    """{sentence}"""\n']
        for option, annotation, doc in declared:
            lines.append(f"    {option}: {annotation}")
            lines.append('    """' + "\n    ".join(textwrap.wrap(doc, 110)) + '"""')
        body.append("\n".join(lines))
    text = "\n\n\n".join(body)
    used = set(re.findall(r"\w+", text))
    modules: dict[str, list[str]] = {}
    for name, module in IMPORTS.items():
        if name in used:
            modules.setdefault(module, []).append("Set as AbstractSet" if name == "AbstractSet" else name)
    imports = "\n".join(f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(modules.items()))
    public = "\n".join(f'    "{name}",' for name, *_ in CLASSES if not name.startswith("_"))
    whole = f"{HEAD}\n{imports}\n\n__all__ = [\n{public}\n]\n\n\n{text}\n"
    for command in (["check", "--fix", "--quiet", "--select", "I"], ["format", "--quiet"]):
        words = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(OUTPUT), "-"]
        whole = subprocess.run(words, input=whole, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return whole


if __name__ == "__main__":
    OUTPUT.write_text(render(), encoding="utf-8")
