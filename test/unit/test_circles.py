"""No modules import one another in a circle, imports for annotations included: each can be read, and tested, alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Packages that are free of circles, alone and together with those before them in their tuple. In kafka.producer the
# parts name the sender that holds them in annotations; what runs has no circle (.import-circles.toml).
FREE = [
    ("kafka.coordinator", "kafka.consumer"),
    ("kafka._runtime", "kafka.sasl", "kafka.net", "kafka._core"),
    ("kafka.spark",),
    ("kafka.metrics",),
    ("kafka.config",),
    ("kafka.admin",),
    ("kafka.aio",),
    ("kafka.broker.configs",),
]


def modules(packages: tuple[str, ...]) -> dict[str, Path]:
    found = {}
    for package in packages:
        for path in (ROOT / package.replace(".", "/")).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that a module imports anywhere: at its top, in functions, under TYPE_CHECKING."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
    return found & known.keys()


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    reached = {}
    for name in graph:
        seen: set[str] = set()
        left = [name]
        while left:
            new = graph[left.pop()] - seen
            seen |= new
            left += new
        reached[name] = seen
    found = {frozenset(other for other in reached[name] if name in reached[other]) for name in graph}
    return sorted(sorted(circle) for circle in found if circle)


@pytest.mark.parametrize("packages", FREE, ids="+".join)
def test_no_circles(packages: tuple[str, ...]) -> None:
    known = modules(packages)
    assert len(known) > 5
    assert circles({name: imported(path, known) - {name} for name, path in known.items()}) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
