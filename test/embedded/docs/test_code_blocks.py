"""Every code block of the documentation runs.

Python runs here and as doctests, pages about Spark in test/embedded/spark, shell blocks in a shell, and the files for
containers against a broker that is started as they say. The examples of docs/reference/commands.rst are those of the
command line's help, which test/embedded/cli runs. Blocks that need more than a broker have tests that prepare it
(`runs` marks them): in test_prepared_blocks.py, with Spark, and with Apache Kafka in test/real/docs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from test.embedded.broker.test_pytest_plugin import pytest_in
from test.embedded.cli.test_examples import examples

# They enter their blocks into PREPARED.
from test.embedded.share import test_guide as _of_share_groups  # noqa: F401
from test.embedded.spark import test_documentation as _on_spark  # noqa: F401
from test.real.docs import test_blocks as _with_kafka  # noqa: F401
from test.real.docs import test_moves as _with_three_nodes  # noqa: F401

from . import test_prepared_blocks as _prepared  # noqa: F401
from .blocks import PREPARED, ROOT, Block, blocks, pages, python_blocks, run
from .shell_blocks import SHELL, commands, shell

pytestmark = pytest.mark.slow

# Pages whose Python needs a Spark session: test/embedded/spark/test_documentation.py runs it.
ON_SPARK = {ROOT / "docs" / "spark.rst"}
CONTAINERS = {"docker", "yaml"}
NEEDS_BROKER = re.compile(r"\(kafka_broker[):]")
# The pages of which `make test-unit` runs the doctests.
DOCTESTED = [ROOT / "README.rst", *(ROOT / "docs").rglob("*.rst")]

needs_bash = pytest.mark.skipif(os.name == "nt", reason="bash and terminals")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page", [page for page in pages() if python_blocks(page) and page not in ON_SPARK], ids=name_of
)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__example__"}
    with Broker(topics={"events": 3, "orders": 2, "payments": 1, "invoices": 1}) as broker:
        for topic in ("events", "orders"):
            for number in range(3):
                broker.append(topic, f'{{"id": {number}, "price": 3}}', key=f"k{number}")
        names["broker"] = broker
        try:
            assert run(page, names, broker) == len(python_blocks(page))
        finally:
            close_all(names)


def close_all(names: dict[str, Any]) -> None:
    """Close the clients that examples leave open, as most of them show one thing and not its end.

    Not the broker: a client that has lost it waits for it when it closes.
    """
    for value in names.values():
        if (
            not isinstance(value, Broker)
            and type(value).__module__.startswith("kafka")
            and callable(getattr(value, "close", None))
            and not isinstance(value, type)
        ):
            value.close()


@cache
def examples_of_the_help() -> set[str]:
    """Return the examples of the help that test/embedded/cli runs."""
    return set(examples())


@cache
def shell_blocks(page: Path) -> list[Block]:
    """Return the shell blocks that run here: not those whose every line is an example of the help."""
    tested = examples_of_the_help()
    return [
        block
        for block in blocks(page)
        if block.language in SHELL
        and block not in PREPARED
        and not all(command.text in tested for command in commands(block))
    ]


def is_about_pytest(page: Path) -> bool:
    return any(NEEDS_BROKER.search(block.text) for block in python_blocks(page))


@pytest.mark.parametrize("page", [page for page in pages() if is_about_pytest(page)], ids=name_of)
def test_examples_for_pytest_pass_as_copied(page: Path, tmp_path: Path) -> None:
    """With the fixtures as they are: nothing is prepared, and no name comes from another block of the page."""
    count = 0
    for number, block in enumerate(python_blocks(page)):
        name = re.match(r"# (\w+\.py)\n", block.text)
        if name is not None or NEEDS_BROKER.search(block.text):
            (tmp_path / (name[1] if name else f"test_{number}.py")).write_text(block.text, encoding="utf-8")
            count += block.text.count("def test_")
    assert count
    assert f"{count} passed" in pytest_in(tmp_path)


@needs_bash
@pytest.mark.parametrize("page", [page for page in pages() if shell_blocks(page)], ids=name_of)
def test_shell_blocks_run(page: Path, tmp_path: Path) -> None:
    with shell(tmp_path) as here:
        for block in shell_blocks(page):
            assert here.run(block)


@needs_bash
def test_the_container_of_the_documentation_serves_and_is_healthy(tmp_path: Path) -> None:
    """The entry point of the Dockerfile with the command of the Compose file, and then the health check."""
    found = {block.language: block for block in blocks(ROOT / "docs" / "broker.rst") if block.language in CONTAINERS}
    image, compose = found["docker"].text, found["yaml"].text
    entry = re.search(r"^ENTRYPOINT (\[.*\])$", image, re.MULTILINE)
    command = re.search(r"^ *command: (\[.*\])$", compose, re.MULTILINE)
    health = re.search(r"^ *CMD (.*)$", image, re.MULTILINE)
    assert entry is not None
    assert command is not None
    assert health is not None
    words = [*json.loads(entry[1]), *json.loads(command[1])]
    assert words[words.index("--host") + 1] == "0.0.0.0"
    words[words.index("--host") + 1] = "127.0.0.1"  # and not every interface of this machine
    check = health[1].replace("127.0.0.1:9092", '"127.0.0.1:$(cat port)"')
    assert "--timeout 3" in check
    check = check.replace("--timeout 3", "--timeout 60")  # a container has its processor, and a test shares it
    with shell(tmp_path) as here:
        here.run_line(f"{shlex.join(words)} --port 0 --port-file port -- sh -c {shlex.quote(check)}")


def workflow_lines() -> list[str]:
    (workflow,) = (
        block
        for block in blocks(ROOT / "docs" / "broker.rst")
        if block.language == "yaml" and block.text.startswith("steps:")
    )
    return re.findall(r"^ *- run: (.*)$", workflow.text, re.MULTILINE)


@needs_bash
def test_the_workflow_of_the_documentation_runs(tmp_path: Path) -> None:
    install, use = workflow_lines()
    assert install == "pip install purekafka"
    with shell(tmp_path) as here:
        here.run_line(use)


def kind(block: Block) -> str:
    """Return by what a block is run."""
    if block in PREPARED:
        return f"prepared, in test/{PREPARED[block].split('.')[1]}"
    if block.is_doctest and block.page in DOCTESTED:
        return "as a doctest"
    if block.language == "python":
        return "on Spark" if block.page in ON_SPARK else "as Python"
    if block.language in SHELL:
        return "in a shell" if block in shell_blocks(block.page) else "as an example of the help"
    if block.language in CONTAINERS and block.page == ROOT / "docs" / "broker.rst":
        return "as a container or a workflow"
    return "by nothing"


def test_every_code_block_runs() -> None:
    code = [block for page in pages() for block in blocks(page) if block.is_code or block.is_doctest]
    unrun = [block.place for block in code if kind(block) == "by nothing"]
    print(f"{len(code)} code blocks, of which {len(code) - len(unrun)} run")
    print("\n".join(f"{count:4} {name}" for name, count in sorted(Counter(map(kind, code)).items())))
    assert not unrun


def test_every_block_says_what_it_is() -> None:
    """A literal block is text: code that nobody declares as code is code that nobody runs."""
    suspicious = [
        block.place for page in pages() for block in blocks(page) if block.language is None and looks_like_code(block)
    ]
    assert not suspicious


def looks_like_code(block: Block) -> bool:
    first = block.text.lstrip().split("\n")[0]
    return bool(re.match(r"\$ |import |from \S+ import|@|def |class |with |(purekafka|pip|python3?|make) ", first))
