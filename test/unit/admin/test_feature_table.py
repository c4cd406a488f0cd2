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
    real = REAL.read_text()
    for operation, file, embedded, name in rows:
        assert f"def {embedded}(" in (EMBEDDED / file).read_text(), operation
        assert f"def {name}(" in real, operation
