"""Records from the shell: produce, consume, tail."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka import KafkaProducer
from kafka.broker import Broker
from test import quick_start

from .conftest import Shell

ODD = [
    (b"k", b"v", [("h", b"1")]),
    (None, b"no key", []),
    (b"tombstone", None, []),
    (b"", b"", [("empty", b""), ("null", None)]),
    (b"twice", b"x", [("a", b"1"), ("a", b"2"), ("b", None), ("a", b"1")]),
    (b"\xff\x00", b"\x80\xfe\n\r\t", [("raw", b"\xc3("), ("", b"no name")]),
    ("schlüssel".encode(), "日本語 \U0001f600 \u2028".encode(), [("ümlaut", "ä".encode())]),
    (b'{"json": 1}', b'{"value": null}', []),
    (b"line\nbreak", b'quote" back\\slash \x00\x1f\x7f', []),
    (b"surrogate", b"\xed\xa0\x80", []),
    (None, None, []),
]


def test_c6_consume_into_produce_gives_an_equal_topic(shell: Shell, broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number, (key, value, headers) in enumerate(ODD * 3):
            producer.send("events", value, key, headers, number % 3, 1_000_000_000_000 + number * 1001)
    broker.create_topic("copy", 3)
    outcome = shell("purekafka consume events --format jsonl | purekafka produce copy --format jsonl")
    assert (outcome.code, outcome.err) == (0, "")
    before, after = broker.records("events"), broker.records("copy")
    assert len(after) == len(ODD) * 3
    assert [record._replace(topic="copy", offset=record.offset) for record in before] == after


def test_c6_the_topic_of_each_record_is_used_if_none_is_named(shell: Shell, broker: Broker) -> None:
    lines = b'{"topic": "events", "partition": 2, "value": "a"}\n{"topic": "orders", "value": {"id": 1}}\n'
    assert shell("purekafka produce --format jsonl", stdin=lines).code == 0
    assert [record.value for record in broker.records("events", 2)] == [b"a"]
    assert [record.value for record in broker.records("orders")] == [b'{"id":1}']
    assert shell("purekafka produce", stdin=b"x").code == 2


def test_c6_bytes_that_are_not_text_are_marked(shell: Shell, broker: Broker) -> None:
    broker.append("orders", b"\xff", key=b"\xfe", headers=[("h", b"\xfd")])
    (record,) = shell("purekafka consume orders -f jsonl").records
    assert (record["key"], record["key_encoding"]) == ("/g==", "base64")
    assert (record["value"], record["value_encoding"]) == ("/w==", "base64")
    assert record["headers"] == [["h", "/Q==", "base64"]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", range(10)),
        ("--from 4", range(4, 10)),
        ("--from -3", range(7, 10)),
        ("--from +8", range(8, 10)),
        ("--from 4 --to 6", range(4, 6)),
        ("--to -7", range(3)),
        ("--from 2 --to +3", range(2, 5)),
        ("--from 99", ()),
        ("--from 0=5", range(5, 10)),
        ("--from end", ()),
        ("--from 2026-01-01T00:03Z --to 2026-01-01T00:05Z", range(3, 5)),
        ("--from 1767225720000ms --to @1767225900", range(2, 5)),
        ("--from 2027-01-01", ()),
        ("-n 4", range(4)),
        ("--from 2 -n 1", range(2, 3)),
        ("--partition 0 -n 2", range(2)),
    ],
)
def test_c7_ranges_are_exact(words: str, expected: range, shell: Shell, broker: Broker) -> None:
    for number in range(10):
        broker.append("orders", str(number), timestamp_ms=1_767_225_600_000 + number * 60_000)
    outcome = shell(f"purekafka consume orders {words}")
    assert (outcome.code, outcome.lines) == (0, [str(number) for number in expected])


def test_c7_places_differ_by_partition(shell: Shell, broker: Broker) -> None:
    for number in range(12):
        broker.append("events", str(number), partition=number % 3)
    outcome = shell("purekafka consume events --from 'beginning,1=-1,2=2' --to '0=1' -f '%p:%o '")
    assert sorted(outcome.out.split()) == ["0:0", "1:3", "2:2", "2:3"]


def test_c7_a_group_commits_only_what_was_printed(shell: Shell, broker: Broker) -> None:
    for number in range(10):
        broker.append("orders", str(number))
    assert shell("purekafka consume orders -g readers -n 4").lines == ["0", "1", "2", "3"]
    assert broker.committed("readers", "orders") == 4
    assert shell("purekafka consume orders -g readers --to 6").lines == ["4", "5"]
    assert broker.committed("readers", "orders") == 6
    assert shell("purekafka consume orders -g readers").lines == ["6", "7", "8", "9"]
    assert shell("purekafka consume orders -g readers").lines == []
    assert shell("purekafka consume orders -g readers --from -2").lines == ["8", "9"]
    assert broker.committed("readers", "orders") == 10


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("nope", "topic 'nope' does not exist"),
        ("events -p 7", "topic 'events' has no partition 7; it has 3 partitions"),
    ],
)
def test_c8_what_does_not_exist_ends_with_1(words: str, complaint: str, shell: Shell) -> None:
    outcome = shell(f"purekafka consume {words}")
    assert (outcome.code, outcome.out, outcome.err) == (1, "", f"purekafka consume: {complaint}\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "name a topic, or give --pattern"),
        ("events --from soon", "'soon' is not a place"),
        ("events --from stored", "the place stored needs --group"),
        ("events -f %z", "unknown token %z"),
        ("events -f jsn", "--format takes value, json"),
        ("events --value-type lng", "type 'lng' does not exist: did you mean long?"),
        ("events -g g -p 0", "--partition and --group exclude each other"),
        ("--pattern 'x.*'", "no topic matches 'x.*'"),
    ],
)
def test_c8_wrong_words_end_with_2(words: str, complaint: str, shell: Shell) -> None:
    outcome = shell(f"purekafka consume {words}")
    assert (outcome.code, outcome.out) == (2, "")
    assert complaint in outcome.err


def test_c9_tokens_of_kcat_and_rpk(shell: Shell, broker: Broker) -> None:
    broker.append("orders", b"va\xffl", key="key", headers=[("a", b"1"), ("b", None)], timestamp_ms=1_767_225_600_123)
    expected = {
        r"%t %p %o %T": b"orders 0 0 1767225600123",
        r"%k=%s": b"key=va\xffl",
        r"%v %V %K %S %%": b"va\xffl 4 3 4 %",
        r"%R": b"\0\0\0\4",
        r"%h": b"a=1,b=NULL",
        r"%H:%h{<%k|%v|%V>}": b"2:<a|1|1><b||-1>",
        r"%d{strftime[%Y-%m-%d]} %d{%H:%M}": b"2026-01-01 00:00",
        r"%s{hex} %s{base64} %k{json}": b'7661ff6c dmH/bA== "key"',
        r"%p{big16}%o{little32}%S{hex}": b"\0\0\0\0\0\0004",
        r"%k{unpack[cs$]} %e %i\x21\t\n": b"k ey 0 1!\t\n",
    }
    for layout, printed in expected.items():
        assert shell("purekafka consume orders", "--format", layout).raw == printed, layout


def test_c9_the_layout_of_the_console_consumer(shell: Shell, broker: Broker) -> None:
    broker.append("orders", "v", headers=[("a", b"1")], timestamp_ms=5)
    assert shell("purekafka consume orders -f console").out == "CreateTime:5\tPartition:0\tOffset:0\ta:1\tnull\tv\n"


def test_c10_types_by_name_and_records_that_are_not_of_them(shell: Shell, broker: Broker) -> None:
    for value in (b"\0\0\0\7", b"seven"):
        broker.append("orders", value, key=b"\0\1")
    outcome = shell("purekafka consume orders --key-type short --value-type int -f jsonl")
    first, second = outcome.records
    assert (first["key"], first["value"]) == (1, 7)
    assert second["value"] == "seven"
    assert outcome.code == 0
    assert "orders-0 offset 1 cannot be decoded: int needs 4 bytes, not 5" in outcome.err
    assert shell("purekafka consume orders --value-type int --strict").code == 1
    assert shell("purekafka produce events -p 0 --value-type long", stdin=b"7\n-1\n").code == 0
    assert [record.value for record in broker.records("events", 0)] == [b"\0" * 7 + b"\7", b"\xff" * 8]


def test_c10_what_is_not_json_is_neither_written_nor_printed_as_json(shell: Shell, broker: Broker) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    outcome = shell("purekafka produce orders --value-type json", stdin=b"NaN\n" + deep + b"\n[1]\n")
    assert outcome.code == 1
    assert "line 1: NaN is not JSON" in outcome.err
    assert "line 2: it is nested too deeply" in outcome.err
    outcome = shell("purekafka produce orders -f jsonl", stdin=b'{"value": ' + deep + b'}\n{"value": [NaN]}\n')
    assert (outcome.code, len(outcome.err.splitlines())) == (1, 2)
    assert [record.value for record in broker.records("orders")] == [b"[1]"]
    broker.append_many("orders", [b"[-Infinity]", deep, b"[2]"])
    outcome = shell("purekafka consume orders --value-type json -f jsonl")
    assert [one["value"] for one in outcome.records] == [[1], "[-Infinity]", deep.decode(), [2]]
    assert "offset 1 cannot be decoded: not JSON: -Infinity is not JSON" in outcome.err
    assert "offset 2 cannot be decoded: not JSON: it is nested too deeply" in outcome.err


def test_c10_doubles_that_json_has_not_are_text_there(shell: Shell, broker: Broker) -> None:
    broker.append_many("orders", [struct.pack(">d", float(word)) for word in ("nan", "-inf", "0.1")])
    found = shell("purekafka consume orders --value-type double -f jsonl").records
    assert [one["value"] for one in found] == ["NaN", "-Infinity", 0.1]
    assert shell("purekafka consume orders --value-type double").lines == ["NaN", "-Infinity", "0.1"]


def test_c9_records_are_counted_once_each(shell: Shell, broker: Broker) -> None:
    broker.append_many("orders", [b"\0\0\0\1", b"x", b"\0\0\0\3", b"\0\0\0\4"])
    lines = shell("purekafka consume orders --value-type int --format '%i %s\\n'").lines
    assert [lines[0], *lines[2:]] == ["1 1", "3 3", "4 4"]


def test_c13_lines_keys_headers_nulls_and_counters(shell: Shell, broker: Broker, tmp_path: Path) -> None:
    def produced(words: str, stdin: bytes = b"") -> list[tuple[bytes | None, bytes | None]]:
        assert shell(f"purekafka produce orders {words}", stdin=stdin).code == 0
        found = broker.records("orders")
        broker.delete_topic("orders")
        broker.create_topic("orders")
        return [(record.key, record.value) for record in found]

    assert produced("-K :", b"a:1\nno key\n:\n") == [(b"a", b"1"), (None, b"no key"), (b"", b"")]
    assert produced("-K '\\t' -D ';'", b"a\t1;b\t2\n;") == [(b"a", b"1"), (b"b", b"2\n")]
    assert produced("-K : --null NIL", b"NIL:1\nk:NIL\n") == [(None, b"1"), (b"k", None)]
    assert produced("-V 'n {i}' -k k --repeat 2") == [(b"k", b"n 0"), (b"k", b"n 1")]
    (tmp_path / "file").write_bytes(b"all\nof it\n")
    assert produced(f"{tmp_path / 'file'}") == [(None, b"all\nof it\n")]
    assert produced(f"-l {tmp_path / 'file'}") == [(None, b"all"), (None, b"of it")]
    assert shell("purekafka produce orders -H a=1 -H a=2 -p 0 --timestamp 5 --tee", stdin=b"x").out == "x\n"
    (record,) = broker.records("orders")
    assert (record.headers, record.timestamp) == ([("a", b"1"), ("a", b"2")], 5)


def values_of(broker: Broker, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in broker.records(topic)]


@pytest.mark.parametrize(
    ("words", "line", "key"),
    [
        ("", b'{"user": "ada", "n": 1}', b"ada"),
        ("", '{"user": "schlüssel"}'.encode(), "schlüssel".encode()),
        ("", b'{"user": 7}', b"7"),
        ("", b'{"user": null}', None),
        ("", b'{"user": {"id": 7, "eu": true}}', b'{"id":7,"eu":true}'),
        ("--key-type long", b'{"user": 7}', b"\0\0\0\0\0\0\0\7"),
        ("--value-type json", b'{"user":"ada"}', b"ada"),
    ],
)
def test_a_field_of_a_json_object_is_the_key(
    shell: Shell, broker: Broker, words: str, line: bytes, key: bytes | None
) -> None:
    assert shell(f"purekafka produce orders --key-field user {words}", stdin=line + b"\n").code == 0
    assert values_of(broker, "orders") == [(key, line)]


def test_a_line_without_the_field_of_the_key_is_named_and_not_written(shell: Shell, broker: Broker) -> None:
    lines = b'{"user": "a"}\n{"n": 1}\nno JSON\n[1]\n{"user": "b"}\n'
    outcome = shell("purekafka produce orders --key-field user", stdin=lines)
    assert outcome.code == 1
    assert outcome.err.splitlines() == [
        "purekafka produce: line 2: the JSON object has no field 'user' for the key",
        "purekafka produce: line 3: the value is not a JSON object and has no field 'user' for the key",
        "purekafka produce: line 4: the value is not a JSON object and has no field 'user' for the key",
    ]
    assert [key for key, _ in values_of(broker, "orders")] == [b"a", b"b"]


def test_rows_of_csv_are_json_objects(shell: Shell, broker: Broker) -> None:
    # As spreadsheets write it: a byte order mark, CR LF, quotes that are doubled, a line break in a cell.
    table = '\ufeffid,name,note\r\n7,Ädä,\r\n\r\n8,"Bob ""B""","two\r\nlines, one cell"\r\n'.encode()
    expected = [
        {"id": "7", "name": "Ädä", "note": None},
        {"id": "8", "name": 'Bob "B"', "note": "two\r\nlines, one cell"},
    ]
    outcome = shell("purekafka produce orders --format csv --key-field id --null '' -H source=x --tee", stdin=table)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.replace("\r", "") == table.decode().replace("\r", "")
    found = values_of(broker, "orders")
    assert [key for key, _ in found] == [b"7", b"8"]
    assert [json.loads(value or b"") for _, value in found] == expected
    assert {tuple(record.headers) for record in broker.records("orders")} == {(("source", b"x"),)}


def test_rows_of_csv_that_are_wrong_are_named_by_the_line_they_begin_on(
    shell: Shell, broker: Broker, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_bytes(b'a,b\n1,"x\ny"\n2\n3,\xff\n4,"q"x\n5,ok\n6,"open\n')
    outcome = shell(f"purekafka produce orders --format csv -l {tmp_path / 't.csv'}")
    assert outcome.code == 1
    starts = ["line 4: the row has 1 cells", "line 5: not a row", "line 6: not a row", "line 8: not a row"]
    for said, start in zip(outcome.err.splitlines(), starts, strict=True):
        assert said.startswith(f"purekafka produce: {start}")
    assert values_of(broker, "orders") == [(None, b'{"a":"1","b":"x\\ny"}'), (None, b'{"a":"5","b":"ok"}')]
    for header in (b"a,a\n1,2\n", b"a,\n1,2\n", b'"a\n', b"\xff\n"):
        outcome = shell("purekafka produce orders --format csv", stdin=header)
        assert (outcome.code, "line 1: " in outcome.err) == (1, True)
    assert len(values_of(broker, "orders")) == 2


def test_csv_of_a_transaction_is_all_or_nothing(shell: Shell, broker: Broker) -> None:
    assert shell("purekafka produce orders -f csv --transactional-id t", stdin=b"a,b\n1,2\n3\n").code == 1
    assert shell("purekafka consume orders --read-committed").out == ""
    assert shell("purekafka produce orders -f csv --transactional-id t", stdin=b"a,b\n1,2\n").code == 0
    assert shell("purekafka consume orders --read-committed").out == '{"a":"1","b":"2"}\n'


def test_rows_are_written_while_their_source_is_open(broker: Broker) -> None:
    words = [sys.executable, "-m", "kafka", "produce", "orders", "-f", "csv", "--key-field", "id"]
    process = quick_start.Program([*words, "-b", broker.bootstrap_servers], stdin=subprocess.PIPE)
    assert process.stdin is not None
    try:
        process.stdin.write(b"id,n\n")
        for number in range(3):
            process.stdin.write(b"k,%d\n" % number)
            process.stdin.flush()
            deadline = time.monotonic() + 30
            while len(values_of(broker, "orders")) <= number:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        process.stdin.close()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert values_of(broker, "orders")[2] == (b"k", b'{"id":"k","n":"2"}')


@pytest.mark.parametrize(
    "words",
    [
        "--format jsonl --key-field a",
        "--key-field a --key b",
        "--key-field a -K :",
        "--format csv -V a",
        "--format csv file",
        "--format csv -K :",
        "--format csv -D ';'",
    ],
)
def test_keys_and_csv_that_contradict_other_options_are_refused(shell: Shell, broker: Broker, words: str) -> None:
    assert shell(f"purekafka produce orders {words}", stdin=b"a,b\n1,2\n").code == 2
    assert values_of(broker, "orders") == []


def test_c13_each_failure_names_its_line(shell: Shell, broker: Broker) -> None:
    lines = b"\n".join([b"short", b"x" * 2_000_000, b"short too"])
    outcome = shell("purekafka produce orders", stdin=lines)
    assert outcome.code == 1
    assert outcome.err.startswith("purekafka produce: line 2: ")
    assert len(outcome.err.splitlines()) == 1
    assert [record.value for record in broker.records("orders")] == [b"short", b"short too"]
    outcome = shell("purekafka produce orders --value-type int", stdin=b"1\nx\n3\n")
    assert (outcome.code, len(broker.records("orders"))) == (1, 4)
    assert "line 2: invalid literal for int()" in outcome.err
    outcome = shell("purekafka produce nope -X allow.auto.create.topics=false -X max.block.ms=500", stdin=b"a\n")
    assert outcome.code == 1


def test_c13_a_transaction_is_all_or_nothing(shell: Shell, broker: Broker) -> None:
    assert shell("purekafka produce orders --transactional-id t --value-type int", stdin=b"1\nx\n").code == 1
    assert shell("purekafka consume orders --read-committed").out == ""
    assert shell("purekafka produce orders --transactional-id t", stdin=b"1\n2\n").code == 0
    assert shell("purekafka consume orders --read-committed").lines == ["1", "2"]


def test_filters_choose_by_key_value_and_header(shell: Shell, broker: Broker) -> None:
    for number in range(4):
        broker.append("orders", f"v{number}", key=f"k{number % 2}", headers={"n": str(number)})
    assert shell("purekafka consume orders --filter-key '*1'").lines == ["v1", "v3"]
    assert shell("purekafka consume orders --filter-value 'v[03]' -n 1").lines == ["v0"]
    assert shell("purekafka consume orders --filter-header n:2").lines == ["v2"]
    assert shell("purekafka consume orders --filter-header x --fail-if-empty").code == 3


def test_tail_prints_the_last_records_of_all_partitions_by_time(shell: Shell, broker: Broker) -> None:
    for number in range(9):
        broker.append("events", str(number), partition=number % 3, timestamp_ms=1000 + number)
    assert shell("purekafka tail events -n 4 --no-follow").lines == ["5", "6", "7", "8"]
    refused = shell("purekafka tail events -n -1")
    assert (refused.code, refused.err) == (2, "purekafka tail: -n takes a number of records, not -1\n")


# Ends…


def start(broker: Broker, *words: str) -> subprocess.Popen[str]:
    env = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
    command = [sys.executable, "-m", "kafka", *words]
    return quick_start.Program(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_c14_a_signal_ends_it_with_offsets_committed_and_counts(
    number: signal.Signals, code: int, broker: Broker
) -> None:
    for value in ("a", "b"):
        broker.append("orders", value)
    with start(broker, "consume", "orders", "-g", "readers", "--follow") as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["a\n", "b\n"]
        process.send_signal(number)
        begun = time.monotonic()
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - begun < 10  # a second of its own, on a machine that is busy
    assert process.returncode == code
    assert err.startswith("consumed 2 records")
    assert broker.committed("readers", "orders") == 2


def test_c8_a_reader_that_has_seen_enough_ends_it_quietly_with_0(broker: Broker) -> None:
    for _ in range(40):
        broker.append_many("orders", ["x" * 1000] * 100)
    with start(broker, "consume", "orders") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


def test_c8_the_time_of_timeout_ends_with_124(broker: Broker) -> None:
    with start(broker, "consume", "orders", "--follow", "--timeout", "5") as process:  # it connects within that
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (124, "")
    assert "the 5 seconds of --timeout are over" in err


def test_c8_a_timeout_holds_in_the_background_where_ctrl_c_is_ignored(broker: Broker) -> None:
    env = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
    line = f"{sys.executable} -m kafka consume orders --follow --timeout 5 & wait $!"
    done = subprocess.run(["sh", "-c", line], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 124, done.stderr


@pytest.mark.slow
def test_c8_a_timeout_while_connecting_names_the_cause() -> None:
    command = [sys.executable, "-m", "kafka", "topics", "list", "-b", "127.0.0.1:1", "--timeout", "8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "127.0.0.1:1: Connection refused" in done.stderr


def test_c13_memory_is_bounded_with_an_endless_input(broker: Broker) -> None:
    """Ten times as much input takes no more memory: what waits is bounded by the producer's buffer."""
    if sys.platform != "linux":
        pytest.skip("needs /proc")
    script = (
        "import re, sys; from kafka.cli import main; code = main(sys.argv[1:]); "
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr); sys.exit(code)"
    )
    broker.create_topic("big")
    env = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
    words = [sys.executable, "-c", script, "produce", "big", "--acks", "1", "-X", "buffer.memory=2000000"]
    line = b"x" * 999 + b"\n"
    peaks_kb = []
    for megabytes in (5, 50):
        done = subprocess.run(
            words, env=env, input=line * 1000 * megabytes, stderr=subprocess.PIPE, check=True, timeout=100
        )
        peaks_kb.append(int(done.stderr.split()[-1]))
    assert broker.offsets("big")[1] == 55_000
    assert peaks_kb[1] - peaks_kb[0] < 15_000, f"{peaks_kb} kB for 5 and 50 MB"


def test_c12_no_control_codes_reach_a_pipe(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for line in ("purekafka topics list", "purekafka topics describe", "purekafka produce events -V a --progress"):
        outcome = shell(line)
        assert "\x1b" not in outcome.out + outcome.err
        assert "\r" not in outcome.out + outcome.err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert shell("purekafka topics list").out.startswith("\x1b[1mTOPIC")
    assert shell("purekafka topics list --color never").out.startswith("TOPIC")
    monkeypatch.setenv("NO_COLOR", "1")
    assert shell("purekafka topics list").out.startswith("TOPIC")
    assert "consumed 1 records" in shell("purekafka consume events --progress").err


def test_records_are_printed_as_they_are_json_by_json(shell: Shell, broker: Broker) -> None:
    broker.append("orders", "a", timestamp_ms=5)
    (line,) = shell("purekafka consume orders -f jsonl").lines
    assert json.loads(line) == {
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "timestamp": 5,
        "key": None,
        "value": "a",
    }


# Words that mean something else…


def test_files_are_written_as_they_are(shell: Shell, broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "script.js").write_bytes(b"for (;;) `${i}`\n")
    for words in ("", "--repeat 2"):
        assert shell(f"purekafka produce orders {tmp_path / 'script.js'} {words}").code == 0
    assert {record.value for record in broker.records("orders")} == {b"for (;;) `${i}`\n"}
    assert shell("purekafka produce events -p 0 -V '${i}'").code == 0
    assert shell("purekafka produce events -p 0 -V '{i}' --repeat 2").code == 0
    assert [record.value for record in broker.records("events", 0)] == [b"${i}", b"0", b"1"]
    assert shell("purekafka produce events -p 1 -", stdin=b"all\nof it").code == 0
    assert [record.value for record in broker.records("events", 1)] == [b"all\nof it"]


@pytest.mark.parametrize("line", ["consume orders --from 1767225660000", "consume orders --to 1767225660000"])
def test_an_epoch_without_its_unit_is_refused(line: str, shell: Shell, broker: Broker) -> None:
    for number in range(3):
        broker.append("orders", str(number), timestamp_ms=1_767_225_600_000 + number * 60_000)
    refused = shell(f"purekafka {line}")
    assert (refused.code, refused.out) == (2, "")
    assert "the time is written 1767225660000ms" in refused.err
    assert shell(f"purekafka {line}ms").code == 0
    assert shell("purekafka consume orders --from @1767225660").lines == ["1", "2"]
    assert "the time is written @1767225660" in shell("purekafka consume orders --from 1767225660").err


def test_nothing_is_deleted_or_reset_by_an_epoch_without_its_unit(shell: Shell, broker: Broker) -> None:
    for number in range(3):
        broker.append("orders", str(number), timestamp_ms=1_767_225_600_000 + number * 60_000)
    for line in (
        "records delete-before orders --place 1767225660000 --yes",
        "groups reset-offsets readers --topic orders --to 1767225660000 --yes",
        "offsets list orders --at 1767225660000",
    ):
        refused = shell(f"purekafka {line}")
        assert (refused.code, refused.out) == (2, "")
        assert "the time is written 1767225660000ms" in refused.err
    refused = shell("purekafka records delete-before orders --place 99 --yes")
    assert (refused.code, "orders-0 ends at 3: --place 99 is behind that" in refused.err) == (2, True)
    assert broker.offsets("orders")[0] == 0


def test_an_offset_that_does_not_exist_is_reported(shell: Shell, broker: Broker) -> None:
    for number in range(10):
        broker.append("orders", str(number))
    assert shell("purekafka records delete-before orders --place 4 --yes").code == 0
    outcome = shell("purekafka consume orders --from 2 --to 99 -n 2")
    assert (outcome.code, outcome.lines) == (0, ["4", "5"])
    assert outcome.err.splitlines() == [
        "purekafka consume: --from: offset 2 does not exist: the nearest one is taken: orders-0 has 4",
        "purekafka consume: --to: offset 99 does not exist: the nearest one is taken: orders-0 has 10",
    ]
    assert shell("purekafka consume orders --from -99 --to +99").err == ""


def test_a_delimiter_of_keys_may_be_any_text(shell: Shell, broker: Broker) -> None:
    broker.append("orders", "v", key="k")
    assert shell("purekafka consume orders -K %").out == "k%v\n"
    assert shell("purekafka consume orders -K '%s\\t'").out == "k%s\tv\n"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("produce orders -k abc --key-type long -V x", "--key 'abc' is not of the type long: "),
        ("produce orders - -", "standard input can be read once"),
        ("brokers list -f '{features:>10}'", "--format: "),
    ],
)
def test_values_that_do_not_fit_are_errors_of_the_command_line(line: str, complaint: str, shell: Shell) -> None:
    outcome = shell(f"purekafka {line}", stdin=b"x")
    assert outcome.code == 2
    assert complaint in outcome.err


def test_perf_counts_every_record_that_failed(shell: Shell, broker: Broker) -> None:
    broker.create_topic("small", configs={"max.message.bytes": "500"})
    outcome = shell("purekafka perf produce small -n 30 --size 1000")
    assert outcome.code == 1
    assert "30 of 30 records failed" in outcome.err
    assert outcome.out.startswith("0 records sent")


def test_produce_says_where_records_are(shell: Shell, broker: Broker) -> None:
    broker.append("orders", "before")
    lines = shell("purekafka produce orders --progress", stdin=b"a\nb\nc\n").err.splitlines()
    assert lines[-1] == "written to orders-0 offsets 1 to 3"
    lines = shell("purekafka produce events -K : --progress", stdin=b"a:1\n").err.splitlines()
    (record,) = broker.records("events")
    assert lines[-1] == f"written to events-{record.partition} offset 0"
    broker.create_topic("many", 5)
    text = b"".join(b'{"partition": %d, "value": "x"}\n' % number for number in range(5))
    lines = shell("purekafka produce many -f jsonl --progress", stdin=text).err.splitlines()
    assert lines[-1] == "written to many-0 offset 0, many-1 offset 0, many-2 offset 0 and 2 more partitions"


def test_a_user_at_a_terminal_is_warned_of_a_topic_that_does_not_exist(broker: Broker) -> None:
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    words = [sys.executable, "-m", "kafka", "produce", "evnts", "-V", "x", "-b", broker.bootstrap_servers]
    with subprocess.Popen(words, stderr=slave, env={**os.environ, "TERM": "dumb"}) as process:
        os.close(slave)
        shown = b""
        try:
            while data := os.read(master, 65536):
                shown += data
        except OSError:  # the end of a terminal
            pass
        assert process.wait(60) == 0
    os.close(master)
    assert b"topic 'evnts' does not exist; brokers that may create it do that now" in shown
    assert b"written to evnts-0 offset 0" in shown
