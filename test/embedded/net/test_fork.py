"""A process that forks while it has connections: the child lets go of them and the parent's stay as they were."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kafka.broker import Broker

CERTIFICATES = Path(__file__).parents[2] / "unit" / "net" / "certs"

PROGRAM = """
    import os, sys, warnings
    warnings.simplefilter("ignore")
    from kafka import KafkaAdminClient, KafkaClient, KafkaConsumer, KafkaProducer
    from kafka.errors import ForkedClientError
    from kafka.protocol.admin import ListGroupsRequest

    options = {"bootstrap_servers": sys.argv[1], "security_protocol": sys.argv[2], "ssl_cafile": sys.argv[3]}
    client = KafkaClient(**options)
    node_id = client.least_loaded_node()
    client.await_ready(node_id)
    admin = KafkaAdminClient(**options)
    admin.list_topics()
    producer = KafkaProducer(**options)
    consumer = KafkaConsumer("t", auto_offset_reset="earliest", **options)

    def use(number):
        assert producer.send("t", b"%d" % number).get(10).offset == number
        assert [record.value for record in read()] == [b"%d" % number]
        client.ask(ListGroupsRequest(), node_id)

    def read():
        while True:
            for records in consumer.poll(10_000).values():
                return records

    use(0)
    print("connected", flush=True)
    sys.stdin.readline()
    for number, end in enumerate((sys.exit, os._exit, None), 1):
        child = os.fork()
        if not child:
            if end is None:
                try:
                    admin.list_topics()
                except ForkedClientError:
                    pass
                for each in (consumer, producer, admin, client):
                    health = each.health()
                    assert not health["ok"]
                    assert "cannot be used in its child" in health["problems"][0]
                    each.close()
                del client, producer, consumer
                sys.exit()
            end(0)
        assert os.waitpid(child, 0)[1] == 0
        use(number)
    print("done", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_forks_end_no_connection_of_the_parent(protocol):
    context = None
    if protocol == "SSL":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    with Broker(topics={"t": 1}, ssl_context=context) as broker:
        arguments = [broker.bootstrap_servers, protocol, str(CERTIFICATES / "ca.pem")]
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as parent:
            assert parent.stdout.readline() == "connected\n"
            broker.forget_requests()
            print(file=parent.stdin, flush=True)
            said = parent.stdout.readline()
            again = [request for request in broker.requests if type(request.request).__name__ == "ApiVersionsRequest"]
            _, errors = parent.communicate("\n")
    assert (said, errors, parent.returncode) == ("done\n", "", 0)
    assert not again, "a connection was made a second time"
