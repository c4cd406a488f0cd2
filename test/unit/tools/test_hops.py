"""tools/hops.py counts the functions that a record passes: those of the package, and no others."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tools.hops import counted


def test_functions_of_the_package_are_counted_by_file_and_name(tmp_path: Path) -> None:
    module = tmp_path / "steps.py"
    module.write_text("def inner():\n    pass\n\ndef outer():\n    inner()\n    inner()\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("steps", module)
    assert spec is not None
    assert spec.loader is not None
    steps = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(steps)
    with counted(f"{tmp_path}/") as calls:
        steps.outer()
        sorted([2, 1], key=lambda number: -number)
    steps.outer()
    assert calls == {("steps.py", "outer"): 1, ("steps.py", "inner"): 2}
