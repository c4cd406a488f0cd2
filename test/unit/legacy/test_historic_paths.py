"""The modules outside of kafka.legacy that import it at their top are historic paths: explicit and short."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MOST_LINES = 15


def test_a_historic_path_is_short_and_nothing_else_imports_kafka_legacy() -> None:
    found = {}
    for path in (ROOT / "kafka").rglob("*.py"):
        if path.is_relative_to(ROOT / "kafka" / "legacy"):
            continue
        text = path.read_text(encoding="utf-8")
        if re.search(r"^(from|import) kafka\.legacy", text, re.MULTILINE):
            found[str(path.relative_to(ROOT))] = len(text.splitlines())
    assert "kafka/protocol/message.py" in found
    assert {path: lines for path, lines in found.items() if lines > MOST_LINES} == {}
