"""Cells of tables: a dash alone is shown, and long names break between their words."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

#: Where a name may break: behind a mark, and in front of a capital letter that follows a small one.
_BREAKS = re.compile(r"(?<=[_/:.])(?=\w)|(?<=[a-z])(?=[A-Z])")


def show_dashes(_app: Any, doctree: nodes.document) -> None:
    """Replace the lists of one empty item in cells: so reStructuredText reads a dash alone."""
    for cell in doctree.findall(nodes.entry):
        if [type(child) for child in cell] == [nodes.bullet_list] and not cell.astext().strip():
            cell[0].replace_self(nodes.paragraph("", "–"))  # noqa: RUF001 - a dash, not a hyphen


def break_names(_app: Any, doctree: nodes.document) -> None:
    """Put <wbr> into the names of tables of the class long-names, which would break within words otherwise."""
    for table in doctree.findall(nodes.table):
        if "long-names" not in table["classes"]:
            continue
        for text in list(table.findall(nodes.Text)):
            parts = _BREAKS.split(text)
            if len(parts) > 1:
                pieces: list[nodes.Node] = [nodes.Text(parts[0])]
                for part in parts[1:]:
                    pieces += [nodes.raw("", "<wbr>", format="html"), nodes.Text(part)]
                text.parent.replace(text, pieces)


def setup(app: Any) -> dict[str, Any]:
    """Have each page looked through once it is read."""
    app.connect("doctree-read", show_dashes)
    app.connect("doctree-read", break_names)
    return {"parallel_read_safe": True}
