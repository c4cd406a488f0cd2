"""What is asked of both brokers with Kafka's own tools: invocation by invocation, in this order.

``{server}`` is the address of the cluster, ``{files}`` a directory with the files of ``FILES``, ``{log}`` the first
segment of a partition. Each line that a tool prints is compared; ``normalised`` says which parts of it cannot be the
same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = "consumer.group.ConsumerGroupCommand"
SHARES = "consumer.group.ShareGroupCommand"
STREAMS = "streams.StreamsGroupCommand"
REASSIGN = "reassign.ReassignPartitionsCommand"


@dataclass(frozen=True)
class Step:
    """One invocation of a tool."""

    tool: str
    words: tuple[str, ...]
    text: str = ""
    #: How to make what it prints comparable, beyond what all steps need, and why.
    also: Callable[[str], str] | None = None
    has_server: bool = True

    def __str__(self) -> str:
        return " ".join((self.tool.rpartition(".")[2], *self.words))

    @property
    def arguments(self) -> tuple[str, ...]:
        server = ("--bootstrap-server", "{server}") if self.has_server else ()
        # One tool wants its subcommand first.
        return (*self.words, *server) if self.tool == "ClusterTool" else (*server, *self.words)


def _steps(tool: str, *lines: str, also: Callable[[str], str] | None = None, has_server: bool = True) -> list[Step]:
    return [Step(tool, tuple(line.split()), also=also, has_server=has_server) for line in lines]


def _partitions(*rows: tuple[str, int, Any], key: str) -> str:
    parts = [{"topic": topic, "partition": index, key: value} for topic, index, value in rows]
    return json.dumps({"version": 1, "partitions": parts})


FILES: Final = {
    "delete.json": _partitions(("events", 0, 2), ("events", 1, -1), key="offset"),
    "delete-far.json": _partitions(("events", 0, 99999), key="offset"),
    "elect.json": json.dumps({"partitions": [{"topic": "events", "partition": 0}]}),
    "elect-missing.json": json.dumps({"partitions": [{"topic": "absent", "partition": 0}]}),
    "move.json": _partitions(("moved", 0, [2, 1]), ("moved", 1, [1]), key="replicas"),
    "move-missing.json": _partitions(("absent", 0, [1]), key="replicas"),
    "move-nowhere.json": _partitions(("moved", 0, [9]), key="replicas"),
    "topics.json": json.dumps({"version": 1, "topics": [{"topic": "moved"}]}),
    "reset.csv": "events,0,1\nevents,1,0\n",
    "reset-wrong.csv": "events,0\n",
    "options.properties": "retention.ms=123456\ncleanup.policy=compact\n",
    "empty.properties": "",
}


def sorted_lines(text: str) -> str:
    """Kafka lists in the order of hash maps."""
    return "\n".join(sorted(text.splitlines()))


def _without_measurements(text: str) -> str:
    """How fast it went."""
    return re.sub(r"[0-9.]+", "<n>", text)


def _without_speed(text: str) -> str:
    """How fast it went."""
    return re.sub(r"sent,.*", "sent", text)


def _rows_without_measurements(text: str) -> str:
    """The row of a performance test keeps the number of messages alone."""
    rows = [row.split(",") for row in text.splitlines()]
    return "\n".join(row[4] if len(row) > 4 and ":" in row[0] else ",".join(row) for row in rows)


def _events(text: str) -> str:
    """Events of the verifiable clients without times, rates and ids; how many batches there are is up to chance."""
    lines = text.replace("<time>", "0").splitlines()
    kinds = [json.loads(line) for line in lines if line.startswith("{")]
    counts = [event["count"] for event in kinds if event["name"] == "records_consumed"]
    # The events of single records are counted in the tool's data; the last ones may come when it has ended.
    names = sorted({event["name"] for event in kinds} - {"producer_send_success"})
    kept = ("sent", "acked", "target_throughput")
    totals = [{key: event[key] for key in kept} for event in kinds if event["name"] == "tool_data"]
    return json.dumps([names, sum(counts), totals])


def _dump(text: str) -> str:
    """A dump without times, sizes in memory and checksums, which depend on the times."""
    text = re.sub(r"(CreateTime|crc|position|size|headerKeys|deliveryCount|producerId): \S+", r"\1: <n>", text)
    return re.sub(r"Dumping .*", "Dumping <file>", text)


def _replication(text: str) -> str:
    """Nodes in any order; offsets and times of the metadata's log are those of the cluster."""
    rows = [re.split(r"\s*\t", line) for line in text.splitlines()]
    return "\n".join(sorted(f"{row[0].strip()} {row[1].strip()} {row[6:]}" for row in rows if len(row) > 6))


def _quorum(text: str) -> str:
    """Which controller leads, its epoch, and the offsets and times of the log differ between clusters."""
    names = "LeaderId|LeaderEpoch|HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs"
    text = re.sub(rf"({names}):\s+\S+", r"\1: <n>", text)
    return re.sub(r"CONTROLLER://\S+?\"", 'CONTROLLER://<address>"', text)


def _versions(text: str) -> str:
    """What each node offers, node by node in any order."""
    found = re.findall(r"\(id: (\d+).*?\) -> \((.*?)\n\)", text, re.DOTALL)
    # The APIs with which brokers keep the state of share groups are a difference that docs/broker.rst lists.
    absent = "\\w+ShareGroupState\\w*"
    return "\n".join(sorted(node + re.sub(rf"\t({absent})\(.*\n?", "", offer).rstrip(",") for node, offer in found))


def _dirs(text: str) -> str:
    """Directories are elsewhere, and segments of the internal topics are not looked at; brokers in any order."""
    if "{" not in text:
        return text
    found = json.loads(text[text.index("{") :])
    for broker in found["brokers"]:
        for directory in broker["logDirs"]:
            directory["logDir"] = "<directory>"
            directory["partitions"].sort(key=lambda one: one["partition"])
    found["brokers"].sort(key=lambda one: one["broker"])
    return text[: text.index("{")] + json.dumps(found)


def _plan(text: str) -> str:
    """Which brokers the plan proposes is up to chance."""
    return re.sub(r"\{\"version\".*", "<plan>", text)


def _members(text: str) -> str:
    """The members' ids."""
    return re.sub(r"console-\S+|-[0-9a-f]{8}-[0-9a-f-]{27}", "<member>", text)


_RESET: Final = (
    "--to-earliest",
    "--to-latest",
    "--to-current",
    "--to-offset 2",
    "--to-offset 99",
    "--shift-by 1",
    "--shift-by -1",
    "--shift-by -99",
    "--to-datetime 2000-01-01T00:00:00.000",
    "--to-datetime 2100-01-01T00:00:00.000Z",
    "--to-datetime yesterday",
    "--by-duration P1D",
    "--by-duration PT0S",
    "--by-duration soon",
    "--from-file {files}/reset.csv",
    "--from-file {files}/reset-wrong.csv",
)

TOPICS: Final = _steps(
    "TopicCommand",
    "--create --topic events --replica-assignment 1:2,2:1 --config retention.ms=86400000",
    "--create --topic events --replica-assignment 1:2,2:1",
    "--create --topic events --if-not-exists --partitions 1",
    "--create --topic with.dots --replica-assignment 1",
    "--create --topic with_dots --replica-assignment 1",
    "--create --topic bad --partitions 1 --replication-factor 3",
    "--create --topic bad --partitions 0",
    "--create --topic bad --config no.such=1 --replica-assignment 1",
    "--create --topic bad --config retention.ms=soon --replica-assignment 1",
    "--create --topic bad/name --replica-assignment 1",
    "--create --topic bad --replica-assignment 1:1",
    "--create --topic bad --replica-assignment 9",
    "--create --topic empty --replica-assignment 2",
    "--create --topic moved --replica-assignment 1,2",
    "--create --topic dumped --replica-assignment 1",
    "--create --topic load --replica-assignment 1",
    "--create --topic transacted --replica-assignment 1",
    "--list --exclude-internal",
    "--list --exclude-internal --topic ev.*",
    "--describe --topic events",
    "--describe --topic events|empty",
    "--describe --topic absent",
    "--describe --topic absent --if-exists",
    "--describe --topics-with-overrides",
    "--describe --under-replicated-partitions",
    "--describe --unavailable-partitions",
    "--describe --at-min-isr-partitions --topic events",
    "--describe --under-min-isr-partitions",
    "--alter --topic events --partitions 3 --replica-assignment 1:2,2:1,1:2",
    "--alter --topic events --partitions 2",
    "--alter --topic absent --partitions 2",
    "--alter --topic absent --partitions 2 --if-exists",
    "--delete --topic with.dots",
    "--delete --topic absent",
    "--delete --topic absent --if-exists",
    "--describe --exclude-internal",
    "--create",
    "--frobnicate",
)

CONFIGURATION: Final = _steps(
    CONFIGS,
    "--describe --topic events",
    "--describe --topic events --all",
    "--describe --topic absent",
    "--alter --topic events --add-config max.message.bytes=5000,cleanup.policy=[compact,delete]",
    "--alter --topic events --add-config no.such=1",
    "--alter --topic events --add-config retention.ms=soon",
    "--alter --topic events --delete-config max.message.bytes,cleanup.policy",
    "--alter --topic events --delete-config no.such",
    "--alter --topic empty --add-config-file {files}/options.properties",
    "--describe --entity-type topics --entity-name empty",
    "--describe --broker 1",
    "--describe --broker-defaults",
    "--alter --broker 1 --add-config leader.replication.throttled.rate=1000",
    "--alter --broker 1 --add-config num.network.threads=x",
    "--alter --broker 1 --add-config node.id=7",
    "--alter --broker-defaults --add-config log.cleaner.threads=2",
    "--alter --broker-defaults --add-config min.insync.replicas=2",
    "--describe --broker-defaults",
    "--describe --broker 1",
    "--describe --broker 99",
    "--alter --broker 1 --delete-config leader.replication.throttled.rate",
    "--alter --broker 1 --delete-config not.set",
    "--alter --broker-defaults --delete-config log.cleaner.threads",
    "--alter --broker-defaults --delete-config min.insync.replicas",
    "--alter --broker-defaults --add-config min.insync.replicas=1",
    "--alter --broker-logger 1 --add-config kafka.server.KafkaApis=DEBUG",
    "--alter --broker-logger 1 --add-config kafka.server.KafkaApis=LOUD",
    "--alter --broker-logger 1 --add-config no.such.Logger=INFO",
    "--alter --broker-logger 1 --delete-config kafka.server.KafkaApis",
    "--alter --group readers --add-config consumer.session.timeout.ms=50000",
    "--alter --group readers --add-config consumer.session.timeout.ms=5",
    "--describe --group readers",
    "--alter --group readers --delete-config consumer.session.timeout.ms",
    "--alter --client-metrics slow --add-config interval.ms=1000,metrics=org.apache.",
    "--alter --client-metrics slow --add-config interval.ms=1",
    "--describe --client-metrics slow",
    "--describe --entity-type client-metrics",
    "--alter --client-metrics slow --delete-config interval.ms,metrics",
    "--alter --user alice --add-config producer_byte_rate=1000,consumer_byte_rate=2000",
    "--alter --user alice --add-config producer_byte_rate=1000.5",
    "--alter --user alice --client app --add-config request_percentage=50.5",
    "--alter --user-defaults --add-config controller_mutation_rate=10",
    "--alter --client-defaults --add-config consumer_byte_rate=3000",
    "--alter --ip 127.0.0.1 --add-config connection_creation_rate=20",
    "--alter --ip 127.0.0.1 --add-config producer_byte_rate=20",
    "--describe --user alice",
    "--describe --user alice --client app",
    "--describe --user-defaults",
    "--describe --client-defaults",
    "--describe --ip 127.0.0.1",
    "--alter --user alice --delete-config producer_byte_rate,consumer_byte_rate",
    "--alter --user alice --client app --delete-config request_percentage",
    "--alter --user-defaults --delete-config controller_mutation_rate",
    "--alter --client-defaults --delete-config consumer_byte_rate",
    "--alter --ip 127.0.0.1 --delete-config connection_creation_rate",
    "--alter --user bob --add-config SCRAM-SHA-256=[iterations=8192,password=secret],SCRAM-SHA-512=[password=secret]",
    "--describe --user bob",
    "--alter --user bob --add-config SCRAM-SHA-256=[iterations=1,password=secret]",
    "--alter --user bob --delete-config SCRAM-SHA-512",
    "--alter --user bob --delete-config SCRAM-SHA-256",
    "--alter --user bob --delete-config SCRAM-SHA-256",
    "--describe --entity-type planets",
)

RECORDS: Final = [
    Step(
        "ConsoleProducer",
        ("--topic", "events", "--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        "".join(f"k{number}:v{number}\n" for number in range(10)),
    ),
    Step(
        "ConsoleProducer",
        ("--topic", "moved", "--sync", "--compression-codec", "gzip", "--reader-property", "parse.key=true"),
        "1\ta\n2\tb\n3\tc\n",
    ),
    *_steps("ConsoleProducer", "--topic bad/name"),
    Step("ConsoleProducer", ("--topic", "dumped", "--sync"), "one\ntwo\nthree\n"),
    *_steps(
        "consumer.ConsoleConsumer",
        "--topic events --from-beginning --max-messages 10 --group readers --formatter-property print.partition=true",
        "--topic events --partition 0 --offset 1 --max-messages 1 --formatter-property print.key=true",
        "--topic events --partition 1 --offset earliest --max-messages 1 --formatter-property print.offset=true",
        "--topic moved --from-beginning --max-messages 3 --isolation-level read_committed",
        # Long enough to join and commit on a busy machine: the group is described below.
        "--topic empty --timeout-ms 4000 --from-beginning --group never",
        "--topic events --offset 1",
        "--from-beginning",
        also=sorted_lines,
    ),
    *_steps(
        "GetOffsetShell",
        "--topic events",
        "--topic events --time earliest",
        "--topic events --time -1",
        "--topic events --time 0",
        "--topic events --time soon",
        "--topic events --partitions 0,1",
        "--topic-partitions events:0,moved:1-2 --time latest",
        "--topic absent",
        "--exclude-internal-topics",
    ),
    *_steps(
        "DeleteRecordsCommand",
        "--offset-json-file {files}/delete.json",
        "--offset-json-file {files}/delete-far.json",
    ),
    *_steps("GetOffsetShell", "--topic events --time earliest"),
]

GROUP_STEPS: Final = [
    *_steps(
        GROUPS,
        "--list",
        "--list --state",
        "--list --type",
        "--list --state Empty",
        "--list --type consumer",
        "--describe --group absent",
        "--describe --group readers --state --verbose",
        "--describe --group readers --members",
        "--describe --group readers --members --verbose",
        "--describe --group readers",
        "--describe --group readers --offsets",
        "--describe --all-groups",
        *(f"--reset-offsets --group readers --topic events --dry-run {how}" for how in _RESET),
        "--reset-offsets --group readers --topic events:0,1 --to-earliest --execute",
        "--reset-offsets --group readers --all-topics --shift-by 1 --execute",
        "--reset-offsets --group readers --topic events --to-latest --export",
        "--reset-offsets --group readers --topic events --to-latest --export --dry-run",
        "--reset-offsets --all-groups --topic events --to-earliest --export",
        "--reset-offsets --group readers --topic absent --to-earliest --execute",
        "--reset-offsets --group readers --topic events:9 --to-earliest --dry-run",
        "--reset-offsets --group fresh --topic events --to-earliest --execute",
        "--reset-offsets --group readers --to-earliest --execute",
        "--describe --group readers",
        "--describe --group fresh",
        "--delete-offsets --group readers --topic events:0",
        "--delete-offsets --group readers --topic absent",
        "--delete-offsets --group absent --topic events",
        "--delete --group fresh",
        "--delete --group absent",
        "--validate-regex ev.*",
        "--validate-regex (",
        also=sorted_lines,
    ),
    *_steps(
        "GroupsCommand",
        "--list",
        "--list --group-type classic",
        "--list --protocol share",
        "--list --consumer",
        also=sorted_lines,
    ),
    *_steps(
        SHARES,
        "--list",
        "--describe --group absent",
        "--reset-offsets --group sharers --topic events:0 --to-earliest --execute",
        "--list --state",
        "--describe --group sharers",
        "--describe --group sharers --state",
        "--describe --group sharers --members",
        "--reset-offsets --group sharers --topic events:0 --to-latest --dry-run",
        "--delete-offsets --group sharers --topic absent",
        "--delete-offsets --group sharers --topic events",
        "--delete --group sharers",
        "--delete --group absent",
        also=sorted_lines,
    ),
    *_steps(STREAMS, "--list", "--list --state", "--describe --group absent", "--delete --group absent"),
]

CLUSTER: Final = [
    *_steps(
        "DelegationTokenCommand",
        "--create --max-life-time-period -1 --command-config {files}/empty.properties",
        "--describe --command-config {files}/empty.properties",
        "--create",
    ),
    *_steps("AclCommand", "--list", "--add --allow-principal User:a --operation Read --topic t --force"),
    *_steps(
        REASSIGN,
        "--execute --reassignment-json-file {files}/move.json --throttle 100000",
        "--verify --reassignment-json-file {files}/move.json --preserve-throttles",
    ),
    *_steps(CONFIGS, "--describe --topic moved", "--describe --broker 1"),
    *_steps(
        REASSIGN,
        "--verify --reassignment-json-file {files}/move.json",
        "--list",
        "--cancel --reassignment-json-file {files}/move.json",
        "--execute --reassignment-json-file {files}/move-missing.json",
        "--execute --reassignment-json-file {files}/move-nowhere.json",
        "--execute",
    ),
    *_steps(REASSIGN, "--generate --topics-to-move-json-file {files}/topics.json --broker-list 1,2", also=_plan),
    *_steps(CONFIGS, "--describe --topic moved", "--describe --broker 1"),
    *_steps("TopicCommand", "--describe --topic moved"),
    *_steps(
        "LeaderElectionCommand",
        "--election-type preferred --topic events --partition 0",
        "--election-type preferred --topic moved --partition 0",
        "--election-type unclean --path-to-json-file {files}/elect.json",
        "--election-type preferred --path-to-json-file {files}/elect-missing.json",
        "--election-type preferred --topic absent --partition 0",
        "--election-type sometimes --all-topic-partitions",
    ),
    *_steps(
        "LogDirsCommand",
        "--describe --topic-list moved",
        "--describe --topic-list absent",
        "--describe --broker-list 1 --topic-list moved",
        "--describe --broker-list 9",
        also=_dirs,
    ),
    *_steps(
        "FeatureCommand",
        "describe",
        "upgrade --feature share.version=1",
        "upgrade --feature share.version=9",
        "upgrade --feature no.such=1",
        "downgrade --feature streams.version=0 --dry-run",
        "downgrade --feature streams.version=0",
        "upgrade --feature streams.version=1",
        "downgrade --metadata 4.2-IV0",
        "disable --feature group.version --dry-run",
        "upgrade --release-version 4.3-IV0",
        "version-mapping --release-version 4.2-IV1",
        "feature-dependencies --feature group.version=1",
    ),
    *_steps("MetadataQuorumCommand", "describe --status", also=_quorum),
    *_steps("MetadataQuorumCommand", "describe --replication", also=_replication),
    *_steps(
        "MetadataQuorumCommand",
        "remove-controller --controller-id 2 --controller-directory-id AAAAAAAAAAAAAAAAAAAABQ",
    ),
    *_steps(
        "ClientMetricsCommand",
        "--alter --name fast --interval 1000 --metrics org.apache. --match client_id=never",
        "--alter --name fast --interval 1",
        "--alter --name fast --match planet=earth",
        "--describe --name fast",
        "--describe",
        "--list",
        "--delete --name fast",
        "--delete --name absent",
        "--list",
    ),
    *_steps("ClusterTool", "cluster-id", "unregister --id 77"),
    *_steps("ClusterTool", "list-endpoints", also=sorted_lines),
    *_steps("BrokerApiVersionsCommand", "", also=_versions),
]

TRANSACTIONS: Final = [
    *_steps(
        "ProducerPerformance",
        "--topic transacted --num-records 200 --record-size 10 --throughput -1 --transactional-id tid"
        " --transaction-duration-ms 60000",  # one transaction, however slow the machine is
        also=_without_speed,
    ),
    *_steps(
        "TransactionsCommand",
        "list",
        "list --duration-filter 999999",
        "list --transactional-id-pattern no.*",
        "describe --transactional-id tid",
        "describe --transactional-id absent",
        "describe-producers --topic transacted --partition 0",
        "find-hanging --broker-id 1",
        "abort --topic transacted --partition 0 --start-offset 0",
        also=sorted_lines,
    ),
]

LOAD: Final = [
    *_steps(
        "ProducerPerformance",
        "--topic load --num-records 2000 --record-size 100 --throughput -1",
        "--topic load --num-records 10",
        also=_without_speed,
    ),
    *_steps("ConsumerPerformance", "--topic load --num-records 2000 --timeout 10000", also=_rows_without_measurements),
    *_steps("VerifiableProducer", "--topic load --max-messages 100 --acks -1", also=_events),
    *_steps(
        "VerifiableConsumer",
        *(
            f"--topic load --group-id verified-{protocol} --group-protocol {protocol} --max-messages 100"
            " --reset-policy earliest"
            for protocol in ("classic", "consumer")
        ),
        also=_events,
    ),
    *_steps(
        "EndToEndLatency",
        "--topic e2e --num-records 20 --producer-acks 1 --record-size 20",
        also=_without_measurements,
    ),
    *_steps(
        "DumpLogSegments",
        "--files {log}",
        "--files {log} --print-data-log",
        "--files {log} --deep-iteration --print-data-log",
        "--files {log} --skip-record-metadata --print-data-log",
        also=_dump,
        has_server=False,
    ),
    *_steps(
        "TopicCommand",
        "--delete --topic events",
        "--delete --topic moved",
        "--delete --topic empty|load|dumped|transacted|e2e",
        "--list --exclude-internal",
    ),
]

STEPS: Final[list[Step]] = [*TOPICS, *CONFIGURATION, *RECORDS, *GROUP_STEPS, *CLUSTER, *TRANSACTIONS, *LOAD]

#: What differs between any two clusters, and what stands for it. The order matters.
_CHANCE: Final = (
    (r"127\.0\.0\.1:\d+", "<address>"),
    (r"(127\.0\.0\.1)(\s+)\d{4,5}\b", r"\1\2<port>"),  # where a tool has columns for them
    # The console consumer adds up to five random digits; with five of them the name looks like an id.
    (r"console-consumer-\d+[ \t]*", "<group>  "),
    (r"(?<![0-9A-Za-z_-])[0-9A-Za-z_-]{22}(?![0-9A-Za-z_-])", "<id>"),  # may begin or end with a dash
    (r"\b1[5-9]\d{11}\b", "<time>"),
    (r"\[\d{4}-\d\d-\d\d .*?\]", "[<time>]"),
    (r"<address>\s+\(\d\)", "<address> (<node>)"),  # which node coordinates is up to hashes
    (r'"log_dirs":\[.*?\]', '"log_dirs":<directories>'),
    # The node that coordinates a transaction, and the producer's id: Kafka's nodes have blocks of ids.
    (r"^tid\s+\d\s+\d+", "tid <node> <id>"),
    (r"^\d\s+tid\s+\d+", "<node> tid <id>"),
    (r"Local controller \d", "Local controller <node>"),  # which one leads
    (r"\[ReplicaKey.*?\]", "[<voters>]"),  # in any order
    (r"\(id: \d+ rack", "(id: <node> rack"),  # which node coordinates or answers is up to hashes
    (r"Epoch: \d+", "Epoch: <n>"),  # changes of features, and of leaders
    (r"\s+$", ""),
    (r"[ \t]{2,}", "  "),  # columns are as wide as their widest value
    (r"(<time>  )\d+$", r"\1<n>"),  # how long a transaction has run
    (r"^\d+(\s+\d+\s+-?\d+\s+-?\d+\s+<time>)", r"<id>\1"),  # of a producer
    (r"^\s*at .*\n?", ""),  # stack traces of the tool
)


def normalised(step: Step, text: str) -> str:
    """Return what a tool printed without what cannot be the same."""
    for pattern, word in _CHANCE:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    if step.also is not None and text.strip():
        text = step.also(text)
    return text.strip()


def words_of(step: Step, places: dict[str, str]) -> list[str]:
    """Return the arguments with the addresses and files of a cluster."""
    return [re.sub(r"\{(server|files|log)\}", lambda found: places[found[1]], word) for word in step.arguments]
