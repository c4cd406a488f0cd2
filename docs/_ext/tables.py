"""Cells of tables: a dash alone is shown, long names break between their words, short ones do not break.

The changes and docstrings name pages by their files, as a reader of the repository needs them: they become links.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref

#: Where a name may break: behind a mark, and in front of a capital letter that follows a small one.
_BREAKS = re.compile(r"(?<=[_/:.])(?=\w)|(?<=[a-z])(?=[A-Z])")

#: The same in code, which also breaks behind the beginning of an argument.
_CODE_BREAKS = re.compile(rf"(?<=[(=])(?=\w)|{_BREAKS.pattern}")

#: The longest code outside of tables that goes to the next line as a whole, and the longest option anywhere.
_WHOLE, _OPTION = 34, 30

#: The longest text of a first cell that stays on one line, in characters.
_SHORT = 24

#: The file of a page, as the changes name it.
_PAGE = re.compile(r"docs/([a-z_/]+)\.rst")


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


def break_code(_app: Any, _page: str, _template: str, context: dict[str, Any], _doctree: nodes.document | None) -> None:
    """Put <wbr> into code in tables and into long code, for narrow windows, and keep options whole.

    This changes the HTML, so that the search finds whole names.
    """

    def word(found: re.Match[str], whole: int) -> str:
        if found[1].startswith("-") and len(found[1]) <= _OPTION:
            return f'<span class="pre whole">{found[1]}</span>'
        return found[0] if len(found[1]) <= whole else f'<span class="pre">{_CODE_BREAKS.sub("<wbr>", found[1])}</span>'

    parts = re.split(r"(<table.*?</table>)", context.get("body", ""), flags=re.DOTALL)
    for number, part in enumerate(parts):
        whole = 0 if number % 2 else _WHOLE
        parts[number] = re.sub(r'<span class="pre">([^<]+)</span>', lambda found, whole=whole: word(found, whole), part)
    if "body" in context:
        context["body"] = "".join(parts)


def keep_short_names(_app: Any, doctree: nodes.document) -> None:
    """Give the short first cells of rows a class, by which a wide window does not break them."""
    for row in doctree.findall(nodes.row):
        if len(row) > 1 and len(row[0].astext()) <= _SHORT:
            row[0]["classes"].append("short-name")


def link_pages(app: Any, doctree: nodes.document) -> None:
    """Replace the files of pages in the changes, and in docstrings, by links with the titles of the pages."""
    here = app.env.docname
    if here != "changes" and not here.startswith("reference/"):
        return
    for literal in list(doctree.findall(nodes.literal)):
        page = _PAGE.fullmatch(literal.astext())
        if page:
            target = f"/{page[1]}"
            link = pending_xref(
                "", nodes.inline("", target), refdomain="std", reftype="doc", reftarget=target, refexplicit=False
            )
            link["refdoc"], link["refwarn"] = here, True
            literal.replace_self(link)


def setup(app: Any) -> dict[str, Any]:
    """Have each page looked through once it is read."""
    app.connect("doctree-read", show_dashes)
    app.connect("doctree-read", keep_short_names)
    app.connect("doctree-read", break_names)
    app.connect("html-page-context", break_code)
    app.connect("doctree-read", link_pages)
    return {"parallel_read_safe": True}
