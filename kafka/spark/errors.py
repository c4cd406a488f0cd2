"""What goes wrong in the data source, in the words that users of Spark's own connector know and search for."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Final, NoReturn, TypeVar, cast

from kafka.errors import KafkaConfigurationError, KafkaError, RecordFacts

__all__ = [
    "CROSSED_ADVICE",
    "GROUP_ID_ADVICE",
    "KEEP_TRACEBACK",
    "KafkaAvailableNowError",
    "KafkaDataLossError",
    "KafkaSparkOptionError",
    "as_typed",
    "cause_of",
    "concise",
    "is_spark_process",
    "raise_concisely",
]

F = TypeVar("F", bound=Callable[..., object])

#: Keep tracebacks where this variable is set in the environment of Spark's Python processes.
KEEP_TRACEBACK: Final = "PUREKAFKA_TRACEBACK"
#: Spark's own variable for its Python processes: report an exception without the traceback. Older releases ignore it.
_HIDE: Final = "SPARK_HIDE_TRACEBACK"

_ADVICE: Final = (
    "Some data may have been lost because they are not available in Kafka any more; either the data was aged out by "
    "Kafka or the topic may have been deleted before all the data in the topic was processed. If you don't want your "
    "query to fail on such cases, set the source option failOnDataLoss to false."
)

GROUP_ID_ADVICE: Final = (
    "Kafka option 'kafka.group.id' has been set on this query, it is not recommended to set this option. This option "
    "is unsafe to use since multiple concurrent queries or sources using the same group id will interfere with each "
    "other as they are part of the same consumer group. Restarted queries may also suffer interference from the "
    "previous run having the same group id. The user should have only one query per group id, and/or set the option "
    "'kafka.session.timeout.ms' to be very small so that the Kafka consumers from the previous query are marked dead "
    "by the Kafka group coordinator before the restarted query starts running."
)
CROSSED_ADVICE: Final = (
    "Please investigate in this order: 1. Check whether start offset is set beyond the end offset or the latest "
    "available offset after resolution. Possible inputs are: (a) Start offset is set to a timestamp, and the end "
    "offset is set to an index of offset. (b) Start offset is set to an index of offset, and the end offset is set to"
    " a timestamp. (c) Start offset is set, and the end offset is set to latest. 2. Check whether the Kafka topic-"
    "partition is deleted and re-created."
)
_TRANSIENT: Final = "The error could be transient - restart your query, and report if you still see the same issue."


class KafkaSparkOptionError(KafkaConfigurationError):
    """An option of the data source is missing, not supported, or has a value that it cannot have."""


class KafkaDataLossError(RecordFacts, KafkaError):
    """Records that the query has not read are gone, and failOnDataLoss is on."""

    @classmethod
    def because(cls, condition: str, reason: str) -> KafkaDataLossError:
        """Return the error of a condition, such as ``ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO``.

        >>> str(KafkaDataLossError.because("PARTITIONS_DELETED", "Partitions events-0 have been deleted."))[:40]
        '[KAFKA_DATA_LOSS.PARTITIONS_DELETED] Par'
        """
        return cls(f"[KAFKA_DATA_LOSS.{condition}] {reason} {_ADVICE}")


class KafkaAvailableNowError(KafkaError):
    """Records that a query with the trigger available-now must read are gone, or the query would read others."""

    @classmethod
    def because(cls, condition: str, sentence: str, facts: str) -> KafkaAvailableNowError:
        """Return the error of a condition, such as ``LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW``.

        >>> str(KafkaAvailableNowError.because("MISMATCHED", "These differ.", "a: 1, b: 2"))[:51]
        '[MISMATCHED] These differ. The error could be trans'
        """
        return cls(f"[{condition}] {sentence} {_TRANSIENT} {facts}")


#: An error of this library within a text of Spark's, which puts other names, stacks and plans around it.
_OURS: Final = re.compile(r"\bkafka(?:\.\w+)*\.[A-Z]\w*: (.+)")
_JAVA_FRAME: Final = re.compile(r"\s*(?:at \S+\(|\.\.\. \d+ more)")
_SQL_STATE: Final = re.compile(r"\s*SQLSTATE: \w+")


def cause_of(error: BaseException) -> str:
    """Return in one line what an exception of Spark says went wrong, without Java's stacks and the query's plan.

    >>> cause_of(
    ...     RuntimeError(
    ...         "[STREAM_FAILED] Query [id = 1] terminated with exception: PythonException: "
    ...         "kafka.errors.CorruptRecordError: events-0 is damaged\\n\\tat a.B.c(D.scala:1)"
    ...     )
    ... )
    'events-0 is damaged'
    """
    text = str(error).partition("JVM stacktrace")[0].partition("=== Streaming Query ===")[0]
    ours = _OURS.search(text)
    if ours is not None:
        return _SQL_STATE.sub("", ours[1]).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _JAVA_FRAME.match(line)]
    lines = [line for line in (_SQL_STATE.sub("", line) for line in lines) if line]
    if any("Traceback (most recent call last)" in line for line in lines):  # of a function of the user's
        return lines[-1]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    # Py4J begins with the name of a Java method, and puts the exception into the next line, behind a colon.
    first = next((line[2:] for line in lines if line.startswith(": ")), lines[0] if lines else type(error).__name__)
    return "; ".join([first, *causes[-1:]]).replace("; Caused by", "; caused by")


def concise(method: F) -> F:
    """Decorate what Spark calls: an error of this library reaches Spark without the traceback and without its causes.

    Spark prints the text that its Python process reports up to five times, with each frame. The message
    about a missing topic or a wrong password has all that a user needs. It names options as the program names them.

    >>> @concise
    ... def plan():
    ...     raise KafkaSparkOptionError("startingOffsets cannot be 'never'") from ValueError("never")
    >>> try:
    ...     plan()
    ... except KafkaError as error:
    ...     print(error, error.__cause__)
    startingOffsets cannot be 'never' None
    """

    @wraps(method)
    def called(*args: object, **kwargs: object) -> object:
        try:
            return method(*args, **kwargs)
        except KafkaError as error:
            raise_concisely(error)

    return cast(F, called)


def raise_concisely(error: KafkaError) -> NoReturn:
    """Raise an error of this library from here, without its traceback and its causes; see `concise`."""
    if os.environ.get(KEEP_TRACEBACK):
        raise error
    if is_spark_process():
        os.environ[_HIDE] = "1"  # the process ends with this error
    error.args = tuple(as_typed(each) if isinstance(each, str) else each for each in error.args)
    raise error.with_traceback(None) from None


def is_spark_process() -> bool:
    """Whether this is a process that Spark has started for Python, which reports exceptions to Java."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and str(spec.name).startswith("pyspark.")


# The names on Spark of options of this library's clients, where the name is not kafka.* with dots.
_SPARK_NAMES: Final = {
    "a transactional_id": "exactlyOnce=true",
    "transactional_id": "exactlyOnce=true",
    "sasl_plain_username": "kafka.sasl.jaas.config with username and password",
    "sasl_plain_password": "kafka.sasl.jaas.config with username and password",
    "ssl_cafile": "kafka.ssl.truststore.location",
    "ssl_certfile": "kafka.ssl.keystore.location",
}


def as_typed(sentence: str) -> str:
    """Return a sentence with the names of options as programs on Spark have them.

    Names that are words of English too, such as retries, stay, and what stands in quotes.

    >>> as_typed("sasl_mechanism='PLAIN' needs sasl_plain_username, but 'client_id' is a topic with retries")
    "kafka.sasl.mechanism='PLAIN' needs kafka.sasl.jaas.config with username and password, but 'client_id' is a topic \
with retries"
    """
    return _option_names().sub(
        lambda found: _SPARK_NAMES.get(found[0]) or f"kafka.{found[0].replace('_', '.')}", sentence
    )


@cache
def _option_names() -> re.Pattern[str]:
    """Return the pattern of the options of this library's clients; to compile it takes longer than to import this."""
    from kafka.config import OPTIONS

    names = {*(name for name in OPTIONS if "_" in name), "acks", *_SPARK_NAMES}
    return re.compile(rf"(?<![\w./'\"-])(?:{'|'.join(sorted(names, key=len, reverse=True))})(?![\w/-])")
