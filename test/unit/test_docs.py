"""The API reference is complete: every public name is on a page of docs/reference or docs/protocol."""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from kafka.config import OPTIONS

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
    "kafka.metrics.prometheus",
    "kafka.metrics.stats",
    "kafka.otel",
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


def test_the_addresses_of_the_project_match_the_package() -> None:
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


# Pages that follow one event through the code.
ON_THE_WAY = ("broker_dies", "session_renewed", "batch_divided", "member_fenced")


def resolve(name: str) -> tuple[object, str]:
    """Return the object of a full name such as ``kafka.net.connection.Connection._read``, and its module's source."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        found: object = module
        for part in parts[length:]:
            found = getattr(found, part)
        return found, inspect.getsource(module)
    raise AssertionError(f"there is no module {name}")


@pytest.mark.parametrize("page", ON_THE_WAY)
def test_the_names_on_a_page_about_the_code_exist(page: str) -> None:
    """A page names a class by its module once, then by its own name; other words are in its source, or options."""
    text = (DOCS / "internals" / f"{page}.rst").read_text(encoding="utf-8")
    words = list(dict.fromkeys(re.findall(r"(?<!:)``([^`]+)``", text)))
    classes: dict[str, object] = {}
    around = ""
    for word in words:
        if word.startswith("kafka."):
            around += resolve(word)[1]
            if (owner := re.match(r"(.*\.([A-Z]\w*))\.\w+$", word)) is not None:
                classes[owner[2]] = resolve(owner[1])[0]
    missing = []
    for word in words:
        name = word.removesuffix("()")
        if re.fullmatch(r"[A-Z]\w*\.\w+", name):
            owner, attribute = name.split(".")
            exists = owner in classes and (hasattr(classes[owner], attribute) or f"self.{attribute} = " in around)
        elif name.startswith("test"):
            exists = (ROOT / name).exists() or any((ROOT / "test").rglob(name))
        elif re.fullmatch(r"\w+", name):
            exists = name in OPTIONS or re.search(rf"\b{name}\b", around) is not None
        else:
            of_a_broker = re.fullmatch(r"[a-z]+(\.[a-z]+)+", name) is not None
            exists = name.startswith("kafka.") or of_a_broker
        if not exists:
            missing.append(word)
    assert not missing
    assert len(classes) >= 4


def test_the_places_that_a_change_has_exist() -> None:
    """Files by their paths, functions by their full names; what is in capitals stands for a name."""
    words = re.findall(r"(?<!:)``([^`]+)``", (DOCS / "internals" / "changing.rst").read_text(encoding="utf-8"))
    for word in words:
        if word.startswith("kafka."):
            resolve(word)
    paths = [word for word in words if re.fullmatch(r"[a-z_]+/[\w/.]+", word) and not re.search(r"[A-Z]", word)]
    assert len(paths) > 15
    assert not [path for path in paths if not (ROOT / path).exists()]


# Pages that are about other programs, or list names that are absent here.
ABOUT_OTHERS = {"benchmarks", "compatibility", "dependencies", "exporter", "testing", "admin_features"}
ABOUT_OTHERS |= {"moving", "moving_aiokafka", "moving_confluent", "changes", "injected_errors"}
# Names of other systems on the pages for users: task queues, Spark, Kubernetes, web servers, tracers.
FOREIGN = """
    ApproximateReceiveCount ChangeMessageVisibility DeleteMessage maxReceiveCount max_retries prefetch_count nack
    worker_prefetch_multiplier countdown eta rand PrometheusServlet AnalysisException avgOffsetsBehindLatest IN
    minOffsetsBehindLatest maxOffsetsBehindLatest speculation outfile flush keySubject valueVersion keyVersion
    valueMessage keyMessage terminationGracePeriodSeconds preload preload_app post_fork worker_process_init
    worker_process_shutdown worker_exit forkserver confluent_kafka sentry_sdk SentrySpanProcessor SentryPropagator
    elasticapmtraceparent LogRecord KRB5_CLIENT_KTNAME broker_logger invoices ORDER 1767225600000ms --describe
    --packages --py-files jars rst SECURITY CONTRIBUTING Admin setUp unittest TestCase
"""


def test_the_names_on_pages_for_users_exist() -> None:
    """Options, arguments, classes, methods and commands in the text; code blocks run in other tests."""
    files = [*(ROOT / "kafka").rglob("*.py"), ROOT / "setup.py"]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    known = set(FOREIGN.split()) | set(re.findall(r"\w+", source)) | set(re.findall(r"--[a-z][a-z-]+", source))
    commands = (DOCS / "reference" / "commands.rst").read_text(encoding="utf-8")
    missing, seen = [], 0
    for page in [*DOCS.glob("*.rst"), *(DOCS / "protocol").glob("*.rst"), ROOT / "README.rst"]:
        if page.stem in ABOUT_OTHERS:
            continue
        text = re.sub(r"(?m)^( *)\.\. (?:[a-z-]+)::.*\n(?:\1 +.*\n|\s*\n)*", "", page.read_text(encoding="utf-8"))
        for literal in dict.fromkeys(re.findall(r"(?<![`:\w])``([^`]+)``", text)):
            seen += 1
            names = re.findall(r"(?<![\w-])--[a-z][a-z-]+", literal)
            called = re.fullmatch(r"([A-Za-z_][\w.]*)(?:\(.*\))?", literal, re.DOTALL)
            if called and not called[1].startswith(
                ("kafka.client.", "kafka.producer.", "kafka.consumer.", "kafka.admin.")
            ):
                names += called[1].split(".")
            missing += [f"{page.name}: {name} of {literal}" for name in names if name and name not in known]
            command = re.match(r"purekafka ([a-z]+)(?: ([a-z][a-z-]+))?", literal)
            if command and " ".join(filter(None, command.groups())) not in commands:
                missing.append(f"{page.name}: {literal}")
    assert missing == []
    assert seen > 1000


@cache
def stem(word: str) -> str:
    return str(pytest.importorskip("sphinx.search.en").SearchEnglish({}).stem(word))


def terms(text: str) -> set[str]:
    """Return the words as Sphinx's index has them, whose search wants all of them on a page."""
    return {stem(word) for word in set(re.findall(r"\w+", text.lower()))}


def with_included(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    files = re.findall(r"^\.\. (?:include|literalinclude):: (\S+)$", text, re.MULTILINE)
    return "\n".join([text, *((page.parent / file).read_text(encoding="utf-8") for file in files)])


@cache
def index() -> dict[str, set[str]]:
    """Return the terms of each page."""
    return {
        page.relative_to(DOCS).with_suffix("").as_posix(): terms(with_included(page))
        for page in DOCS.rglob("*.rst")
        if "_build" not in page.parts
    }


@pytest.mark.parametrize(
    ("words", "pages"),
    [
        ("graceful shutdown", {"cookbook"}),
        ("mypy", {"reference/configuration"}),
        ("dead letters", {"cookbook", "producer", "spark"}),
        ("records-lag-max", {"observability", "operations"}),
        ("exactly once", {"cookbook", "guarantees", "spark"}),
        ("batch.size", {"reference/configuration"}),
        ("rebalance", {"groups", "troubleshooting"}),
        ("retry topic", {"cookbook"}),
        ("schema registry", {"broker", "producer", "spark"}),
        ("docker", {"broker"}),
    ],
)
def test_the_search_finds_what_readers_look_for(words: str, pages: set[str]) -> None:
    found = {page for page, held in index().items() if terms(words) <= held}
    assert pages <= found
    assert len(found) < len(index()) / 3  # a word of every page finds nothing


def simple_tables() -> list[tuple[str, list[list[str]]]]:
    """Return the heads and the bodies of the simple tables of all pages: page, and the cells of each line."""
    found = []
    for page in [*DOCS.rglob("*.rst"), ROOT / "README.rst"]:
        lines = [] if "_build" in page.parts else page.read_text(encoding="utf-8").split("\n")
        borders = [number for number, line in enumerate(lines) if re.fullmatch(r" *=+(?: +=+)+", line)]
        for border, after in pairwise(borders):
            within = lines[border + 1 : after]
            if lines[border] == lines[after] and within and all(within):
                edges = [*(match.start() for match in re.finditer("=+", lines[border])), None]
                cells = [[line[begin:end].strip() for begin, end in pairwise(edges)] for line in within]
                found.append((page.name, cells))
    return found


def test_no_row_of_a_table_is_torn() -> None:
    """A line of a simple table whose first cell has text begins a row, whatever was meant."""
    tables = simple_tables()
    assert len(tables) > 60
    lines = [(page, line) for page, lines in tables for line in lines if line[0]]
    assert [line for line in lines if line[1][0].endswith(",") or not any(line[1][1:])] == []
    assert [(page, lines[0]) for page, lines in tables if not lines[0][0]] == []  # a head without text is no head
