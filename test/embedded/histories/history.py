"""Random histories of an application on one face: made from a seed, held against a model, shortened when one fails.

A history is a list of steps; each says what an application calls or what befalls the brokers. A `Kind` makes the steps
and is the model that says what must be seen. Calls are written once: on the blocking face they return what they return,
on the face of asyncio it is awaited. Threads and the machine's load have a say in what happens, so a seed is a kind of
history rather than one history.
"""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import os
import random
import signal
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, ClassVar

from kafka._runtime.network_thread import complete

FACES = ("threads", "asyncio")

#: What a call may take beyond its own limit, on a machine that has other work.
GRACE = 20.0
#: How long a history may take before it counts as hanging.
LONGEST = 150.0

_HERE = os.path.dirname(__file__)


class CutShort(Exception):
    """A call was cancelled, or interrupted by Ctrl-C."""


@dataclass(frozen=True)
class Step:
    """What happens next: the name of a method of the `Kind`, and its arguments."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


class Kind(ABC):
    """The model of one kind of histories, with the clients and brokers of one of them."""

    #: How many steps a history has.
    length: ClassVar[int] = 30

    def __init__(self, seed: int, face: str) -> None:
        self.face = face
        #: What differs between histories and is no step: options, topics, versions.
        self.rng = random.Random(f"{type(self).__name__}/options/{seed}")
        self.operations = 0
        self.story: list[str] = []

    @classmethod
    @abstractmethod
    def steps(cls, rng: random.Random, length: int) -> list[Step]:
        """Make a history."""

    @abstractmethod
    async def begin(self) -> None:
        """Start brokers and clients."""

    @abstractmethod
    async def finish(self) -> None:
        """Nothing fails any more: all that was promised must come true."""

    @abstractmethod
    async def free(self) -> None:
        """End what is left, whatever has failed."""

    def settings(self) -> str:
        """Return in one line what is no step."""
        return ""

    def note(self, text: str) -> None:
        """Remember what happened."""
        self.story.append(f"    {text}")

    async def do(self, step: Step) -> None:
        """Do one step."""
        self.operations += 1
        await getattr(self, step.name)(**step.arguments)

    # Calls

    async def call(self, function: Callable[..., Any], *args: Any, limit: float = 60.0, **options: Any) -> Any:
        """Call a method of a client, and wait for what it returns; it must end within its limit."""
        begun = time.monotonic()
        try:
            found = function(*args, **options)
            # A future of the blocking face can be awaited too, but only one of asyncio's needs that.
            return await found if self.face == "asyncio" and asyncio.iscoroutine(found) else found
        finally:
            took = time.monotonic() - begun
            assert took < limit + GRACE, f"{function.__qualname__} took {took:.1f} s, its limit is {limit:.1f} s"

    async def cut(self, cut: float, function: Callable[[], Awaitable[Any]]) -> Any:
        """Run a call, cancelled after some turns of the event loop, or interrupted as by Ctrl-C after some time.

        `cut` is from 0 to 1, for the two faces to make of it what they have. The result is looked at within the call's
        own task: nothing happens between.
        """
        if self.face == "threads":
            with interrupted_in(0.0001 * 300**cut):
                return await function()
        task = asyncio.ensure_future(function())
        for _ in range(int(60**cut) - 1):
            await asyncio.sleep(0)
        task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            raise CutShort from None


def now(coro: Any) -> Any:
    """Run a coroutine that never waits, as on the blocking face, to its end."""
    try:
        coro.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a call on the blocking face waited")


@contextmanager
def interrupted_in(seconds: float) -> Iterator[None]:
    """Interrupt a call of a client as Ctrl-C does, if it takes longer.

    It comes while the call waits or takes records, and not while these are on their way out of it: what is lost there
    an application cannot tell from what it loses when the signal comes right after the call.
    """

    def handle(_number: int, frame: FrameType | None) -> None:
        frame = None if frame is None else frame.f_back
        while frame is not None and frame.f_code is not complete.__code__ and not _is_ours(frame):
            frame = frame.f_back
        if frame is not None and not _is_ours(frame):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.0003)
    try:
        yield
    except KeyboardInterrupt:
        raise CutShort from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_ours(frame: FrameType) -> bool:
    """Whether it is the model that runs, which a listener may be: it must not be cut in two."""
    return os.path.dirname(frame.f_code.co_filename) == _HERE


class Watchdog:
    """Ends a history that hangs by Ctrl-C in the main thread, and keeps where all threads and tasks stood."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._over = threading.Event()
        self.stacks = ""
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        if self._over.wait(LONGEST):
            return
        text = io.StringIO()
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            print(f"thread {names.get(ident)}", file=text)
            traceback.print_stack(frame, limit=12, file=text)
        for task in asyncio.all_tasks(self._loop):
            task.print_stack(limit=12, file=text)
        self.stacks = text.getvalue()
        signal.raise_signal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else os.kill(
            os.getpid(), signal.SIGINT
        )

    def close(self) -> None:
        """End the watch."""
        self._over.set()
        self._thread.join()


class InternalErrors(logging.Handler):
    """Errors that are logged with a traceback: an exception that no application gets."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None:
            self.texts.append(self.format(record))


@dataclass
class Outcome:
    """How a history went."""

    kind: type[Kind]
    seed: int
    face: str
    steps: list[Step]
    chosen: list[int]
    """The steps of the seed's history that were done: it may have been shortened."""
    operations: int = 0
    problem: str = ""
    """What did not hold, in one line; empty if all did."""
    trace: str = ""
    settings: str = ""
    story: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        less = ",".join(map(str, self.chosen))
        again = f"python -m test.embedded.histories {self.kind.__name__.lower()} {self.seed} --face {self.face}"
        if len(self.chosen) < len(self.steps):
            again += f" --steps {less or 'none'}"
        return "\n".join([again, self.settings, *self.story, self.trace, self.problem])


def live(kind: type[Kind], seed: int, face: str, chosen: Sequence[int] | None = None, length: int = 0) -> Outcome:
    """Live through one history, or through some of its steps."""
    steps = kind.steps(random.Random(f"{kind.__name__}/{seed}"), length or kind.length)
    outcome = Outcome(kind, seed, face, steps, list(range(len(steps)) if chosen is None else chosen))
    internal = InternalErrors()
    logger = logging.getLogger("kafka")
    logger.addHandler(internal)
    gc.collect()
    threads, files = threading.active_count(), open_files()
    loop = asyncio.SelectorEventLoop()
    unseen: list[str] = []
    loop.set_exception_handler(lambda _loop, context: unseen.append(repr(context)))
    watchdog = Watchdog(loop)
    model = None
    try:
        model = kind(seed, face)
        outcome.settings = model.settings()
        loop.run_until_complete(_run(model, [steps[number] for number in outcome.chosen]))
        left = [task for task in asyncio.all_tasks(loop) if not task.done()]
        assert not left, f"tasks are left: {left}"
        watchdog.close()
        loop.close()
        gc.collect()
        assert not unseen, f"the event loop was told: {unseen}"
        assert not internal.texts, "an internal error was logged: " + "\n".join(internal.texts)
        _check_nothing_left(threads, files)
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt) and not watchdog.stacks:
            raise
        what = "it hangs" if watchdog.stacks else f"{type(error).__name__}: {error}"
        outcome.problem = what.splitlines()[0] if what else "?"
        outcome.trace = traceback.format_exc() + watchdog.stacks
    finally:
        watchdog.close()
        logger.removeHandler(internal)
        _end_tasks(loop)
        loop.close()
        if model is not None:
            outcome.operations, outcome.story = model.operations, model.story
    return outcome


async def _run(model: Kind, steps: Iterable[Step]) -> None:
    try:
        await model.begin()
        for step in steps:
            model.story.append(str(step))
            await model.do(step)
        model.story.append("and at the end nothing fails")
        await model.finish()
    finally:
        await model.free()


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    if loop.is_closed():
        return
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=5))


def open_files() -> int:
    """The open files and sockets of this process."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def _check_nothing_left(threads: int, files: int) -> None:
    deadline = time.monotonic() + 5  # threads end a moment after they have freed everything
    while threading.active_count() > threads or open_files() > files:
        left = [thread.name for thread in threading.enumerate()]
        assert time.monotonic() < deadline, f"threads or sockets are left: {left}, {open_files() - files} files"
        time.sleep(0.01)


def shortened(outcome: Outcome, tries: int = 40, seconds: float = 180) -> Outcome:
    """Leave out steps for as long as a history fails in the same way; begin no try after some time."""
    best, ends = outcome, time.monotonic() + seconds
    same = _what(best.problem)
    size = max(1, len(best.chosen) // 2)
    while size and tries and time.monotonic() < ends:
        begin = 0
        while begin < len(best.chosen) and tries and time.monotonic() < ends:
            tries -= 1
            less = best.chosen[:begin] + best.chosen[begin + size :]
            found = live(best.kind, best.seed, best.face, less, len(best.steps))
            if found.problem and _what(found.problem) == same:
                best = found
            else:
                begin += size
        size //= 2
    return best


def _what(problem: str) -> str:
    """A problem without names and numbers, to compare it with others."""
    return " ".join(word for word in problem.split() if word.isalpha())[:60]


def chooser(rng: random.Random, weights: Counter[str] | dict[str, int]) -> Callable[[], str]:
    """Return what draws a name, each as often as its weight says."""
    names, numbers = list(weights), list(weights.values())
    return lambda: rng.choices(names, numbers)[0]
