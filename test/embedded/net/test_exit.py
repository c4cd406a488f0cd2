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


CLOSED = """
import json, sys, threading
from kafka import KafkaAdminClient, KafkaClient, KafkaConsumer, KafkaProducer
from kafka.broker import Broker

with Broker(topics={"t": 1}) as broker:
    # Of a module that is older than those of the clients, and emptied after them.
    json.kept = [kind(bootstrap_servers=broker.bootstrap_servers) for kind in
                 (KafkaAdminClient, KafkaClient, KafkaConsumer, KafkaProducer)]
    for each in json.kept:
        each.close()
del each


def keep(*modules):
    threading.Event().wait()


modules = [module for name, module in sys.modules.items() if name == "json" or name.startswith("kafka")]
threading.Thread(target=keep, args=modules, daemon=True).start()
"""


def test_closed_clients_that_threads_keep_beyond_their_modules_say_nothing():
    """As pyspark's threads do, at the end of a program on Spark."""
    done = subprocess.run([sys.executable, "-c", CLOSED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
