"""Clients react to an injected error as to the same error of Apache Kafka, and as docs/injected_errors.csv says."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from .compare import HEADINGS, TABLE, Sides, line, reactions
from .rows import ROWS, Row

#: The first error of each API.
SOME = list({row.api: row for row in reversed(ROWS)}.values())


@pytest.fixture(scope="module")
def sides() -> Iterator[Sides]:
    with ExitStack() as stack:
        yield Sides(stack)


@pytest.fixture(scope="module")
def table() -> dict[tuple[str, ...], list[str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == HEADINGS
    return {tuple(one[:3]): one for one in lines[1:]}


def name_of(row: Row) -> str:
    return f"{row.api}-{row.code}-{row.command}"


@pytest.mark.parametrize("row", SOME, ids=name_of)
def test_clients_react_as_on_kafka(sides: Sides, table: dict[tuple[str, ...], list[str]], row: Row) -> None:
    told = reactions(sides.embedded, row)
    assert told == reactions(sides.kafka, row)
    said = line(row, told)
    assert said == table[tuple(said[:3])]


@pytest.mark.soak
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_clients_react_as_on_kafka_to_every_error(
    sides: Sides, table: dict[tuple[str, ...], list[str]], row: Row
) -> None:
    test_clients_react_as_on_kafka(sides, table, row)


def test_the_table_has_every_row(table: dict[tuple[str, ...], list[str]]) -> None:
    assert list(table) == [tuple(line(row, {})) for row in ROWS]
