"""The table of operations in the documentation names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EMBEDDED, REAL = ROOT / "test/embedded/admin", ROOT / "test/real/admin/test_calls.py"


def test_each_operation_has_an_embedded_and_a_real_test():
    text = (ROOT / "docs/admin_features.rst").read_text()
    rows = re.findall(r'^   ("[^"]*"), .*``([^`]+)::([^`]+)``, ``([^`]+)``$', text, re.MULTILINE)
    assert len(rows) == len(re.findall(r'^   "', text, re.MULTILINE)) > 30
    for operation, file, embedded, real in rows:
        assert f"def {embedded}(" in (EMBEDDED / file).read_text(), operation
        place, _, name = real.rpartition("::")  # a test of another file has its path
        assert f"def {name}(" in (REAL.parent / place if place else REAL).read_text(), operation
