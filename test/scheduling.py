"""The order in which several processes take files of tests: what takes long begins first and is not left for the end.

A test that takes long says so by its time limit, or by the mark ``slow``; pytest-xdist alone would take the files with
few tests last, and these are the ones with the longest.
"""

from __future__ import annotations

import functools
import importlib
import os
import random
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: How a file says that it uses a cluster which several share: fixtures of ``test/real/conftest.py``.
CLUSTERS = ("kafka_cluster", "secured: KafkaCluster")
#: How it says that it uses the process of Spark's programs, which has a Java machine of its own.
PROGRAMS = "one_process: Programs"


def import_in_another_order(config: pytest.Config) -> None:
    """Import the files of tests in an order of this process's own, where several processes take them.

    On a new clone their assertions are to be rewritten, which is most of what a collection costs. In the same order all
    processes would rewrite the same file at the same time; so most files are rewritten once, and read by the others.
    """
    if not hasattr(config, "workerinput"):
        return
    files = [file for path in config.args for file in Path(path.partition("::")[0]).rglob("test_*.py")]
    random.Random(os.getpid()).shuffle(files)
    for file in files:
        try:
            importlib.import_module(".".join(file.resolve().relative_to(config.rootpath).with_suffix("").parts))
        except (Exception, pytest.skip.Exception):  # noqa: PERF203 - the collection says it again
            continue


@functools.cache
def scope_of_file(file: str) -> str:
    """Return what stays in one process with a file."""
    directory = file.rpartition("/")[0]
    if directory.endswith("/spark"):
        has_programs = PROGRAMS in (ROOT / file).read_text(encoding="utf-8")
        return f"{directory} with {PROGRAMS}" if has_programs else directory
    if directory == "test/real/share":
        return directory
    if file.startswith("test/real/"):
        text = (ROOT / file).read_text(encoding="utf-8")
        return next((f"test/real with {name}" for name in CLUSTERS if name in text), file)
    return file


def scope(nodeid: str) -> str:
    """Return what stays in one process: a file, what shares Spark's session and Java machine, or a cluster.

    >>> scope("test/embedded/test_demo.py::test_counts[0]"), scope("test/embedded/spark/test_jobs.py::test_a_job")
    ('test/embedded/test_demo.py', 'test/embedded/spark')
    """
    return scope_of_file(nodeid.partition("::")[0])


def cost(item: pytest.Item, limit: float) -> float:
    """Return about how long a test takes, by what is written at it; `limit` is the limit of most."""
    mark = item.get_closest_marker("timeout")
    own = mark.args[0] if mark else limit
    if own > limit:
        return float(own) / limit * 3
    return 1.0 if item.get_closest_marker("slow") else 0.05


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the dearest scopes come first, where several processes take them."""
    if not hasattr(config, "workerinput"):
        return
    limit = float(config.getini("timeout"))
    costs: dict[str, float] = {}
    for item in items:
        costs[scope(item.nodeid)] = costs.get(scope(item.nodeid), 0.0) + cost(item, limit)
    items.sort(key=lambda item: -costs[scope(item.nodeid)])  # stable: those that cost the same stay in random order


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have processes take scopes in the order of `pytest_collection_modifyitems`."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class InOrder(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid)

    config.option.loadscopereorder = False
    return InOrder(config, log)
