"""Generated pages of the documentation are current."""

from __future__ import annotations

from tools import generate_cli_docs


def test_the_page_of_all_commands_is_current() -> None:
    """``python tools/generate_cli_docs.py`` writes it again."""
    assert generate_cli_docs.TARGET.read_text(encoding="utf-8") == generate_cli_docs.render()
