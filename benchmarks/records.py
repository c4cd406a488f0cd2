"""Building and reading record batches, against kafka-python and aiokafka.

One operation is 2,000 records: to be built into batches, or to be read out of one fetched buffer of these batches.
Uncompressed, all libraries must make the same bytes. Read means: checksums checked, each record in the form that the
library hands to its user (``ConsumerRecord``).

The main rows are what users send: values of 20 to 300 bytes (``mix``) and JSON documents of 80 to 2,000 bytes
(``json``), every second one with a key, one record each millisecond, in batches of 16 KiB or of 1, 20 and 500 records.
Values of one size (``100``, ``1000``) are rows among these. Content is random and other in each round.

Below these each special path of the package is held against its plain twin: ``extend`` against calls of ``append``
(``bulk``, ``one-by-one``), columns by numpy against columns by way of rows (``columns``, ``plaincolumns``), and batches
out of Arrow against ``append`` of its cells (``arrow``, ``plainarrow``).
"""

from __future__ import annotations

import argparse
import hashlib
from itertools import repeat

from records_content import content
from records_impls import bulk, reader, writer
from workload import OURS, Case, Job, Target, Workload, main

_NO_NUMPY = f"{OURS}-no-numpy"
_IMPLS = (OURS, _NO_NUMPY, "kafka-python", "aiokafka")

_KINDS = (
    "mix",
    "mix-headers",
    "json",
    "mix-x1",
    "mix-x20",
    "mix-x500",
    "json-x20",
    "mix-burst",
    "mix-lz4",
    "json-lz4",
    "mix-zstd",
    "json-zstd",
    "100",
    "100-burst",
    "100-nokeys",
    "100-nokeys-x500",
    "1000",
)
_TWINS = ("mix", "mix-headers", "json", "mix-x1", "mix-x20", "mix-x500", "100", "100-nokeys", "100-nokeys-x500", "1000")


def _cases() -> list[Case]:
    libraries = (OURS, "kafka-python", "aiokafka")
    cases = [Case(f"append-{kind}", "one call per record", 20, impls=libraries) for kind in _KINDS]
    for kind in _KINDS:
        more = (_NO_NUMPY,) if kind in ("mix", "json", "100") else ()
        cases.append(Case(f"read-{kind}", "to ConsumerRecords", 5, impls=(*libraries, *more)))
    about = {
        "bulk": "values with one timestamp a batch, by extend",
        "one-by-one": "the same by append",
        "columns": "a fetch of 8,000 records to Arrow",
        "plaincolumns": "the same without numpy and pyarrow",
        "arrow": "Arrow arrays of 8,000 records to batches",
        "plainarrow": "the same, cell by cell, by append",
    }
    return [
        *cases,
        *(Case(f"{verb}_{kind}", text, 5, impls=(OURS,)) for verb, text in about.items() for kind in _TWINS),
    ]


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """Make the records, see that they come back as they were, and leave the bare loop."""
    if "_" in case:
        return _twin_job(*case.split("_"), args.seed)
    verb, _, kind = case.partition("-")
    made = content(kind, args.seed)
    build = writer(impl, made)
    read = reader(impl)
    batches = build()
    fetched = made.fetched(batches)
    # Base offsets do no harm to the peers' record modules; ours goes by the offset.
    found = [(record.offset, record.key, record.value, list(record.headers)) for record in read(fetched)]
    if found != made.expected():
        raise AssertionError("what was read is not what was written")
    # From the checksum on: in front of it is the leader epoch, for which kafka-python sends 0 and the others -1.
    digest = "" if made.codec else hashlib.sha256(b"".join(batch[17:] for batch in batches)).hexdigest()[:16]
    work = build if verb == "append" else lambda: read(fetched)
    return Job(_loop(work), records=made.count, bytes=made.size, digest=digest)


def _twin_job(verb: str, kind: str, seed: int) -> Job:
    if verb in ("bulk", "one-by-one"):
        made = content(kind, seed)
        if bulk(made, extend=True)() != bulk(made, extend=False)():
            raise AssertionError("extend and append make different bytes")
        return Job(_loop(bulk(made, extend=verb == "bulk")), records=made.count, bytes=made.size)
    import records_columns

    work, records, size = records_columns.prepare(verb, kind, seed)
    return Job(_loop(work), records=records, bytes=size)


def _loop(work):  # type: ignore[no-untyped-def]
    def run(count: int) -> None:
        for _ in repeat(None, count):
            work()

    return run


def _gains(verb: str, twin: str, kinds: tuple[str, ...]) -> list[Target]:
    """That a special path gains 15 % or more over its plain twin on these shapes."""
    separator = "-" if twin in ("append", "read") else "_"
    own = "-" if verb in ("append", "read") else "_"
    return [
        Target(f"{verb}{own}{kind}", peer=OURS, peer_case=f"{twin}{separator}{kind}", at_least=1.15) for kind in kinds
    ]


_NOTES = (
    "append-mix: of 0.5 µs the calls of append and of join take 0.15, looking lengths up 0.15, sealing 0.06.",
    "read-mix: of 1.1 µs the tuple takes 0.16, cutting key and value out 0.15, the numbers 0.35, the collector 0.1.",
    "x1: a batch takes 3 µs to build and 4.5 to open, whatever is in it.",
    "read: aiokafka parses in C and makes a dataclass for each record only in its fetcher, which is counted here.",
)

WORKLOAD = Workload(
    title="record batches to bytes and back",
    unit="record",
    impls=_IMPLS,
    cases=_cases(),
    prepare=prepare,
    targets=[
        *(Target(f"append-{kind}", peer="kafka-python", at_least=5) for kind in ("mix", "json", "100")),
        *(Target(f"read-{kind}", peer="kafka-python", at_least=4) for kind in ("mix", "json", "100")),
        *(Target(f"read-{kind}", peer="aiokafka", at_least=1) for kind in ("mix", "json", "100", "1000")),
        *(Target(f"read-{kind}", peer=_NO_NUMPY, at_least=0.85) for kind in ("mix", "json", "100")),
        Target("append-mix", at_most=0.6),
        *_gains("bulk", "one-by-one", ("mix", "json", "100")),
        *_gains("columns", "plaincolumns", ("mix", "json", "mix-x20", "100", "1000")),
        *_gains("arrow", "plainarrow", ("mix", "json", "100")),
    ],
    run_s=0.2,
    notes=_NOTES,
    settings={
        "records": "2,000 an operation, one per millisecond (burst: 100), a key on every second one",
        "shapes": "mix: 20 to 300 B; json: 80 to 2,000 B; headers: two on every tenth record; x20: 20 records a batch",
        "batches": "16 KiB",
        "content": "random, other in each round, the same for all libraries of a round",
        "levels": "each library's default level",
        "checked": "the records come back as they were; without a codec all libraries make the same bytes",
    },
)

if __name__ == "__main__":
    main(WORKLOAD)
