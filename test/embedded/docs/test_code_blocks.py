"""Every code block of the documentation runs: Python here and as doctests, `purekafka` commands in a shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker

from .blocks import ROOT, Block, blocks, pages, python_blocks, run

# Pages whose blocks need a Spark session: test/embedded/spark runs them.
ON_SPARK = {ROOT / "docs" / "spark.rst"}
# What a block may be written in without being run here: other languages, and files that a tool reads.
NOT_OURS = {"docker", "dockerfile", "ini", "java", "js", "sh", "text", "toml", "yaml"}


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
    """Close the clients that examples leave open, as most of them show one thing and not its end."""
    for value in names.values():
        if (
            type(value).__module__.startswith("kafka")
            and callable(getattr(value, "close", None))
            and not isinstance(value, type)
        ):
            value.close()


def test_every_block_says_what_it_is() -> None:
    """A literal block is text: code that nobody declares as code is code that nobody runs."""
    suspicious = [
        block.place for page in pages() for block in blocks(page) if block.language is None and looks_like_code(block)
    ]
    assert not suspicious


def looks_like_code(block: Block) -> bool:
    first = block.text.lstrip().split("\n")[0]
    return first.startswith(("$ ", "import ", "from ", "@", "def ", "class ", "with ", "purekafka "))


def test_every_block_is_run_or_of_another_language() -> None:
    known = {"python", "pycon", "console", None} | NOT_OURS
    assert {block.language for page in pages() for block in blocks(page)} <= known
