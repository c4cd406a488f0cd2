"""Write docs/reference/apis.inc, the list of all requests and their modules, from kafka.protocol.registry.

Running twice changes nothing; a test compares the file with the registry.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
OUTPUT = ROOT / "docs" / "reference" / "apis.inc"
HEAD = ("Key", "Request class", "Module", "Versions", "Served by")
_LISTENERS = {"broker": "brokers", "controller": "controllers", "zkBroker": "brokers with ZooKeeper"}


def render() -> str:
    """The list as a table in reStructuredText."""
    from kafka.protocol.registry import APIS

    rows = [HEAD]
    for api in APIS.values():
        versions = f"{api.min_version}-{api.max_version}" if api.max_version > api.min_version else f"{api.max_version}"
        served_by = ", ".join(_LISTENERS[listener] for listener in api.listeners.split())
        rows.append((str(api.key), f"``{api.name}Request``", f"``kafka.protocol.{api.module}``", versions, served_by))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  ".join("=" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([line, lines[0], line, *lines[1:], line]) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    OUTPUT.write_text(render(), encoding="utf-8")
