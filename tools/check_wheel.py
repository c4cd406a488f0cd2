"""Builds the wheel, installs it into an empty environment and uses it from another directory.

``python tools/check_wheel.py`` does that with the running Python. ``--complete PYTHON ...`` builds the sdist too, has
both checked by twine, installs each of them on each Python, runs the examples of README.rst there, and installs
kafka-python beside the wheel, which the import of ``kafka`` must report.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OTHER = "kafka-python"
# Distributors need more than the package: the tests, the documentation, and the programs that make both.
IN_THE_SDIST = (
    "CHANGES.rst",
    "LICENSE",
    "Makefile",
    "README.rst",
    "benchmarks/RESULTS.md",
    "docs/_static/pictures.css",
    "docs/conf.py",
    "docs/index.rst",
    "kafka/py.typed",
    "pyproject.toml",
    "test/conftest.py",
    "test/embedded/docs/test_code_blocks.py",
    "test/unit/net/certs/ca.pem",
    "tools/check_wheel.py",
)

_USE = """
import kafka, kafka.protocol.metadata
from pathlib import Path
assert Path(kafka.__file__).is_relative_to({prefix!r}), kafka.__file__
request = kafka.protocol.metadata.MetadataRequest[1](['events'])
assert kafka.protocol.metadata.MetadataRequest[1].decode(request.encode()) == request
assert (Path(kafka.__file__).parent / 'py.typed').exists()
import pyspark_purekafka  # Spark imports it wherever it is installed; it must not fail where the extra is missing
assert pyspark_purekafka.__all__ == []
"""
_README = """
import doctest, sys
done = doctest.testfile({readme!r}, module_relative=False, optionflags=doctest.ELLIPSIS)
assert done.attempted >= 6, done
sys.exit(done.failed)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; a failing step stops with its own output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--complete", action="store_true", help="wheel and sdist, twine, and the clash of names")
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="interpreters; default: the running one")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch).resolve()
        wheel = _wheel(here)
        archives = [wheel]
        if options.complete:
            archives.append(_sdist(here))
            _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, archives))
        for python in options.pythons or [sys.executable]:
            for archive in archives:
                _check(python, archive, here)
            if options.complete:
                _clash(python, wheel, here)
    return 0


def _wheel(here: Path) -> Path:
    # setuptools puts everything that an earlier build left there into the wheel, modules that are gone too.
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(here), str(ROOT))
    (wheel,) = here.glob("*.whl")
    return wheel


def _sdist(here: Path) -> Path:
    _run(sys.executable, "-m", "build", "--sdist", "--outdir", str(here), str(ROOT), quiet=True)
    (sdist,) = here.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in IN_THE_SDIST if name not in names]
    if missing:
        sys.exit(f"{sdist.name} lacks {', '.join(missing)}: see MANIFEST.in")
    print(f"{sdist.name}: {len(names):,} files, tests, tools and documentation among them")
    return sdist


def _environment(interpreter: str, here: Path) -> Path:
    """Make an empty environment and return its Python."""
    place = here / "empty"
    shutil.rmtree(place, ignore_errors=True)
    _run(interpreter, "-m", "venv", str(place))
    return place / "bin" / "python"


def _install(python: Path, *what: str) -> None:
    _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def _check(interpreter: str, archive: Path, here: Path) -> None:
    """Install an archive and use it: an import, a command, and the examples of README.rst."""
    began = time.monotonic()
    python = _environment(interpreter, here)
    _install(python, str(archive))
    _run(str(python), "-c", _USE.format(prefix=str(here)), cwd=here)
    _run(str(python.with_name("purekafka")), "protocol", "show", "ApiVersions", "--version", "0", cwd=here, quiet=True)
    _run(str(python), "-c", _README.format(readme=str(ROOT / "README.rst")), cwd=here)
    print(f"{_version(python)}: {archive.name} works in an empty environment ({time.monotonic() - began:.0f} s)")


def _clash(interpreter: str, wheel: Path, here: Path) -> None:
    """Install kafka-python first: the import warns and names the commands, which repair the environment."""
    python = _environment(interpreter, here)
    _install(python, OTHER)
    _install(python, str(wheel))
    command = [str(python), "-c", "import kafka"]
    warned = subprocess.run(command, check=True, cwd=here, capture_output=True, text=True).stderr
    if f"pip uninstall {OTHER}" not in warned:
        sys.exit(f"{OTHER} has its files in the same package, and the import does not say so: {warned!r}")
    print(f"{_version(python)}: beside {OTHER}: {warned.strip().splitlines()[0]}")
    _run(str(python), "-m", "pip", "uninstall", "--quiet", "--yes", OTHER)
    _install(python, "--force-reinstall", "--no-deps", str(wheel))
    after = subprocess.run(command, check=True, cwd=here, capture_output=True, text=True).stderr
    if after:
        sys.exit(f"after the commands that repair it: {after}")
    _run(str(python), "-c", _USE.format(prefix=str(here)), cwd=here)


def _version(python: Path) -> str:
    code = "import sys; print('Python %d.%d.%d' % sys.version_info[:3])"
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def _run(*command: str, cwd: Path | None = None, quiet: bool = False) -> None:
    done = subprocess.run(command, check=False, cwd=cwd, capture_output=quiet, text=True)
    if done.returncode:
        sys.exit(f"failed: {' '.join(command)}\n{done.stdout or ''}{done.stderr or ''}")


if __name__ == "__main__":
    sys.exit(main())
