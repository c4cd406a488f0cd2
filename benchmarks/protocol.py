"""Encoding and decoding of messages against kafka-python and kio, and importing the clients against all libraries.

One operation is one message body, without header and frame. "encode" starts from a message that exists already and ends
with its bytes; "decode" starts from bytes and ends with the message, all structs in it made. Before anything is timed,
each library must make the same content of its own bytes again, and the harness compares the bytes of all libraries.
"""

from __future__ import annotations

import argparse
import hashlib
from itertools import repeat

import imports
from protocol_content import MESSAGES, Message
from protocol_impls import codec
from workload import Case, Job, Target, Unsupported, Workload, main

_IMPORT = "import-clients"
_CODECS = ("purekafka", "kafka-python", "kio")
_IMPLS = (*_CODECS, "aiokafka", "confluent-kafka")


def _cases() -> list[Case]:
    cases = []
    for message in MESSAGES:
        start = 5 if message.name.startswith("metadata") or "500" in message.name else 200
        about = f"{message.cls} v{message.version}, {message.size}"
        cases += [Case(f"{message.name}-{verb}", about, start, impls=_CODECS) for verb in ("encode", "decode")]
    return [*cases, Case(_IMPORT, "a process that imports producer and consumer", 3, impls=tuple(imports.STATEMENTS))]


def prepare(impl: str, case: str, _args: argparse.Namespace) -> Job:
    """Make the message, see that the library does with it what it should, and leave the bare loop."""
    if case == _IMPORT:
        processes = imports.Imports(impl)
        return Job(processes.run, extra=processes.figures, cpu_s=imports.cpu_s, warm_up=1)
    name, _, verb = case.rpartition("-")
    message = next(message for message in MESSAGES if message.name == name)
    return _job(impl, message, verb)


def _job(impl: str, message: Message, verb: str) -> Job:
    try:
        library = codec(impl, message)
    except ImportError as error:
        raise Unsupported(f"no {error.name}") from error
    content = message.make()
    made = library.make(content)
    data = library.encode(made)
    found = library.plain(library.decode(data))
    if found != content:
        raise AssertionError("what was decoded is not what was encoded")
    work, argument = (library.encode, made) if verb == "encode" else (library.decode, data)

    def run(count: int) -> None:
        for _ in repeat(None, count):
            work(argument)

    return Job(run, bytes=len(data), digest=hashlib.sha256(data).hexdigest()[:16])


_VERSIONS = ", ".join(dict.fromkeys(f"{message.cls} v{message.version}" for message in MESSAGES))

WORKLOAD = Workload(
    title="messages to bytes and back",
    unit="message",
    impls=_IMPLS,
    cases=_cases(),
    prepare=prepare,
    targets=[
        Target("*-encode", peer="*", at_least=2),
        Target("*-decode", peer="*", at_least=2),
        Target(_IMPORT, metric="import_ms", at_most=80),
        Target(_IMPORT, peer="aiokafka", metric="import_ms", at_least=1),
    ],
    settings={
        "versions": _VERSIONS,
        "sizes": "6 partitions to produce to; 1,000 topics of 6 partitions; 50 members; 1,000 B of records a partition",
        "timed": "the body alone, from a made message to bytes and from bytes to a message with all its structs",
        "checked": "all libraries make the same bytes of the same content and read the same content of them",
        "kio": "decodes in a compiled extension of its own, encodes in Python",
        _IMPORT: "a message is a process here; CPU is that of the whole process, import ms what it takes more than an "
        "empty one",
    },
)

if __name__ == "__main__":
    main(WORKLOAD)
