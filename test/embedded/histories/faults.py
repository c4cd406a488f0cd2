"""What may befall the brokers in a history: errors that they send, lost connections, delays, leaders that move."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from kafka.broker import Broker
from kafka.broker.faults import CLOSE, NO_REPLY, Exchange
from kafka.broker.server.apis import handler
from kafka.errors import KafkaError

from .history import Step

#: Codes that brokers may answer at any time, and that clients retry.
FETCH = (3, 6, 74, 75, 76, 78, 56, 2, -1, 70, 71, 29)
OFFSETS = (6, 5, 78)
EPOCHS = (6, 74, 76)
GROUP = (14, 15, 16)
CLASSIC_MEMBER = (*GROUP, 22, 25, 27)
CONSUMER_MEMBER = (*GROUP, 25, 110)
PRODUCE = (3, 5, 6, 7, 9, 19, 20, 56, 74, 75, 100)


#: Requests that may be served after their connection has ended: they waited at the broker.
LATE = ("Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")
#: Members wait for the answers to these as long as a rebalance may last.
PATIENT = ("JoinGroup", "SyncGroup")


def steps(rng: random.Random, codes: dict[str, Sequence[int]], nodes: int) -> list[Step]:
    """Return some faults to choose from; `codes` are the errors of each API."""
    api = rng.choice(list(codes))
    fates = ["close"] if api in PATIENT else ["close", "silence"]
    fate = rng.choice(fates)
    times = rng.randint(1, 2) if fate == "close" else 1  # a silent request blocks those behind it, as for a hung broker
    # A member whose join was served and not answered stays in the group as a stranger until its session ends.
    lost = {"api": api, "fate": fate, "before": api in PATIENT or rng.random() < 0.5, "times": times}
    late = [Step("serve_late", {"api": api, "seconds": rng.choice([0.0, 0.01, 0.1])})] if api in LATE else []
    return [
        Step("fail", {"api": api, "code": rng.choice(codes[api]), "times": rng.choice([1, 1, 2, 4])}),
        Step("fail", {"api": api, "code": rng.choice(codes[api]), "times": rng.choice([1, 1, 2, 4])}),
        Step("lose", lost),
        Step("delay", {"api": api, "seconds": rng.choice([0.005, 0.03, 0.15])}),
        Step("drop", {"api": rng.choice([None, api])}),
        Step("move_leaders", {}),
        Step("move_coordinators", {}),
        Step("restart", {"node": rng.randint(1, nodes), "crash": rng.random() < 0.5}),
        *late,
    ]


class Faults:
    """The steps of `steps`, for a `Kind` with a broker."""

    broker: Broker

    async def fail(self, api: str, code: int, times: int) -> None:
        """Answer with an error in the shape that Kafka gives it."""
        self.broker.fail(api, [code], times=times)

    async def lose(self, api: str, fate: str, before: bool, times: int) -> None:
        """Lose requests (`before` they are served) or replies."""
        chosen: Any = CLOSE if fate == "close" else NO_REPLY
        self.broker.intercept(api, lambda _exchange: chosen, before=before, times=times)

    async def serve_late(self, api: str, seconds: float) -> None:
        """Cut the connection of a request, and serve that later."""
        served = set()

        def serve(exchange: Exchange) -> None:
            if not exchange.call.node.is_running:
                return
            with suppress(KafkaError):  # the coordinator has moved meanwhile
                found = handler(exchange.request.API_KEY)(exchange.call, exchange.request)
                if inspect.isawaitable(found):
                    served.add(asyncio.ensure_future(found))

        def keep(exchange: Exchange) -> Any:
            asyncio.get_running_loop().call_later(seconds, serve, exchange)
            return CLOSE

        self.broker.intercept(api, keep, before=True, times=1)

    async def delay(self, api: str, seconds: float) -> None:
        """Answer late, once."""
        self.broker.delay(api, seconds, times=1)

    async def drop(self, api: str | None) -> None:
        """Cut connections, all or the next that asks for this."""
        self.broker.drop_connections(api=api)

    async def move_leaders(self) -> None:
        """Give each partition another leader."""
        self.broker.shuffle_leaders()

    async def move_coordinators(self) -> None:
        """Give each group and each transactional id another coordinator."""
        self.broker.rehash_coordinators()

    async def restart(self, node: int, crash: bool) -> None:
        """Stop a broker and start it again."""
        self.broker.stop_node(node, crash=crash)
        self.broker.start_node(node)
