"""Building and reading record batches, against kafka-python and aiokafka, with and without its C extension.

One operation is one batch to build (500 records), or one fetched buffer of four such batches to read. Uncompressed,
all libraries must make the same bytes. Read means: checksums checked, each record in the form that the library hands to
its user (``ConsumerRecord``); "raw" stops at the record module's own objects, which only the peers have.

``pack`` and ``unpack`` are the codecs alone, on the bytes of the same records: what no record layer can be faster than.

``columns`` and ``arrow`` are ways that only this library has; they are held against bounds, or its own records().
"""

from __future__ import annotations

import argparse
import hashlib
from itertools import repeat

from records_content import PER_BATCH, content
from records_impls import codec, reader, writer
from workload import OURS, Case, Job, Target, Workload, main

_IMPLS = (OURS, "kafka-python", "aiokafka", "aiokafka-pure")
_BATCHES = 4

_SHAPES = [f"{size}{what}" for size in ("100B", "1KB", "20-300B") for what in ("", "-key", "-headers")]
_SHAPES.insert(3, "100B-key-headers")
_CODECS = ("gzip", "snappy", "lz4", "zstd")
_KINDS = [*_SHAPES, *(f"100B-{codec}" for codec in _CODECS)]


# aiokafka without its extension takes thirty times as long and more: these show that, and the others need not.
_PLAIN = ("100B", "1KB", "20-300B")


def _cases() -> list[Case]:
    def impls(kind: str) -> tuple[str, ...]:
        return _IMPLS if kind in _PLAIN else _IMPLS[:3]

    cases = [Case(f"append-{kind}", "one call per record", 100, impls=impls(kind)) for kind in _KINDS]
    cases += [
        Case(f"bulk-{kind}", "the fastest way to build a batch of a list", 200, impls=_IMPLS[:3]) for kind in _PLAIN
    ]
    cases += [Case(f"read-{kind}", "to ConsumerRecords", 20, impls=impls(kind)) for kind in _KINDS]
    cases += [
        Case(f"raw-{kind}", "what the record module yields", 20, impls=_IMPLS[:3]) for kind in ("100B", "20-300B")
    ]
    cases += [
        Case(f"{verb}-100B-{name}", "the codec alone", 200, impls=_IMPLS[:3])
        for verb in ("pack", "unpack")
        for name in ("gzip", "zstd")  # of the others it is little
    ]
    ours = [f"columns-{kind}" for kind in ("100B", "100B-key", "1KB", "20-300B", "100B-lz4")]
    ours += [f"plaincolumns-{kind}" for kind in ("100B", "100B-key", "1KB", "20-300B")]
    ours += [f"arrow-{kind}" for kind in ("100B", "100B-key", "1KB", "20-300B")]
    about = {
        "columns": "a fetch of 4 batches of 2,000 to Arrow",
        "plaincolumns": "the same without numpy and pyarrow",
        "arrow": "Arrow arrays of 10,000 to batches",
    }
    return [*cases, *(Case(name, about[name.partition("-")[0]], 20, impls=(OURS,)) for name in ours)]


def prepare(impl: str, case: str, _args: argparse.Namespace) -> Job:
    """Make the records, see that they come back as they were, and leave the bare loop."""
    verb, _, kind = case.partition("-")
    if verb in ("columns", "plaincolumns", "arrow"):
        return _column_job(verb, kind)
    made = content(kind)
    if verb in ("pack", "unpack"):
        work = codec(impl, made, unpack=verb == "unpack")
        return Job(_loop(work), records=PER_BATCH, bytes=made.size)
    build = writer(impl, made, bulk=verb == "bulk")
    batch = build()
    read = reader(impl, raw=verb == "raw")
    found = [(record.offset, record.key, record.value, list(record.headers)) for record in read(batch)]
    if found != made.expected():
        raise AssertionError("what was read is not what was written")
    # From the checksum on: in front of it is the leader epoch, for which kafka-python sends 0 and the others -1.
    digest = "" if made.codec else hashlib.sha256(batch[17:]).hexdigest()[:16]
    if verb in ("append", "bulk"):
        return Job(_loop(build), records=PER_BATCH, bytes=made.size, digest=digest)
    # Base offsets of 0 in all of them do no harm to the peers; ours goes by the offset, so give it what a broker would.
    fetched = made.fetched(batch, _BATCHES)
    return Job(_loop(lambda: read(fetched)), records=PER_BATCH * _BATCHES, bytes=made.size * _BATCHES, digest=digest)


def _loop(work):  # type: ignore[no-untyped-def]
    def run(count: int) -> None:
        for _ in repeat(None, count):
            work()

    return run


def _column_job(verb: str, kind: str) -> Job:
    import records_columns

    work, records, size = records_columns.prepare(verb, kind)
    return Job(_loop(work), records=records, bytes=size)


_NOTES = (
    "append-100B, against C: of 0.34 µs append takes 0.15 (the call 0.04), seal 0.13, starting batches 0.06.",
    "Tried for append: counting bytes as records come (0.05 more), a closure (no gain), one list for both (0.05 more).",
    "append-20-300B, bulk-20-300B: seal joins five or six pieces for each record, 0.25 µs; equal sizes half of that.",
    "append and read with gzip or zstd: most is the codec, which is the same for all (pack, unpack).",
    "read-20-300B: 0.1 µs to step on, 0.2 to find fields, 0.2 to cut them out, 0.3 to make the tuple.",
    "plaincolumns-1KB: of 0.5 µs the checksum is 0.06, cutting out 0.24, joining 0.14; our records() take 0.7.",
    "plaincolumns-20-300B: stepping and comparing is 0.7, about what records() take in all.",
    "columns-20-300B: of 0.27 µs 0.1 is the step from record to record, the only loop in Python.",
)

WORKLOAD = Workload(
    title="record batches to bytes and back",
    unit="record",
    impls=_IMPLS,
    cases=_cases(),
    prepare=prepare,
    targets=[
        Target("read-*", peer="kafka-python", at_least=4),
        Target("read-100B", peer="aiokafka", at_least=1),
        Target("read-1KB", peer="aiokafka", at_least=1),
        Target("read-20-300B", peer="aiokafka", at_least=1),
        Target("append-*", peer="kafka-python", at_least=5),
        Target("append-100B", peer="aiokafka", at_least=1),
        Target("append-1KB", peer="aiokafka", at_least=1),
        Target("bulk-*", peer="kafka-python", at_least=5),
        Target("bulk-*", peer="aiokafka", at_least=1),
        Target("columns-100B", at_most=0.2),
        Target("columns-20-300B", at_most=0.2),
        Target("arrow-100B", at_most=0.25),
        Target("arrow-20-300B", at_most=0.25),
        *(
            Target(f"plaincolumns-{kind}", peer=OURS, peer_case=f"read-{kind}", at_least=2)
            for kind in ("100B", "100B-key", "1KB", "20-300B")
        ),
    ],
    run_s=0.2,
    notes=_NOTES,
    settings={
        "records": f"{PER_BATCH} a batch, {_BATCHES} batches a read; keys of 8 B; 3 headers; a new timestamp each 100",
        "values": "random letters, so that codecs have something to do",
        "levels": "each library's default level",
        "checked": "the records come back as they were; without a codec all libraries make the same bytes",
    },
)

if __name__ == "__main__":
    main(WORKLOAD)
