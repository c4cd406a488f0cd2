"""The checker of prose in tools/check_prose.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("check_prose", ROOT / "tools" / "check_prose.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a NamedTuple looks its module up
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[spec.name]


def finds(tool, tmp_path, text, name="page.rst"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return [(find.line, find.text) for find in tool.check_file(path)]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("The producer goes on after that.", "goes on"),
        ("Nobody leads the partition.", "Nobody"),
        ("The port is no number.", "is no number"),
        ("It ends. Who waits is woken.", "Who waits"),
        ("It ends. What is left is sent.", "What is"),
        ("The topic was made anew.", "anew"),
        ("The listener is told.", "is told"),
        ("An error that a person must mend.", "mend"),
    ],
)
def test_a_phrase_is_found(tool, tmp_path, text, phrase):
    assert finds(tool, tmp_path, text) == [(1, phrase)]


@pytest.mark.parametrize(
    "text",
    [
        "There is no topic of this name, and the member is no longer in the group.",
        "The caller, who waits, gets the error.",
        "Who leads the partition? What is the offset?",
        "The broker closed the connection.",
        "It ends.\n\nWhat is missing\n---------------\n",
    ],
)
def test_plain_english_passes(tool, tmp_path, text):
    assert finds(tool, tmp_path, text) == []


def test_a_phrase_across_a_line_end_is_found_where_it_begins(tool, tmp_path):
    assert finds(tool, tmp_path, "A title\n=======\n\nThe producer goes\non after that.\n") == [(4, "goes on")]


def test_the_name_of_a_test_is_a_sentence(tool, tmp_path):
    text = "def test_a_broker_goes_on(broker): ...\n    async def test_reading_continues(): ...\n"
    assert list(tool.names_of_tests(text)) == [(1, "a broker goes on"), (2, "reading continues")]
    assert finds(tool, tmp_path, "def test_a_broker_goes_on(broker): ...\n", "test_it.py") == [(1, "goes on")]


def test_comments_messages_and_docstrings_of_python_are_read_and_names_are_not(tool, tmp_path):
    text = '''"""A module that goes on."""

anew = 1  # a fresh one, and it has
# to be set
whoever = f"{anew} was refused: it has to be below {anew + 1}"
'''
    assert finds(tool, tmp_path, text, "module.py") == [(1, "goes on"), (3, "has to be"), (5, "has to be")]


def test_a_marked_line_may_quote_a_phrase(tool, tmp_path):
    assert finds(tool, tmp_path, 'text = "it goes on"  # prose: quoted\n', "module.py") == []


def test_the_exit_code_says_whether_something_was_found(tool, tmp_path, capsys):
    page = tmp_path / "page.rst"
    page.write_text("Nobody leads the partition.", encoding="utf-8")
    assert tool.main([str(page)]) == 1
    assert "page.rst:1: 'Nobody': name the actor" in capsys.readouterr().out
    page.write_text("The partition has no leader.", encoding="utf-8")
    assert tool.main([str(page)]) == 0


def test_each_path_of_the_project_exists(tool):
    assert [place for place in tool.PROJECT if not (ROOT / place).exists()] == []


def test_a_path_that_does_not_exist_is_an_error(tool, capsys):
    assert tool.main(["nowhere"]) == 2
    assert capsys.readouterr().err == "nowhere does not exist\n"
