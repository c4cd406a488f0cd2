"""The lines that clients log: constant templates, and the page of the documentation that lists them."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("_core", "aio", "admin", "consumer", "coordinator", "net", "producer", "share")
LEVELS = ("info", "warning", "error")
Line = tuple[str, str, tuple[str, ...]]


def lines_of(path: Path) -> list[Line]:
    """Return level, template and fields of each line that a module logs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {
        node.target.id if isinstance(node, ast.AnnAssign) else node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, ast.Constant)
        and isinstance(node.target if isinstance(node, ast.AnnAssign) else node.targets[0], ast.Name)
    }
    found = []
    for node in ast.walk(tree):
        function = getattr(node, "func", None)
        if not isinstance(function, ast.Attribute) or function.attr not in LEVELS:
            continue
        logger = getattr(function.value, "attr", "") or getattr(function.value, "id", "")
        if logger != "log" and not logger.endswith("_log"):
            continue
        # The logger of a group, which each of its lines begins with: GroupLog.
        of_group = isinstance(function.value, ast.Attribute) or logger == "group_log"
        assert isinstance(node, ast.Call)
        first = node.args[0]
        template = first.value if isinstance(first, ast.Constant) else named.get(getattr(first, "id", ""))
        if template is None:  # imported by a name of its module: NOT_CONFIRMED
            continue
        extra = next((keyword.value for keyword in node.keywords if keyword.arg == "extra"), None)
        fields = tuple(re.findall(r"kafka_[a-z_]+", ast.unparse(extra))) if extra is not None else ()
        if isinstance(extra, ast.Name):
            fields = ("kafka_client_id", "kafka_group")
        if of_group:
            template, fields = f"Group %s: {template}", ("kafka_group", *fields)
        found.append((function.attr.upper(), str(template), fields))
    return found


@functools.cache
def logged() -> set[Line]:
    return {
        line for package in PACKAGES for path in (ROOT / "kafka" / package).rglob("*.py") for line in lines_of(path)
    }


def documented() -> set[Line]:
    """Return the lists of docs/observability.rst."""
    page = (ROOT / "docs" / "observability.rst").read_text(encoding="utf-8")
    section = page[page.index("Every line\n") :]
    found = set()
    for block in re.findall(r"^- (\w+) ``(.+?)``(.*?)(?=\n- |\n\n|\s*\Z)", section, re.MULTILINE | re.DOTALL):
        level, template, fields = block
        found.add((level, re.sub(r"\s+", " ", template), tuple(re.findall(r"kafka_[a-z_]+", fields))))
    return found


def test_the_page_lists_each_line_with_its_level_and_fields():
    found = {(level, re.sub(r"\s+", " ", template), fields) for level, template, fields in logged()}
    assert len(found) > 30
    assert documented() == found


def test_lines_about_a_group_or_a_topic_have_its_name_as_a_field():
    """Handlers that write JSON filter by it."""
    for level, template, fields in logged():
        assert "kafka_group" in fields or not template.startswith("Group %s"), (level, template)
        assert "kafka_topic" in fields or not re.search("topic %r|^%s-%s: ", template), (level, template)


@pytest.mark.parametrize("package", PACKAGES)
def test_templates_are_constant(package):
    """Handlers group by the template: an f-string would be another one for each line."""
    for path in (ROOT / "kafka" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            function = getattr(node, "func", None)
            if isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "log":
                assert not isinstance(node.args[0], ast.JoinedStr), f"{path}:{node.lineno}"
