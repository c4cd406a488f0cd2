"""The API reference is complete: every public name is on a page of docs/reference or docs/protocol."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# The modules that applications import from. What is below a private name, or below kafka.net, is the library's own.
PUBLIC = (
    "kafka",
    "kafka.admin",
    "kafka.aio",
    "kafka.broker",
    "kafka.cluster",
    "kafka.codec",
    "kafka.conn",
    "kafka.consumer",
    "kafka.coordinator.assignors",
    "kafka.errors",
    "kafka.future",
    "kafka.interceptors",
    "kafka.metrics",
    "kafka.metrics.stats",
    "kafka.oauth",
    "kafka.options",
    "kafka.partitioner",
    "kafka.producer",
    "kafka.record",
    "kafka.sasl",
    "kafka.schema_registry",
    "kafka.serializer",
    "kafka.spark",
    "kafka.structs",
    "kafka.testing",
)
# Pieces of the library that these modules export for each other.
INTERNAL = {
    "kafka.cluster": {"NodeId"},
    "kafka.coordinator.assignors": {"comes_with_us", "common_protocol", "make_assignors"},
    "kafka.interceptors": {"Interceptors"},
    "kafka.metrics": {"stats"},
    "kafka.partitioner": {"bind_partitioner"},
    "kafka.serializer": {"Bound", "bind_deserializer", "bind_serializer"},
}


def documented() -> set[int]:
    """Return the ids of all objects that a directive of autodoc names."""
    found = set()
    for page in DOCS.rglob("*.rst"):
        text = page.read_text(encoding="utf-8")
        for kind, name, body in re.findall(r"^\.\. auto(\w+):: (\S+)\n((?:   :.*\n)*)", text, re.MULTILINE):
            if kind == "module":
                module = importlib.import_module(name)
                left_out = set(re.findall(r"[\w.]+", "".join(re.findall(r":exclude-members: (.*)", body))))
                names = [each for each in public(name) if each not in left_out]
                found.update(id(getattr(module, each)) for each in names)
            else:
                owner, _, attribute = name.rpartition(".")
                found.add(id(getattr(importlib.import_module(owner), attribute)))
    return found


def public(module_name: str) -> list[str]:
    """Return what a module exports: `__all__`, or the classes and functions that are its own."""
    module = importlib.import_module(module_name)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module_name]
    return [name for name in names if not name.startswith("_") and name not in INTERNAL.get(module_name, ())]


@pytest.mark.parametrize("module_name", PUBLIC)
def test_every_public_name_is_in_the_reference(module_name: str) -> None:
    module = importlib.import_module(module_name)
    on_pages = documented()
    values = {name: getattr(module, name) for name in public(module_name)}
    # Constants are described where they are used; a reference is for what can be called.
    missing = [name for name, value in values.items() if callable(value) and id(value) not in on_pages]
    assert not missing


def test_the_addresses_of_the_project_are_those_of_the_package() -> None:
    """The source and the documentation have one address each, which every page and template uses."""
    addresses = set(re.findall(r'"(?:Documentation|Source)": "(\S+)"', (ROOT / "setup.py").read_text(encoding="utf-8")))
    assert len(addresses) == 2
    pages = [*ROOT.glob("*.rst"), *DOCS.rglob("*.rst"), *(ROOT / ".github").rglob("*.*"), ROOT / "setup.py"]
    strange = {
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in re.findall(r"https://[\w./-]*purekafka[\w./-]*", page.read_text(encoding="utf-8"))
        if not link.startswith(tuple(addresses))
    }
    assert not strange


def test_the_functions_that_a_page_names_on_the_way_exist() -> None:
    """A page of docs/internals names a function by its module once, and by its class from then on."""
    text = (DOCS / "internals" / "failures.rst").read_text(encoding="utf-8")
    classes: dict[str, object] = {}
    named = re.findall(r"``((?:kafka\.[\w.]+\.)?[A-Z]\w+\.\w+|kafka\.[\w.]+\.\w+)``", text)
    assert len(named) > 20
    for name in named:
        if name.startswith("kafka."):
            head, _, rest = re.sub(r"\.(?=[A-Z])", ":", name).partition(":")
            if not rest:
                head, _, rest = name.rpartition(".")
            found: object = importlib.import_module(head)
            owner, *more = rest.split(".")
            found = classes[owner] = getattr(found, owner)
        else:
            owner, *more = name.split(".")
            found = classes[owner]
        for part in more:
            assert hasattr(found, part), name
