"""Code blocks of the documentation that need Apache Kafka, its jars, Java's programs, or environments made by pip."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from filecmp import dircmp
from pathlib import Path

import pytest

import kafka
from kafka.broker import Broker
from test.embedded.cli.shell import run
from test.embedded.docs.blocks import ROOT, Block, runs
from test.embedded.docs.shell_blocks import Shell
from test.embedded.schema_registry.registry_server import RegistryServer
from test.real import kafka_jars
from test.real.certificates import PASSWORD, Authority
from test.real.child import Child
from test.real.conftest import need_kafka
from test.real.kafka_process import KafkaCluster
from test.spark_runs.quick_start import QUICK_JAVA

COMMANDS = "docs/reference/commands.rst"
GUIDE = "docs/command_line.rst"
SPARK = "docs/spark.rst"
pytestmark = pytest.mark.timeout(1800)


# Apache Kafka.


@runs(
    (COMMANDS, "purekafka consume events --sandbox"),
    (COMMANDS, "purekafka logs dump"),
    (GUIDE, "purekafka consume __consumer_offsets"),
    (GUIDE, "purekafka logs dump"),
)
def test_internal_topics_and_segments_are_read(shown: list[Block], kafka: KafkaCluster, tmp_path: Path) -> None:
    servers = kafka.bootstrap_servers
    registry = RegistryServer()
    with ExitStack() as stack:
        stack.callback(registry.close)
        registry.add("orders-value", '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}')
        here = Shell(tmp_path, servers, {"http://localhost:8081": registry.url})
        here.run_line("purekafka topics create events -p 1")
        here.run_line("purekafka topics create orders -p 1")
        here.run_line("purekafka produce events --transactional-id tx", b"a\n")
        here.run_line("purekafka consume events -g decoders --read-committed")
        here.run_line("purekafka produce orders --value-type avro --registry http://localhost:8081", b'{"id": 1}\n')
        read, dumped, typed, segment = shown
        for block in (read, typed):
            assert here.run(block)
        # The dumped files are those of the broker, at the paths that the page has.
        names = re.findall(r"/data/(\S+)/\S+\.log", dumped.text)
        data = tmp_path / "data"
        for name in names:
            pattern = name if name.startswith("events") else "__consumer_offsets-*"
            logs = sorted(kafka.root.glob(f"node-1/**/{pattern}/*.log"), key=lambda path: path.stat().st_size)
            (data / name).mkdir(parents=True)
            shutil.copy(logs[-1], data / name / logs[-1].name)
        assert here.run(dumped) == len(names) == 2
        shutil.copy(data / names[0] / f"{0:020}.log", tmp_path)
        assert here.run(segment) == 1


# Java's programs and Kafka's jars.


@runs(("docs/security.rst", "keytool -importkeystore"))
def test_a_java_key_store_is_exported(shown: list[Block], authority: Authority, tmp_path: Path) -> None:
    if shutil.which("keytool") is None:
        pytest.skip("keytool is not installed: it comes with a JDK")
    issued = authority.issue("ada")
    bundle = tmp_path / "ada.p12"
    words = ["openssl", "pkcs12", "-export", "-in", str(issued.cert), "-inkey", str(issued.key)]
    words += ["-certfile", str(authority.cert), "-name", "ada", "-out", str(bundle), "-passout", f"pass:{PASSWORD}"]
    subprocess.run(words, check=True, capture_output=True)
    words = ["keytool", "-importkeystore", "-srckeystore", str(bundle), "-srcstoretype", "PKCS12", "-destkeystore"]
    words += [str(tmp_path / "kafka.jks"), "-deststoretype", "JKS"]
    words += ["-srcstorepass", PASSWORD, "-deststorepass", PASSWORD]
    subprocess.run(words, check=True, capture_output=True)
    (block,) = shown
    for line in block.text.splitlines():
        # Without a terminal they read passwords from standard input: the new store's twice, and those of their sources.
        done = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, input=f"{PASSWORD}\n" * 3, start_new_session=True,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    context.load_cert_chain(tmp_path / "client.pem")
    assert len(context.get_ca_certs()) == 1, "the authority is in the exported file"


@runs(("docs/internals/protocol.rst", "python tools/generate_protocol.py"))
def test_the_definitions_are_generated(shown: list[Block], tmp_path: Path) -> None:
    """In a copy, which is then the same as the original."""
    copied = tmp_path / "copied"
    shutil.copytree(ROOT / "tools", copied / "tools")
    shutil.copytree(ROOT / "kafka" / "protocol", copied / "kafka" / "protocol")
    (block,) = shown
    text = re.sub(r"\\\n\s*", "", block.text)
    for name in re.findall(r"[\w-]+-\d[\d.]+\.jar", text):
        artifact, version = re.fullmatch(r"(.*)-([\d.]+)\.jar", name).groups()  # type: ignore[union-attr]
        shutil.copy(kafka_jars.jar(need_kafka(version), artifact), copied / name)
    done = subprocess.run(
        ["bash", "-c", text.replace("python ", f"{sys.executable} ", 1)],
        cwd=copied, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    compared = dircmp(ROOT / "kafka" / "protocol", copied / "kafka" / "protocol", ignore=["__pycache__"])
    assert (compared.diff_files, compared.left_only, compared.right_only) == ([], [], [])


@pytest.mark.soak  # installs another library; make test-spark-versions runs it
@runs(("docs/benchmarks.rst", "$ python -m benchmarks records"))
def test_a_part_of_the_benchmarks_runs(shown: list[Block]) -> None:
    """With one case and a peer; the whole part takes hours."""
    (block,) = shown
    shorter = ["--quick", "--no-write", "--case", "read-json", "--peers", "kafka-python"]
    words = [sys.executable, *block.text.removeprefix("$ python ").split(), *shorter]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "read-json" in done.stdout


# Environments made by pip.


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel, where pip looks first; built from a copy, as a build writes beside its sources."""
    place = tmp_path_factory.mktemp("wheels")
    source = place / "source"
    for name in ("kafka", "pyspark_purekafka"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [*ROOT.glob("*.rst"), ROOT / "LICENSE", ROOT / "setup.py", ROOT / "pyproject.toml"]:
        shutil.copy(path, source)
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(place), str(source)]
    subprocess.run([sys.executable, *words], check=True)
    return place


@pytest.fixture
def installer(wheels: Path, tmp_path: Path) -> Iterator[Callable[..., Shell]]:
    """Return what makes a shell where pip installs this wheel into an empty environment."""
    with ExitStack() as stack:

        def make(*, index: bool = False, **replaced: str) -> Shell:
            broker = stack.enter_context(Broker(topics={"events": 2}))
            here = Shell(tmp_path, broker.bootstrap_servers, replaced)
            _empty_environment(tmp_path / "empty")
            # Spark's are set in this process when a test before this one has used Spark.
            for name in ("PYTHONPATH", "VIRTUAL_ENV", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
                here.environment.pop(name, None)
            programs = tmp_path / "empty" / "bin"
            here.environment |= {
                "PATH": f"{programs}{os.pathsep}{here.environment['PATH']}",
                "PIP_FIND_LINKS": str(wheels),
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            }
            if not index:
                here.environment |= {"PIP_NO_INDEX": "1", "PYTHONPATH": str(_packages_without_ours(tmp_path))}
            return here

        yield make


def _empty_environment(place: Path) -> None:
    """Make an environment with this one's pip: to install a new one takes 6 s of a processor."""
    found = importlib.util.find_spec("pip")
    venv.create(place, with_pip=found is None, symlinks=True)
    if found is None or found.origin is None:
        return
    (site,) = place.glob("lib/python3.*/site-packages")
    package = Path(found.origin).parent
    for entry in (package, *package.parent.glob("pip-*.dist-info")):
        (site / entry.name).symlink_to(entry)
    script = place / "bin" / "pip"
    lines = ("from sys import exit", "from pip._internal.cli.main import main", "exit(main())")
    script.write_text("\n".join((f"#!{place / 'bin' / 'python'}", *lines, "")))
    script.chmod(0o755)


def _packages_without_ours(tmp_path: Path) -> Path:
    """Link what is installed here to a directory where pip sees it, so that it need download nothing."""
    linked = tmp_path / "packages"
    linked.mkdir()
    for site in (Path(place) for place in sys.path if Path(place).name == "site-packages"):
        for entry in site.iterdir():
            ours = re.match(r"purekafka|pyspark_purekafka|__editable__|kafka$|pip$|pip-|.*\.pth$", entry.name)
            if not ours and not (linked / entry.name).exists():
                (linked / entry.name).symlink_to(entry)
    return linked


def installed(here: Shell, tmp_path: Path) -> str:
    """Return the version of the package in the empty environment, and check that it is the wheel."""
    program = "import kafka; print(kafka.__version__, kafka.__file__)"
    done = subprocess.run(
        [str(tmp_path / "empty" / "bin" / "python"), "-W", "error", "-c", program],
        cwd=tmp_path, env=here.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    version, place = done.stdout.split()
    assert Path(place).is_relative_to(tmp_path / "empty")
    return version


@pytest.mark.soak  # make wheel installs the package in each run of the checks; make test-spark-versions runs it
@runs(("README.rst", "pip install purekafka"), ("docs/quickstart.rst", "pip install purekafka"))
def test_the_package_is_installed(shown: list[Block], installer: Callable[..., Shell], tmp_path: Path) -> None:
    here = installer()
    for block in shown:
        here.run_together(block)
        assert installed(here, tmp_path) == kafka.__version__
        here.run_line("pip uninstall --yes purekafka")


@pytest.mark.soak  # make test-spark-versions runs it
@runs(("docs/moving.rst", "pip uninstall kafka-python"))
def test_the_other_package_is_replaced(shown: list[Block], installer: Callable[..., Shell], tmp_path: Path) -> None:
    """A distribution of that name with a package `kafka`, as pip writes one."""
    here = installer()
    (site,) = (tmp_path / "empty").glob("lib/python3.*/site-packages")
    (site / "kafka").mkdir()
    (site / "kafka" / "__init__.py").write_text("__version__ = '3.0'\n")
    record = site / "kafka_python-3.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: kafka-python\nVersion: 3.0\n")
    (record / "INSTALLER").write_text("pip\n")
    names = ("kafka/__init__.py", *(f"{record.name}/{name}" for name in ("METADATA", "INSTALLER", "RECORD")))
    (record / "RECORD").write_text("".join(f"{name},,\n" for name in names))
    here.environment["PIP_YES"] = "1"  # in place of a person who is asked
    (block,) = shown
    here.run_together(block)
    assert installed(here, tmp_path) == kafka.__version__
    assert not record.exists()


@pytest.mark.soak  # make test-spark-versions runs it; test/embedded/spark runs the demo
@runs((SPARK, "$ python3 -m venv .venv"))
def test_the_demo_runs_in_a_new_environment(
    shown: list[Block], installer: Callable[..., Shell], tmp_path: Path
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
    here = installer()
    (block,) = shown
    printed = here.run_together(block)
    assert "200,000 events arrived, each once" in printed
    assert "200,000 events in 10 windows" in printed
    (own,) = (tmp_path / ".venv").glob("lib/python3.*/site-packages/kafka/__init__.py")
    assert own.exists()


PROGRAM = """
import sys
import kafka.spark
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
kafka.spark.register(spark)
frame = spark.read.format("purekafka").option("kafka.bootstrap.servers", {servers!r})
frame = frame.option("subscribe", "events").load()
print("COUNTED", frame.count(), sys.executable)
"""


@contextmanager
def _standalone(home: Path, tmp_path: Path) -> Iterator[str]:
    """Run a master and a worker of Spark on loopback, and yield the master's address."""
    environment = {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    deploy = "org.apache.spark.deploy"
    loopback = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    words = [str(home / "bin" / "spark-class"), f"{deploy}.master.Master", *loopback]
    master = Child("master", words, tmp_path / "master.log", env=environment)
    try:
        address = _logged(master, r"Starting Spark master at (spark://\S+)")
        words = [str(home / "bin" / "spark-class"), f"{deploy}.worker.Worker", *loopback]
        words += ["--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work"), address]
        worker = Child("worker", words, tmp_path / "worker.log", env=environment)
        try:
            _logged(worker, r"Successfully registered with master (\S+)")
            yield address
        finally:
            worker.stop()
    finally:
        master.stop()


def _logged(child: Child, pattern: str) -> str:
    deadline = time.monotonic() + 120
    while (found := re.search(pattern, child.log_path.read_text(encoding="utf-8"))) is None:
        assert time.monotonic() < deadline, child.log_path.read_text(encoding="utf-8")
        time.sleep(0.05)
    return found[1]


@pytest.mark.soak  # downloads Arrow and numpy; make test-spark-versions runs it
@runs(
    (SPARK, "FROM apache/spark"),
    (SPARK, "$ python3 -m venv packed"),
    (SPARK, "$ mkdir environment"),
)
def test_a_packed_environment_runs_on_a_standalone_cluster(
    shown: list[Block], installer: Callable[..., Shell], tmp_path: Path
) -> None:
    """The image's line for pip, the packed environment, and a query on a master with a worker, each a process."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
    home = Path(pyspark.__file__).parent
    image, pack, submit = shown
    steps = [line.split(maxsplit=1) for line in image.text.splitlines()]
    assert [step for step, _ in steps] == ["FROM", "USER", "RUN", "USER"]
    with _standalone(home, tmp_path) as master:
        here = installer(index=True, **{"spark://HOST:7077": master})
        here.environment |= {"SPARK_HOME": str(home), "PATH": f"{here.environment['PATH']}{os.pathsep}{home / 'bin'}"}
        here.run_line(steps[2][1])
        assert installed(here, tmp_path) == kafka.__version__
        servers = here.environment["KAFKA_BOOTSTRAP_SERVERS"]
        assert run(f"purekafka produce events -b {servers}", stdin=b"a\nb\nc\n").code == 0
        (tmp_path / "program.py").write_text(PROGRAM.format(servers=servers))
        printed = here.run_together(pack, submit)
    assert re.search(r"^COUNTED 3 .*environment/bin/python", printed, re.MULTILINE), printed
