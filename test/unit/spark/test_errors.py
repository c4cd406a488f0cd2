"""What Spark gets to see of an error: the message without frames and causes, and what it makes of that in one line."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import traceback
from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

from kafka.errors import KafkaError, NoBrokersAvailable
from kafka.spark.errors import KafkaDataLossError, cause_of, concise, raise_concisely
from kafka.spark.listeners import without_java_stack


@concise
def plan(error: Exception) -> None:
    def ask() -> None:
        raise error from OSError("refused")

    ask()


def text_of(error: Exception) -> str:
    with pytest.raises(type(error)) as caught:
        plan(error)
    return "".join(traceback.format_exception(caught.value))


def test_an_error_of_this_library_has_one_frame_of_it_and_no_cause() -> None:
    text = text_of(NoBrokersAvailable("No bootstrap server could be reached"))
    assert "refused" not in text
    assert "in ask" not in text
    assert text.count("kafka/spark/errors.py") <= 2
    assert text.splitlines()[-1] == "kafka.errors.NoBrokersAvailable: No bootstrap server could be reached"


def test_a_fault_of_the_program_keeps_its_traceback_and_its_cause() -> None:
    text = text_of(ValueError("a fault"))
    assert "in ask" in text
    assert "OSError: refused" in text


def test_the_traceback_is_kept_where_the_environment_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUREKAFKA_TRACEBACK", "1")
    text = text_of(NoBrokersAvailable("No bootstrap server could be reached"))
    assert "in ask" in text
    assert "OSError: refused" in text


def test_options_have_the_names_that_the_program_gave_them() -> None:
    error = KafkaError("b1:9093: security_protocol must be SSL or SASL_SSL for it; 3 retries", 7)
    with pytest.raises(KafkaError) as caught:
        plan(error)
    assert caught.value.args == ("b1:9093: kafka.security.protocol must be SSL or SASL_SSL for it; 3 retries", 7)


def test_a_generator_raises_concisely_too() -> None:
    def read() -> Iterator[int]:
        yield 1
        try:
            raise KafkaError("damaged") from OSError("refused")
        except KafkaError as error:
            raise_concisely(error)

    with pytest.raises(KafkaError, match="damaged") as caught:
        list(read())
    assert caught.value.__cause__ is None


WORKER = """
import io
import sys
import types
from pyspark.util import handle_worker_exception
from kafka.errors import KafkaError
from kafka.spark.errors import concise

@concise
def plan(error):
    raise error from OSError("refused")

sys.modules["__main__"].__spec__ = types.SimpleNamespace(name=sys.argv[1])
out = io.BytesIO()
try:
    plan(KafkaError("the text comes first"))
except KafkaError as error:
    handle_worker_exception(error, out)
print(out.getvalue()[8:].decode())
"""


@pytest.mark.parametrize(
    ("main", "lines"), [("pyspark.daemon", 1), ("pyspark.sql.worker.create_data_source", 1), ("program", 8)]
)
def test_a_process_of_spark_s_reports_the_text_alone(main: str, lines: int) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
    done = subprocess.run([sys.executable, "-c", WORKER, main], capture_output=True, text=True, check=True, timeout=60)
    reported = done.stdout.strip().splitlines()
    assert reported[-1] == "kafka.errors.KafkaError: the text comes first"
    assert len(reported) == 1 if lines == 1 else len(reported) > 1


def test_the_cause_of_a_failed_task_is_found_in_all_that_spark_says() -> None:
    loss = KafkaDataLossError.because("COULD_NOT_READ_OFFSET_RANGE", "Could not read records in offset [1, 2).")
    text = f"""\
        An error occurred while calling o55.count.
        : org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, \
most recent failure: Lost task 0.0: PythonException: kafka.spark.errors.KafkaDataLossError: {loss}

        \tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:1)
        Caused by: org.apache.spark.api.python.PythonException: kafka.spark.errors.KafkaDataLossError: {loss}
        \t... 3 more
    """
    assert cause_of(RuntimeError(textwrap.dedent(text))) == str(loss)


JAVA = "An error.\n: A: Could not parse\n\tat a.B.c(D.java:1)\nCaused by: B: x\n\t... 3 more\nCaused by: C: y"
PYTHON = (
    "Job aborted: Traceback (most recent call last):\n  File 'f.py', line 1\nZeroDivisionError: 1/0\n SQLSTATE: 38000"
)
SQL = "[PATH_ALREADY_EXISTS] Path file:/p already exists."


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"{SQL} SQLSTATE: 42K04", SQL),
        (PYTHON, "ZeroDivisionError: 1/0"),
        (JAVA, "A: Could not parse; caused by: C: y"),
        ("", "RuntimeError"),
    ],
)
def test_the_cause_of_other_errors_is_one_line_too(text: str, cause: str) -> None:
    assert cause_of(RuntimeError(text)) == cause


class JavaError(Py4JJavaError):  # type: ignore[misc]
    """An error of Java with a text, which Py4J would ask Java for."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


STACK = "".join(f"\n\tat a.B.c{number}(D.scala:1)" for number in range(500)) + "\n\t... 12 more"


def text_of_batch(text: str) -> str:
    @without_java_stack
    def write(_frame: object, _batch_id: int) -> None:
        raise JavaError(text)

    with pytest.raises(Py4JError) as caught:
        write(None, 0)  # type: ignore[arg-type]
    return "".join(traceback.format_exception(caught.value))


def test_a_function_of_foreach_batch_reports_messages_of_java_and_no_stack() -> None:
    text = text_of_batch(f"An error occurred while calling o1.save.\n: a.SparkException: Job 3 cancelled g{STACK}")
    assert "\tat a.B" not in text
    assert text.endswith("\n: a.SparkException: Job 3 cancelled g\n")
    # Spark's regular expression begins with this, and overflows on what follows.
    assert "py4j.protocol.Py4JJavaError: An error occurred while calling" not in text


def test_spark_sees_a_stop_in_the_last_line_of_an_error_of_foreach_batch() -> None:
    text = text_of_batch(f"An error occurred.\n: a.Failed: no\nCaused by: java.lang.InterruptedException{STACK}")
    assert ": a.Failed: no\n" in text
    begins = text.index("py4j.protocol.Py4JJavaError: An error occurred while calling")
    assert len(text) - begins < 200
    assert "java.lang.InterruptedException" in text[begins:]


def test_the_stack_of_java_is_kept_where_the_environment_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUREKAFKA_TRACEBACK", "1")
    assert "\tat a.B" in text_of_batch(f"An error occurred.{STACK}")
