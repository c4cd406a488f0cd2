"""How a producer behaves when its process ends, forks, or is interrupted."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import textwrap
import time

import pytest

from kafka.broker.faults import NO_REPLY

from .conftest import WAIT

pytestmark = pytest.mark.slow


def run(broker, topic, code, **options):
    source = f"""
        import os, signal, sys, threading, time
        from kafka import KafkaProducer
        from kafka.errors import *
        servers, topic = {broker.bootstrap_servers!r}, {topic!r}
    """
    program = textwrap.dedent(source) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=3 * WAIT, check=False, **options
    )


def test_sent_records_arrive_though_the_program_never_closed(broker, topic):
    done = run(broker, topic, """
        producer = KafkaProducer(bootstrap_servers=servers, linger_ms=60_000)
        producer.send(topic, b"last words")
    """)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert [record.value for record in broker.records(topic)] == [b"last words"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_sent_records_arrive_though_a_child_of_multiprocessing_never_closed(broker, topic):
    """Such a child ends by os._exit(), without what is registered in atexit."""
    done = run(broker, topic, """
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        forked = multiprocessing.get_context("fork")

        def send(value):
            global producer
            producer = KafkaProducer(bootstrap_servers=servers, linger_ms=60_000)
            producer.send(topic, value)

        def send_late():
            def late():
                parent.join()
                producer.send(topic, b"from a thread").get(10)
            parent = threading.main_thread()
            send(b"from the main thread")
            threading.Thread(target=late).start()

        for process in (forked.Process(target=send, args=(b"process",)), forked.Process(target=send_late)):
            process.start()
            process.join()
            print(process.exitcode)
        with ProcessPoolExecutor(1, mp_context=forked) as pool:
            pool.submit(send, b"pool").result()
    """)  # fmt: skip
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "0\n0\n")
    values = [record.value for record in broker.records(topic)]
    assert values == [b"process", b"from the main thread", b"from a thread", b"pool"]


def test_a_producer_cannot_be_copied_or_pickled(make, topic):
    """A shallow copy closed the original when it was collected."""
    producer = make()
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a KafkaProducer cannot be copied or pickled"):
            way(producer)
    assert producer.send(topic, b"x").get(WAIT).offset == 0


@pytest.mark.parametrize("setup", ["logging.basicConfig()", "pass"], ids=["logging", "silent"])
def test_an_exit_without_a_broker_ends_and_every_future_has_failed(broker, topic, setup):
    with broker.intercept("Produce", lambda _exchange: NO_REPLY):
        done = run(broker, topic, f"""
            import atexit, logging, kafka.producer.kafka
            {setup}
            kafka.producer.kafka._EXIT_GRACE = 0.2
            def report():
                print(future.failed(), future.exception.outcome_unknown)
            atexit.register(report)
            producer = KafkaProducer(bootstrap_servers=servers, linger_ms=0)
            future = producer.send(topic, b"x")
            while not any(
                it["in_flight"] for name, it in producer.health()["brokers"].items() if name.endswith("/produce")
            ):
                time.sleep(0.01)
        """)  # fmt: skip
    assert done.stdout.split() == ["True", "True"], done
    assert done.stderr.count("1 record to topic ") == 1
    assert "was closed before this record was written" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_in_the_midst_of_sending_harms_neither_parent_nor_child(broker, topic):
    done = run(broker, topic, """
        import warnings
        warnings.simplefilter("ignore")
        producer = KafkaProducer(bootstrap_servers=servers, linger_ms=0, batch_size=200)
        futures, stop = [], threading.Event()
        def send():
            while not stop.is_set():
                futures.append(producer.send(topic, b"%d" % len(futures), partition=0))
                stop.wait(0.0001)
        sender = threading.Thread(target=send)
        sender.start()
        for number in range(10):
            futures[-1].get(10) if futures else None
            child = os.fork()
            if not child:
                # Its copy says so at once, whatever lock was held; one of its own works.
                try:
                    producer.send(topic, b"x")
                    os._exit(1)
                except ForkedClientError:
                    pass
                with KafkaProducer(bootstrap_servers=servers) as own:
                    own.send(topic, b"child").get(10)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
        stop.set()
        sender.join()
        producer.close()
        assert all(future.succeeded() for future in futures)
        print(len(futures))
    """)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    found = [record.value for record in broker.records(topic)]
    assert found.count(b"child") == 10
    assert [value for value in found if value != b"child"] == [b"%d" % number for number in range(int(done.stdout))]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here")
def test_close_leaves_no_thread_and_no_descriptor(broker, topic):
    done = run(broker, topic, """
        KafkaProducer(bootstrap_servers=servers).close()  # whatever Python itself opens once
        before = len(os.listdir("/proc/self/fd")), threading.active_count()
        for number in range(5):
            producer = KafkaProducer(bootstrap_servers=servers)
            producer.send(topic, b"x").get(10)
            producer.close()
            assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before
    """)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_the_child_of_a_fork_gets_an_error_and_the_parent_continues(broker, topic):
    done = run(broker, topic, """
        import warnings
        warnings.simplefilter("ignore")
        producer = KafkaProducer(bootstrap_servers=servers, linger_ms=60_000)
        producer.send(topic, b"before").get(10)
        producer.send(topic, b"pending")
        begun, forked = threading.Event(), threading.Event()

        def begin_to_close():
            with producer._closing:
                begun.set()
                forked.wait()

        threading.Thread(target=begin_to_close).start()
        begun.wait()
        child = os.fork()
        if not child:
            for call in (lambda: producer.send(topic, b"x"), producer.flush):
                try:
                    call()
                except ForkedClientError:
                    pass
                else:
                    os._exit(1)
            producer.close()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        forked.set()
        assert status == 0, status
        assert producer.send(topic, b"after").get(10).offset == 2
        producer.close()
    """)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert [record.value for record in broker.records(topic)] == [b"before", b"pending", b"after"]


@pytest.mark.parametrize(
    "call",
    ["future.get()", "producer.flush()", "fill()", "producer.send('nowhere', b'x')", "many.get()", "producer.close()"],
)
def test_ctrl_c_ends_every_wait_at_once(broker, topic, call):
    with broker.intercept("Produce", lambda _exchange: NO_REPLY):
        done = run(broker, topic, f"""
            producer = KafkaProducer(
                bootstrap_servers=servers, buffer_memory=3000, batch_size=1000, allow_auto_create_topics=False
            )
            future = producer.send(topic, b"x")
            many = producer.send_many(topic, [b"y"] * 3)
            def fill():
                while True:
                    producer.send(topic, b"x" * 100)
            pressed = []
            def press():
                pressed.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            while not any(entry["attempts"] for entry in producer.health()["partitions"].values()):
                pass
            threading.Timer(0.5, press).start()
            try:
                {call}
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - pressed[0] < 30)  # unheard, it would be a minute
            producer.close(timeout=0)
            print(future.failed(), future.exception.outcome_unknown)
        """)  # fmt: skip
    assert done.stdout.split() == ["interrupted", "True", "True", "True"], done


def test_idle_costs_no_turns(make, topic):
    producer = make()
    producer.send(topic, b"x").get(WAIT)
    before = producer._core.loop.turns
    time.sleep(0.3)  # the one test whose subject is that nothing happens
    assert producer._core.loop.turns - before <= 2
