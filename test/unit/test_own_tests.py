"""Each module of the packages below has a unit test module of its name."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("consumer", "coordinator")
# Historic paths, which only pass names on.
_SHORTEST = 20


@pytest.mark.parametrize("package", PACKAGES)
def test_each_module_has_its_own_tests(package: str) -> None:
    missing = [
        path.stem
        for path in sorted((ROOT / "kafka" / package).glob("[!_]*.py"))
        if len(path.read_text(encoding="utf-8").splitlines()) > _SHORTEST
        and not (ROOT / "test" / "unit" / package / f"test_{path.stem}.py").exists()
    ]
    assert missing == []
