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

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
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


class UnknownError(BrokerResponseError):
    """The broker failed with an error that has no code; see its log."""

    errno = -1
    message = "UNKNOWN_SERVER_ERROR"
    outcome_unknown = True


class NoError(BrokerResponseError):
    """No error: the request succeeded."""

    errno = 0
    message = "NONE"


class OffsetOutOfRangeError(BrokerResponseError):
    """The offset lies before the start or beyond the end of the partition's log."""

    errno = 1
    message = "OFFSET_OUT_OF_RANGE"


class CorruptRecordError(RetriableError, RecordFacts, BrokerResponseError):
    """A record or batch is damaged: its checksum, size or layout is wrong."""

    errno = 2
    message = "CORRUPT_MESSAGE"


class UnknownTopicOrPartitionError(InvalidMetadataError, BrokerResponseError):
    """The broker does not have this topic or partition, or not yet."""

    errno = 3
    message = "UNKNOWN_TOPIC_OR_PARTITION"


class InvalidFetchRequestError(BrokerResponseError):
    """The size in the fetch request is not valid."""

    errno = 4
    message = "INVALID_FETCH_SIZE"


class LeaderNotAvailableError(InvalidMetadataError, BrokerResponseError):
    """The partition has no leader at the moment; an election is under way."""

    errno = 5
    message = "LEADER_NOT_AVAILABLE"


class NotLeaderOrFollowerError(InvalidMetadataError, BrokerResponseError):
    """The broker is no longer the leader, or not a replica, of the partition."""

    errno = 6
    message = "NOT_LEADER_OR_FOLLOWER"


class RequestTimedOutError(RetriableError, BrokerResponseError):
    """The broker could not finish the request in the time given; it may still take effect."""

    errno = 7
    message = "REQUEST_TIMED_OUT"
    outcome_unknown = True


class BrokerNotAvailableError(BrokerResponseError):
    """The broker that the request needs is down."""

    errno = 8
    message = "BROKER_NOT_AVAILABLE"


class ReplicaNotAvailableError(InvalidMetadataError, BrokerResponseError):
    """A replica of the partition is not available on this broker."""

    errno = 9
    message = "REPLICA_NOT_AVAILABLE"


class MessageSizeTooLargeError(BrokerResponseError):
    """The batch is larger than the topic or the broker accepts (max.message.bytes)."""

    errno = 10
    message = "MESSAGE_TOO_LARGE"


class StaleControllerEpochError(BrokerResponseError):
    """The cluster's controller has moved to another node."""

    errno = 11
    message = "STALE_CONTROLLER_EPOCH"


class OffsetMetadataTooLargeError(BrokerResponseError):
    """The metadata text of an offset commit is longer than the broker accepts."""

    errno = 12
    message = "OFFSET_METADATA_TOO_LARGE"


class NetworkExceptionError(InvalidMetadataError, BrokerResponseError):
    """The connection was lost before the response arrived; the request may have taken effect."""

    errno = 13
    message = "NETWORK_EXCEPTION"
    outcome_unknown = True


class CoordinatorLoadInProgressError(RetriableError, BrokerResponseError):
    """The coordinator is still loading its state and cannot respond yet."""

    errno = 14
    message = "COORDINATOR_LOAD_IN_PROGRESS"


class CoordinatorNotAvailableError(InvalidCoordinatorError, BrokerResponseError):
    """No coordinator is available for this group or transaction at the moment."""

    errno = 15
    message = "COORDINATOR_NOT_AVAILABLE"


class NotCoordinatorError(InvalidCoordinatorError, BrokerResponseError):
    """The broker is not, or no longer, the coordinator."""

    errno = 16
    message = "NOT_COORDINATOR"


class InvalidTopicError(FixNeededError, BrokerResponseError):
    """The topic's name is not valid, or the operation is not allowed on this topic."""

    errno = 17
    message = "INVALID_TOPIC_EXCEPTION"


class RecordListTooLargeError(FixNeededError, BrokerResponseError):
    """The batch is larger than a whole log segment of the topic."""

    errno = 18
    message = "RECORD_LIST_TOO_LARGE"


class NotEnoughReplicasError(RetriableError, BrokerResponseError):
    """Fewer replicas are in sync than min.insync.replicas requires; nothing was written."""

    errno = 19
    message = "NOT_ENOUGH_REPLICAS"


class NotEnoughReplicasAfterAppendError(RetriableError, BrokerResponseError):
    """The records were written, but too few replicas were in sync to confirm them."""

    errno = 20
    message = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    outcome_unknown = True


class InvalidRequiredAcksError(FixNeededError, BrokerResponseError):
    """The broker does not know this value of acks."""

    errno = 21
    message = "INVALID_REQUIRED_ACKS"


class IllegalGenerationError(RejoinNeededError, BrokerResponseError):
    """The request has another generation than the group's current one."""

    errno = 22
    message = "ILLEGAL_GENERATION"


class InconsistentGroupProtocolError(FixNeededError, BrokerResponseError):
    """This member shares no assignor or protocol type with the rest of its group."""

    errno = 23
    message = "INCONSISTENT_GROUP_PROTOCOL"


class InvalidGroupIdError(FixNeededError, BrokerResponseError):
    """The group id is empty or otherwise not acceptable."""

    errno = 24
    message = "INVALID_GROUP_ID"


class UnknownMemberIdError(RejoinNeededError, BrokerResponseError):
    """The coordinator does not know this member; it was removed from the group or never joined."""

    errno = 25
    message = "UNKNOWN_MEMBER_ID"


class InvalidSessionTimeoutError(FixNeededError, BrokerResponseError):
    """The session timeout is outside the range that the broker allows."""

    errno = 26
    message = "INVALID_SESSION_TIMEOUT"


class RebalanceInProgressError(RejoinNeededError, BrokerResponseError):
    """The group is rebalancing; members must join it again."""

    errno = 27
    message = "REBALANCE_IN_PROGRESS"


class InvalidCommitOffsetSizeError(BrokerResponseError):
    """The offset commit is too large to be stored."""

    errno = 28
    message = "INVALID_COMMIT_OFFSET_SIZE"


class TopicAuthorizationFailedError(AuthorizationError):
    """This principal has no permission for this operation on the topic."""

    errno = 29
    message = "TOPIC_AUTHORIZATION_FAILED"


class GroupAuthorizationFailedError(AuthorizationError):
    """This principal has no permission for this operation on the group."""

    errno = 30
    message = "GROUP_AUTHORIZATION_FAILED"


class ClusterAuthorizationFailedError(AuthorizationError):
    """This principal has no permission for this operation on the cluster."""

    errno = 31
    message = "CLUSTER_AUTHORIZATION_FAILED"


class InvalidTimestampError(BrokerResponseError):
    """A record's timestamp is too far from the broker's clock for this topic."""

    errno = 32
    message = "INVALID_TIMESTAMP"


class UnsupportedSaslMechanismError(AuthenticationError, BrokerResponseError):
    """The broker does not offer this SASL mechanism on this listener."""

    errno = 33
    message = "UNSUPPORTED_SASL_MECHANISM"


class IllegalSaslStateError(AuthenticationError, BrokerResponseError):
    """The request does not fit the current step of the SASL exchange."""

    errno = 34
    message = "ILLEGAL_SASL_STATE"


class UnsupportedVersionError(FixNeededError, BrokerResponseError):
    """The broker does not have this version of the request, or lacks the feature."""

    errno = 35
    message = "UNSUPPORTED_VERSION"


class TopicAlreadyExistsError(BrokerResponseError):
    """A topic with this name already exists."""

    errno = 36
    message = "TOPIC_ALREADY_EXISTS"


class InvalidPartitionsError(FixNeededError, BrokerResponseError):
    """The number of partitions is not acceptable."""

    errno = 37
    message = "INVALID_PARTITIONS"


class InvalidReplicationFactorError(FixNeededError, BrokerResponseError):
    """The replication factor is below one or above the number of brokers."""

    errno = 38
    message = "INVALID_REPLICATION_FACTOR"


class InvalidReplicationAssignmentError(FixNeededError, BrokerResponseError):
    """The list of replicas given for a partition is not acceptable."""

    errno = 39
    message = "INVALID_REPLICA_ASSIGNMENT"


class InvalidConfigurationError(FixNeededError, BrokerResponseError):
    """A configuration entry has an unknown name or a value that is not acceptable."""

    errno = 40
    message = "INVALID_CONFIG"


class NotControllerError(InvalidMetadataError, BrokerResponseError):
    """The broker is not the cluster's controller."""

    errno = 41
    message = "NOT_CONTROLLER"


class InvalidRequestError(BrokerResponseError):
    """The broker finds the request malformed or contradictory."""

    errno = 42
    message = "INVALID_REQUEST"


class UnsupportedForMessageFormatError(FixNeededError, BrokerResponseError):
    """The topic's message format is too old for this request."""

    errno = 43
    message = "UNSUPPORTED_FOR_MESSAGE_FORMAT"


class PolicyViolationError(FixNeededError, BrokerResponseError):
    """A policy that the cluster's operator installed forbids this."""

    errno = 44
    message = "POLICY_VIOLATION"


class OutOfOrderSequenceNumberError(BrokerResponseError):
    """A batch's sequence number is not the next one that the broker expects."""

    errno = 45
    message = "OUT_OF_ORDER_SEQUENCE_NUMBER"


class DuplicateSequenceNumberError(BrokerResponseError):
    """The broker has already written a batch with this sequence number."""

    errno = 46
    message = "DUPLICATE_SEQUENCE_NUMBER"


class InvalidProducerEpochError(FatalError, BrokerResponseError):
    """The producer's epoch is too old; a newer instance or an abort has raised it."""

    errno = 47
    message = "INVALID_PRODUCER_EPOCH"


class InvalidTxnStateError(BrokerResponseError):
    """The transaction is not in a state that allows this step."""

    errno = 48
    message = "INVALID_TXN_STATE"


class InvalidProducerIdMappingError(FatalError, BrokerResponseError):
    """The producer id does not belong, or no longer, to this transactional id."""

    errno = 49
    message = "INVALID_PRODUCER_ID_MAPPING"


class InvalidTransactionTimeoutError(FixNeededError, BrokerResponseError):
    """The transaction timeout is above the broker's limit (transaction.max.timeout.ms)."""

    errno = 50
    message = "INVALID_TRANSACTION_TIMEOUT"


class ConcurrentTransactionsError(RetriableError, BrokerResponseError):
    """The transaction's previous step is not finished yet."""

    errno = 51
    message = "CONCURRENT_TRANSACTIONS"


class TransactionCoordinatorFencedError(BrokerResponseError):
    """A transaction coordinator wrote markers after another one had taken over."""

    errno = 52
    message = "TRANSACTION_COORDINATOR_FENCED"


class TransactionalIdAuthorizationFailedError(AuthorizationError):
    """This principal has no permission to use the transactional id."""

    errno = 53
    message = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


class SecurityDisabledError(FixNeededError, BrokerResponseError):
    """The cluster has no authorizer, so there is nothing to list or to change."""

    errno = 54
    message = "SECURITY_DISABLED"


class OperationNotAttemptedError(BrokerResponseError):
    """The broker did not attempt this part because another part of the request failed."""

    errno = 55
    message = "OPERATION_NOT_ATTEMPTED"


class KafkaStorageError(InvalidMetadataError, BrokerResponseError):
    """The broker's disk failed while it served the partition."""

    errno = 56
    message = "KAFKA_STORAGE_ERROR"


class LogDirNotFoundError(BrokerResponseError):
    """The broker has no log directory of this name."""

    errno = 57
    message = "LOG_DIR_NOT_FOUND"


class SaslAuthenticationFailedError(AuthenticationError, BrokerResponseError):
    """The broker refused the credentials."""

    errno = 58
    message = "SASL_AUTHENTICATION_FAILED"


class UnknownProducerIdError(BrokerResponseError):
    """The broker no longer has this producer id: its last records may have been deleted."""

    errno = 59
    message = "UNKNOWN_PRODUCER_ID"


class ReassignmentInProgressError(BrokerResponseError):
    """The partition is already being moved to other brokers."""

    errno = 60
    message = "REASSIGNMENT_IN_PROGRESS"


class DelegationTokenAuthDisabledError(FixNeededError, BrokerResponseError):
    """Delegation tokens are switched off on this cluster."""

    errno = 61
    message = "DELEGATION_TOKEN_AUTH_DISABLED"


class DelegationTokenNotFoundError(BrokerResponseError):
    """The cluster does not know this delegation token."""

    errno = 62
    message = "DELEGATION_TOKEN_NOT_FOUND"


class DelegationTokenOwnerMismatchError(BrokerResponseError):
    """This principal neither owns the delegation token nor may renew it."""

    errno = 63
    message = "DELEGATION_TOKEN_OWNER_MISMATCH"


class DelegationTokenRequestNotAllowedError(FixNeededError, BrokerResponseError):
    """Delegation token requests are not allowed on this kind of connection."""

    errno = 64
    message = "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"


class DelegationTokenAuthorizationFailedError(AuthorizationError):
    """This principal has no permission for this delegation token."""

    errno = 65
    message = "DELEGATION_TOKEN_AUTHORIZATION_FAILED"


class DelegationTokenExpiredError(BrokerResponseError):
    """The delegation token has expired."""

    errno = 66
    message = "DELEGATION_TOKEN_EXPIRED"


class InvalidPrincipalTypeError(BrokerResponseError):
    """The cluster does not know this type of principal."""

    errno = 67
    message = "INVALID_PRINCIPAL_TYPE"


class NonEmptyGroupError(BrokerResponseError):
    """The group still has members."""

    errno = 68
    message = "NON_EMPTY_GROUP"


class GroupIdNotFoundError(BrokerResponseError):
    """The coordinator has no group with this id."""

    errno = 69
    message = "GROUP_ID_NOT_FOUND"


class FetchSessionIdNotFoundError(RetriableError, BrokerResponseError):
    """The broker has dropped this fetch session; the client must open a new one."""

    errno = 70
    message = "FETCH_SESSION_ID_NOT_FOUND"


class InvalidFetchSessionEpochError(RetriableError, BrokerResponseError):
    """The fetch session's epoch is not the one that the broker expects."""

    errno = 71
    message = "INVALID_FETCH_SESSION_EPOCH"


class ListenerNotFoundError(InvalidMetadataError, BrokerResponseError):
    """The partition's leader has no listener like the one that this client uses."""

    errno = 72
    message = "LISTENER_NOT_FOUND"


class TopicDeletionDisabledError(FixNeededError, BrokerResponseError):
    """The cluster does not allow topics to be deleted."""

    errno = 73
    message = "TOPIC_DELETION_DISABLED"


class FencedLeaderEpochError(InvalidMetadataError, BrokerResponseError):
    """The leader epoch known to the client is older than the broker's."""

    errno = 74
    message = "FENCED_LEADER_EPOCH"


class UnknownLeaderEpochError(RetriableError, BrokerResponseError):
    """The leader epoch known to the client is newer than the broker's."""

    errno = 75
    message = "UNKNOWN_LEADER_EPOCH"


class UnsupportedCompressionTypeError(BrokerResponseError):
    """The codec of the records is not one that this version of the request can carry."""

    errno = 76
    message = "UNSUPPORTED_COMPRESSION_TYPE"


class StaleBrokerEpochError(BrokerResponseError):
    """The broker has registered again since the epoch in the request."""

    errno = 77
    message = "STALE_BROKER_EPOCH"


class OffsetNotAvailableError(RetriableError, BrokerResponseError):
    """A new leader does not know its high watermark yet."""

    errno = 78
    message = "OFFSET_NOT_AVAILABLE"


class MemberIdRequiredError(RejoinNeededError, BrokerResponseError):
    """The coordinator has assigned a member id; the member must join again with it."""

    errno = 79
    message = "MEMBER_ID_REQUIRED"


class PreferredLeaderNotAvailableError(InvalidMetadataError, BrokerResponseError):
    """The preferred replica cannot become the leader now."""

    errno = 80
    message = "PREFERRED_LEADER_NOT_AVAILABLE"


class GroupMaxSizeReachedError(FixNeededError, BrokerResponseError):
    """The group has as many members as the broker allows."""

    errno = 81
    message = "GROUP_MAX_SIZE_REACHED"


class FencedInstanceIdError(FatalError, BrokerResponseError):
    """Another consumer with the same group_instance_id has taken this member's place."""

    errno = 82
    message = "FENCED_INSTANCE_ID"


class EligibleLeadersNotAvailableError(InvalidMetadataError, BrokerResponseError):
    """No replica that could become the leader is available."""

    errno = 83
    message = "ELIGIBLE_LEADERS_NOT_AVAILABLE"


class ElectionNotNeededError(InvalidMetadataError, BrokerResponseError):
    """The partition already has the leader that the election would choose."""

    errno = 84
    message = "ELECTION_NOT_NEEDED"


class NoReassignmentInProgressError(BrokerResponseError):
    """The partition is not being moved, so there is nothing to cancel."""

    errno = 85
    message = "NO_REASSIGNMENT_IN_PROGRESS"


class GroupSubscribedToTopicError(BrokerResponseError):
    """Offsets cannot be deleted while members of the group are subscribed to the topic."""

    errno = 86
    message = "GROUP_SUBSCRIBED_TO_TOPIC"


class InvalidRecordError(BrokerResponseError):
    """The broker refused a record, for example a record without a key in a compacted topic."""

    errno = 87
    message = "INVALID_RECORD"


class UnstableOffsetCommitError(RetriableError, BrokerResponseError):
    """A transaction that commits offsets for the partition is still open."""

    errno = 88
    message = "UNSTABLE_OFFSET_COMMIT"


class ThrottlingQuotaExceededError(RetriableError, BrokerResponseError):
    """The quota of changes to topics is used up for now."""

    errno = 89
    message = "THROTTLING_QUOTA_EXCEEDED"


class ProducerFencedError(FatalError, BrokerResponseError):
    """A newer producer with the same transactional id has taken over."""

    errno = 90
    message = "PRODUCER_FENCED"


class ResourceNotFoundError(BrokerResponseError):
    """Something that the request refers to does not exist."""

    errno = 91
    message = "RESOURCE_NOT_FOUND"


class DuplicateResourceError(BrokerResponseError):
    """The request names the same thing twice."""

    errno = 92
    message = "DUPLICATE_RESOURCE"


class UnacceptableCredentialError(FixNeededError, BrokerResponseError):
    """The credential does not meet the cluster's rules."""

    errno = 93
    message = "UNACCEPTABLE_CREDENTIAL"


class InconsistentVoterSetError(BrokerResponseError):
    """Sender and receiver of a quorum request disagree about the voters."""

    errno = 94
    message = "INCONSISTENT_VOTER_SET"


class InvalidUpdateVersionError(BrokerResponseError):
    """The version given for the update is not acceptable."""

    errno = 95
    message = "INVALID_UPDATE_VERSION"


class FeatureUpdateFailedError(BrokerResponseError):
    """The cluster could not change its finalized features."""

    errno = 96
    message = "FEATURE_UPDATE_FAILED"


class PrincipalDeserializationFailureError(BrokerResponseError):
    """A forwarded request carried a principal that the controller cannot read."""

    errno = 97
    message = "PRINCIPAL_DESERIALIZATION_FAILURE"


class SnapshotNotFoundError(BrokerResponseError):
    """The snapshot asked for does not exist."""

    errno = 98
    message = "SNAPSHOT_NOT_FOUND"


class PositionOutOfRangeError(BrokerResponseError):
    """The position lies outside the snapshot."""

    errno = 99
    message = "POSITION_OUT_OF_RANGE"


class UnknownTopicIdError(InvalidMetadataError, BrokerResponseError):
    """The broker does not have a topic with this id, or not yet."""

    errno = 100
    message = "UNKNOWN_TOPIC_ID"


class DuplicateBrokerRegistrationError(BrokerResponseError):
    """Another broker runs under this id."""

    errno = 101
    message = "DUPLICATE_BROKER_REGISTRATION"


class BrokerIdNotRegisteredError(BrokerResponseError):
    """No broker is registered under this id."""

    errno = 102
    message = "BROKER_ID_NOT_REGISTERED"


class InconsistentTopicIdError(InvalidMetadataError, BrokerResponseError):
    """The partition's log has another topic id, for example after the topic was created again."""

    errno = 103
    message = "INCONSISTENT_TOPIC_ID"


class InconsistentClusterIdError(BrokerResponseError):
    """The request was meant for another cluster."""

    errno = 104
    message = "INCONSISTENT_CLUSTER_ID"


class TransactionalIdNotFoundError(BrokerResponseError):
    """The coordinator does not have this transactional id."""

    errno = 105
    message = "TRANSACTIONAL_ID_NOT_FOUND"


class FetchSessionTopicIdError(RetriableError, BrokerResponseError):
    """The fetch session mixes topic names and topic ids."""

    errno = 106
    message = "FETCH_SESSION_TOPIC_ID_ERROR"


class IneligibleReplicaError(BrokerResponseError):
    """The request adds a replica to the in-sync set that is not eligible for it."""

    errno = 107
    message = "INELIGIBLE_REPLICA"


class NewLeaderElectedError(BrokerResponseError):
    """The change was made, but the partition has another leader now."""

    errno = 108
    message = "NEW_LEADER_ELECTED"


class OffsetMovedToTieredStorageError(BrokerResponseError):
    """The offset is in remote storage only."""

    errno = 109
    message = "OFFSET_MOVED_TO_TIERED_STORAGE"


class FencedMemberEpochError(RejoinNeededError, BrokerResponseError):
    """The coordinator has fenced this member; it must give up its partitions and join again."""

    errno = 110
    message = "FENCED_MEMBER_EPOCH"


class UnreleasedInstanceIdError(BrokerResponseError):
    """Another member still holds this group_instance_id."""

    errno = 111
    message = "UNRELEASED_INSTANCE_ID"


class UnsupportedAssignorError(FixNeededError, BrokerResponseError):
    """The coordinator does not have the requested assignor."""

    errno = 112
    message = "UNSUPPORTED_ASSIGNOR"


class StaleMemberEpochError(BrokerResponseError):
    """The member's epoch is too old; the response to its next heartbeat has the new one."""

    errno = 113
    message = "STALE_MEMBER_EPOCH"


class MismatchedEndpointTypeError(BrokerResponseError):
    """The request was sent to a broker but is meant for a controller, or the reverse."""

    errno = 114
    message = "MISMATCHED_ENDPOINT_TYPE"


class UnsupportedEndpointTypeError(BrokerResponseError):
    """Requests of this kind cannot be sent to this kind of node yet."""

    errno = 115
    message = "UNSUPPORTED_ENDPOINT_TYPE"


class UnknownControllerIdError(BrokerResponseError):
    """No controller has this id."""

    errno = 116
    message = "UNKNOWN_CONTROLLER_ID"


class UnknownSubscriptionIdError(BrokerResponseError):
    """The telemetry subscription is unknown or has been replaced."""

    errno = 117
    message = "UNKNOWN_SUBSCRIPTION_ID"


class TelemetryTooLargeError(BrokerResponseError):
    """The metrics pushed are more than the broker accepts at once."""

    errno = 118
    message = "TELEMETRY_TOO_LARGE"


class InvalidRegistrationError(BrokerResponseError):
    """The controller refused a broker's registration."""

    errno = 119
    message = "INVALID_REGISTRATION"


class TransactionAbortableError(AbortableTransactionError, BrokerResponseError):
    """The transaction must be aborted; the producer is usable after that."""

    errno = 120
    message = "TRANSACTION_ABORTABLE"


class InvalidRecordStateError(BrokerResponseError):
    """The record can no longer be acknowledged, for example because its lock has expired."""

    errno = 121
    message = "INVALID_RECORD_STATE"


class ShareSessionNotFoundError(RetriableError, BrokerResponseError):
    """The broker has dropped this share session; the client must open a new one."""

    errno = 122
    message = "SHARE_SESSION_NOT_FOUND"


class InvalidShareSessionEpochError(RetriableError, BrokerResponseError):
    """The share session's epoch is not the one that the broker expects."""

    errno = 123
    message = "INVALID_SHARE_SESSION_EPOCH"


class FencedStateEpochError(BrokerResponseError):
    """The state of the share group has moved to a newer epoch."""

    errno = 124
    message = "FENCED_STATE_EPOCH"


class InvalidVoterKeyError(BrokerResponseError):
    """The voter's key differs from the key of the replica that received the request."""

    errno = 125
    message = "INVALID_VOTER_KEY"


class DuplicateVoterError(BrokerResponseError):
    """The replica is a voter already."""

    errno = 126
    message = "DUPLICATE_VOTER"


class VoterNotFoundError(BrokerResponseError):
    """The replica is not one of the voters."""

    errno = 127
    message = "VOTER_NOT_FOUND"


class InvalidRegularExpressionError(FixNeededError, BrokerResponseError):
    """The broker cannot compile the pattern; brokers use RE2's syntax."""

    errno = 128
    message = "INVALID_REGULAR_EXPRESSION"


class RebootstrapRequiredError(BrokerResponseError):
    """The client's metadata is too old; the client must start again from its bootstrap servers."""

    errno = 129
    message = "REBOOTSTRAP_REQUIRED"


class StreamsInvalidTopologyError(BrokerResponseError):
    """The streams topology is not acceptable."""

    errno = 130
    message = "STREAMS_INVALID_TOPOLOGY"


class StreamsInvalidTopologyEpochError(BrokerResponseError):
    """The epoch of the streams topology is not acceptable."""

    errno = 131
    message = "STREAMS_INVALID_TOPOLOGY_EPOCH"


class StreamsTopologyFencedError(BrokerResponseError):
    """The streams topology has been replaced by a newer one."""

    errno = 132
    message = "STREAMS_TOPOLOGY_FENCED"


class ShareSessionLimitReachedError(RetriableError, BrokerResponseError):
    """The broker holds as many share sessions as it allows."""

    errno = 133
    message = "SHARE_SESSION_LIMIT_REACHED"


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


def _broker_errors(cls: type[BrokerResponseError] = BrokerResponseError) -> dict[int, type[BrokerResponseError]]:
    found = {} if cls.errno is None or "errno" not in vars(cls) else {cls.errno: cls}
    for subclass in cls.__subclasses__():
        found.update(_broker_errors(subclass))
    return found


kafka_errors: dict[int, type[BrokerResponseError]] = dict(sorted(_broker_errors().items()))
"""All known codes with their classes."""


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
