"""Our side of a run: a copy of the package as it stands when the run begins, and what to call it.

A run takes minutes and people go on editing; measured in place, the first case and the last would be of different code.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.venvs import CACHE, ROOT

_LEAVE_OUT = shutil.ignore_patterns("__pycache__")


@contextmanager
def snapshot(root: Path = ROOT, cache: Path = CACHE) -> Iterator[Path]:
    """A directory that holds a copy of the package, for PYTHONPATH; gone afterwards."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ours-", dir=cache) as place:
        shutil.copytree(root / "kafka", Path(place) / "kafka", ignore=_LEAVE_OUT)
        yield Path(place)


def version(root: Path = ROOT) -> str:
    """The version with the commit, and whether the package differs from that commit: ``1.0 (d082041, edited)``."""
    source = root / "kafka" / "version.py"
    found = re.search(r'__version__ = "([^"]+)"', source.read_text(encoding="utf-8")) if source.exists() else None
    number = found[1] if found else "unknown"
    commit = _git(root, "rev-parse", "--short", "HEAD")
    if not commit:
        return number
    edited = ", edited" if _git(root, "status", "--porcelain", "--", "kafka") else ""
    return f"{number} ({commit}{edited})"


def _git(root: Path, *args: str) -> str:
    """What git says, or nothing where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
