"""A broker, and the programs of a page as processes: attacked, and counted what is lost and what is done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka.broker import Broker
from test import quick_start
from test.embedded.docs.blocks import ADDRESSES, ROOT

PATIENCE = 90.0
CONFIGS = {
    "group.min.session.timeout.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.min.session.timeout.ms": "500",
    "group.share.session.timeout.ms": "2000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "200",
}
DEFAULTS = {
    "session_timeout_ms": 2000,
    "heartbeat_interval_ms": 200,
    "max_poll_interval_ms": 3000,
    "max_poll_records": 7,
    "reconnect_backoff_max_ms": 200,
    "auto_commit_interval_ms": 200,
    "transaction_timeout_ms": 5000,  # a copy that was killed holds up what it has written for that long
}
SHOP = '''
import json, os, time

HERE = os.path.dirname(__file__)
LOG = os.open(os.path.join(HERE, "handled"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
fails = {}


def handle(value):
    """Fail for the orders in the file "failing", as many times as it says; note each of the others in a line."""
    number = value if isinstance(value, int) else json.loads(value)["id"]
    path = os.path.join(HERE, "failing")
    failing = json.load(open(path)) if os.path.exists(path) else {}
    fails[number] = fails.get(number, 0) + 1
    if fails[number] <= failing.get(str(number), 0):
        raise ValueError(f"order {number} is poison")
    os.write(LOG, b"%d\\n" % number)
    time.sleep(0.001)
'''


class World:
    """A broker, a directory, and the processes of one program."""

    def __init__(self, broker: Broker, where: Path, text: str, topic: str = "orders") -> None:
        self.broker, self.where, self.topic = broker, where, topic
        self.file = where / "program.py"
        self.file.write_text(ADDRESSES.sub(broker.bootstrap_servers, text))
        (where / "shop.py").write_text(SHOP)
        self.running: list[subprocess.Popen[str]] = []
        self.count = 0
        self.did: Counter[str] = Counter()

    def start(self, defaults: dict[str, Any] | None = None, **signals: dict[str, str]) -> subprocess.Popen[str]:
        more = {**DEFAULTS, **(defaults or {})}
        words = [sys.executable, "-m", "test.embedded.recipes.child", str(self.file)]
        number = len(self.running)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOSTNAME": f"host-{number}", "PYTHONUNBUFFERED": "1"}
        with open(self.where / f"errors-{number}", "w") as errors, open(self.where / f"out-{number}", "w") as out:
            process = quick_start.Program(
                [*words, json.dumps({"defaults": more, "signals": signals})],
                cwd=self.where, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=errors, text=True,
            )  # fmt: skip
        self.running.append(process)
        return process

    def errors(self, process: subprocess.Popen[str]) -> str:
        return (self.where / f"errors-{self.running.index(process)}").read_text()

    def printed(self, *processes: subprocess.Popen[str]) -> str:
        """Return what these processes, or all, have printed."""
        chosen = processes or self.running
        return "".join((self.where / f"out-{self.running.index(process)}").read_text() for process in chosen)

    def ended(self, process: subprocess.Popen[str], code: int) -> None:
        assert process.wait(PATIENCE) == code, self.errors(process)
        self.did["killed" if code == -signal.SIGKILL else f"ended with {code}"] += 1

    def until(self, condition: Callable[[], object], *running: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            for process in running:
                assert process.poll() is None, self.errors(process)
            assert time.monotonic() < deadline, "\n".join(map(self.errors, self.running))
            time.sleep(0.02)

    def is_stopped(self, process: subprocess.Popen[str]) -> bool:
        assert process.poll() is None, self.errors(process)
        return os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None

    def orders(self, count: int) -> None:
        """Write orders, of five keys in two partitions."""
        for number in range(self.count, self.count + count):
            value = json.dumps({"id": number, "price": number})
            self.broker.append(self.topic, value, key=f"k{number % 5}", partition=number % 5 % 2)
        self.count += count

    def handled(self) -> list[int]:
        path = self.where / "handled"
        return [int(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []

    def fail(self, **times: int) -> None:
        (self.where / "failing").write_text(json.dumps(times))

    def close(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()


def group_of(world: World) -> str:
    return world.file.read_text().split('group_id="')[1].split('"')[0]


def say(world: World, done: list[int], name: str) -> None:
    lost = set(range(world.count)) - set(done)
    doubled = len(done) - len(set(done))
    print(f"{name}: {world.count} orders, {dict(world.did)}, {len(lost)} lost, {doubled} doubled")
    assert not lost


def check_order(found: list[int]) -> None:
    """The orders of a key are handled in their order; those that are handled again are passed over."""
    for key in range(5):
        first = list(dict.fromkeys(number for number in found if number % 5 == key))
        assert first == sorted(first)
