"""Spark that starts in half of the processor time, in tests and in the programs that they run."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from test.real import kafka_jars

__all__ = ["QUICK_JAVA", "quick_home"]

_TRUSTING = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
#: Compile simply, collect in one thread, and trust the bytes of Spark's classes: half the processor time of a start. An
#: archive of them would save another five seconds of a processor, and takes 34 to make on each new clone.
QUICK_JAVA = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto {_TRUSTING}"


@contextmanager
def quick_home() -> Iterator[None]:
    """Have Spark and its Python processes start quickly, in this process and in those that it starts.

    Each Python process imports pyspark from an archive that has no compiled modules, which takes a second of processor
    time; one of them is given ten seconds, so on a busy machine queries fail. Here the archive is a link to what is
    installed. Without pyspark nothing is changed.
    """
    if "SPARK_HOME" in os.environ or find_spec("pyspark") is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(_linked_home()))
        temporary = f"-Djava.io.tmpdir={tempfile.gettempdir()}"  # Java does not heed TMPDIR
        patch.setenv("SPARK_SUBMIT_OPTS", f"{temporary} {QUICK_JAVA}")
        yield


def _linked_home() -> Path:
    import pyspark

    installed = Path(pyspark.__file__).parent
    digest = hashlib.sha256(f"{installed} {pyspark.__version__}".encode()).hexdigest()[:8]
    home = kafka_jars.cache_dir() / f"spark-home-{digest}"
    kafka_jars.cache_dir().mkdir(parents=True, exist_ok=True)
    with kafka_jars.locked(home.with_suffix(".lock")):
        if not (home / "python" / "lib" / "pyspark.zip").exists():
            (home / "python" / "lib").mkdir(parents=True, exist_ok=True)
            _link(installed, home, but="python")
            _link(installed / "python", home / "python", but="lib")
            _link(installed / "python" / "lib", home / "python" / "lib", but="pyspark.zip")
            (home / "python" / "lib" / "pyspark.zip").symlink_to(installed.parent)  # last: then it is whole
    return home


def _link(source: Path, target: Path, but: str) -> None:
    for path in source.iterdir():
        link = target / path.name
        if path.name != but and not link.is_symlink():
            link.symlink_to(path)
