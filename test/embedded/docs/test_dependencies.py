"""docs/dependencies.rst: each package that is installed, its licence, and what works without it."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys

import pytest

from kafka.broker import Broker

from .blocks import ROOT

PAGE = ROOT / "docs" / "dependencies.rst"
MODULES = {"crc32c": "crc32c", "lz4": "lz4", "python-snappy": "snappy", "zstandard": "zstandard"}
CODECS = {"lz4": "lz4", "python-snappy": "snappy", "zstandard": "zstd"}
# What a package's metadata may say.
WORDS = {
    "LGPL-2.1-or-later": r"LGPL-2\.1-or-later",
    "BSD": "BSD",
    "BSD-3-Clause": "BSD-3-Clause",
    "Apache-2.0": "Apache-2.0",
    "MIT": "MIT",
    "ISC": "ISC",
}
PROGRAM = """
import json, sys
sys.modules[{module!r}] = None
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.record import crc32c
found = {{"python": crc32c.fastest() is crc32c.crc32c_python}}
servers = {servers!r}
for codec in ("none", "gzip", "lz4", "snappy", "zstd"):
    try:
        with KafkaProducer(bootstrap_servers=servers, compression_type=None if codec == "none" else codec) as producer:
            producer.send("written", codec.encode() * 50).get(timeout=30)
        found["write " + codec] = "ok"
    except KafkaError as error:
        found["write " + codec] = str(error)
    options = {{"bootstrap_servers": servers, "auto_offset_reset": "earliest"}}
    with KafkaConsumer(options, "of-" + codec) as consumer:
        try:
            found["read " + codec] = "ok" if next(consumer).value == codec.encode() * 50 else "?"
        except KafkaError as error:
            found["read " + codec] = str(error)
print(json.dumps(found))
"""


def rows(columns: int) -> list[list[str]]:
    """Return the rows of the table with so many columns, without the lines that continue a cell."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().strip("`") for cell in re.split(r"  +", line)]
        if line.startswith("``") and len(cells) == columns:
            found.append(cells)
    return found


def licence_of(package: str) -> str:
    said = importlib.metadata.metadata(package)
    words = [said.get("License-Expression") or "", said.get("License") or "", *(said.get_all("Classifier") or [])]
    return "\n".join(word for word in words if "License" in word or not word.startswith("Programming"))


def needed(extra: str | None = None) -> set[str]:
    found = set()
    for each in importlib.metadata.requires("purekafka") or []:
        name = re.split(r"[^\w-]", each)[0]
        of = re.search(r"extra == ['\"](\w+)['\"]", each)
        if (of[1] if of else None) == extra:
            found.add(name)
    return found


def test_the_tables_have_the_packages_that_are_installed() -> None:
    assert {package for package, *_ in rows(4) if package in MODULES} == needed() == set(MODULES)
    extras = [(extra, package) for extra, package, *_ in rows(4) if package not in WORDS and extra not in MODULES]
    for extra in ("columns", "registry", "otel", "prometheus", "gssapi"):
        assert {package for of, package in extras if of == extra} == needed(extra)
    assert {package for _, package in extras} >= needed("spark")


@pytest.mark.parametrize(
    ("package", "licence"),
    [(row[0], row[1]) if row[0] in MODULES else (row[1], row[2]) for row in rows(4)],
)
def test_the_licence_is_what_the_package_states(package: str, licence: str) -> None:
    try:
        stated = licence_of(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    assert re.search(WORDS[licence], stated), stated


@pytest.mark.slow
@pytest.mark.parametrize("package", MODULES)
def test_everything_but_its_own_codec_works_without_a_package(package: str) -> None:
    import json

    from kafka import KafkaProducer

    names = ("none", "gzip", "lz4", "snappy", "zstd")
    with Broker(topics={"written": 1, **{f"of-{name}": 1 for name in names}}) as broker:
        servers = broker.bootstrap_servers
        for name in names:
            codec = None if name == "none" else name
            with KafkaProducer(bootstrap_servers=servers, compression_type=codec) as producer:
                producer.send(f"of-{name}", name.encode() * 50).get(timeout=30)
        program = PROGRAM.format(module=MODULES[package], servers=servers)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("python") == (package == "crc32c")
    own = CODECS.get(package)
    if own == "zstd" and sys.version_info >= (3, 14):
        own = None
    for what, said in found.items():
        if what.split()[1] == own:
            assert f"pip install {package}" in said
        else:
            assert said == "ok", (what, said)
