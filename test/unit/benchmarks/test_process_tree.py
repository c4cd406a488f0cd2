"""The CPU time of a process and its descendants, as the Spark benchmark takes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import process_tree
from benchmarks.process_tree import Process

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

# Read by a process that runs nothing else: adopting orphans would change what other tests see.
ORPHAN = """
import os, subprocess, sys
from benchmarks.process_tree import adopt_orphans, tree_cpu_s

SPIN = "import time\\nwhile time.process_time() < 0.25: pass\\nprint(flush=True)\\ninput()"
PARENT = '''
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
os.read(int(sys.argv[2]), 1)
os._exit(0)  # without waiting for its child
'''
adopt_orphans()
before = tree_cpu_s()
end_parent, parents_end = os.pipe()[::-1]
words = [sys.executable, "-c", PARENT, SPIN, str(parents_end)]
with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[parents_end]) as parent:
    orphan = int(parent.stdout.readline())
    alive = tree_cpu_s() - before
    os.write(end_parent, b"x")
    os.waitid(os.P_PID, parent.pid, os.WEXITED | os.WNOWAIT)
    parent.stdin.close()  # the orphan reads from it too, and ends
    os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOWAIT)
ended = tree_cpu_s() - before
assert alive >= 0.2, alive
assert ended >= alive, (alive, ended)
"""


def test_the_time_of_children_counts_while_they_run_and_after_they_have_ended() -> None:
    before = process_tree.tree_cpu_s()
    spin = "import time\nwhile time.process_time() < 0.25: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", spin], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive = round(process_tree.tree_cpu_s() - before, 2)  # in ticks of the kernel: sums of floats differ a little
        child.communicate(b"\n")
    assert alive >= 0.2  # of 0.25
    assert round(process_tree.tree_cpu_s() - before, 2) >= alive


def test_the_time_of_a_process_whose_parent_ended_without_waiting_is_not_lost() -> None:
    words = [sys.executable, "-c", ORPHAN]
    root = Path(__file__).parents[3]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, cwd=root)
    assert done.returncode == 0, done.stderr


def test_a_reading_during_which_a_process_ended_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, child, other = Process(1, 0), Process(2, 0), Process(2, 9)
    # The child's 5 s are not in the second reading: not with the child, nor yet with its parent. Its number is reused.
    readings = [{ours: 1.0, child: 5.0}, {ours: 1.0}, {ours: 6.0, other: 0.0}, {ours: 6.0, other: 0.5}]
    monkeypatch.setattr(process_tree, "_tree", iter([*readings, {ours: 7.0, other: 0.5}]).__next__)
    assert process_tree.tree_cpu_s() == 6.0


def test_times_that_cannot_be_read_are_an_error_not_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    pids = iter(range(10**6))
    monkeypatch.setattr(process_tree, "_tree", lambda: {Process(next(pids), 0): 1.0})
    with pytest.raises(RuntimeError, match="processes ended during each of"):
        process_tree.tree_cpu_s()


def test_parents_and_own_times_are_read_from_proc() -> None:
    found = process_tree._stat(Path(f"/proc/{os.getpid()}/stat"))
    assert found is not None
    assert (found[0].pid, found[1]) == (os.getpid(), os.getppid())
    assert process_tree._stat(Path("/proc/0/stat")) is None


SPARKS_DAEMON = """
import runpy, signal, sys, types

def manager():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print(signal.getsignal(signal.SIGHUP).name, signal.getsignal(signal.SIGCHLD).name)

sys.modules["pyspark"] = package = types.ModuleType("pyspark")
package.daemon = types.SimpleNamespace(manager=manager)
runpy.run_module("benchmarks.python_daemon", run_name="__main__")
"""


def test_sparks_python_daemon_does_not_lose_the_time_of_workers() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", SPARKS_DAEMON], cwd=root, capture_output=True, text=True, check=False)
    assert done.stdout == "SIG_IGN SIG_DFL\n", done.stderr
