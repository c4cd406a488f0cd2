"""One virtual environment per library, kept under .bench/ and rebuilt when something newer has come out.

A venv is built beside its place and then put there by replacing a symbolic link, so an interrupted build is never taken
for a good one and a run that goes on keeps what it started with. Ours gets its dependencies only: the package itself
comes from a copy of the working tree by PYTHONPATH (ours.py). The peers never see the working tree, whose package has
the same name as one of theirs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.workload import OURS

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".bench"
MAX_AGE_S = 24 * 3600  # how long an environment counts as newest without asking again
PIP_TIMEOUT_S = 900
_MEDDLING = ("PYTHON", "VIRTUAL_ENV", "AIOKAFKA_")  # variables that would change what is measured


class VenvError(Exception):
    """An environment could not be made; the text has pip's last lines."""


@dataclass(frozen=True)
class Library:
    """How to have one implementation: what to install, and what to set for it."""

    name: str
    packages: tuple[str, ...]
    venv: str = ""  # where it differs from the name: several names can share one environment
    env: dict[str, str] = field(default_factory=dict)

    @property
    def venv_name(self) -> str:
        """The directory under the cache."""
        return self.venv or self.name


_OURS = ("crc32c", "lz4", "python-snappy", "zstandard", "numpy", "pyarrow")
LIBRARIES = {
    library.name: library
    for library in (
        Library(OURS, _OURS, env={"PYTHONPATH": str(ROOT)}),
        Library(f"{OURS}-no-numpy", _OURS[:4], env={"PYTHONPATH": str(ROOT)}),
        Library(f"{OURS}-aio", _OURS, venv=OURS, env={"PYTHONPATH": str(ROOT)}),
        Library("kafka-clients", _OURS, venv=OURS),  # Java's: a Python that starts it
        Library("kafka-python", ("kafka-python[crc32c,lz4,snappy,zstd]>=3",)),
        Library("aiokafka", ("aiokafka[lz4,snappy,zstd]",)),
        Library("confluent-kafka", ("confluent-kafka",)),
        # Of the release that the newest connector was made for (test/real/spark_jars.py).
        Library("spark-sql-kafka", ("pyspark==4.2.0", *_OURS), venv="spark"),
    )
}


@dataclass(frozen=True)
class Venv:
    """A ready environment: its interpreter, and the version of everything in it."""

    python: Path
    versions: dict[str, str]


def ensure(library: Library, *, refresh: bool = False, cache: Path = CACHE) -> Venv:
    """The library's environment, made or renewed where need be.

    Raises:
        VenvError: there is none and none can be made. Where one is there already, being offline is no error: it is
            used as it is.
    """
    tag = f"{sys.implementation.name}-{sys.version_info.major}.{sys.version_info.minor}"
    place = cache / "venvs" / tag / library.venv_name
    record = place / "bench.json"
    if record.exists():
        known = json.loads(record.read_text(encoding="utf-8"))
        same_wish = known["packages"] == list(library.packages)
        fresh = time.time() - record.stat().st_mtime < MAX_AGE_S and not refresh
        if same_wish and (fresh or _is_newest(place, library)):
            return Venv(_python(place), known["versions"])
    _build(place, library)
    return Venv(_python(place), json.loads(record.read_text(encoding="utf-8"))["versions"])


def child_env(library: Library) -> dict[str, str]:
    """The environment of a measured process: the user's, without what could change Python, plus the library's own."""
    env = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV", "AIOKAFKA_"))
    }
    return {**env, **library.env}


def _python(place: Path) -> Path:
    # Resolved, so that a run which has begun is not moved to another environment half way.
    return place.resolve() / "bin" / "python"


def _is_newest(place: Path, library: Library) -> bool:
    """Ask pip what an upgrade would change. Nothing, or no answer: the environment stays."""
    # check=False below: an index that does not answer must not stop the measuring.
    answer = _pip(
        _python(place), "install", "--dry-run", "--quiet", "--upgrade", "--upgrade-strategy", "eager",
        "--report", "-", *library.packages, check=False,
    )  # fmt: skip
    if answer.returncode:
        print(f"{library.name}: could not look for newer versions, taking what is there", file=sys.stderr)
        return True
    newest = not json.loads(answer.stdout)["install"]
    if newest:
        os.utime(place / "bench.json")
    return newest


def _build(place: Path, library: Library) -> None:
    print(f"{library.name}: making an environment with {' '.join(library.packages)}", file=sys.stderr)
    place.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f"{place.name}-", dir=place.parent))
    old = place.resolve() if place.is_symlink() else None
    try:
        subprocess.run([sys.executable, "-m", "venv", str(new)], check=True, env=_clean_env())
        _pip(new / "bin" / "python", "install", "--quiet", *library.packages)
        listed = _pip(new / "bin" / "python", "list", "--format", "json").stdout
        versions = {entry["name"]: entry["version"] for entry in json.loads(listed)}
        for tool in ("pip", "setuptools", "wheel"):
            versions.pop(tool, None)
        (new / "bench.json").write_text(
            json.dumps({"packages": list(library.packages), "versions": versions}), encoding="utf-8"
        )
        link = new.with_name(new.name + ".link")
        link.symlink_to(new.name)
        os.replace(link, place)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _pip(python: Path, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT_S, env=_clean_env(), check=False)
    if check and done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise VenvError(f"pip {' '.join(args)} failed:\n{last}")
    return done


def _clean_env() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(_MEDDLING)}
