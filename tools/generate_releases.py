"""Write kafka/protocol/_releases.py: which APIs a broker of each release of Apache Kafka offers, in which versions.

    mvn dependency:copy -Dartifact=org.apache.kafka:kafka-clients:4.3.1 -DoutputDirectory=DIR
    mvn dependency:copy -Dartifact=org.slf4j:slf4j-api:1.7.36 -DoutputDirectory=DIR
    python tools/generate_releases.py --jars DIR

With ``--jars`` it reads the releases whose kafka-clients jars are in DIR, and writes their answers to
tools/releases/apis.json; the newest jar that was ever read stands for a minor release. Without ``--jars``
it reads that file alone, and needs no Java. Running twice changes nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
FACTS = HERE / "releases" / "apis.json"
PROGRAM = HERE / "releases" / "DumpApis.java"
MODULE = ROOT / "kafka" / "protocol" / "_releases.py"
sys.path.insert(0, str(ROOT))

from kafka.protocol.registry import APIS  # noqa: E402

Release = tuple[int, ...]
Offer = dict[int, tuple[int, int]]

#: Before 0.9 the jar of the clients does not describe the broker: no jar exists for 0.8.0 and 0.8.1, and the jar of
#: 0.8.2 has group APIs that its broker refuses and lacks the requests between brokers.
_OF_0_8_0: Offer = dict.fromkeys(range(8), (0, 0))
BY_HAND: dict[Release, Offer] = {
    (0, 8, 0): _OF_0_8_0,
    (0, 8, 1): {**_OF_0_8_0, 8: (0, 0), 9: (0, 0)},
    (0, 8, 2): {**_OF_0_8_0, 8: (0, 1), 9: (0, 1), 10: (0, 0)},
}

#: A broker offers these only once a plugin that receives client metrics is configured.
OPTIONAL = {71, 72}

HEAD = '''"""Which APIs a broker of each release offers, as what changed since the release before.

Written by tools/generate_releases.py from Kafka's own tables; do not edit.

A broker is one that serves clients, in ZooKeeper's time and in KRaft's alike: releases that ran either way have the
APIs of both. Unstable versions are left out, as are GetTelemetrySubscriptions and PushTelemetry, which a broker offers
only with a plugin. The oldest version is the one that ApiVersions tells: Produce from 0 in Kafka 4 too, although such
a broker serves it from 3 on. Each minor release stands for its newest patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# "Fetch 0-11": offered from now on in versions 0 to 11; "Fetch 0": in version 0 alone; "no Fetch": no longer offered.
CHANGES: Final[Mapping[tuple[int, ...], str]] = {
'''


def as_release(text: str) -> Release:
    """2.8.2 -> (2, 8); 0.10.2.2 -> (0, 10, 2), whose first zero is only there since the project began with one."""
    numbers = tuple(int(part) for part in text.split("."))
    return numbers[: 3 if numbers[0] == 0 else 2]


def ask_jars(folder: Path) -> dict[str, list[list[int]]]:
    """Run the Java program on every kafka-clients jar of a folder."""
    jars = sorted(folder.glob("kafka-clients-*.jar"))
    logging = sorted(folder.glob("slf4j-api-*.jar"))
    if not jars or not logging:
        sys.exit(f"{folder} needs kafka-clients-VERSION.jar files and one slf4j-api-VERSION.jar")
    found = {}
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run(["javac", "-cp", str(jars[-1]), "-d", classes, str(PROGRAM)], check=True)
        for jar in jars:
            path = f"{classes}:{jar}:{logging[-1]}"
            run = subprocess.run(["java", "-cp", path, "DumpApis"], check=True, capture_output=True, text=True)
            version = re.fullmatch(r"kafka-clients-([\d.]+)", jar.stem)
            if version:
                found[version[1]] = [[int(number) for number in line.split()] for line in run.stdout.splitlines()]
    return found


def version_key(text: str) -> tuple[int, ...]:
    """Order versions by their numbers."""
    return tuple(int(part) for part in text.split("."))


def merge(old: dict[str, list[list[int]]], new: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
    """Keep the newest patch of each minor release."""
    newest: dict[Release, str] = {}
    for version in sorted({*old, *new}, key=version_key):
        newest[as_release(version)] = version
    return {version: new.get(version) or old[version] for version in newest.values()}


def offers(facts: dict[str, list[list[int]]]) -> dict[Release, Offer]:
    """What each release offers, oldest first."""
    table = {
        as_release(version): {key: (low, high) for key, low, high in rows if key not in OPTIONAL}
        for version, rows in facts.items()
    }
    table.update(BY_HAND)
    return dict(sorted(table.items()))


def changes(before: Offer, after: Offer) -> list[str]:
    """The differences of two releases, in the order of API keys."""
    found = []
    for key in sorted({*before, *after}):
        if key not in after:
            found.append(f"no {APIS[key].name}")
        elif before.get(key) != after[key]:
            low, high = after[key]
            found.append(f"{APIS[key].name} {low}" + (f"-{high}" if high > low else ""))
    return found


def entry(release: Release, words: str) -> str:
    """One line of the table, or a block of them, laid out as the formatter would."""
    line = f'    {release}: "{words}",'
    if len(line) <= 120:
        return line + "\n"
    lines = [""]
    for piece in words.split(", "):
        if len(lines[-1]) + len(piece) > 107:
            lines.append("")
        lines[-1] += f"{piece}, "
    lines[-1] = lines[-1].removesuffix(", ")
    return f"    {release}: (\n" + "".join(f'        "{line}"\n' for line in lines) + "    ),\n"


def module(table: dict[Release, Offer]) -> str:
    """The text of kafka/protocol/_releases.py."""
    text = HEAD
    before: Offer = {}
    for release, offer in table.items():
        text += entry(release, ", ".join(changes(before, offer)))
        before = offer
    return text + "}\n"


def main() -> int:
    """Write the files, or with ``--check`` say which of them differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", type=Path, help="a folder with kafka-clients jars and one of slf4j-api")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if anything would change")
    options = parser.parse_args()
    facts = json.loads(FACTS.read_text(encoding="utf-8")) if FACTS.exists() else {}
    if options.jars:
        facts = merge(facts, ask_jars(options.jars))
    rows = ",\n".join(f'"{version}": {json.dumps(rows, separators=(",", ":"))}' for version, rows in facts.items())
    wanted = {FACTS: "{\n" + rows + "\n}\n", MODULE: module(offers(facts))}
    stale = {
        path: text for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        print("differs:" if options.check else "wrote:", path.relative_to(ROOT))
        if not options.check:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
