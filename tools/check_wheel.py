"""Builds the wheel, installs it into an empty environment and uses it from another directory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_USE = """
import kafka, kafka.protocol.metadata
from pathlib import Path
assert Path(kafka.__file__).is_relative_to({prefix!r}), kafka.__file__
request = kafka.protocol.metadata.MetadataRequest[1](['events'])
assert kafka.protocol.metadata.MetadataRequest[1].decode(request.encode()) == request
assert (Path(kafka.__file__).parent / 'py.typed').exists()
import pyspark_purekafka  # Spark imports it wherever it is installed, and must not stumble where the extra is missing
assert pyspark_purekafka.__all__ == []
print('purekafka', kafka.__version__, 'works from its wheel')
"""


def main() -> int:
    """Run it; a failing step stops with its own output."""
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", scratch, str(ROOT))
        (wheel,) = here.glob("*.whl")
        venv.create(here / "empty", with_pip=True)
        python = here / "empty" / "bin" / "python"
        _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
        _run(str(python), "-c", _USE.format(prefix=str(here)), cwd=scratch)
        _run(
            str(here / "empty" / "bin" / "purekafka"), "protocol", "show", "ApiVersions", "--version", "0", cwd=scratch
        )
    return 0


def _run(*command: str, cwd: str | None = None) -> None:
    subprocess.run(command, check=True, cwd=cwd)


if __name__ == "__main__":
    sys.exit(main())
