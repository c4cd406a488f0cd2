"""C19: kcat's own command lines, compared byte by byte with kcat itself."""

from __future__ import annotations

import shlex
import shutil
import time

import pytest

from kafka.broker import Broker

from .shell import call

KCAT = shutil.which("kcat") or shutil.which("kafkacat")
OURS = ["purekafka", "kcat"]

needs_kcat = pytest.mark.skipif(KCAT is None, reason="needs kcat: apt-get install kcat")


def ran(program: list[str], words: str, broker: Broker, stdin: bytes = b"") -> tuple[int, bytes, list[str]]:
    done = call([*program, "-b", broker.bootstrap_servers, *shlex.split(words)], stdin)
    notes = [line for line in done.err.splitlines() if line.startswith("% ")]
    return done.code, done.raw, notes


def fill(broker: Broker) -> None:
    broker.append("t", b"1", key=b"a", headers=[("x", b"1"), ("y", None)], timestamp_ms=1000)
    broker.append("t", b"2", key=b"b", timestamp_ms=2000)
    broker.append("t", 'grün "quoted" back\\slash\ttab', timestamp_ms=3000)
    broker.append("t", b"empty key", key=b"", timestamp_ms=4000)
    broker.append("t", None, key=b"tombstone", timestamp_ms=5000)
    broker.append("t", b"", key=b"empty", timestamp_ms=6000)
    for number in (7, -1):
        broker.append("numbers", number.to_bytes(4, "big", signed=True), key=number.to_bytes(2, "little", signed=True))


@needs_kcat
@pytest.mark.parametrize(
    "words",
    [
        "-C -t t -e",
        "-C -t t -e -q -p 0",
        "-C -t t -e -K :",
        "-C -t t -e -K ' = ' -D ';'",
        "-C -t t -e -O -K :",
        "-C -t t -e -O -q",
        "-C -t t -e -Z -K :",
        "-C -t t -e -u -o beginning",
        "-C -t t -e -o end",
        "-C -t t -e -o 2",
        "-C -t t -e -o -2",
        "-C -t t -c 2 -o 1",
        "-C -t t -e -o s@2500",
        "-C -t t -e -o s@2000 -o e@5000",
        "-C -t t -e -J",
        "-C -t t -e -J -c 1",
        r"-C -t t -e -f '%t %p %o %k %s %K %S %T %h %%\n'",
        r"-C -t t -e -f 'Topic %t [%p] at offset %o: key %k: %s\n'",
        r"-C -t t -e -Z -f '%k|%s\x21\t\n'",
        r"-C -t t -e -f '%R%s'",
        r"-C -t numbers -e -s value=i -s 'key=>h$' -f '%k %s\n'",
        "-C -t numbers -e -s value=hh -q",
        "-C -t numbers -e -s 'value=h b b' -q",
        "-C -t numbers -e -s value=q",
        "-C -t numbers -e -s 'value=h$'",
        r"-C -t numbers -e -s value=iH -f '%o %k: %s|%o\n'",
        r"-C -t numbers -e -s key=q -Z -f '%o %s %k\n'",
        "-C -t numbers -e -s value=I -s key=bb -J",
        "-C -t nope -e",
        "-C -t t -p 9 -e",
        "-L",
        "-L -t t",
        "-L -J",
        "-Q -t t:0:2500 -t numbers:0:0",
        "-Q -t t:0:-1",
        "-Q -t t:0:-2",
        "-Q -t t:0:99999999999999",
    ],
)  # fmt: skip
def test_c19_the_output_is_that_of_kcat_byte_by_byte(words: str) -> None:
    with Broker(topics=["t", "numbers"]) as broker:
        fill(broker)
        theirs, ours = ran([str(KCAT)], words, broker), ran(OURS, words, broker)
    assert ours == theirs


@needs_kcat
@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        ("-P -t t", b"one\ntwo\n\nlast"),
        ("-P -t t -K :", b"a:1\nno key\n:empty key\nk:\n"),
        ("-P -t t -K : -Z", b"a:1\n:empty key\nk:\n"),
        ("-P -t t -k fixed -H x=1 -H y -H 'z='", b"one\n"),
        ("-P -t t -D ';' -c 2", b"one;two;three;"),
        ("-P -t t -K '\\t' -k fixed", b"a\t1\nno key\n"),
        ("-P -t t -T", b"one\ntwo\n"),
        ("-P -t t -z lz4", b"one\n"),
        ("-P -t t -p 0 -X topic.acks=1", b"one\n"),
    ],
)
def test_c19_kcat_and_this_mode_write_equal_records(words: str, stdin: bytes) -> None:
    found = []
    for program in ([str(KCAT)], OURS):
        with Broker(topics=["t"]) as broker:
            code, out, _notes = ran(program, words, broker, stdin)
            records = [(record.key, record.value, record.headers) for record in broker.records("t")]
        found.append((code, out, records))
    assert found[1] == found[0]


@needs_kcat
def test_c19_a_group_reads_and_commits_as_kcat_does() -> None:
    found = []
    for program in ([str(KCAT)], OURS):
        with Broker(topics=["t", "numbers"]) as broker:
            fill(broker)
            first = ran(program, "-G g -o beginning -e t", broker)[:2]
            broker.append("t", b"more")
            second = ran(program, "-G g -o beginning -e ^t", broker)[:2]
            found.append((first, second, broker.committed("g", "t")))
    assert found[1] == found[0]


def test_a_pack_string_with_little_endian_numbers_is_read_as_documented() -> None:
    """kcat 1.7.1 reads them as big-endian, against its own manual."""
    with Broker(topics=["t", "numbers"]) as broker:
        fill(broker)
        assert ran(OURS, "-C -t numbers -e -q -f '%k\\n' -s 'key=<h'", broker)[1] == b"7\n-1\n"


def test_wrong_words_end_with_1_and_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    from kafka.cli.kcat import main

    for words in (
        ["-C", "-t", "t"],
        ["-Z", "-y"],
        ["-C", "-b", "b1", "-c", "x", "-t", "t"],
        ["-b", "b1", "-C", "-t", "t", "-M", "3"],
    ):
        assert main(words) == 1
        assert capsys.readouterr().err.startswith("% ERROR: ")
    assert main([]) == 0


# Producing…

KEYS = b"".join(b"k%d:v%d\n" % (number, number) for number in range(200))


@needs_kcat
@pytest.mark.parametrize(
    "words",
    [
        "",
        "-X partitioner=consistent",
        "-X partitioner=consistent_random",
        "-X partitioner=murmur2",
        "-X topic.partitioner=murmur2_random",
        "-X partitioner=fnv1a",
        "-X partitioner=fnv1a_random",
    ],
)
def test_keys_go_to_the_partitions_that_kcat_chooses(words: str) -> None:
    with Broker(topics={"theirs": 7, "ours": 7}) as broker:
        for program, topic in (([str(KCAT)], "theirs"), (OURS, "ours")):
            assert ran(program, f"-P -t {topic} -K : {words}", broker, KEYS) == (0, b"", [])
        theirs, ours = ({r.key: r.partition for r in broker.records(topic)} for topic in ("theirs", "ours"))
        assert ours == theirs


@needs_kcat
@pytest.mark.parametrize("name", ["consistent", "murmur2", "fnv1a", "murmur2_random", "fnv1a_random"])
def test_empty_keys_and_records_without_one_go_where_kcat_sends_them(name: str) -> None:
    with Broker(topics={"theirs": 7, "ours": 7}) as broker:
        for program, topic in (([str(KCAT)], "theirs"), (OURS, "ours")):
            lines = b":empty\n:empty\n" if name.endswith("random") else b":empty\nwithout\n"
            assert ran(program, f"-P -t {topic} -K : -X partitioner={name}", broker, lines) == (0, b"", [])
        theirs, ours = ([(r.key, r.partition) for r in broker.records(topic)] for topic in ("theirs", "ours"))
        assert ours == theirs


def test_records_without_a_key_are_spread_over_partitions() -> None:
    with Broker(topics={"t": 3}) as broker:
        assert ran(OURS, "-P -t t", broker, b"x\n" * 200) == (0, b"", [])
        assert {record.partition for record in broker.records("t")} == {0, 1, 2}
        code, _, notes = ran(OURS, "-P -t t -X partitioner=nope", broker, b"x\n")
        assert (code, "partitioner 'nope' does not exist" in notes[0]) == (1, True)


@needs_kcat
@pytest.mark.parametrize(
    ("words", "lines"),
    [("-Z -k ''", b"a\n\nb\n"), ("-k ''", b"a\n"), ("-Z -K :", b":v\nk:\n:\nx\n"), ("-K :", b":v\nk:\n:\n")],
)
def test_empty_keys_and_values_are_printed_as_by_kcat(words: str, lines: bytes) -> None:
    with Broker(topics=["theirs", "ours"]) as broker:
        for program, topic in (([str(KCAT)], "theirs"), (OURS, "ours")):
            assert ran(program, f"-P -t {topic} {words}", broker, lines) == (0, b"", [])
        theirs, ours = ([(r.key, r.value) for r in broker.records(topic)] for topic in ("theirs", "ours"))
        assert ours == theirs


@needs_kcat
def test_stored_offsets_need_a_group() -> None:
    with Broker(topics=["t"]) as broker:
        broker.append("t", b"x")
        for program in ([str(KCAT)], OURS):
            code, out, notes = ran(program, "-C -t t -o stored -e", broker)
            assert (code, out, len(notes)) == (1, b"", 1)


@pytest.mark.parametrize("words", ["-L -m 1", "-C -t t -e -m 1", "-P -t t -m 1", "-Q -t t:0:5 -m 1"])
def test_m_limits_the_wait_for_brokers(words: str) -> None:
    command = [*OURS, "-b", "127.0.0.1:1", *shlex.split(words)]
    begun = time.monotonic()
    done = call(command, b"x\n")
    assert done.code == 1
    assert done.err.startswith("% ERROR: ")
    assert time.monotonic() - begun < 7  # it would be 10 seconds without -m, on a machine that is not busy
