"""``purekafka cluster quorum`` and ``voters``: the controllers, how far each is, and changes of the voters."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from kafka.cli.arguments import CommandError, UsageError, kafka_uuid
from kafka.cli.connection import Connection
from kafka.cli.grammar import TABLE, Verb, arg
from kafka.cli.output import Column, agreed, emit, report, row_of
from kafka.errors import ClusterAuthorizationFailedError, KafkaError, UnsupportedVersionError

if TYPE_CHECKING:
    from uuid import UUID

    from kafka.admin import ClusterDescription, KafkaAdminClient, QuorumDescription, QuorumReplica, RaftVoterEndpoint

_VOTER_COLUMNS: Final = Column.of("node", "directory_id", "listeners")
_EXAMPLE: Final = "4XKuvTzRTdeUBmY4sVTPSw"
_ID: Final = arg("ID", "the node.id of the controller", int)
_DIRECTORY: Final = arg(
    "--directory-id ID", "the directory.id in its meta.properties (the one that it reports to the quorum)"
)


def controller(admin: KafkaAdminClient, cluster: ClusterDescription) -> int | None:
    """Return the id of the active controller, -1 if there is none, None if this user may not know.

    With KRaft a broker that describes the cluster names any broker as its controller; the quorum has the true one.
    """
    try:
        return admin.describe_metadata_quorum().leader_id
    except UnsupportedVersionError:  # ZooKeeper: the brokers know the controller
        return cluster.controller_id
    except ClusterAuthorizationFailedError:
        return None
    except KafkaError:  # no controller answers
        return -1


def controller_text(active: int | None) -> str:
    """Return the controller as the heading of a cluster has it."""
    return "controller not known" if active is None else f"controller {active}" if active >= 0 else "no controller"


@Verb(
    "quorum: show the controllers, and how far each is behind the metadata log",
    examples=["--sandbox", "--sandbox --format json"],
    lists=True,
)
def _quorum(arguments: Namespace, connection: Connection) -> int:
    found = connection.admin().describe_metadata_quorum()
    end = max((one.log_end_offset for one in found.voters), default=0)
    rows = [
        {
            "node": one.replica_id,
            "role": "leader" if one.replica_id == found.leader_id else role,
            "log_end_offset": one.log_end_offset,
            "lag": max(0, end - one.log_end_offset),
            **row_of(one, "last_fetch=last_fetch_timestamp", "last_caught_up=last_caught_up_timestamp"),
            "directory_id": kafka_uuid(one.replica_directory_id),
        }
        for role, some in (("voter", found.voters), ("observer", found.observers))
        for one in some
    ]
    return emit(arguments, rows, Column.of("node", "role", "log_end_offset=LOG END", "lag"))


# Voters…


def _voter_rows(found: QuorumDescription) -> list[dict[str, object]]:
    listeners = {node.node_id: node.listeners for node in found.nodes}
    return [
        {
            "node": one.replica_id,
            "directory_id": kafka_uuid(one.replica_directory_id),
            "listeners": [f"{at.name}={at.host}:{at.port}" for at in listeners.get(one.replica_id, ())],
            "leader": one.replica_id == found.leader_id,
        }
        for one in found.voters
    ]


@Verb(
    "voters: list the controllers that vote in the quorum, with their directories and listeners",
    examples=["--sandbox", "--sandbox --format '{node}'"],
    lists=True,
)
def _voters(arguments: Namespace, connection: Connection) -> int:
    found = connection.admin().describe_metadata_quorum()
    return emit(arguments, _voter_rows(found), [*_VOTER_COLUMNS, *Column.of("leader")])


@Verb(
    "voters-add: let a controller vote in the quorum, after showing it (Kafka 3.9, kraft.version 1)",
    _ID,
    arg("--listener NAME=HOST:PORT...", "where it listens, such as CONTROLLER=c1:9093; may be repeated", required=True),
    _DIRECTORY,
    TABLE,
    examples=[
        "purekafka cluster voters add 4 --listener CONTROLLER=c4:9093 --yes -b localhost:9092",
        f"purekafka cluster voters add 4 --listener CONTROLLER=c4:93 --directory-id {_EXAMPLE} --dry-run --sandbox",
    ],
    asks=True,
)
def _add_voter(arguments: Namespace, connection: Connection) -> int:
    endpoints = [_listener(word) for word in arguments.listener]
    admin = connection.admin()
    found = admin.describe_metadata_quorum()
    if any(one.replica_id == arguments.id for one in found.voters):
        raise CommandError(f"node {arguments.id} is a voter already")
    directory = _directory(arguments, found.observers)
    row = {"node": arguments.id, "directory_id": kafka_uuid(directory), "listeners": arguments.listener}
    if not agreed(connection, f"Add node {arguments.id} to the voters?", [row], _VOTER_COLUMNS):
        return 0
    admin.add_raft_voter(arguments.id, directory, endpoints)
    return report(arguments, {arguments.id: None}, "added")


@Verb(
    "voters-remove: remove a controller from the voters of the quorum, after showing it (Kafka 3.9, kraft.version 1)",
    [_ID, _DIRECTORY, *TABLE],
    examples=[
        "purekafka cluster voters remove 4 --yes -b localhost:9092",
        "purekafka cluster voters remove 1 --dry-run --sandbox",
    ],
    asks=True,
)
def _remove_voter(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    found = admin.describe_metadata_quorum()
    rows = [row for row in _voter_rows(found) if row["node"] == arguments.id]
    if not rows:
        voters = ", ".join(str(one.replica_id) for one in found.voters)
        raise CommandError(f"node {arguments.id} is not a voter; the voters are {voters}")
    directory = _directory(arguments, found.voters)
    if not agreed(connection, f"Remove node {arguments.id} from the voters?", rows, _VOTER_COLUMNS):
        return 0
    if not directory.int:
        raise CommandError("the voters of this cluster cannot change: its kraft.version is 0")
    admin.remove_raft_voter(arguments.id, directory)
    return report(arguments, {arguments.id: None}, "removed")


def _directory(arguments: Namespace, replicas: list[QuorumReplica]) -> UUID:
    """Return the directory id that was given, or the one that the controller reports to the quorum."""
    from base64 import urlsafe_b64decode
    from uuid import UUID

    text = arguments.directory_id
    if text is None:
        for one in replicas:
            if one.replica_id == arguments.id:
                found: UUID = one.replica_directory_id
                return found
        raise CommandError(
            f"node {arguments.id} does not follow the metadata log: start it first, "
            "or give --directory-id as its meta.properties has it"
        )
    try:
        return UUID(bytes=urlsafe_b64decode(text + "==")) if len(text) == 22 else UUID(text)
    except ValueError:
        raise UsageError(f"--directory-id takes the directory.id of meta.properties, not {text!r}") from None


def _listener(word: str) -> RaftVoterEndpoint:
    """Read a listener of a controller.

    >>> _listener("CONTROLLER=c1:9093")
    RaftVoterEndpoint(name='CONTROLLER', host='c1', port=9093)
    """
    from kafka.admin import RaftVoterEndpoint

    name, equals, address = word.partition("=")
    host, colon, port = address.rpartition(":")
    if not (equals and colon and port.isdecimal()):
        raise UsageError(f"--listener takes NAME=HOST:PORT, such as CONTROLLER=c1:9093, not {word!r}")
    return RaftVoterEndpoint(name=name, host=host.strip("[]"), port=int(port))


VERBS: Final = [_quorum, _voters, _add_voter, _remove_voter]
