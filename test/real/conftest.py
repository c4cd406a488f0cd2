"""Fixtures that give a test Apache Kafka itself, and the options that choose which.

``kafka`` is one node of the chosen release for the whole session, ``kafka_cluster`` three nodes, which tests may kill
and freeze, ``kafka_at`` starts whatever a test asks for, ``kafka_matrix`` runs the test once per release of the matrix
(mark it ``matrix``; such tests are left out unless ``--matrix`` or ``-m`` asks for them). A node costs two to three
seconds of a processor to start, and more until its code is compiled: a test that can use a shared one does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from test.embedded.faces import face, pytest_generate_tests
from test.scheduling import scope

from . import jvm, kafka_jars, ports, sasl
from .certificates import Authority, OpensslMissing, broker_tls
from .java_client import JavaClient
from .java_tools import JavaTools
from .kafka_process import KafkaCluster, live_clusters
from .kdc import KerberosMissing, KeyDistributionCenter
from .oauth import TokenServer, broker_oauth
from .releases import MATRIX, NEWEST, chosen_version

__all__ = ["face", "pytest_generate_tests"]  # a module with ``FACES = "both"`` runs on threads and on asyncio

StartKafka = Callable[..., KafkaCluster]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--matrix", action="store_true", help="also run what runs against every release of Apache Kafka")
    parser.addoption("--kafka-version", help="the release of Apache Kafka for ordinary tests (or KAFKA_VERSION)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Everything here is ``real``; the matrix is run only when asked for."""
    asked = config.getoption("matrix", False) or "matrix" in (config.option.markexpr or "")
    here = [item for item in items if item.path.is_relative_to(kafka_jars.HERE)]
    for item in here:
        item.add_marker("real")
    left_out = [item for item in here if item.get_closest_marker("matrix") and not asked]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch what will be needed before the first test, whose time limit it would count against."""
    here = [item for item in session.items if item.path.is_relative_to(kafka_jars.HERE)]
    if not here or session.config.option.collectonly or _unavailable(_chosen(session.config)):
        return
    if any(item.get_closest_marker("matrix") for item in here):
        for version in MATRIX:
            _unavailable(version)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the whole tier where there is no Kafka: from one place, so that pytest says it in one line at its end."""
    if reason := _unavailable(_chosen(item.config)):
        pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """A failed test's report ends with what the brokers logged last."""
    report = yield
    if report.failed:
        for cluster in live_clusters:
            for name, tail in cluster.log_tails().items():
                report.sections.append((f"log of {name}", tail))
    return report


@functools.cache
def _unavailable(version: str) -> str | None:
    """Why a release cannot run here; asked once, so that fetching is not tried again for each test."""
    try:
        kafka_jars.jars(version)
    except kafka_jars.KafkaUnavailable as error:
        return str(error)
    return None


def _chosen(config: pytest.Config) -> str:
    return config.getoption("kafka_version", None) or chosen_version()


def need_kafka(version: str) -> str:
    """The version, or the test is skipped with one line that says what to install."""
    reason = _unavailable(version)
    if reason:
        pytest.skip(reason)
    return version


@pytest.fixture(scope="session", autouse=True)
def shared_by_all() -> None:
    """Open what all nodes and Java programs share before the first test: it stays open, and is no test's leftover."""
    jvm.temporary()
    ports.release(ports.reserve())


@pytest.fixture(scope="session")
def kafka_version(request: pytest.FixtureRequest) -> str:
    """The release that ordinary tests run against."""
    return need_kafka(_chosen(request.config))


@pytest.fixture(scope="session")
def kafka(kafka_version: str) -> Iterator[KafkaCluster]:
    """One node of the chosen release, shared by all tests: use topics of your own, do not stop it."""
    with KafkaCluster(kafka_version) as cluster:
        yield cluster


# The classic protocol leaves to the members how long a session lasts; in the other one the broker decides.
QUICK_SESSIONS = {
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
}


# The clusters that several modules share, while they run: these modules run after one another (test/scheduling.py), and
# a cluster ends with the last of them, as three idle nodes take a tenth of a processor. To start three for each module
# would take 7 s of one, and they would begin with code that is not compiled.
_shared: dict[str, KafkaCluster] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Any:
    """End shared clusters with the last test of their modules."""
    result = yield
    if nextitem is None or scope(nextitem.nodeid) != scope(item.nodeid):
        _end_shared()
    return result


def _end_shared() -> None:
    while _shared:
        _shared.popitem()[1].close()


@pytest.fixture(scope="module")
def three_nodes(kafka_version: str) -> KafkaCluster:
    """The cluster behind ``kafka_cluster``. Clients of its first listener may do all; those of the other have SCRAM."""
    if "three" not in _shared:
        properties = QUICK_SESSIONS | {
            "auto.leader.rebalance.enable": "false",  # a leader moves when a test moves it
            "delegation.token.secret.key": "a cluster secret",
        }
        _shared["three"] = KafkaCluster(
            kafka_version,
            nodes=3,
            listeners=["PLAINTEXT", "SASL_PLAINTEXT"],
            security=[sasl.scram(), sasl.access_control(kafka_version)],
            properties=properties,
        ).open()
    _shared["three"].wait_settled()  # the tests of another module may have killed nodes
    return _shared["three"]


@pytest.fixture
def kafka_cluster(three_nodes: KafkaCluster) -> Iterator[KafkaCluster]:
    """Three nodes for several modules: use topics and groups of your own; nodes may be killed or paused."""
    yield three_nodes
    try:
        three_nodes.start_all()
    except BaseException:
        _end_shared()
        raise


@pytest.fixture(scope="module")
def secured(authority: Authority, token_server: TokenServer) -> KafkaCluster:
    """One node for several modules, with a listener for each kind of security but Kerberos; it is called localhost.

    Its sessions last six seconds. PLAIN has alice and ada, SCRAM has bob; add others.
    """
    if "secured" not in _shared:
        security = (
            sasl.plain({"alice": "secret", "ada": "@secret"}),
            sasl.scram("SCRAM-SHA-256"),
            sasl.scram("SCRAM-SHA-512"),
            sasl.reauthenticate_every(6000),
            broker_oauth(token_server),
            broker_tls(authority, authority.issue("secured"), client_auth="required", listener="MTLS"),
        )
        listeners = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL", "MTLS:SSL")
        cluster = KafkaCluster(need_kafka(NEWEST), listeners=listeners, host="localhost", security=security).open()
        _shared["secured"] = cluster
        cluster.add_scram_user("bob", "hunter2", "SCRAM-SHA-256")
        cluster.add_scram_user("bob", "hunter2", "SCRAM-SHA-512", iterations=8192)
    return _shared["secured"]


@pytest.fixture(scope="module")
def kerberized(kdc: KeyDistributionCenter, authority: Authority) -> KafkaCluster:
    """One node for several modules, which are those of `secured`, with Kerberos."""
    if "kerberized" not in _shared:
        security = [kdc.broker(), broker_tls(authority, authority.issue("kerberos"))]
        listeners = ("SASL_PLAINTEXT", "SASL_SSL")
        _shared["kerberized"] = KafkaCluster(
            need_kafka(NEWEST), listeners=listeners, host="localhost", security=security
        ).open()
    return _shared["kerberized"]


@pytest.fixture
def kafka_at(request: pytest.FixtureRequest) -> Iterator[StartKafka]:
    """Start a cluster for this test alone: ``kafka_at("0.9.0.1", nodes=2, properties={...})``."""
    with ExitStack() as stack:

        def start(version: str | None = None, **options: Any) -> KafkaCluster:
            return stack.enter_context(KafkaCluster(need_kafka(version or _chosen(request.config)), **options))

        yield start


@pytest.fixture(scope="session", params=MATRIX)
def kafka_matrix(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """One node of each release of the matrix in turn; for tests marked ``matrix``."""
    with KafkaCluster(need_kafka(request.param)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def java_client() -> Iterator[JavaClient]:
    """Kafka's own Java client, of the newest release."""
    with JavaClient(need_kafka(NEWEST)) as client:
        yield client


@pytest.fixture(scope="module")
def java_tools() -> Iterator[JavaTools]:
    """Kafka's own command line tools, of the newest release: a JVM for each would take 1.2 s of a processor.

    It ends with its module, because tools that exit do not close their clients: those of one module took a third of a
    processor for the rest of the run, to look for brokers that had gone.
    """
    with JavaTools(need_kafka(NEWEST)) as tools:
        yield tools


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A certificate authority for the session; tests that revoke should make their own."""
    try:
        return Authority(tmp_path_factory.mktemp("authority"))
    except OpensslMissing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def token_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    """An identity provider that signs OAUTHBEARER tokens."""
    try:
        server = TokenServer(tmp_path_factory.mktemp("oauth"))
    except OpensslMissing as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyDistributionCenter]:
    """A Kerberos realm with a running KDC."""
    try:
        center = KeyDistributionCenter(tmp_path_factory.mktemp("kdc"))
    except KerberosMissing as error:
        pytest.skip(str(error))
    with center:
        yield center
