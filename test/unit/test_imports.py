"""How the package is loaded: from several threads at once, in any order."""

import ast
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A thread holds the lock of the module while it waits for the package, which the first thread is about to import.
COLLISION = """
    import sys, threading, time
    from importlib.machinery import PathFinder

    PACKAGE, MODULE = sys.argv[1:]
    __import__(PACKAGE.rpartition(".")[0])
    failures = []


    def load(name):
        try:
            __import__(name)
        except BaseException as error:
            failures.append(repr(error))


    other = threading.Thread(target=load, args=(MODULE,))


    def waits():
        frame = sys._current_frames().get(other.ident)
        while frame is not None:
            if frame.f_code.co_name == "acquire" and "importlib" in frame.f_code.co_filename:
                return True
            frame = frame.f_back
        return False


    def create_module(spec):
        other.start()
        deadline = time.monotonic() + 60
        while not waits():
            assert time.monotonic() < deadline, "the other thread does not wait for the package"
            time.sleep(0.001)


    class Pause:
        def find_spec(self, name, path=None, target=None):
            if name != PACKAGE:
                return None
            spec = PathFinder.find_spec(name, path)
            spec.loader.create_module = create_module
            return spec


    sys.meta_path.insert(0, Pause())
    load(PACKAGE)
    other.join()
    assert MODULE in sys.modules
    print(*failures)
"""

# The packages are loaded before: two threads that import one module at once are the interpreter's work. It fails for a
# package, whose name is not in sys.modules for a moment after it was loaded: a thread that imports a module in it
# without having waited for it may look then (KeyError in importlib's _find_and_load_unlocked; 3.11 and 3.13 have it).
# In 3.13.0 it fails for collections.abc, too, which replaces itself while it is loaded.
FIRST_USE = """
    import sys, threading
    from importlib import import_module

    for package in sys.argv[1].split():
        import_module(package)

    sys.setswitchinterval(1e-6)
    LINES = sys.argv[2:]
    barrier = threading.Barrier(len(LINES))
    failures = []


    def run(line):
        barrier.wait()
        try:
            exec(line, {})
        except BaseException as error:
            failures.append(f"{line}: {error!r}")


    threads = [threading.Thread(target=run, args=(line,)) for line in LINES]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(*failures)
"""


def run(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=ROOT,
    )
    return done.stdout.strip()


PACKAGES = {
    "kafka.consumer": "kafka.consumer.group",
    "kafka.coordinator.assignors": "kafka.coordinator.assignors.range",
    "kafka.metrics": "kafka.metrics.stats",
    "kafka.metrics.stats": "kafka.metrics.stats.rate",
    "kafka.net": "kafka.net.states",
    "kafka.oauth": "kafka.oauth.abstract",
    "kafka.partitioner": "kafka.partitioner.default",
    "kafka.producer": "kafka.producer.future",
    "kafka.record": "kafka.record.memory_records",
    "kafka.sasl": "kafka.sasl.plain",
    "kafka.schema_registry": "kafka.schema_registry.registry",
    "kafka.serializer": "kafka.serializer.abstract",
    "kafka.testing": "kafka.testing.memory",
}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_and_a_module_in_it_are_imported_by_two_threads_at_once(package):
    assert run(COLLISION, package, PACKAGES[package]) == ""


@pytest.mark.parametrize("start", range(6))
def test_the_first_use_by_many_threads_at_once(start):
    lines = [
        "from kafka import KafkaProducer; KafkaProducer.DEFAULT_CONFIG",
        "from kafka import KafkaConsumer; KafkaConsumer.DEFAULT_CONFIG",
        "from kafka import KafkaClient",
        "from kafka.metrics import Metrics; Metrics()",
        "from kafka.metrics.stats import Avg",
        "import kafka.metrics.stats.avg",
        "import kafka.net.pipeline",
        "import kafka.version",
        "from kafka.coordinator.assignors.range import RangePartitionAssignor",
        "import kafka.coordinator.consumer",
        "from kafka.partitioner.default import DefaultPartitioner",
        "from kafka.producer.future import RecordMetadata",
    ]
    loaded = " ".join(package for package in packages() if package not in CLOSED)
    assert run(FIRST_USE, loaded, *lines[start:], *lines[:start]) == ""


# Nothing outside these packages imports their modules, so no thread can hold one of them and wait for the package.
CLOSED = {"kafka.cli", "kafka.codec", "kafka.config", "kafka.protocol"}


def packages():
    for path in sorted((ROOT / "kafka").rglob("__init__.py")):
        name = ".".join(path.parent.relative_to(ROOT).parts)
        if not name.startswith("kafka.broker."):  # these are loaded by kafka.broker.broker alone
            yield name


def test_a_package_imports_no_module_inside_it():
    program = """
        import sys

        for package in sys.argv[1:]:
            for name in [name for name in sys.modules if name.startswith("kafka")]:
                del sys.modules[name]
            __import__(package)
            print(*(name for name in sys.modules if name.startswith(package + ".") and name != "kafka._lazy"))
    """
    assert run(program, *(package for package in packages() if package not in CLOSED)) == ""


def imports(tree):
    """The modules that a file imports, but for annotations."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_the_modules_of_the_other_packages_are_imported_by_themselves_alone():
    eager = {
        "kafka.codec": ("_",),
        "kafka.config": ("",),
        "kafka.protocol": ("_historic", "aliases"),  # what the package itself imports
    }
    found = []
    for path in sorted((ROOT / "kafka").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        text = path.read_text(encoding="utf-8")
        if not any(f"{package}.{prefix}" in text for package, prefixes in eager.items() for prefix in prefixes):
            continue  # to parse all modules takes seconds
        for module in imports(ast.parse(text)):
            for package, prefixes in eager.items():
                inner = module.startswith(tuple(f"{package}.{prefix}" for prefix in prefixes))
                if inner and not name.startswith(f"{package}."):
                    found.append(f"{name} imports {module}")
    assert not found


# Another distribution in the same place


def imported_beside(place, *metadata):
    """Import the package where the metadata of other distributions lie beside it; return what is written."""
    (place / "kafka").symlink_to(ROOT / "kafka", target_is_directory=True)
    for name in metadata:
        (place / name).mkdir()
    program = f"import sys; sys.path.insert(0, {str(place)!r}); import kafka; print(kafka.__version__)"
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout
    return done.stderr


def test_a_distribution_that_owns_files_of_the_package_is_named_with_the_command_that_helps(tmp_path):
    expected = (
        "kafka:1: UserWarning: kafka-python has its files in the same package 'kafka': run "
        "'pip uninstall kafka-python', then 'pip install --force-reinstall --no-deps purekafka'"
    )
    written = imported_beside(tmp_path, "kafka_python-2.0.2.dist-info", "numpy-2.0.0.dist-info")
    assert written.splitlines() == [expected]


def test_other_distributions_are_not_named(tmp_path):
    assert imported_beside(tmp_path, "kafka_utils-4.1.0.dist-info", "purekafka-0.1.dist-info") == ""


# Modules as attributes

# What `import kafka` leaves as modules in kafka-python 1.4.7, 2.0.2, 2.3.3 or 3.0.12, as far as they are here too.
HISTORIC = """
    admin.acl_resource admin.client admin.config_resource admin.new_partitions admin.new_topic
    client client_async cluster codec conn
    consumer.base consumer.fetcher consumer.group consumer.multiprocess consumer.simple consumer.subscription_state
    coordinator.assignors.abstract coordinator.assignors.cooperative_sticky coordinator.assignors.range
    coordinator.assignors.roundrobin coordinator.assignors.sticky.sticky_assignor
    coordinator.base coordinator.consumer coordinator.heartbeat coordinator.protocol
    errors future
    metrics.compound_stat metrics.dict_reporter metrics.kafka_metric metrics.measurable metrics.measurable_stat
    metrics.metric_config metrics.metric_name metrics.metrics metrics.metrics_reporter metrics.quota metrics.stat
    metrics.stats.avg metrics.stats.count metrics.stats.histogram metrics.stats.max_stat metrics.stats.min_stat
    metrics.stats.percentile metrics.stats.percentiles metrics.stats.rate metrics.stats.sampled_stat
    metrics.stats.sensor metrics.stats.total
    net.connection oauth.abstract
    partitioner.abc partitioner.default partitioner.hashed partitioner.roundrobin partitioner.sticky
    producer.base producer.future producer.kafka producer.keyed producer.record_accumulator producer.sender
    producer.simple producer.transaction_manager
    protocol.abstract protocol.admin protocol.api protocol.commit protocol.fetch protocol.frame protocol.group
    protocol.legacy protocol.message protocol.metadata protocol.offset protocol.parser protocol.pickle
    protocol.produce protocol.struct protocol.types
    record.abc record.default_records record.legacy_records record.memory_records record.util
    sasl.abc sasl.gssapi sasl.msk sasl.oauth sasl.plain sasl.scram
    serializer.abstract serializer.default serializer.wrapper
    structs util vendor.selectors34 vendor.six vendor.socketpair version
"""
# The same of aiokafka 0.14.
ASYNCIO = """
    abc client cluster consumer coordinator.assignors.abstract coordinator.assignors.roundrobin
    errors producer structs util
"""


def paths():
    yield from (f"kafka.{path}" for path in HISTORIC.split())
    yield from (f"kafka.aio.{path}" for path in ASYNCIO.split())


def test_the_modules_that_the_releases_load_with_the_package_are_its_attributes():
    """Asked of the package's own `__getattr__`, since an import elsewhere sets the attribute too."""
    missing = []
    for path in paths():
        parts = path.split(".")
        for end in range(1, len(parts)):
            package, name = import_module(".".join(parts[:end])), parts[end]
            if package.__getattr__(name) is not import_module(".".join(parts[: end + 1])):
                missing.append(".".join(parts[: end + 1]))
    assert not missing


@pytest.mark.parametrize(
    "expression",
    [
        "kafka.errors.KafkaError",
        "kafka.producer.kafka.KafkaProducer.send",
        "kafka.consumer.group.KafkaConsumer.poll",
        "kafka.admin.client.KafkaAdminClient",
        "kafka.coordinator.assignors.range.RangePartitionAssignor",
        "kafka.protocol.metadata.MetadataRequest",
        "kafka.metrics.stats.avg.Avg",
        "kafka.structs.TopicPartition",
        "kafka.oauth.AbstractTokenProvider",
        "kafka.aio.errors.KafkaError",
    ],
)
def test_a_path_of_modules_works_after_importing_the_package_alone(expression):
    assert run(f"import kafka; print({expression}.__name__)") == expression.rpartition(".")[2]


def test_importing_the_package_loads_none_of_the_modules_that_are_its_attributes():
    assert run("import sys, kafka; print(*(name for name in sys.modules if name.startswith('kafka.')))") == ""


def test_a_module_that_is_not_there_is_an_attribute_error():
    import kafka

    for package in (kafka, kafka.producer, kafka.protocol, kafka.net, kafka.aio):
        with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
            package.nothing  # noqa: B018
        assert not hasattr(package, "__nothing__")


def test_a_module_that_lacks_what_it_needs_says_what(tmp_path, monkeypatch):
    from kafka._lazy import module_in

    (tmp_path / "needs.py").write_text("import not_installed", encoding="utf-8")
    monkeypatch.setattr("kafka.vendor.__path__", [str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="not_installed"):
        module_in("kafka.vendor", "needs")
