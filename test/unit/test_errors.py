"""kafka.errors: all classes keep the same promises, and the generated block is what the generator writes."""

import copy
import json
import pickle
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from kafka import errors
from kafka.errors import (
    AuthorizationError,
    BrokerResponseError,
    FixNeededError,
    InvalidMetadataError,
    KafkaError,
    KafkaTimeoutError,
    OutcomeUnknownError,
    RetriableError,
    UnknownError,
    UnrecognizedBrokerError,
    for_code,
    kafka_errors,
)
from kafka.structs import TopicPartition

ROOT = Path(__file__).parents[2]
CLASSES = sorted(
    {c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, KafkaError)}, key=lambda c: c.__name__
)
TABLE = json.loads((ROOT / "tools" / "errors" / "kafka-4.3.1.json").read_text(encoding="utf-8"))


class TestEveryClass:
    def test_is_documented_and_a_runtime_error(self):
        for cls in CLASSES:
            assert issubclass(cls, RuntimeError)
            assert cls.__doc__
            assert cls.__doc__ != cls.__mro__[1].__doc__

    def test_survives_pickle_and_copy_with_its_facts(self):
        for cls in CLASSES:
            error = cls("what happened", topic_partition=TopicPartition("t", 1), node_id=3)
            for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
                assert type(other) is type(error)
                assert other == error
                assert other.args == error.args
                assert other.topic_partition == TopicPartition("t", 1)
                assert other.node_id == 3
                assert str(other) == str(error)

    def test_is_hashable_whatever_its_arguments_are(self):
        for cls in CLASSES:
            assert len({cls({"a": 1}), cls({"a": 1}), cls({"a": 2})}) == 2

    def test_can_be_made_without_arguments(self):
        for cls in CLASSES:
            assert cls.__name__.removesuffix("Error") in str(cls()) or cls().args

    def test_retriable_follows_the_tree(self):
        for cls in CLASSES:
            assert cls.retriable == issubclass(cls, RetriableError)
            assert cls.invalid_metadata == issubclass(cls, InvalidMetadataError)
            if cls.invalid_metadata:
                assert cls.retriable

    def test_refuses_a_fact_that_it_does_not_declare(self):
        for cls in CLASSES:
            with pytest.raises(TypeError, match="no fact called 'tpoic'"):
                cls("x", tpoic="t")


class TestEveryCode:
    def test_has_its_class(self):
        for entry in TABLE:
            cls = for_code(entry["code"])
            assert cls.errno == entry["code"]
            assert cls().code == entry["code"]
            assert cls.message == entry["name"]
            assert getattr(errors, cls.__name__) is cls
            assert cls.description.endswith(".")
            assert str(cls()) == f"[Error {entry['code']}] {cls.__name__}: {cls.description}"

    def test_is_retriable_where_the_java_client_says_so(self):
        for entry in TABLE:
            assert for_code(entry["code"]).retriable == ("RetriableException" in entry["ancestors"])

    def test_is_an_authorization_error_where_the_java_client_says_so(self):
        for entry in TABLE:
            assert issubclass(for_code(entry["code"]), AuthorizationError) == (
                "AuthorizationException" in entry["ancestors"]
            )


def test_codes_are_complete_and_without_gaps():
    assert sorted(kafka_errors) == list(range(-1, max(kafka_errors) + 1))
    assert len(kafka_errors) >= 135


def test_codes_above_127_have_classes():
    assert for_code(129) is errors.RebootstrapRequiredError


@pytest.mark.parametrize("code", [998, 999, -2, 32767, -32768])
def test_unknown_codes_keep_the_code(code):
    error = for_code(code)("while fetching", node_id=1)
    assert isinstance(error, UnknownError)
    assert isinstance(error, UnrecognizedBrokerError)
    assert error.errno == error.code == code
    assert str(error) == f"[Error {code}] UnrecognizedBrokerError: while fetching (node_id=1)"
    again = pickle.loads(pickle.dumps(error))
    assert again == error
    assert again.errno == code
    assert for_code(code) is for_code(code)


def test_a_peer_that_invents_codes_cannot_fill_the_memory():
    for code in range(1000, 2000):
        for_code(code)
    assert errors._unrecognized.cache_info().currsize <= 128


def test_equality_needs_the_same_class_arguments_and_facts():
    assert KafkaTimeoutError("a") == KafkaTimeoutError("a")
    assert KafkaTimeoutError("a") != KafkaTimeoutError("b")
    assert KafkaTimeoutError("a", node_id=1) != KafkaTimeoutError("a", node_id=2)
    assert KafkaTimeoutError("a") != KafkaError("a")
    assert KafkaError("a") != "a"


def test_notes_survive_pickling():
    error = KafkaError("a")
    error.__notes__ = ["while testing"]
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while testing"]
    assert str(error) == "a"


def test_outcome_unknown_marks_what_may_have_taken_effect():
    marked = {cls for cls in CLASSES if cls.outcome_unknown}
    assert marked == {
        OutcomeUnknownError,
        errors.OutcomeUnknownTimeoutError,
        errors.KafkaConnectionError,
        errors.RequestTimedOutError,
        errors.NetworkExceptionError,
        errors.NotEnoughReplicasAfterAppendError,
        errors.TransactionOutcomeUnknownError,
        errors.UnknownError,
        errors.UnrecognizedBrokerError,
    }


def test_no_brokers_available_lists_each_address_and_reason():
    error = errors.NoBrokersAvailable(
        "no bootstrap server answered", attempts=[("b1:9092", "refused"), ("b2:9092", "x")]
    )
    assert str(error) == "no bootstrap server answered [b1:9092: refused; b2:9092: x]"


def test_a_deserialization_error_does_not_print_the_bytes():
    error = errors.RecordDeserializationError(
        "bad json", topic_partition=TopicPartition("t", 0), offset=7, origin="value", value_bytes=b"x" * 10_000
    )
    assert len(str(error)) < 200
    assert error.value_bytes == b"x" * 10_000


def test_a_corrupt_record_says_where_and_why():
    error = errors.CorruptRecordError(
        "this batch is damaged", topic_partition=TopicPartition("t", 1), offset=12, reason="checksum"
    )
    text = "this batch is damaged (topic_partition=TopicPartition(topic='t', partition=1), offset=12, reason=checksum)"
    assert str(error) == f"[Error 2] CorruptRecordError: {text}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with pytest.raises(errors.CorruptRecordError) as caught:
        errors.check_error(error)
    assert (caught.value.offset, caught.value.reason) == (12, "checksum")


def test_families_that_need_a_person_are_not_retriable():
    assert not [cls for cls in CLASSES if issubclass(cls, FixNeededError) and cls.retriable]


def test_check_error_raises_what_a_legacy_response_stands_for():
    class Response:
        error = 3

    with pytest.raises(errors.UnknownTopicOrPartitionError):
        errors.check_error(Response())
    with pytest.raises(KafkaTimeoutError):
        errors.check_error(KafkaTimeoutError())
    Response.error = 0
    assert errors.check_error(Response()) is None


# Names of the 1.3.4 and 2.x manuals and releases, and of 3.x.
HISTORIC = """
    AsyncProducerQueueFull AuthenticationFailedError AuthenticationMethodNotSupported AuthorizationError
    BrokerNotAvailableError BrokerResponseError BufferUnderflowError Cancelled ChecksumError
    ClusterAuthorizationFailedError CommitFailedError ConcurrentTransactionsError ConnectionError
    ConsumerFetchSizeTooSmall ConsumerNoMoreData ConsumerTimeout CoordinatorLoadInProgressError
    CoordinatorNotAvailableError CorrelationIdError CorruptRecordError CorruptRecordException FailedPayloadsError
    GroupAuthorizationFailedError GroupCoordinatorNotAvailableError GroupLoadInProgressError IllegalArgumentError
    IllegalGenerationError IllegalSaslStateError IllegalStateError IncompatibleBrokerVersion
    InconsistentGroupProtocolError InvalidCommitOffsetSizeError InvalidConfigurationError InvalidFetchRequestError
    InvalidGroupIdError InvalidMessageError InvalidMetadataError InvalidPartitionsError InvalidReceiveError
    InvalidReplicationAssignmentError InvalidReplicationFactorError InvalidRequestError InvalidRequiredAcksError
    InvalidSessionTimeoutError InvalidTimestampError InvalidTopicError KafkaConfigurationError KafkaConnectionError
    KafkaError KafkaProtocolError KafkaStorageError KafkaTimeoutError KafkaUnavailableError LeaderNotAvailableError
    LogTruncationError MessageSizeTooLargeError MetadataEmptyBrokerList NetworkExceptionError NoBrokersAvailable
    NoError NoOffsetForPartitionError NodeNotReadyError NonEmptyGroupError NotControllerError NotCoordinatorError
    NotCoordinatorForGroupError NotEnoughReplicasAfterAppendError NotEnoughReplicasError NotLeaderForPartitionError
    NotLeaderOrFollowerError OffsetMetadataTooLargeError OffsetOutOfRangeError PolicyViolationError ProtocolError
    QuotaViolationError RebalanceInProgressError RecordListTooLargeError ReplicaNotAvailableError
    RequestTimedOutError RetriableError SaslAuthenticationFailedError SecurityDisabledError
    StaleControllerEpochError StaleLeaderEpochCodeError StaleMetadata TooManyInFlightRequests
    TopicAlreadyExistsError TopicAuthorizationFailedError TransactionAbortedError UnknownBrokerIdError UnknownError
    UnknownMemberIdError UnknownTopicOrPartitionError UnrecognizedBrokerVersion UnsupportedCodecError
    UnsupportedForMessageFormatError UnsupportedSaslMechanismError UnsupportedVersionError
""".split()  # noqa: SIM905 - a list would be one name per line


def test_historic_names_still_import():
    for name in HISTORIC:
        assert issubclass(getattr(errors, name), KafkaError)


def test_the_retry_tuples_of_the_legacy_client_exist():
    assert errors.NotLeaderForPartitionError in errors.RETRY_ERROR_TYPES
    assert errors.LeaderNotAvailableError in errors.RETRY_BACKOFF_ERROR_TYPES
    assert errors.UnknownTopicOrPartitionError in errors.RETRY_REFRESH_ERROR_TYPES


def test_the_generated_block_is_what_the_generator_writes():
    tool = runpy.run_path(str(ROOT / "tools" / "generate_errors.py"))
    for path, text in tool["outputs"](TABLE).items():
        assert path.read_text(encoding="utf-8") == text, f"run tools/generate_errors.py: {path.name} is stale"


def test_every_broker_class_is_reached_by_code():
    generated = {cls for cls in CLASSES if issubclass(cls, BrokerResponseError) and "errno" in vars(cls)}
    assert generated - {BrokerResponseError} == set(kafka_errors.values())


def test_descriptions_remain_without_docstrings():
    code = "from kafka.errors import for_code; print(for_code(3).description)"
    done = subprocess.run([sys.executable, "-OO", "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize("kind", [KafkaError, errors.KafkaConnectionError, for_code(58), for_code(-1)])
def test_text_of_a_broker_cannot_forge_log_lines(kind):
    error = kind("refused\n2026-01-01 CRITICAL \x1b[2J \x85 \u2028 \u202e \udcff", node_id="b\nc")
    assert str(error).isprintable()
    assert "refused\\n2026-01-01 CRITICAL \\x1b[2J" in str(error)
    assert pickle.loads(pickle.dumps(error)) == error
    assert len(str(kind("x" * 1_000_000))) < 11_000


def test_each_code_has_the_name_and_number_of_its_class():
    assert {code.value: code.name for code in errors.Code} == {code: cls.message for code, cls in kafka_errors.items()}
