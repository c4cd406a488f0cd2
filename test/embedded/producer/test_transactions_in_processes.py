"""Transactions when the process is interrupted, forks, ends, or is left alone."""

from __future__ import annotations

import os

import pytest

from kafka.broker.faults import NO_REPLY

from .test_process import run

pytestmark = pytest.mark.slow

CALLS = {
    "init_transactions()": "InitProducerId",
    "send_offsets_to_transaction({(topic, 0): 1}, topic)": "TxnOffsetCommit",
    "commit_transaction()": "EndTxn",
    "abort_transaction()": "EndTxn",
}


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_ends_every_wait_at_once_and_the_work_can_be_waited_for_again(broker, topic, call):
    with broker.intercept(CALLS[call], lambda _exchange: NO_REPLY, times=1):
        done = run(broker, topic, f"""
            producer = KafkaProducer(bootstrap_servers=servers, transactional_id=topic, request_timeout_ms=6000)
            if "init" not in {call!r}:
                producer.init_transactions()
                producer.begin_transaction()
                producer.send(topic, b"x").get(10)
            pressed = []
            def press():
                pressed.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            threading.Timer(0.5, press).start()
            try:
                producer.{call}
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - pressed[0] < 5)  # unheard, it would be 6
            producer.{call}
            print(producer.health()["transaction"]["state"])
            producer.close()
        """)  # fmt: skip
    words = done.stdout.split()
    assert words[:2] == ["interrupted", "True"], done
    assert " ".join(words[2:]) == ("in a transaction" if "offsets" in call else "ready"), done
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_the_child_of_a_fork_gets_an_error_and_the_parent_commits(broker, topic):
    done = run(broker, topic, """
        import warnings
        warnings.simplefilter("ignore")
        producer = KafkaProducer(bootstrap_servers=servers, transactional_id=topic)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"before")
        child = os.fork()
        if not child:
            for call in (producer.commit_transaction, producer.abort_transaction, producer.begin_transaction):
                try:
                    call()
                except ForkedClientError:
                    pass
                else:
                    os._exit(1)
            producer.close()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        producer.send(topic, b"after")
        producer.commit_transaction()
        producer.close()
    """)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert [record.value for record in broker.records(topic, committed=True)] == [b"before", b"after"]


def test_the_end_of_the_program_aborts_what_is_open(broker, topic):
    done = run(broker, topic, """
        producer = KafkaProducer(bootstrap_servers=servers, transactional_id=topic)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"x").get(10)
    """)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    _start, stable, end = broker.offsets(topic)
    assert stable == end, "nobody waits for it"
    assert [record.value for record in broker.records(topic, committed=True)] == []


def test_an_open_transaction_costs_nothing_while_nothing_happens(make, topic):
    import time

    producer = make(transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"x").get(10)
    before = producer._core.loop.turns
    time.sleep(0.3)  # the subject is that nothing happens
    assert producer._core.loop.turns - before <= 2
    producer.abort_transaction()
