"""The interpreter ends with a client that nobody closed."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import builtins
from kafka import KafkaClient
from kafka.broker import Broker

broker = Broker(topics={"t": 1})
broker.start()
# Until everything else is gone. It does not ask for versions: a busy machine may take so long that it says so.
builtins.kept = [KafkaClient(bootstrap_servers=broker.bootstrap_servers, api_version=(3, 9))]
builtins.kept.append(builtins.kept)
"""


def test_a_client_that_is_kept_until_the_interpreter_ends_says_nothing():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
