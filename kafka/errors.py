"""Every error that the library raises, in one class tree by the action that an error needs.

::

    KafkaError                        (a RuntimeError)
    ├── RetriableError                trying again may help; the library does so within its timeouts
    │   ├── InvalidMetadataError      ... after metadata has been refreshed: leaders have moved
    │   └── InvalidCoordinatorError   ... after the coordinator has been looked up again
    ├── RejoinNeededError             this member must join its group again; the consumer does so
    ├── AbortableTransactionError     the application aborts the transaction and keeps its producer
    ├── FatalError                    this client is unusable: close it, and create a new one if that is right
    │   └── FatalTransactionError     ... of a transactional producer, which cannot abort either
    ├── FixNeededError                an operator must change configuration, rights or code; retrying does not help
    │   ├── KafkaConfigurationError
    │   ├── AuthenticationError
    │   └── AuthorizationError
    ├── OutcomeUnknownError           the operation failed, but may have taken effect
    ├── BrokerResponseError           a code that a broker sent: one class per code, each also in a family above
    │   └── UnknownError              code -1, and below it the codes that this release does not know
    └── KafkaProtocolError ...        errors that the client detects

Facts are attributes (``topic_partition``, ``node_id``, ``offset`` ...), given as keywords. Errors are values: equal
when class, arguments and facts are, hashable, and they survive pickling and copying with all their facts.

The block of broker errors is written by ``tools/generate_errors.py`` from the list in Kafka's own jar, which makes this
file long; the descriptions are in tools/errors/words.py. Old names are aliases, all of them in one place at the end.
"""

# ruff: noqa: N818 - names such as NoBrokersAvailable are what programs have imported since 1.0.

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from kafka._text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka.structs import OffsetAndMetadata, TopicPartition

_E = TypeVar("_E", bound="KafkaError")

_NO_FACTS: Final = frozenset({"results", "outcome_unknown"})


class KafkaError(RuntimeError):
    """The root of all errors of this library.

    Facts are passed as keywords and become attributes; a class accepts only the facts that it declares:

    >>> error = KafkaConnectionError("refused", node_id=1, host="b1", port=9092)
    >>> error.node_id, error.host, error.retriable
    (1, 'b1', True)
    >>> str(error)
    'refused (node_id=1, host=b1, port=9092)'
    >>> import pickle
    >>> pickle.loads(pickle.dumps(error)) == error
    True
    """

    retriable: ClassVar[bool] = False
    """Trying the same again may succeed."""
    invalid_metadata: ClassVar[bool] = False
    """The client's metadata is out of date and must be refreshed first."""
    outcome_unknown: bool = False
    """The operation may have taken effect although it failed."""

    topic_partition: TopicPartition | None = None
    """The partition concerned, where there is one."""
    node_id: int | str | None = None
    """The broker concerned, where there is one."""
    results: Any = None
    """The results for all items of a `KafkaAdminClient` call that failed for some of them."""

    def __init__(self, *args: object, **facts: object) -> None:
        super().__init__(*args)
        for name, value in facts.items():
            # A misspelled fact would be missing from the log.
            if not hasattr(self, name):
                raise TypeError(f"{type(self).__name__} has no fact called {name!r}")
            setattr(self, name, value)

    @property
    def facts(self) -> dict[str, Any]:
        """The given facts, in their order."""
        return {k: value for k, value in vars(self).items() if k not in _NO_FACTS and not k.startswith("__")}

    def __str__(self) -> str:
        return printable(self._with_facts(self._text() or type(self).__name__))

    def _text(self) -> str:
        # Some have first what programs for kafka-python and aiokafka take from `args[0]`, and the text behind it.
        last = self.args[-1] if len(self.args) == 2 and not isinstance(self.args[0], str) else None
        return last if isinstance(last, str) else super().__str__()

    def _with_facts(self, text: str) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.facts.items() if value is not None)
        return f"{text} ({shown})" if shown else text

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.args == other.args and self.facts == other.facts

    def __hash__(self) -> int:
        # Arguments may be unhashable (a dict of offsets); equal errors have equal classes, which is enough.
        return hash(type(self))

    def __reduce__(self) -> tuple[object, ...]:
        # Not through __init__, whose signature a subclass may narrow.
        return _rebuild, (type(self), self.args, vars(self).copy())


def _rebuild(cls: type[_E], args: tuple[object, ...], state: Mapping[str, object]) -> _E:
    error = cls.__new__(cls)
    error.args = args
    vars(error).update(state)
    return error


# Families, by the action that they need


class RetriableError(KafkaError):
    """Trying again may help. The library retries until the timeout of the call is used up."""

    retriable = True


class InvalidMetadataError(RetriableError):
    """Trying again may help once metadata has been refreshed."""

    invalid_metadata = True


class InvalidCoordinatorError(RetriableError):
    """Trying again may help once the coordinator of the group or transaction has been looked up again."""


class RejoinNeededError(KafkaError):
    """This member is no longer part of its group's current generation and must join again."""


class AbortableTransactionError(KafkaError):
    """The transaction cannot be committed. Call ``abort_transaction()``; the producer is usable after that."""


class FatalError(KafkaError):
    """This client object is no longer usable. Close it."""


class FatalTransactionError(FatalError):
    """The transactional producer is no longer usable, and cannot abort either. Close it."""


class FixNeededError(KafkaError):
    """An operator must change configuration, permissions or code; trying again does not help."""


class OutcomeUnknownError(KafkaError):
    """The operation failed from the client's view, but the broker may have carried it out.

    A record whose future ends in this error is written once or not at all. All other errors of a producer's future
    say that the record is not in the log.
    """

    outcome_unknown = True


# Error codes of brokers

kafka_errors: dict[int, type[BrokerResponseError]] = {}
"""All known codes with their classes."""


class BrokerResponseError(KafkaError):
    """A broker answered with an error code. The subclasses are the codes.

    >>> error = for_code(29)("no rights on 'payments'", node_id=3)
    >>> error.errno, error.message, error.retriable
    (29, 'TOPIC_AUTHORIZATION_FAILED', False)
    >>> str(error)
    "[Error 29] TopicAuthorizationFailedError: no rights on 'payments' (node_id=3)"
    """

    errno: ClassVar[int | None] = None
    """The code on the wire; None for the classes that stand for several codes."""
    message: ClassVar[str | None] = None
    """Kafka's name of the code."""
    description: ClassVar[str] = "A broker answered with an error code."
    """One sentence on what the code means."""

    def __init_subclass__(cls, code: Code | None = None, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if code is not None:
            cls.errno, cls.message = code.value, code.name
            kafka_errors[code.value] = cls
        # Under -OO there are no docstrings; the code's name must do then.
        cls.description = cls.__doc__ or str(cls.message)

    @property
    def code(self) -> int:
        """The code on the wire."""
        return -1 if self.errno is None else self.errno

    def __str__(self) -> str:
        text = self._text() or self.description
        return printable(self._with_facts(f"[Error {self.code}] {type(self).__name__}: {text}"))


class AuthenticationError(FixNeededError):
    """The broker refuses the client's credentials, or the client does not trust the broker."""


class SslAuthenticationError(AuthenticationError):
    """The TLS handshake failed: an unknown authority, a wrong host name, or a certificate that was refused."""


class AuthorizationError(FixNeededError, BrokerResponseError):
    """The principal lacks a right."""


class RecordFacts(KafkaError):
    """Mix-in of the errors that are about one record or batch."""

    offset: int | None = None
    """The record's offset, or the first of the batch."""
    reason: str | None = None
    """The fault of the record or batch."""


# --- broker errors, written by tools/generate_errors.py: begin ---


class Code(IntEnum):
    """Every error code of the protocol under Kafka's name for it.

    >>> Code.NOT_LEADER_OR_FOLLOWER, int(Code.NOT_LEADER_OR_FOLLOWER)
    (<Code.NOT_LEADER_OR_FOLLOWER: 6>, 6)
    >>> for_code(Code.NOT_LEADER_OR_FOLLOWER)
    <class 'kafka.errors.NotLeaderOrFollowerError'>
    """

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133


class UnknownError(BrokerResponseError, code=Code.UNKNOWN_SERVER_ERROR):
    """The broker failed with an error that has no code; see its log."""

    outcome_unknown = True


class NoError(BrokerResponseError, code=Code.NONE):
    """No error: the request succeeded."""


class OffsetOutOfRangeError(BrokerResponseError, code=Code.OFFSET_OUT_OF_RANGE):
    """The offset lies before the start or beyond the end of the partition's log."""


class CorruptRecordError(RetriableError, RecordFacts, BrokerResponseError, code=Code.CORRUPT_MESSAGE):
    """A record or batch is damaged: its checksum, size or layout is wrong."""


class UnknownTopicOrPartitionError(InvalidMetadataError, BrokerResponseError, code=Code.UNKNOWN_TOPIC_OR_PARTITION):
    """The broker does not have this topic or partition, or not yet."""


class InvalidFetchRequestError(BrokerResponseError, code=Code.INVALID_FETCH_SIZE):
    """The size in the fetch request is not valid."""


class LeaderNotAvailableError(InvalidMetadataError, BrokerResponseError, code=Code.LEADER_NOT_AVAILABLE):
    """The partition has no leader at the moment; an election is under way."""


class NotLeaderOrFollowerError(InvalidMetadataError, BrokerResponseError, code=Code.NOT_LEADER_OR_FOLLOWER):
    """The broker is no longer the leader, or not a replica, of the partition."""


class RequestTimedOutError(RetriableError, BrokerResponseError, code=Code.REQUEST_TIMED_OUT):
    """The broker could not finish the request in the time given; it may still take effect."""

    outcome_unknown = True


class BrokerNotAvailableError(BrokerResponseError, code=Code.BROKER_NOT_AVAILABLE):
    """The broker that the request needs is down."""


class ReplicaNotAvailableError(InvalidMetadataError, BrokerResponseError, code=Code.REPLICA_NOT_AVAILABLE):
    """A replica of the partition is not available on this broker."""


class MessageSizeTooLargeError(BrokerResponseError, code=Code.MESSAGE_TOO_LARGE):
    """The batch is larger than the topic or the broker accepts (max.message.bytes)."""


class StaleControllerEpochError(BrokerResponseError, code=Code.STALE_CONTROLLER_EPOCH):
    """The cluster's controller has moved to another node."""


class OffsetMetadataTooLargeError(BrokerResponseError, code=Code.OFFSET_METADATA_TOO_LARGE):
    """The metadata text of an offset commit is longer than the broker accepts."""


class NetworkExceptionError(InvalidMetadataError, BrokerResponseError, code=Code.NETWORK_EXCEPTION):
    """The connection was lost before the response arrived; the request may have taken effect."""

    outcome_unknown = True


class CoordinatorLoadInProgressError(RetriableError, BrokerResponseError, code=Code.COORDINATOR_LOAD_IN_PROGRESS):
    """The coordinator is still loading its state and cannot respond yet."""


class CoordinatorNotAvailableError(InvalidCoordinatorError, BrokerResponseError, code=Code.COORDINATOR_NOT_AVAILABLE):
    """No coordinator is available for this group or transaction at the moment."""


class NotCoordinatorError(InvalidCoordinatorError, BrokerResponseError, code=Code.NOT_COORDINATOR):
    """The broker is not, or no longer, the coordinator."""


class InvalidTopicError(FixNeededError, BrokerResponseError, code=Code.INVALID_TOPIC_EXCEPTION):
    """The topic's name is not valid, or the operation is not allowed on this topic."""


class RecordListTooLargeError(FixNeededError, BrokerResponseError, code=Code.RECORD_LIST_TOO_LARGE):
    """The batch is larger than a whole log segment of the topic."""


class NotEnoughReplicasError(RetriableError, BrokerResponseError, code=Code.NOT_ENOUGH_REPLICAS):
    """Fewer replicas are in sync than min.insync.replicas requires; nothing was written."""


class NotEnoughReplicasAfterAppendError(
    RetriableError, BrokerResponseError, code=Code.NOT_ENOUGH_REPLICAS_AFTER_APPEND
):
    """The records were written, but too few replicas were in sync to confirm them."""

    outcome_unknown = True


class InvalidRequiredAcksError(FixNeededError, BrokerResponseError, code=Code.INVALID_REQUIRED_ACKS):
    """The broker does not know this value of acks."""


class IllegalGenerationError(RejoinNeededError, BrokerResponseError, code=Code.ILLEGAL_GENERATION):
    """The request has another generation than the group's current one."""


class InconsistentGroupProtocolError(FixNeededError, BrokerResponseError, code=Code.INCONSISTENT_GROUP_PROTOCOL):
    """This member shares no assignor or protocol type with the rest of its group."""


class InvalidGroupIdError(FixNeededError, BrokerResponseError, code=Code.INVALID_GROUP_ID):
    """The group id is empty or otherwise not acceptable."""


class UnknownMemberIdError(RejoinNeededError, BrokerResponseError, code=Code.UNKNOWN_MEMBER_ID):
    """The coordinator does not know this member; it was removed from the group or never joined."""


class InvalidSessionTimeoutError(FixNeededError, BrokerResponseError, code=Code.INVALID_SESSION_TIMEOUT):
    """The session timeout is outside the range that the broker allows."""


class RebalanceInProgressError(RejoinNeededError, BrokerResponseError, code=Code.REBALANCE_IN_PROGRESS):
    """The group is rebalancing; members must join it again."""


class InvalidCommitOffsetSizeError(BrokerResponseError, code=Code.INVALID_COMMIT_OFFSET_SIZE):
    """The offset commit is too large to be stored."""


class TopicAuthorizationFailedError(AuthorizationError, code=Code.TOPIC_AUTHORIZATION_FAILED):
    """This principal has no permission for this operation on the topic."""


class GroupAuthorizationFailedError(AuthorizationError, code=Code.GROUP_AUTHORIZATION_FAILED):
    """This principal has no permission for this operation on the group."""


class ClusterAuthorizationFailedError(AuthorizationError, code=Code.CLUSTER_AUTHORIZATION_FAILED):
    """This principal has no permission for this operation on the cluster."""


class InvalidTimestampError(BrokerResponseError, code=Code.INVALID_TIMESTAMP):
    """A record's timestamp is too far from the broker's clock for this topic."""


class UnsupportedSaslMechanismError(AuthenticationError, BrokerResponseError, code=Code.UNSUPPORTED_SASL_MECHANISM):
    """The broker does not offer this SASL mechanism on this listener."""


class IllegalSaslStateError(AuthenticationError, BrokerResponseError, code=Code.ILLEGAL_SASL_STATE):
    """The request does not fit the current step of the SASL exchange."""


class UnsupportedVersionError(FixNeededError, BrokerResponseError, code=Code.UNSUPPORTED_VERSION):
    """The broker does not have this version of the request, or lacks the feature."""


class TopicAlreadyExistsError(BrokerResponseError, code=Code.TOPIC_ALREADY_EXISTS):
    """A topic with this name already exists."""


class InvalidPartitionsError(FixNeededError, BrokerResponseError, code=Code.INVALID_PARTITIONS):
    """The number of partitions is not acceptable."""


class InvalidReplicationFactorError(FixNeededError, BrokerResponseError, code=Code.INVALID_REPLICATION_FACTOR):
    """The replication factor is below one or above the number of brokers."""


class InvalidReplicationAssignmentError(FixNeededError, BrokerResponseError, code=Code.INVALID_REPLICA_ASSIGNMENT):
    """The list of replicas given for a partition is not acceptable."""


class InvalidConfigurationError(FixNeededError, BrokerResponseError, code=Code.INVALID_CONFIG):
    """A configuration entry has an unknown name or a value that is not acceptable."""


class NotControllerError(InvalidMetadataError, BrokerResponseError, code=Code.NOT_CONTROLLER):
    """The broker is not the cluster's controller."""


class InvalidRequestError(BrokerResponseError, code=Code.INVALID_REQUEST):
    """The broker finds the request malformed or contradictory."""


class UnsupportedForMessageFormatError(FixNeededError, BrokerResponseError, code=Code.UNSUPPORTED_FOR_MESSAGE_FORMAT):
    """The topic's message format is too old for this request."""


class PolicyViolationError(FixNeededError, BrokerResponseError, code=Code.POLICY_VIOLATION):
    """A policy that the cluster's operator installed forbids this."""


class OutOfOrderSequenceNumberError(BrokerResponseError, code=Code.OUT_OF_ORDER_SEQUENCE_NUMBER):
    """A batch's sequence number is not the next one that the broker expects."""


class DuplicateSequenceNumberError(BrokerResponseError, code=Code.DUPLICATE_SEQUENCE_NUMBER):
    """The broker has already written a batch with this sequence number."""


class InvalidProducerEpochError(FatalError, BrokerResponseError, code=Code.INVALID_PRODUCER_EPOCH):
    """The producer's epoch is too old; a newer instance or an abort has raised it."""


class InvalidTxnStateError(BrokerResponseError, code=Code.INVALID_TXN_STATE):
    """The transaction is not in a state that allows this step."""


class InvalidProducerIdMappingError(FatalError, BrokerResponseError, code=Code.INVALID_PRODUCER_ID_MAPPING):
    """The producer id does not belong, or no longer, to this transactional id."""


class InvalidTransactionTimeoutError(FixNeededError, BrokerResponseError, code=Code.INVALID_TRANSACTION_TIMEOUT):
    """The transaction timeout is above the broker's limit (transaction.max.timeout.ms)."""


class ConcurrentTransactionsError(RetriableError, BrokerResponseError, code=Code.CONCURRENT_TRANSACTIONS):
    """The transaction's previous step is not finished yet."""


class TransactionCoordinatorFencedError(BrokerResponseError, code=Code.TRANSACTION_COORDINATOR_FENCED):
    """A transaction coordinator wrote markers after another one had taken over."""


class TransactionalIdAuthorizationFailedError(AuthorizationError, code=Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
    """This principal has no permission to use the transactional id."""


class SecurityDisabledError(FixNeededError, BrokerResponseError, code=Code.SECURITY_DISABLED):
    """The cluster has no authorizer, so there is nothing to list or to change."""


class OperationNotAttemptedError(BrokerResponseError, code=Code.OPERATION_NOT_ATTEMPTED):
    """The broker did not attempt this part because another part of the request failed."""


class KafkaStorageError(InvalidMetadataError, BrokerResponseError, code=Code.KAFKA_STORAGE_ERROR):
    """The broker's disk failed while it served the partition."""


class LogDirNotFoundError(BrokerResponseError, code=Code.LOG_DIR_NOT_FOUND):
    """The broker has no log directory of this name."""


class SaslAuthenticationFailedError(AuthenticationError, BrokerResponseError, code=Code.SASL_AUTHENTICATION_FAILED):
    """The broker refused the credentials."""


class UnknownProducerIdError(BrokerResponseError, code=Code.UNKNOWN_PRODUCER_ID):
    """The broker no longer has this producer id: its last records may have been deleted."""


class ReassignmentInProgressError(BrokerResponseError, code=Code.REASSIGNMENT_IN_PROGRESS):
    """The partition is already being moved to other brokers."""


class DelegationTokenAuthDisabledError(FixNeededError, BrokerResponseError, code=Code.DELEGATION_TOKEN_AUTH_DISABLED):
    """Delegation tokens are switched off on this cluster."""


class DelegationTokenNotFoundError(BrokerResponseError, code=Code.DELEGATION_TOKEN_NOT_FOUND):
    """The cluster does not know this delegation token."""


class DelegationTokenOwnerMismatchError(BrokerResponseError, code=Code.DELEGATION_TOKEN_OWNER_MISMATCH):
    """This principal neither owns the delegation token nor may renew it."""


class DelegationTokenRequestNotAllowedError(
    FixNeededError, BrokerResponseError, code=Code.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
):
    """Delegation token requests are not allowed on this kind of connection."""


class DelegationTokenAuthorizationFailedError(AuthorizationError, code=Code.DELEGATION_TOKEN_AUTHORIZATION_FAILED):
    """This principal has no permission for this delegation token."""


class DelegationTokenExpiredError(BrokerResponseError, code=Code.DELEGATION_TOKEN_EXPIRED):
    """The delegation token has expired."""


class InvalidPrincipalTypeError(BrokerResponseError, code=Code.INVALID_PRINCIPAL_TYPE):
    """The cluster does not know this type of principal."""


class NonEmptyGroupError(BrokerResponseError, code=Code.NON_EMPTY_GROUP):
    """The group still has members."""


class GroupIdNotFoundError(BrokerResponseError, code=Code.GROUP_ID_NOT_FOUND):
    """The coordinator has no group with this id."""


class FetchSessionIdNotFoundError(RetriableError, BrokerResponseError, code=Code.FETCH_SESSION_ID_NOT_FOUND):
    """The broker has dropped this fetch session; the client must open a new one."""


class InvalidFetchSessionEpochError(RetriableError, BrokerResponseError, code=Code.INVALID_FETCH_SESSION_EPOCH):
    """The fetch session's epoch is not the one that the broker expects."""


class ListenerNotFoundError(InvalidMetadataError, BrokerResponseError, code=Code.LISTENER_NOT_FOUND):
    """The partition's leader has no listener like the one that this client uses."""


class TopicDeletionDisabledError(FixNeededError, BrokerResponseError, code=Code.TOPIC_DELETION_DISABLED):
    """The cluster does not allow topics to be deleted."""


class FencedLeaderEpochError(InvalidMetadataError, BrokerResponseError, code=Code.FENCED_LEADER_EPOCH):
    """The leader epoch known to the client is older than the broker's."""


class UnknownLeaderEpochError(RetriableError, BrokerResponseError, code=Code.UNKNOWN_LEADER_EPOCH):
    """The leader epoch known to the client is newer than the broker's."""


class UnsupportedCompressionTypeError(BrokerResponseError, code=Code.UNSUPPORTED_COMPRESSION_TYPE):
    """The codec of the records is not one that this version of the request can carry."""


class StaleBrokerEpochError(BrokerResponseError, code=Code.STALE_BROKER_EPOCH):
    """The broker has registered again since the epoch in the request."""


class OffsetNotAvailableError(RetriableError, BrokerResponseError, code=Code.OFFSET_NOT_AVAILABLE):
    """A new leader does not know its high watermark yet."""


class MemberIdRequiredError(RejoinNeededError, BrokerResponseError, code=Code.MEMBER_ID_REQUIRED):
    """The coordinator has assigned a member id; the member must join again with it."""


class PreferredLeaderNotAvailableError(
    InvalidMetadataError, BrokerResponseError, code=Code.PREFERRED_LEADER_NOT_AVAILABLE
):
    """The preferred replica cannot become the leader now."""


class GroupMaxSizeReachedError(FixNeededError, BrokerResponseError, code=Code.GROUP_MAX_SIZE_REACHED):
    """The group has as many members as the broker allows."""


class FencedInstanceIdError(FatalError, BrokerResponseError, code=Code.FENCED_INSTANCE_ID):
    """Another consumer with the same group_instance_id has taken this member's place."""


class EligibleLeadersNotAvailableError(
    InvalidMetadataError, BrokerResponseError, code=Code.ELIGIBLE_LEADERS_NOT_AVAILABLE
):
    """No replica that could become the leader is available."""


class ElectionNotNeededError(InvalidMetadataError, BrokerResponseError, code=Code.ELECTION_NOT_NEEDED):
    """The partition already has the leader that the election would choose."""


class NoReassignmentInProgressError(BrokerResponseError, code=Code.NO_REASSIGNMENT_IN_PROGRESS):
    """The partition is not being moved, so there is nothing to cancel."""


class GroupSubscribedToTopicError(BrokerResponseError, code=Code.GROUP_SUBSCRIBED_TO_TOPIC):
    """Offsets cannot be deleted while members of the group are subscribed to the topic."""


class InvalidRecordError(BrokerResponseError, code=Code.INVALID_RECORD):
    """The broker refused a record, for example a record without a key in a compacted topic."""


class UnstableOffsetCommitError(RetriableError, BrokerResponseError, code=Code.UNSTABLE_OFFSET_COMMIT):
    """A transaction that commits offsets for the partition is still open."""


class ThrottlingQuotaExceededError(RetriableError, BrokerResponseError, code=Code.THROTTLING_QUOTA_EXCEEDED):
    """The quota of changes to topics is used up for now."""


class ProducerFencedError(FatalError, BrokerResponseError, code=Code.PRODUCER_FENCED):
    """A newer producer with the same transactional id has taken over."""


class ResourceNotFoundError(BrokerResponseError, code=Code.RESOURCE_NOT_FOUND):
    """Something that the request refers to does not exist."""


class DuplicateResourceError(BrokerResponseError, code=Code.DUPLICATE_RESOURCE):
    """The request names the same thing twice."""


class UnacceptableCredentialError(FixNeededError, BrokerResponseError, code=Code.UNACCEPTABLE_CREDENTIAL):
    """The credential does not meet the cluster's rules."""


class InconsistentVoterSetError(BrokerResponseError, code=Code.INCONSISTENT_VOTER_SET):
    """Sender and receiver of a quorum request disagree about the voters."""


class InvalidUpdateVersionError(BrokerResponseError, code=Code.INVALID_UPDATE_VERSION):
    """The version given for the update is not acceptable."""


class FeatureUpdateFailedError(BrokerResponseError, code=Code.FEATURE_UPDATE_FAILED):
    """The cluster could not change its finalized features."""


class PrincipalDeserializationFailureError(BrokerResponseError, code=Code.PRINCIPAL_DESERIALIZATION_FAILURE):
    """A forwarded request carried a principal that the controller cannot read."""


class SnapshotNotFoundError(BrokerResponseError, code=Code.SNAPSHOT_NOT_FOUND):
    """The snapshot asked for does not exist."""


class PositionOutOfRangeError(BrokerResponseError, code=Code.POSITION_OUT_OF_RANGE):
    """The position lies outside the snapshot."""


class UnknownTopicIdError(InvalidMetadataError, BrokerResponseError, code=Code.UNKNOWN_TOPIC_ID):
    """The broker does not have a topic with this id, or not yet."""


class DuplicateBrokerRegistrationError(BrokerResponseError, code=Code.DUPLICATE_BROKER_REGISTRATION):
    """Another broker runs under this id."""


class BrokerIdNotRegisteredError(BrokerResponseError, code=Code.BROKER_ID_NOT_REGISTERED):
    """No broker is registered under this id."""


class InconsistentTopicIdError(InvalidMetadataError, BrokerResponseError, code=Code.INCONSISTENT_TOPIC_ID):
    """The partition's log has another topic id, for example after the topic was created again."""


class InconsistentClusterIdError(BrokerResponseError, code=Code.INCONSISTENT_CLUSTER_ID):
    """The request was meant for another cluster."""


class TransactionalIdNotFoundError(BrokerResponseError, code=Code.TRANSACTIONAL_ID_NOT_FOUND):
    """The coordinator does not have this transactional id."""


class FetchSessionTopicIdError(RetriableError, BrokerResponseError, code=Code.FETCH_SESSION_TOPIC_ID_ERROR):
    """The fetch session mixes topic names and topic ids."""


class IneligibleReplicaError(BrokerResponseError, code=Code.INELIGIBLE_REPLICA):
    """The request adds a replica to the in-sync set that is not eligible for it."""


class NewLeaderElectedError(BrokerResponseError, code=Code.NEW_LEADER_ELECTED):
    """The change was made, but the partition has another leader now."""


class OffsetMovedToTieredStorageError(BrokerResponseError, code=Code.OFFSET_MOVED_TO_TIERED_STORAGE):
    """The offset is in remote storage only."""


class FencedMemberEpochError(RejoinNeededError, BrokerResponseError, code=Code.FENCED_MEMBER_EPOCH):
    """The coordinator has fenced this member; it must give up its partitions and join again."""


class UnreleasedInstanceIdError(BrokerResponseError, code=Code.UNRELEASED_INSTANCE_ID):
    """Another member still holds this group_instance_id."""


class UnsupportedAssignorError(FixNeededError, BrokerResponseError, code=Code.UNSUPPORTED_ASSIGNOR):
    """The coordinator does not have the requested assignor."""


class StaleMemberEpochError(BrokerResponseError, code=Code.STALE_MEMBER_EPOCH):
    """The member's epoch is too old; the response to its next heartbeat has the new one."""


class MismatchedEndpointTypeError(BrokerResponseError, code=Code.MISMATCHED_ENDPOINT_TYPE):
    """The request was sent to a broker but is meant for a controller, or the reverse."""


class UnsupportedEndpointTypeError(BrokerResponseError, code=Code.UNSUPPORTED_ENDPOINT_TYPE):
    """Requests of this kind cannot be sent to this kind of node yet."""


class UnknownControllerIdError(BrokerResponseError, code=Code.UNKNOWN_CONTROLLER_ID):
    """No controller has this id."""


class UnknownSubscriptionIdError(BrokerResponseError, code=Code.UNKNOWN_SUBSCRIPTION_ID):
    """The telemetry subscription is unknown or has been replaced."""


class TelemetryTooLargeError(BrokerResponseError, code=Code.TELEMETRY_TOO_LARGE):
    """The metrics pushed are more than the broker accepts at once."""


class InvalidRegistrationError(BrokerResponseError, code=Code.INVALID_REGISTRATION):
    """The controller refused a broker's registration."""


class TransactionAbortableError(AbortableTransactionError, BrokerResponseError, code=Code.TRANSACTION_ABORTABLE):
    """The transaction must be aborted; the producer is usable after that."""


class InvalidRecordStateError(BrokerResponseError, code=Code.INVALID_RECORD_STATE):
    """The record can no longer be acknowledged, for example because its lock has expired."""


class ShareSessionNotFoundError(RetriableError, BrokerResponseError, code=Code.SHARE_SESSION_NOT_FOUND):
    """The broker has dropped this share session; the client must open a new one."""


class InvalidShareSessionEpochError(RetriableError, BrokerResponseError, code=Code.INVALID_SHARE_SESSION_EPOCH):
    """The share session's epoch is not the one that the broker expects."""


class FencedStateEpochError(BrokerResponseError, code=Code.FENCED_STATE_EPOCH):
    """The state of the share group has moved to a newer epoch."""


class InvalidVoterKeyError(BrokerResponseError, code=Code.INVALID_VOTER_KEY):
    """The voter's key differs from the key of the replica that received the request."""


class DuplicateVoterError(BrokerResponseError, code=Code.DUPLICATE_VOTER):
    """The replica is a voter already."""


class VoterNotFoundError(BrokerResponseError, code=Code.VOTER_NOT_FOUND):
    """The replica is not one of the voters."""


class InvalidRegularExpressionError(FixNeededError, BrokerResponseError, code=Code.INVALID_REGULAR_EXPRESSION):
    """The broker cannot compile the pattern; brokers use RE2's syntax."""


class RebootstrapRequiredError(BrokerResponseError, code=Code.REBOOTSTRAP_REQUIRED):
    """The client's metadata is too old; the client must start again from its bootstrap servers."""


class StreamsInvalidTopologyError(BrokerResponseError, code=Code.STREAMS_INVALID_TOPOLOGY):
    """The streams topology is not acceptable."""


class StreamsInvalidTopologyEpochError(BrokerResponseError, code=Code.STREAMS_INVALID_TOPOLOGY_EPOCH):
    """The epoch of the streams topology is not acceptable."""


class StreamsTopologyFencedError(BrokerResponseError, code=Code.STREAMS_TOPOLOGY_FENCED):
    """The streams topology has been replaced by a newer one."""


class ShareSessionLimitReachedError(RetriableError, BrokerResponseError, code=Code.SHARE_SESSION_LIMIT_REACHED):
    """The broker holds as many share sessions as it allows."""


# --- broker errors, written by tools/generate_errors.py: end ---


class IncompatibleBrokerVersion(UnsupportedVersionError):
    """The broker is too old for what was asked of the client."""


class UnrecognizedBrokerError(UnknownError):
    """A code that this release of the library does not know. ``errno`` is the code that came.

    >>> error = for_code(9999)("while fetching")
    >>> isinstance(error, UnknownError), error.errno
    (True, 9999)
    """

    message = "UNRECOGNIZED"

    def __reduce__(self) -> tuple[object, ...]:
        if type(self) is UnrecognizedBrokerError:
            return super().__reduce__()
        # The class was made for the code and cannot be found by its name.
        return _rebuild_unrecognized, (self.errno, self.args, vars(self).copy())


def _rebuild_unrecognized(code: int, args: tuple[object, ...], state: Mapping[str, object]) -> KafkaError:
    return _rebuild(for_code(code), args, state)


def for_code(error_code: int) -> type[BrokerResponseError]:
    """The class for a code that a broker sent.

    >>> for_code(3)
    <class 'kafka.errors.UnknownTopicOrPartitionError'>
    """
    return kafka_errors.get(error_code) or _unrecognized(error_code)


# Bounded, so that a peer that invents codes cannot fill the memory with classes.
@lru_cache(maxsize=128)
def _unrecognized(code: int) -> type[BrokerResponseError]:
    doc = f"The broker answered with code {code}, which this release does not know."
    return type("UnrecognizedBrokerError", (UnrecognizedBrokerError,), {"errno": code, "__doc__": doc})


def check_error(response: Any) -> None:
    """Raise the error of a response of the legacy client: an exception, or a response with a code in ``error``.

    >>> check_error(KafkaTimeoutError("no reply"))
    Traceback (most recent call last):
    kafka.errors.KafkaTimeoutError: no reply
    """
    if isinstance(response, Exception):
        raise response
    if response.error:
        raise for_code(response.error)(response)


# Errors that the client detects: use and configuration


class IllegalArgumentError(FixNeededError, ValueError, AssertionError):
    """A call was given an argument that it cannot accept. An AssertionError too, as in kafka-python's manual."""


class IllegalStateError(FixNeededError, AssertionError):
    """A call is not allowed in the present state of the object."""


class ClientClosedError(IllegalStateError):
    """The client has been closed."""


class ForkedClientError(IllegalStateError):
    """The client was made before the process forked; its sockets and threads belong to the parent."""


class KafkaConfigurationError(FixNeededError):
    """A configuration option is unknown, or its value is not acceptable."""

    option: str | None = None
    """The option concerned."""

    def _with_facts(self, text: str) -> str:
        return text  # which names the option


class UnsupportedCodecError(FixNeededError):
    """A compression codec is unknown, or the package that brings it is not installed."""

    codec: str | None = None
    """The codec concerned."""


class SerializationError(KafkaError):
    """A key or value could not be turned into bytes, or back."""


class RecordDeserializationError(RecordFacts, SerializationError):
    """A deserializer raised on a record that was fetched; its exception is the ``__cause__``.

    The consumer's position stays on the record: ``consumer.seek(error.topic_partition, error.offset + 1)`` steps over.
    """

    topic_partition: TopicPartition
    offset: int
    origin: str | None = None
    """``'key'`` or ``'value'``: what could not be read."""
    key_bytes: bytes | None = None
    value_bytes: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None

    def _with_facts(self, text: str) -> str:
        # The bytes may be megabytes; they are for the program, not for the log.
        short = {"topic_partition": self.topic_partition, "offset": self.offset, "origin": self.origin}
        return f"{text} ({', '.join(f'{name}={value}' for name, value in short.items())})"


# Network


class KafkaConnectionError(InvalidMetadataError):
    """The connection to a broker could not be made or was lost."""

    outcome_unknown = True

    host: str | None = None
    port: int | None = None


class NodeNotReadyError(RetriableError):
    """The broker is not connected, or its connection is not ready for requests."""


class UnknownBrokerIdError(InvalidMetadataError, AssertionError):
    """No broker of this id is known."""


class NoBrokersAvailable(InvalidMetadataError):
    """No bootstrap server could be reached. ``attempts`` lists each address tried and why it failed."""

    attempts: Sequence[tuple[str, BaseException | str]] = ()

    def _with_facts(self, text: str) -> str:
        tried = "; ".join(f"{address}: {reason}" for address, reason in self.attempts)
        return f"{text} [{tried}]" if tried else text


class MetadataEmptyBrokerList(RetriableError):
    """A metadata reply listed no brokers, as one that is starting may do."""


class StaleMetadata(InvalidMetadataError):
    """The metadata at hand does not have what is needed."""


class TooManyInFlightRequests(RetriableError):
    """As many requests wait for replies on the connection as its configuration allows."""


class UnrecognizedBrokerVersion(FixNeededError):
    """The broker's version could not be determined."""


class KafkaTimeoutError(RetriableError):
    """The time allowed for an operation is used up."""


class OutcomeUnknownTimeoutError(OutcomeUnknownError, KafkaTimeoutError):
    """The time is used up after the request had been sent: it may have taken effect."""


class BufferExhaustedError(KafkaTimeoutError):
    """The producer's ``buffer_memory`` stayed full for ``max_block_ms``."""


class Cancelled(RetriableError):
    """The operation was given up before it ended, as by ``close()``."""


class WakeupError(KafkaError):
    """A blocking call was interrupted by ``wakeup()``."""


class QuotaViolationError(KafkaError):
    """A metric is beyond the bound of its quota."""


# Protocol and records


class KafkaProtocolError(KafkaError):
    """Bytes or values do not fit the protocol."""

    message_name: str | None = None
    """The message concerned, such as ``FetchResponse``."""
    field: str | None = None
    """The field concerned, as a path from the message down."""
    version: int | None = None
    """The version of the message."""

    def _with_facts(self, text: str) -> str:
        return text  # says where in words already, as ``FetchResponse[12].responses[0].topic``


class CorrelationIdError(RetriableError, KafkaProtocolError):
    """A reply does not belong to the oldest request in flight."""


class UnsupportedFieldError(UnsupportedVersionError, KafkaProtocolError):
    """A field is set that the chosen version of the message cannot carry."""


class InvalidReceiveError(KafkaProtocolError):
    """A frame announces a size that is negative or above the limit."""


class RecordTooLargeError(RecordFacts, FixNeededError, MessageSizeTooLargeError):
    """A record does not fit ``max_request_size``, or on old brokers the size of a fetch."""

    __str__ = KafkaError.__str__  # no broker answered


# Consumers and producers


class CommitFailedError(KafkaError):
    """Offsets were not committed because the group has moved on: the partitions belong to others now.

    Process fewer records per poll (``max_poll_records``) or allow more time (``max_poll_interval_ms``).
    """


class NoOffsetForPartitionError(KafkaError):
    """A partition has no committed offset, and ``auto_offset_reset`` is ``'none'``."""


class LogTruncationError(RecordFacts):
    """The log was cut behind the consumer's position by a change of leader. ``divergent_offsets`` says where."""

    divergent_offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None


class TransactionAbortedError(KafkaError):
    """The transaction of this record was aborted. It may be in the log, where readers of committed records skip it."""


class TransactionOutcomeUnknownError(FatalTransactionError, OutcomeUnknownError):
    """Whether the transaction was committed cannot be found out any more. All of it was, or nothing."""


# Legacy clients (SimpleClient and its kin)


class KafkaUnavailableError(KafkaError):
    """No broker answered."""


class FailedPayloadsError(KafkaError):
    """Some payloads of a request failed; ``payload`` is what was not delivered."""

    payload: Any = None

    def __init__(self, payload: object = None, *args: object, **facts: object) -> None:
        super().__init__(*args, **facts)
        self.payload = payload


class AsyncProducerQueueFull(KafkaError):
    """The queue of an asynchronous SimpleProducer is full; ``failed_msgs`` were not taken."""

    failed_msgs: Any = ()

    def __init__(self, failed_msgs: object = (), *args: object, **facts: object) -> None:
        super().__init__(*args, **facts)
        self.failed_msgs = failed_msgs


class BufferUnderflowError(KafkaProtocolError):
    """A message ends before its last field."""


class ConsumerFetchSizeTooSmall(KafkaError):
    """A message does not fit the fetch size of a SimpleConsumer."""


class ConsumerNoMoreData(KafkaError):
    """A SimpleConsumer has reached the end of its partitions."""


class ConsumerTimeout(KafkaError):
    """No message came within the time of a legacy consumer's iterator."""


class ProducerClosed(ClientClosedError):
    """An `AIOKafkaProducer` was used after its ``stop()``."""


class ConsumerStoppedError(Exception):
    """An `AIOKafkaConsumer` was used, or waited for records, when it was stopped.

    Not a `KafkaError`: a loop that logs these errors and reads again ends when its consumer is stopped.
    """


class IllegalOperation(Exception):
    """A method of an asyncio client that its options do not allow, such as a commit without a group."""


# Old names. The first column is what programs of 1.x to 3.x may import.

AuthenticationFailedError = AuthenticationError
AuthenticationMethodNotSupported = UnsupportedSaslMechanismError
ChecksumError = CorruptRecordError
ConnectionError = KafkaConnectionError  # noqa: A001
CorruptMessageError = CorruptRecordError
CorruptRecordException = CorruptRecordError
GroupCoordinatorNotAvailableError = CoordinatorNotAvailableError
GroupLoadInProgressError = CoordinatorLoadInProgressError
InvalidConfigError = InvalidConfigurationError
InvalidFetchSizeError = InvalidFetchRequestError
InvalidMessageError = CorruptRecordError
InvalidReplicaAssignmentError = InvalidReplicationAssignmentError
InvalidTopicExceptionError = InvalidTopicError
MessageTooLargeError = MessageSizeTooLargeError
NoBrokersError = NoBrokersAvailable
NotCoordinatorForGroupError = NotCoordinatorError
NotLeaderForPartitionError = NotLeaderOrFollowerError
ProtocolError = KafkaProtocolError
StaleLeaderEpochCodeError = NetworkExceptionError
UnknownServerError = UnknownError

# The names that programs for aiokafka import from its errors.

ConcurrentTransactions = ConcurrentTransactionsError
DelegationTokenAuthDisabled = DelegationTokenAuthDisabledError
DelegationTokenAuthorizationFailed = DelegationTokenAuthorizationFailedError
DelegationTokenExpired = DelegationTokenExpiredError
DelegationTokenNotFound = DelegationTokenNotFoundError
DelegationTokenOwnerMismatch = DelegationTokenOwnerMismatchError
DelegationTokenRequestNotAllowed = DelegationTokenRequestNotAllowedError
DuplicateSequenceNumber = DuplicateSequenceNumberError
FetchSessionIdNotFound = FetchSessionIdNotFoundError
GroupIdNotFound = GroupIdNotFoundError
InvalidFetchSessionEpoch = InvalidFetchSessionEpochError
InvalidPrincipalType = InvalidPrincipalTypeError
InvalidProducerEpoch = InvalidProducerEpochError
InvalidProducerIdMapping = InvalidProducerIdMappingError
InvalidTransactionTimeout = InvalidTransactionTimeoutError
InvalidTxnState = InvalidTxnStateError
ListenerNotFound = ListenerNotFoundError
LogDirNotFound = LogDirNotFoundError
MemberIdRequired = MemberIdRequiredError
NonEmptyGroup = NonEmptyGroupError
OperationNotAttempted = OperationNotAttemptedError
OutOfOrderSequenceNumber = OutOfOrderSequenceNumberError
ProducerFenced = ProducerFencedError
ReassignmentInProgress = ReassignmentInProgressError
SaslAuthenticationFailed = SaslAuthenticationFailedError
SecurityDisabled = SecurityDisabledError
TransactionCoordinatorFenced = TransactionCoordinatorFencedError
TransactionalIdAuthorizationFailed = TransactionalIdAuthorizationFailedError
UnknownProducerId = UnknownProducerIdError

RETRY_BACKOFF_ERROR_TYPES: tuple[type[KafkaError], ...] = (
    KafkaUnavailableError,
    LeaderNotAvailableError,
    KafkaConnectionError,
    FailedPayloadsError,
)
RETRY_REFRESH_ERROR_TYPES: tuple[type[KafkaError], ...] = (
    NotLeaderOrFollowerError,
    UnknownTopicOrPartitionError,
    LeaderNotAvailableError,
    KafkaConnectionError,
)
RETRY_ERROR_TYPES: tuple[type[KafkaError], ...] = RETRY_BACKOFF_ERROR_TYPES + RETRY_REFRESH_ERROR_TYPES

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        if name == "KafkaException":  # an AttributeError's text does not come out of `from ... import`
            raise ImportError(f"cannot import name {name!r} from {__name__!r}: use KafkaError", name=__name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
