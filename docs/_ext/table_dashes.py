"""A cell of a table that has a dash alone shows it: reStructuredText would read it as a list of one empty item."""

from __future__ import annotations

from typing import Any

from docutils import nodes


def show_dashes(_app: Any, doctree: nodes.document) -> None:
    """Replace the lists of one empty item in the cells of tables."""
    for cell in doctree.findall(nodes.entry):
        if [type(child) for child in cell] == [nodes.bullet_list] and not cell.astext().strip():
            cell[0].replace_self(nodes.paragraph("", "–"))  # noqa: RUF001 - a dash, not a hyphen


def setup(app: Any) -> dict[str, Any]:
    """Have each page looked through once it is read."""
    app.connect("doctree-read", show_dashes)
    return {"parallel_read_safe": True}
