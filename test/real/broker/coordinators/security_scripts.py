"""What is asked of both brokers about users and rights: each function is one script. The client is a super user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka.protocol.acl import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kafka.protocol.users import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest

from .script import Script

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
TOPIC, GROUP, CLUSTER, USER = 2, 3, 4, 7
READ, WRITE, ALTER, CLUSTER_ACTION = 3, 4, 7, 9
DENY, ALLOW = 2, 3


def acls(script: Script) -> None:
    here = script.connect()
    good = [
        (TOPIC, "t", LITERAL, "User:bob", "*", READ, ALLOW),
        (TOPIC, "logs-", PREFIXED, "User:bob", "10.0.0.1", WRITE, DENY),
        (GROUP, "*", LITERAL, "User:*", "*", READ, ALLOW),
        (CLUSTER, "kafka-cluster", LITERAL, "User:bob", "*", ALTER, ALLOW),
    ]
    bad: list[Any] = [
        (TOPIC, "", LITERAL, "User:bob", "*", READ, ALLOW),
        (TOPIC, "t", LITERAL, "bob", "*", READ, ALLOW),
        (TOPIC, "t", LITERAL, "User:bob", "*", CLUSTER_ACTION, ALLOW),
        (CLUSTER, "other", LITERAL, "User:bob", "*", ALTER, ALLOW),
    ]
    script.ask(here, CreateAclsRequest[3](good))
    for each in bad:
        script.ask(here, CreateAclsRequest[3]([each]))
    script.ask(here, CreateAclsRequest[1](good[:1]))
    anyone = (ANY, None, ANY, None, None, ANY, ANY)

    def found(*wanted: Any) -> None:
        script.ask(here, DescribeAclsRequest[3](*wanted))

    # Brokers learn of changes a little after the controller has made them.
    script.wait(here, lambda: DescribeAclsRequest[3](*anyone), lambda reply: len(reply.resources) == 4)
    found(*anyone)
    found(TOPIC, "t", ANY, None, None, ANY, ANY)
    found(TOPIC, "logs-7", MATCH, None, None, ANY, ANY)
    found(TOPIC, "logs-", LITERAL, None, None, ANY, ANY)
    found(ANY, None, PREFIXED, None, None, ANY, ANY)
    found(ANY, None, ANY, "User:*", None, ANY, ANY)
    found(ANY, None, ANY, None, "10.0.0.1", ANY, DENY)
    oldest = DescribeAclsRequest[1](ANY, None, principal_filter=None, host_filter=None)
    oldest.operation = oldest.permission_type = ANY
    script.ask(here, oldest)
    some = [(TOPIC, "logs-7", MATCH, None, None, ANY, ANY), (ANY, "x", ANY, None, None, ANY, ANY)]
    script.ask(here, DeleteAclsRequest[3](some))
    script.ask(here, DeleteAclsRequest[3]([anyone]))


def scram(script: Script) -> None:
    here = script.connect()

    def alter(deletions: Any, upsertions: Any) -> None:
        script.ask(here, AlterUserScramCredentialsRequest[0](deletions, upsertions))

    def described(users: Any) -> None:
        def is_there(reply: Any) -> bool:
            return any(each.user == "ann" and len(each.credential_infos) == 2 for each in reply.results)

        script.until(here, lambda: DescribeUserScramCredentialsRequest[0](users), is_there)

    alter([], [("ann", 1, 4096, b"salt", b"salted"), ("ann", 2, 8192, b"salt", b"salted")])
    alter([], [("ann", 1, 4096, b"salt", b"salted")])
    alter([], [("ann", 2, 8192, b"salt", b"salted")])
    for user, mechanism, iterations in (("bob", 1, 100), ("bea", 1, 100_000), ("eve", 9, 4096), ("", 1, 4096)):
        alter([], [(user, mechanism, iterations, b"s", b"s")])
    described([("ann",)])
    described(None)
    described([])
    described([("ann",), ("nobody",)])
    script.ask(here, DescribeUserScramCredentialsRequest[0]([("ann",), ("ann",)]))
    alter([("nobody", 1)], [])
    alter([("ann", 1)], [("ann", 1, 4096, b"s", b"s")])
    alter([("ann", 9)], [])
    alter([("ann", 1)], [])
    alter([("ann", 2)], [])


SECURITY_SCRIPTS: list[Callable[[Script], None]] = [acls, scram]
