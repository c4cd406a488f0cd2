"""Checks that the version is a release and that CHANGES.rst has a section of it with a date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def problems(version: str, changes: str, tags: list[str]) -> list[str]:
    """Return what a release with this version lacks.

    >>> problems("0.2.0", "Changes\\n=======\\n\\n0.2.0 (2027-01-31)\\n", ["v0.1.0"])
    []
    """
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        found.append(f"kafka/version.py: {version!r} is not MAJOR.MINOR.PATCH")
    section = re.search(r"^(\d+\.\d+\S*) \((.+)\)$", changes, re.MULTILINE)
    if section is None or section[1] != version or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", section[2]):
        found.append(f"CHANGES.rst: its first section is not '{version} (DATE)'")
    if f"v{version}" in tags:
        found.append(f"'v{version}' is a tag already")
    return found


def main() -> int:
    """Print what is missing; the exit code is 1 if anything is."""
    version = re.findall(r'"(.+)"', (ROOT / "kafka" / "version.py").read_text(encoding="utf-8"))[-1]
    tags = subprocess.run(["git", "tag"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    found = problems(version, (ROOT / "CHANGES.rst").read_text(encoding="utf-8"), tags)
    print("\n".join(found) or f"{version} can be tagged")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
