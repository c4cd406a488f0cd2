"""``purekafka demo``: the protocol at work, without a broker.

Both ends of an exchange are played here: a client's request is framed, read as a broker reads it,
answered, and the answer is read again. The exit code is 0 only if everything came back as it went.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.api import Request, Response
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.registry import APIS

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The demo takes no words."""


def run(_arguments: argparse.Namespace) -> int:
    """Run the demo."""
    offered = [
        (api.key, api.min_version, api.max_version) for api in APIS.values() if "broker" in api.listeners.split()
    ]
    exchanges: list[tuple[Request, Response]] = [
        (
            ApiVersionsRequest[3](client_software_name="purekafka", client_software_version="demo"),
            ApiVersionsResponse[3](api_keys=offered),
        ),
        (
            MetadataRequest[1](["events"]),
            MetadataResponse[1](
                brokers=[(1, "localhost", 9092, None)],
                controller_id=1,
                topics=[(0, "events", False, [(0, 0, 1, [1], [1])])],
            ),
        ),
    ]
    outcomes = [_exchange(number, request, answer) for number, (request, answer) in enumerate(exchanges, start=1)]
    same = all(outcomes)
    print("everything came back as it went" if same else "something came back changed")
    return 0 if same else 1


def _exchange(correlation_id: int, request: Request, answer: Response) -> bool:
    sent = request.frame(correlation_id, client_id="demo")
    print(f"-> {type(request)!r}\n   {_hex(sent)}")
    header, received = Request.unframe(sent[4:])
    returned = answer.frame(header.correlation_id)
    print(f"<- {type(answer)!r}\n   {_hex(returned)}")
    number, understood = request.RESPONSE_TYPE.unframe(returned[4:])
    text = json.dumps(understood.to_json())
    print(f"   {text if len(text) < 400 else text[:400] + ' ...'}\n")
    return received == request and understood == answer and number == correlation_id


def _hex(data: bytes) -> str:
    return data[:48].hex(" ") + (f" ... ({len(data)} bytes)" if len(data) > 48 else "")
