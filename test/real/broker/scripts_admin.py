"""Scripts about topics, configuration and the cluster."""

from __future__ import annotations

import re
import uuid
from typing import Any

from kafka.protocol.acl import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    ApiVersionsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from kafka.protocol.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from kafka.protocol.metadata import DescribeClusterRequest, DescribeTopicPartitionsRequest, MetadataRequest
from kafka.protocol.quorum import AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest
from kafka.protocol.sasl import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from kafka.protocol.users import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    DescribeClientQuotasRequest,
    DescribeUserScramCredentialsRequest,
)

from .sessions import Transcript, versions

ABSENT_ID = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")


def api_versions(say: Transcript) -> None:
    for version in versions("ApiVersions"):
        say.ask(f"v{version}", ApiVersionsRequest[version](client_software_name="test", client_software_version="1.0"))
    for name in ("", "-x", "a b", "ä", "a" * 300):
        say.ask(f"name {name[:5]!r}", ApiVersionsRequest[3](client_software_name=name, client_software_version="1"))
    say.ask("no version", ApiVersionsRequest[4](client_software_name="x", client_software_version=""))


def metadata(say: Transcript) -> None:
    topic_id = say.make_topic("meta", 2)
    for version in versions("Metadata"):
        cls = MetadataRequest[version]
        allow = {"allow_auto_topic_creation": False} if version >= 4 else {}

        def named(*names: str, cls: Any = cls, version: int = version) -> Any:
            return [cls.MetadataRequestTopic(name=name) for name in names]

        say.ask(f"known v{version}", cls(topics=named("meta"), **allow))
        say.ask(f"no topics v{version}", cls(topics=[], **allow)) if version else None
        if version >= 4:
            say.ask(f"unknown v{version}", cls(topics=named("nowhere"), **allow))
            say.ask(f"illegal v{version}", cls(topics=named("no/where", "", "..", "x" * 250), **allow))
            say.ask(f"both v{version}", cls(topics=named("meta", "nowhere"), **allow))
        if version >= 8:
            say.ask(f"rights v{version}", cls(topics=named("meta"), include_topic_authorized_operations=True, **allow))
        if 8 <= version <= 10:
            say.ask(f"cluster rights v{version}", cls(topics=[], include_cluster_authorized_operations=True, **allow))
        if version >= 12:
            by_id = cls(topics=[(topic_id, None)], **allow)
            say.ask(f"by id v{version}", by_id)
            say.ask(f"unknown id v{version}", cls(topics=[(ABSENT_ID, None)], **allow))


def create_topics(say: Transcript) -> None:
    say.make_topic("made.already")
    for version in versions("CreateTopics"):

        def create(label: str, *topics: Any, validate: bool = False, version: int = version) -> None:
            request = CreateTopicsRequest[version](topics=list(topics), timeout_ms=10_000, validate_only=validate)
            say.ask(f"{label} v{version}", request)

        create("good", (f"good-{version}", 3, 1, [], [("retention.ms", "1000"), ("cleanup.policy", "compact,delete")]))
        create("defaults", (f"defaults-{version}", -1, -1, [], []))
        create("validate", (f"only-{version}", 2, 1, [], []), validate=True)
        create("existing", ("made.already", 1, 1, [], []))
        create("collision", ("made_already", 1, 1, [], []))
        create("twice", ("twin", 1, 1, [], []), ("twin", 2, 1, [], []))
        for name in ("", ".", "..", "a/b", "x" * 250):
            create(f"name {name[:5]!r}", (name, 1, 1, [], []))
        create("no partitions", (f"bad-{version}", 0, 1, [], []))
        create("negative partitions", (f"bad-{version}", -2, 1, [], []))
        create("no replicas", (f"bad-{version}", 1, 0, [], []))
        create("many replicas", (f"bad-{version}", 1, 3, [], []))
        create("unknown config", (f"bad-{version}", 1, 1, [], [("no.such", "1")]))
        create("bad number", (f"bad-{version}", 1, 1, [], [("retention.ms", "soon")]))
        create("bad choice", (f"bad-{version}", 1, 1, [], [("cleanup.policy", "burn")]))
        create("bad bool", (f"bad-{version}", 1, 1, [], [("preallocate", "perhaps")]))
        create("too small", (f"bad-{version}", 1, 1, [], [("segment.bytes", "1")]))
        create("null config", (f"bad-{version}", 1, 1, [], [("retention.ms", None)]))
        create("assigned", (f"assigned-{version}", -1, -1, [(0, [1]), (1, [1])], []))
        create("assigned and counted", (f"bad-{version}", 1, -1, [(0, [1])], []))
        create("assigned and copied", (f"bad-{version}", -1, 1, [(0, [1])], []))
        create("assigned nowhere", (f"bad-{version}", -1, -1, [(0, [77])], []))
        create("assigned to nobody", (f"bad-{version}", -1, -1, [(0, [])], []))
        create("assigned twice", (f"bad-{version}", -1, -1, [(0, [1, 1])], []))
        create("assigned with a gap", (f"bad-{version}", -1, -1, [(1, [1])], []))


def delete_topics(say: Transcript) -> None:
    for version in versions("DeleteTopics"):
        cls = DeleteTopicsRequest[version]
        topic_id = say.make_topic(f"doomed-{version}")
        if version >= 6:
            say.ask(f"by id v{version}", cls(topics=[(None, topic_id)], timeout_ms=10_000))
            say.ask(f"unknown id v{version}", cls(topics=[(None, ABSENT_ID)], timeout_ms=10_000))
            say.make_topic("doomed by name".replace(" ", "-"))
            say.ask(f"good v{version}", cls(topics=[("doomed-by-name", uuid.UUID(int=0))], timeout_ms=10_000))
            say.ask(f"both v{version}", cls(topics=[("doomed-x", ABSENT_ID)], timeout_ms=10_000))
            say.ask(f"neither v{version}", cls(topics=[(None, uuid.UUID(int=0))], timeout_ms=10_000))
            say.ask(f"unknown v{version}", cls(topics=[("nowhere", uuid.UUID(int=0))], timeout_ms=10_000))
        else:
            say.ask(f"good v{version}", cls(topic_names=[f"doomed-{version}"], timeout_ms=10_000))
            say.ask(f"unknown v{version}", cls(topic_names=["nowhere"], timeout_ms=10_000))


def create_partitions(say: Transcript) -> None:
    for version in versions("CreatePartitions"):
        cls = CreatePartitionsRequest[version]
        say.make_topic(f"growing-{version}", 2)

        def grow(label: str, *topics: Any, validate: bool = False, cls: Any = cls, version: int = version) -> None:
            say.ask(f"{label} v{version}", cls(topics=list(topics), timeout_ms=10_000, validate_only=validate))

        name = f"growing-{version}"
        grow("validate", (name, 3, None), validate=True)
        grow("good", (name, 4, None))
        grow("same", (name, 4, None))
        grow("fewer", (name, 1, None))
        grow("none", (name, 0, None))
        grow("unknown", ("nowhere", 3, None))
        grow("assigned", (name, 5, [[[1]]]))
        grow("assigned nowhere", (name, 6, [[[9]]]))
        grow("assigned too many", (name, 6, [[[1]], [[1]]]))
        grow("twice", (name, 7, None), (name, 8, None))


def describe_configs(say: Transcript) -> None:
    say.make_topic("configured", 1, retention_ms="5000")
    for version in versions("DescribeConfigs"):
        cls = DescribeConfigsRequest[version]
        say.ask(f"topic v{version}", cls(resources=[(2, "configured", None)], include_synonyms=True))
        say.ask(f"plain v{version}", cls(resources=[(2, "configured", ["retention.ms", "no.such"])]))
        say.ask(f"nothing v{version}", cls(resources=[(2, "configured", [])]))
        say.ask(f"unknown v{version}", cls(resources=[(2, "nowhere", None)]))
        say.ask(f"illegal v{version}", cls(resources=[(2, "no/where", None)]))
        keys = ["num.partitions", "message.max.bytes", "default.replication.factor", "no.such"]
        say.ask(f"broker v{version}", cls(resources=[(4, "1", keys)], include_synonyms=True))
        say.ask(f"all brokers v{version}", cls(resources=[(4, "", None)]))
        say.ask(f"wrong broker v{version}", cls(resources=[(4, "77", None)]))
        say.ask(f"no broker v{version}", cls(resources=[(4, "x", None)]))
        say.ask(f"no kind v{version}", cls(resources=[(99, "x", None)]))


def alter_configs(say: Transcript) -> None:
    say.make_topic("altered")
    for version in versions("IncrementalAlterConfigs"):
        cls = IncrementalAlterConfigsRequest[version]

        def change(label: str, kind: int, name: str, *ops: Any, cls: Any = cls, version: int = version) -> None:
            say.ask(f"{label} v{version}", cls(resources=[(kind, name, list(ops))]))

        change("set", 2, "altered", ("retention.ms", 0, "7000"))
        change("append", 2, "altered", ("cleanup.policy", 2, "compact"))
        change("subtract", 2, "altered", ("cleanup.policy", 3, "delete"))
        change("delete", 2, "altered", ("retention.ms", 1, None))
        change("append to number", 2, "altered", ("retention.ms", 2, "1"))
        change("null", 2, "altered", ("retention.ms", 0, None))
        change("bad", 2, "altered", ("retention.ms", 0, "soon"))
        change("unknown", 2, "altered", ("no.such", 0, "1"))
        change("twice", 2, "altered", ("retention.ms", 0, "1"), ("retention.ms", 0, "2"))
        change("operation", 2, "altered", ("retention.ms", 9, "1"))
        change("nowhere", 2, "nowhere", ("retention.ms", 0, "1"))
        change("broker", 4, "1", ("message.max.bytes", 0, "2000000"))
        change("brokers", 4, "", ("message.max.bytes", 0, "3000000"))
        change("read only", 4, "1", ("node.id", 0, "7"))
        change("wrong broker", 4, "77", ("message.max.bytes", 0, "2000000"))
        keys = ["message.max.bytes"]
        _wait_for_configs(say, keys)
        say.ask(f"then v{version}", DescribeConfigsRequest[4](resources=[(4, "1", keys)], include_synonyms=True))
        say.ask(f"of all v{version}", DescribeConfigsRequest[4](resources=[(4, "", keys)], include_synonyms=True))
        keys = ["max.message.bytes", "cleanup.policy"]
        say.ask(f"topic v{version}", DescribeConfigsRequest[4](resources=[(2, "altered", keys)], include_synonyms=True))
        say.quietly(cls(resources=[(4, "1", [("message.max.bytes", 1, None)])]))
        say.quietly(cls(resources=[(4, "", [("message.max.bytes", 1, None)])]))
        say.quietly(cls(resources=[(2, "altered", [("cleanup.policy", 1, None)])]))
    for version in versions("AlterConfigs"):
        cls = AlterConfigsRequest[version]
        say.ask(f"replace v{version}", cls(resources=[(2, "altered", [("segment.ms", "60000")])]))
        say.ask(f"replace badly v{version}", cls(resources=[(2, "altered", [("segment.ms", "-5")])]))
        say.ask(f"replace nowhere v{version}", cls(resources=[(2, "nowhere", [("segment.ms", "60000")])]))
        keys = ["segment.ms", "retention.ms"]
        say.ask(f"replaced v{version}", DescribeConfigsRequest[4](resources=[(2, "altered", keys)]))
    for version in versions("ListConfigResources"):
        say.ask(f"resources v{version}", ListConfigResourcesRequest[version]())
    say.ask("wrong resources", ListConfigResourcesRequest[1](resource_types=[99]))


def _wait_for_configs(say: Transcript, keys: list[str]) -> None:
    """Wait until a broker's dynamic configuration is in force: it learns of it a little later than it answers."""
    for name, source in (("1", 2), ("", 3)):
        request = DescribeConfigsRequest[4](resources=[(4, name, keys)])
        say.until(request, lambda reply, source=source: [c.config_source for c in reply.results[0].configs] == [source])


def broker_options(say: Transcript) -> None:
    """What tools set on brokers; the names of all options, their types, defaults and whether they can change."""
    cls = IncrementalAlterConfigsRequest[1]

    def change(label: str, name: str, *ops: Any) -> None:
        say.ask(label, cls(resources=[(4, name, list(ops))]))

    rate = "leader.replication.throttled.rate"
    change("throttle", "1", (rate, 0, "1000"))
    change("throttle all", "", ("follower.replication.throttled.rate", 0, "77"))
    change("throttle badly", "1", (rate, 0, "x"))
    change("negative", "1", ("replica.alter.log.dirs.io.max.bytes.per.second", 0, "-1"))
    change("bad number", "1", ("message.max.bytes", 0, "x"))
    change("unknown", "1", ("no.such.option", 0, "x"))
    change("unknown of all", "", ("no.such.either", 0, "x"))
    change("unset", "1", ("not.there", 1, None))
    change("remove min.insync.replicas", "", ("min.insync.replicas", 1, None))
    change("own min.insync.replicas", "1", ("min.insync.replicas", 0, "1"))
    change("ssl", "1", ("ssl.keystore.location", 0, "x"))
    change("ssl of a listener", "1", ("listener.name.controller.ssl.keystore.type", 0, "JKS"))
    change("listeners of all", "", ("listeners", 0, "x"))
    keys = [rate, "no.such.option", "listener.name.controller.ssl.keystore.type"]
    say.until(DescribeConfigsRequest[4](resources=[(4, "1", keys)]), lambda reply: len(reply.results[0].configs) == 3)
    described = DescribeConfigsRequest[4](resources=[(4, "1", None), (4, "", None)], include_synonyms=True)
    reply = say.quietly(described)
    for result in reply.results:
        for row in result.configs:
            if row.name != "log.initial.task.delay.ms":  # Kafka shows it only where it is set, as in these tests
                say.note(f"{result.resource_name or 'all'} {row.name}", _without_facts(row))
    for name, options in (("1", keys), ("", ["follower.replication.throttled.rate", "no.such.either"])):
        say.quietly(cls(resources=[(4, name, [(option, 1, None) for option in options])]))


#: Options whose value or default is another for each cluster, or another here on purpose: shorter delays.
_FACTS = re.compile(
    r".*listeners?|.*listener\.names?|controller\.quorum\.voters|log\.dirs|(num|log\.cleaner)\..*threads|.*\.isr|"
    r".*assignment\.interval\.ms|group\.initial.*|group\.streams\.initial.*|offsets\.topic\..*|.*\.log\.num\.partitions|"
    r".*replication\.factor|log\.cleaner\.dedupe\.buffer\.size|.*topic\.num\.partitions|broker\..*\.ms|process\.roles|"
    r"listener\.security\.protocol\.map|replica\.lag\.time\.max\.ms|node\.id|share\.coordinator\.state\..*|"
    r"metadata\.max\.idle\.interval\.ms"
)


def _without_facts(row: Any) -> Any:
    shown = {"type": row.config_type, "readOnly": row.read_only, "sensitive": row.is_sensitive}
    if _FACTS.fullmatch(row.name):
        return shown
    return shown | {"value": row.value, "source": row.config_source, "synonyms": [s.to_json() for s in row.synonyms]}


def loggers(say: Transcript) -> None:
    cls = IncrementalAlterConfigsRequest[1]
    logger = "kafka.server.KafkaApis"

    def change(label: str, node: str, *ops: Any, validate: bool = False) -> None:
        say.ask(label, cls(resources=[(8, node, list(ops))], validate_only=validate))
        say.ask(f"{label}, then", DescribeConfigsRequest[4](resources=[(8, "1", [logger, "root"])]))

    for node in ("", "2", "x"):
        say.ask(f"describe {node!r}", DescribeConfigsRequest[4](resources=[(8, node, None)]))
        change(f"of {node!r}", node, ("root", 0, "INFO"))
    keys = [logger, "no.such"]
    say.ask("known", DescribeConfigsRequest[4](resources=[(8, "1", keys)], include_synonyms=True))
    say.ask("documented", DescribeConfigsRequest[4](resources=[(8, "1", keys)], include_documentation=True))
    change("validate", "1", (logger, 0, "DEBUG"), validate=True)
    change("set", "1", (logger, 0, "DEBUG"))
    change("root", "1", ("root", 0, "WARN"))
    change("unset", "1", (logger, 1, None))
    change("reset root", "1", ("root", 0, "INFO"))
    for label, op in (
        ("unknown", ("no.such", 0, "INFO")),
        ("append", (logger, 2, "INFO")),
        ("subtract", (logger, 3, "INFO")),
        ("strange operation", (logger, 9, "INFO")),
        ("unset root", ("root", 1, None)),
        ("lower case", (logger, 0, "debug")),
        ("null", (logger, 0, None)),
        ("empty", (logger, 0, "")),
    ):
        change(label, "1", ("kafka.log.LogManager", 0, "INFO"), op)
    say.ask("replace", AlterConfigsRequest[2](resources=[(8, "1", [("root", "INFO")])]))


def group_options(say: Transcript) -> None:
    cls = IncrementalAlterConfigsRequest[1]

    def change(label: str, name: str, *ops: Any) -> None:
        say.ask(label, cls(resources=[(32, name, list(ops))]))

    for option, values in {
        "consumer.session.timeout.ms": ("50000", "5", "x", "900000"),
        "consumer.heartbeat.interval.ms": ("6000", "4000", "60000"),
        "share.auto.offset.reset": ("earliest", "by_duration:PT1H", "by_duration:-PT1H", "sometimes"),
        "share.isolation.level": ("read_committed", "foo"),
        "share.record.lock.duration.ms": ("20000", "1", "10000", "90000"),
        "share.delivery.count.limit": ("3", "1", "11"),
        "share.partition.max.record.locks": ("200", "50", "5000"),
        "streams.num.standby.replicas": ("1", "7", "-1"),
        "no.such": ("1",),
    }.items():
        for value in values:
            change(f"{option}={value}", "configured", (option, 0, value))
    change("no group", "", ("consumer.session.timeout.ms", 0, "50000"))
    change("append", "configured", ("consumer.session.timeout.ms", 2, "1"))
    change("unset unknown", "configured", ("no.such", 1, None))
    say.ask("describe no group", DescribeConfigsRequest[4](resources=[(32, "", None)]))
    known = DescribeConfigsRequest[4](resources=[(32, "configured", None)], include_synonyms=True)
    say.until(known, lambda reply: sum(row.config_source == 8 for row in reply.results[0].configs) == 8)
    for name in ("configured", "not-configured"):
        request = DescribeConfigsRequest[4](resources=[(32, name, None)], include_synonyms=True)
        for row in say.quietly(request).results[0].configs:
            say.note(
                f"{name} {row.name}", row.to_json() if "interval.ms" not in row.name and "delay" not in row.name else 0
            )
    say.ask("list", ListConfigResourcesRequest[1](resource_types=[32]))
    names = [row.name for row in say.quietly(known).results[0].configs]
    change("unset", "configured", *[(name, 1, None) for name in names])
    listed = ListConfigResourcesRequest[1](resource_types=[32])
    say.until(listed, lambda reply: not reply.config_resources)


def client_metrics(say: Transcript) -> None:
    cls = IncrementalAlterConfigsRequest[1]

    def change(label: str, name: str, *ops: Any, validate: bool = False) -> None:
        say.ask(label, cls(resources=[(16, name, list(ops))], validate_only=validate))

    for option, values in {
        "interval.ms": ("1000", "50", "4000000", "x"),
        "metrics": ("org.apache.kafka.,x",),
        "match": ("client_id=never.*,client_software_name=b", "foo=a", "client_id", "client_id=["),
        "no.such": ("1",),
    }.items():
        for value in values:
            change(f"{option}={value}", "some", (option, 0, value))
    change("append", "some", ("metrics", 2, "y"))
    change("no name", "", ("interval.ms", 0, "1000"))
    change("validate", "other", ("interval.ms", 0, "1000"), validate=True)
    change("unset unknown", "some", ("no.such", 1, None))
    say.ask("replace", AlterConfigsRequest[2](resources=[(16, "whole", [("interval.ms", "2000")])]))
    listed = ListConfigResourcesRequest[1](resource_types=[16])
    say.until(listed, lambda reply: len(reply.config_resources) == 2)
    say.ask("list", listed)
    say.ask("list v0", ListConfigResourcesRequest[0]())
    for name in ("some", "whole", "absent", ""):
        say.ask(f"describe {name}", DescribeConfigsRequest[4](resources=[(16, name, None)], include_synonyms=True))
    for name in ("some", "whole"):
        change(f"remove {name}", name, *[(option, 1, None) for option in ("interval.ms", "match", "metrics")])
    say.until(listed, lambda reply: not reply.config_resources)


def without_security(say: Transcript) -> None:
    for version in versions("DescribeAcls"):
        say.ask(f"acls v{version}", DescribeAclsRequest[version](1, None, 1, None, None, 1, 1))
        say.ask(f"no acls v{version}", CreateAclsRequest[version](creations=[]))
        say.ask(f"allow v{version}", CreateAclsRequest[version](creations=[(2, "t", 3, "User:a", "*", 3, 3)]))
        say.ask(f"delete v{version}", DeleteAclsRequest[version](filters=[(1, None, 1, None, None, 1, 1)]))
    for version in versions("CreateDelegationToken"):
        say.ask(f"create token v{version}", CreateDelegationTokenRequest[version](max_lifetime_ms=-1))
        say.ask(f"tokens v{version}", DescribeDelegationTokenRequest[version](owners=None))
    for version in versions("RenewDelegationToken"):
        say.ask(f"renew v{version}", RenewDelegationTokenRequest[version](b"x", 1))
        say.ask(f"expire v{version}", ExpireDelegationTokenRequest[version](b"x", 1))
    say.ask("users", DescribeUserScramCredentialsRequest[0](users=None))
    say.ask("unknown user", DescribeUserScramCredentialsRequest[0](users=[("nobody",)]))
    alter = AlterUserScramCredentialsRequest[0]
    say.ask("make", alter(deletions=[], upsertions=[("scram", 1, 4096, b"salt", b"salted")]))
    say.ask("make a weak one", alter(deletions=[], upsertions=[("weak", 1, 1, b"s", b"p")]))
    known = DescribeUserScramCredentialsRequest[0](users=[("scram",)])
    say.until(known, lambda reply: not reply.results[0].error_code)
    say.ask("known user", known)
    say.ask("twice", DescribeUserScramCredentialsRequest[0](users=[("scram",), ("scram",)]))
    say.ask("unmake twice", alter(deletions=[("scram", 1), ("scram", 2)], upsertions=[]))
    for label, user in (("unmake", "scram"), ("unmake nobody", "nobody")):
        say.ask(label, alter(deletions=[(user, 1)], upsertions=[]))


def cluster(say: Transcript) -> None:
    say.make_topic("paged-a", 3)
    say.make_topic("paged-b", 2)
    for version in versions("DescribeCluster"):
        cls = DescribeClusterRequest[version]
        say.ask(f"cluster v{version}", cls(include_cluster_authorized_operations=True))
        if version:
            say.ask(f"controllers v{version}", cls(endpoint_type=2))
            say.ask(f"strange endpoints v{version}", cls(endpoint_type=7))
    pages = DescribeTopicPartitionsRequest[0]
    names = ["paged-b", "paged-a", "nowhere", "no/where"]
    say.ask("pages", pages(topics=[(name,) for name in names], response_partition_limit=10))
    say.ask("first page", pages(topics=[("paged-a",), ("paged-b",)], response_partition_limit=2))
    cursor = pages.Cursor(topic_name="paged-a", partition_index=2)
    say.ask("second page", pages(topics=[("paged-a",), ("paged-b",)], response_partition_limit=2, cursor=cursor))
    for version in versions("DescribeLogDirs"):
        say.ask(f"dirs v{version}", DescribeLogDirsRequest[version](topics=[("paged-a", [0, 2]), ("nowhere", [0])]))
    for version in versions("ElectLeaders"):
        cls = ElectLeadersRequest[version]
        wanted = [("paged-a", [0]), ("nowhere", [0])]
        say.ask(f"elect v{version}", cls(topic_partitions=wanted, timeout_ms=5000))
        say.ask(f"elect all v{version}", cls(topic_partitions=None, timeout_ms=5000))
        if version:
            say.ask(f"elect uncleanly v{version}", cls(topic_partitions=wanted, election_type=1, timeout_ms=5000))
    for version in versions("AlterPartitionReassignments"):
        cls = AlterPartitionReassignmentsRequest[version]
        say.ask(f"move v{version}", cls(topics=[("paged-a", [(0, [1])])]))
        say.ask(f"cancel v{version}", cls(topics=[("paged-a", [(0, None)])]))
        say.ask(f"move nowhere v{version}", cls(topics=[("nowhere", [(0, [1])])]))
        say.ask(f"move to nobody v{version}", cls(topics=[("paged-a", [(0, [])])]))
        say.ask(f"move to a stranger v{version}", cls(topics=[("paged-a", [(0, [9])])]))
    say.ask("moves", ListPartitionReassignmentsRequest[0](topics=None))


def quotas(say: Transcript) -> None:
    for version in versions("AlterClientQuotas"):
        cls = AlterClientQuotasRequest[version]

        def alter(label: str, entity: Any, *ops: Any, cls: Any = cls, version: int = version) -> None:
            say.ask(f"{label} v{version}", cls(entries=[(entity, list(ops))]))

        alter("user", [("user", "alice")], ("producer_byte_rate", 1000.0, False))
        alter("default", [("user", None)], ("consumer_byte_rate", 500.0, False))
        alter("both", [("user", "alice"), ("client-id", "c")], ("request_percentage", 50.0, False))
        alter("unknown key", [("user", "alice")], ("no_such", 1.0, False))
        alter("unknown kind", [("planet", "earth")], ("producer_byte_rate", 1.0, False))
        alter("nobody", [], ("producer_byte_rate", 1.0, False))
        alter("negative", [("user", "alice")], ("producer_byte_rate", -1.0, False))
        alter("zero", [("user", "alice")], ("request_percentage", 0.0, False))
        alter("fraction", [("user", "alice")], ("producer_byte_rate", 10.5, False))
        alter("nearly whole", [("user", "bob")], ("producer_byte_rate", 5.0000001, False))
        alter("too large", [("user", "alice")], ("consumer_byte_rate", 1e19, False))
        alter("fraction of a percentage", [("user", "bob")], ("request_percentage", 10.5, False))
        alter("fraction of a rate", [("ip", "127.0.0.1")], ("connection_creation_rate", 1.5, False))
        alter("large rate", [("ip", "127.0.0.1")], ("connection_creation_rate", 3e9, False))
        alter("not an address", [("ip", "not an address")], ("connection_creation_rate", 1.0, False))
        alter("empty user", [("user", "")], ("producer_byte_rate", 1.0, False))
        alter("another's key", [("ip", "127.0.0.1")], ("producer_byte_rate", 1.0, False))
        alter("bob", [("user", "bob")], ("producer_byte_rate", 0.0, True), ("request_percentage", 0.0, True))
        describe = DescribeClientQuotasRequest[version]
        say.ask(f"alice v{version}", describe(components=[("user", 0, "alice")], strict=True))
        say.ask(f"not strictly v{version}", describe(components=[("user", 0, "alice")], strict=False))
        say.ask(f"defaults v{version}", describe(components=[("user", 1, None)], strict=True))
        say.ask(f"any v{version}", describe(components=[("user", 2, None)], strict=True))
        say.ask(f"strange match v{version}", describe(components=[("user", 9, None)], strict=True))
        say.ask(f"strange kind v{version}", describe(components=[("planet", 2, None)], strict=True))
        alter("gone", [("user", "alice")], ("producer_byte_rate", 0.0, True))
        alter("gone too", [("user", None)], ("consumer_byte_rate", 0.0, True))
        alter("gone as well", [("user", "alice"), ("client-id", "c")], ("request_percentage", 0.0, True))


def features(say: Transcript) -> None:
    for version in versions("UpdateFeatures"):
        cls = UpdateFeaturesRequest[version]

        def update(label: str, *updates: Any, validate: bool = True, cls: Any = cls, version: int = version) -> None:
            if version:
                say.ask(f"{label} v{version}", cls(feature_updates=list(updates), validate_only=validate))
            else:
                before = [(name, level, kind != 1) for name, level, kind in updates]
                say.ask(f"{label} v0", cls(feature_updates=before))

        update("unknown", ("nosuch", 1, 1))
        update("nothing")
        update("as it is", ("group.version", 1, 1))
        update("one of two", ("group.version", 1, 1), ("nosuch", 1, 1))
        update("too high", ("share.version", 2, 1))
        update("too low", ("metadata.version", 5, 3))
        update("negative", ("share.version", -1, 2))
        update("metadata.version down", ("metadata.version", 29, 2))
        update("metadata.version unsafely down", ("metadata.version", 28, 3))
        update("upgrade that lowers", ("group.version", 0, 1))
        update("no kind", ("group.version", 1, 0))
        if version:  # v0 cannot ask without doing, and raises whatever the kind
            update("downgrade that raises", ("kraft.version", 1, 2))
            update("down", ("streams.version", 0, 2))
            update("kraft.version", ("kraft.version", 1, 1))
    say.quietly(UpdateFeaturesRequest[2](feature_updates=[("streams.version", 0, 2)]))
    versions_request = ApiVersionsRequest[4](client_software_name="test", client_software_version="1.0")
    say.until(versions_request, lambda reply: "streams.version" not in {one.name for one in reply.finalized_features})
    say.ask("lowered", versions_request)
    say.ask("raised", UpdateFeaturesRequest[2](feature_updates=[("streams.version", 1, 1)]))
    say.until(versions_request, lambda reply: "streams.version" in {one.name for one in reply.finalized_features})


def quorum(say: Transcript) -> None:
    for version in versions("DescribeQuorum"):
        cls = DescribeQuorumRequest[version]
        for topic, index in (("__cluster_metadata", 0), ("__cluster_metadata", 1), ("events", 0)):
            say.ask(f"{topic} {index} v{version}", cls(topics=[(topic, [(index,)])]))
        say.ask(f"nothing v{version}", cls(topics=[]))
    absent, nowhere = uuid.UUID(int=0), [("CONTROLLER", "127.0.0.1", 1)]
    for version in versions("AddRaftVoter"):
        add = AddRaftVoterRequest[version]
        say.ask(f"add v{version}", add(None, 1000, 2, ABSENT_ID, nowhere))
        say.ask(f"add to another cluster v{version}", add("other", 1000, 2, ABSENT_ID, nowhere))
        say.ask(f"add nobody v{version}", add(None, 1000, -2, ABSENT_ID, nowhere))
        say.ask(f"add without a directory v{version}", add(None, 1000, 2, absent, nowhere))
        say.ask(f"add without a listener v{version}", add(None, 1000, 2, ABSENT_ID, []))
    remove = RemoveRaftVoterRequest[0]
    say.ask("remove", remove(None, 2, ABSENT_ID))
    say.ask("remove from another cluster", remove("other", 2, ABSENT_ID))
    say.ask("remove nobody", remove(None, 2, absent))
    say.ask("unregister", UnregisterBrokerRequest[0](broker_id=77))


def replica_log_dirs(say: Transcript) -> None:
    say.make_topic("replicated")
    described = say.quietly(DescribeLogDirsRequest[4](topics=[("replicated", [0])]))
    here = described.results[0].log_dir
    for version in versions("AlterReplicaLogDirs"):
        cls = AlterReplicaLogDirsRequest[version]
        say.ask(f"here v{version}", cls(dirs=[(here, [("replicated", [0]), ("nowhere", [0])])]))
        say.ask(f"another partition v{version}", cls(dirs=[(here, [("replicated", [9])])]))
        say.ask(f"elsewhere v{version}", cls(dirs=[("/nowhere", [("replicated", [0]), ("nowhere", [0])])]))
        say.ask(f"twice v{version}", cls(dirs=[(here, [("replicated", [0])]), ("/x", [("replicated", [0])])]))
        say.ask(f"nothing v{version}", cls(dirs=[]))


SCRIPTS = [
    api_versions,
    metadata,
    create_topics,
    delete_topics,
    create_partitions,
    describe_configs,
    alter_configs,
    broker_options,
    loggers,
    group_options,
    client_metrics,
    without_security,
    cluster,
    quotas,
    features,
    quorum,
    replica_log_dirs,
]
